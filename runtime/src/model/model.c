// SPDX-License-Identifier: MIT
/*
 * Models: making them, adding tables and features, and setting the options of the engine.
 * Everything is checked before it is added, so an error leaves the model as it was.
 *
 * A model owns copies of all names and arrays until embeng_model_free(). The program uses a model
 * by one thread at a time while it is changed; no lock is taken.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "initializer.h"
#include "model.h"
#include "shape.h"

struct embeng_model *embeng_model_new(void)
{
	struct embeng_model *model = calloc(1, sizeof(*model));

	if (!model) {
		fail(-ENOMEM, "no memory for a model");
		return NULL;
	}
	model->engine.size = sizeof(model->engine);
	model->engine.replicas = model->engine.hosts = 1;
	return model;
}

static void table_free(struct table *t)
{
	free(t->name);
	free((char *)t->optimizer.rate_name);
	free((char *)t->optimizer.step_counter);
	for (size_t i = 0; i < t->optimizer.dynamic_count; i++) {
		free((char *)t->optimizer.dynamic[i].hyperparameter);
		free((char *)t->optimizer.dynamic[i].name);
	}
	free((void *)t->optimizer.dynamic);
	free(t->slot_starts);
}

void embeng_model_free(struct embeng_model *model)
{
	if (!model)
		return;
	for (size_t i = 0; i < model->table_count; i++)
		table_free(&model->tables[i]);
	for (size_t i = 0; i < model->feature_count; i++)
		free(model->features[i].name);
	for (size_t i = 0; i < model->rate_count; i++)
		free(model->rates[i]);
	model_schedules_free(model);
	free(model->tables);
	free(model->features);
	free(model->rates);
	free(model);
}

/* The array with room for one more element, or NULL: the array is as before. */
static void *grow_array(void *array, size_t count, size_t width)
{
	void *grown = reallocarray(array, count + 1, width);

	if (!grown)
		fail(-ENOMEM, "no memory to add to the model");
	return grown;
}

/* A copy of the given name, or the name that an unnamed one gets. */
static int name_make(const char *what, const char *given, size_t index, char **name)
{
	char made[NAME_MAX_BYTES + 1];
	int code = given ? name_check(what, given) : 0;

	if (code)
		return code;
	if (!given)
		snprintf(made, sizeof(made), "%s_%zu", what, index);
	*name = strdup(given ? given : made);
	return *name ? 0 : fail(-ENOMEM, "no memory for the name of a %s", what);
}

/* Index of a dynamic rate, which is added when no table named it before. */
static int rate_index(struct embeng_model *model, const char *name)
{
	char **rates;

	for (size_t i = 0; i < model->rate_count; i++) {
		if (!strcmp(model->rates[i], name))
			return (int)i;
	}
	rates = grow_array(model->rates, model->rate_count, sizeof(*rates));
	if (!rates)
		return -ENOMEM;
	model->rates = rates;
	model->rates[model->rate_count] = strdup(name);
	if (!model->rates[model->rate_count])
		return fail(-ENOMEM, "no memory for the name of a learning rate");
	return (int)model->rate_count++;
}

/* The protobuf counts levels with 31 bits. */
static int quantization_check(const char *where, const struct embeng_quantization *q)
{
	float step;

	if (!q->num_buckets)
		return 0;
	if (q->num_buckets < 2 || q->num_buckets > INT32_MAX)
		return fail(-ERANGE,
			    "%s: quantization: num_buckets %lld must be 2 to %d, or 0 for no "
			    "quantization",
			    where, (long long)q->num_buckets, INT32_MAX);
	if (!isfinite(q->lower) || !isfinite(q->upper))
		return fail(-ERANGE, "%s: quantization: lower %g and upper %g must be finite",
			    where, (double)q->lower, (double)q->upper);
	if (q->lower >= q->upper)
		return fail(-ERANGE, "%s: quantization: lower %g is not below upper %g", where,
			    (double)q->lower, (double)q->upper);
	step = (q->upper - q->lower) / (float)(q->num_buckets - 1);
	if (!isnormal(step))
		return fail(
			-ERANGE,
			"%s: quantization: %lld buckets within %g and %g are %g apart, which is "
			"no normal number of 32 bits",
			where, (long long)q->num_buckets, (double)q->lower, (double)q->upper,
			(double)step);
	return 0;
}

static int table_check(const char *where, const struct embeng_table_config *c)
{
	int code;

	if (c->vocabulary_size < 1)
		return fail(-ERANGE, "%s: vocabulary_size %lld is below 1", where,
			    (long long)c->vocabulary_size);
	if (c->dim < 1 || c->dim > UINT32_MAX)
		return fail(-ERANGE, "%s: dim %lld must be 1 to %llu", where, (long long)c->dim,
			    (unsigned long long)UINT32_MAX);
	if ((unsigned int)c->combiner > EMBENG_MAX)
		return fail(-EINVAL,
			    "%s: combiner %d is unknown; there are EMBENG_MEAN, EMBENG_SUM, "
			    "EMBENG_SQRTN and EMBENG_MAX",
			    where, (int)c->combiner);
	if ((unsigned int)c->out_of_range > EMBENG_POLICY_ZERO)
		return fail(-EINVAL,
			    "%s: out_of_range %d is unknown; there are EMBENG_POLICY_ERROR, "
			    "_CLAMP, _DROP and _ZERO",
			    where, (int)c->out_of_range);
	code = quantization_check(where, &c->quantization);
	if (!code)
		code = optimizer_check(where, &c->optimizer, c->dim);
	if (!code)
		code = initializer_check(where, &c->initializer);
	if (!code)
		code = slot_starts_check(where, c);
	return code ? code : table_part_check(where, c);
}

/* Copies a configuration into the table; @t owns nothing but its name yet. */
static void table_fill(struct table *t, const struct embeng_table_config *c)
{
	t->rows = c->vocabulary_size;
	t->dim = c->dim;
	t->combiner = c->combiner;
	t->rate = t->step_rate = -1;
	t->policy = c->out_of_range;
	t->frozen = c->frozen;
	t->part = table_part_resolve(c);
	if (c->quantization.num_buckets)
		t->quantization = c->quantization;
	t->slot_count = optimizer_info(c->optimizer.kind)->slot_count;
	if (c->optimizer.kind != EMBENG_OPTIMIZER_NO)
		t->optimizer = c->optimizer;
	t->optimizer.rate_name = t->optimizer.step_counter = NULL;
	optimizer_resolve(&t->optimizer);
	t->optimizer.dynamic = NULL;
	t->optimizer.dynamic_count = 0;
	for (size_t i = 0; i < NUMBERS; i++)
		t->dynamic[i] = -1;
	t->initializer = initializer_resolve(t, 0, &c->initializer);
}

static int rate_take(struct embeng_model *model, const char *name, const char **copy, int *index)
{
	if (!name)
		return 0;
	*copy = strdup(name);
	if (!*copy)
		return fail(-ENOMEM, "no memory for the name of a learning rate");
	*index = rate_index(model, name);
	return *index < 0 ? *index : 0;
}

/* The list of dynamic hyperparameters, which is checked, and the rates that give them. */
static int dynamic_take(struct embeng_model *model, struct table *t,
			const struct embeng_optimizer *optimizer)
{
	struct embeng_dynamic *list = calloc(optimizer->dynamic_count + 1, sizeof(*list));
	int code = 0;

	if (!list)
		return fail(-ENOMEM, "no memory for the dynamic hyperparameters of a table");
	t->optimizer.dynamic = list;
	t->optimizer.dynamic_count = optimizer->dynamic_count;
	for (size_t i = 0; !code && i < optimizer->dynamic_count; i++) {
		const struct embeng_dynamic *from = &optimizer->dynamic[i];

		list[i].hyperparameter = strdup(from->hyperparameter);
		if (!list[i].hyperparameter)
			return fail(-ENOMEM, "no memory for the name of a hyperparameter");
		code = rate_take(model, from->name, &list[i].name,
				 &t->dynamic[number_find(optimizer->kind, from->hyperparameter)]);
	}
	return code;
}

static int table_rates(struct embeng_model *model, struct table *t,
		       const struct embeng_optimizer *optimizer)
{
	int code;

	if (optimizer->kind == EMBENG_OPTIMIZER_NO)
		return 0;
	code = rate_take(model, optimizer->rate_name, &t->optimizer.rate_name, &t->rate);
	if (!code && optimizer->kind == EMBENG_FREQUENCY_AWARE_ADAGRAD)
		code = rate_take(model, optimizer->step_counter, &t->optimizer.step_counter,
				 &t->step_rate);
	if (!code && optimizer->dynamic_count)
		code = dynamic_take(model, t, optimizer);
	return code;
}

static int table_add(struct embeng_model *model, struct table *t,
		     const struct embeng_table_config *c)
{
	char where[NAME_MAX_BYTES + 16];
	struct table *tables;
	int code;

	snprintf(where, sizeof(where), "table %s", t->name);
	for (size_t i = 0; i < model->table_count; i++) {
		if (!strcmp(model->tables[i].name, t->name))
			return fail(-EEXIST,
				    "%s: table %zu has this name already; names are unique", where,
				    i);
	}
	code = table_check(where, c);
	if (code)
		return code;
	table_fill(t, c);
	code = slot_starts_copy(t, c);
	if (code)
		return code;
	tables = grow_array(model->tables, model->table_count, sizeof(*t));
	if (!tables)
		return -ENOMEM;
	model->tables = tables;
	code = table_rates(model, t, &c->optimizer);
	if (code)
		return code;
	model->tables[model->table_count] = *t;
	return (int)model->table_count++;
}

int embeng_model_add_table(struct embeng_model *model, const struct embeng_table_config *config)
{
	struct embeng_table_config c;
	struct table t = {0};
	int code;

	if (!model)
		return fail(-EINVAL, "a table is added to no model: NULL was given");
	code = config_take_grown(&c, config, TABLE_CONFIG_BEFORE, sizeof(c), "embeng_table_config");
	if (!code)
		code = name_make("table", c.name, model->table_count, &t.name);
	if (!code)
		code = table_add(model, &t, &c);
	if (code < 0)
		table_free(&t);
	return code;
}

static int output_check(const char *where, const struct embeng_feature_config *c)
{
	char text[SHAPE_TEXT];

	if (c->output_rank > EMBENG_MAX_RANK)
		return fail(-ERANGE, "%s: output_rank %zu is above %d", where, c->output_rank,
			    EMBENG_MAX_RANK);
	shape_text(text, c->output_shape, c->output_rank, true);
	for (size_t i = 0; i < c->output_rank; i++) {
		if (c->output_shape[i] < 0)
			return fail(-ERANGE,
				    "%s: entry %zu of the output_shape %s is negative; give a "
				    "length from 1, or 0 for unknown",
				    where, i, text);
	}
	if (shape_product(c->output_shape, c->output_rank, true) < 0)
		return fail(-ERANGE, "%s: output_shape %s has more positions than 64 bits count",
			    where, text);
	return 0;
}

static int feature_check(const struct embeng_model *model, const char *where,
			 const struct embeng_feature_config *c)
{
	if (c->table < 0 || (size_t)c->table >= model->table_count)
		return fail(-ENOENT, "%s: there is no table %d; the model has %zu tables", where,
			    c->table, model->table_count);
	if (c->max_sequence_length < 0 || c->max_sequence_length > UINT32_MAX)
		return fail(-ERANGE, "%s: max_sequence_length %lld must be 0 (pooled) to %llu",
			    where, (long long)c->max_sequence_length,
			    (unsigned long long)UINT32_MAX);
	return output_check(where, c);
}

static void feature_fill(struct feature *f, const struct embeng_feature_config *c)
{
	f->table = c->table;
	/* an output shape makes a feature pooled whatever length it has */
	f->max_sequence_length = c->output_rank ? 0 : c->max_sequence_length;
	f->output_rank = c->output_rank;
	memcpy(f->output_shape, c->output_shape, c->output_rank * sizeof(f->output_shape[0]));
	f->check_weights = c->check_weights;
	f->unchecked_serving = c->unchecked_serving;
	f->zero_is_padding = c->v1_dense_zero_is_padding;
	f->max_samples = c->max_samples;
	f->max_ids = c->max_ids;
}

static int feature_add(struct embeng_model *model, struct feature *f,
		       const struct embeng_feature_config *c)
{
	char where[NAME_MAX_BYTES + 16];
	struct feature *features;
	int code;

	snprintf(where, sizeof(where), "feature %s", f->name);
	for (size_t i = 0; i < model->feature_count; i++) {
		if (!strcmp(model->features[i].name, f->name))
			return fail(-EEXIST,
				    "%s: feature %zu has this name already; names are unique",
				    where, i);
	}
	code = feature_check(model, where, c);
	if (code)
		return code;
	features = grow_array(model->features, model->feature_count, sizeof(*f));
	if (!features)
		return -ENOMEM;
	model->features = features;
	feature_fill(f, c);
	f->largest = model->tables[c->table].combiner == EMBENG_MAX;
	model->features[model->feature_count] = *f;
	return (int)model->feature_count++;
}

int embeng_model_add_feature(struct embeng_model *model, const struct embeng_feature_config *config)
{
	struct embeng_feature_config c;
	struct feature f = {0};
	int code;

	if (!model)
		return fail(-EINVAL, "a feature is added to no model: NULL was given");
	code = config_take(&c, config, sizeof(c), "embeng_feature_config");
	if (!code)
		code = name_make("feature", c.name, model->feature_count, &f.name);
	if (!code)
		code = feature_add(model, &f, &c);
	if (code < 0)
		free(f.name);
	return code;
}

static int engine_check(const struct embeng_engine_config *c)
{
	if (c->hosts > INT32_MAX)
		return fail(-ERANGE, "engine: %u hosts are more than %d", c->hosts, INT32_MAX);
	if ((unsigned int)c->sharding > EMBENG_SHARDING_MOD)
		return fail(-EINVAL,
			    "engine: sharding %d is unknown; there are EMBENG_SHARDING_DIV and "
			    "EMBENG_SHARDING_MOD",
			    (int)c->sharding);
	if ((unsigned int)c->non_finite > EMBENG_NON_FINITE_ALLOW)
		return fail(-EINVAL,
			    "engine: non_finite %d is unknown; there are EMBENG_NON_FINITE_ERROR, "
			    "_DROP and _ALLOW",
			    (int)c->non_finite);
	return 0;
}

int embeng_model_set_engine(struct embeng_model *model, const struct embeng_engine_config *config)
{
	struct embeng_engine_config c;
	int code;

	if (!model)
		return fail(-EINVAL, "engine options are set on no model: NULL was given");
	code = config_take(&c, config, sizeof(c), "embeng_engine_config");
	if (!code)
		code = engine_check(&c);
	if (code)
		return code;
	model->engine = c;
	model->engine.size = sizeof(c);
	if (!c.replicas)
		model->engine.replicas = 1;
	if (!c.hosts)
		model->engine.hosts = 1;
	return 0;
}
