/* SPDX-License-Identifier: MIT */
/* The interfaces to the engine. The library knows nothing else about a device. */
#ifndef EMBENG_WIRE_H
#define EMBENG_WIRE_H

#include "../../../uapi/embeng_barrier.h"
#include "../../../uapi/embeng_engine.h"
#include "../../../uapi/embeng_regs.h"
#include "../../../uapi/embeng_steps.h"

#endif
