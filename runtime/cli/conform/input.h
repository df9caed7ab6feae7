/* SPDX-License-Identifier: MIT */
/* One feature's input of an enqueue or a lookup, as arrays. */
#ifndef CLI_VECTOR_INPUT_H
#define CLI_VECTOR_INPUT_H

#include "run.h"

/**
 * struct arrays - one input
 * @next: of those that a step keeps
 * @form: which of the members count
 * @ids: [id_count]
 * @places: sparse [id_count][rank]; else [place_count] lengths or splits
 * @shape: dense, sparse: [rank]
 * @weights: [weight_count] or NULL
 */
struct arrays {
	struct arrays *next;
	enum { INPUT_DENSE, INPUT_SPARSE, INPUT_LENGTHS, INPUT_SPLITS } form;
	int64_t *ids, *places, *shape;
	float *weights;
	size_t id_count, place_count, rank, weight_count;
};

/* Reads an input to the front of @kept. 0, or a negative errno. */
int input_read(struct run *r, const char *name, const struct json *input, struct arrays **kept);
void inputs_free(struct arrays *inputs);

#endif
