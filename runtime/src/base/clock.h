/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_CLOCK_H
#define EMBENG_CLOCK_H

#include <stdint.h>

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t now_ns(void);

#endif
