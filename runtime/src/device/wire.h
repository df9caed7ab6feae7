/* SPDX-License-Identifier: MIT */
/* The contracts with the engine, all that the library knows of a device. */
#ifndef EMBENG_WIRE_H
#define EMBENG_WIRE_H

#include "../../../uapi/embeng_barrier.h"
#include "../../../uapi/embeng_engine.h"
#include "../../../uapi/embeng_regs.h"
#include "../../../uapi/embeng_steps.h"

#endif
