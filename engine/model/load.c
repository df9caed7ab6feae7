/* SPDX-License-Identifier: MIT */
/*
 * Loads a model and frees it: parses the blob, allocates tables, slots, steps and working memory,
 * and fills the slots that do not begin at zero.
 *
 * All of it belongs to the model and lives until model_free_tables() or model_free(), which also
 * clean up after a load that failed half-way. Called without engine->lock by the command that loads
 * or unloads. Until the load has ended no other command uses the model.
 */
#include "../update/apply.h"
#include "../kernels/fill.h"
#include "../lookup/stale.h"
#include "../update/lane.h"
#include "../update/update.h"
#include "lifetime.h"

u16 load_accept(struct command *command)
{
	struct model *loaded = load_extends(command) ? command->context->model : NULL;
	struct model *model = loaded ? command->state : command->context->model;
	u64 length = command->cmd.desc.length;
	struct view view;
	void *copy;
	u16 status = desc_get(command, sizeof(struct embeng_blob_header), EMBENG_REGION_DEVICE_READ,
			      &view);

	if (status)
		return status;
	if (length > EMBENG_BLOB_LENGTH_MAX) {
		region_put(command->context, &view);
		return fault_set(&command->fault, EMBENG_STATUS_LENGTH, EMBENG_FIELD_BLOB,
				 EMBENG_NO_INDEX, 0, length, EMBENG_BLOB_LENGTH_MAX);
	}
	copy = alloc_large(model->engine, length);
	if (copy)
		memcpy(copy, view.data, length);
	region_put(command->context, &view);
	if (!copy)
		return fault_set(&command->fault, EMBENG_STATUS_NO_MEMORY, EMBENG_FIELD_BLOB,
				 EMBENG_NO_INDEX, 0, length, 0);
	status = blob_parse_more(copy, length, &model->engine->caps, loaded ? &loaded->blob : NULL,
				 &model->blob, &command->fault);
	port_free(copy);
	if (!status)
		model_count(model, blob_bytes(&model->blob));
	return status;
}

/* Bytes of a table, with or without its slots; U64_MAX when no number says it. */
static u64 table_bytes(const struct embeng_record_table *record, bool slots)
{
	u64 row = 0, bytes;

	for (u32 slot = 0; slot <= (slots ? record->slot_count : 0u); slot++)
		row += 4ull * embeng_slot_width(record->optimizer, slot, record->dim);
	if (__builtin_mul_overflow(record->rows, row, &bytes))
		return U64_MAX;
	return bytes;
}

/* Bytes of all tables' rows, without slots. Only for models that sum_table_bytes() can say. */
static u64 rows_bytes(const struct blob *blob)
{
	u64 sum = 0;

	for (u32 t = 0; t < blob->engine.table_count; t++)
		sum += table_bytes(&blob->tables[t], false);
	return sum;
}

static u64 sum_table_bytes(const struct blob *blob, u32 first)
{
	u64 sum = 0;

	for (u32 t = first; t < blob->engine.table_count; t++) {
		if (__builtin_add_overflow(sum, table_bytes(&blob->tables[t], true), &sum))
			return U64_MAX;
	}
	return sum;
}

/* Return: false where the load is to stop. */
static bool start_slot(struct model *model, struct table *table, u32 slot)
{
	u32 start = table->record.slot_start[slot];
	struct kernel_fill fill = { .kind = KERNEL_FILL_CONSTANT, .slot = slot + 1 };

	if (!start)
		return true; /* new memory is zero already, untouched pages cost nothing */
	fill.dim = table_width(table, slot + 1);
	fill.stride = fill.dim;
	fill.row_step = 1;
	fill.out = (float *)table->slots[slot];
	memcpy(&fill.a, &start, sizeof(start));
	return fill_range(model, &fill, table->record.rows);
}

static void make_quantization(struct table *table, const struct embeng_record_quantization *record)
{
	struct port_fpu fpu;

	table->quantized = record->num_buckets;
	if (!table->quantized)
		return;
	port_fpu_begin(&fpu);
	kernel_quantization_set(&table->quantization, record->num_buckets, record->lower,
				record->upper);
	port_fpu_end(&fpu);
}

/* Slots as wide as the table. */
static u32 wide_slots(const struct table *table)
{
	u32 count = 0;

	for (u32 slot = 1; slot <= table->record.slot_count; slot++)
		count += table_width(table, slot) == table->record.dim;
	return count;
}

static void choose_fetch_ways(const struct model *model, struct table *table)
{
	const struct fetch_plan *plan = &model->engine->fetch;
	const struct fetch_ways *ways = rows_bytes(&model->blob) <= plan->cached_bytes ?
						&plan->near :
						&plan->far;

	table->lookup = fetch_lookup(ways->lookup, table->record.dim);
	table->update = fetch_update(ways->update, table->record.dim, wide_slots(table));
	if (table->bytes <= plan->least_bytes)
		table->lookup.rows = table->update.rows = 0;
}

static void describe_table(struct model *model, u32 index)
{
	struct table *table = &model->tables[index];

	table->index = index;
	table->record = model->blob.tables[index];
	table->kernel = model->blob.kernels[index];
	table->bytes = table_bytes(&table->record, false);
	choose_fetch_ways(model, table);
	make_quantization(table, &model->blob.quantizations[index]);
}

static int make_table(struct model *model, struct table *table)
{
	table->stats.hot.rows = model_alloc(model, HOT_BYTES);
	table->data = alloc_table(model->engine, table->bytes);
	if (!table->data || !table->stats.hot.rows)
		return -1;
	for (u32 s = 0; s < table->record.slot_count; s++) {
		table->slots[s] = alloc_table(model->engine, table_array_bytes(table, s + 1));
		if (!table->slots[s] || !start_slot(model, table, s))
			return -1;
	}
	return piece_over(model->command) ? -1 : 0;
}

static int make_step(struct model *model, struct step *step)
{
	u32 replicas = model_replicas(model);

	step->parts = model_alloc(model, replicas * sizeof(*step->parts));
	step->rates = model_alloc(model,
				  ((u64)model->blob.engine.rate_count + 1) * sizeof(*step->rates));
	if (!step->parts || !step->rates)
		return -1;
	for (u32 r = 0; r < replicas; r++) {
		step->parts[r].batch = batch_new(model);
		step->parts[r].gradients = update_new(model);
		if (!step->parts[r].batch || !step->parts[r].gradients ||
		    batch_reserve(model, step->parts[r].batch, true) || piece_over(model->command))
			return -1;
	}
	return 0;
}

static int make_steps(struct model *model)
{
	model->depth = model->blob.engine.step_depth;
	model->pipelining = model->blob.engine.flags & EMBENG_ENGINE_PIPELINING;
	model->replicas = model_alloc(model, model_replicas(model) * sizeof(*model->replicas));
	model->accepting = model_alloc(model, model_replicas(model) * sizeof(*model->accepting));
	model->steps = model_alloc(model, model->depth * sizeof(*model->steps));
	if (!model->replicas || !model->accepting || !model->steps)
		return -1;
	model->trains = !model->blob.engine.feature_count;
	for (u32 f = 0; f < model->blob.engine.feature_count; f++)
		model->trains |= model->blob.kernels[model->blob.features[f].table] != U32_MAX;
	for (u32 s = 0; model->trains && s < model->depth; s++) {
		if (make_step(model, &model->steps[s]))
			return -1;
	}
	return 0;
}

void model_number_parts(struct model *model)
{
	u32 first = 0;

	for (u32 t = 0; t < model->blob.engine.table_count; t++) {
		model->tables[t].first_part = first;
		for (u32 f = 0; f < model->blob.engine.feature_count; f++)
			if (model->blob.features[f].table == t)
				first += model_replicas(model);
	}
}

static int make_work(struct model *model)
{
	u64 parts = (u64)model_replicas(model) * model->blob.engine.feature_count + 1;

	model->scratch_stride = apply_scratch_bytes(model->largest_dim);
	model->zeros = model_alloc(model, model_zeros_bytes(model->largest_dim));
	model->segments = model_alloc(model, parts * sizeof(*model->segments));
	model->sources = model_alloc(model, parts * sizeof(*model->sources));
	model->gradients = model_alloc(model, parts * sizeof(*model->gradients));
	model->lanes = lanes_new(model);
	model->scratch = alloc_table(model->engine,
				     model->scratch_stride * model->engine->caps.cores);
	if (!model->scratch)
		return -1;
	model_count(model, model->scratch_stride * model->engine->caps.cores);
	model_number_parts(model);
	return model->zeros && model->segments && model->sources && model->gradients &&
			       model->lanes ?
		       0 :
		       -1;
}

u16 load_make(struct command *command, struct model *model, u32 first, u64 *bytes)
{
	u32 tables = model->blob.engine.table_count;
	u16 status;
	bool made;

	*bytes = sum_table_bytes(&model->blob, first);
	status = table_memory_take(command, *bytes, EMBENG_FIELD_BLOB);
	if (status) {
		*bytes = 0;
		return status;
	}
	model->largest_dim = blob_largest_dim(&model->blob);
	model->tables = model_alloc(model, ((u64)tables + 1) * sizeof(*model->tables));
	made = model->tables;
	for (u32 t = 0; made && t < tables; t++)
		describe_table(model, t);
	for (u32 t = first; made && t < tables; t++)
		made = !make_table(model, &model->tables[t]);
	if (made && !make_steps(model) && !make_work(model))
		return 0;
	if (command_is_cut(command))
		return abort_command(command);
	return fault_set(&command->fault, EMBENG_STATUS_NO_MEMORY, EMBENG_FIELD_BLOB,
			 EMBENG_NO_INDEX, 0, *bytes, 0);
}

u16 load_run(struct command *command)
{
	u64 bytes;

	return load_make(command, command->context->model, 0, &bytes);
}

void model_free_tables(struct model *model, void (*beat)(struct engine *engine))
{
	for (u32 t = 0; model->tables && t < model->blob.engine.table_count; t++) {
		struct table *table = &model->tables[t];

		if (table->data)
			port_free_table(table->data, table->bytes);
		for (u32 s = 0; s < EMBENG_SLOTS_MAX; s++) {
			if (table->slots[s])
				port_free_table(table->slots[s], table_array_bytes(table, s + 1));
		}
		/* Their bytes are in the model's, which are given back as one. */
		for (u32 s = 0; s <= EMBENG_SLOTS_MAX; s++) {
			if (table->staged[s])
				port_free_table(table->staged[s], table_array_bytes(table, s));
		}
		stale_free(model, table);
		kept_free(table);
		port_free(table->stats.hot.rows);
		if (beat)
			beat(model->engine);
	}
	port_free(model->tables);
	model->tables = NULL;
}

static void free_step(struct model *model, struct step *step)
{
	for (u32 r = 0; step->parts && r < model_replicas(model); r++) {
		batch_free(step->parts[r].batch);
		update_free(step->parts[r].gradients);
	}
	port_free(step->parts);
	port_free(step->rates);
}

void model_free(struct model *model)
{
	while (model->spare) {
		struct batch *batch = model->spare;

		model->spare = batch->next;
		batch_free(batch);
	}
	for (u32 s = 0; model->steps && s < model->depth; s++)
		free_step(model, &model->steps[s]);
	port_free(model->steps);
	port_free(model->replicas);
	port_free(model->accepting);
	port_free(model->zeros);
	port_free(model->segments);
	port_free(model->sources);
	port_free(model->gradients);
	if (model->scratch)
		port_free_table(model->scratch, model->scratch_stride * model->engine->caps.cores);
	lanes_free(model);
	blob_free(&model->blob);
	model_count(model, -model->memory);
	port_free(model);
}
