/* SPDX-License-Identifier: MIT */
/* The sentence that goes with an errno. It is thread-local, and copied to callers that ask. */
#ifndef EMBENG_ERROR_H
#define EMBENG_ERROR_H

#include <errno.h>

#include "embeng.h"

/* Records the sentence for this thread and returns @code (negative errno). */
int error_set(int code, unsigned int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * error_set() without a device status, the common case. Its value is the code
 * itself, so that a compiler sees which way a failure goes.
 */
#define fail(code, ...) \
	({ \
		int fail_code_ = (code); \
		error_set(fail_code_, 0, __VA_ARGS__); \
		fail_code_; \
	})

#endif
