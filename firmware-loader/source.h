/* SPDX-License-Identifier: MIT */
/* The text sources of a firmware image; embeng-firmware(5) says how they are written. */
#ifndef EMBENG_FIRMWARE_SOURCE_H
#define EMBENG_FIRMWARE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "../uapi/embeng_firmware.h"

#define SOURCE_ERROR 256

/* A buffer that grows as bytes are appended. */
struct fw_source_bytes {
	unsigned char *data;
	size_t length;
};

/* A self-test that is being read: its numbers, and each array as words. */
struct fw_source_test {
	struct embeng_fw_self_test test;
	struct fw_source_bytes arrays[EMBENG_FW_TEST_ARRAYS];
	unsigned int line;  /* line at which it begins */
	unsigned int given; /* bits of the keys that were given */
};

/**
 * struct fw_source - everything that was read from the sources so far
 * @version: version of the image
 * @build_id: build id as text, may be empty
 * @parameters: boot parameters
 * @given: a bit for each parameter that was given, then for version and build_id
 * @strings: content of the section of strings
 * @tests: content of the section of self-tests
 * @error: sentence of the last failure, with file and line
 */
struct fw_source {
	__u64 version;
	char build_id[sizeof(((struct embeng_fw_header *)0)->build_id) + 1];
	struct embeng_fw_parameters parameters;
	unsigned int given;
	struct fw_source_bytes strings, tests;
	char error[SOURCE_ERROR];
	/* while reading */
	const char *name;
	unsigned int line;
	int section;
	struct fw_source_test test;
};

/**
 * fw_source_read() - read one source; several sources may be read into one image
 * @s: sources read so far; zeroed before the first call
 * @name: name of the file, for messages
 * @text: contents of the file
 * @length: bytes in @text
 *
 * Return: 0, -EINVAL with a sentence in @s->error, or -ENOMEM with one.
 */
int fw_source_read(struct fw_source *s, const char *name, const char *text, size_t length);

/**
 * fw_source_pack() - make the image from everything that was read
 * @s: sources
 * @image: set to the image, to be freed with free()
 * @length: set to the number of bytes in the image
 *
 * Return: as fw_source_read(). -EINVAL when a required setting is missing, or the image
 * would be larger than EMBENG_FW_LENGTH_MAX.
 */
int fw_source_pack(struct fw_source *s, void **image, size_t *length);

void fw_source_free(struct fw_source *s);

/* Sets the error sentence, preceded by file and line. Return: -EINVAL. */
int fw_source_fail(struct fw_source *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Appends bytes to a buffer. Return: 0, or -ENOMEM with a sentence. */
int fw_source_append(struct fw_source *s, struct fw_source_bytes *to, const void *data,
		     size_t length);

/* Reads the whole number of @key, within limits. Return: 0, or -EINVAL with a sentence. */
int fw_source_number(struct fw_source *s, const char *key, const char *text, __u64 low, __u64 high,
		     __u64 *value);

/* Reads a number with strtof() into its f32 bits. Return: 0, or -EINVAL with a sentence. */
int fw_source_float(struct fw_source *s, const char *key, const char *text, __u32 *bits);

/*
 * Reads a version, "0.2.0" or "0.2.0.17", as &struct embeng_fw_header has it. Return: 0, -EINVAL.
 */
int version_read(const char *text, __u64 *version);

/* Read one line of a self-test, and its end. Return: 0, or a negative errno with a sentence. */
int fw_source_test_key(struct fw_source *s, const char *key, char *value);
int fw_source_test_end(struct fw_source *s);

/* Names as sources write them. Return: NULL for an unknown number. */
const char *fw_source_optimizer_name(__u32 optimizer);
const char *fw_source_combiner_name(__u32 combiner);

void fw_source_test_free(struct fw_source_test *t);

#endif
