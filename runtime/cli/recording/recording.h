/* SPDX-License-Identifier: MIT */
/*
 * Reading a recording (uapi/embeng_recording.h) that anybody may have written. An entry that is given
 * out has the length that its type and its numbers ask for, and its checksum is right.
 */
#ifndef CLI_RECORDING_RECORDING_H
#define CLI_RECORDING_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "embeng_recording.h"

/**
 * struct recording_entry - an entry
 * @offset: its first byte in the file
 * @type: enum embeng_recording_type
 * @fixed: the structure of the type, aligned to 8 bytes; NULL for a type that has none
 * @bytes: bytes that follow it
 * @count: bytes of @bytes, without those that fill up
 */
struct recording_entry {
	uint64_t offset;
	uint64_t time_ns;
	uint32_t number;
	uint16_t type;
	const void *fixed;
	const unsigned char *bytes;
	uint64_t count;
};

/**
 * struct recording - a recording that is being read
 * @data: the file, aligned to 8 bytes
 * @size: its bytes
 * @at: where the next entry begins
 * @number: its number
 * @problem: why reading has ended before the end of the file, or ""
 * @is_cut: the file ends inside of an entry, and all before it is whole
 */
struct recording {
	const unsigned char *data;
	size_t size, at;
	uint32_t number;
	char problem[160];
	bool is_cut;
};

/* Whether the file begins like a recording. */
bool recording_is(const unsigned char *data, size_t size);

/* Begins at the first entry. */
void recording_begin(struct recording *r, const unsigned char *data, size_t size);

/* Return: false at the end of what can be read; @problem says whether that is the end of the file. */
bool recording_next(struct recording *r, struct recording_entry *entry);

/* Words for a type, or NULL. */
const char *recording_word(uint16_t type);

#endif
