// SPDX-License-Identifier: MIT
/*
 * The source of a save whose rows are the tables of an open engine.
 *
 * The rows are read from a snapshot, so that steps go on meanwhile; e->saves is held for all of them.
 * Where the device has no snapshot, or no memory to keep one, the rows are read behind the gate, which
 * holds updates back, and e->rows is held. e->lock is taken for each command. The model in the index
 * is the engine's own and is not freed with it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/error.h"
#include "save.h"
#include "stream.h"

/* @table: one of the model's, or -1: what all optimizers count */
static int read_step(struct save *s, int table, uint64_t *step)
{
	struct embeng *e = s->e;
	const struct region *memory = s->held ? &e->staging : &s->snapshot.memory;
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_STATE_READ,
				 .after = s->after,
				 .desc = region_part(memory, 0, sizeof(uint64_t)),
				 .arg = (uint64_t)(table + 1)};
	int ret;

	pthread_mutex_lock(&e->lock);
	ret = transfer(e, &cmd, s->source->what, NULL);
	pthread_mutex_unlock(&e->lock);
	if (!ret)
		memcpy(step, memory->data, sizeof(*step));
	return ret;
}

/* A table that was frozen has taken fewer steps than the model. */
static int read_frozen_steps(struct save *s)
{
	int ret;

	free(s->index.frozen_steps);
	ret = index_make_frozen(&s->index, NULL);

	for (size_t t = 0; !ret && t < s->index.model->table_count; t++) {
		uint64_t own = s->index.step;

		if (table_has_optimizer(&s->index.model->tables[t]))
			ret = read_step(s, (int)t, &own);
		s->index.frozen_steps[t] = s->index.step - own;
	}
	return ret;
}

int save_read_steps(struct save *s)
{
	int ret = read_step(s, -1, &s->index.step);

	return ret ? ret : read_frozen_steps(s);
}

static int save_behind_gate(struct embeng *e, void *arg, uint64_t after)
{
	struct save *s = arg;
	int ret;

	(void)e;
	s->held = true;
	s->after = after;
	ret = save_read_steps(s);
	return ret ? ret : save_rows(s);
}

static int begin_save(struct save *s)
{
	s->index.model = s->e->model;
	s->index.model_hash = s->e->model_hash;
	s->index.program_state = (char *)(uintptr_t)s->options.program_state;
	return 0;
}

/* Before the first update that the snapshot does not have. */
static int read_snapshot_steps(struct embeng *e, void *arg, uint64_t after)
{
	struct save *s = arg;

	(void)e;
	s->after = after;
	s->index.step = s->snapshot.updates;
	return read_frozen_steps(s);
}

static int save_snapshot(struct save *s)
{
	int ret = snapshot_begin(&s->snapshot, s->e, s->source->what, read_snapshot_steps, s);

	ret = ret ? ret : save_rows(s);
	snapshot_end(&s->snapshot);
	return ret;
}

/* Without a snapshot, or with one that outgrew the memory, updates have to wait. */
static int rows_of_engine(struct save *s)
{
	int ret;

	pthread_mutex_lock(&s->e->saves);
	ret = save_snapshot(s);
	if (ret == -ENOTSUP || ret == -ESTALE) {
		log_say(&s->e->log, EMBENG_LOG_INFO,
			"%s: no memory for a snapshot of the tables: updates wait until their rows "
			"are written",
			s->source->what);
		save_forget_rows(s);
		ret = rows_behind_gate(s->e, s->source->what, save_behind_gate, s);
		if (!ret && !s->stream)
			ret = save_sync_rows(s);
	}
	pthread_mutex_unlock(&s->e->saves);
	return ret;
}

int save_engine_room(struct save *s, size_t table, uint64_t stride, uint64_t *most)
{
	if (s->held)
		return rows_chunk_room(s->e, (int)table, stride, most);
	return snapshot_room(&s->snapshot, (int)table, stride, most);
}

static void pass_tables(struct save *s, size_t tables)
{
	if (!s->held)
		snapshot_pass(&s->snapshot, tables);
}

int save_engine_read(struct save *s, size_t table, size_t array,
		     const struct embeng_shard_rows *rows, const char **data)
{
	const struct rows_chunk chunk = {
		.what = s->source->what,
		.op = EMBENG_OP_ROWS_READ,
		.table = (int)table,
		.slot = (int)array,
		.after = s->after,
		.first = (uint64_t)rows->first,
		.stride = (uint64_t)rows->stride,
		.count = (uint64_t)rows->count,
	};

	if (!s->held)
		return snapshot_read(&s->snapshot, (int)table, (int)array, rows, data);
	*data = rows_chunk_data(s->e);
	return rows_chunk_run(s->e, &chunk);
}

static int pick_engine_rows(struct save *s, size_t table, size_t array, const uint64_t *numbers,
			    uint64_t count, const char **data)
{
	const struct rows_chunk chunk = {
		.what = s->source->what,
		.op = EMBENG_OP_ROWS_READ,
		.table = (int)table,
		.slot = (int)array,
		.after = s->after,
		.ids = numbers,
		.count = count,
	};

	if (!s->held)
		return snapshot_pick(&s->snapshot, (int)table, (int)array, numbers, count, data);
	*data = rows_chunk_data(s->e);
	return rows_chunk_run(s->e, &chunk);
}

/* With the name of the public call. */
#define ENGINE_SOURCE(name) \
	{ \
		.what = (name), \
		.progress = "save", \
		.begin = begin_save, \
		.rows = rows_of_engine, \
		.room = save_engine_room, \
		.read = save_engine_read, \
		.pick = pick_engine_rows, \
		.passed = pass_tables, \
	}
static const struct save_source engine_source = ENGINE_SOURCE("embeng_save");
static const struct save_source stream_source = ENGINE_SOURCE("embeng_save_stream");

int save_take_options(struct save *s, const struct embeng_save_options *options)
{
	int ret = 0;

	if (options)
		ret = config_take(&s->options, options, sizeof(s->options), "embeng_save_options");
	return ret ? ret : save_check_options(s, s->e->model);
}

int embeng_save(struct embeng *e, const char *dir, const struct embeng_save_options *options)
{
	struct save s = {.source = &engine_source, .e = e, .dir = dir};
	int ret = session_check(e, engine_source.what);

	if (!ret && e->calls)
		return e->calls->save(e, dir, options);
	ret = ret ? ret : save_take_options(&s, options);
	if (!ret && !dir)
		ret = fail(-EINVAL, "embeng_save: no folder given");
	ret = ret ? ret : save_run(&s);
	free(s.buffer);
	return ret;
}

/* There is nothing yet in a stream that could be kept, or that a delta could stand on. */
static int refuse_folder_options(const struct save *s)
{
	if (s->options.flags & EMBENG_SAVE_DELTA)
		return fail(-EINVAL,
			    "embeng_save_stream: EMBENG_SAVE_DELTA is for a folder, whose "
			    "checkpoint the delta stands on; save there, and pack the folder with "
			    "embeng_checkpoint_pack()");
	if (s->options.keep)
		return fail(-EINVAL,
			    "embeng_save_stream: keep is %u, and a stream holds one checkpoint; "
			    "set it to 0",
			    s->options.keep);
	return 0;
}

int embeng_save_stream(struct embeng *e, const struct embeng_writer *to,
		       const struct embeng_save_options *options)
{
	struct stream_out out = {0};
	struct save s = {.source = &stream_source, .e = e, .dir = STREAM_NAME, .stream = &out};
	int ret = session_check_alone(e, stream_source.what);

	ret = ret ? ret : save_take_options(&s, options);
	ret = ret ? ret : refuse_folder_options(&s);
	ret = ret ? ret : stream_out_take(&out, to, s.source->what);
	ret = ret ? ret : save_run_stream(&s);
	free(s.buffer);
	return ret;
}
