// SPDX-License-Identifier: MIT
/*
 * Runs a SUM: adds up, for each row of a list, the gradients that one replica has for it, in the order
 * and in the runs in which an UPDATE would. The sums are written in place, into memory of the program.
 *
 * Called without engine->lock by the running command. Tables are taken one after another, by all
 * cores; a row belongs to one task. The sorted occurrences and the scratch memory are the context's.
 */
#include "../kernels/scratch.h"
#include "../update/finite.h"
#include "exchange.h"

/* The sums of one table. */
struct summing {
	struct command *command;
	const struct exchange *x;
	struct kernel_update update; /* says where its gradients are */
	float *sums;
	u64 rows, most; /* occurrences of one bounded call */
};

static u16 check_given_gradients(struct command *command, const struct exchange *x)
{
	const struct exchange_call *call = command->state;
	u16 status = 0;

	for (u32 i = 0; !status && i < call->given.feature_count; i++) {
		const struct embeng_exchange_feature *f = &call->features[i];

		if (mem_given(&f->data))
			status = check_length(&f->data, x->batch.features[i].outputs,
					      4ull * call->tables[f->table].dim,
					      EMBENG_FIELD_GRADIENTS, i, &command->fault);
	}
	return status;
}

static u16 get_given_gradients(struct command *command, struct exchange *x)
{
	const struct exchange_call *call = command->state;
	u16 status = check_given_gradients(command, x);

	if (!status)
		status = exchange_map_data(command, x, EMBENG_REGION_DEVICE_READ,
					   EMBENG_FIELD_GRADIENTS);
	if (call->given.flags & EMBENG_EXCHANGE_NON_FINITE)
		return status;
	for (u32 i = 0; !status && i < call->given.feature_count; i++) {
		if (exchange_data(x, i)->data)
			status = finite_require(&x->model, exchange_data(x, i), i);
	}
	return status;
}

/* Occurrences of a table's features, and where their gradients are. Return: parts of them. */
static u32 list_occurrences(struct exchange *x, u32 table, struct kernel_update *u)
{
	struct model *m = &x->model;
	u64 first = 0;
	u32 parts = 0;

	u->segments = m->segments;
	for (u32 i = 0; i < m->blob.engine.feature_count; i++) {
		const struct batch_feature *f = &x->batch.features[i];
		const struct view *data = exchange_data(x, i);

		if (m->blob.features[i].table != table || !f->occurrences)
			continue;
		m->sources[parts] = (struct partition_source){ .rows = batch_wide_rows(f),
							       .narrow = batch_narrow_rows(f),
							       .first = first,
							       .count = f->occurrences,
							       .base = first };
		m->segments[parts++] = (struct kernel_segment){
			.first = first,
			.end = first + f->occurrences,
			.gradients = data->data ? data->data : (const float *)m->zeros,
			.stride = data->data ? m->tables[table].record.dim : 0,
			.grad_row = gradient_rows(m->command, f),
			.coef = batch_coef(f),
			.holders = f->largest ? f->holders.data : NULL,
			.far = data->length > m->engine->fetch.gradient_bytes,
		};
		if (f->largest)
			u->flags |= KERNEL_HELD;
		first += f->occurrences;
	}
	u->segment_count = parts;
	x->partition.sources = m->sources;
	x->partition.below = first;
	return parts;
}

static bool clear_rows(const struct summing *s, u64 first, u64 last)
{
	const u64 row = 4ull * s->update.dim, most = PIECE_BYTES / row ? PIECE_BYTES / row : 1;

	for (u64 n; first < last; first += n) {
		n = last - first < most ? last - first : most;
		memset(s->sums + first * s->update.dim, 0, n * row);
		if (n == most && piece_over(s->command))
			return true;
	}
	return false;
}

/* kernel_ops.row_gradient in bounded calls. */
static void sum_hot_row(const struct summing *s, const struct kernel_group *group, u8 *scratch)
{
	const struct kernel_ops *kernels = s->x->model.engine->kernels;
	const u32 *occ = s->x->partition.order + group->first;
	float *sum = s->sums + group->row * s->update.dim;
	float *run = kernel_scratch_run(scratch, s->update.dim);
	struct port_fpu fpu;

	for (u64 done = 0, n; done < group->count; done += n) {
		u32 replica;

		n = kernel_run_length(s->update.segments, s->update.segment_count, occ + done,
				      group->count - done, &replica);
		port_fpu_begin(&fpu);
		kernels->run_gradient(&s->update, done ? run : sum, occ + done, n, scratch);
		if (done)
			kernels->add_row(sum, run, s->update.dim);
		port_fpu_end(&fpu);
		if (piece_over(s->command))
			return;
	}
}

/* Rows [@first, ...) of the list's groups in one call. Return: the first group behind it. */
static u64 sum_some_rows(const struct summing *s, u64 first, u64 last, u8 *scratch)
{
	const struct partition *p = &s->x->partition;
	const struct kernel_ops *kernels = s->x->model.engine->kernels;
	struct port_fpu fpu;
	u64 count = 0;

	port_fpu_begin(&fpu);
	for (; first < last && count + p->groups[first].count <= s->most; first++) {
		const struct kernel_group *group = &p->groups[first];

		kernels->row_gradient(&s->update, s->sums + group->row * s->update.dim,
				      p->order + group->first, group->count, scratch);
		count += group->count;
	}
	port_fpu_end(&fpu);
	return first;
}

static void sum_task(void *arg, u64 task, u32 worker)
{
	const struct summing *s = arg;
	const struct partition *p = &s->x->partition;
	u8 *scratch = s->x->model.scratch + worker * s->x->model.scratch_stride;
	u64 first = task * s->most, last = first + s->most, row;

	last = last < p->group_count ? last : p->group_count;
	row = first ? p->groups[first - 1].row + 1 : 0;
	for (u64 g = first; g < last; g++) {
		if (clear_rows(s, row, p->groups[g].row))
			return;
		row = p->groups[g].row + 1;
	}
	if (last == p->group_count && clear_rows(s, row, s->rows))
		return;
	while (first < last && !command_is_cut(s->command)) {
		u64 next = sum_some_rows(s, first, last, scratch);

		if (next == first)
			sum_hot_row(s, &p->groups[next++], scratch);
		else if (piece_over(s->command))
			return;
		first = next;
	}
}

static u16 sum_table_gradients(struct command *command, struct exchange *x, u32 index)
{
	struct model *m = &x->model;
	const struct embeng_record_table *record = &m->tables[index].record;
	struct partition *p = &x->partition;
	struct summing s = { .command = command, .x = x, .update = { .dim = record->dim } };
	u32 parts = list_occurrences(x, index, &s.update);
	u64 tasks;

	s.sums = exchange_result(x, index)->data;
	s.rows = record->rows;
	s.most = chunk_rows(record->dim);
	if (!s.sums)
		return 0;
	if (command_is_cut(command) ||
	    partition_make(p, parts, s.rows, record->out_of_range == EMBENG_OUT_OF_RANGE_ZERO,
			   command, true, m->engine->caps.cores))
		return exchange_no_memory(command);
	tasks = p->group_count / s.most + (p->group_count % s.most != 0);
	if (!workers_run(command, sum_task, &s, tasks ? tasks : 1,
			 (p->count + p->group_count) * 4 * record->dim))
		return abort_command(command);
	reg_count(m->engine, EMBENG_REG_COUNT_BYTES_WRITTEN, s.rows * 4 * record->dim);
	return 0;
}

static u16 sum_all_gradients(struct command *command, struct exchange *x)
{
	const struct exchange_call *call = command->state;
	u16 status = 0;

	if (!lookup_holders(command, &x->batch))
		return abort_command(command);
	for (u32 i = 0; !status && i < call->given.table_count; i++)
		status = sum_table_gradients(command, x, i);
	return status;
}

u16 sum_run(struct command *command)
{
	struct exchange *x;
	u16 status = exchange_begin(command, true, &x);

	if (!status)
		status = get_given_gradients(command, x);
	if (!status)
		status = sum_all_gradients(command, x);
	exchange_end(command, x);
	command->result = exchange_ids(command->state);
	return status;
}
