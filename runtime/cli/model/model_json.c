// SPDX-License-Identifier: MIT
/*
 * Writes a model as model files have it: the tables, features and engine of a conformance vector.
 *
 * The JSON that is made belongs to the caller.
 */
#include "../conform/schema.h"
#include "../conform/settings.h"
#include "../frame/output.h"
#include "model_json.h"

static struct json_object *limits_json(bool has_low, float low, bool has_high, float high)
{
	struct json_object *pair = json_object_new_array();

	json_object_array_add(pair, has_low ? json_float((double)low) : NULL);
	json_object_array_add(pair, has_high ? json_float((double)high) : NULL);
	return pair;
}

static struct json_object *dynamic_json(const char *name)
{
	struct json_object *to = json_object_new_object();

	json_add_text(to, "dynamic", name);
	return to;
}

/* NULL: a name that is not given */
static struct json_object *setting_json(const struct embeng_optimizer *o,
					const struct setting *setting)
{
	const void *at = (const char *)o + setting->at;

	switch (setting->type) {
	case SETTING_NUMBER:
		return json_float((double)*(const float *)at);
	case SETTING_SWITCH:
		return json_object_new_boolean(*(const unsigned char *)at);
	case SETTING_INT:
		return json_object_new_boolean(*(const int *)at);
	case SETTING_NAME:
		return *(const char *const *)at ? dynamic_json(*(const char *const *)at) : NULL;
	case SETTING_TRISTATE:
		break;
	}
	return json_object_new_boolean(*(const enum embeng_tristate *)at != EMBENG_OFF);
}

static void add_settings(struct json_object *to, const struct embeng_optimizer *o,
			 const struct key *keys)
{
	for (; keys && keys->name; keys++) {
		const struct setting *setting = setting_find(keys->name);
		struct json_object *value = setting ? setting_json(o, setting) : NULL;

		if (value)
			json_object_object_add(to, keys->name, value);
	}
}

static struct json_object *hyperparameters_json(const struct embeng_optimizer *o)
{
	struct json_object *to = json_object_new_object();

	for (size_t i = 0; i < o->dynamic_count; i++)
		json_add_text(to, o->dynamic[i].hyperparameter, o->dynamic[i].name);
	return to;
}

struct json_object *optimizer_write(const struct embeng_optimizer *o)
{
	const char *kind = embeng_optimizer_text(o->kind);
	struct json_object *to;

	if (!kind)
		return NULL;
	to = json_object_new_object();
	json_add_text(to, "kind", kind);
	json_object_object_add(to, "learning_rate",
			       o->rate_name ? dynamic_json(o->rate_name)
					    : json_float((double)o->learning_rate));
	add_settings(to, o, optimizer_keys(kind));
	add_settings(to, o, optimizer_common_keys);
	if (o->dynamic_count)
		json_object_object_add(to, "dynamic", hyperparameters_json(o));
	if (o->has_clip_weight_min)
		json_add_float(to, "clip_weight_min", (double)o->clip_weight_min);
	if (o->has_clip_weight_max)
		json_add_float(to, "clip_weight_max", (double)o->clip_weight_max);
	if (o->has_clip_min || o->has_clip_max)
		json_object_object_add(
			to, "clipvalue",
			limits_json(o->has_clip_min, o->clip_min, o->has_clip_max, o->clip_max));
	return to;
}

const char *combiner_word(enum embeng_combiner_name combiner)
{
	static const char *const words[] = {"mean", "sum", "sqrtn", "max"};

	return words[combiner];
}

static struct json_object *quantization_json(const struct embeng_quantization *q)
{
	struct json_object *to = json_object_new_object();

	json_add_number(to, "num_buckets", (uint64_t)q->num_buckets);
	json_add_float(to, "lower", (double)q->lower);
	json_add_float(to, "upper", (double)q->upper);
	return to;
}

static struct json_object *part_json(const struct embeng_table_part *p)
{
	struct json_object *to = json_object_new_object();

	json_add_number(to, "rows", (uint64_t)p->rows);
	json_add_number(to, "first_row", (uint64_t)p->first_row);
	json_add_number(to, "row_step", (uint64_t)p->row_step);
	json_add_number(to, "dim", (uint64_t)p->dim);
	json_add_number(to, "first_column", (uint64_t)p->first_column);
	return to;
}

static struct json_object *table_json(const struct embeng_model *model, size_t index)
{
	static const char *const policies[] = {"error", "clamp", "drop", "zero"};
	struct embeng_table_config table = EMBENG_INIT(embeng_table_config);
	struct json_object *to = json_object_new_object(), *optimizer;

	embeng_model_get_table(model, index, &table);
	optimizer = optimizer_write(&table.optimizer);
	json_add_text(to, "name", table.name);
	json_object_object_add(to, "vocabulary_size", json_object_new_int64(table.vocabulary_size));
	json_object_object_add(to, "dim", json_object_new_int64(table.dim));
	json_add_text(to, "combiner", combiner_word(table.combiner));
	json_add_text(to, "out_of_range", policies[table.out_of_range]);
	if (table.quantization.num_buckets)
		json_object_object_add(to, "quantization", quantization_json(&table.quantization));
	if (table.part.rows)
		json_object_object_add(to, "part", part_json(&table.part));
	if (optimizer)
		json_object_object_add(to, "optimizer", optimizer);
	return to;
}

static struct json_object *shape_json(const struct embeng_shape *shape)
{
	struct json_object *list = shape->rank ? json_object_new_array() : NULL;

	for (size_t i = 0; i < shape->rank; i++)
		json_object_array_add(list, json_object_new_int64(shape->dims[i]));
	return list;
}

static struct json_object *feature_json(const struct embeng_model *model, size_t index)
{
	struct embeng_feature_config feature = EMBENG_INIT(embeng_feature_config);
	struct json_object *to = json_object_new_object();
	struct embeng_shape shape;

	embeng_model_get_feature(model, index, &feature);
	embeng_model_output_shape(model, index, &shape);
	json_add_text(to, "name", feature.name);
	json_add_text(to, "table", embeng_model_table_name(model, (size_t)feature.table));
	json_object_object_add(to, "max_sequence_length",
			       json_object_new_int64(feature.max_sequence_length));
	json_object_object_add(to, "output_shape", shape_json(&shape));
	json_object_object_add(to, "validate_weights_and_indices",
			       json_object_new_boolean(!feature.unchecked_serving));
	return to;
}

void model_json_add(struct json_object *to, const struct embeng_model *model, int32_t hosts,
		    const char *sharding)
{
	struct json_object *engine = json_object_new_object(), *tables = json_object_new_array(),
			   *features = json_object_new_array();
	struct embeng_engine_config config = EMBENG_INIT(embeng_engine_config);

	embeng_model_get_engine(model, &config);
	json_add_number(engine, "replicas", config.replicas);
	json_object_object_add(engine, "hosts", json_object_new_int(hosts));
	json_add_text(engine, "sharding", sharding);
	json_object_object_add(engine, "pipelining", json_object_new_boolean(config.pipelining));
	if (config.fixed_shapes)
		json_object_object_add(engine, "fixed_shapes", json_object_new_boolean(true));
	if (config.non_finite)
		json_add_text(engine, "non_finite",
			      config.non_finite == EMBENG_NON_FINITE_DROP ? "drop" : "allow");
	for (size_t t = 0; t < embeng_model_table_count(model); t++)
		json_object_array_add(tables, table_json(model, t));
	for (size_t f = 0; f < embeng_model_feature_count(model); f++)
		json_object_array_add(features, feature_json(model, f));
	json_object_object_add(to, "engine", engine);
	json_object_object_add(to, "tables", tables);
	json_object_object_add(to, "features", features);
}
