/* SPDX-License-Identifier: MIT */
#include "batch.h"

/* A single unweighted row is its own sum, mean and sqrtn. */
static u32 combiner_of(const struct model *model, u32 feature, const struct batch_feature *f)
{
	u32 table = model->blob.features[feature].table;

	if (f->given.form == EMBENG_FORM_DENSE || batch_sequence(model, feature, f))
		return EMBENG_COMBINER_SUM;
	return model->tables[table].record.combiner;
}

/* First sample that does not belong to a call of bounded work any more. */
static u64 bounded(const u64 *bag, u64 first, u64 samples, u64 most)
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

u16 scales_make(const struct model *model, u32 feature, struct batch_feature *f, bool training,
		struct fault *fault)
{
	struct kernel_scale_work work = { .combiner = combiner_of(model, feature, f) };
	struct port_fpu fpu;

	f->scaled = work.combiner != EMBENG_COMBINER_SUM;
	if (!f->scaled)
		return 0;
	if (buffer_need(&f->scales, f->outputs, 4) ||
	    (training && buffer_need(&f->coef, f->occurrences, 4)))
		return fault_set(fault, EMBENG_STATUS_NO_MEMORY, EMBENG_FIELD_IDS, feature, 0,
				 f->occurrences, 0);
	work.weights = f->weighted ? f->weights.data : NULL;
	work.bag = f->bag.data;
	work.scales = f->scales.data;
	work.coef = training ? f->coef.data : NULL;
	for (u64 first = 0, last; first < f->outputs; first = last) {
		last = bounded(f->bag.data, first, f->outputs, chunk_rows(1));
		port_fpu_begin(&fpu);
		model->engine->kernels->scales(&work, first, last);
		port_fpu_end(&fpu);
	}
	return 0;
}

/* With the sum a coefficient is the weight itself. */
const void *batch_coef(const struct model *model, u32 feature, const struct batch_feature *f)
{
	if (combiner_of(model, feature, f) != EMBENG_COMBINER_SUM)
		return f->coef.data;
	return f->weighted ? f->weights.data : NULL;
}

static int add_task(struct batch *batch, u64 *room, u32 feature, u64 first, u64 last)
{
	struct batch_task *tasks = batch->tasks.data;

	if (batch->task_count == *room) {
		struct buffer larger = { 0 };

		if (buffer_need(&larger, *room * 2 + 64, sizeof(*tasks)))
			return -1;
		if (tasks)
			memcpy(larger.data, tasks, batch->task_count * sizeof(*tasks));
		port_free(tasks);
		batch->tasks = larger;
		tasks = larger.data;
		*room = larger.bytes / sizeof(*tasks);
	}
	tasks[batch->task_count++] = (struct batch_task){ feature, first, last };
	return 0;
}

int batch_cut(const struct model *model, struct batch *batch)
{
	u64 room = batch->tasks.bytes / sizeof(struct batch_task);

	batch->task_count = batch->occurrences = batch->bytes = 0;
	for (u32 i = 0; i < batch->feature_count; i++) {
		const struct batch_feature *f = &batch->features[i];
		u32 dim = model->tables[model->blob.features[i].table].record.dim;
		u64 most = chunk_rows(dim);

		for (u64 first = 0, last; first < f->outputs; first = last) {
			last = bounded(f->bag.data, first, f->outputs, most);
			if (add_task(batch, &room, i, first, last))
				return -1;
		}
		batch->occurrences += f->occurrences;
		batch->bytes += (f->occurrences + f->outputs) * dim * 4;
	}
	return 0;
}
