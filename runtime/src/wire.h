/* SPDX-License-Identifier: MIT */
/*
 * The contracts with the engine, next to the public header.
 *
 * A batch of the public interface and the descriptor of a LOOKUP have one tag
 * in C; inside the library the descriptor goes by the name of struct wire_batch.
 */
#ifndef EMBENG_WIRE_H
#define EMBENG_WIRE_H

#define embeng_batch wire_batch
#include "../../uapi/embeng_engine.h"
#undef embeng_batch
#include "../../uapi/embeng_barrier.h"
#include "../../uapi/embeng_regs.h"

#endif
