/* SPDX-License-Identifier: MIT */
/* Lets the n-th allocation of the process fail, whoever asks for it: a library as well as libc. */
#ifndef EMBENG_TESTS_FAIL_NTH_H
#define EMBENG_TESTS_FAIL_NTH_H

#include <stdbool.h>

/* The @nth allocation from now on fails, those after it do not; 0: none fails, they are counted. */
void fail_nth_begin(long nth);

/* Ends it. Return: the number of allocations since; *hit: whether one failed. */
long fail_nth_end(bool *hit);

#endif
