// SPDX-License-Identifier: MIT
/* The check of a parsed file against the format. The parser bounds how deep it nests. */
#include <string.h>

#include <json-c/json.h>

#include "vector_place.h"
#include "vector_schema.h"
#include "vector_value.h"
#include "exit.h"

static int check_value(struct json_object *value, enum value_type type, const struct key *keys,
		       const struct vector_place *place);

static const struct key *find_key(const struct key *keys, const char *name)
{
	for (; keys && keys->name; keys++) {
		if (!strcmp(keys->name, name))
			return keys;
	}
	return NULL;
}

static int check_required(struct json_object *object, const struct key *keys,
			  const struct vector_place *place)
{
	for (; keys && keys->name; keys++) {
		if (keys->need == REQUIRED && !json_object_object_get_ex(object, keys->name, NULL))
			return vector_malformed(place, "key '%s' is missing", keys->name);
	}
	return 0;
}

static int check_member(struct json_object *member, const struct key *key,
			const struct vector_place *place)
{
	if (!member && key->need == NULLABLE)
		return 0;
	return check_value(member, key->type, key->keys, place);
}

static int check_object(struct json_object *object, const struct key *keys,
			const struct vector_place *place)
{
	if (!json_object_is_type(object, json_type_object))
		return vector_malformed(place, "must be an object");
	json_object_object_foreach(object, name, member) {
		const struct key *key = find_key(keys, name);
		struct vector_place here = {.above = place, .key = name};

		if (!key)
			return vector_malformed(place, "unknown key '%s'", name);
		if (check_member(member, key, &here))
			return -1;
	}
	return check_required(object, keys, place);
}

static int check_optimizer(struct json_object *object, const struct vector_place *place)
{
	const char *kind = text_member(object, "kind", "");
	const struct key *own = optimizer_keys(kind);

	if (!json_object_is_type(object, json_type_object))
		return vector_malformed(place, "must be an object");
	json_object_object_foreach(object, name, member) {
		const struct key *key = find_key(optimizer_common_keys, name);
		struct vector_place here = {.above = place, .key = name};

		if (!key)
			key = find_key(own, name);
		if (key && check_member(member, key, &here))
			return -1;
		/* Of an unknown kind any optimizer's keys will do: the model refuses it. */
		if (!key && (own || (!optimizer_is_known(kind) && !optimizer_has_key(name))))
			return vector_malformed(place, "unknown key '%s' of optimizer '%s'", name, kind);
	}
	return check_required(object, optimizer_common_keys, place);
}

static int check_list(struct json_object *list, enum value_type type, const struct key *keys,
		      const struct vector_place *place)
{
	if (!json_object_is_type(list, json_type_array))
		return vector_malformed(place, "must be a list");
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct vector_place here = {.above = place, .index = i};

		if (check_value(json_object_array_get_idx(list, i), type, keys, &here))
			return -1;
	}
	return 0;
}

static int check_map(struct json_object *map, enum value_type type,
		     const struct vector_place *place)
{
	if (!json_object_is_type(map, json_type_object))
		return vector_malformed(place, "must be an object");
	json_object_object_foreach(map, name, member) {
		struct vector_place here = {.above = place, .key = name};

		if (!member && type == TYPE_GRADIENT)
			continue;
		if (check_value(member, type, NULL, &here))
			return -1;
	}
	return 0;
}

/* A list of numbers, or of such lists, and so on; not both in one list. */
static int check_nested(struct json_object *value, const struct vector_place *place)
{
	bool lists;

	if (!json_object_is_type(value, json_type_array))
		return vector_malformed(place, "must be a list of numbers or of such lists");
	lists = json_object_is_type(json_object_array_get_idx(value, 0), json_type_array);
	for (size_t i = 0; i < json_object_array_length(value); i++) {
		struct json_object *element = json_object_array_get_idx(value, i);
		struct vector_place here = {.above = place, .index = i};

		if (lists ? check_nested(element, &here)
			  : check_value(element, TYPE_NUMBER, NULL, &here))
			return -1;
	}
	return 0;
}

static int check_matrix(struct json_object *value, bool gradient, const struct vector_place *place)
{
	static const struct key fill[] = {{"fill", TYPE_NUMBER, REQUIRED, NULL}, {0}};
	static const struct key row_id[] = {{"row_id", TYPE_NUMBER, REQUIRED, NULL}, {0}};
	static const struct key arange[] = {{"arange", TYPE_NESTED, REQUIRED, NULL}, {0}};
	struct json_object *pair;

	if (!json_object_is_type(value, json_type_object))
		return check_nested(value, place);
	if (!gradient && json_object_object_get_ex(value, "row_id", NULL))
		return check_object(value, row_id, place);
	if (gradient || !json_object_object_get_ex(value, "arange", &pair))
		return check_object(value, fill, place);
	if (check_object(value, arange, place))
		return -1;
	if (json_object_array_length(pair) != 2 ||
	    json_object_is_type(json_object_array_get_idx(pair, 0), json_type_array))
		return vector_malformed(place, "arange must be [start, step]");
	return 0;
}

static int check_dynamic(struct json_object *value, const struct vector_place *place)
{
	static const struct key keys[] = {{"dynamic", TYPE_TEXT, REQUIRED, NULL}, {0}};

	return check_object(value, keys, place);
}

static int check_rate(struct json_object *value, const struct vector_place *place)
{
	if (json_object_is_type(value, json_type_object))
		return check_dynamic(value, place);
	return check_value(value, TYPE_NUMBER, NULL, place);
}

static int check_clip(struct json_object *value, const struct vector_place *place)
{
	if (!json_object_is_type(value, json_type_array))
		return check_value(value, TYPE_NUMBER, NULL, place);
	if (json_object_array_length(value) != 2)
		return vector_malformed(place, "must be a number or [low, high]");
	for (size_t i = 0; i < 2; i++) {
		struct json_object *limit = json_object_array_get_idx(value, i);
		struct vector_place here = {.above = place, .index = i};

		if (limit && check_value(limit, TYPE_NUMBER, NULL, &here))
			return -1;
	}
	return 0;
}

static int check_weights(struct json_object *value, const struct vector_place *place)
{
	if (check_nested(value, place))
		return -1;
	for (size_t i = 0; i < json_object_array_length(value); i++) {
		struct json_object *row = json_object_array_get_idx(value, i);

		if (json_object_is_type(row, json_type_array) &&
		    json_object_is_type(json_object_array_get_idx(row, 0), json_type_array))
			return vector_malformed(place,
					 "must be a list of numbers, or of lists of numbers");
	}
	return 0;
}

static int check_input(struct json_object *input, const struct vector_place *place)
{
	struct vector_place ragged_place = {.above = place, .key = "ragged"};
	struct json_object *ragged;

	if (json_object_object_get_ex(input, "dense", NULL))
		return check_object(input, input_dense_keys, place);
	if (json_object_object_get_ex(input, "sparse", NULL))
		return check_object(input, input_sparse_keys, place);
	if (!json_object_object_get_ex(input, "ragged", &ragged))
		return vector_malformed(place, "must have one of 'dense', 'sparse' and 'ragged'");
	json_object_object_foreach(input, name, member) {
		struct vector_place here = {.above = place, .key = name};

		if (!find_key(input_ragged_keys, name))
			return vector_malformed(place, "unknown key '%s'", name);
		if (!strcmp(name, "weights") && check_weights(member, &here))
			return -1;
	}
	return check_object(ragged, json_object_object_get_ex(ragged, "rows", NULL)
				    ? ragged_rows_keys : ragged_splits_keys, &ragged_place);
}

static int check_inputs(struct json_object *inputs, const struct vector_place *place)
{
	if (!json_object_is_type(inputs, json_type_object))
		return vector_malformed(place, "must be an object");
	json_object_object_foreach(inputs, name, input) {
		struct vector_place here = {.above = place, .key = name};

		if (check_input(input, &here))
			return -1;
	}
	return 0;
}

static int check_config(struct json_object *value, const struct vector_place *place)
{
	static const struct key hex[] = {{"hex", TYPE_TEXT, REQUIRED, NULL}, {0}};
	static const struct key import[] = {{"import_hex", TYPE_TEXT, REQUIRED, NULL}, {0}};

	return check_object(value, json_object_object_get_ex(value, "hex", NULL) ? hex : import,
			    place);
}

static int check_error(struct json_object *error, const struct vector_place *place)
{
	const char *name;

	if (check_object(error, step_error_keys, place))
		return -1;
	name = text_member(error, "errno", NULL);
	if (name && !errno_by_name(name))
		return vector_malformed(place, "errno '%s' is none that embeng returns", name);
	return 0;
}

static int check_step(struct json_object *step, const struct vector_place *place)
{
	size_t verbs = 0;

	if (!json_object_is_type(step, json_type_object))
		return vector_malformed(place, "must be an object");
	json_object_object_foreach(step, name, body) {
		const struct key *verb = find_key(step_verbs, name);
		struct vector_place here = {.above = place, .key = name};

		if (!strcmp(name, "error")) {
			if (check_error(body, &here))
				return -1;
			continue;
		}
		if (!verb)
			return vector_malformed(place, "unknown key '%s'", name);
		if (check_value(body, verb->type, verb->keys, &here))
			return -1;
		verbs++;
	}
	return verbs == 1 ? 0 : vector_malformed(place, "a step has one verb, this has %zu", verbs);
}

static int check_steps(struct json_object *steps, const struct vector_place *place)
{
	if (!json_object_is_type(steps, json_type_array))
		return vector_malformed(place, "must be a list");
	for (size_t i = 0; i < json_object_array_length(steps); i++) {
		struct vector_place here = {.above = place, .index = i};

		if (check_step(json_object_array_get_idx(steps, i), &here))
			return -1;
	}
	return 0;
}

static int check_scalar(struct json_object *value, enum value_type type,
			const struct vector_place *place)
{
	switch (type) {
	case TYPE_TEXT:
		return json_object_is_type(value, json_type_string) ? 0
			: vector_malformed(place, "must be a text");
	case TYPE_BOOL:
		return json_object_is_type(value, json_type_boolean) ? 0
			: vector_malformed(place, "must be true or false");
	case TYPE_INTEGER:
		return json_object_is_type(value, json_type_int) ? 0
			: vector_malformed(place, "must be an integer");
	default:
		return value_is_number(value) ? 0 : vector_malformed(place,
			"must be a number, \"nan\", \"inf\" or \"-inf\"");
	}
}

static int check_value(struct json_object *value, enum value_type type, const struct key *keys,
		       const struct vector_place *place)
{
	switch (type) {
	case TYPE_TEXTS:
		return check_list(value, TYPE_TEXT, NULL, place);
	case TYPE_INTEGERS:
		return check_list(value, TYPE_INTEGER, NULL, place);
	case TYPE_INTEGER_LISTS:
		return check_list(value, TYPE_INTEGERS, NULL, place);
	case TYPE_OBJECTS:
		return check_list(value, TYPE_OBJECT, keys, place);
	case TYPE_OBJECT:
		return check_object(value, keys, place);
	case TYPE_NESTED:
	case TYPE_ITEMS:
		return check_nested(value, place);
	case TYPE_MATRIX:
	case TYPE_GRADIENT:
		return check_matrix(value, type == TYPE_GRADIENT, place);
	case TYPE_WEIGHTS:
		return check_weights(value, place);
	case TYPE_RATE:
		return check_rate(value, place);
	case TYPE_DYNAMIC:
		return check_dynamic(value, place);
	case TYPE_CLIP:
		return check_clip(value, place);
	case TYPE_MAP_NESTED:
		return check_map(value, TYPE_NESTED, place);
	case TYPE_MAP_MATRIX:
		return check_map(value, TYPE_MATRIX, place);
	case TYPE_MAP_NUMBER:
		return check_map(value, TYPE_NUMBER, place);
	case TYPE_MAP_GRADIENT:
		return check_map(value, TYPE_GRADIENT, place);
	case TYPE_ERROR:
		return check_error(value, place);
	case TYPE_OPTIMIZER:
		return check_optimizer(value, place);
	case TYPE_INPUT:
		return check_inputs(value, place);
	case TYPE_CONFIG:
		return check_config(value, place);
	case TYPE_STEP:
		return check_steps(value, place);
	default:
		return check_scalar(value, type, place);
	}
}

int vector_check(struct json_object *vector, char *error)
{
	const char *schema = text_member(vector, "schema", NULL);

	vector_malformed_into(error);
	if (schema && strcmp(schema, "embeng.vector/1") != 0)
		return vector_malformed(NULL, "schema '%s' is not \"embeng.vector/1\"", schema);
	return check_object(vector, vector_keys, NULL);
}
