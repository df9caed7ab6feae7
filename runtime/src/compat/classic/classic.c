// SPDX-License-Identifier: MIT
/*
 * Makes a model of a specification of the v1 interface: either tables and features by name, or
 * feature columns, which columns.c translates.
 *
 * A struct embeng_classic owns copies of all that it was given and lives until
 * embeng_classic_free(). It is not changed after it was made, so any thread may read it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/error.h"
#include "classic.h"
#include "session/session.h"

void embeng_classic_free(struct embeng_classic *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->table_count; i++)
		free(c->tables[i].name);
	for (size_t i = 0; i < c->feature_count; i++) {
		free(c->features[i].name);
		free(c->features[i].table);
		free(c->features[i].weight_key);
	}
	free(c->tables);
	free(c->features);
	free(c->num_features);
	free(c->profile_directory);
	embeng_model_free(c->model);
	free(c);
}

/* -- tables and features as they were given ------------------------------ */

static int check_spec_optimizer(const char *what, const struct embeng_optimizer *o)
{
	if (classic_has_optimizer(o->kind))
		return 0;
	return fail(-EINVAL,
		    "%s: optimization_parameters must be of sgd, adagrad, proximal_adagrad, adam, "
		    "ftrl, momentum or rms_prop, not %s",
		    what, embeng_optimizer_text(o->kind) ? embeng_optimizer_text(o->kind) : "none");
}

static int take_spec_table(struct embeng_classic *c, const struct embeng_classic_spec *spec,
			   const struct embeng_classic_table *given)
{
	struct classic_table *t = classic_add_table(c);
	int ret = t ? classic_copy(given->name, &t->name) : -ENOMEM;

	if (ret)
		return ret;
	if (!given->name)
		return fail(-EINVAL, "table %zu of the specification has no name",
			    c->table_count - 1);
	if (given->has_learning_rate && given->rate_name)
		return fail(-EINVAL,
			    "table %s: a learning rate and a learning rate function are given; "
			    "one of them is allowed",
			    t->name);
	t->rows = given->vocabulary_size;
	t->dim = given->dimension;
	t->combiner = given->combiner;
	t->initializer = given->initializer;
	t->rate_name = given->rate_name;
	t->optimizer = given->optimizer ? *given->optimizer : spec->optimizer;
	if (given->has_learning_rate) {
		t->optimizer.learning_rate = given->learning_rate;
		t->optimizer.rate_name = NULL;
	}
	return 0;
}

static int take_spec_feature(struct embeng_classic *c, const struct embeng_classic_feature *given)
{
	struct classic_feature *f = classic_add_feature(c);
	int ret = f ? classic_copy(given->name, &f->name) : -ENOMEM;

	if (ret)
		return ret;
	if (!given->name || !given->table)
		return fail(-EINVAL, "feature %zu of the specification has no name, or no table",
			    c->feature_count - 1);
	f->length = given->max_sequence_length;
	ret = classic_copy(given->table, &f->table);
	return ret ? ret : classic_copy(given->weight_key, &f->weight_key);
}

static int take_dictionaries(struct embeng_classic *c, const struct embeng_classic_spec *spec)
{
	struct embeng_classic_feature feature;
	struct embeng_classic_table table;
	int ret = 0;

	for (size_t i = 0; !ret && i < spec->table_count; i++) {
		ret = config_take(&table, (const char *)spec->tables + i * spec->tables->size,
				  sizeof(table), "embeng_classic_table");
		ret = ret ? ret : take_spec_table(c, spec, &table);
	}
	for (size_t i = 0; !ret && i < spec->feature_count; i++) {
		ret = config_take(&feature, (const char *)spec->features + i * spec->features->size,
				  sizeof(feature), "embeng_classic_feature");
		ret = ret ? ret : take_spec_feature(c, &feature);
	}
	return ret;
}

/* -- order, and what belongs to what ------------------------------------- */

static int by_table_name(const void *a, const void *b)
{
	const struct classic_table *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int by_feature_name(const void *a, const void *b)
{
	const struct classic_feature *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int find_feature_table(struct embeng_classic *c, struct classic_feature *f)
{
	const struct classic_table key = {.name = f->table};
	struct classic_table *t = c->table_count ? bsearch(&key, c->tables, c->table_count,
							   sizeof(key), by_table_name)
						 : NULL;

	if (!t)
		return fail(-ENOENT, "feature %s: there is no table %s", f->name, f->table);
	t->used = true;
	f->index = (size_t)(t - c->tables);
	f->count = f->length > 0 ? f->length : 1;
	f->first = c->num_features[f->index];
	if (f->count > INT64_MAX - f->first)
		return fail(-ERANGE, "table %s: its features have more places than 64 bits count",
			    t->name);
	c->num_features[f->index] += f->count;
	return 0;
}

static int check_spec_names(const struct embeng_classic *c)
{
	for (size_t i = 1; i < c->table_count; i++) {
		if (!strcmp(c->tables[i - 1].name, c->tables[i].name))
			return fail(-EEXIST, "table %s is given twice", c->tables[i].name);
	}
	for (size_t i = 1; i < c->feature_count; i++) {
		if (!strcmp(c->features[i - 1].name, c->features[i].name))
			return fail(-EEXIST, "feature %s is given twice", c->features[i].name);
	}
	return 0;
}

static int arrange_tables(struct embeng_classic *c)
{
	int ret;

	c->num_features = calloc(c->table_count + 1, sizeof(*c->num_features));
	if (!c->num_features)
		return fail(-ENOMEM, "no memory for a specification");
	if (c->table_count)
		qsort(c->tables, c->table_count, sizeof(*c->tables), by_table_name);
	if (c->feature_count)
		qsort(c->features, c->feature_count, sizeof(*c->features), by_feature_name);
	ret = check_spec_names(c);
	for (size_t i = 0; !ret && i < c->feature_count; i++)
		ret = find_feature_table(c, &c->features[i]);
	for (size_t i = 0; !ret && i < c->table_count; i++) {
		if (!c->tables[i].used)
			ret = fail(-EINVAL, "table %s is used by no feature", c->tables[i].name);
	}
	return ret;
}

/* -- the model ----------------------------------------------------------- */

static void set_clip(const struct embeng_classic_spec *spec, struct embeng_optimizer *o)
{
	if (!spec->has_clipping_limit)
		return;
	o->has_clip_min = o->has_clip_max = 1;
	o->clip_min = -spec->clipping_limit;
	o->clip_max = spec->clipping_limit;
	if (o->kind == EMBENG_SGD && o->use_gradient_accumulation == EMBENG_OFF)
		o->use_gradient_accumulation = EMBENG_ON;
}

static int add_model_table(struct embeng_classic *c, const struct embeng_classic_spec *spec,
			   const struct classic_table *t)
{
	struct embeng_table_config config = {.size = sizeof(config),
					     .name = t->name,
					     .vocabulary_size = t->rows,
					     .dim = t->dim,
					     .combiner = t->combiner,
					     .initializer = t->initializer};
	int ret = 0;

	if (t->combiner == EMBENG_MAX)
		return fail(
			-EINVAL,
			"table %s: the combiner must be mean, sum or sqrtn; the first interface "
			"of the family has no max, which embeng_model_add_table() takes",
			t->name);
	if (spec->mode != EMBENG_CLASSIC_INFERENCE) {
		config.optimizer = t->optimizer;
		if (t->rate_name)
			config.optimizer.rate_name = t->rate_name;
		set_clip(spec, &config.optimizer);
		ret = check_spec_optimizer(t->name, &config.optimizer);
	}
	ret = ret ? ret : embeng_model_add_table(c->model, &config);
	return ret < 0 ? ret : 0;
}

static int add_model_feature(struct embeng_classic *c, const struct classic_feature *f)
{
	struct embeng_feature_config config = {.size = sizeof(config),
					       .name = f->name,
					       .table = (int)f->index,
					       .max_sequence_length = f->length,
					       .v1_dense_zero_is_padding = 1};
	int ret = embeng_model_add_feature(c->model, &config);

	return ret < 0 ? ret : 0;
}

static int set_engine(struct embeng_classic *c, const struct embeng_classic_spec *spec)
{
	struct embeng_engine_config config = {.size = sizeof(config),
					      .replicas = spec->replicas,
					      .pipelining = spec->pipelining,
					      .hosts = spec->hosts,
					      .fixed_shapes = 1};

	if (spec->partition_strategy && !strcmp(spec->partition_strategy, "mod"))
		config.sharding = EMBENG_SHARDING_MOD;
	return embeng_model_set_engine(c->model, &config);
}

static int make_model(struct embeng_classic *c, const struct embeng_classic_spec *spec)
{
	int ret;

	c->model = embeng_model_new();
	ret = c->model ? set_engine(c, spec) : -ENOMEM;
	for (size_t i = 0; !ret && i < c->table_count; i++)
		ret = add_model_table(c, spec, &c->tables[i]);
	for (size_t i = 0; !ret && i < c->feature_count; i++)
		ret = add_model_feature(c, &c->features[i]);
	return ret ? ret : embeng_model_build(c->model, c->batch_size);
}

/* -- the specification --------------------------------------------------- */

static int check_spec_form(const struct embeng_classic_spec *spec)
{
	bool columns = spec->column_count, pair = spec->table_count && spec->feature_count;

	if (columns == pair || (columns && (spec->table_count || spec->feature_count)))
		return fail(-EINVAL,
			    "exactly one of feature columns and the pair of tables and features "
			    "must be given; there are %zu columns, %zu tables and %zu features",
			    spec->column_count, spec->table_count, spec->feature_count);
	if ((columns && !spec->columns) || (pair && (!spec->tables || !spec->features)))
		return fail(-EINVAL, "a list of the specification is NULL, its count is not 0");
	return 0;
}

static int check_spec_options(const struct embeng_classic_spec *spec)
{
	const char *strategy = spec->partition_strategy ? spec->partition_strategy : "div";

	if (strcmp(strategy, "div") && strcmp(strategy, "mod"))
		return fail(-EINVAL, "partition_strategy \"%s\" is neither \"div\" nor \"mod\"",
			    strategy);
	if ((unsigned int)spec->mode > EMBENG_CLASSIC_BACKWARD_PASS_ONLY)
		return fail(-EINVAL,
			    "mode %d is none of EMBENG_CLASSIC_TRAINING, _INFERENCE and "
			    "_BACKWARD_PASS_ONLY",
			    (int)spec->mode);
	if (spec->has_clipping_limit &&
	    (!isfinite(spec->clipping_limit) || spec->clipping_limit < 0))
		return fail(-ERANGE, "clipping_limit %g is not a finite number from 0",
			    (double)spec->clipping_limit);
	return 0;
}

static int share_batch(const struct embeng_classic_spec *spec, int64_t *batch_size)
{
	uint32_t replicas = spec->replicas ? spec->replicas : 1;

	if (spec->batch_size < 1 || spec->batch_size % replicas)
		return fail(-ERANGE,
			    "batch_size %" PRId64 " is not a multiple, from 1, of %" PRIu32
			    " replicas",
			    spec->batch_size, replicas);
	*batch_size = spec->batch_size / replicas;
	return 0;
}

static int fill_from_spec(struct embeng_classic *c, const struct embeng_classic_spec *given)
{
	struct embeng_classic_spec spec;
	int ret = config_take(&spec, given, sizeof(spec), "embeng_classic_spec");

	ret = ret ? ret : check_spec_form(&spec);
	ret = ret ? ret : check_spec_options(&spec);
	ret = ret ? ret : share_batch(&spec, &c->batch_size);
	ret = ret ? ret : classic_copy(spec.profile_directory, &c->profile_directory);
	if (ret)
		return ret;
	c->mode = spec.mode;
	ret = spec.column_count ? classic_take_columns(c, &spec) : take_dictionaries(c, &spec);
	ret = ret ? ret : arrange_tables(c);
	return ret ? ret : make_model(c, &spec);
}

int embeng_classic_new(const struct embeng_classic_spec *spec, struct embeng_classic **out,
		       struct embeng_error *error)
{
	struct embeng_classic *c = NULL;
	int ret = out ? 0 : fail(-EINVAL, "embeng_classic_new: out must be given");

	if (!ret && !(c = calloc(1, sizeof(*c))))
		ret = fail(-ENOMEM, "no memory for a specification");
	ret = ret ? ret : fill_from_spec(c, spec);
	if (ret) {
		give_error(error);
		embeng_classic_free(c);
		return ret;
	}
	*out = c;
	return 0;
}
