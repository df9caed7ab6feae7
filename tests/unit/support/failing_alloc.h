/* SPDX-License-Identifier: MIT */
/* Memory that runs out when a test says so; link with the --wrap arguments of failing_alloc.c. */
#ifndef EMBENG_TESTS_SCARCE_H
#define EMBENG_TESTS_SCARCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The @nth allocation from now on fails, those after it do not; 0: none fails. */
void scarce_begin(uint32_t nth);

/* Until scarce_end(), allocations of more than @bytes fail as well. */
void scarce_limit(size_t bytes);

/* Return: whether one failed since scarce_begin(). None fails from now on. */
bool scarce_end(void);

#endif
