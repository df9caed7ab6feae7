/* SPDX-License-Identifier: MIT */
/* One question to embeng lookup, and its answer from a checkpoint. */
#ifndef CLI_LOOKUP_H
#define CLI_LOOKUP_H

#include <stdbool.h>

#include "embeng.h"

/**
 * struct question - the arguments of a lookup
 * @dir: folder of the checkpoint
 * @name: name of a table whose rows are wanted, or of a feature of which the ids are one bag
 * @feature: @name is a feature, even if a table has the same name
 * @verify: check all parameters first
 * @ids: [id_count] ids
 * @weights: [weight_count] weights of a feature's ids, or NULL
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
 * struct answer - the result of a lookup
 * @serving: the open handle, which owns the names below
 * @table: name of the table
 * @feature: name of the feature, or NULL: rows were wanted
 * @shape: [rank] shape of @activations
 * @refusal: sentence that says what is wrong with the question, if it is not the library's
 * @text: memory for @refusal
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

/*
 * Return: 0, or a negative errno with @refusal or embeng_last_error(). Call answer_free() either
 * way.
 */
int question_answer(const struct question *q, struct answer *a);
void answer_free(struct answer *a);

#endif
