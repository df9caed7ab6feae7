/* SPDX-License-Identifier: MIT */
/* Looks the same random batches up with the engine and with the serving lookup. */
#ifndef CLI_COMPARE_LOOKUPS_H
#define CLI_COMPARE_LOOKUPS_H

#include "embeng.h"

#include "../frame/random.h"

/**
 * struct difference - the outcome of comparing the two lookups of a feature
 * @floats: number of floats that were compared
 * @differing: number of them with different bits; all NaNs count as equal
 * @largest: largest difference of two numbers
 * @batch: batch of the first float that differs
 * @at: its index in the output, row-major
 * @engine: the engine's value there
 * @serving: the serving lookup's value there
 */
struct difference {
	uint64_t floats, differing;
	double largest;
	uint64_t batch, at;
	float engine, serving;
};

/**
 * struct comparison - both open handles, and the outcome so far
 * @e: engine with the checkpoint's parameters, without slots
 * @serving: serving handle of the same checkpoint
 * @random: generator that draws the batches
 * @samples: samples to draw if a feature's output shape is not known
 * @batches: number of batches compared so far
 * @features: [number of features] outcome for each
 */
struct comparison {
	struct embeng *e;
	struct embeng_serving *serving;
	struct random random;
	int64_t samples;
	uint64_t batches;
	struct difference *features;
};

/* Opens both. 0, or a negative errno with embeng_last_error(); comparison_close() either way. */
int comparison_open(struct comparison *c, const char *dir, const char *device);
/* Compares one more batch of every feature. Return: as comparison_open(). */
int comparison_batch(struct comparison *c);
void comparison_close(struct comparison *c);

/* -- compare_input.c ------------------------------------------------------ */

/* One feature's bags as a sparse input, which both lookups take as it is. */
struct compare_input {
	int64_t *indices, *ids;
	float *weights; /* NULL for a sequence */
	size_t count, rank;
	int64_t shape[EMBENG_MAX_RANK + 1];
};

/* Return: 0, -ENOMEM, or -EFBIG when the output shape has more samples than are drawn. */
int compare_input_make(struct compare_input *in, const struct embeng_feature_config *feature,
		       int64_t rows, int64_t samples, struct random *random);
void compare_input_free(struct compare_input *in);

#endif
