/* SPDX-License-Identifier: MIT */
/* Version, errors, log, progress. Included by embeng.h, whose rules hold. */
#ifndef EMBENG_ERROR_API_H
#define EMBENG_ERROR_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Generators of bindings that parse these headers define it as nothing. */
#ifndef EMBENG_API
#define EMBENG_API __attribute__((visibility("default")))
#endif

/*
 * EMBENG_INIT(type, members): a structure of this library with its size set. @type is its name without
 * "struct". Members follow as designators; those that are not named are zero, which is their default:
 *
 *	EMBENG_INIT(embeng_table_config, .name = "items", .vocabulary_size = 1000, .dim = 64)
 *
 * The value initializes a variable, and in C its address is an argument as it stands. C++ has it from
 * C++20 on, with members in the order of their declaration.
 */
#ifndef __cplusplus
#define EMBENG_INIT(...) \
	EMBENG_INIT_MEMBERS(__VA_ARGS__, .size = sizeof(struct EMBENG_INIT_TYPE(__VA_ARGS__, 0)))
#define EMBENG_INIT_TYPE(type, ...) type
#define EMBENG_INIT_MEMBERS(type, ...) ((struct type){__VA_ARGS__})
#elif __cplusplus >= 202002L
#define EMBENG_INIT(type, ...) (type{.size = sizeof(type) __VA_OPT__(, ) __VA_ARGS__})
#endif

/* The version of these headers. */
#define EMBENG_VERSION_MAJOR 0
#define EMBENG_VERSION_MINOR 1
#define EMBENG_VERSION_PATCH 0

/** embeng_version() - "MAJOR.MINOR.PATCH" of the library, which may be newer than the headers */
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
 * @what: "save", "restore", "reshard", "verify", "dump", "receive", "pack", "unpack"
 * @done: bytes
 * @total: bytes, known from the start; 0: unknown, of a stream that does not say it
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

/**
 * typedef embeng_ask_fn - asked by a call that takes long, by the calling thread, whether it shall end
 *
 * It may use no handle. Return: 0 to go on; anything else ends the call, which returns -EINTR.
 */
typedef int (*embeng_ask_fn)(void *arg);

typedef void (*embeng_log_fn)(void *arg, enum embeng_log_level level, const char *text);

#ifdef __cplusplus
}
#endif

#endif
