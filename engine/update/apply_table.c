/* SPDX-License-Identifier: MIT */
/*
 * Prepares one table for one step: sorts its occurrences by row, says where their gradients are,
 * and describes its optimizer to the kernels. Then the rows are updated in apply_rows.c. STATS uses
 * the sort alone, and so does a table that is frozen or has no optimizer.
 *
 * Called without engine->lock, by one core at a time for each table. The sorted occurrences belong
 * to the lane of that core, and are used again if the same step and table come next.
 */
#include "apply.h"
#include "lane.h"
#include "../f32.h"
#include "../lookup/stale.h"
#include "../step/step.h"
#include "update.h"

/* NULL for a feature of another table, and where the replica gave the step no gradients. */
static const struct batch_feature *feature_of(struct model *model, u64 number, u32 replica,
					      u32 feature, u32 table)
{
	const struct part *part = model_part(model, number, replica);

	if (model->blob.features[feature].table != table || part_is_discarded(part))
		return NULL;
	return &part->batch->features[feature];
}

/*
 * Occurrences that all weigh 1 are told by the row of their gradient, which then needs no
 * search; weights are found by the number of an occurrence, and so is what it holds.
 */
static bool told_by_gradient(struct model *model, u64 number, u32 table)
{
	u64 outputs = 0;

	for (u32 r = 0; r < model_replicas(model); r++) {
		for (u32 i = 0; i < model->blob.engine.feature_count; i++) {
			const struct batch_feature *f = feature_of(model, number, r, i, table);

			if (!f)
				continue;
			if (batch_coef(f) || f->largest)
				return false;
			outputs += f->outputs;
		}
	}
	return outputs <= U32_MAX;
}

const u32 *gradient_rows(struct command *command, const struct batch_feature *f)
{
	const u64 *bag = f->bag.data;
	u32 *outputs_of = f->outputs_of.data;
	u64 left = PIECE_ROWS;

	if (f->identity)
		return NULL;
	for (u64 s = 0; s < f->outputs && !piece_step(command, &left); s++) {
		for (u64 k = bag[s]; k < bag[s + 1];) {
			for (u64 end = piece_part(k, bag[s + 1], &left); k < end; k++)
				outputs_of[k] = (u32)s;
			if (piece_spent(command, &left))
				return outputs_of;
		}
	}
	return outputs_of;
}

/* The occurrences of a table, in its part of the model's sources. Return: how many parts. */
static u32 make_sources(struct model *model, struct partition *p, u64 number, u32 index)
{
	u64 first = 0, base = 0;
	u32 sources = 0;

	p->sources = model->sources + model->tables[index].first_part;
	for (u32 r = 0; r < model_replicas(model); r++) {
		for (u32 i = 0; i < model->blob.engine.feature_count; i++) {
			const struct batch_feature *f = feature_of(model, number, r, i, index);

			if (!f)
				continue;
			p->sources[sources++] = (struct partition_source){
				batch_wide_rows(f),
				batch_narrow_rows(f),
				first,
				f->occurrences,
				p->by_gradient ? base : first,
				p->by_gradient && !f->identity ? f->bag.data : NULL,
				f->outputs
			};
			first += f->occurrences;
			base += f->outputs;
		}
	}
	p->below = p->by_gradient ? base : first;
	return sources;
}

static int make_partition(struct model *model, struct partition *p, u64 number, u32 index,
			  u32 cores)
{
	const struct embeng_record_table *record = &model->tables[index].record;
	bool discards = step_discards(model, number);

	if (p->step == number && p->table == index && !discards)
		return 0;
	p->by_gradient = told_by_gradient(model, number, index);
	if (partition_make(p, make_sources(model, p, number, index), record->rows,
			   record->out_of_range == EMBENG_OUT_OF_RANGE_ZERO, model->command,
			   cores == model->engine->caps.cores, cores))
		return -1;
	/* A replica may take its discard back, and then gives gradients. */
	p->step = discards ? 0 : number;
	p->table = index;
	return 0;
}

int update_partition(struct lane *lane, u64 number, u32 table, u32 cores)
{
	u64 begun = port_now_ns();
	int failed = make_partition(lane->model, &lane->partition, number, table, cores);

	lane->partition_ns += port_now_ns() - begun;
	return failed;
}

/* The table's partition exists already, and both number occurrences alike. */
static struct kernel_segment segment_of(struct model *model, const struct batch_feature *f,
					u32 replica, u32 feature, u64 first, const bool by_gradient)
{
	const struct table *table = &model->tables[model->blob.features[feature].table];
	const struct view *view =
		&model->gradients[(u64)replica * model->blob.engine.feature_count + feature];
	struct kernel_segment s = {
		.first = first,
		.end = first + (by_gradient ? f->outputs : f->occurrences),
		.gradients = view->data,
		.stride = table->record.dim,
		.grad_row = by_gradient ? NULL : gradient_rows(model->command, f),
		.coef = batch_coef(f),
		.holders = f->largest ? f->holders.data : NULL,
		.replica = replica,
		.far = view->length > model->engine->fetch.gradient_bytes,
	};

	if (!s.gradients) {
		s.gradients = (const float *)model->zeros;
		s.stride = 0;
	}
	return s;
}

static bool gives_sums(const struct part *part, u32 feature)
{
	return part->gradients->features[feature].flags & EMBENG_UPDATE_SUMS;
}

static void make_segments(struct model *model, u64 number, const struct table *table,
			  const bool by_gradient, struct kernel_update *u)
{
	struct kernel_segment *segments = model->segments + table->first_part;
	u64 count = 0, first = 0;

	for (u32 r = 0; r < model_replicas(model); r++) {
		for (u32 i = 0; i < model->blob.engine.feature_count; i++) {
			const struct batch_feature *f = feature_of(model, number, r, i,
								   table->index);
			struct kernel_segment s;

			if (!f)
				continue;
			s = segment_of(model, f, r, i, first, by_gradient);
			s.sums = gives_sums(model_part(model, number, r), i);
			if (s.end > first)
				segments[count++] = s;
			if (s.holders)
				u->flags |= KERNEL_HELD;
			if (s.sums)
				u->flags |= KERNEL_SUMS;
			first = s.end;
		}
	}
	u->segments = segments;
	u->segment_count = count;
}

static u32 decay_flags(const struct embeng_record_table *record)
{
	if (record->flags & EMBENG_TABLE_DECAY_GRADIENT)
		return KERNEL_DECAY_GRADIENT;
	return record->flags & EMBENG_TABLE_DECAY_BY_RATE ? KERNEL_DECAY | KERNEL_DECAY_TIMES_LR :
							    KERNEL_DECAY;
}

static u32 flags_of(const struct embeng_record_table *record, u32 multiplier)
{
	u32 flags = 0;

	if (multiplier != F32_ONE)
		flags |= KERNEL_GRADIENT_SCALE;
	if (record->clip_gradient_min != (F32_SIGN | F32_INFINITY) ||
	    record->clip_gradient_max != F32_INFINITY)
		flags |= KERNEL_GRADIENT_CLIP;
	if (record->weight_decay << 1)
		flags |= decay_flags(record);
	if (record->flags & EMBENG_TABLE_BY_FREQUENCY)
		flags |= KERNEL_BY_FREQUENCY;
	if (record->max_norm << 1)
		flags |= KERNEL_MAX_NORM;
	if (record->clip_weight_min != (F32_SIGN | F32_INFINITY) ||
	    record->clip_weight_max != F32_INFINITY)
		flags |= KERNEL_WEIGHT_CLIP;
	if (!(record->flags & EMBENG_TABLE_ACCUMULATE))
		flags |= KERNEL_EACH_OCCURRENCE;
	return flags;
}

static void describe_table_update(struct kernel_update *u, const struct table *table,
				  const struct step *step, u64 optimizer_step)
{
	struct embeng_record_table now;
	struct port_fpu fpu;

	table_at_step(&table->record, step->rates, &now);
	u->optimizer = table->kernel;
	u->flags = flags_of(&now, step->multiplier);
	u->dim = now.dim;
	u->prefetch = table->update.rows;
	u->fetch = table->update.form;
	u->stride = now.dim;
	u->table = (float *)table->data;
	for (u32 s = 0; s < EMBENG_SLOTS_MAX; s++)
		u->slots[s] = (float *)table->slots[s];
	memcpy(&u->lr, &now.rate, sizeof(u->lr));
	memcpy(&u->gradient_multiplier, &step->multiplier, sizeof(u->gradient_multiplier));
	memcpy(&u->gradient_min, &now.clip_gradient_min, sizeof(u->gradient_min));
	memcpy(&u->gradient_max, &now.clip_gradient_max, sizeof(u->gradient_max));
	memcpy(&u->decay, &now.weight_decay, sizeof(u->decay));
	memcpy(&u->weight_min, &now.clip_weight_min, sizeof(u->weight_min));
	memcpy(&u->weight_max, &now.clip_weight_max, sizeof(u->weight_max));
	memcpy(&u->max_norm, &now.max_norm, sizeof(u->max_norm));
	memcpy(u->hyper, now.hyperparameter, sizeof(u->hyper));
	u->step = optimizer_step;
	port_fpu_begin(&fpu);
	if (now.flags & EMBENG_TABLE_STEP_DYNAMIC)
		u->step = kernel_step(step->rates[now.step_rate]);
	kernel_prepare(u);
	port_fpu_end(&fpu);
}

struct keeping {
	struct table *table;
	const struct partition *partition;
};

static void keep_rows_task(void *arg, u64 task, u32 worker)
{
	const struct keeping *keeping = arg;

	(void)worker;
	stale_keep(keeping->table, keeping->partition, task);
}

/* An update that comes early: the next lookup is still to see the rows of before it. */
static void keep_stale_rows(const struct apply *apply)
{
	struct keeping keeping = { apply->table, &apply->lane->partition };

	lane_run(apply->lane, apply->cores, keep_rows_task, &keeping,
		 stale_tasks(apply->table, keeping.partition),
		 stale_bytes(apply->table, keeping.partition));
	if (!apply->table->stale.whole)
		apply->table->stale.count = keeping.partition->group_count;
}

static void update_table(struct apply *apply, u64 number)
{
	struct model *model = apply->model;
	struct table *table = apply->table;
	u64 rows = apply->lane->partition.group_count;
	u64 reached = table->stats.nonfinite_gradient_rows;

	if (stale_keeps(model, table, number))
		keep_stale_rows(apply);
	describe_table_update(&apply->update, table, model_step(model, number),
			      model->optimizer_steps - table->idle + 1);
	make_segments(model, number, table, apply->lane->partition.by_gradient, &apply->update);
	if (command_is_cut(model->command))
		return;
	apply_rows(apply);
	table->stats.updated_rows += rows;
	if (model->blob.engine.flags & EMBENG_ENGINE_GRADIENTS_DROP)
		table->stats.updated_rows -= table->stats.nonfinite_gradient_rows - reached;
	apply->lane->rows += rows;
}

void apply_table(struct lane *lane, u64 number, struct table *table, u32 cores)
{
	struct model *model = lane->model;
	struct apply apply = { .model = model,
			       .lane = lane,
			       .table = table,
			       .cores = cores,
			       .most = chunk_rows(table->record.dim) };
	u64 begun;

	/* Memory is reserved: it fails only where the context ends, and its tables with it. */
	if (update_partition(lane, number, table->index, cores))
		return;
	begun = port_now_ns();
	/* Before the rows, which take the groups' place in the caches. */
	stats_count(model, table, &lane->partition, number);
	if (command_is_cut(model->command))
		return;
	if (table_trains(table))
		update_table(&apply, number);
	else
		table->idle++;
	lane->update_ns += port_now_ns() - begun;
}
