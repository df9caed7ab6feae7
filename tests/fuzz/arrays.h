/* SPDX-License-Identifier: MIT */
/* Arrays of any content that calls are given, each in memory of its own. */
#ifndef EMBENG_FUZZ_ARRAYS_H
#define EMBENG_FUZZ_ARRAYS_H

#include <math.h>

#include "batch_model.h"

#define ARRAYS 256
#define ARRAYS_LIMIT ((size_t)16 << 20) /* bytes; shapes may ask for any number of samples */

/* Arrays that a batch points to. They must live until the batch is freed. */
struct arrays {
	void *list[ARRAYS];
	size_t count;
};

/* Allocates memory that contains only this array, or returns NULL. */
static inline void *array(struct arrays *a, struct fuzz *f, size_t bytes)
{
	if (a->count == ARRAYS || fuzz_rarely(f, 32))
		return NULL;
	return a->list[a->count++] = fuzz_memory(bytes);
}

static inline void forget(struct arrays *a)
{
	while (a->count)
		free(a->list[--a->count]);
}

/* Checks that a call that failed has set a sentence that names something. */
static inline int said(int result)
{
	struct embeng_error error = {.size = sizeof(error)};

	if (result >= 0)
		return result;
	embeng_last_error(&error);
	fuzz_check(error.code == result, "%d, but the error is %d", result, error.code);
	fuzz_check(strlen(error.text) > 8, "'%s'", error.text);
	return result;
}

static inline const void *ids(struct arrays *a, struct fuzz *f, enum embeng_id_type type,
			      size_t count)
{
	size_t width = type == EMBENG_I32 ? 4 : 8;
	uint8_t *out = array(a, f, count * width);

	for (size_t i = 0; out && i < count; i++) {
		uint64_t id = fuzz_near(f, fuzz_below(f, BATCH_ROWS));

		memcpy(out + i * width, &id, width);
	}
	return out;
}

static inline const float *weights(struct arrays *a, struct fuzz *f, size_t ids_count,
				   size_t *count)
{
	float *out;

	*count = 0;
	if (fuzz_rarely(f, 2))
		return NULL;
	*count = fuzz_near(f, ids_count) % 64;
	out = array(a, f, *count * sizeof(*out));
	for (size_t i = 0; out && i < *count; i++) {
		int8_t eighths = (int8_t)fuzz_take(f, 1);

		out[i] = eighths == INT8_MIN ? INFINITY : (float)eighths / 8;
	}
	return out;
}

static inline enum embeng_id_type type_of(struct fuzz *f)
{
	return (enum embeng_id_type)(fuzz_near(f, fuzz_below(f, 2)) & 3);
}

#endif
