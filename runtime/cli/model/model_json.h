/* SPDX-License-Identifier: MIT */
/* A model as model files have it: the tables, features and engine of a conformance vector. */
#ifndef CLI_MODEL_JSON_H
#define CLI_MODEL_JSON_H

#include <json-c/json.h>

#include "embeng.h"

/* "mean" */
const char *combiner_word(enum embeng_combiner_name combiner);

/* Adds the members to a document. @hosts and @sharding are not the model's. */
void model_json_add(struct json_object *to, const struct embeng_model *model, int32_t hosts,
		    const char *sharding);

#endif
