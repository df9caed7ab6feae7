// SPDX-License-Identifier: MIT
/*
 * Restores a checkpoint into the tables of an engine. All rows are loaded into staged copies, which
 * are swapped in at once. If table memory does not hold both, all chunks and their numbers are checked
 * first and then loaded in place.
 *
 * A struct restore lives for one call. The rows move behind the gate, with e->rows held; e->lock is
 * taken for each command.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/error.h"
#include "restore.h"
#include "session/rows.h"
#include "stream.h"

/* Bytes of a row in the handle that has it, and in the checkpoint. */
static uint64_t pair_row_bytes(const struct array_pair *pair)
{
	return pair->to_columns * sizeof(float);
}

static uint64_t wide_row_bytes(const struct restore *r, const struct array_pair *pair)
{
	return model_row_bytes(&r->e->model->tables[pair->table], (size_t)pair->array);
}

/* Bytes of a copy of the whole array, with the rows that stay. */
static uint64_t copy_of_pair_bytes(const struct array_pair *pair)
{
	return pair_row_bytes(pair) * (uint64_t)pair->to_rows.count;
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

	pthread_mutex_lock(&r->to->lock);
	ret = transfer(r->to, &cmd, "embeng_restore", NULL);
	pthread_mutex_unlock(&r->to->lock);
	return ret;
}

/*
 * False if copies of everything would take memory that is not there: the system would not refuse
 * them, and kill a process once they are filled.
 */
static bool has_room_for_copies(const struct restore *r)
{
	struct device *d = r->to->device;
	uint64_t bytes = 0;

	for (size_t i = 0; i < r->pair_count; i++)
		bytes += copy_of_pair_bytes(&r->pairs[i]);
	return !d->ops->room || bytes <= d->ops->room(d) / 20 * 19;
}

/* 0, and whether there is room for copies of everything. */
static int begin_staging(struct restore *r)
{
	int ret = has_room_for_copies(r) ? 0 : -ENOMEM;

	for (size_t i = 0; !ret && i < r->pair_count; i++)
		ret = stage_array(r, EMBENG_STAGE_BEGIN, r->pairs[i].to_table, r->pairs[i].array);
	r->staged = !ret;
	if (ret == -ENOSPC || ret == -ENOMEM) {
		r->total *= 2;
		ret = stage_array(r, EMBENG_STAGE_DROP, 0, 0);
	}
	return ret;
}

static int run_restore_chunk(struct restore *r, const struct array_pair *pair,
			     enum embeng_opcode op, uint64_t first, uint64_t count)
{
	const struct rows_chunk chunk = {
		.what = "embeng_restore",
		.op = op,
		.flags = r->staged && op == EMBENG_OP_ROWS_WRITE ? EMBENG_CMD_STAGED : 0,
		.table = pair->to_table,
		.slot = pair->array,
		.after = r->after,
		.first = first,
		.stride = 1,
		.count = count,
	};

	return rows_chunk_run(r->to, &chunk);
}

/* Where whole rows are read to, if the handle has some of their columns. */
static int make_wide(struct restore *r, uint64_t bytes)
{
	if (bytes <= r->wide_bytes)
		return 0;
	free(r->wide);
	r->wide = malloc(bytes);
	r->wide_bytes = r->wide ? bytes : 0;
	return r->wide ? 0 : fail(-ENOMEM, "embeng_restore: no memory for rows");
}

static void pick_columns(struct restore *r, const struct array_pair *pair, uint64_t count,
			 char *data)
{
	const uint64_t row = pair_row_bytes(pair), wide = wide_row_bytes(r, pair);

	for (uint64_t k = 0; k < count; k++)
		memcpy(data + k * row, r->wide + k * wide + pair->to_first * sizeof(float), row);
}

/* Reads rows of the checkpoint into the memory of a chunk, and looks at their numbers. */
static int read_chunk(struct restore *r, struct array_pair *pair, uint64_t first, uint64_t count)
{
	const struct embeng_shard_rows rows = {
		.first = pair->to_rows.first + (int64_t)first * pair->to_rows.stride,
		.stride = pair->to_rows.stride,
		.count = (int64_t)count,
	};
	const bool cut = pair_row_bytes(pair) != wide_row_bytes(r, pair);
	char *data = rows_chunk_data(r->to);
	int ret = cut ? make_wide(r, count * wide_row_bytes(r, pair)) : 0;
	char *read = cut ? r->wide : data;

	if (!ret && r->parts && !r->replacing)
		ret = r->parts->beat(r);
	ret = ret ? ret : checkpoint_gather(r->c, pair->from_table, pair->from_array, &rows, read);
	if (!ret && !r->loading)
		ret = restore_check_numbers(r, pair, &rows, (const float *)(const void *)read);
	if (!ret && cut)
		pick_columns(r, pair, count, data);
	r->done += count * pair_row_bytes(pair);
	return ret;
}

static int load_chunk(struct restore *r, struct array_pair *pair, uint64_t first, uint64_t count)
{
	int ret = read_chunk(r, pair, first, count);

	ret = ret ? ret : run_restore_chunk(r, pair, EMBENG_OP_ROWS_WRITE, first, count);
	return ret ? ret : tell_restored(r);
}

/* The same without the engine: the first of two passes. */
static int verify_chunk(struct restore *r, struct array_pair *pair, uint64_t first, uint64_t count)
{
	int ret = read_chunk(r, pair, first, count);

	return ret ? ret : tell_restored(r);
}

/* Rows that the checkpoint does not have: the copy gets what the table holds. */
static int keep_chunk(struct restore *r, struct array_pair *pair, uint64_t first, uint64_t count)
{
	int ret = run_restore_chunk(r, pair, EMBENG_OP_ROWS_READ, first, count);

	ret = ret ? ret : run_restore_chunk(r, pair, EMBENG_OP_ROWS_WRITE, first, count);
	return ret ? ret : tell_restored(r);
}

static int each_chunk(struct restore *r, struct array_pair *pair, uint64_t first, uint64_t end,
		      int (*fn)(struct restore *r, struct array_pair *pair, uint64_t first,
				uint64_t count))
{
	uint64_t most = 0;
	int ret = rows_chunk_room(r->to, pair->to_table, 1, &most);

	for (uint64_t at = first; !ret && at < end; at += most)
		ret = fn(r, pair, at, end - at < most ? end - at : most);
	return ret;
}

/* In the order of rows, however they are sharded there. */
static int load_pair(struct restore *r, struct array_pair *pair)
{
	uint64_t all = (uint64_t)pair->to_rows.count;
	int ret = each_chunk(r, pair, 0, pair->rows, load_chunk);

	if (ret || !r->staged)
		return ret;
	return each_chunk(r, pair, pair->rows, all, keep_chunk);
}

static int verify_pair(struct restore *r, struct array_pair *pair)
{
	return each_chunk(r, pair, 0, pair->rows, verify_chunk);
}

static int each_pair(struct restore *r, int (*fn)(struct restore *r, struct array_pair *pair))
{
	int ret = 0;

	for (size_t i = 0; !ret && i < r->pair_count; i++)
		ret = fn(r, &r->pairs[i]);
	return ret;
}

static int load_in_place(struct restore *r)
{
	struct embeng_error error = {.size = sizeof(error)};
	int ret;

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

/* Until here the tables are as they were. */
static int make_rows_ready(struct restore *r)
{
	int ret = begin_staging(r);

	ret = ret ? ret : tell_restored(r);
	ret = ret ? ret : each_pair(r, r->staged ? load_pair : verify_pair);
	return r->parts ? r->parts->agree(r, ret) : ret;
}

static int swap_in_rows(struct restore *r)
{
	r->replacing = true;
	return r->staged ? stage_array(r, EMBENG_STAGE_COMMIT, 0, 0) : load_in_place(r);
}

/* @table: one of the model's, or -1: what all optimizers count */
static int write_step(struct restore *r, int table, uint64_t step)
{
	struct embeng *e = r->to;
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_STATE_WRITE,
				 .after = r->after,
				 .desc = region_part(&e->staging, 0, sizeof(uint64_t)),
				 .arg = (uint64_t)(table + 1)};
	int ret;

	memcpy(e->staging.data, &step, sizeof(step));
	pthread_mutex_lock(&e->lock);
	ret = transfer(e, &cmd, "embeng_restore", NULL);
	if (!ret)
		step_set(e, r->after, r->c->index.step);
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
			ret = write_step(r, pair->to_table,
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
	ret = make_rows_ready(r);
	ret = ret ? ret : swap_in_rows(r);
	if (!ret)
		return write_steps(r);
	/* The failure's sentence stays, whatever dropping says. */
	embeng_last_error(&error);
	stage_array(r, EMBENG_STAGE_DROP, 0, 0);
	return error_set(ret, error.status, "%s", error.text);
}

static int check_restore_flags(uint32_t flags)
{
	const uint32_t known = EMBENG_RESTORE_MISSING_TABLES | EMBENG_RESTORE_MISSING_SLOTS |
			       EMBENG_RESTORE_OTHER_SHAPES | EMBENG_RESTORE_OTHER_OPTIMIZER |
			       EMBENG_RESTORE_STEP;

	if (!(flags & ~known))
		return 0;
	return fail(-EINVAL, "embeng_restore: flags 0x%x, known are 0x%x", flags, known);
}

static int check_restore_report(const struct embeng_restore_report *report)
{
	if (!report || report->size >= sizeof(*report))
		return 0;
	return fail(-EINVAL,
		    "embeng_restore: the report's size is %zu, it is %zu bytes here; set size = "
		    "sizeof(struct embeng_restore_report)",
		    report->size, sizeof(*report));
}

static int prepare_restore(struct restore *r, const struct embeng_restore_options *options)
{
	int ret = 0;

	if (options)
		ret = config_take(&r->options, options, sizeof(r->options),
				  "embeng_restore_options");
	ret = ret ? ret : check_restore_flags(r->options.flags);
	ret = ret ? ret : check_restore_report(r->options.report);
	if (!ret && r->options.name_count && !r->options.names)
		ret = fail(-EINVAL, "embeng_restore: name_count is %zu, and names is NULL",
			   r->options.name_count);
	return ret;
}

/* The caller's structure may be longer than ours. */
void restore_give_report(const struct restore *r)
{
	struct embeng_restore_report *out = r->options.report;
	size_t size = out ? out->size : 0;

	if (!out)
		return;
	*out = r->report;
	out->size = size;
}

/* From the checkpoint that is open, and closes it. */
static int restore_opened(struct restore *r)
{
	int ret = check_step(r);

	ret = ret ? ret : restore_pair_all(r);
	if (!ret)
		restore_note_settings(r);
	if (!ret && r->parts)
		ret = r->parts->choose(r);
	ret = ret ? ret : rows_behind_gate(r->to, "embeng_restore", load_arrays, r);
	free(r->wide);
	free(r->pairs);
	embeng_checkpoint_close(r->c);
	return ret;
}

int restore_folder(struct restore *r, const struct embeng_restore_options *options)
{
	int ret = prepare_restore(r, options);

	if (!ret && !r->dir)
		ret = fail(-EINVAL, "embeng_restore: no folder given");
	if (!ret && (r->options.flags & EMBENG_RESTORE_STEP))
		ret = checkpoint_open_step(r->dir, r->options.step, &r->c);
	else if (!ret)
		ret = embeng_checkpoint_open(r->dir, &r->c, NULL);
	return ret ? ret : restore_opened(r);
}

int embeng_restore(struct embeng *e, const char *dir, const struct embeng_restore_options *options)
{
	struct restore r = {.e = e, .to = e, .dir = dir};
	int ret = session_check(e, "embeng_restore");

	if (!ret && e->calls)
		return e->calls->restore(e, dir, options);
	ret = ret ? ret : restore_folder(&r, options);
	if (!ret)
		restore_give_report(&r);
	return ret;
}

/* A stream has no other checkpoint to choose. */
static int check_step_of_stream(const struct restore *r)
{
	if (!(r->options.flags & EMBENG_RESTORE_STEP) || r->c->index.step == r->options.step)
		return 0;
	return fail(-ENODATA,
		    "embeng_restore_stream: the stream has the checkpoint of step %" PRIu64
		    ", and step %" PRIu64 " is wanted; the tables are as they were",
		    r->c->index.step, r->options.step);
}

int embeng_restore_stream(struct embeng *e, const struct embeng_reader *from,
			  const struct embeng_restore_options *options)
{
	struct restore r = {.e = e, .to = e, .dir = STREAM_NAME};
	int ret = session_check_alone(e, "embeng_restore");

	ret = ret ? ret : prepare_restore(&r, options);
	ret = ret ? ret
		  : checkpoint_open_stream(from, "embeng_restore_stream", r.options.progress,
					   r.options.progress_arg, &r.c);
	if (ret)
		return ret;
	ret = check_step_of_stream(&r);
	if (ret) {
		embeng_checkpoint_close(r.c);
		return ret;
	}
	ret = restore_opened(&r);
	if (!ret)
		restore_give_report(&r);
	return ret;
}
