// SPDX-License-Identifier: MIT
/*
 * Makes a model of a vector's tables, features and engine. Values that the library must refuse are
 * passed on to it, so that vectors can test this.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "settings.h"
#include "value.h"

/* Index of @name among @names, -1 when it is none. */
static int find_choice(const char *name, const char *const *names, int count)
{
	for (int i = 0; i < count; i++) {
		if (!strcmp(name, names[i]))
			return i;
	}
	return -1;
}

/* A model wants 0 for none, so a vector's 0 becomes another number that it refuses. */
static struct embeng_quantization quantization_read(const struct json *spec)
{
	int64_t buckets = integer_member(spec, "num_buckets", 0);

	return (struct embeng_quantization){
		.num_buckets = spec && !buckets ? -1 : buckets,
		.lower = (float)number_member(spec, "lower", 0),
		.upper = (float)number_member(spec, "upper", 0),
	};
}

/* A model wants 0 rows for none, as above. */
static struct embeng_table_part part_read(const struct json *spec)
{
	int64_t rows = integer_member(spec, "rows", 0);

	return (struct embeng_table_part){
		.rows = spec && !rows ? -1 : rows,
		.first_row = integer_member(spec, "first_row", 0),
		.row_step = integer_member(spec, "row_step", 0),
		.dim = integer_member(spec, "dim", 0),
		.first_column = integer_member(spec, "first_column", 0),
	};
}

int initializer_read(struct run *r, const struct json *spec, struct embeng_initializer *to)
{
	static const char *const kinds[] = {"default", "constant", "uniform", "truncated_normal"};
	const char *kind = text_member(spec, "kind", "default");
	int choice = find_choice(kind, kinds, 4);

	if (choice < 0)
		return run_fail(r, -EINVAL,
				"initializer '%s' must be default, constant, uniform or "
				"truncated_normal",
				kind);
	*to = (struct embeng_initializer){
		.kind = (enum embeng_initializer_name)choice,
		.a = (float)number_member(spec, "a", 0),
		.b = (float)number_member(spec, "b", 0),
		.seed = (uint64_t)integer_member(spec, "seed", 0),
	};
	return 0;
}

static int add_vector_table(struct run *r, struct embeng_model *model, const struct json *spec,
			    bool optimizer)
{
	static const char *const combiners[] = {"mean", "sum", "sqrtn", "max"};
	static const char *const policies[] = {"error", "clamp", "drop", "zero"};
	const char *combiner = text_member(spec, "combiner", "mean");
	const char *policy = text_member(spec, "out_of_range", "error");
	struct embeng_table_config config = EMBENG_INIT(
		embeng_table_config, .name = text_member(spec, "name", NULL),
		.vocabulary_size = integer_member(spec, "vocabulary_size", 0),
		.dim = integer_member(spec, "dim", 0),
		.combiner = (enum embeng_combiner_name)find_choice(combiner, combiners, 4),
		.out_of_range = (enum embeng_policy)find_choice(policy, policies, 4),
		.quantization = quantization_read(member(spec, "quantization")),
		.frozen = bool_member(spec, "frozen", false),
		.part = part_read(member(spec, "part")));
	int err = initializer_read(r, member(spec, "initializer"), &config.initializer);

	if (err)
		return err;
	if ((int)config.combiner < 0)
		return run_fail(r, -EINVAL,
				"table '%s': combiner '%s' must be mean, sum, sqrtn or max",
				config.name, combiner);
	if ((int)config.out_of_range < 0)
		return run_fail(r, -EINVAL,
				"table '%s': out_of_range '%s' must be error, clamp, drop or zero",
				config.name, policy);
	if (optimizer && member(spec, "optimizer")) {
		if (!optimizer_read(member(spec, "optimizer"), &config.optimizer))
			return run_fail(r, -EINVAL, "table '%s': there is no optimizer '%s'",
					config.name,
					text_member(member(spec, "optimizer"), "kind", ""));
	}
	err = embeng_model_add_table(model, &config);
	free((void *)config.optimizer.dynamic);
	return err < 0 ? run_library(r, err) : 0;
}

static int set_output_shape(struct run *r, const struct json *shape,
			    struct embeng_feature_config *config)
{
	config->output_rank = list_length(shape);
	if (!shape)
		return 0;
	if (!config->output_rank || config->output_rank > EMBENG_MAX_RANK)
		return run_fail(r, -EINVAL,
				"feature '%s': the rank of output_shape is %zu; it must be 1 to %d",
				config->name, config->output_rank, EMBENG_MAX_RANK);
	for (size_t i = 0; i < config->output_rank; i++)
		config->output_shape[i] = json_int64(json_at(shape, i));
	return 0;
}

static int add_vector_feature(struct run *r, struct embeng_model *model, const struct json *spec)
{
	const char *table = text_member(spec, "table", "");
	struct embeng_feature_config config = EMBENG_INIT(
		embeng_feature_config, .name = text_member(spec, "name", NULL),
		.table = embeng_model_table(model, table),
		.max_sequence_length = integer_member(spec, "max_sequence_length", 0),
		.unchecked_serving = !bool_member(spec, "validate_weights_and_indices", true));
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

static int set_vector_engine(struct run *r, struct embeng_model *model, const struct json *engine)
{
	static const char *const shardings[] = {"div", "mod"};
	static const char *const policies[] = {"error", "drop", "allow"};
	const char *non_finite = text_member(engine, "non_finite", "error");
	const char *sharding = text_member(engine, "sharding", "div");
	int64_t replicas = integer_member(engine, "replicas", 1);
	int64_t hosts = integer_member(engine, "hosts", 1);
	struct embeng_engine_config config = EMBENG_INIT(
		embeng_engine_config, .replicas = (uint32_t)replicas,
		.pipelining = bool_member(engine, "pipelining", false),
		.fixed_shapes = bool_member(engine, "fixed_shapes", false),
		.hosts = (uint32_t)hosts,
		.sharding = (enum embeng_sharding)find_choice(sharding, shardings, 2),
		.non_finite = (enum embeng_non_finite)find_choice(non_finite, policies, 3));
	int err;

	if (replicas < 1 || replicas > UINT32_MAX)
		return run_fail(r, -ERANGE, "replicas is %lld; it must be 1 to %u",
				(long long)replicas, UINT32_MAX);
	if ((int)config.sharding < 0)
		return run_fail(r, -EINVAL, "sharding '%s' must be div or mod", sharding);
	if ((int)config.non_finite < 0)
		return run_fail(r, -EINVAL, "non_finite '%s' must be error, drop or allow",
				non_finite);
	if (hosts < 1 || hosts > INT32_MAX)
		return run_fail(r, -ERANGE, "hosts is %lld; it must be 1 to %d", (long long)hosts,
				INT32_MAX);
	err = embeng_model_set_engine(model, &config);
	return err ? run_library(r, err) : 0;
}

static int add_all(struct run *r, const struct json *tables, const struct json *features,
		   bool optimizer, struct embeng_model *model)
{
	int err = 0;

	for (size_t i = 0; !err && i < list_length(tables); i++)
		err = add_vector_table(r, model, json_at(tables, i), optimizer);
	for (size_t i = 0; !err && i < list_length(features); i++)
		err = add_vector_feature(r, model, json_at(features, i));
	return err;
}

int model_fill(struct run *r, const struct json *features, bool optimizer,
	       struct embeng_model *model)
{
	return add_all(r, member(r->vector, "tables"), features, optimizer, model);
}

int model_add(struct run *r, const struct json *step, bool optimizer, struct embeng_model *model)
{
	return add_all(r, member(step, "tables"), member(step, "features"), optimizer, model);
}

int model_build(struct run *r, const struct json *engine, bool optimizer,
		struct embeng_model *model)
{
	int err = set_vector_engine(r, model, engine);

	return err ? err : model_fill(r, member(r->vector, "features"), optimizer, model);
}
