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

void scales_run(const struct kernel_ops *kernels, const struct kernel_scale_work *work, u64 first,
		u64 last)
{
	struct port_fpu fpu;

	for (u64 end; first < last; first = end) {
		end = end_of_call(work->bag, first, last, chunk_rows(1));
		port_fpu_begin(&fpu);
		kernels->scales(work, first, end);
		port_fpu_end(&fpu);
	}
}

/* A single unweighted row is its own sum, mean and sqrtn: then nothing is scaled. */
void scales_make(const struct model *model, u32 feature, struct batch_feature *f, bool training)
{
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
	scales_run(model->engine->kernels, &work, 0, f->outputs);
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

int batch_cut(struct model *model, struct batch *batch)
{
	u64 room = batch->tasks.bytes / sizeof(struct batch_task);

	batch->task_count = batch->occurrences = batch->bytes = 0;
	for (u32 i = 0; i < batch->feature_count; i++) {
		const struct batch_feature *f = &batch->features[i];
		u32 dim = model->tables[model->blob.features[i].table].record.dim;
		u64 most = chunk_rows(dim);

		for (u64 first = 0, last; first < f->outputs; first = last) {
			last = end_of_call(f->bag.data, first, f->outputs, most);
			if (add_task(model, batch, &room, i, first, last))
				return -1;
		}
		batch->occurrences += f->occurrences;
		batch->bytes += (f->occurrences + f->outputs) * dim * 4;
	}
	return 0;
}
