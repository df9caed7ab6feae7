/* SPDX-License-Identifier: MIT */
/*
 * The binary interface between XLA and functions that its programs call ("FFI", version 0.1), as far
 * as embeng uses it. Each structure begins with its size, as the side that made it knows it, and with
 * a list of extensions. Numbers and layouts are those of XLA; names are ours.
 */
#ifndef EMBENG_PYTHON_XLA_ABI_H
#define EMBENG_PYTHON_XLA_ABI_H

#include <stddef.h>
#include <stdint.h>

#define XLA_MAJOR 0
#define XLA_MINOR 1

enum { XLA_EXTENSION_METADATA = 1 };
enum { XLA_STAGE_EXECUTE = 3 };
enum { XLA_BUFFER = 1 }; /* the type of an argument or of a result */
enum { XLA_ATTRIBUTE_ARRAY = 1, XLA_ATTRIBUTE_SCALAR = 3, XLA_ATTRIBUTE_STRING = 4 };
enum { XLA_S32 = 4, XLA_S64 = 5, XLA_U32 = 8, XLA_F32 = 11 };

/* The codes of errors that embeng has. */
enum {
	XLA_CANCELLED = 1,
	XLA_UNKNOWN = 2,
	XLA_INVALID_ARGUMENT = 3,
	XLA_DEADLINE_EXCEEDED = 4,
	XLA_NOT_FOUND = 5,
	XLA_RESOURCE_EXHAUSTED = 8,
	XLA_FAILED_PRECONDITION = 9,
	XLA_OUT_OF_RANGE = 11,
	XLA_UNIMPLEMENTED = 12,
	XLA_INTERNAL = 13,
	XLA_UNAVAILABLE = 14,
};

struct xla_extension {
	size_t size;
	int type;
	struct xla_extension *next;
};

struct xla_version {
	size_t size;
	struct xla_extension *extensions;
	int major, minor;
};

struct xla_metadata {
	size_t size;
	struct xla_version version;
	uint32_t traits;
};

struct xla_metadata_extension {
	struct xla_extension base;
	struct xla_metadata *metadata;
};

struct xla_buffer {
	size_t size;
	struct xla_extension *extensions;
	int type;
	void *data;
	int64_t rank;
	int64_t *shape; /* [rank] */
};

/* Arguments, and likewise results. */
struct xla_buffers {
	size_t size;
	struct xla_extension *extensions;
	int64_t count;
	int *types;
	void **items; /* struct xla_buffer */
};

struct xla_text {
	const char *data;
	size_t length;
};

struct xla_scalar {
	int type;
	void *value;
};

struct xla_array {
	int type;
	size_t count;
	void *data;
};

struct xla_attributes {
	size_t size;
	struct xla_extension *extensions;
	int64_t count;
	int *types;
	struct xla_text **names;
	void **items; /* struct xla_scalar, xla_array or xla_text, by type */
};

struct xla_error;

struct xla_error_arguments {
	size_t size;
	struct xla_extension *extensions;
	const char *message;
	int code;
};

struct xla_message_arguments {
	size_t size;
	struct xla_extension *extensions;
	struct xla_error *error;
	const char *message; /* out */
};

struct xla_destroy_arguments {
	size_t size;
	struct xla_extension *extensions;
	struct xla_error *error;
};

struct xla_frame;

typedef struct xla_error *(*xla_handler)(struct xla_frame *frame);

/* The functions of a handler by stage; only the last one is not NULL. */
struct xla_register_arguments {
	size_t size;
	struct xla_extension *extensions;
	struct xla_text name, platform;
	xla_handler instantiate, prepare, initialize, execute;
	uint32_t traits;
};

struct xla_functions {
	size_t size;
	struct xla_extension *extensions;
	struct xla_version version;
	const void *internal;
	struct xla_error *(*create_error)(struct xla_error_arguments *arguments);
	const char *(*get_message)(struct xla_message_arguments *arguments);
	void (*destroy_error)(struct xla_destroy_arguments *arguments);
	struct xla_error *(*register_handler)(struct xla_register_arguments *arguments);
	/* more, which embeng does not call */
};

struct xla_frame {
	size_t size;
	struct xla_extension *extensions;
	const struct xla_functions *functions;
	void *context;
	int stage;
	struct xla_buffers arguments, results;
	struct xla_attributes attributes;
	/* later versions have more */
};

/* The functions of this package (xla.c). */
struct xla_target {
	const char *name;
	xla_handler function;
};

#define XLA_TARGETS 6
extern const struct xla_target xla_target_list[XLA_TARGETS];

#endif
