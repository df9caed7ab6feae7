// SPDX-License-Identifier: MIT
/*
 * Makes the model of this host's part of a group's model, and fills rows of it. The tables of the model say
 * which rows and columns they are of their whole tables (struct embeng_table_part), so that the device
 * begins and fills them with the numbers that these have there.
 *
 * Tables keep their names, on which the random numbers of their rows depend. The model belongs to the
 * caller. No lock is needed: the group's model does not change.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "joined.h"
#include "part.h"

/* The place of a part in the table that @c describes, which may be a part itself. */
static struct embeng_table_part compose_part(const struct embeng_table_config *c,
					     const struct place_part *part)
{
	struct embeng_table_part p = c->part;

	if (!p.rows)
		p = (struct embeng_table_part){
			.rows = c->vocabulary_size, .row_step = 1, .dim = c->dim};
	p.first_row += part->rows.first * p.row_step;
	/* The step of a single row may be larger than any number. */
	p.row_step = part->rows.count > 1 ? part->rows.stride * p.row_step : 1;
	p.first_column += part->first_column;
	return p;
}

static int add_part(const struct hosts *h, const struct place_part *part,
		    struct embeng_model *model)
{
	struct embeng_table_config c = EMBENG_INIT(embeng_table_config);
	int ret = embeng_model_get_table(h->e->model, (size_t)part->table, &c);

	if (ret)
		return ret;
	c.part = compose_part(&c, part);
	c.dim = part->columns;
	c.vocabulary_size = part->rows.count;
	return embeng_model_add_table(model, &c);
}

static int add_features(const struct hosts *h, struct embeng_model *model)
{
	int ret = 0;

	for (size_t f = 0; ret >= 0 && f < h->e->model->feature_count; f++) {
		struct embeng_feature_config c = EMBENG_INIT(embeng_feature_config);

		h->features[f] = -1;
		if (!feature_part(h, f, h->rank))
			continue;
		ret = embeng_model_get_feature(h->e->model, f, &c);
		/* Each batch has the shape that it has: the host that asks has checked it. */
		c.output_rank = 0;
		c.table = h->tables[h->e->model->features[f].table];
		ret = ret ? ret : embeng_model_add_feature(model, &c);
		h->features[f] = ret;
	}
	return ret < 0 ? ret : 0;
}

/* A feature for each table that is spread and has rows here, which reads whole rows. */
static int add_lists(const struct hosts *h, struct embeng_model *model)
{
	char name[32];
	int ret = 0;

	for (size_t i = 0; ret >= 0 && i < h->list_count; i++) {
		struct row_list *list = &h->lists[i];

		list->served = -1;
		if (h->tables[list->table] < 0)
			continue;
		ret = -EEXIST;
		for (unsigned int k = 0; ret == -EEXIST; k++) {
			snprintf(name, sizeof(name), "rows %zu.%u", i, k);
			ret = embeng_model_add_feature(
				model, &EMBENG_INIT(embeng_feature_config, .name = name,
						    .table = h->tables[list->table]));
		}
		list->served = ret;
	}
	return ret < 0 ? ret : 0;
}

/*
 * A step is one for the owner handle even if nothing of its part can train, and a handle refuses to train
 * then: so it gets a table of one number, which no id is ever looked up in.
 */
static int add_trainable(struct embeng_model *model)
{
	char name[32];
	int table = -EEXIST;

	for (unsigned int i = 0; table == -EEXIST; i++) {
		snprintf(name, sizeof(name), "no table %u", i);
		table = embeng_model_add_table(
			model, &EMBENG_INIT(embeng_table_config, .name = name, .vocabulary_size = 1,
					    .dim = 1, .optimizer = embeng_sgd(0.0f)));
	}
	for (int ret = table < 0 ? table : -EEXIST, i = 0; ret < 0; i++) {
		if (ret != -EEXIST)
			return ret;
		snprintf(name, sizeof(name), "no feature %d", i);
		ret = embeng_model_add_feature(
			model, &EMBENG_INIT(embeng_feature_config, .name = name, .table = table));
	}
	return 0;
}

static bool has_trainable(const struct embeng_model *model)
{
	return model->feature_count && model_trains(model);
}

int part_model(struct hosts *h, struct embeng_model **out)
{
	struct embeng_model *model = embeng_model_new();
	struct embeng_engine_config engine = h->e->model->engine;
	int ret = model ? 0 : -ENOMEM, count = 0;

	for (size_t t = 0; ret >= 0 && t < h->e->model->table_count; t++) {
		const struct place_part *part = hosts_part(h, (int)t, h->rank);

		h->tables[t] = part ? count++ : -1;
		ret = part ? add_part(h, part, model) : ret;
	}
	ret = ret < 0 ? ret : add_features(h, model);
	ret = ret ? ret : add_lists(h, model);
	h->served = model ? model->feature_count : 0;
	if (!ret && !has_trainable(model))
		ret = add_trainable(model);
	engine.hosts = 1;
	if (hosts_joins(h))
		engine.replicas = 1;
	engine.fixed_shapes = 0;
	ret = ret ? ret : embeng_model_set_engine(model, &engine);
	if (ret)
		embeng_model_free(model);
	else
		*out = model;
	return ret;
}

size_t part_rows_before(const struct place_part *part, int64_t row)
{
	const struct embeng_shard_rows *r = &part->rows;
	const int64_t below = row > r->first ? (row - r->first + r->stride - 1) / r->stride : 0;

	return (size_t)(below < r->count ? below : r->count);
}

int part_fill(const struct hosts *h, int table, size_t slot, size_t first, size_t count,
	      const struct embeng_initializer *initializer)
{
	const struct place_part *part = hosts_part(h, table, h->rank);
	const char *name = slot ? model_slot_name(h->e->model, table, slot) : NULL;

	if (!part)
		return 0;
	count = part_rows_before(part, (int64_t)(first + count));
	first = part_rows_before(part, (int64_t)first);
	return embeng_rows_fill(h->owner, h->tables[table], name, (int64_t)first, count - first,
				initializer);
}
