/* SPDX-License-Identifier: MIT */
/*
 * Computes the scales of combined samples and the coefficients of their gradients, and cuts a
 * batch's outputs into tasks. Both need stretches of samples whose work is bounded, since no
 * stretch inside an FP section may be long; the search for these is here.
 *
 * The memory belongs to the batch and is counted in the model's. No lock is needed.
 */
#include "batch.h"

/* First sample that does not belong to a call of bounded work any more. */
static u64 end_of_call(const u64 *bag, u64 first, u64 samples, u64 most)
{
	u64 low = first + 1, high = samples - first > most ? first + most : samples;

	while (low < high) {
		u64 middle = low + (high - low + 1) / 2;

		if (bag[middle] - bag[first] <= most)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

enum long_stage { LONG_ADD, LONG_APPLY };

/* All occurrences of a long bag, in calls of bounded work. Return: as piece_over(). */
static bool run_long_stage(struct command *command, struct kernel_long_bag *bag,
			   enum long_stage stage)
{
	u64 last = bag->work->bag[bag->sample + 1];
	struct port_fpu fpu;

	for (u64 at = bag->work->bag[bag->sample], end; at < last; at = end) {
		end = last - at < chunk_rows(1) ? last : at + chunk_rows(1);
		port_fpu_begin(&fpu);
		if (stage == LONG_ADD)
			kernel_long_bag_add(bag, at, end);
		else
			kernel_long_bag_apply(bag, at, end);
		port_fpu_end(&fpu);
		if (piece_over(command))
			return true;
	}
	return false;
}

/* kernel_ops.scales of a bag that is too long for one call. */
static bool run_long_bag(struct command *command, const struct kernel_scale_work *work, u64 sample)
{
	struct kernel_long_bag bag = { .work = work, .sample = sample };
	struct port_fpu fpu;

	if (run_long_stage(command, &bag, LONG_ADD))
		return true;
	port_fpu_begin(&fpu);
	kernel_long_bag_end(&bag);
	port_fpu_end(&fpu);
	return run_long_stage(command, &bag, LONG_APPLY);
}

void scales_run(struct command *command, const struct kernel_scale_work *work, u64 first, u64 last)
{
	const u64 most = chunk_rows(1);
	struct port_fpu fpu;
	bool stops;

	for (u64 end; first < last; first = end) {
		end = end_of_call(work->bag, first, last, most);
		if (work->bag[end] - work->bag[first] > most) {
			stops = run_long_bag(command, work, first);
		} else {
			port_fpu_begin(&fpu);
			command->context->engine->kernels->scales(work, first, end);
			port_fpu_end(&fpu);
			stops = end < last && piece_over(command);
		}
		if (stops)
			return;
	}
}

/* A single unweighted row is its own sum, mean and sqrtn: then nothing is scaled. */
void scales_make(struct command *command, u32 feature, struct batch_feature *f, bool training)
{
	const struct model *model = command_model(command);
	struct kernel_scale_work work = {
		.combiner = model->tables[model->blob.features[feature].table].record.combiner,
	};

	if (!f->scaled)
		return;
	work.weights = f->weighted ? f->weights.data : NULL;
	work.bag = f->bag.data;
	work.scales = f->scales.data;
	work.coef = training ? f->coef.data : NULL;
	work.stretched = f->weighted ? f->weights.data : NULL;
	scales_run(command, &work, 0, f->outputs);
}

/* With the sum a coefficient is the weight itself. */
const void *batch_coef(const struct batch_feature *f)
{
	if (f->scaled)
		return f->coef.data;
	return f->weighted ? f->weights.data : NULL;
}

static int more_tasks(struct model *model, struct batch *batch, u64 *room)
{
	u64 more = batch_task_room(*room), bytes = more * sizeof(struct batch_task);
	void *larger = model_alloc(model, bytes);

	if (!larger)
		return -1;
	if (batch->tasks.data)
		memcpy(larger, batch->tasks.data, batch->task_count * sizeof(struct batch_task));
	model_count(model, -batch->tasks.bytes);
	port_free(batch->tasks.data);
	batch->tasks = (struct buffer){ larger, bytes };
	*room = more;
	return 0;
}

static int add_task(struct model *model, struct batch *batch, u64 *room, u32 feature, u64 first,
		    u64 last)
{
	struct batch_task *tasks;

	if (batch->task_count == *room && more_tasks(model, batch, room))
		return -1;
	tasks = batch->tasks.data;
	tasks[batch->task_count++] = (struct batch_task){ feature, first, last };
	return 0;
}

/* Each is found by halving. */
#define TASKS_PIECE (PIECE_ROWS / 16)

int batch_cut(struct command *command, struct batch *batch)
{
	struct model *model = command_model(command);
	u64 room = batch->tasks.bytes / sizeof(struct batch_task);

	batch->task_count = batch->occurrences = batch->bytes = 0;
	for (u32 i = 0; i < batch->feature_count; i++) {
		const struct batch_feature *f = &batch->features[i];
		u32 dim = model->tables[model->blob.features[i].table].record.dim;
		u64 most = chunk_rows(dim);

		for (u64 first = 0, last; first < f->outputs; first = last) {
			last = end_of_call(f->bag.data, first, f->outputs, most);
			if (add_task(model, batch, &room, i, first, last) ||
			    (!(batch->task_count % TASKS_PIECE) && piece_over(command)))
				return -1;
		}
		batch->occurrences += f->occurrences;
		batch->bytes += (f->occurrences + f->outputs) * dim * 4;
	}
	return 0;
}
