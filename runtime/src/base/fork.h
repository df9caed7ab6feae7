/* SPDX-License-Identifier: MIT */
/* After fork() the child has the memory of the engine but none of its threads. */
#ifndef EMBENG_FORK_H
#define EMBENG_FORK_H

#include <stdint.h>

/* A number that grows by one in every child of fork(), counted from the first call on. */
uint32_t fork_generation(void);

#endif
