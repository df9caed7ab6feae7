/* SPDX-License-Identifier: MIT */
/* Version, errors, log, progress. Included by embeng.h, whose rules hold. */
#ifndef EMBENG_ERROR_API_H
#define EMBENG_ERROR_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EMBENG_API __attribute__((visibility("default")))

/** embeng_version() - "MAJOR.MINOR.PATCH" of the library */
EMBENG_API const char *embeng_version(void);

#define EMBENG_ERROR_TEXT 512

/**
 * struct embeng_error - an error with its sentence
 * @size: sizeof(struct embeng_error)
 * @code: negative errno, as returned
 * @status: enum embeng_status of the device, 0 when the library refused it
 * @text: one sentence: what was wrong, where, what was allowed, what to do
 */
struct embeng_error {
	size_t size;
	int code;
	unsigned int status;
	char text[EMBENG_ERROR_TEXT];
};

/** embeng_last_error() - copy the calling thread's last error to @error */
EMBENG_API void embeng_last_error(struct embeng_error *error);

enum embeng_log_level {
	EMBENG_LOG_ERROR,
	EMBENG_LOG_WARNING,
	EMBENG_LOG_INFO,
	EMBENG_LOG_DEBUG,
};

/**
 * struct embeng_progress - how far long work is
 * @what: "save", "restore", "reshard", "verify", "dump"
 * @done: bytes
 * @total: bytes, known from the start
 */
struct embeng_progress {
	const char *what;
	uint64_t done, total;
};

/**
 * typedef embeng_progress_fn - told now and then by long work, by the calling thread
 *
 * Return: 0 to go on; anything else cancels, the call then returns -ECANCELED and
 * what was there before is as it was.
 */
typedef int (*embeng_progress_fn)(void *arg, const struct embeng_progress *progress);

typedef void (*embeng_log_fn)(void *arg, enum embeng_log_level level, const char *text);

#ifdef __cplusplus
}
#endif

#endif
