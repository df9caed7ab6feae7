/* SPDX-License-Identifier: MIT */
/* One question of embeng lookup, and its answer from a checkpoint. */
#ifndef CLI_LOOKUP_H
#define CLI_LOOKUP_H

#include <stdbool.h>

#include "embeng.h"

/**
 * struct question - what is looked up
 * @dir: of the checkpoint
 * @name: of a table, whose rows are wanted, or of a feature, of which the ids are one bag
 * @feature: @name is a feature's, even where a table has it, too
 * @verify: check all parameters before
 * @ids: [id_count]
 * @weights: [weight_count] or NULL; of a feature's ids
 */
struct question {
	const char *dir, *name;
	bool feature, verify;
	int64_t *ids;
	size_t id_count;
	float *weights;
	size_t weight_count;
};

/**
 * struct answer - what came out
 * @serving: the open handle: the names below are its own
 * @table: name of the table
 * @feature: name of the feature, or NULL: rows were wanted
 * @shape: [rank], of @activations
 * @refusal: what is wrong with the question, where the library has no sentence for it
 * @text: room for one
 */
struct answer {
	struct embeng_serving *serving;
	const char *table, *feature;
	int64_t shape[EMBENG_MAX_RANK + 1];
	size_t rank;
	float *activations;
	const char *refusal;
	char text[96];
};

/* 0, or a negative errno with a refusal or embeng_last_error(); answer_free() either way. */
int question_answer(const struct question *q, struct answer *a);
void answer_free(struct answer *a);

#endif
