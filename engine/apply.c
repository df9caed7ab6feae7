/* SPDX-License-Identifier: MIT */
/* A complete step goes into the tables. */
#include "apply.h"
#include "step.h"
#include "update.h"

#define F32_INFINITY 0x7f800000u
#define F32_MINUS_INFINITY 0xff800000u

static const struct batch_feature *feature_of(struct model *model, u64 number, u32 replica,
					      u32 feature)
{
	return &model_part(model, number, replica)->batch->features[feature];
}

/*
 * Occurrences that all weigh 1 are told by the row of their gradient, which then needs no
 * search; weights are found by the number of an occurrence.
 */
static bool told_by_gradient(struct model *model, u64 number, u32 table)
{
	u64 outputs = 0;

	for (u32 r = 0; r < model_replicas(model); r++) {
		for (u32 i = 0; i < model->blob.engine.feature_count; i++) {
			const struct batch_feature *f = feature_of(model, number, r, i);

			if (model->blob.features[i].table != table)
				continue;
			if (batch_coef(f))
				return false;
			outputs += f->outputs;
		}
	}
	return outputs <= U32_MAX;
}

static const u32 *gradient_rows(const struct batch_feature *f)
{
	return f->identity ? NULL : f->outputs_of.data;
}

int update_partition(struct model *model, u64 number, u32 index)
{
	struct partition *p = &model->partition;
	const struct table *table = &model->tables[index];
	u64 first = 0, base = 0, begun = port_now_ns();
	u32 sources = 0;
	int failed;

	if (p->step == number && p->table == index)
		return 0;
	p->by_gradient = told_by_gradient(model, number, index);
	for (u32 r = 0; r < model_replicas(model); r++) {
		for (u32 i = 0; i < model->blob.engine.feature_count; i++) {
			const struct batch_feature *f = feature_of(model, number, r, i);

			if (model->blob.features[i].table != index)
				continue;
			p->sources[sources++] = (struct partition_source){
				batch_wide_rows(f), batch_narrow_rows(f), first, f->occurrences,
				p->by_gradient ? base : first,
				p->by_gradient ? gradient_rows(f) : NULL };
			first += f->occurrences;
			base += f->outputs;
		}
	}
	p->below = p->by_gradient ? base : first;
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

/* Of a table whose partition is there: both number occurrences alike. */
static struct kernel_segment segment_of(struct model *model, u64 number, u32 replica, u32 feature,
					u64 first)
{
	const bool by_gradient = model->partition.by_gradient;
	const struct batch_feature *f = feature_of(model, number, replica, feature);
	const struct table *table = &model->tables[model->blob.features[feature].table];
	const struct view *view =
		&model->gradients[(u64)replica * model->blob.engine.feature_count + feature];
	struct kernel_segment s = {
		.first = first,
		.end = first + (by_gradient ? f->outputs : f->occurrences),
		.gradients = view->data,
		.stride = table->record.dim,
		.grad_row = by_gradient ? NULL : gradient_rows(f),
		.coef = batch_coef(f),
		.replica = replica,
		.far = view->length > PREFETCH_GRADIENT_BYTES,
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
			struct kernel_segment s;

			if (model->blob.features[i].table != table)
				continue;
			s = segment_of(model, number, r, i, first);
			if (s.end > first)
				model->segments[count++] = s;
			first = s.end;
		}
	}
	return count;
}

static u32 flags_of(const struct embeng_record_table *record, u32 multiplier)
{
	u32 flags = 0;

	if (multiplier && multiplier != KERNEL_F32_ONE)
		flags |= KERNEL_GRADIENT_SCALE;
	if (record->clip_gradient_min != F32_MINUS_INFINITY ||
	    record->clip_gradient_max != F32_INFINITY)
		flags |= KERNEL_GRADIENT_CLIP;
	if (record->weight_decay << 1)
		flags |= record->flags & EMBENG_TABLE_DECAY_BY_RATE ?
				 KERNEL_DECAY | KERNEL_DECAY_TIMES_LR :
				 KERNEL_DECAY;
	if (record->clip_weight_min != F32_MINUS_INFINITY ||
	    record->clip_weight_max != F32_INFINITY)
		flags |= KERNEL_WEIGHT_CLIP;
	if (!(record->flags & EMBENG_TABLE_ACCUMULATE))
		flags |= KERNEL_EACH_OCCURRENCE;
	return flags;
}

static void describe(struct kernel_update *u, const struct table *table, const struct step *step,
		     u64 optimizer_step, u32 ahead)
{
	const struct embeng_record_table *record = &table->record;
	const u32 *rate = record->flags & EMBENG_TABLE_RATE_DYNAMIC ? &step->rates[record->rate] :
								       &record->rate;
	struct port_fpu fpu;

	u->optimizer = table->kernel;
	u->flags = flags_of(record, step->multiplier);
	u->dim = record->dim;
	u->prefetch = prefetch_rows(ahead, PREFETCH_UPDATE, record->dim, table->bytes);
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
	u->step = optimizer_step;
	port_fpu_begin(&fpu);
	if (record->flags & EMBENG_TABLE_STEP_DYNAMIC)
		u->step = kernel_step(step->rates[record->step_rate]);
	kernel_prepare(u);
	port_fpu_end(&fpu);
}

static void apply_table(struct model *model, u64 number, struct table *table)
{
	struct apply apply = { .model = model, .table = table,
			       .most = chunk_rows(table->record.dim) };
	u64 begun;

	update_partition(model, number, table->index); /* memory is reserved, it cannot fail */
	begun = port_now_ns();
	if (table->kernel != U32_MAX) {
		describe(&apply.update, table, model_step(model, number),
			 model->optimizer_steps + 1, model->engine->config.prefetch);
		apply.update.segment_count = make_segments(model, number, table->index);
		apply.update.segments = model->segments;
		apply_rows(&apply);
	}
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
		    apply_reserve(model, count, chunk_rows(record->dim)))
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
