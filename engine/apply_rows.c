/* SPDX-License-Identifier: MIT */
/* The rows of one table in one step, cut into tasks for the workers. */
#include "apply.h"
#include "model.h"

#define HOT_RUNS 16u /* runs of one hot row in one call */

/* Two tasks that follow each other have more than @most occurrences together. */
u64 apply_cuts_bytes(u64 occurrences, u64 most)
{
	return (occurrences / most * 2 + 3) * sizeof(u64);
}

int apply_reserve(struct model *model, u64 occurrences, u64 most)
{
	return grow(model, (void **)&model->cuts, &model->cuts_bytes,
		    apply_cuts_bytes(occurrences, most));
}

/* Tasks end where their occurrences would exceed @most; a hotter row is one alone. */
static u64 cut(struct model *model, u64 most)
{
	const struct partition *p = &model->partition;
	u64 first = 0, count = 0;

	while (first < p->group_count) {
		u64 low = first + 1, high = p->group_count;

		model->cuts[count++] = first;
		while (low < high) {
			u64 middle = low + (high - low + 1) / 2;
			u64 end = p->groups[middle - 1].first + p->groups[middle - 1].count;

			if (end - p->groups[first].first <= most)
				low = middle;
			else
				high = middle - 1;
		}
		first = low;
	}
	model->cuts[count] = p->group_count;
	return count;
}

/* kernel_ops.row_gradient, in bounded calls: runs are summed and added one by one. */
static void hot_row(const struct apply *apply, const struct kernel_group *group, u8 *scratch)
{
	const struct kernel_ops *kernels = apply->model->engine->kernels;
	const struct kernel_update *u = &apply->update;
	const u32 *order = apply->model->partition.order + group->first;
	float *rows = (float *)(scratch + kernel_scratch_bytes(u->dim)), *sum = rows;
	float *total = rows + u->dim, *run = total + u->dim, *target = sum;
	u32 previous = 0, runs = 0, replica;
	struct port_fpu fpu;

	port_fpu_begin(&fpu);
	for (u64 done = 0, length; done < group->count; done += length) {
		length = kernel_run_length(u->segments, u->segment_count, order + done,
					   group->count - done, &replica);
		if (++runs % HOT_RUNS == 0) {
			port_fpu_end(&fpu);
			port_fpu_begin(&fpu);
		}
		if (done && replica == previous) {
			kernels->run_gradient(u, run, order + done, length, scratch);
			kernels->add_row(target, run, u->dim);
			continue;
		}
		if (target == total)
			kernels->add_row(sum, total, u->dim);
		target = done ? total : sum;
		kernels->run_gradient(u, target, order + done, length, scratch);
		previous = replica;
	}
	if (target == total)
		kernels->add_row(sum, total, u->dim);
	kernels->update_row(u, group->row, sum);
	port_fpu_end(&fpu);
}

/* Without accumulation a row's occurrences are applied one by one: any cut will do. */
static void hot_row_each(const struct apply *apply, const struct kernel_group *group, u8 *scratch)
{
	struct kernel_group piece = *group;
	struct port_fpu fpu;

	for (u64 done = 0; done < group->count; done += piece.count) {
		piece.first = group->first + done;
		piece.count = group->count - done;
		if (piece.count > apply->most)
			piece.count = apply->most;
		port_fpu_begin(&fpu);
		apply->model->engine->kernels->update_rows(&apply->update, &piece, 1, 0,
							   apply->model->partition.order, scratch);
		port_fpu_end(&fpu);
	}
}

static void update_task(void *arg, u64 task, u32 worker)
{
	const struct apply *apply = arg;
	const struct model *model = apply->model;
	const struct partition *p = &model->partition;
	u64 first = model->cuts[task], last = model->cuts[task + 1], ahead = p->group_count - last;
	u8 *scratch = model->scratch + worker * model->scratch_stride;
	struct port_fpu fpu;

	if (p->groups[first].count > apply->most) {
		if (apply->update.flags & KERNEL_EACH_OCCURRENCE)
			hot_row_each(apply, &p->groups[first], scratch);
		else
			hot_row(apply, &p->groups[first], scratch);
		return;
	}
	if (ahead > apply->update.prefetch)
		ahead = apply->update.prefetch;
	port_fpu_begin(&fpu);
	model->engine->kernels->update_rows(&apply->update, p->groups + first, last - first, ahead,
					    p->order, scratch);
	port_fpu_end(&fpu);
}

static u64 bytes_touched(const struct model *model, const struct table *table)
{
	u64 row = 4ull * table->record.dim;

	return model->partition.group_count * 2 * row * (1 + table->record.slot_count) +
	       model->partition.count * row;
}

/* The first group of @row or of a later one. */
static u64 group_from(const struct partition *p, u64 row)
{
	u64 low = 0, high = p->group_count;

	while (low < high) {
		u64 middle = low + (high - low) / 2;

		if (p->groups[middle].row < row)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* A chunk of the table: the rows that the step did not touch have a gradient of zeros. */
static void untouched_task(void *arg, u64 task, u32 worker)
{
	const struct apply *apply = arg;
	const struct model *model = apply->model;
	const struct partition *p = &model->partition;
	u64 row = task * apply->most, last = row + apply->most, group = group_from(p, row);
	struct port_fpu fpu;

	(void)worker;
	if (last > apply->table->record.rows)
		last = apply->table->record.rows;
	port_fpu_begin(&fpu);
	for (; row < last; row++) {
		if (group < p->group_count && p->groups[group].row == row)
			group++;
		else
			model->engine->kernels->update_row(&apply->update, row,
							   (const float *)model->zeros);
	}
	port_fpu_end(&fpu);
}

static void apply_untouched(struct apply *apply)
{
	struct table *table = apply->table;
	u64 touched = apply->model->partition.group_count;
	u64 rows = table->record.rows, row = 4ull * table->record.dim;

	workers_run(apply->model->engine->workers, untouched_task, apply,
		    rows / apply->most + (rows % apply->most != 0),
		    (rows - touched) * 2 * row * (1 + table->record.slot_count));
	table->stats.untouched_rows += rows - touched;
}

void apply_rows(struct apply *apply)
{
	struct model *model = apply->model;
	u64 tasks = cut(model, apply->most);

	if (tasks)
		workers_run(model->engine->workers, update_task, apply, tasks,
			    bytes_touched(model, apply->table));
	if (apply->table->record.flags & EMBENG_TABLE_NON_LAZY)
		apply_untouched(apply);
}
