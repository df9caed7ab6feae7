// SPDX-License-Identifier: MIT
/*
 * Reads and writes a host's part of a table, and computes the values that its rows start with, by
 * the library's initializers or by a function of the program.
 *
 * Data belong to the caller. The locks are taken by rows_move(); the program's function is called
 * without any.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "host/port.h"
#include "model/initializer.h"
#include "session/rows.h"

#include "../../../engine/kernels/fill.h"

#define PIECE_BYTES (1u << 20)

static int find_shard_table(const char *what, const struct embeng_model *model, int table,
			    const struct table **t)
{
	if (table < 0 || (size_t)table >= model->table_count)
		return fail(-ENOENT, "%s: table %d, the model has %zu", what, table,
			    model->table_count);
	*t = &model->tables[table];
	return 0;
}

static int move_shard_rows(struct embeng *e, const char *what, bool write, int table,
			   const char *slot, const struct embeng_shard *shard, int64_t first,
			   size_t count, float *data)
{
	struct embeng_shard_rows rows;
	const struct table *t;
	int ret = session_check_alone(e, what);

	ret = ret ? ret : find_shard_table(what, e->model, table, &t);
	ret = ret ? ret : shard_range(what, shard, t->name, t->rows, first, count, &rows);
	return ret ? ret : rows_move(e, what, write, table, slot, &rows, data);
}

int embeng_shard_read(struct embeng *e, int table, const char *slot,
		      const struct embeng_shard *shard, int64_t first, size_t count, float *data)
{
	return move_shard_rows(e, "embeng_shard_read", false, table, slot, shard, first, count,
			       data);
}

int embeng_shard_write(struct embeng *e, int table, const char *slot,
		       const struct embeng_shard *shard, int64_t first, size_t count,
		       const float *data)
{
	/* Only read, since it is a write. */
	return move_shard_rows(e, "embeng_shard_write", true, table, slot, shard, first, count,
			       (float *)(uintptr_t)data);
}

/* In the engine's mode, whatever the caller's is. */
static void fill_shard_rows(const struct table *t, const struct embeng_rows *how,
			    const struct embeng_shard_rows *rows, float *data)
{
	uint64_t width = model_width(t, how->slot);
	struct kernel_fill fill = {
		.kind = how->fill,
		.slot = how->slot,
		.seed = how->seed,
		.dim = (uint32_t)width,
		.out = data,
		.stride = width,
		.first_row = (uint64_t)rows->first,
		.row_step = (uint64_t)rows->stride,
	};
	struct port_fpu fpu;

	memcpy(&fill.a, &how->a, sizeof(fill.a));
	memcpy(&fill.b, &how->b, sizeof(fill.b));
	if (table_is_part(t)) {
		/* No row behind the last one is filled, whatever its number overflows to. */
		fill.first_row = (uint64_t)t->part.first_row +
				 (uint64_t)rows->first * (uint64_t)t->part.row_step;
		fill.row_step *= (uint64_t)t->part.row_step;
		fill.first_column = table_first_column(t, how->slot);
	}
	port_fpu_begin(&fpu);
	kernel_fill_rows(&fill, 0, (uint64_t)rows->count);
	port_fpu_end(&fpu);
}

int embeng_shard_start(const struct embeng_model *model, int table, const char *slot,
		       const struct embeng_shard *shard, int64_t first, size_t count, float *data)
{
	const char *what = "embeng_shard_start";
	struct embeng_rows how = {.table = (uint32_t)table};
	struct embeng_initializer given;
	struct embeng_shard_rows rows;
	const struct table *t;
	int array, ret;

	if (!model || (count && !data))
		return fail(-EINVAL, "%s: a model and data must be given", what);
	array = model_slot(model, table, slot ? slot : "parameters");
	ret = array < 0 ? array : find_shard_table(what, model, table, &t);
	ret = ret ? ret : shard_range(what, shard, t->name, t->rows, first, count, &rows);
	if (ret)
		return ret;
	how.slot = (uint32_t)array;
	given = array ? slot_start(t, (size_t)array - 1) : t->initializer;
	initializer_rows(t, &given, &how);
	fill_shard_rows(t, &how, &rows, data);
	return 0;
}

/* -- initializers of the program ----------------------------------------- */

struct initialize {
	struct embeng *e;
	const struct table *t;
	embeng_shard_fn fn;
	void *arg;
	struct embeng_shard_part part;
	float *data;
	int64_t most; /* rows of a piece */
};

static int fill_piece(struct initialize *i)
{
	const char *what = "embeng_shard_initialize";

	if (i->fn(i->arg, &i->part, i->data))
		return fail(-ECANCELED,
			    "%s: table %s, %s: the initializer gave up at row %lld of host %u; the "
			    "rows before are filled",
			    what, i->t->name, i->part.slot, (long long)i->part.rows.first,
			    i->part.shard.host);
	return rows_move(i->e, what, true, i->part.table, i->part.slot, &i->part.rows, i->data);
}

static int fill_host(struct initialize *i)
{
	const struct embeng_shard *shard = &i->part.shard;
	struct embeng_shard_rows all = shard_rows(shard->sharding, shard->hosts, shard->host,
						  i->t->rows);
	int ret = 0;

	for (int64_t at = 0; !ret && at < all.count; at += i->most) {
		i->part.place = at;
		i->part.rows = (struct embeng_shard_rows){
			.first = all.first + at * all.stride,
			.stride = all.stride,
			.count = all.count - at < i->most ? all.count - at : i->most};
		ret = fill_piece(i);
	}
	return ret;
}

static int fill_hosts(struct initialize *i)
{
	uint32_t hosts = shard_hosts(i->part.shard.hosts, i->t->rows);
	size_t row = (size_t)i->part.dim * sizeof(float);
	int ret = 0;

	i->most = row < PIECE_BYTES ? (int64_t)(PIECE_BYTES / row) : 1;
	i->data = calloc((size_t)i->most, row);
	if (!i->data)
		return fail(-ENOMEM, "embeng_shard_initialize: no memory for rows of table %s",
			    i->t->name);
	for (uint32_t host = 0; !ret && host < hosts; host++) {
		i->part.shard.host = host;
		ret = fill_host(i);
	}
	free(i->data);
	return ret;
}

int embeng_shard_initialize(struct embeng *e, int table, const char *slot, embeng_shard_fn fn,
			    void *arg)
{
	const char *what = "embeng_shard_initialize";
	struct initialize i = {.e = e, .fn = fn, .arg = arg};
	int array, ret = session_check_alone(e, what);

	if (!ret && !fn)
		ret = fail(-EINVAL, "%s: an initializer must be given", what);
	ret = ret ? ret : find_shard_table(what, e->model, table, &i.t);
	if (ret)
		return ret;
	array = model_slot(e->model, table, slot ? slot : "parameters");
	if (array < 0)
		return array;
	i.part = (struct embeng_shard_part){
		.size = sizeof(i.part),
		.shard = {.size = sizeof(i.part.shard),
			  .sharding = e->model->engine.sharding,
			  .hosts = e->model->engine.hosts},
		.table = table,
		.slot = model_slot_name(e->model, table, (size_t)array),
		.table_rows = i.t->rows,
		.dim = (int64_t)model_width(i.t, (size_t)array),
	};
	return fill_hosts(&i);
}
