// SPDX-License-Identifier: MIT
/*
 * Checks a parsed vector against the format, by the tables of keys.c. The parser has bounded
 * how deep it nests, so the check may call itself.
 */
#include <string.h>

#include "../../json/json_read.h"

#include "place.h"
#include "schema.h"
#include "value.h"
#include "../frame/exit.h"

static int validate_value(const struct json *value, enum value_type type, const struct key *keys,
			  const struct vector_place *place);

static const struct key *find_key(const struct key *keys, const char *name)
{
	for (; keys && keys->name; keys++) {
		if (!strcmp(keys->name, name))
			return keys;
	}
	return NULL;
}

static int validate_required(const struct json *object, const struct key *keys,
			     const struct vector_place *place)
{
	for (; keys && keys->name; keys++) {
		if (keys->need == REQUIRED && !json_get(object, keys->name))
			return vector_malformed(place, "key '%s' is missing", keys->name);
	}
	return 0;
}

static int validate_member(const struct json *member, const struct key *key,
			   const struct vector_place *place)
{
	if (json_is(member, JSON_NULL) && key->need == NULLABLE)
		return 0;
	return validate_value(member, key->type, key->keys, place);
}

static int validate_object(const struct json *object, const struct key *keys,
			   const struct vector_place *place)
{
	if (!json_is(object, JSON_OBJECT))
		return vector_malformed(place, "must be an object");
	for (size_t i = 0; i < json_length(object); i++) {
		const char *name = json_name(object, i);
		const struct json *member = json_at(object, i);
		const struct key *key = find_key(keys, name);
		struct vector_place here = {.above = place, .key = name};

		if (!key)
			return vector_malformed(place, "unknown key '%s'", name);
		if (validate_member(member, key, &here))
			return -1;
	}
	return validate_required(object, keys, place);
}

static int validate_optimizer(const struct json *object, const struct vector_place *place)
{
	const char *kind = text_member(object, "kind", "");
	const struct key *own = optimizer_keys(kind);

	if (!json_is(object, JSON_OBJECT))
		return vector_malformed(place, "must be an object");
	for (size_t i = 0; i < json_length(object); i++) {
		const char *name = json_name(object, i);
		const struct json *member = json_at(object, i);
		const struct key *key = find_key(optimizer_common_keys, name);
		struct vector_place here = {.above = place, .key = name};

		if (!key)
			key = find_key(own, name);
		if (key && validate_member(member, key, &here))
			return -1;
		/* An unknown kind may have any optimizer's keys: the model refuses it later. */
		if (!key && (own || (!optimizer_is_known(kind) && !optimizer_has_key(name))))
			return vector_malformed(place, "unknown key '%s' of optimizer '%s'", name,
						kind);
	}
	return validate_required(object, optimizer_common_keys, place);
}

static int validate_list(const struct json *list, enum value_type type, const struct key *keys,
			 const struct vector_place *place)
{
	if (!json_is(list, JSON_ARRAY))
		return vector_malformed(place, "must be a list");
	for (size_t i = 0; i < json_length(list); i++) {
		struct vector_place here = {.above = place, .index = i};

		if (validate_value(json_at(list, i), type, keys, &here))
			return -1;
	}
	return 0;
}

static int validate_map(const struct json *map, enum value_type type,
			const struct vector_place *place)
{
	if (!json_is(map, JSON_OBJECT))
		return vector_malformed(place, "must be an object");
	for (size_t i = 0; i < json_length(map); i++) {
		const char *name = json_name(map, i);
		const struct json *member = json_at(map, i);
		struct vector_place here = {.above = place, .key = name};

		if (json_is(member, JSON_NULL) && type == TYPE_GRADIENT)
			continue;
		if (validate_value(member, type, NULL, &here))
			return -1;
	}
	return 0;
}

/* A list of numbers, or of such lists, and so on; not both in one list. */
static int validate_nested(const struct json *value, const struct vector_place *place)
{
	bool lists;

	if (!json_is(value, JSON_ARRAY))
		return vector_malformed(place, "must be a list of numbers or of lists");
	lists = json_is(json_at(value, 0), JSON_ARRAY);
	for (size_t i = 0; i < json_length(value); i++) {
		const struct json *element = json_at(value, i);
		struct vector_place here = {.above = place, .index = i};

		if (lists ? validate_nested(element, &here)
			  : validate_value(element, TYPE_NUMBER, NULL, &here))
			return -1;
	}
	return 0;
}

static int validate_matrix(const struct json *value, bool gradient,
			   const struct vector_place *place)
{
	static const struct key fill[] = {{"fill", TYPE_NUMBER, REQUIRED, NULL}, {0}};
	static const struct key row_id[] = {{"row_id", TYPE_NUMBER, REQUIRED, NULL}, {0}};
	static const struct key arange[] = {{"arange", TYPE_NESTED, REQUIRED, NULL}, {0}};
	const struct json *pair = json_get(value, "arange");

	if (!json_is(value, JSON_OBJECT))
		return validate_nested(value, place);
	if (!gradient && json_get(value, "row_id"))
		return validate_object(value, row_id, place);
	if (gradient || !pair)
		return validate_object(value, fill, place);
	if (validate_object(value, arange, place))
		return -1;
	if (json_length(pair) != 2 || json_is(json_at(pair, 0), JSON_ARRAY))
		return vector_malformed(place, "arange must be [start, step]");
	return 0;
}

static int validate_dynamic(const struct json *value, const struct vector_place *place)
{
	static const struct key keys[] = {{"dynamic", TYPE_TEXT, REQUIRED, NULL}, {0}};

	return validate_object(value, keys, place);
}

static int validate_rate(const struct json *value, const struct vector_place *place)
{
	if (json_is(value, JSON_OBJECT))
		return validate_dynamic(value, place);
	return validate_value(value, TYPE_NUMBER, NULL, place);
}

static int validate_clip(const struct json *value, const struct vector_place *place)
{
	if (!json_is(value, JSON_ARRAY))
		return validate_value(value, TYPE_NUMBER, NULL, place);
	if (json_length(value) != 2)
		return vector_malformed(place, "must be a number or [low, high]");
	for (size_t i = 0; i < 2; i++) {
		const struct json *limit = json_at(value, i);
		struct vector_place here = {.above = place, .index = i};

		if (!json_is(limit, JSON_NULL) && validate_value(limit, TYPE_NUMBER, NULL, &here))
			return -1;
	}
	return 0;
}

static int validate_weights(const struct json *value, const struct vector_place *place)
{
	if (validate_nested(value, place))
		return -1;
	for (size_t i = 0; i < json_length(value); i++) {
		const struct json *row = json_at(value, i);

		if (json_is(row, JSON_ARRAY) && json_is(json_at(row, 0), JSON_ARRAY))
			return vector_malformed(
				place, "must be a list of numbers, or of lists of numbers");
	}
	return 0;
}

static int validate_input(const struct json *input, const struct vector_place *place)
{
	struct vector_place ragged_place = {.above = place, .key = "ragged"};
	const struct json *ragged = json_get(input, "ragged");

	if (json_get(input, "dense"))
		return validate_object(input, input_dense_keys, place);
	if (json_get(input, "sparse"))
		return validate_object(input, input_sparse_keys, place);
	if (!ragged)
		return vector_malformed(place, "must have one of 'dense', 'sparse' and 'ragged'");
	for (size_t i = 0; i < json_length(input); i++) {
		const char *name = json_name(input, i);
		const struct json *member = json_at(input, i);
		struct vector_place here = {.above = place, .key = name};

		if (!find_key(input_ragged_keys, name))
			return vector_malformed(place, "unknown key '%s'", name);
		if (!strcmp(name, "weights") && validate_weights(member, &here))
			return -1;
	}
	return validate_object(ragged,
			       json_get(ragged, "rows") ? ragged_rows_keys : ragged_splits_keys,
			       &ragged_place);
}

static int validate_inputs(const struct json *inputs, const struct vector_place *place)
{
	if (!json_is(inputs, JSON_OBJECT))
		return vector_malformed(place, "must be an object");
	for (size_t i = 0; i < json_length(inputs); i++) {
		const char *name = json_name(inputs, i);
		const struct json *input = json_at(inputs, i);
		struct vector_place here = {.above = place, .key = name};

		if (validate_input(input, &here))
			return -1;
	}
	return 0;
}

static int validate_config(const struct json *value, const struct vector_place *place)
{
	static const struct key hex[] = {{"hex", TYPE_TEXT, REQUIRED, NULL}, {0}};
	static const struct key import[] = {{"import_hex", TYPE_TEXT, REQUIRED, NULL}, {0}};

	return validate_object(value, json_get(value, "hex") ? hex : import, place);
}

static int validate_error(const struct json *error, const struct vector_place *place)
{
	const char *name;

	if (validate_object(error, step_error_keys, place))
		return -1;
	name = text_member(error, "errno", NULL);
	if (name && !errno_by_name(name))
		return vector_malformed(place, "errno '%s' is not one that embeng returns", name);
	return 0;
}

static int validate_step(const struct json *step, const struct vector_place *place)
{
	size_t verbs = 0;

	if (!json_is(step, JSON_OBJECT))
		return vector_malformed(place, "must be an object");
	for (size_t i = 0; i < json_length(step); i++) {
		const char *name = json_name(step, i);
		const struct json *body = json_at(step, i);
		const struct key *verb = find_key(step_verbs, name);
		struct vector_place here = {.above = place, .key = name};

		if (!strcmp(name, "error")) {
			if (validate_error(body, &here))
				return -1;
			continue;
		}
		if (!verb)
			return vector_malformed(place, "unknown key '%s'", name);
		if (validate_value(body, verb->type, verb->keys, &here))
			return -1;
		verbs++;
	}
	return verbs == 1 ? 0
			  : vector_malformed(place, "a step must have one verb; this one has %zu",
					     verbs);
}

static int validate_steps(const struct json *steps, const struct vector_place *place)
{
	if (!json_is(steps, JSON_ARRAY))
		return vector_malformed(place, "must be a list");
	for (size_t i = 0; i < json_length(steps); i++) {
		struct vector_place here = {.above = place, .index = i};

		if (validate_step(json_at(steps, i), &here))
			return -1;
	}
	return 0;
}

/* All that the command does with a text ends at a zero byte. */
static int validate_text(const struct json *value, const struct vector_place *place)
{
	if (!json_is(value, JSON_TEXT))
		return vector_malformed(place, "must be a text");
	if (strlen(value->text) != value->length)
		return vector_malformed(place, "has a zero byte inside");
	return 0;
}

static int validate_scalar(const struct json *value, enum value_type type,
			   const struct vector_place *place)
{
	switch (type) {
	case TYPE_TEXT:
		return validate_text(value, place);
	case TYPE_BOOL:
		return json_is(value, JSON_BOOLEAN)
			       ? 0
			       : vector_malformed(place, "must be true or false");
	case TYPE_INTEGER:
		return json_is(value, JSON_INTEGER) ? 0
						    : vector_malformed(place, "must be an integer");
	default:
		return value_is_number(value)
			       ? 0
			       : vector_malformed(place,
						  "must be a number, \"nan\", \"inf\" or \"-inf\"");
	}
}

static int validate_value(const struct json *value, enum value_type type, const struct key *keys,
			  const struct vector_place *place)
{
	switch (type) {
	case TYPE_TEXTS:
		return validate_list(value, TYPE_TEXT, NULL, place);
	case TYPE_INTEGERS:
		return validate_list(value, TYPE_INTEGER, NULL, place);
	case TYPE_INTEGER_LISTS:
		return validate_list(value, TYPE_INTEGERS, NULL, place);
	case TYPE_OBJECTS:
		return validate_list(value, TYPE_OBJECT, keys, place);
	case TYPE_OBJECT:
		return validate_object(value, keys, place);
	case TYPE_NESTED:
	case TYPE_ITEMS:
		return validate_nested(value, place);
	case TYPE_MATRIX:
	case TYPE_GRADIENT:
		return validate_matrix(value, type == TYPE_GRADIENT, place);
	case TYPE_WEIGHTS:
		return validate_weights(value, place);
	case TYPE_RATE:
		return validate_rate(value, place);
	case TYPE_DYNAMIC:
		return validate_dynamic(value, place);
	case TYPE_CLIP:
		return validate_clip(value, place);
	case TYPE_MAP_NESTED:
		return validate_map(value, TYPE_NESTED, place);
	case TYPE_MAP_MATRIX:
		return validate_map(value, TYPE_MATRIX, place);
	case TYPE_MAP_NUMBER:
		return validate_map(value, TYPE_NUMBER, place);
	case TYPE_MAP_TEXT:
		return validate_map(value, TYPE_TEXT, place);
	case TYPE_MAP_GRADIENT:
		return validate_map(value, TYPE_GRADIENT, place);
	case TYPE_ERROR:
		return validate_error(value, place);
	case TYPE_OPTIMIZER:
		return validate_optimizer(value, place);
	case TYPE_INPUT:
		return validate_inputs(value, place);
	case TYPE_CONFIG:
		return validate_config(value, place);
	case TYPE_STEP:
		return validate_steps(value, place);
	default:
		return validate_scalar(value, type, place);
	}
}

int vector_check(const struct json *vector, bool model, char *error)
{
	const char *schema = text_member(vector, "schema", NULL);

	vector_malformed_into(error);
	if (schema && strcmp(schema, "embeng.vector/1") != 0)
		return vector_malformed(NULL, "schema '%s' is not \"embeng.vector/1\"", schema);
	return validate_object(vector, model ? model_keys : vector_keys, NULL);
}
