// SPDX-License-Identifier: MIT
/*
 * Restores a checkpoint into the tables of an engine. All rows are loaded into staged copies, which
 * are swapped in at once. If table memory does not hold both, all chunks are checked first and then
 * loaded in place.
 *
 * A struct restore lives for one call. The rows move behind the gate, with e->rows held; e->lock is
 * taken for each command.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/error.h"
#include "open.h"
#include "session/rows.h"

/* One table's parameters or one of its slots, in the model and in the checkpoint. */
struct array_pair {
	int table, array;
	int from_table, from_array;
};

struct restore {
	struct embeng *e;
	struct embeng_checkpoint *c;
	const char *dir;
	struct embeng_restore_options options;
	struct array_pair *pairs;
	size_t pair_count;
	uint64_t after;
	bool staged;  /* else in place */
	bool loading; /* in place: what fails from here on leaves a mixture */
	uint64_t done, total;
};

static uint64_t pair_row_bytes(const struct restore *r, const struct array_pair *pair)
{
	return 4 * (uint64_t)r->e->model->tables[pair->table].dim;
}

static uint64_t pair_bytes(const struct restore *r, const struct array_pair *pair)
{
	return pair_row_bytes(r, pair) * (uint64_t)r->e->model->tables[pair->table].rows;
}

/* Once rows are overwritten in place, going on is the only way to whole tables. */
static int tell_restored(struct restore *r)
{
	const struct embeng_progress p = {.what = "restore", .done = r->done, .total = r->total};

	if (!r->options.progress || !r->options.progress(r->options.progress_arg, &p))
		return 0;
	if (r->loading)
		return 0;
	return fail(-ECANCELED,
		    "embeng_restore: canceled after %" PRIu64 " of %" PRIu64
		    " bytes; the tables are as they were",
		    p.done, p.total);
}

/* -- what goes where ----------------------------------------------------- */

static void pair_arrays(struct restore *r, int table, int array, int from_table, int from_array)
{
	r->pairs[r->pair_count++] = (struct array_pair){table, array, from_table, from_array};
}

/* Slot of a table of the checkpoint by name, or -1. */
static int find_slot(const struct embeng_model *from, int table, const char *name)
{
	const char *slot;

	for (size_t i = 0; (slot = model_slot_name(from, table, i)); i++) {
		if (!strcmp(slot, name))
			return (int)i;
	}
	return -1;
}

/* Slots go by name: which optimizer keeps them does not matter. */
static int pair_slots(struct restore *r, int table, int from_table)
{
	const struct embeng_model *to = r->e->model, *from = embeng_checkpoint_model(r->c);

	for (size_t i = 0; i <= to->tables[table].slot_count; i++) {
		const char *name = model_slot_name(to, table, i);
		int from_array = find_slot(from, from_table, name);

		if (from_array >= 0)
			pair_arrays(r, table, (int)i, from_table, from_array);
		else if (!(r->options.flags & EMBENG_RESTORE_MISSING_SLOTS))
			return fail(-ENOENT,
				    "embeng_restore: table %s: slot %s is not in %s, which has the "
				    "slots of %s; EMBENG_RESTORE_MISSING_SLOTS leaves it as it is",
				    to->tables[table].name, name, r->dir,
				    from->tables[from_table].optimizer.kind
					    ? embeng_optimizer_text(
						      from->tables[from_table].optimizer.kind)
					    : "no optimizer");
	}
	return 0;
}

static int pair_table(struct restore *r, int table)
{
	const struct embeng_model *from = embeng_checkpoint_model(r->c);
	const struct table *t = &r->e->model->tables[table], *f;
	int from_table = embeng_model_table(from, t->name);

	if (from_table < 0) {
		if (r->options.flags & EMBENG_RESTORE_MISSING_TABLES)
			return 0;
		return fail(-ENOENT,
			    "embeng_restore: table %s is not in %s; "
			    "EMBENG_RESTORE_MISSING_TABLES leaves it as it is",
			    t->name, r->dir);
	}
	f = &from->tables[from_table];
	if (f->rows == t->rows && f->dim == t->dim)
		return pair_slots(r, table, from_table);
	if (r->options.flags & EMBENG_RESTORE_OTHER_SHAPES)
		return 0;
	return fail(-EINVAL,
		    "embeng_restore: table %s is %" PRId64 " x %" PRId64 ", in %s it is %" PRId64
		    " x %" PRId64 "; EMBENG_RESTORE_OTHER_SHAPES leaves it as it is",
		    t->name, t->rows, t->dim, r->dir, f->rows, f->dim);
}

/* Before a row moves; the engine would refuse it after all of them. */
static int check_step(const struct restore *r)
{
	uint64_t step = r->c->index.step;

	if (step <= EMBENG_STEP_COUNT_MAX)
		return 0;
	return fail(-ERANGE,
		    "embeng_restore: %s: its step count %" PRIu64 " leaves no room to count on, "
		    "at most %llu can be restored",
		    r->dir, step, EMBENG_STEP_COUNT_MAX);
}

static int pair_all(struct restore *r)
{
	size_t tables = r->e->model->table_count;
	int ret = 0;

	r->pairs = calloc(tables * ARRAYS_MAX + 1, sizeof(*r->pairs));
	if (!r->pairs)
		return fail(-ENOMEM, "embeng_restore: no memory for a list of tables");
	for (size_t t = 0; !ret && t < tables; t++)
		ret = pair_table(r, (int)t);
	for (size_t i = 0; i < r->pair_count; i++)
		r->total += pair_bytes(r, &r->pairs[i]);
	return ret;
}

/* -- into the engine ----------------------------------------------------- */

static int stage_array(struct restore *r, enum embeng_stage action, int table, int array)
{
	struct embeng_cmd cmd = {
		.opcode = EMBENG_OP_STAGE,
		.after = r->after,
		.arg = (uint64_t)table | (uint64_t)array << EMBENG_STAGE_SLOT_SHIFT |
		       (uint64_t)action << EMBENG_STAGE_ACTION_SHIFT,
	};
	int ret;

	pthread_mutex_lock(&r->e->lock);
	ret = transfer(r->e, &cmd, "embeng_restore", NULL);
	pthread_mutex_unlock(&r->e->lock);
	return ret;
}

/*
 * False if copies of everything would take memory that is not there: the system would not refuse
 * them, and kill a process once they are filled.
 */
static bool has_room_for_copies(const struct restore *r)
{
	struct device *d = r->e->device;
	uint64_t bytes = 0;

	for (size_t i = 0; i < r->pair_count; i++)
		bytes += pair_bytes(r, &r->pairs[i]);
	return !d->ops->room || bytes <= d->ops->room(d) / 20 * 19;
}

/* 0, and whether there is room for copies of everything. */
static int begin_staging(struct restore *r)
{
	int ret = has_room_for_copies(r) ? 0 : -ENOMEM;

	for (size_t i = 0; !ret && i < r->pair_count; i++)
		ret = stage_array(r, EMBENG_STAGE_BEGIN, r->pairs[i].table, r->pairs[i].array);
	r->staged = !ret;
	if (ret == -ENOSPC || ret == -ENOMEM) {
		r->total *= 2;
		ret = stage_array(r, EMBENG_STAGE_DROP, 0, 0);
	}
	return ret;
}

static int load_chunk(struct restore *r, const struct array_pair *pair, uint64_t first,
		      uint64_t count)
{
	const struct embeng_shard_rows rows = {(int64_t)first, 1, (int64_t)count};
	const struct rows_chunk chunk = {
		.what = "embeng_restore",
		.op = EMBENG_OP_ROWS_WRITE,
		.flags = r->staged ? EMBENG_CMD_STAGED : 0,
		.table = pair->table,
		.slot = pair->array,
		.after = r->after,
		.first = first,
		.stride = 1,
		.count = count,
	};
	int ret = checkpoint_gather(r->c, pair->from_table, pair->from_array, &rows,
				    rows_chunk_data(r->e));

	ret = ret ? ret : rows_chunk_run(r->e, &chunk);
	r->done += count * pair_row_bytes(r, pair);
	return ret ? ret : tell_restored(r);
}

/* In the order of rows, however they are sharded there. */
static int load_pair(struct restore *r, const struct array_pair *pair)
{
	uint64_t rows = (uint64_t)r->e->model->tables[pair->table].rows, most = 0;
	int ret = rows_chunk_room(r->e, pair->table, 1, &most);

	for (uint64_t at = 0; !ret && at < rows; at += most)
		ret = load_chunk(r, pair, at, rows - at < most ? rows - at : most);
	return ret;
}

/* The same without the engine: the first of two passes. */
static int verify_piece(struct restore *r, const struct checkpoint_piece *piece, uint64_t row,
			uint64_t most)
{
	uint64_t bytes = (uint64_t)piece->count * row;
	int ret = 0;

	for (uint64_t at = 0; !ret && at < bytes; at += most) {
		uint64_t n = bytes - at < most ? bytes - at : most;

		ret = checkpoint_check(r->c, piece, at, n);
		r->done += n;
		ret = ret ? ret : tell_restored(r);
	}
	return ret;
}

static int verify_pair(struct restore *r, const struct array_pair *pair)
{
	const struct checkpoint_piece *pieces;
	int count = checkpoint_pieces(r->c, pair->from_table, pair->from_array, &pieces);
	uint64_t row = pair_row_bytes(r, pair), most = 0;
	int ret = count < 0 ? count : rows_chunk_room(r->e, pair->table, 1, &most);

	for (int i = 0; !ret && i < count; i++)
		ret = verify_piece(r, &pieces[i], row, most * row);
	return ret;
}

static int each_pair(struct restore *r, int (*fn)(struct restore *r, const struct array_pair *pair))
{
	int ret = 0;

	for (size_t i = 0; !ret && i < r->pair_count; i++)
		ret = fn(r, &r->pairs[i]);
	return ret;
}

static int load_in_place(struct restore *r)
{
	struct embeng_error error = {.size = sizeof(error)};
	int ret = each_pair(r, verify_pair);

	if (ret)
		return ret;
	r->loading = true;
	ret = each_pair(r, load_pair);
	if (!ret)
		return 0;
	embeng_last_error(&error);
	return fail(ret,
		    "embeng_restore: rows were being replaced in place, the tables hold some "
		    "old and some new ones; restore again: %.350s",
		    error.text);
}

static int load_staged(struct restore *r)
{
	int ret = each_pair(r, load_pair);

	return ret ? ret : stage_array(r, EMBENG_STAGE_COMMIT, 0, 0);
}

/* @table: one of the model's, or -1: what all optimizers count */
static int write_step(struct restore *r, int table, uint64_t step)
{
	struct embeng *e = r->e;
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_STATE_WRITE,
				 .after = r->after,
				 .desc = region_part(&e->staging, 0, sizeof(uint64_t)),
				 .arg = (uint64_t)(table + 1)};
	int ret;

	memcpy(e->staging.data, &step, sizeof(step));
	pthread_mutex_lock(&e->lock);
	ret = transfer(e, &cmd, "embeng_restore", NULL);
	if (!ret)
		e->updates_before = r->c->index.step - r->after;
	pthread_mutex_unlock(&e->lock);
	return ret;
}

/* The first count makes those of all tables equal; then come those that were frozen. */
static int write_steps(struct restore *r)
{
	const struct index *from = &r->c->index;
	int ret = write_step(r, -1, from->step);

	for (size_t i = 0; !ret && from->frozen_steps && i < r->pair_count; i++) {
		const struct array_pair *pair = &r->pairs[i];

		if (!pair->array && table_has_optimizer(&r->e->model->tables[pair->table]))
			ret = write_step(r, pair->table,
					 from->step - from->frozen_steps[pair->from_table]);
	}
	return ret;
}

static int load_arrays(struct embeng *e, void *arg, uint64_t after)
{
	struct embeng_error error = {.size = sizeof(error)};
	struct restore *r = arg;
	int ret;

	(void)e;
	r->after = after;
	ret = begin_staging(r);
	ret = ret ? ret : tell_restored(r);
	ret = ret ? ret : r->staged ? load_staged(r) : load_in_place(r);
	if (!ret)
		return write_steps(r);
	/* The failure's sentence stays, whatever dropping says. */
	embeng_last_error(&error);
	stage_array(r, EMBENG_STAGE_DROP, 0, 0);
	return error_set(ret, error.status, "%s", error.text);
}

static int prepare_restore(struct restore *r, const struct embeng_restore_options *options)
{
	const uint32_t known = EMBENG_RESTORE_MISSING_TABLES | EMBENG_RESTORE_MISSING_SLOTS |
			       EMBENG_RESTORE_OTHER_SHAPES;
	int ret = session_check(r->e, "embeng_restore");

	if (!ret && !r->dir)
		ret = fail(-EINVAL, "embeng_restore: no folder given");
	if (!ret && options)
		ret = config_take(&r->options, options, sizeof(r->options),
				  "embeng_restore_options");
	if (!ret && (r->options.flags & ~known))
		ret = fail(-EINVAL, "embeng_restore: flags 0x%x, known are 0x%x", r->options.flags,
			   known);
	return ret;
}

int embeng_restore(struct embeng *e, const char *dir, const struct embeng_restore_options *options)
{
	struct restore r = {.e = e, .dir = dir};
	int ret = prepare_restore(&r, options);

	ret = ret ? ret : embeng_checkpoint_open(dir, &r.c, NULL);
	if (ret)
		return ret;
	ret = check_step(&r);
	ret = ret ? ret : pair_all(&r);
	ret = ret ? ret : rows_behind_gate(e, "embeng_restore", load_arrays, &r);
	free(r.pairs);
	embeng_checkpoint_close(r.c);
	return ret;
}
