// SPDX-License-Identifier: MIT
/*
 * Reads, writes and fills rows of tables and slots. Rows go through staging memory in chunks, or
 * directly if the caller's data lie in a buffer.
 *
 * e->rows is held for a whole transfer, since it has the staging memory for itself; it is taken
 * before e->lock, which is held only while a command is submitted and waited for.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/ask.h"
#include "model/initializer.h"
#include "model/numbers.h"
#include "rows.h"
#include "wait.h"

struct rows_call {
	struct embeng *e;
	const char *what;
	enum embeng_opcode op;
	int table;
	int slot;
	uint64_t after;
	const int64_t *ids;
	uint64_t first, stride, count; /* rows first, first + stride, ...; stride 0 is 1 */
	char *data;		       /* the caller's */
	struct embeng_mem in_place;    /* all data, if they lie in a buffer */
	struct buffer *buffer;
};

int rows_behind_gate(struct embeng *e, const char *what, rows_body body, void *arg)
{
	uint64_t after;
	int ret;

	pthread_mutex_lock(&e->rows);
	pthread_mutex_lock(&e->lock);
	ret = gate_enter(e, deadline_in(0), what, &after);
	if (!ret) {
		pthread_mutex_unlock(&e->lock);
		ret = region_grow(e, &e->staging, layout_staging_of(0, 0));
		ret = ret ? ret : body(e, arg, after);
		pthread_mutex_lock(&e->lock);
		gate_leave(e);
	}
	pthread_mutex_unlock(&e->lock);
	pthread_mutex_unlock(&e->rows);
	return ret;
}

struct rows_fill {
	const char *what;
	struct embeng_rows rows;
};

static int check_call_rows(const struct rows_call *c)
{
	const struct table *t = &c->e->model->tables[c->table];
	uint64_t rows = (uint64_t)t->rows;

	/* A shard's rows were checked as such. */
	if (c->stride > 1)
		return 0;
	if (!c->ids && (c->first > rows || c->count > rows - c->first))
		return fail(-ERANGE,
			    "%s: rows %" PRIu64 " to %" PRIu64 " of table %s, which has %" PRIu64,
			    c->what, c->first, c->first + c->count - 1, t->name, rows);
	for (uint64_t k = 0; c->ids && k < c->count; k++)
		if (c->ids[k] < 0 || c->ids[k] >= t->rows)
			return fail(-ERANGE,
				    "%s: position %" PRIu64 ": row %" PRId64
				    " is outside table %s, "
				    "which has rows 0 to %" PRId64,
				    c->what, k, c->ids[k], t->name, t->rows - 1);
	return 0;
}

static int find_slot_of(struct embeng *e, const char *what, int table, const char *slot)
{
	if (table < 0 || (size_t)table >= e->model->table_count)
		return fail(-ENOENT, "%s: table %d, the model has %zu", what, table,
			    e->model->table_count);
	return model_slot(e->model, table, slot ? slot : "parameters");
}

int rows_find_slot(struct embeng *e, const char *what, int table, const char *slot)
{
	int ret = session_check_alone(e, what);

	return ret ? ret : find_slot_of(e, what, table, slot);
}

static int check_call(struct rows_call *c, int table, const char *slot)
{
	c->slot = find_slot_of(c->e, c->what, table, slot);
	if (c->slot < 0)
		return c->slot;
	c->table = table;
	return check_call_rows(c);
}

/* The command of a descriptor, from submission to its end. */
static int run_rows_in(struct embeng *e, const struct region *memory, struct embeng_cmd *cmd,
		       const char *what, const struct embeng_rows *rows)
{
	struct embeng_cqe answer;
	int ret;

	memcpy(memory->data, rows, sizeof(*rows));
	cmd->desc = region_part(memory, 0, sizeof(*rows));
	pthread_mutex_lock(&e->lock);
	ret = transfer_quietly(e, cmd, &answer);
	pthread_mutex_unlock(&e->lock);
	return ret || !answer.status ? ret : rows_command_error(e, what, rows, &answer);
}

static int run_rows(struct embeng *e, struct embeng_cmd *cmd, const char *what,
		    const struct embeng_rows *rows)
{
	return run_rows_in(e, &e->staging, cmd, what, rows);
}

/* Rows of so many bytes that fit into memory of @bytes, at least one. */
static uint64_t fitting_rows(uint64_t bytes, uint64_t row)
{
	uint64_t n = (bytes - STAGING_HEAD) / row;

	return n ? n : 1;
}

static uint64_t staged_rows(uint64_t row)
{
	return fitting_rows(layout_staging(0), row);
}

/* Numbers of rows that no list has. */
static void put_numbers(const struct region *memory, uint64_t at, uint64_t first, uint64_t stride,
			uint64_t count)
{
	uint64_t *numbers = (uint64_t *)(void *)(memory->data + at);

	for (uint64_t i = 0; i < count; i++)
		numbers[i] = first + i * stride;
}

int rows_chunk_room_in(struct embeng *e, struct region *memory, uint64_t bytes, int table,
		       uint64_t stride, uint64_t *most)
{
	/* Numbers stand behind the rows, at a multiple of 8. */
	uint64_t row = 4 * (uint64_t)e->model->tables[table].dim +
		       (stride > 1 ? STAGING_NUMBERS : 0);
	int ret = region_grow(e, memory, row > bytes - STAGING_HEAD ? STAGING_HEAD + row : bytes);

	if (!ret)
		*most = fitting_rows(bytes, row);
	return ret;
}

int rows_chunk_room(struct embeng *e, int table, uint64_t stride, uint64_t *most)
{
	const struct table *t = &e->model->tables[table];
	uint64_t row = 4 * (uint64_t)t->dim + STAGING_NUMBERS;

	return rows_chunk_room_in(e, &e->staging, layout_staging_of(row, (uint64_t)t->rows), table,
				  stride, most);
}

char *rows_chunk_data_in(const struct region *memory)
{
	return memory->data + STAGING_HEAD;
}

char *rows_chunk_data(const struct embeng *e)
{
	return rows_chunk_data_in(&e->staging);
}

int rows_chunk_run(struct embeng *e, const struct rows_chunk *c)
{
	return rows_chunk_run_in(e, &e->staging, c);
}

int rows_chunk_run_in(struct embeng *e, const struct region *memory, const struct rows_chunk *c)
{
	const struct table *t = &e->model->tables[c->table];
	uint64_t bytes = c->count * model_row_bytes(t, (size_t)c->slot);
	uint64_t numbers_at = (STAGING_HEAD + bytes + 7) & ~7ull;
	struct embeng_rows rows = {.table = (uint32_t)c->table,
				   .slot = (uint32_t)c->slot,
				   .first = c->first,
				   .count = c->count,
				   .data = region_part(memory, STAGING_HEAD, bytes)};
	struct embeng_cmd cmd = {
		.opcode = (uint16_t)c->op, .flags = c->flags, .after = c->after, .arg = c->arg};

	if (c->ids)
		memcpy(memory->data + numbers_at, c->ids, 8 * c->count);
	else if (c->stride > 1)
		put_numbers(memory, numbers_at, c->first, c->stride, c->count);
	if (c->ids || c->stride > 1) {
		rows.first = 0;
		rows.ids = region_part(memory, numbers_at, 8 * c->count);
	}
	return run_rows_in(e, memory, &cmd, c->what, &rows);
}

static uint64_t row_bytes(const struct rows_call *c)
{
	return model_row_bytes(&c->e->model->tables[c->table], (size_t)c->slot);
}

/* Rows go to the engine by their numbers, not as a range. */
static bool by_numbers(const struct rows_call *c)
{
	return c->ids || c->stride > 1;
}

/* Rows [at, at + n) of the call. */
static int run_chunk(struct rows_call *c, uint64_t at, uint64_t n)
{
	struct embeng *e = c->e;
	uint64_t bytes = n * row_bytes(c), data_at = STAGING_HEAD + (by_numbers(c) ? 8 * n : 0);
	struct embeng_rows rows = {.table = (uint32_t)c->table,
				   .slot = (uint32_t)c->slot,
				   .first = by_numbers(c) ? 0 : c->first + at,
				   .count = n};
	struct embeng_cmd cmd = {.opcode = (uint16_t)c->op, .after = c->after};
	int ret;

	if (by_numbers(c))
		rows.ids = region_part(&e->staging, STAGING_HEAD, 8 * n);
	if (c->ids)
		copy_counted(e, e->staging.data + STAGING_HEAD, c->ids + at, 8 * n);
	else if (by_numbers(c))
		put_numbers(&e->staging, STAGING_HEAD, c->first + at * c->stride, c->stride, n);
	rows.data = region_part(&e->staging, data_at, bytes);
	if (c->buffer) {
		rows.data = c->in_place;
		rows.data.offset += at * row_bytes(c);
		rows.data.length = bytes;
	} else if (c->op == EMBENG_OP_ROWS_WRITE) {
		copy_counted(e, e->staging.data + data_at, c->data + at * row_bytes(c), bytes);
	}
	ret = run_rows(e, &cmd, c->what, &rows);
	if (!ret && !c->buffer && c->op == EMBENG_OP_ROWS_READ)
		copy_counted(e, c->data + at * row_bytes(c), e->staging.data + data_at, bytes);
	return ret;
}

static uint64_t chunk_rows(const struct rows_call *c)
{
	uint64_t row = (c->buffer ? 0 : row_bytes(c)) + (by_numbers(c) ? 8 : 0);

	return row ? staged_rows(row) : c->count;
}

static int all_chunks(struct rows_call *c)
{
	uint64_t most = chunk_rows(c);
	uint64_t row = (c->buffer ? 0 : row_bytes(c)) + STAGING_NUMBERS;
	int ret = region_grow(c->e, &c->e->staging, layout_staging_of(row, c->count));

	for (uint64_t at = 0; !ret && at < c->count; at += most)
		ret = run_chunk(c, at, c->count - at < most ? c->count - at : most);
	return ret;
}

static void find_buffer(struct rows_call *c)
{
	struct embeng *e = c->e;

	pthread_mutex_lock(&e->lock);
	c->buffer = buffers_find(&e->buffers, c->data, c->count * row_bytes(c), 4, &c->in_place);
	if (c->buffer)
		c->buffer->users++;
	pthread_mutex_unlock(&e->lock);
}

static int move_all(struct embeng *e, void *arg, uint64_t after)
{
	struct rows_call *c = arg;
	int ret;

	c->after = after;
	find_buffer(c);
	ret = all_chunks(c);
	pthread_mutex_lock(&e->lock);
	if (c->buffer)
		c->buffer->users--;
	pthread_mutex_unlock(&e->lock);
	return ret;
}

/* All of them before any is written: the engine takes them in parts. */
static int check_written(const struct rows_call *c)
{
	const struct embeng_model *m = c->e->model;
	uint64_t width = model_width(&m->tables[c->table], (size_t)c->slot);
	uint64_t count = c->count * width, at, k;
	const float *data = (const float *)(const void *)c->data;

	if (c->op != EMBENG_OP_ROWS_WRITE)
		return 0;
	at = numbers_first_bad(m, c->table, (size_t)c->slot, data, count);
	if (at == count)
		return 0;
	k = at / width;
	return numbers_error(m, c->what, c->table, (size_t)c->slot,
			     c->ids ? (uint64_t)c->ids[k]
				    : c->first + k * (c->stride ? c->stride : 1),
			     at % width, data[at]);
}

/* The same call over the hosts of a group, which all learn if one refuses its arguments. */
static int ask_hosts_for_rows(const struct rows_call *c,
			      const struct embeng_initializer *initializer, int status)
{
	const struct rows_asked asked = {
		.what = c->what,
		.op = c->op,
		.table = c->table,
		.slot = c->slot,
		.ids = c->ids,
		.first = c->first,
		.count = c->count,
		.data = (float *)(void *)c->data,
		.initializer = initializer,
		.status = status,
	};

	return c->e->calls->rows(c->e, &asked);
}

static int check_moved(struct rows_call *c, int table, const char *slot)
{
	int ret = check_call(c, table, slot);

	if (!ret && c->count && !c->data)
		ret = fail(-EINVAL, "%s: no data given for %" PRIu64 " rows", c->what, c->count);
	return ret ? ret : check_written(c);
}

static int move_rows(struct rows_call *c, int table, const char *slot)
{
	int ret = session_check(c->e, c->what);

	if (ret)
		return ret;
	ret = check_moved(c, table, slot);
	if (c->e->calls)
		return ask_hosts_for_rows(c, NULL, ret);
	return ret || !c->count ? ret : rows_behind_gate(c->e, c->what, move_all, c);
}

int rows_move(struct embeng *e, const char *what, bool write, int table, const char *slot,
	      const struct embeng_shard_rows *rows, float *data)
{
	struct rows_call c = {.e = e,
			      .what = what,
			      .op = write ? EMBENG_OP_ROWS_WRITE : EMBENG_OP_ROWS_READ,
			      .first = (uint64_t)rows->first,
			      .stride = (uint64_t)rows->stride,
			      .count = (uint64_t)rows->count,
			      .data = (char *)data};

	return move_rows(&c, table, slot);
}

int embeng_rows_read(struct embeng *e, int table, const char *slot, const int64_t *ids,
		     size_t count, float *data)
{
	struct rows_call c = {.e = e,
			      .what = "embeng_rows_read",
			      .op = EMBENG_OP_ROWS_READ,
			      .ids = ids,
			      .count = count,
			      .data = (char *)data};

	return move_rows(&c, table, slot);
}

struct reading_list {
	const char *what;
	const struct rows_reading *readings;
	size_t count;
};

static int read_each(struct embeng *e, void *arg, uint64_t after)
{
	const struct reading_list *list = arg;
	int ret = 0;

	for (size_t i = 0; !ret && i < list->count; i++) {
		const struct rows_reading *reading = &list->readings[i];
		struct rows_call c = {.e = e,
				      .what = list->what,
				      .op = EMBENG_OP_ROWS_READ,
				      .ids = reading->ids,
				      .count = reading->count,
				      .data = (char *)reading->data};

		if (!reading->count)
			continue;
		ret = check_call(&c, reading->table, NULL);
		ret = ret ? ret : move_all(e, &c, after);
	}
	return ret;
}

int rows_read_together(struct embeng *e, const char *what, const struct rows_reading *readings,
		       size_t count, int status)
{
	struct reading_list list = {what, readings, count};
	bool before;
	int ret;

	if (e->calls)
		return e->calls->read_together(e, what, readings, count, status);
	if (status)
		return status;
	/* Memory for them is made with e->lock held. */
	before = ask_allow(false);
	ret = rows_behind_gate(e, what, read_each, &list);
	ask_allow(before);
	return ret;
}

int embeng_rows_write(struct embeng *e, int table, const char *slot, const int64_t *ids,
		      size_t count, const float *data)
{
	/* Only copied from, or read by the engine, since the opcode says so. */
	struct rows_call c = {.e = e,
			      .what = "embeng_rows_write",
			      .op = EMBENG_OP_ROWS_WRITE,
			      .ids = ids,
			      .count = count,
			      .data = (char *)(uintptr_t)data};

	return move_rows(&c, table, slot);
}

static int run_fill(struct embeng *e, void *arg, uint64_t after)
{
	struct rows_fill *f = arg;
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_ROWS_FILL, .after = after};

	return run_rows(e, &cmd, f->what, &f->rows);
}

static int check_filled(struct rows_call *c, int table, const char *slot,
			const struct embeng_initializer *initializer)
{
	int ret = check_call(c, table, slot);

	if (ret)
		return ret;
	if (!initializer)
		return fail(-EINVAL, "%s: no initializer given", c->what);
	ret = initializer_check(c->what, initializer);
	if (!ret && c->slot)
		ret = slot_initializer_check(c->what, c->e->model->tables[table].optimizer.kind,
					     (size_t)c->slot - 1, initializer);
	return ret;
}

int embeng_rows_fill(struct embeng *e, int table, const char *slot, int64_t first, size_t count,
		     const struct embeng_initializer *initializer)
{
	struct rows_call c = {.e = e,
			      .what = "embeng_rows_fill",
			      .op = EMBENG_OP_ROWS_FILL,
			      .first = (uint64_t)first,
			      .count = count};
	struct rows_fill f = {.what = c.what};
	int ret = session_check(e, c.what);

	if (ret)
		return ret;
	ret = check_filled(&c, table, slot, initializer);
	if (e->calls)
		return ask_hosts_for_rows(&c, initializer, ret);
	if (ret || !count)
		return ret;
	f.rows.table = (uint32_t)table;
	f.rows.slot = (uint32_t)c.slot;
	f.rows.first = c.first;
	f.rows.count = c.count;
	initializer_rows(&e->model->tables[table], initializer, &f.rows);
	return rows_behind_gate(e, c.what, run_fill, &f);
}
