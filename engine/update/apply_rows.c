/* SPDX-License-Identifier: MIT */
/*
 * Updates the rows of one table in one step, cut into tasks for the cores. A row with more
 * occurrences than one bounded call may sum is hot: all cores sum runs of it, which one adds up in
 * a fixed order.
 *
 * Called without engine->lock, which is taken to count what is not finite. Each row belongs to one
 * task, and each core has its own scratch memory, which lives as long as the model.
 */
#include "../f32.h"
#include "finite.h"

/* Rare: only what a kernel found something in is looked at again. */
static u64 count_nonfinite_row(const struct apply *apply, u64 row)
{
	bool finite = true;

	for (u32 slot = 0; slot <= apply->table->record.slot_count; slot++) {
		u32 width = table_width(apply->table, slot);

		finite &= f32_row_finite(*table_array(apply->table, slot) + row * width, width);
	}
	return !finite;
}

static void add_nonfinite_rows(const struct apply *apply, u64 count)
{
	port_lock(apply->model->engine->lock);
	apply->table->stats.nonfinite_rows += count;
	port_unlock(apply->model->engine->lock);
}

static void count_nonfinite_groups(const struct apply *apply, u64 first, u64 last)
{
	u64 count = 0;

	for (; first < last; first++)
		count += count_nonfinite_row(apply, apply->lane->partition.groups[first].row);
	add_nonfinite_rows(apply, count);
}

#define HOT_RUNS 16u /* runs of one hot row in one call of one core */

/* Each is found by halving. */
#define CUTS_PIECE (PIECE_ROWS / 16)

/* Tasks end where their occurrences would exceed @most; a hotter row is one alone. */
static u64 cut_tasks(struct lane *lane, u64 most)
{
	const struct partition *p = &lane->partition;
	u64 first = 0, count = 0;

	while (first < p->group_count) {
		u64 low = first + 1, high = p->group_count;

		lane->cuts[count++] = first;
		if (!(count % CUTS_PIECE) && piece_over(lane->model->command))
			break;
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
	lane->cuts[count] = p->group_count;
	return count;
}

/* Runs of one hot row that one core sums; their sums stand behind the core's scratch. */
struct hot_part {
	u32 runs;
	u32 first[HOT_RUNS + 1]; /* numbers of the row's occurrences */
	u32 replica[HOT_RUNS];
};

/* A hot row on its way: @sum is of the replicas before the one that @total is of. */
struct hot_row {
	const struct apply *apply;
	const struct kernel_group *group;
	float *sum, *total;
	u32 done, replicas, replica;
};

static u64 hot_offset(u32 dim)
{
	return (kernel_scratch_bytes(dim) + 63) & ~63ull;
}

u64 apply_scratch_bytes(u32 dim)
{
	return (hot_offset(dim) + sizeof(struct hot_part) + (2 + HOT_RUNS) * 4ull * dim + 63) &
	       ~63ull;
}

/* A core's part, which is followed by two rows for the sums of all and by the sums of its runs. */
static struct hot_part *hot_part_of(const struct apply *apply, u64 core)
{
	return (struct hot_part *)(lane_scratch(apply->model, apply->lane->core + core) +
				   hot_offset(apply->update.dim));
}

static float *hot_sum(struct hot_part *part, u32 dim, u32 row)
{
	return (float *)(part + 1) + (u64)row * dim;
}

static void hot_task(void *arg, u64 task, u32 worker)
{
	const struct hot_row *hot = arg;
	const struct apply *apply = hot->apply;
	const struct model *model = apply->model;
	const u32 *order = apply->lane->partition.order + hot->group->first;
	struct hot_part *part = hot_part_of(apply, task);
	struct port_fpu fpu;

	port_fpu_begin(&fpu);
	for (u32 i = 0; i < part->runs; i++)
		model->engine->kernels->run_gradient(
			&apply->update, hot_sum(part, apply->update.dim, 2 + i),
			order + part->first[i], part->first[i + 1] - part->first[i],
			lane_scratch(model, worker));
	port_fpu_end(&fpu);
}

/* Where the next runs of a core begin; @most of them. */
static void hot_cut(struct hot_row *hot, struct hot_part *part, u32 most)
{
	const struct kernel_update *u = &hot->apply->update;
	const u32 *order = hot->apply->lane->partition.order + hot->group->first;

	for (part->runs = 0; part->runs < most && hot->done < hot->group->count; part->runs++) {
		part->first[part->runs] = hot->done;
		hot->done += (u32)kernel_run_length(
			u->segments, u->segment_count, order + hot->done,
			hot->group->count - hot->done, &part->replica[part->runs]);
	}
	part->first[part->runs] = hot->done;
}

/* Runs of a replica are added left to right, then the replicas, the first of which is the sum. */
static void hot_add_runs(struct hot_row *hot, struct hot_part *part)
{
	const struct kernel_ops *kernels = hot->apply->model->engine->kernels;
	u32 dim = hot->apply->update.dim;

	for (u32 i = 0; i < part->runs; i++) {
		const float *run = hot_sum(part, dim, 2 + i);

		if (hot->replicas && part->replica[i] == hot->replica) {
			kernels->add_row(hot->replicas > 1 ? hot->total : hot->sum, run, dim);
			continue;
		}
		if (hot->replicas > 1)
			kernels->add_row(hot->sum, hot->total, dim);
		memcpy(hot->replicas ? hot->total : hot->sum, run, 4ull * dim);
		hot->replica = part->replica[i];
		hot->replicas++;
	}
}

static void hot_add_parts(struct hot_row *hot, u64 parts)
{
	struct port_fpu fpu;

	port_fpu_begin(&fpu);
	for (u64 i = 0; i < parts; i++)
		hot_add_runs(hot, hot_part_of(hot->apply, i));
	port_fpu_end(&fpu);
}

/*
 * kernel_ops.row_gradient for all cores at once, in bounded calls: a row that every sample asks
 * for is most of the step.
 */
static void update_hot_row(const struct apply *apply, const struct kernel_group *group)
{
	const struct model *model = apply->model;
	const struct kernel_update *u = &apply->update;
	u64 cores = apply->cores;
	struct hot_row hot = { .apply = apply,
			       .group = group,
			       .sum = hot_sum(hot_part_of(apply, 0), u->dim, 0),
			       .total = hot_sum(hot_part_of(apply, 0), u->dim, 1) };
	struct port_fpu fpu;
	bool nonfinite;

	while (hot.done < group->count) {
		u32 begun = hot.done;
		u64 share = ((group->count - begun) / KERNEL_RUN + cores) / cores, parts = 0;

		for (; parts < cores && hot.done < group->count; parts++)
			hot_cut(&hot, hot_part_of(apply, parts),
				share < HOT_RUNS ? (u32)share : HOT_RUNS);
		if (!lane_run(apply->lane, apply->cores, hot_task, &hot, parts,
			      4ull * u->dim * (hot.done - begun)))
			return;
		hot_add_parts(&hot, parts);
	}
	port_fpu_begin(&fpu);
	if (hot.replicas > 1)
		model->engine->kernels->add_row(hot.sum, hot.total, u->dim);
	if (u->flags & KERNEL_BY_FREQUENCY)
		kernel_divide(hot.sum, u->dim, group->count);
	nonfinite = model->engine->kernels->update_row(u, group->row, hot.sum);
	port_fpu_end(&fpu);
	if (nonfinite)
		add_nonfinite_rows(apply, count_nonfinite_row(apply, group->row));
}

static bool is_hot(const struct apply *apply, u64 group)
{
	return apply->lane->partition.groups[group].count > apply->most;
}

static bool drops_hot(struct apply *apply, u64 group)
{
	return apply->table->suspect && finite_drops(apply, &apply->lane->partition.groups[group]);
}

static void update_hot_rows(struct apply *apply, u64 tasks)
{
	for (u64 task = 0; task < tasks && !command_is_cut(apply->model->command); task++) {
		u64 group = apply->lane->cuts[task];

		if (is_hot(apply, group) && !drops_hot(apply, group))
			update_hot_row(apply, &apply->lane->partition.groups[group]);
	}
}

/* Without accumulation a row's occurrences are applied one by one: any cut will do. */
static void hot_row_each(const struct apply *apply, const struct kernel_group *group, u8 *scratch)
{
	struct kernel_group piece = *group;
	struct port_fpu fpu;
	bool nonfinite = false;

	for (u64 done = 0; done < group->count; done += piece.count) {
		piece.first = group->first + done;
		piece.count = group->count - done;
		if (piece.count > apply->most)
			piece.count = apply->most;
		port_fpu_begin(&fpu);
		nonfinite |= apply->model->engine->kernels->update_rows(
			&apply->update, &piece, 1, 0, apply->lane->partition.order, scratch);
		port_fpu_end(&fpu);
		if (piece_over(apply->model->command))
			return;
	}
	if (nonfinite)
		add_nonfinite_rows(apply, count_nonfinite_row(apply, group->row));
}

static void update_task(void *arg, u64 task, u32 worker)
{
	struct apply *apply = arg;
	const struct model *model = apply->model;
	const struct partition *p = &apply->lane->partition;
	const u64 *cuts = apply->lane->cuts;
	u64 first = cuts[task], last = cuts[task + 1], ahead = p->group_count - last;
	u8 *scratch = lane_scratch(model, worker);
	struct port_fpu fpu;
	bool nonfinite;

	kept_add_groups(apply->table, p->groups + first, last - first);
	if (is_hot(apply, first)) {
		if (apply->update.flags & KERNEL_EACH_OCCURRENCE && !drops_hot(apply, first))
			hot_row_each(apply, &p->groups[first], scratch);
		return;
	}
	if (apply->table->suspect) {
		nonfinite = finite_rows(apply, first, last, scratch);
	} else {
		port_fpu_begin(&fpu);
		nonfinite = model->engine->kernels->update_rows(
			&apply->update, p->groups + first, last - first, ahead, p->order, scratch);
		port_fpu_end(&fpu);
	}
	if (nonfinite)
		count_nonfinite_groups(apply, first, last);
}

static u64 bytes_touched(const struct partition *p, const struct table *table)
{
	return p->group_count * 2 * table_whole_row_bytes(table) +
	       p->count * table_row_bytes(table, EMBENG_SLOT_PARAMETERS);
}

/* A chunk of the table: the rows that the step did not touch have a gradient of zeros. */
static void untouched_task(void *arg, u64 task, u32 worker)
{
	const struct apply *apply = arg;
	const struct model *model = apply->model;
	const struct partition *p = &apply->lane->partition;
	u64 row = task * apply->most, last = row + apply->most;
	u64 group = groups_from(p->groups, 0, p->group_count, row), count = 0;
	struct port_fpu fpu;

	(void)worker;
	if (last > apply->table->record.rows)
		last = apply->table->record.rows;
	kept_add_range(apply->table, row, last - row);
	port_fpu_begin(&fpu);
	for (; row < last; row++) {
		if (group < p->group_count && p->groups[group].row == row)
			group++;
		else if (model->engine->kernels->update_row(&apply->update, row,
							    (const float *)model->zeros))
			count += count_nonfinite_row(apply, row);
	}
	port_fpu_end(&fpu);
	if (count)
		add_nonfinite_rows(apply, count);
}

static void apply_untouched(struct apply *apply)
{
	struct table *table = apply->table;
	u64 touched = apply->lane->partition.group_count;
	u64 rows = table->record.rows;

	lane_run(apply->lane, apply->cores, untouched_task, apply,
		 rows / apply->most + (rows % apply->most != 0),
		 (rows - touched) * 2 * table_whole_row_bytes(table));
	table->stats.untouched_rows += rows - touched;
}

void apply_rows(struct apply *apply)
{
	u64 tasks = cut_tasks(apply->lane, apply->most);

	if (command_is_cut(apply->model->command) ||
	    !lane_run(apply->lane, apply->cores, update_task, apply, tasks,
		      bytes_touched(&apply->lane->partition, apply->table)))
		return;
	if (!(apply->update.flags & KERNEL_EACH_OCCURRENCE))
		update_hot_rows(apply, tasks);
	if (apply->table->record.flags & EMBENG_TABLE_NON_LAZY)
		apply_untouched(apply);
}
