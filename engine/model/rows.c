/* SPDX-License-Identifier: MIT */
/*
 * ROWS_WRITE, ROWS_READ and ROWS_FILL: copies rows of a table or a slot in or out, or fills them.
 * They may be a range or a list, and writes may go to a staged copy. SNAPSHOT_READ copies rows out as
 * they were when the snapshot began.
 *
 * The private copy of the descriptor and of the row numbers is command->state, from rows_accept()
 * to rows_release(). Accepting and running are called without engine->lock; one command runs at a
 * time, so nobody else touches the rows meanwhile.
 */
#include "../kernels/fill.h"
#include "../kernels/optimizers.h"
#include "../kernels/ranges.h"
#include "../lookup/stale.h"

/* Private copy of a ROWS_* descriptor and of its row numbers. */
struct rows {
	struct embeng_rows given;
	u64 *ids; /* [count], or NULL for the range */
};

struct rows_work {
	const struct rows *rows;
	u32 *table;
	u8 *data;
	u64 row_bytes, chunk;
	bool reads;
	struct table *snapshot; /* SNAPSHOT_READ, else NULL */
};

static bool reads_rows(const struct command *command)
{
	return command->cmd.opcode == EMBENG_OP_ROWS_READ ||
	       command->cmd.opcode == EMBENG_OP_SNAPSHOT_READ;
}

static u16 refuse_rows(struct command *command, u16 status, u32 field, u64 element, u64 value,
		       u64 limit)
{
	struct rows *rows = command->state;

	return fault_set(&command->fault, status, field, rows ? rows->given.table : EMBENG_NO_INDEX,
			 element, value, limit);
}

static u16 check_rows_place(struct command *command, const struct embeng_rows *given)
{
	const struct model *model = command->context->model;
	const struct embeng_record_table *table;

	if (given->table >= model->blob.engine.table_count)
		return refuse_rows(command, EMBENG_STATUS_TABLE, EMBENG_FIELD_TABLE, 0,
				   given->table, model->blob.engine.table_count);
	table = &model->tables[given->table].record;
	if (given->slot > table->slot_count)
		return refuse_rows(command, EMBENG_STATUS_SLOT, EMBENG_FIELD_SLOT, 0, given->slot,
				   table->slot_count);
	if (given->reserved)
		return refuse_rows(command, EMBENG_STATUS_RESERVED, EMBENG_FIELD_RESERVED, 0,
				   given->reserved, 0);
	if (mem_given(&given->ids) && given->first)
		return refuse_rows(command, EMBENG_STATUS_FORM, EMBENG_FIELD_ROWS, 0, given->first,
				   0);
	if (!mem_given(&given->ids) &&
	    (given->first > table->rows || given->count > table->rows - given->first))
		return refuse_rows(command, EMBENG_STATUS_ROW, EMBENG_FIELD_ROWS, 0,
				   given->first > table->rows ? given->first : table->rows,
				   table->rows);
	return 0;
}

/* A constant, or the ends of an interval: a distribution's numbers are between them. */
static u16 check_fill_numbers(struct command *command, const struct embeng_rows *given)
{
	const struct model *model = command->context->model;
	u32 range = slot_range(model->tables[given->table].kernel, given->slot);
	const u32 numbers[] = { given->a, given->b };
	bool any = model->blob.engine.flags & EMBENG_ENGINE_GRADIENTS_ALLOW &&
		   given->fill == EMBENG_FILL_CONSTANT;
	u32 count = given->fill == EMBENG_FILL_CONSTANT ? 1 : 2, at;

	/* The tails of a normal distribution are checked where they are known, in the library. */
	if (given->fill == EMBENG_FILL_TRUNCATED_NORMAL)
		range = KERNEL_FINITE;
	at = (u32)numbers_until(numbers, count, range, any);
	if (at == count)
		return 0;
	return refuse_rows(command, EMBENG_STATUS_NUMBER, EMBENG_FIELD_FILL, at, numbers[at],
			   number_bound(range, numbers[at]));
}

static u16 check_rows_fill(struct command *command, const struct embeng_rows *given)
{
	if (command->cmd.opcode != EMBENG_OP_ROWS_FILL) {
		if (given->fill | given->a | given->b || given->seed)
			return refuse_rows(command, EMBENG_STATUS_RESERVED, EMBENG_FIELD_FILL, 0,
					   given->fill, 0);
		return 0;
	}
	if (given->fill > EMBENG_FILL_TRUNCATED_NORMAL)
		return refuse_rows(command, EMBENG_STATUS_FORM, EMBENG_FIELD_FILL, 0, given->fill,
				   EMBENG_FILL_TRUNCATED_NORMAL);
	if (mem_given(&given->data))
		return refuse_rows(command, EMBENG_STATUS_FORM, EMBENG_FIELD_DATA, 0, 0, 0);
	return check_fill_numbers(command, given);
}

static u16 data_get(struct command *command, struct view *view)
{
	const struct rows *rows = command->state;
	u32 rights = reads_rows(command) ? EMBENG_REGION_DEVICE_WRITE : EMBENG_REGION_DEVICE_READ;

	memset(view, 0, sizeof(*view));
	if (!mem_given(&rows->given.data))
		return 0;
	return region_get(command, &rows->given.data, rights, 4, EMBENG_FIELD_DATA,
			  rows->given.table, view);
}

static u16 check_rows_data(struct command *command, const struct embeng_rows *given)
{
	const struct model *model = command->context->model;
	struct view view;
	u16 status;

	if (command->cmd.opcode == EMBENG_OP_ROWS_FILL)
		return 0;
	status = check_length(&given->data, given->count,
			      table_row_bytes(&model->tables[given->table], given->slot),
			      EMBENG_FIELD_DATA, given->table, &command->fault);
	if (!status)
		status = data_get(command, &view);
	if (!status)
		region_put(command->context, &view);
	return status;
}

static u16 check_rows_ids(struct command *command, const struct rows *rows)
{
	u64 limit =
		((struct model *)command->context->model)->tables[rows->given.table].record.rows;
	u64 left = PIECE_ROWS;

	for (u64 i = 0; i < rows->given.count && !piece_step(command, &left); i++) {
		if (rows->ids[i] >= limit)
			return refuse_rows(command, EMBENG_STATUS_ROW, EMBENG_FIELD_ROWS, i,
					   rows->ids[i], limit);
	}
	return command_is_cut(command) ? abort_command(command) : 0;
}

static u16 fetch_ids(struct command *command, struct rows *rows)
{
	struct view view;
	u16 status;

	if (!mem_given(&rows->given.ids))
		return 0;
	status = check_length(&rows->given.ids, rows->given.count, sizeof(u64), EMBENG_FIELD_IDS,
			      rows->given.table, &command->fault);
	if (!status)
		status = region_get(command, &rows->given.ids, EMBENG_REGION_DEVICE_READ, 8,
				    EMBENG_FIELD_IDS, rows->given.table, &view);
	if (status)
		return status;
	rows->ids = alloc_large(command->context->engine, view.length + 1);
	if (rows->ids)
		piece_copy(command, rows->ids, view.data, view.length);
	COPIED();
	region_put(command->context, &view);
	if (!rows->ids)
		return refuse_rows(command, EMBENG_STATUS_NO_MEMORY, EMBENG_FIELD_IDS, 0,
				   rows->given.ids.length, 0);
	return check_rows_ids(command, rows);
}

u16 rows_accept(struct command *command)
{
	struct rows *rows;
	struct view view;
	u16 status;

	if (command->cmd.desc.length != sizeof(rows->given))
		return refuse_rows(command, EMBENG_STATUS_LENGTH, EMBENG_FIELD_DESC, 0,
				   command->cmd.desc.length, sizeof(rows->given));
	status = desc_get(command, sizeof(rows->given), EMBENG_REGION_DEVICE_READ, &view);
	if (status)
		return status;
	rows = port_alloc(sizeof(*rows));
	if (rows)
		memcpy(&rows->given, view.data, sizeof(rows->given));
	COPIED();
	region_put(command->context, &view);
	if (!rows)
		return refuse_rows(command, EMBENG_STATUS_NO_MEMORY, EMBENG_FIELD_DESC, 0,
				   sizeof(*rows), 0);
	command->state = rows;
	status = check_rows_place(command, &rows->given);
	if (!status)
		status = check_rows_fill(command, &rows->given);
	if (!status)
		status = check_rows_data(command, &rows->given);
	if (!status)
		status = fetch_ids(command, rows);
	return status;
}

void rows_release(struct command *command)
{
	struct rows *rows = command->state;

	if (rows)
		port_free(rows->ids);
	port_free(rows);
}

static void copy_kept_rows(const struct rows_work *work, u8 *data, u64 row, u64 count)
{
	for (u64 i = 0; i < count; i++)
		memcpy(data + i * work->row_bytes,
		       kept_find(work->snapshot, row + i, work->rows->given.slot), work->row_bytes);
}

static void copy_rows(const struct rows_work *work, u64 at, u64 row, u64 count)
{
	u8 *stored = (u8 *)work->table + row * work->row_bytes;
	u8 *data = work->data + at * work->row_bytes;

	if (work->snapshot)
		copy_kept_rows(work, data, row, count);
	else if (work->reads)
		memcpy(data, stored, count * work->row_bytes);
	else
		memcpy(stored, data, count * work->row_bytes);
}

static void copy_rows_task(void *arg, u64 task, u32 worker)
{
	const struct rows_work *work = arg;
	const struct rows *rows = work->rows;
	u64 first = task * work->chunk, count = rows->given.count - first;

	(void)worker;
	if (count > work->chunk)
		count = work->chunk;
	if (!rows->ids) {
		copy_rows(work, first, rows->given.first + first, count);
		return;
	}
	for (u64 i = first; i < first + count; i++)
		copy_rows(work, i, rows->ids[i], 1);
}

/* A list may name a row twice: the later one stays only if one core writes in order. */
static u16 copy_all_rows(struct command *command, struct rows_work *work)
{
	u64 count = work->rows->given.count;
	u64 tasks = count / work->chunk + (count % work->chunk != 0);
	bool whole = true;

	if (!work->rows->ids || work->reads)
		whole = workers_run(command, copy_rows_task, work, tasks,
				    2 * count * work->row_bytes);
	for (u64 task = 0; work->rows->ids && !work->reads && whole && task < tasks; task++) {
		copy_rows_task(work, task, 0);
		whole = !piece_over(command);
	}
	return whole ? 0 : abort_command(command);
}

/* Fills @count rows from row @row on with the numbers of their places in the whole table. */
static bool fill_placed_rows(struct model *model, const struct embeng_rows *given, u32 *stored,
			     u64 row, u64 count)
{
	const struct embeng_record_shard *shard = &model->blob.shards[given->table];
	const struct table *table = &model->tables[given->table];
	u32 width = table_width(table, given->slot);
	struct kernel_fill fill = {
		.kind = given->fill,
		.slot = given->slot,
		.seed = given->seed,
		.dim = width,
		.stride = width,
		.out = (float *)(stored + row * width),
		.first_row = row,
		.row_step = 1,
	};

	memcpy(&fill.a, &given->a, sizeof(fill.a));
	memcpy(&fill.b, &given->b, sizeof(fill.b));
	if (shard->row_step) {
		fill.first_row = shard->first_row + row * shard->row_step;
		fill.row_step = shard->row_step;
		/* A slot of one number a row is not cut. */
		if (embeng_slot_width(table->record.optimizer, given->slot, shard->whole_dim) ==
		    shard->whole_dim)
			fill.first_column = shard->first_column;
	}
	return fill_range(model, &fill, count);
}

static u16 fill_all_rows(struct model *model, const struct rows *rows, u32 *stored)
{
	const struct embeng_rows *given = &rows->given;

	if (!rows->ids)
		return fill_placed_rows(model, given, stored, given->first, given->count) ?
			       0 :
			       abort_command(model->command);
	for (u64 i = 0; i < given->count; i++) {
		if (!fill_placed_rows(model, given, stored, rows->ids[i], 1))
			break;
	}
	return command_is_cut(model->command) ? abort_command(model->command) : 0;
}

/* Looks at the numbers that a ROWS_WRITE brings, a piece of the rows a task. */
struct rows_look {
	const u32 *data;
	u64 count;
	u32 range;
	bool any;
	u32 found; /* atomic */
};

static void look_at_rows(void *arg, u64 task, u32 worker)
{
	struct rows_look *look = arg;
	u64 first = task * PIECE_ROWS, n = piece_end(first, look->count) - first;

	(void)worker;
	if (numbers_until(look->data + first, n, look->range, look->any) < n)
		__atomic_store_n(&look->found, 1, __ATOMIC_RELAXED);
}

/* Before any row is written. */
static u16 check_rows_numbers(struct command *command, const struct table *table,
			      const struct view *view)
{
	const struct model *model = command->context->model;
	const struct rows *rows = command->state;
	struct rows_look look = {
		.data = view->data,
		.count = view->length / sizeof(u32),
		.range = slot_range(table->kernel, rows->given.slot),
		.any = model->blob.engine.flags & EMBENG_ENGINE_GRADIENTS_ALLOW,
	};
	u64 at = 0, end;

	if (!workers_run(command, look_at_rows, &look,
			 look.count / PIECE_ROWS + (look.count % PIECE_ROWS != 0), view->length))
		return abort_command(command);
	if (!__atomic_load_n(&look.found, __ATOMIC_RELAXED))
		return 0;
	for (; at < look.count; at = end) {
		end = piece_end(at, look.count);
		at += numbers_until(look.data + at, end - at, look.range, look.any);
		if (at < end)
			break;
		if (piece_over(command))
			return abort_command(command);
	}
	if (at == look.count)
		at = 0;
	return refuse_rows(command, EMBENG_STATUS_NUMBER, EMBENG_FIELD_DATA, at, look.data[at],
			   number_bound(look.range, look.data[at]));
}

/* A snapshot sees what stood there before the write. */
static void keep_old_rows(struct model *model, struct table *table, const struct rows *rows)
{
	u64 count = rows->given.count, most = chunk_rows(table->record.dim);

	kept_reserve(model, table, count);
	for (u64 i = 0, end; table->kept.places && i < count; i = end) {
		end = count - i < most ? count : i + most;
		if (!rows->ids)
			kept_add_range(table, rows->given.first + i, end - i);
		for (u64 k = i; rows->ids && k < end; k++)
			kept_add_range(table, rows->ids[k], 1);
		if (piece_over(model->command))
			return;
	}
}

u64 rows_touched(const struct command *command)
{
	const struct rows *rows = command->state;
	const struct table *table = &command->context->model->tables[rows->given.table];

	return rows->given.count * (table_row_bytes(table, rows->given.slot) + sizeof(*rows->ids));
}

u16 rows_run(struct command *command)
{
	struct model *model = command->context->model;
	const struct rows *rows = command->state;
	struct table *table = &model->tables[rows->given.table];
	bool staged = command->cmd.flags & EMBENG_CMD_STAGED;
	u32 *stored = staged ? table->staged[rows->given.slot] :
			       *table_array(table, rows->given.slot);
	bool snapshot = command->cmd.opcode == EMBENG_OP_SNAPSHOT_READ;
	bool reads = reads_rows(command);
	struct rows_work work = {
		.rows = rows, .table = stored, .reads = reads, .snapshot = snapshot ? table : NULL
	};
	struct view view;
	u16 status = snapshot ? snapshot_find(command, table) : 0;

	if (status)
		return status;
	if (!stored)
		return refuse_rows(command, EMBENG_STATUS_STAGE, EMBENG_FIELD_SLOT, 0,
				   rows->given.slot, 0);
	status = data_get(command, &view);
	if (status)
		return status;
	if (command->cmd.opcode == EMBENG_OP_ROWS_WRITE)
		status = check_rows_numbers(command, table, &view);
	if (status) {
		region_put(command->context, &view);
		return status;
	}
	work.data = view.data;
	work.row_bytes = table_row_bytes(table, rows->given.slot);
	work.chunk = chunk_rows(table_width(table, rows->given.slot));
	/* The next lookup sees what is written; in a table that is new it does so anyway. */
	if (!reads && !staged && rows->given.count && table->added != model->stale_step)
		stale_forget(model);
	if (!reads && !staged)
		keep_old_rows(model, table, rows);
	/* Rows that the snapshot does not keep must stay as they are. */
	if (command_is_cut(command))
		status = abort_command(command);
	else if (command->cmd.opcode == EMBENG_OP_ROWS_FILL)
		status = fill_all_rows(model, rows, stored);
	else
		status = copy_all_rows(command, &work);
	reg_count(model->engine,
		  reads ? EMBENG_REG_COUNT_BYTES_WRITTEN : EMBENG_REG_COUNT_BYTES_READ,
		  view.length);
	region_put(command->context, &view);
	command->result = rows->given.count;
	return status;
}
