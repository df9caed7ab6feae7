/* SPDX-License-Identifier: MIT */
/*
 * A batch as handed in, checked for what can be checked without the ids:
 * counts, shapes, forms. The ids themselves the engine checks.
 */
#ifndef EMBENG_BATCH_H
#define EMBENG_BATCH_H

#include <stdbool.h>

#include "embeng.h"

enum input_form { INPUT_NONE, INPUT_DENSE, INPUT_CSR, INPUT_PARTITIONED };

/* One feature's input, ready for the engine but for where its memory lies. */
struct input {
	enum input_form form;
	bool pooled; /* CSR: combined even where the feature is a sequence */
	enum embeng_id_type type;
	const void *ids;	/* the caller's, or own */
	size_t id_count;
	const int64_t *offsets; /* [samples + 1], CSR; own memory or the caller's splits */
	size_t samples;
	const float *weights; /* the caller's, own, or NULL */
	size_t rank;	      /* of @shape: the output's, without dim */
	int64_t shape[EMBENG_MAX_RANK];
	/* kept between uses, grown as needed */
	int64_t *own_offsets;
	size_t own_capacity;
	void *own_ids;
	size_t own_id_bytes;
	int error;	 /* negative errno of a refused input, reported by its enqueue */
	char *error_text;
};

struct embeng_batch {
	struct embeng *e;
	enum embeng_mode mode;
	uint32_t replica;
	size_t count; /* features */
	struct input *inputs;
	struct partitioned *partitioned; /* what inputs of that form are in, or NULL */
};

/*
 * What the session remembers of a feature's output, fixed by the model or the
 * first accepted batch (docs/spec/semantics.md 5.2: unknown dims are wildcards).
 */
struct output {
	size_t rank;
	int64_t shape[EMBENG_MAX_RANK];
	bool fixed;
};

/*
 * batch_check() - every feature has an input, and each fits its output
 * @outputs: [features], not changed
 * @resolved: [features], out: the shape this batch's output has
 *
 * Return: 0, or a negative errno with the sentence naming the feature.
 */
int batch_check(const struct embeng_batch *b, const struct output *outputs,
		struct output *resolved);

/* Sample of the id at @position of an input (for messages). */
size_t input_sample(const struct input *input, size_t position);

#endif
