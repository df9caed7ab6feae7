/* SPDX-License-Identifier: MIT */
/*
 * A batch as the program handed it in, checked as far as that is possible without the ids:
 * counts, shapes and forms. The engine checks the ids.
 */
#ifndef EMBENG_BATCH_H
#define EMBENG_BATCH_H

#include <stdbool.h>

#include "embeng.h"

enum input_form { INPUT_NONE, INPUT_DENSE, INPUT_CSR, INPUT_PARTITIONED };

/* One feature's input. Only the address of its memory is still missing for the engine. */
struct input {
	enum input_form form;
	bool pooled;  /* the rows of each sample are combined */
	bool gathers; /* dense: the activations have the bits of the rows */
	enum embeng_id_type type;
	const void *ids; /* the caller's memory, or the batch's own */
	size_t id_count;
	const int64_t *offsets; /* [samples + 1], CSR; own memory or the caller's splits */
	size_t samples;
	const float *weights; /* the caller's memory, the batch's own, or NULL */
	size_t rank;	      /* dimensions of @shape, the output's shape without dim */
	int64_t shape[EMBENG_MAX_RANK];
	const void *given_ids; /* [given_count], where padding was left out of them; else NULL */
	size_t given_count;
	int64_t padding;
	/* memory that is kept between uses and grows as needed */
	int64_t *own_offsets;
	size_t own_capacity;
	void *own_ids;
	size_t own_id_bytes;
	void *own_weights;
	size_t own_weight_bytes;
	int error; /* negative errno of a refused input, reported by its enqueue */
	char *error_text;
};

struct embeng_batch {
	struct embeng *e;
	enum embeng_mode mode;
	uint32_t replica;
	size_t count; /* features */
	struct input *inputs;
	struct partitioned *partitioned; /* inputs in partitioned form, or NULL */
};

/*
 * A feature's output as the session remembers it, fixed by the model or by the first accepted batch
 * (docs/spec/semantics.md 5.2: unknown dims are wildcards).
 */
struct output {
	size_t rank;
	int64_t shape[EMBENG_MAX_RANK];
	bool fixed;
};

/*
 * batch_check() - every feature has an input, and each fits its output
 * @outputs: [features] outputs that are known so far, not changed
 * @resolved: [features] set to the shapes of this batch's outputs
 *
 * Return: 0, or a negative errno with the sentence naming the feature.
 */
int batch_check(const struct embeng_batch *b, const struct output *outputs,
		struct output *resolved);

/*
 * batch_grow() - give a batch that was made before tables were added the features that it lacks
 * @empty: they have no samples until the program gives them some; false: they have no input
 *
 * Return: 0, -ENOMEM, or -EINVAL for a batch that is partitioned.
 */
int batch_grow(struct embeng_batch *b, bool empty);

/* Sample of the id at @position of an input (for messages). */
size_t input_sample(const struct input *input, size_t position);

#endif
