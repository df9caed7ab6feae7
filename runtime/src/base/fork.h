/* SPDX-License-Identifier: MIT */
/* After fork() the child has the memory of the engine but none of its threads. */
#ifndef EMBENG_FORK_H
#define EMBENG_FORK_H

#include <stdint.h>

/*
 * A number that is larger in each child that has a copy of this memory, counted from the first call
 * on; in a child of _Fork() or clone(), too. Any thread may call.
 */
uint32_t fork_generation(void);

#endif
