/* SPDX-License-Identifier: MIT */
/*
 * Runs a LOOKUP: hands the tasks into which its batch was cut to the cores, each of which sums rows
 * straight into the program's activation buffers. With the combiner max it looks for the largest
 * numbers instead, and notes for the update which occurrences hold them; a step whose LOOKUP took ids
 * alone has them looked for when it is applied.
 *
 * Called without engine->lock by the running command, of which there is one at a time, so the
 * tables do not change. A training lookup whose update came early sees the rows of before it.
 * engine->lock is taken to map the buffers, to release them, and to count what is not finite.
 */
#include "batch.h"
#include "../f32.h"
#include "../kernels/scratch.h"
#include "../memory/record.h"
#include "stale.h"

/* Outputs of all features together: no cache keeps so many until they are read. */
#define STREAM_BYTES (16ull << 20)

struct lookup {
	struct command *command;
	const struct model *model;
	const struct batch *batch;
	struct view *out; /* [features] */
	u64 bytes;	  /* the sum over all outputs */
};

/* Floats from one output to the next. */
static u64 output_stride(const struct batch_feature *f, u32 dim)
{
	return f->given.activation_stride ? f->given.activation_stride / 4 : dim;
}

static bool streams_output(const struct lookup *lookup, u32 feature, u32 dim)
{
	return lookup->bytes >= STREAM_BYTES && !(dim % 16) &&
	       !(output_stride(&lookup->batch->features[feature], dim) % 16) &&
	       !((u64)(size_t)lookup->out[feature].data % 64);
}

/* Rare: only the outputs of a task that the kernel found something in are looked at again. */
static void count_nonfinite_outputs(const struct lookup *lookup, const struct batch_task *task)
{
	const struct model *model = lookup->model;
	struct table *table = &model->tables[model->blob.features[task->feature].table];
	const u32 *out = lookup->out[task->feature].data;
	u32 dim = table->record.dim;
	u64 stride = output_stride(&lookup->batch->features[task->feature], dim), count = 0;

	for (u64 s = task->first; s < task->last; s++)
		count += !f32_row_finite(out + s * stride, dim);
	port_lock(model->engine->lock);
	table->stats.nonfinite_activations += count;
	port_unlock(model->engine->lock);
}

/* One call of bounded work. Return: whether an output is not finite. */
static bool call_lookup(const struct lookup *lookup, const struct kernel_bag_work *work,
			const struct batch_feature *f, u64 first, u64 last)
{
	const struct kernel_ops *kernels = lookup->model->engine->kernels;
	struct port_fpu fpu;
	bool nonfinite;

	port_fpu_begin(&fpu);
	nonfinite = f->largest ? kernels->lookup_max(work, first, last) :
				 kernels->lookup(work, first, last);
	port_fpu_end(&fpu);
	return nonfinite;
}

/*
 * A bag of more rows than one call may sum: each call goes on from what the one before wrote, and
 * the last one scales. Return: whether an output is not finite.
 */
static bool sum_long_bag(const struct lookup *lookup, struct kernel_bag_work *work,
			 const struct batch_feature *f, u64 sample)
{
	const u64 first = work->bag[sample], last = work->bag[sample + 1];
	const u64 most = chunk_rows(work->dim);
	const float *scale = work->scales ? work->scales + sample : NULL;
	u64 part[2];
	bool nonfinite = false;

	work->bag = part;
	work->out += sample * work->out_stride;
	if (work->holders)
		work->holders += sample * work->dim;
	for (part[0] = first; part[0] < last; part[0] = part[1]) {
		part[1] = last - part[0] < most ? last : part[0] + most;
		work->resume = part[0] != first;
		work->scales = part[1] == last ? scale : NULL;
		nonfinite = call_lookup(lookup, work, f, 0, 1);
		if (piece_over(lookup->command))
			break;
	}
	return nonfinite;
}

static bool sum_bags(const struct lookup *lookup, struct kernel_bag_work *work,
		     const struct batch_task *task)
{
	const struct batch_feature *f = &lookup->batch->features[task->feature];

	if (work->bag[task->last] - work->bag[task->first] > chunk_rows(work->dim))
		return sum_long_bag(lookup, work, f, task->first);
	return call_lookup(lookup, work, f, task->first, task->last);
}

/* All but where the outputs go. */
static struct kernel_bag_work work_of(const struct lookup *lookup, const struct batch_task *task)
{
	const struct model *model = lookup->model;
	const struct batch_feature *f = &lookup->batch->features[task->feature];
	const struct table *table = &model->tables[model->blob.features[task->feature].table];
	u32 dim = table->record.dim;

	return (struct kernel_bag_work){
		.table = (const float *)table->data,
		.stride = dim,
		.dim = dim,
		.prefetch = table->lookup.rows,
		.fetch = table->lookup.form,
		.rows = batch_wide_rows(f),
		.narrow = batch_narrow_rows(f),
		.rows_count = f->occurrences,
		.zero_row = (const float *)model->zeros,
		.quantization = table_quantization(table),
		.weights = f->weighted ? f->weights.data : NULL,
		.scales = f->scaled ? f->scales.data : NULL,
		.bag = f->bag.data,
	};
}

#define GATHER_AHEAD 12u /* rows fetched ahead of the one that is copied */
#define LINE_FLOATS 16u

/* Where the row of a sample is; NULL: it is zeros. */
static const float *gathered_row(const struct kernel_bag_work *work, u64 sample)
{
	u64 at = work->bag[sample], row = KERNEL_ROW_ZERO;

	if (at < work->bag[sample + 1])
		row = work->narrow ? work->narrow[at] : work->rows[at];
	return row == KERNEL_ROW_ZERO ? NULL : work->table + row * work->stride;
}

static void fetch_gathered_row(const struct kernel_bag_work *work, u64 sample)
{
	const float *row = gathered_row(work, sample);

	for (u32 c = 0; row && c < work->dim; c += LINE_FLOATS)
		__builtin_prefetch(row + c);
}

/* Whether the numbers of samples are finite, a bounded call's. */
static bool gathered_are_finite(const struct lookup *lookup, const struct kernel_bag_work *work,
				const struct batch_task *task)
{
	const float *out = work->out + task->first * work->out_stride;
	u64 rows = task->last - task->first, step = work->out_stride == work->dim ? rows : 1;
	struct port_fpu fpu;
	bool finite = true;

	port_fpu_begin(&fpu);
	for (u64 s = 0; finite && s < rows; s += step)
		finite = lookup->model->engine->kernels->all_finite(out + s * work->out_stride,
								    step * work->dim);
	port_fpu_end(&fpu);
	return finite;
}

/*
 * Rows with their bits: a sum with +0 would take the sign of a -0. Quantized rows have no -0.
 * Return: whether an output is not finite.
 */
static bool copy_gathered_rows(const struct lookup *lookup, const struct kernel_bag_work *work,
			       const struct batch_task *task)
{
	for (u64 s = task->first; s < task->last; s++) {
		const float *row = gathered_row(work, s);
		float *out = work->out + s * work->out_stride;

		if (s + GATHER_AHEAD < task->last)
			fetch_gathered_row(work, s + GATHER_AHEAD);
		if (row)
			memcpy(out, row, 4ull * work->dim);
		else
			memset(out, 0, 4ull * work->dim);
	}
	return !gathered_are_finite(lookup, work, task);
}

static bool gathers_rows(const struct batch_feature *f, const struct kernel_bag_work *work)
{
	return f->given.form == EMBENG_FORM_ROWS && !work->quantization;
}

static void lookup_task(void *arg, u64 number, u32 worker)
{
	const struct lookup *lookup = arg;
	const struct batch_task *task = (struct batch_task *)lookup->batch->tasks.data + number;
	const struct batch_feature *f = &lookup->batch->features[task->feature];
	struct kernel_bag_work work = work_of(lookup, task);

	(void)worker;
	work.out = lookup->out[task->feature].data;
	work.out_stride = output_stride(f, work.dim);
	work.stream = streams_output(lookup, task->feature, work.dim);
	if (f->largest && lookup_trains(lookup->command))
		work.holders = f->holders.data;
	if (gathers_rows(f, &work) ? copy_gathered_rows(lookup, &work, task) :
				     sum_bags(lookup, &work, task))
		count_nonfinite_outputs(lookup, task);
}

/* The numbers themselves are of no use: all go to one row of the core's scratch memory. */
static void holders_task(void *arg, u64 number, u32 worker)
{
	const struct lookup *lookup = arg;
	const struct model *model = lookup->model;
	const struct batch_task *task = (struct batch_task *)lookup->batch->tasks.data + number;
	const struct batch_feature *f = &lookup->batch->features[task->feature];
	struct kernel_bag_work work;

	if (!f->largest || !table_trains(&model->tables[model->blob.features[task->feature].table]))
		return;
	work = work_of(lookup, task);
	work.out = kernel_scratch_sum(model->scratch + worker * model->scratch_stride, work.dim);
	work.holders = f->holders.data;
	sum_bags(lookup, &work, task);
}

static bool has_largest(const struct batch *batch)
{
	for (u32 i = 0; i < batch->feature_count; i++) {
		if (batch->features[i].largest)
			return true;
	}
	return false;
}

bool lookup_holders(struct command *command, const struct batch *batch)
{
	struct lookup lookup = { .command = command,
				 .model = command_model(command),
				 .batch = batch };

	if (!has_largest(batch))
		return true;
	return workers_run(command, holders_task, &lookup, batch->task_count, batch->bytes);
}

static u16 get_lookup_outputs(struct command *command, struct lookup *lookup)
{
	const struct batch *batch = lookup->batch;
	u16 status = 0;

	memset(lookup->out, 0, batch->feature_count * sizeof(*lookup->out));
	port_lock(command->context->engine->lock);
	for (u32 i = 0; !status && i < batch->feature_count; i++) {
		const struct embeng_mem *mem = &batch->features[i].given.activations;
		struct view *out = &lookup->out[i];
		const struct table *table =
			&lookup->model->tables[lookup->model->blob.features[i].table];

		if (mem_given(mem))
			status = region_get_held(command, mem, EMBENG_REGION_DEVICE_WRITE, 4,
						 EMBENG_FIELD_ACTIVATIONS, i, out);
		if (out->data && batch->features[i].given.activation_stride)
			record_before(command, mem, out->data);
		lookup->bytes += batch->features[i].outputs * 4ull * table->record.dim;
	}
	port_unlock(command->context->engine->lock);
	return status;
}

u64 lookup_touched(const struct command *command)
{
	return command->cmd.flags & EMBENG_CMD_IDS_ONLY ? 0 : batch_of(command)->bytes;
}

/* Half of a swap would leave rows of two steps in the tables. */
static void swap_whole(struct command *command)
{
	command->finishes = true;
	stale_swap(command->context->model);
	command->finishes = false;
}

u16 lookup_outputs(struct command *command, const struct batch *batch)
{
	struct model *model = command_model(command);
	struct lookup lookup = {
		.command = command, .model = model, .batch = batch, .out = model->gradients
	};
	u16 status = get_lookup_outputs(command, &lookup);

	if (!status &&
	    !workers_run_rows(command, lookup_task, &lookup, batch->task_count, batch->bytes))
		status = abort_command(command);
	region_put_all(command->context, lookup.out, batch->feature_count);
	if (!status)
		reg_count(model->engine, EMBENG_REG_COUNT_BYTES_WRITTEN, lookup.bytes);
	return status;
}

u16 lookup_run(struct command *command)
{
	struct model *model = command->context->model;
	const struct batch *batch = batch_of(command);
	bool stale = lookup_trains(command) && stale_hides(model, command->cmd.step);
	u16 status;

	/* All that the update needs was copied when it was accepted. */
	if (command->cmd.flags & EMBENG_CMD_IDS_ONLY)
		return 0;
	if (stale)
		swap_whole(command);
	status = lookup_outputs(command, batch);
	if (stale)
		swap_whole(command);
	if (status)
		return status;
	reg_count(model->engine, EMBENG_REG_COUNT_BATCHES, 1);
	reg_count(model->engine, EMBENG_REG_COUNT_IDS, batch->occurrences);
	command->ids = batch->occurrences;
	return 0;
}
