/* SPDX-License-Identifier: MIT */
/*
 * Forecasts how much memory a model will take, from its blob and the expected inputs, without a
 * device and without allocating it. It repeats the sizes of load.c, batch.c and the sort, by
 * calling the same functions where there are any, and a test compares forecasts with what is
 * counted.
 *
 * The parsed blob lives for one call. No lock is needed: only arguments are touched.
 */
#include "../update/apply.h"
#include "../update/lane.h"
#include "plan.h"
#include "../update/update.h"

struct planner {
	const struct plan_engine *plan;
	struct blob blob;
};

/* Sums and products that stay at U64_MAX once they are there. */
static u64 add_capped(u64 a, u64 b)
{
	u64 sum;

	return __builtin_add_overflow(a, b, &sum) ? U64_MAX : sum;
}

static u64 multiply_capped(u64 a, u64 b)
{
	u64 product;

	return __builtin_mul_overflow(a, b, &product) ? U64_MAX : product;
}

static u64 grow_capped(u64 have, u64 bytes)
{
	return bytes == U64_MAX ? U64_MAX : grow_to(have, bytes);
}

/* The input with what the model says of it. */
static struct batch_size size_of_input(const struct planner *p, u32 feature, bool training)
{
	const struct plan_input *input = &p->plan->inputs[feature];
	const struct embeng_record_table *table = &p->blob.tables[p->blob.features[feature].table];

	return (struct batch_size){
		.samples = input->samples,
		.ids = input->ids,
		.length = input->length,
		.weighted = input->weighted,
		.scaled = batch_scaled(table->combiner, EMBENG_FORM_CSR, input->length),
		.narrow = batch_narrow(table),
		.training = training,
		.held = batch_held(table, EMBENG_FORM_CSR, input->length),
	};
}

/* Grows @have as batch_fit() grows the buffers. */
static void fit_buffers(u64 have[BATCH_BUFFERS], const struct batch_size *size)
{
	u64 need[BATCH_BUFFERS];
	bool failed = batch_needs(size, need);

	for (u32 i = 0; i < BATCH_BUFFERS; i++) {
		if (failed)
			have[i] = U64_MAX;
		else if (need[i])
			have[i] = grow_capped(have[i], need[i]);
	}
}

static u64 feature_bytes(const struct planner *p, u32 feature, bool training)
{
	struct batch_size size = batch_largest(&p->blob, feature, training);
	u64 have[BATCH_BUFFERS] = { 0 }, sum = 0;

	if (training)
		fit_buffers(have, &size);
	size = size_of_input(p, feature, training);
	fit_buffers(have, &size);
	for (u32 i = 0; i < BATCH_BUFFERS; i++)
		sum = add_capped(sum, have[i]);
	return sum;
}

/* Two tasks that follow each other have more outputs and rows than one may have. */
static u64 most_tasks(const struct planner *p, u32 feature)
{
	const struct plan_input *input = &p->plan->inputs[feature];
	u64 most = chunk_rows(p->blob.tables[p->blob.features[feature].table].dim);
	u64 outputs = multiply_capped(input->samples, input->length ? input->length : 1);

	return outputs ? add_capped(outputs, input->ids) / most * 2 + 1 : 0;
}

static u64 batch_bytes(const struct planner *p)
{
	u32 features = p->blob.engine.feature_count;
	u64 tasks = 0, room = 0;

	for (u32 f = 0; f < features; f++)
		tasks = add_capped(tasks, most_tasks(p, f));
	while (room < tasks && room < U64_MAX / 4)
		room = batch_task_room(room);
	return add_capped(sizeof(struct batch) + ((u64)features + 1) * sizeof(struct batch_feature),
			  multiply_capped(room, sizeof(struct batch_task)));
}

static u64 update_bytes(const struct blob *blob)
{
	return sizeof(struct update) +
	       ((u64)blob->engine.feature_count + 1) * sizeof(struct embeng_update_feature) +
	       ((u64)blob->engine.rate_count + 1) * sizeof(u32);
}

static u64 step_bytes(const struct planner *p)
{
	const struct blob *blob = &p->blob;
	u64 part = add_capped(sizeof(struct part) + update_bytes(blob), batch_bytes(p));

	return add_capped(multiply_capped(part, blob->engine.replicas),
			  ((u64)blob->engine.rate_count + 1) * sizeof(u32));
}

static u64 work_bytes(const struct planner *p)
{
	const struct blob *blob = &p->blob;
	u64 parts = (u64)blob->engine.replicas * blob->engine.feature_count + 1;
	u32 dim = blob_largest_dim(blob);

	return add_capped(
		multiply_capped(parts, sizeof(struct kernel_segment) + sizeof(struct view)),
		add_capped(multiply_capped(parts, sizeof(struct partition_source)),
			   (sizeof(struct lane) + apply_scratch_bytes(dim)) * p->plan->cores +
				   model_zeros_bytes(dim)));
}

static u64 model_bytes(const struct planner *p)
{
	const struct blob *blob = &p->blob;
	u64 tables = blob->engine.table_count;
	u64 sum = sizeof(struct model) + blob_bytes(blob) + (tables + 1) * sizeof(struct table) +
		  tables * HOT_BYTES;

	sum = add_capped(sum, (u64)blob->engine.replicas * (sizeof(struct embeng_replica_steps) +
							    sizeof(struct accepting)));
	return add_capped(sum,
			  add_capped(blob->engine.step_depth * sizeof(struct step), work_bytes(p)));
}

static u64 occurrences_of(const struct planner *p, u32 table)
{
	const struct blob *blob = &p->blob;
	u64 sum = 0;

	for (u32 f = 0; f < blob->engine.feature_count; f++) {
		const struct plan_input *input = &p->plan->inputs[f];
		u64 kept = input->length ? multiply_capped(input->samples, input->length) : U64_MAX;

		if (blob->features[f].table == table)
			sum = add_capped(sum, kept < input->ids ? kept : input->ids);
	}
	return multiply_capped(sum, blob->engine.replicas);
}

/* The sizes of a lane's buffers. */
struct lane_bytes {
	struct partition_needs partition;
	u64 cuts;
};

static void lane_fit(struct lane_bytes *have, const struct embeng_record_table *record, u64 count,
		     u32 cores)
{
	struct partition_needs *p = &have->partition;
	struct partition_needs need = partition_needs(count, record->rows, cores);

	p->items = grow_to(p->items, need.items);
	p->order = grow_to(p->order, need.order);
	p->groups = grow_to(p->groups, need.groups);
	p->histograms = grow_to(p->histograms, need.histograms);
	have->cuts = grow_to(have->cuts, lane_cuts_bytes(record, count));
}

static u64 lane_sum(const struct lane_bytes *have)
{
	const struct partition_needs *p = &have->partition;

	return 2 * p->items + p->order + p->groups + p->histograms + have->cuts;
}

/* Sorting by row and cutting into tasks: as lanes_reserve(), in the order of tables. */
static u64 sorting_bytes(const struct planner *p)
{
	u32 tables = p->blob.engine.table_count, cores = p->plan->cores;
	u64 most = lane_most(tables, cores);
	struct lane_bytes first = { 0 }, others = { 0 };

	for (u32 t = 0; t < tables; t++) {
		const struct embeng_record_table *record = &p->blob.tables[t];
		u64 count = occurrences_of(p, t);

		if (count > U32_MAX)
			return U64_MAX;
		lane_fit(&first, record, count, cores);
		if (most)
			lane_fit(&others, record, count < most ? count : most, 1);
	}
	return lane_sum(&first) + (cores - 1) * lane_sum(&others);
}

/* Rows that an early update changes: as stale_reserve(). */
static u64 stale_bytes_of(const struct planner *p, u32 table)
{
	const struct embeng_record_table *record = &p->blob.tables[table];
	u64 rows = occurrences_of(p, table);

	if (p->blob.kernels[table] == U32_MAX || !blob_has_feature(&p->blob, table))
		return 0;
	if (record->flags & EMBENG_TABLE_NON_LAZY)
		return multiply_capped(record->rows, 4ull * record->dim);
	if (rows > record->rows)
		rows = record->rows;
	if (!rows)
		return 0;
	return add_capped(grow_capped(0, multiply_capped(rows, sizeof(u64))),
			  grow_capped(0, multiply_capped(rows, 4ull * record->dim)));
}

static u64 all_stale_bytes(const struct planner *p)
{
	u64 sum = 0;

	for (u32 t = 0; t < p->blob.engine.table_count; t++)
		sum = add_capped(sum, stale_bytes_of(p, t));
	return sum;
}

static u64 all_bytes(const struct planner *p, u64 *features)
{
	const struct embeng_record_engine *engine = &p->blob.engine;
	u64 steps = p->plan->training ? engine->step_depth : 0;
	u64 spare = p->plan->inference ? engine->replicas : 0;
	u64 sum = add_capped(model_bytes(p), multiply_capped(steps, step_bytes(p)));

	sum = add_capped(sum, multiply_capped(spare, batch_bytes(p)));
	if (p->plan->training)
		sum = add_capped(sum, sorting_bytes(p));
	if (p->plan->training && engine->flags & EMBENG_ENGINE_PIPELINING)
		sum = add_capped(sum, all_stale_bytes(p));
	for (u32 f = 0; f < engine->feature_count; f++) {
		features[f] = add_capped(multiply_capped(multiply_capped(steps, engine->replicas),
							 feature_bytes(p, f, true)),
					 multiply_capped(spare, feature_bytes(p, f, false)));
		sum = add_capped(sum, features[f]);
	}
	return sum;
}

u16 plan_memory(const struct plan_engine *plan, u64 *features, u64 *bytes)
{
	/* A device of any size: what one lacks it says itself. */
	const struct embeng_caps caps = {
		.features = EMBENG_CAP_PIPELINING | EMBENG_CAP_QUANTIZATION,
		.dim = U32_MAX,
		.tables = U32_MAX,
		.model_features = U32_MAX,
		.replicas = U32_MAX,
		.step_depth = plan->step_depth,
		.ids = U64_MAX,
		.samples = U64_MAX,
		.combiners = U32_MAX,
		.optimizers = U32_MAX,
	};
	struct planner p = { .plan = plan };
	struct fault fault;
	u16 status = blob_parse(plan->blob, plan->length, &caps, &p.blob, &fault);

	if (!status)
		*bytes = all_bytes(&p, features);
	blob_free(&p.blob);
	return status;
}
