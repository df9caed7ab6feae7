// SPDX-License-Identifier: MIT
/*
 * Snapshots of the tables, for whoever reads all of them while training goes on. The device keeps
 * the old contents of the rows that change meanwhile (SNAPSHOT in uapi/embeng_engine.h), so nobody
 * waits for the reader longer than for one read.
 *
 * A struct snapshot and its memory belong to the caller, who holds e->saves from snapshot_begin() to
 * snapshot_end(). e->lock is taken for each command, and is not held while waiting.
 */
#include "snapshot.h"

#include <string.h>

#include "base/clock.h"
#include "wait.h"

/*
 * Bytes of one read: a step that comes meanwhile waits for as long as copying them takes. A read that
 * had to wait for a step is followed by a larger one, so that a save ends in time beside long steps:
 * one that takes, at a byte in a nanosecond, a quarter of such a step.
 */
#define READ_BYTES (256u << 10)
#define READ_BYTES_MOST (32u << 20)
#define STEP_SHARE 4

/* The device has memory at hand for old rows of a quarter of the tables, before steps need it. */
#define TABLES_SHARE 4

/* Old drivers refuse the opcode, old devices the command. */
static bool is_unknown(int code, const struct embeng_cqe *answer)
{
	return code == -EOPNOTSUPP || (!code && answer->status == EMBENG_STATUS_OPCODE);
}

static bool is_out_of_memory(const struct embeng_cqe *answer)
{
	return answer->status == EMBENG_STATUS_NO_MEMORY ||
	       answer->status == EMBENG_STATUS_NO_SPACE;
}

static int run_snapshot(struct snapshot *s, uint64_t after)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_SNAPSHOT,
				 .after = after,
				 .desc = region_part(&s->memory, 0, sizeof(s->updates))};
	struct embeng_cqe answer = {0};
	int ret = transfer_quietly(s->e, &cmd, &answer);

	if (is_unknown(ret, &answer) || (!ret && is_out_of_memory(&answer)))
		return fail(-ENOTSUP, "%s: the device takes no snapshot of its tables", s->what);
	if (!ret && answer.status)
		ret = command_error(s->what, &answer);
	if (ret)
		return ret;
	s->number = (uint32_t)answer.value;
	memcpy(&s->updates, s->memory.data, sizeof(s->updates));
	return 0;
}

/* A share of the tables and of the memory that there is; a refill follows each read. */
static uint64_t choose_ahead(struct embeng *e)
{
	uint64_t bytes = 0, room;

	if (!e->device->ops->prepare || !e->device->ops->room)
		return 0;
	for (size_t i = 0; i < e->model->table_count; i++) {
		const struct table *t = &e->model->tables[i];

		bytes += (uint64_t)t->rows * model_whole_row_bytes(t);
	}
	room = e->device->ops->room(e->device);
	return (bytes < room ? bytes : room) / TABLES_SHARE;
}

static void prepare_rows(const struct snapshot *s)
{
	if (s->ahead)
		s->e->device->ops->prepare(s->e->device, s->ahead);
}

int snapshot_begin(struct snapshot *s, struct embeng *e, const char *what, rows_body body,
		   void *arg)
{
	uint64_t after;
	int ret;

	*s = (struct snapshot){.e = e, .what = what, .bytes = READ_BYTES, .ahead = choose_ahead(e)};
	ret = region_grow(e, &s->memory, READ_BYTES);
	if (ret)
		return ret;
	prepare_rows(s);
	pthread_mutex_lock(&e->lock);
	ret = gate_enter(e, deadline_in(0), what, &after);
	if (!ret) {
		ret = run_snapshot(s, after);
		pthread_mutex_unlock(&e->lock);
		ret = ret ? ret : body(e, arg, after);
		pthread_mutex_lock(&e->lock);
		gate_leave(e);
	}
	pthread_mutex_unlock(&e->lock);
	return ret;
}

int snapshot_room(struct snapshot *s, int table, uint64_t stride, uint64_t *most)
{
	int ret = rows_chunk_room_in(s->e, &s->memory, s->bytes, table, stride, most);

	if (!ret || s->bytes == READ_BYTES)
		return ret;
	s->bytes = READ_BYTES;
	return rows_chunk_room_in(s->e, &s->memory, s->bytes, table, stride, most);
}

/* After a read that took so long, mostly for the step before it. */
static void choose_size(struct snapshot *s, uint64_t ns)
{
	uint64_t wanted = ns / STEP_SHARE;

	s->bytes = wanted < READ_BYTES ? READ_BYTES : wanted;
	s->bytes = s->bytes > READ_BYTES_MOST ? READ_BYTES_MOST : s->bytes;
}

/* @rows: has the rows alone; the other fields are filled in here. */
static int run_read(struct snapshot *s, int table, int slot, struct rows_chunk rows,
		    const char **data)
{
	struct embeng_error error = {.size = sizeof(error)};
	uint64_t began = now_ns();
	int ret;

	rows.what = s->what;
	rows.op = EMBENG_OP_SNAPSHOT_READ;
	rows.arg = s->number;
	rows.table = table;
	rows.slot = slot;
	ret = rows_chunk_run_in(s->e, &s->memory, &rows);
	*data = rows_chunk_data_in(&s->memory);
	choose_size(s, now_ns() - began);
	prepare_rows(s);
	if (!ret)
		return 0;
	embeng_last_error(&error);
	return error.status == EMBENG_STATUS_SNAPSHOT ? -ESTALE : ret;
}

int snapshot_read(struct snapshot *s, int table, int slot, const struct embeng_shard_rows *rows,
		  const char **data)
{
	const struct rows_chunk chunk = {.first = (uint64_t)rows->first,
					 .stride = (uint64_t)rows->stride,
					 .count = (uint64_t)rows->count};

	return run_read(s, table, slot, chunk, data);
}

int snapshot_pick(struct snapshot *s, int table, int slot, const uint64_t *rows, uint64_t count,
		  const char **data)
{
	const struct rows_chunk chunk = {.ids = rows, .count = count};

	return run_read(s, table, slot, chunk, data);
}

static void let_go(struct snapshot *s, uint64_t tables)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_SNAPSHOT_END,
				 .arg = s->number | tables << EMBENG_SNAPSHOT_TABLES_SHIFT};
	struct embeng_cqe ignored;

	if (!s->number)
		return;
	pthread_mutex_lock(&s->e->lock);
	(void)transfer_quietly(s->e, &cmd, &ignored);
	pthread_mutex_unlock(&s->e->lock);
}

void snapshot_pass(struct snapshot *s, size_t tables)
{
	if (tables)
		let_go(s, tables);
}

/* The sentence of a failure before stays the last one. */
void snapshot_end(struct snapshot *s)
{
	struct embeng_error error = {.size = sizeof(error)};

	embeng_last_error(&error);
	let_go(s, UINT32_MAX);
	s->number = 0;
	if (s->ahead)
		s->e->device->ops->prepare(s->e->device, 0);
	region_free(s->e->device, &s->memory);
	if (error.code)
		error_set(error.code, error.status, "%s", error.text);
}
