/* SPDX-License-Identifier: MIT */
/* The same random batches, looked up by the engine and by the serving lookup. */
#ifndef CLI_COMPARE_LOOKUPS_H
#define CLI_COMPARE_LOOKUPS_H

#include "embeng.h"

#include "../frame/random.h"

/**
 * struct difference - how the two lookups of a feature compare
 * @floats: compared
 * @differing: of them, not the same bits; any NaN is any other
 * @largest: difference of two that are numbers
 * @batch: of the first that differs
 * @at: its place in the output, row-major
 * @engine: what the engine gave there
 * @serving: what the serving lookup gave
 */
struct difference {
	uint64_t floats, differing;
	double largest;
	uint64_t batch, at;
	float engine, serving;
};

/**
 * struct comparison - both sides, open, and what they have shown
 * @e: with the checkpoint's parameters, without slots
 * @serving: over the same checkpoint
 * @random: draws the batches
 * @samples: where a feature's output shape is open
 * @batches: compared so far
 * @features: [feature count]
 */
struct comparison {
	struct embeng *e;
	struct embeng_serving *serving;
	struct random random;
	int64_t samples;
	uint64_t batches;
	struct difference *features;
};

/* 0, or a negative errno with embeng_last_error(); comparison_close() either way. */
int comparison_open(struct comparison *c, const char *dir, const char *device);
/* One more batch of every feature. Return: as that. */
int comparison_batch(struct comparison *c);
void comparison_close(struct comparison *c);

/* -- compare_input.c ------------------------------------------------------ */

/* One feature's bags as a sparse input, which both lookups take as it is. */
struct compare_input {
	int64_t *indices, *ids;
	float *weights; /* NULL: of a sequence */
	size_t count, rank;
	int64_t shape[EMBENG_MAX_RANK + 1];
};

/* Return: 0, -ENOMEM, -EFBIG: the output shape is of more samples than are drawn. */
int compare_input_make(struct compare_input *in, const struct embeng_feature_config *feature,
		       int64_t rows, int64_t samples, struct random *random);
void compare_input_free(struct compare_input *in);

#endif
