/* SPDX-License-Identifier: MIT */
/* After fork() the child has the memory of the engine but none of its threads. */
#ifndef EMBENG_FORK_H
#define EMBENG_FORK_H

#include <stdint.h>

/* Grows by one in every child; starts to count with its first call. */
uint32_t fork_generation(void);

#endif
