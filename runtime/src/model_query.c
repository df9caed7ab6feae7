// SPDX-License-Identifier: MIT
/* What a model tells: names, indices, slots, and a copy of itself. */
#include <string.h>

#include "model.h"
#include "error.h"

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

const char *model_slot_name(const struct embeng_model *model, int table, size_t slot)
{
	if (table < 0 || (size_t)table >= model->table_count ||
	    slot > model->tables[table].slot_count)
		return NULL;
	return slot ? "accumulators" : "parameters";
}

int model_slot(const struct embeng_model *model, int table, const char *slot)
{
	const char *name;

	if (table < 0 || (size_t)table >= model->table_count)
		return fail(-ENOENT, "there is no table %d; the model has %zu tables", table,
			    model->table_count);
	for (size_t i = 0; (name = model_slot_name(model, table, i)); i++) {
		if (!slot || !strcmp(slot, name))
			return (int)i;
	}
	return fail(-ENOENT, "table %s: there is no slot %s; it has parameters%s",
		    model->tables[table].name, slot,
		    model->tables[table].slot_count ? " and accumulators" : " alone");
}

static int copy_table(struct embeng_model *copy, const struct table *t)
{
	struct embeng_table_config c = {
		.size = sizeof(c),
		.name = t->name,
		.vocabulary_size = t->rows,
		.dim = t->dim,
		.combiner = t->combiner,
		.optimizer = t->optimizer,
		.initializer = t->initializer,
		.out_of_range = t->policy,
	};

	return embeng_model_add_table(copy, &c);
}

static int copy_feature(struct embeng_model *copy, const struct feature *f)
{
	struct embeng_feature_config c = {
		.size = sizeof(c),
		.name = f->name,
		.table = f->table,
		.max_sequence_length = f->max_sequence_length,
		.output_rank = f->output_rank,
		.check_weights = f->check_weights,
		.max_samples = f->max_samples,
		.max_ids = f->max_ids,
		.unchecked_serving = f->unchecked_serving,
	};

	memcpy(c.output_shape, f->output_shape, sizeof(c.output_shape));
	return embeng_model_add_feature(copy, &c);
}

struct embeng_model *model_copy(const struct embeng_model *model)
{
	struct embeng_model *copy = embeng_model_new();
	int code = copy ? 0 : -ENOMEM;

	for (size_t i = 0; code >= 0 && i < model->table_count; i++)
		code = copy_table(copy, &model->tables[i]);
	for (size_t i = 0; code >= 0 && i < model->feature_count; i++)
		code = copy_feature(copy, &model->features[i]);
	if (code < 0) {
		embeng_model_free(copy);
		return NULL;
	}
	copy->engine = model->engine;
	return copy;
}
