// SPDX-License-Identifier: MIT
/* A vector's tables and features as a model. */
#include <errno.h>
#include <string.h>

#include "vector_model.h"
#include "vector_value.h"

/* Index of @name among @names, -1 when it is none. */
static int choose(const char *name, const char *const *names, int count)
{
	for (int i = 0; i < count; i++) {
		if (!strcmp(name, names[i]))
			return i;
	}
	return -1;
}

static void set_limit(struct json_object *limit, unsigned char *has, float *value)
{
	*has = limit != NULL;
	if (limit)
		*value = (float)value_number(limit);
}

static void set_clips(struct json_object *spec, struct embeng_optimizer *o)
{
	struct json_object *clip = member(spec, "clipvalue");

	set_limit(member(spec, "clip_weight_min"), &o->has_clip_weight_min, &o->clip_weight_min);
	set_limit(member(spec, "clip_weight_max"), &o->has_clip_weight_max, &o->clip_weight_max);
	if (json_object_is_type(clip, json_type_array)) {
		set_limit(json_object_array_get_idx(clip, 0), &o->has_clip_min, &o->clip_min);
		set_limit(json_object_array_get_idx(clip, 1), &o->has_clip_max, &o->clip_max);
		return;
	}
	set_limit(clip, &o->has_clip_min, &o->clip_min);
	set_limit(clip, &o->has_clip_max, &o->clip_max);
	o->clip_min = -o->clip_min;
}

static int set_optimizer(struct run *r, const char *table, struct json_object *spec,
			 struct embeng_optimizer *o)
{
	const char *kind = text_member(spec, "kind", "");
	struct json_object *rate = member(spec, "learning_rate");

	if (!strcmp(kind, "sgd"))
		*o = embeng_sgd(0.01f);
	else if (!strcmp(kind, "adagrad"))
		*o = embeng_adagrad(0.001f);
	else
		return run_fail(r, -EINVAL, "table '%s': there is no optimizer '%s'", table, kind);

	o->rate_name = text_member(rate, "dynamic", NULL);
	if (rate && !o->rate_name)
		o->learning_rate = (float)value_number(rate);
	o->initial_accumulator_value = (float)number_member(spec, "initial_accumulator_value",
							    o->initial_accumulator_value);
	o->use_gradient_accumulation =
		bool_member(spec, "use_gradient_accumulation", true) ? EMBENG_ON : EMBENG_OFF;
	o->weight_decay_factor = (float)number_member(spec, "weight_decay_factor", 0);
	o->multiply_weight_decay_by_rate =
		bool_member(spec, "multiply_weight_decay_factor_by_learning_rate", false);
	set_clips(spec, o);
	return 0;
}

static int add_table(struct run *r, struct embeng_model *model, struct json_object *spec,
		     bool optimizer)
{
	static const char *const combiners[] = {"mean", "sum", "sqrtn"};
	static const char *const policies[] = {"error", "clamp", "drop", "zero"};
	const char *combiner = text_member(spec, "combiner", "mean");
	const char *policy = text_member(spec, "out_of_range", "error");
	struct embeng_table_config config = {
		.size = sizeof(config),
		.name = text_member(spec, "name", NULL),
		.vocabulary_size = integer_member(spec, "vocabulary_size", 0),
		.dim = integer_member(spec, "dim", 0),
		.combiner = (enum embeng_combiner_name)choose(combiner, combiners, 3),
		.out_of_range = (enum embeng_policy)choose(policy, policies, 4),
	};
	int err;

	if ((int)config.combiner < 0)
		return run_fail(r, -EINVAL, "table '%s': combiner '%s' is none of mean, sum, sqrtn",
				config.name, combiner);
	if ((int)config.out_of_range < 0)
		return run_fail(r, -EINVAL,
				"table '%s': out_of_range '%s' is none of error, clamp, drop, zero",
				config.name, policy);
	if (optimizer && member(spec, "optimizer")) {
		err = set_optimizer(r, config.name, member(spec, "optimizer"), &config.optimizer);
		if (err)
			return err;
	}
	err = embeng_model_add_table(model, &config);
	return err < 0 ? run_library(r, err) : 0;
}

static int set_output_shape(struct run *r, struct json_object *shape,
			    struct embeng_feature_config *config)
{
	config->output_rank = list_length(shape);
	if (!shape)
		return 0;
	if (!config->output_rank || config->output_rank > EMBENG_MAX_RANK)
		return run_fail(r, -EINVAL, "feature '%s': output_shape has rank %zu, not 1 to %d",
				config->name, config->output_rank, EMBENG_MAX_RANK);
	for (size_t i = 0; i < config->output_rank; i++)
		config->output_shape[i] =
			json_object_get_int64(json_object_array_get_idx(shape, i));
	return 0;
}

static int add_feature(struct run *r, struct embeng_model *model, struct json_object *spec)
{
	const char *table = text_member(spec, "table", "");
	struct embeng_feature_config config = {
		.size = sizeof(config),
		.name = text_member(spec, "name", NULL),
		.table = embeng_model_table(model, table),
		.max_sequence_length = integer_member(spec, "max_sequence_length", 0),
		.check_weights = bool_member(spec, "validate_weights_and_indices", true),
	};
	int err;

	if (config.table < 0)
		return run_fail(r, -ENOENT, "feature '%s': there is no table '%s'", config.name,
				table);
	err = set_output_shape(r, member(spec, "output_shape"), &config);
	if (err)
		return err;
	err = embeng_model_add_feature(model, &config);
	return err < 0 ? run_library(r, err) : 0;
}

/* Hosts and their sharding change no result; wrong ones are refused all the same. */
static int check_hosts(struct run *r, struct json_object *engine)
{
	static const char *const shardings[] = {"div", "mod"};
	const char *sharding = text_member(engine, "sharding", "div");
	int64_t hosts = integer_member(engine, "hosts", 1);

	if (choose(sharding, shardings, 2) < 0)
		return run_fail(r, -EINVAL, "sharding '%s' is none of div, mod", sharding);
	if (hosts < 1)
		return run_fail(r, -ERANGE, "%lld hosts, not from 1", (long long)hosts);
	return 0;
}

static int set_engine(struct run *r, struct embeng_model *model, struct json_object *engine)
{
	int64_t replicas = integer_member(engine, "replicas", 1);
	struct embeng_engine_config config = {
		.size = sizeof(config),
		.replicas = (uint32_t)replicas,
		.pipelining = bool_member(engine, "pipelining", false),
	};
	int err;

	if (replicas < 1 || replicas > UINT32_MAX)
		return run_fail(r, -ERANGE, "%lld replicas, not from 1 to %u", (long long)replicas,
				UINT32_MAX);
	err = embeng_model_set_engine(model, &config);
	return err ? run_library(r, err) : 0;
}

int model_build(struct run *r, struct json_object *engine, bool optimizer,
		struct embeng_model *model)
{
	struct json_object *tables = member(r->vector, "tables");
	struct json_object *features = member(r->vector, "features");
	int err = check_hosts(r, engine);

	if (!err)
		err = set_engine(r, model, engine);
	for (size_t i = 0; !err && i < list_length(tables); i++)
		err = add_table(r, model, json_object_array_get_idx(tables, i), optimizer);
	for (size_t i = 0; !err && i < list_length(features); i++)
		err = add_feature(r, model, json_object_array_get_idx(features, i));
	return err;
}
