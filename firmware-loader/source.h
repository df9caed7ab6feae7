/* SPDX-License-Identifier: MIT */
/* The text sources of a firmware image; embeng-firmware(5) says how they are written. */
#ifndef EMBENG_FIRMWARE_SOURCE_H
#define EMBENG_FIRMWARE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "../uapi/embeng_firmware.h"

#define SOURCE_ERROR 256

/* Bytes that grow. */
struct fw_source_bytes {
	unsigned char *data;
	size_t length;
};

/* A self-test under way: its numbers, and each array as words. */
struct fw_source_test {
	struct embeng_fw_self_test test;
	struct fw_source_bytes arrays[EMBENG_FW_TEST_ARRAYS];
	unsigned int line;  /* where it begins */
	unsigned int given; /* keys of numbers that were there */
};

/**
 * struct fw_source - what sources said so far
 * @version: of the image
 * @build_id: as text, may be empty
 * @parameters: boot parameters
 * @given: bit of each parameter that was there, then of version and build_id
 * @strings: content of the section
 * @tests: content of the section
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
 * fw_source_read() - read one source; several add up to one image
 * @s: zeroed before the first
 * @name: of the file, for messages
 * @text: its bytes
 * @length: how many
 *
 * Return: 0, -EINVAL with a sentence in @s->error, or -ENOMEM with one.
 */
int fw_source_read(struct fw_source *s, const char *name, const char *text, size_t length);

/**
 * fw_source_pack() - make the image of all that was read
 * @s: as read
 * @image: out, to be freed with free()
 * @length: out, its bytes
 *
 * Return: as fw_source_read(): -EINVAL when something that must be there was not, or the image
 * would be larger than EMBENG_FW_LENGTH_MAX.
 */
int fw_source_pack(struct fw_source *s, void **image, size_t *length);

void fw_source_free(struct fw_source *s);

/* Sets the sentence, after file and line. Return: -EINVAL. */
int fw_source_fail(struct fw_source *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* 0, or -ENOMEM with a sentence. */
int fw_source_append(struct fw_source *s, struct fw_source_bytes *to, const void *data,
		     size_t length);

/* A whole number of @key within limits. 0 or -EINVAL with a sentence. */
int fw_source_number(struct fw_source *s, const char *key, const char *text, __u64 low, __u64 high,
		  __u64 *value);

/* The f32 bits of a number, as strtof() reads it. 0 or -EINVAL with a sentence. */
int fw_source_float(struct fw_source *s, const char *key, const char *text, __u32 *bits);

/* "0.2.0" or "0.2.0.17" as in &struct embeng_fw_header. 0 or -EINVAL. */
int version_read(const char *text, __u64 *version);

/* One line of a self-test, and its end. 0 or a negative errno with a sentence. */
int fw_source_test_key(struct fw_source *s, const char *key, char *value);
int fw_source_test_end(struct fw_source *s);

/* As a source writes them; NULL for a number that is none. */
const char *fw_source_optimizer_name(__u32 optimizer);
const char *fw_source_combiner_name(__u32 combiner);

void fw_source_test_free(struct fw_source_test *t);

#endif
