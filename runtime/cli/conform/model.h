/* SPDX-License-Identifier: MIT */
#ifndef CLI_VECTOR_MODEL_H
#define CLI_VECTOR_MODEL_H

#include "run.h"

/*
 * Reads an initializer of a table or of a fill; NULL is the default. Return: 0, or -EINVAL with the sentence: its
 * kind is unknown.
 */
int initializer_read(struct run *r, const struct json *spec, struct embeng_initializer *to);

/* Adds the vector's tables, and these features, to an empty @model. 0 or a negative errno. */
int model_fill(struct run *r, const struct json *features, bool optimizer,
	       struct embeng_model *model);

/* Adds the tables and features of a step. 0 or a negative errno. */
int model_add(struct run *r, const struct json *step, bool optimizer, struct embeng_model *model);

/* Adds the vector's tables and features to an empty @model. 0 or a negative errno. */
int model_build(struct run *r, const struct json *engine, bool optimizer,
		struct embeng_model *model);

#endif
