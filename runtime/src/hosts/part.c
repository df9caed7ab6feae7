// SPDX-License-Identifier: MIT
/*
 * Makes the model of this host's part of a group's model, and gives the rows of table parts the numbers
 * that the columns or rows of the whole table begin with. Opening a group does this once; embeng_rows_fill() fills
 * parts by the same function.
 *
 * Tables keep their names, on which the random numbers of their rows depend. The model belongs to the
 * caller. No lock is needed: the group's model does not change.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../engine/kernels/fill.h"
#include "base/bits.h"
#include "host/port.h"
#include "model/initializer.h"
#include "joined.h"
#include "part.h"

#define FILL_FLOATS (1u << 18) /* this many of whole rows are made at a time */

/* A number that a table may begin with, for rows that are written before anybody sees them. */
static void make_constant(struct embeng_initializer *i)
{
	*i = (struct embeng_initializer){.kind = EMBENG_INIT_CONSTANT, .a = i->a};
}

static int add_part(const struct hosts *h, const struct place_part *part,
		    struct embeng_model *model)
{
	struct embeng_table_config c = EMBENG_INIT(embeng_table_config);
	struct embeng_slot_start *starts;
	int ret = embeng_model_get_table(h->e->model, (size_t)part->table, &c);

	if (ret || part->kind == PLACE_TABLE)
		return ret ? ret : embeng_model_add_table(model, &c);
	starts = calloc(c.slot_start_count + 1, sizeof(*starts));
	if (!starts)
		return fail(-ENOMEM, "there is no memory for the model of a host");
	for (size_t s = 0; s < c.slot_start_count; s++) {
		starts[s] = c.slot_starts[s];
		if (starts[s].initializer.kind != EMBENG_INIT_DEFAULT)
			make_constant(&starts[s].initializer);
	}
	c.dim = part->columns;
	c.vocabulary_size = part->rows.count;
	c.slot_starts = starts;
	make_constant(&c.initializer);
	ret = embeng_model_add_table(model, &c);
	free(starts);
	return ret;
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

/* Rows [@first, @first + @count) of the part are made whole, and its columns written. */
static int fill_chunk(const struct hosts *h, const struct place_part *part, const char *slot,
		      struct kernel_fill *fill, size_t first, size_t count)
{
	int64_t *ids = malloc(count * sizeof(*ids));
	float *rows = malloc(count * fill->dim * sizeof(*rows));
	float *own = malloc(count * part->columns * sizeof(*own));
	struct port_fpu fpu;
	int ret = 0;

	if (!ids || !rows || !own)
		ret = fail(-ENOMEM, "there is no memory to fill rows");
	if (!ret) {
		fill->out = rows;
		fill->first_row = (uint64_t)(part->rows.first + (int64_t)first * part->rows.stride);
		port_fpu_begin(&fpu);
		kernel_fill_rows(fill, 0, count);
		port_fpu_end(&fpu);
		for (size_t i = 0; i < count; i++) {
			ids[i] = (int64_t)(first + i);
			memcpy(own + i * part->columns, rows + i * fill->dim + part->first_column,
			       part->columns * sizeof(*own));
		}
		ret = embeng_rows_write(h->owner, h->tables[part->table], slot, ids, count, own);
	}
	free(ids);
	free(rows);
	free(own);
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
	const struct table *t = &h->e->model->tables[table];
	struct embeng_rows rows = {.slot = (uint32_t)slot};
	const char *name = slot ? model_slot_name(h->e->model, table, slot) : NULL;
	struct kernel_fill fill;
	size_t most = FILL_FLOATS / (size_t)t->dim + 1;
	int ret = 0;

	if (!part)
		return 0;
	if (part->kind == PLACE_TABLE)
		return embeng_rows_fill(h->owner, h->tables[table], name, (int64_t)first, count,
					initializer);
	initializer_rows(t, initializer, &rows);
	fill = (struct kernel_fill){
		.kind = rows.fill,
		.slot = rows.slot,
		.seed = rows.seed,
		.dim = (uint32_t)t->dim,
		.a = float_of(rows.a),
		.b = float_of(rows.b),
		.stride = (uint64_t)t->dim,
		.row_step = (uint64_t)part->rows.stride,
	};
	count = part_rows_before(part, (int64_t)(first + count));
	first = part_rows_before(part, (int64_t)first);
	count -= first;
	for (size_t n; !ret && count; first += n, count -= n) {
		n = count < most ? count : most;
		ret = fill_chunk(h, part, name, &fill, first, n);
	}
	return ret;
}

int part_begin(const struct hosts *h)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < h->place.part_count; i++) {
		const struct place_part *part = &h->place.parts[i];
		const struct table *t = &h->e->model->tables[part->table];

		if (part->host != h->rank || part->kind == PLACE_TABLE)
			continue;
		if (t->initializer.kind != EMBENG_INIT_CONSTANT)
			ret = part_fill(h, part->table, 0, 0, (size_t)t->rows, &t->initializer);
		for (size_t s = 0; !ret && s < t->slot_count; s++) {
			struct embeng_initializer start = slot_start(t, s);

			if (start.kind != EMBENG_INIT_CONSTANT)
				ret = part_fill(h, part->table, s + 1, 0, (size_t)t->rows, &start);
		}
	}
	return ret;
}
