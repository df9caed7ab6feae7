/* SPDX-License-Identifier: MIT */
/* A complete step goes into the tables. */
#include "step.h"
#include "update.h"

#define F32_ONE 0x3f800000u
#define F32_INFINITY 0x7f800000u
#define F32_MINUS_INFINITY 0xff800000u
#define HOT_RUNS 16u /* runs of one hot row in one call */

struct apply {
	struct model *model;
	struct kernel_update update;
	u64 most; /* occurrences of one call */
};

static const struct batch_feature *feature_of(struct model *model, u64 number, u32 replica,
					      u32 feature)
{
	return &model_part(model, number, replica)->batch->features[feature];
}

int update_partition(struct model *model, u64 number, u32 index)
{
	struct partition *p = &model->partition;
	const struct table *table = &model->tables[index];
	u64 first = 0, begun = port_now_ns();
	u32 sources = 0;
	int failed;

	if (p->step == number && p->table == index)
		return 0;
	for (u32 r = 0; r < model_replicas(model); r++) {
		for (u32 i = 0; i < model->blob.engine.feature_count; i++) {
			const struct batch_feature *f = feature_of(model, number, r, i);

			if (model->blob.features[i].table != index)
				continue;
			p->sources[sources++] = (struct partition_source){ f->rows.data, first,
									   f->occurrences };
			first += f->occurrences;
		}
	}
	failed = partition_make(p, sources, table->record.rows,
				table->record.out_of_range == EMBENG_OUT_OF_RANGE_ZERO,
				model->engine->workers, model->engine->caps.cores);
	if (!failed) {
		p->step = number;
		p->table = index;
	}
	reg_count(model->engine, EMBENG_REG_TIME_PARTITION, port_now_ns() - begun);
	return failed;
}

static struct kernel_segment segment_of(struct model *model, u64 number, u32 replica, u32 feature,
					u64 first)
{
	const struct batch_feature *f = feature_of(model, number, replica, feature);
	const struct table *table = &model->tables[model->blob.features[feature].table];
	const struct view *view =
		&model->gradients[(u64)replica * model->blob.engine.feature_count + feature];
	struct kernel_segment s = {
		.first = first,
		.end = first + f->occurrences,
		.gradients = view->data,
		.stride = table->record.dim,
		.grad_row = f->identity ? NULL : f->outputs_of.data,
		.coef = batch_coef(f),
		.replica = replica,
	};

	if (!s.gradients) {
		s.gradients = (const float *)model->zeros;
		s.stride = 0;
	}
	return s;
}

static u64 make_segments(struct model *model, u64 number, u32 table)
{
	u64 count = 0, first = 0;

	for (u32 r = 0; r < model_replicas(model); r++) {
		for (u32 i = 0; i < model->blob.engine.feature_count; i++) {
			u64 occurrences = feature_of(model, number, r, i)->occurrences;

			if (model->blob.features[i].table != table || !occurrences)
				continue;
			model->segments[count++] = segment_of(model, number, r, i, first);
			first += occurrences;
		}
	}
	return count;
}

static u32 flags_of(const struct embeng_record_table *record, u32 multiplier)
{
	u32 flags = 0;

	if (multiplier && multiplier != F32_ONE)
		flags |= KERNEL_GRADIENT_SCALE;
	if (record->clip_gradient_min != F32_MINUS_INFINITY ||
	    record->clip_gradient_max != F32_INFINITY)
		flags |= KERNEL_GRADIENT_CLIP;
	if (record->weight_decay << 1)
		flags |= KERNEL_DECAY;
	if (record->flags & EMBENG_TABLE_DECAY_BY_RATE)
		flags |= KERNEL_DECAY_TIMES_LR;
	if (record->clip_weight_min != F32_MINUS_INFINITY ||
	    record->clip_weight_max != F32_INFINITY)
		flags |= KERNEL_WEIGHT_CLIP;
	if (!(record->flags & EMBENG_TABLE_ACCUMULATE))
		flags |= KERNEL_EACH_OCCURRENCE;
	return flags;
}

static void describe(struct kernel_update *u, const struct table *table, const struct step *step)
{
	const struct embeng_record_table *record = &table->record;
	const u32 *rate = record->flags & EMBENG_TABLE_RATE_DYNAMIC ? &step->rates[record->rate] :
								       &record->rate;

	u->optimizer = table->kernel;
	u->flags = flags_of(record, step->multiplier);
	u->dim = record->dim;
	u->prefetch = prefetch_rows(record->dim);
	u->stride = record->dim;
	u->table = (float *)table->data;
	for (u32 s = 0; s < EMBENG_SLOTS_MAX; s++)
		u->slots[s] = (float *)table->slots[s];
	memcpy(&u->lr, rate, sizeof(u->lr));
	memcpy(&u->gradient_multiplier, &step->multiplier, sizeof(u->gradient_multiplier));
	memcpy(&u->gradient_min, &record->clip_gradient_min, sizeof(u->gradient_min));
	memcpy(&u->gradient_max, &record->clip_gradient_max, sizeof(u->gradient_max));
	memcpy(&u->decay, &record->weight_decay, sizeof(u->decay));
	memcpy(&u->weight_min, &record->clip_weight_min, sizeof(u->weight_min));
	memcpy(&u->weight_max, &record->clip_weight_max, sizeof(u->weight_max));
	memcpy(u->hyper, record->hyperparameter, sizeof(u->hyper));
}

/* Two tasks that follow each other have more than @most occurrences together. */
u64 update_cuts(u64 occurrences, u64 most)
{
	return occurrences / most * 2 + 3;
}

static int cut_reserve(struct model *model, u64 occurrences, u64 most)
{
	u64 cuts = update_cuts(occurrences, most);

	return grow(model, (void **)&model->cuts, &model->cuts_bytes, cuts * sizeof(*model->cuts));
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

static void apply_table(struct model *model, u64 number, struct table *table)
{
	struct apply apply = { .model = model, .most = chunk_rows(table->record.dim) };
	u64 tasks, begun;

	update_partition(model, number, table->index); /* memory is reserved, it cannot fail */
	tasks = cut(model, apply.most);
	begun = port_now_ns();
	describe(&apply.update, table, model_step(model, number));
	apply.update.segment_count = make_segments(model, number, table->index);
	apply.update.segments = model->segments;
	if (tasks)
		workers_run(model->engine->workers, update_task, &apply, tasks,
			    bytes_touched(model, table));
	stats_count(model, table, number);
	table->stats.updated_rows += model->partition.group_count;
	reg_count(model->engine, EMBENG_REG_TIME_UPDATE, port_now_ns() - begun);
}

static u16 get_gradients(struct command *command, u64 number)
{
	struct model *model = command->context->model;
	u32 features = model->blob.engine.feature_count;
	u16 status = 0;

	for (u64 i = 0; !status && i < (u64)features * model_replicas(model); i++) {
		const struct part *part = model_part(model, number, (u32)(i / features));
		const struct embeng_mem *mem = &part->gradients->features[i % features].gradients;

		if (mem_given(mem))
			status = region_get(command->context, mem, EMBENG_REGION_DEVICE_READ, 4,
					    EMBENG_FIELD_GRADIENTS, (u32)(i % features),
					    &model->gradients[i], &command->fault);
	}
	return status;
}

static u64 put_gradients(struct command *command)
{
	struct model *model = command->context->model;
	u64 parts = (u64)model->blob.engine.feature_count * model_replicas(model), bytes = 0;

	for (u64 i = 0; i < parts; i++) {
		bytes += model->gradients[i].length;
		region_put(command->context, &model->gradients[i]);
	}
	return bytes;
}

static u64 occurrences_of(struct model *model, u64 number, u32 table)
{
	u64 sum = 0;

	for (u32 r = 0; r < model_replicas(model); r++) {
		for (u32 i = 0; i < model->blob.engine.feature_count; i++) {
			if (model->blob.features[i].table == table)
				sum += feature_of(model, number, r, i)->occurrences;
		}
	}
	return sum;
}

/*
 * All memory that the step needs is there before the first table changes: a
 * failure leaves all of them as they were.
 */
static int reserve(struct model *model, u64 number)
{
	for (u32 t = 0; t < model->blob.engine.table_count; t++) {
		const struct embeng_record_table *record = &model->tables[t].record;
		u64 count = occurrences_of(model, number, t);

		if (partition_reserve(&model->partition, count, record->rows,
				      model->engine->caps.cores) ||
		    cut_reserve(model, count, chunk_rows(record->dim)))
			return -1;
	}
	return 0;
}

static u64 apply_tables(struct model *model, u64 number)
{
	u64 rows = 0;

	for (u32 t = 0; t < model->blob.engine.table_count; t++) {
		apply_table(model, number, &model->tables[t]);
		rows += model->partition.group_count;
	}
	return rows;
}

u16 update_apply(struct command *command, u64 number)
{
	struct model *model = command->context->model;
	struct engine *engine = model->engine;
	u64 parts = (u64)model->blob.engine.feature_count * model_replicas(model), rows;
	u16 status;

	memset(model->gradients, 0, parts * sizeof(*model->gradients));
	status = get_gradients(command, number);
	if (!status && reserve(model, number))
		status = fault_set(&command->fault, EMBENG_STATUS_NO_MEMORY, EMBENG_FIELD_NONE,
				   EMBENG_NO_INDEX, 0, 0, 0);
	if (status) {
		put_gradients(command);
		return status;
	}
	rows = apply_tables(model, number);
	reg_count(engine, EMBENG_REG_COUNT_BYTES_READ, put_gradients(command));
	reg_count(engine, EMBENG_REG_COUNT_UPDATES, 1);
	reg_count(engine, EMBENG_REG_COUNT_UNIQUE_ROWS, rows);
	port_lock(engine->lock);
	step_applied(model, number, rows);
	port_unlock(engine->lock);
	return 0;
}
