/* SPDX-License-Identifier: MIT */
/* Reads one feature's input of an enqueue or a lookup into arrays. */
#ifndef CLI_VECTOR_INPUT_H
#define CLI_VECTOR_INPUT_H

#include "run.h"

/**
 * struct arrays - one input
 * @next: next in the list of inputs that a step keeps
 * @form: form of the input, which decides which of the other members are used
 * @ids: [id_count] ids
 * @places: [id_count][rank] indices if sparse; else [place_count] lengths or splits
 * @shape: [rank] shape, if dense or sparse
 * @weights: [weight_count] weights, or NULL
 */
struct arrays {
	struct arrays *next;
	enum { INPUT_DENSE, INPUT_SPARSE, INPUT_LENGTHS, INPUT_SPLITS } form;
	int64_t *ids, *places, *shape;
	float *weights;
	size_t id_count, place_count, rank, weight_count;
};

/* Reads an input and puts it at the front of @kept. 0, or a negative errno. */
int input_read(struct run *r, const char *name, const struct json *input, struct arrays **kept);
void inputs_free(struct arrays *inputs);

#endif
