// SPDX-License-Identifier: MIT
/*
 * Questions about a model: names, indices and configurations. A copy of a model is made by these
 * questions, so that it has all that a program could ask for.
 *
 * Texts that are returned belong to the model. No lock is needed: the model is only read.
 */
#include <string.h>

#include "model.h"
#include "base/error.h"

int embeng_model_table(const struct embeng_model *model, const char *name)
{
	for (size_t i = 0; model && name && i < model->table_count; i++) {
		if (!strcmp(model->tables[i].name, name))
			return (int)i;
	}
	return fail(-ENOENT, "there is no table %s", name ? name : "(NULL)");
}

int embeng_model_feature(const struct embeng_model *model, const char *name)
{
	for (size_t i = 0; model && name && i < model->feature_count; i++) {
		if (!strcmp(model->features[i].name, name))
			return (int)i;
	}
	return fail(-ENOENT, "there is no feature %s", name ? name : "(NULL)");
}

size_t embeng_model_table_count(const struct embeng_model *model)
{
	return model ? model->table_count : 0;
}

size_t embeng_model_feature_count(const struct embeng_model *model)
{
	return model ? model->feature_count : 0;
}

size_t embeng_model_rate_count(const struct embeng_model *model)
{
	return model ? model->rate_count : 0;
}

const char *embeng_model_table_name(const struct embeng_model *model, size_t table)
{
	return table < embeng_model_table_count(model) ? model->tables[table].name : NULL;
}

const char *embeng_model_feature_name(const struct embeng_model *model, size_t feature)
{
	return feature < embeng_model_feature_count(model) ? model->features[feature].name : NULL;
}

const char *embeng_model_rate_name(const struct embeng_model *model, size_t rate)
{
	return rate < embeng_model_rate_count(model) ? model->rates[rate] : NULL;
}

int embeng_model_get_table(const struct embeng_model *model, size_t table,
			   struct embeng_table_config *config)
{
	struct embeng_table_config known;
	const struct table *t;

	if (!model || !config ||
	    (config->size < sizeof(known) && config->size != TABLE_CONFIG_BEFORE))
		return fail(-EINVAL, "embeng_model_get_table: the model, and config with its size, "
				     "must be given");
	if (table >= model->table_count)
		return fail(-ENOENT, "there is no table %zu; the model has %zu tables", table,
			    model->table_count);
	t = &model->tables[table];
	known = (struct embeng_table_config){
		.size = config->size < sizeof(known) ? config->size : sizeof(known),
		.name = t->name,
		.vocabulary_size = t->rows,
		.dim = t->dim,
		.combiner = t->combiner,
		.optimizer = t->optimizer,
		.initializer = t->initializer,
		.out_of_range = t->policy,
		.slot_starts = t->slot_starts,
		.slot_start_count = t->slot_start_count,
		.quantization = t->quantization,
		.frozen = t->frozen,
		.part = t->part,
	};
	memcpy(config, &known, known.size);
	return 0;
}

int embeng_model_get_feature(const struct embeng_model *model, size_t feature,
			     struct embeng_feature_config *config)
{
	const struct feature *f;

	if (!model || !config || config->size < sizeof(*config))
		return fail(-EINVAL, "embeng_model_get_feature: the model, and config with its "
				     "size, must be given");
	if (feature >= model->feature_count)
		return fail(-ENOENT, "there is no feature %zu; the model has %zu features", feature,
			    model->feature_count);
	f = &model->features[feature];
	*config = (struct embeng_feature_config){
		.size = sizeof(*config),
		.name = f->name,
		.table = f->table,
		.max_sequence_length = f->max_sequence_length,
		.output_rank = f->output_rank,
		.check_weights = f->check_weights,
		.max_samples = f->max_samples,
		.max_ids = f->max_ids,
		.unchecked_serving = f->unchecked_serving,
		.v1_dense_zero_is_padding = f->zero_is_padding,
	};
	memcpy(config->output_shape, f->output_shape, sizeof(config->output_shape));
	return 0;
}

int embeng_model_get_engine(const struct embeng_model *model, struct embeng_engine_config *config)
{
	if (!model || !config || config->size < sizeof(*config))
		return fail(-EINVAL,
			    "embeng_model_get_engine: the model, and config with its size, "
			    "must be given");
	*config = model->engine;
	return 0;
}

const char *rate_word(const struct embeng_model *model, size_t rate)
{
	for (size_t t = 0; t < model->table_count; t++) {
		if (model->tables[t].rate == (int)rate || model->tables[t].step_rate == (int)rate)
			return "learning rate";
	}
	return "hyperparameter";
}

bool model_trains(const struct embeng_model *model)
{
	for (size_t f = 0; f < model->feature_count; f++) {
		if (table_has_optimizer(&model->tables[model->features[f].table]))
			return true;
	}
	return !model->feature_count;
}

static int copy_table(struct embeng_model *copy, const struct embeng_model *model, size_t table)
{
	struct embeng_table_config c = {.size = sizeof(c)};
	int code = embeng_model_get_table(model, table, &c);

	return code ? code : embeng_model_add_table(copy, &c);
}

static int copy_feature(struct embeng_model *copy, const struct embeng_model *model, size_t feature)
{
	struct embeng_feature_config c = {.size = sizeof(c)};
	int code = embeng_model_get_feature(model, feature, &c);

	return code ? code : embeng_model_add_feature(copy, &c);
}

struct embeng_model *model_copy(const struct embeng_model *model)
{
	struct embeng_model *copy = embeng_model_new();
	int code = copy ? 0 : -ENOMEM;

	for (size_t i = 0; code >= 0 && i < model->table_count; i++)
		code = copy_table(copy, model, i);
	for (size_t i = 0; code >= 0 && i < model->feature_count; i++)
		code = copy_feature(copy, model, i);
	if (code >= 0)
		code = model_schedules_copy(copy, model);
	if (code < 0) {
		embeng_model_free(copy);
		return NULL;
	}
	for (size_t i = 0; i < model->feature_count; i++)
		copy->features[i].built = model->features[i].built;
	copy->engine = model->engine;
	return copy;
}
