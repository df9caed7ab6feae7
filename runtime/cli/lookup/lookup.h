/* SPDX-License-Identifier: MIT */
/* One question to embeng lookup, and its answer from a checkpoint. */
#ifndef CLI_LOOKUP_H
#define CLI_LOOKUP_H

#include <stdbool.h>

#include "embeng.h"
#include "row_names.h"

/**
 * struct question - the arguments of a lookup
 * @dir: folder of the checkpoint
 * @name: name of a table whose rows are wanted, or of a feature of which the ids are one bag
 * @feature: @name is a feature, even if a table has the same name
 * @verify: check all parameters first
 * @by_name: every id is a name of a row, also one that is a number
 * @ids: [id_count] ids; those that are names are found when the question is answered
 * @words: [id_count] ids as they were given
 * @names: [id_count] name of a row for each id that is one, else NULL
 * @weights: [weight_count] weights of a feature's ids, or NULL
 */
struct question {
	const char *dir, *name;
	bool feature, verify, by_name;
	int64_t *ids;
	const char **words, **names;
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
 * @names: names of the table's rows; none if the checkpoint does not have them
 * @refusal: sentence that says what is wrong with the question, if it is not the library's
 * @near: hint that belongs to @refusal, or NULL
 * @text: memory for @refusal
 * @near_text: memory for @near
 */
struct answer {
	struct embeng_serving *serving;
	const char *table, *feature;
	int64_t shape[EMBENG_MAX_RANK + 1];
	size_t rank;
	float *activations;
	struct row_names names;
	const char *refusal, *near;
	char text[ROW_NAMES_ERROR + 96], near_text[ROW_NAMES_NEAR];
};

/*
 * Return: 0, or a negative errno with @refusal or embeng_last_error(). Call answer_free() either
 * way.
 */
int question_answer(struct question *q, struct answer *a);
void answer_free(struct answer *a);

#endif
