/* SPDX-License-Identifier: MIT */
/* Writes a model as in model files: the tables, features and engine of a conformance vector. */
#ifndef CLI_MODEL_JSON_H
#define CLI_MODEL_JSON_H

#include <json-c/json.h>

#include "embeng.h"

/* The word for a combiner, such as "mean". */
const char *combiner_word(enum embeng_combiner_name combiner);

/* Adds the members of a model to a document, with @hosts and @sharding, which no model has. */
void model_json_add(struct json_object *to, const struct embeng_model *model, int32_t hosts,
		    const char *sharding);

#endif
