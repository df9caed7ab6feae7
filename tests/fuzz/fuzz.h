/* SPDX-License-Identifier: MIT */
/*
 * The code that the fuzz targets share. An input is read as a program: bytes are taken one
 * after another and say what to do next; where they end, all further ones are 0.
 */
#ifndef EMBENG_FUZZ_H
#define EMBENG_FUZZ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz {
	const uint8_t *data;
	size_t left;
};

static inline uint64_t fuzz_take(struct fuzz *f, size_t bytes)
{
	uint64_t value = 0;

	for (size_t i = 0; i < bytes && f->left; i++, f->left--)
		value |= (uint64_t)*f->data++ << 8 * i;
	return value;
}

/* A number below @limit, which is at most 256. */
static inline uint32_t fuzz_below(struct fuzz *f, uint32_t limit)
{
	return (uint32_t)fuzz_take(f, 1) % limit;
}

/* True for one byte in @of; false where the input has ended. */
static inline bool fuzz_rarely(struct fuzz *f, uint32_t of)
{
	return fuzz_take(f, 1) % of == of - 1;
}

/* Returns @usual in most cases; else a number of any size, the interesting ones more often. */
static inline uint64_t fuzz_near(struct fuzz *f, uint64_t usual)
{
	static const uint64_t corners[] = {0,	       1,	   0x7fffffff, 0x80000000,
					   0xffffffff, 1ull << 32, 1ull << 62, INT64_MAX,
					   1ull << 63, UINT64_MAX};

	switch (fuzz_take(f, 1) & 63) {
	case 60:
		return usual + fuzz_take(f, 1);
	case 61:
		return usual - fuzz_take(f, 1);
	case 62:
		return corners[fuzz_below(f, sizeof(corners) / sizeof(corners[0]))];
	case 63:
		return fuzz_take(f, 8);
	}
	return usual;
}

/* Overwrites some of @length bytes: an offset, a width and a value each. */
static inline void fuzz_edit(struct fuzz *f, void *data, size_t length, uint32_t most)
{
	for (uint32_t edits = fuzz_below(f, most + 1); edits && length; edits--) {
		size_t at = fuzz_take(f, 2) % length;
		size_t width = (size_t)1 << (fuzz_take(f, 1) & 3);
		uint64_t old = 0, value;

		width = width < length - at ? width : length - at;
		memcpy(&old, (uint8_t *)data + at, width);
		value = fuzz_take(f, 1) & 1 ? fuzz_take(f, width) : fuzz_near(f, old + 1);
		memcpy((uint8_t *)data + at, &value, width);
	}
}

/* Aborts the run on this input if a condition does not hold. */
#define fuzz_check(holds, ...) \
	do { \
		if (!(holds)) { \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #holds); \
			fprintf(stderr, __VA_ARGS__); \
			fputc('\n', stderr); \
			abort(); \
		} \
	} while (0)

/*
 * Allocates exactly these bytes, so that ASan finds accesses beyond them; failing_alloc.h never
 * fails it.
 */
static inline void *fuzz_memory(size_t bytes)
{
	void *p = aligned_alloc(1, bytes ? bytes : 1);

	fuzz_check(p, "%zu bytes", bytes);
	return memset(p, 0, bytes);
}

#endif
