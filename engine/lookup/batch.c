/* SPDX-License-Identifier: MIT */
/*
 * Accepts the input of a LOOKUP: copies the descriptor, checks every feature's form, counts and
 * lengths, and has ids, weights and stacks copied into a private batch. Nothing that a program
 * changes afterwards has any effect on the batch.
 *
 * A training batch belongs to a step of a replica and lives as long as its model. An inference
 * batch is taken from the model's list of spare ones and given back to it. Called without
 * engine->lock; while a command is accepted, its batch is its own.
 */
#include "stacks.h"

static void feature_free(struct batch_feature *f)
{
	port_free(f->rows.data);
	port_free(f->bag.data);
	port_free(f->outputs_of.data);
	port_free(f->weights.data);
	port_free(f->scales.data);
	port_free(f->coef.data);
	port_free(f->offsets.data);
	port_free(f->holders.data);
}

struct batch *batch_new(struct model *model)
{
	struct batch *batch = model_alloc(model, sizeof(*batch));
	u32 count = model->blob.engine.feature_count;

	if (!batch)
		return NULL;
	batch->feature_count = count;
	batch->features = model_alloc(model, ((u64)count + 1) * sizeof(*batch->features));
	if (batch->features)
		return batch;
	model_count(model, -(u64)sizeof(*batch));
	port_free(batch);
	return NULL;
}

void batch_release(struct batch *batch)
{
	for (u32 i = 0; i < batch->feature_count; i++)
		feature_free(&batch->features[i]);
	port_free(batch->tasks.data);
	port_free(batch->features);
	stacks_free(&batch->stacks);
}

void batch_free(struct batch *batch)
{
	if (batch)
		batch_release(batch);
	port_free(batch);
}

int batch_reserve(struct model *model, struct batch *batch, bool training)
{
	for (u32 i = 0; i < batch->feature_count; i++) {
		struct batch_size size = batch_largest(&model->blob, i, training);

		if (batch_fit(model, &batch->features[i], &size))
			return -1;
	}
	return 0;
}

static u16 check_lookup_header(const struct model *model, const struct embeng_lookup *header,
			       const struct embeng_mem *desc, struct fault *fault)
{
	u32 count = model->blob.engine.feature_count;
	u64 head = sizeof(*header);
	u16 status = stacks_check_header(model->engine, header, &head, fault);

	if (status)
		return status;
	if (header->model_hash != model->blob.hash)
		return fault_set(fault, EMBENG_STATUS_MODEL_HASH, EMBENG_FIELD_MODEL_HASH,
				 EMBENG_NO_INDEX, 0, header->model_hash, model->blob.hash);
	if (header->feature_count != count)
		return fault_set(fault, EMBENG_STATUS_FEATURE, EMBENG_FIELD_FEATURE_COUNT,
				 EMBENG_NO_INDEX, 0, header->feature_count, count);
	return check_records(header->feature_count, header->feature_stride,
			     sizeof(struct embeng_lookup_feature), head, desc, fault);
}

static u16 read_lookup(struct command *command, struct batch *batch, struct stacks *stacks)
{
	const struct embeng_mem *desc = &command->cmd.desc;
	struct model *model = command->context->model;
	struct embeng_lookup *header = &stacks->header;
	const u8 *from;
	struct view view;
	u16 status = desc_get(command, sizeof(*header), EMBENG_REGION_DEVICE_READ, &view);

	if (status)
		return status;
	from = view.data;
	memcpy(header, from, sizeof(*header));
	COPIED();
	status = check_lookup_header(model, header, desc, &command->fault);
	from += sizeof(*header);
	for (u64 i = 0; !status && i < header->feature_count; i++, from += header->feature_stride)
		memcpy(&batch->features[i].given, from, sizeof(batch->features[i].given));
	if (!status)
		status = stacks_copy(model, stacks, from, &command->fault);
	COPIED();
	region_put(command->context, &view);
	return status;
}

static u32 last_form(const struct engine *engine)
{
	return engine->caps.features & EMBENG_CAP_EXCHANGE ? EMBENG_FORM_ROWS :
							     EMBENG_FORM_PARTITIONED;
}

static u16 check_feature_form(const struct engine *engine, const struct embeng_lookup_feature *g,
			      u32 index, bool sequence, struct fault *fault)
{
	bool dense = form_is_dense(g->form);
	bool width = g->offset_width == 4 || g->offset_width == 8;

	if (g->feature != index)
		return fault_set(fault, EMBENG_STATUS_FEATURE, EMBENG_FIELD_FEATURE_INDEX, index, 0,
				 g->feature, index);
	if (g->reserved)
		return fault_set(fault, EMBENG_STATUS_RESERVED, EMBENG_FIELD_RESERVED, index, 0,
				 g->reserved, 0);
	if (g->form > last_form(engine) || g->form == EMBENG_FORM_COO)
		return fault_set(fault, EMBENG_STATUS_FORM, EMBENG_FIELD_NONE, index, 0, g->form,
				 last_form(engine));
	if (g->form == EMBENG_FORM_PARTITIONED)
		return stacks_check_feature(g, index, fault);
	if (g->id_width != 4 && g->id_width != 8)
		return fault_set(fault, EMBENG_STATUS_WIDTH, EMBENG_FIELD_IDS, index, 0,
				 g->id_width, 8);
	if (dense ? g->offset_width != 0 : !width)
		return fault_set(fault, EMBENG_STATUS_WIDTH, EMBENG_FIELD_ROW_OFFSETS, index, 0,
				 g->offset_width, dense ? 0 : 8);
	if (dense && mem_given(&g->offsets))
		return fault_set(fault, EMBENG_STATUS_FORM, EMBENG_FIELD_ROW_OFFSETS, index, 0, 0,
				 0);
	if ((dense || sequence) && mem_given(&g->weights))
		return fault_set(fault, EMBENG_STATUS_FORM, EMBENG_FIELD_WEIGHTS, index, 0, 0, 0);
	return 0;
}

/* The largest number of rows is not that of rows times weights, nor of sums that gains stand for. */
static u16 check_largest(const struct embeng_lookup_feature *g, u32 index, struct fault *fault)
{
	if (g->form == EMBENG_FORM_PARTITIONED)
		return fault_set(fault, EMBENG_STATUS_FORM, EMBENG_FIELD_GAINS, index, 0, g->form,
				 EMBENG_FORM_POOLED);
	if (mem_given(&g->weights))
		return fault_set(fault, EMBENG_STATUS_FORM, EMBENG_FIELD_WEIGHTS, index, 0, 0, 0);
	return 0;
}

static u16 check_not_above(u64 value, u64 limit, u32 field, u32 feature, struct fault *fault)
{
	if (value <= limit)
		return 0;
	return fault_set(fault, EMBENG_STATUS_COUNT, field, feature, 0, value, limit);
}

static u16 check_feature_counts(const struct model *model, struct batch_feature *f, u32 index,
				struct fault *fault)
{
	const struct embeng_record_feature *record = &model->blob.features[index];
	const struct embeng_caps *caps = &model->engine->caps;
	const struct embeng_lookup_feature *g = &f->given;
	u64 sequence = batch_sequence(model, index, f), length = sequence ? sequence : 1;
	u16 status = check_not_above(g->sample_count,
				     record->max_samples ? record->max_samples : caps->samples,
				     EMBENG_FIELD_SAMPLES, index, fault);

	if (!status)
		status = check_not_above(g->id_count, record->max_ids ? record->max_ids : caps->ids,
					 EMBENG_FIELD_IDS, index, fault);
	/* Gradient rows are numbered in 32 bits. */
	if (!status)
		status = check_not_above(g->sample_count, U32_MAX / length, EMBENG_FIELD_SAMPLES,
					 index, fault);
	if (!status && form_is_dense(g->form) && g->id_count != g->sample_count)
		status = fault_set(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_IDS, index, 0,
				   g->id_count, g->sample_count);
	f->outputs = g->sample_count * length;
	return status;
}

/* @written: rows of activations that the command writes */
static u16 check_outputs(const struct model *model, const struct batch_feature *f, u32 index,
			 u64 written, struct fault *fault)
{
	u64 row = 4ull * model->tables[model->blob.features[index].table].record.dim;
	const struct embeng_lookup_feature *g = &f->given;
	u64 stride = g->activation_stride, before;

	if (!stride)
		return check_length(&g->activations, written, row, EMBENG_FIELD_ACTIVATIONS, index,
				    fault);
	if (stride < row || stride % 4 || batch_sequence(model, index, f))
		return fault_set(fault, EMBENG_STATUS_STRIDE, EMBENG_FIELD_ACTIVATIONS, index, 0,
				 stride, row);
	if (!written)
		return check_length(&g->activations, 0, row, EMBENG_FIELD_ACTIVATIONS, index,
				    fault);
	/* The last row ends with its own bytes. */
	if (__builtin_mul_overflow(written - 1, stride, &before) ||
	    __builtin_add_overflow(before, row, &before))
		before = U64_MAX;
	return check_length(&g->activations, 1, before, EMBENG_FIELD_ACTIVATIONS, index, fault);
}

static u16 check_feature_lengths(const struct model *model, const struct batch_feature *f,
				 u32 index, u64 written, struct fault *fault)
{
	const struct embeng_lookup_feature *g = &f->given;
	u16 status = check_length(&g->ids, g->id_count, g->id_width, EMBENG_FIELD_IDS, index,
				  fault);

	if (!status && !form_is_dense(g->form) && g->form != EMBENG_FORM_PARTITIONED)
		status = check_length(&g->offsets, g->sample_count + 1, g->offset_width,
				      EMBENG_FIELD_ROW_OFFSETS, index, fault);
	if (!status && f->weighted)
		status = check_length(&g->weights, g->id_count, 4, EMBENG_FIELD_WEIGHTS, index,
				      fault);
	if (!status)
		status = check_outputs(model, f, index, written, fault);
	return status;
}

/* Rows that a feature makes the command move; counts fit 32 bits each, and so does a row's bytes. */
static u16 check_feature_moves(const struct model *model, const struct batch_feature *f, u32 index,
			       u64 *moved, struct fault *fault)
{
	u64 row = 4ull * model->tables[model->blob.features[index].table].record.dim;

	return check_moves(model->engine, moved, (f->given.id_count + f->outputs) * row, index,
			   fault);
}

/* @writes: activations are asked for */
static u16 accept_feature(struct command *command, struct batch_feature *f, u32 index, u64 *moved,
			  bool training, bool writes)
{
	struct model *model = command_model(command);
	const struct embeng_record_table *table =
		&model->tables[model->blob.features[index].table].record;
	struct fault *fault = &command->fault;
	u16 status = check_feature_form(model->engine, &f->given, index,
					batch_sequence(model, index, f), fault);

	f->weighted = mem_given(&f->given.weights);
	f->narrow = batch_narrow(table);
	f->largest = batch_held(table, f->given.form, batch_sequence(model, index, f));
	if (!status && f->largest)
		status = check_largest(&f->given, index, fault);
	if (!status)
		status = check_feature_counts(model, f, index, fault);
	if (!status)
		status = check_feature_moves(model, f, index, moved, fault);
	if (!status)
		status = check_feature_lengths(model, f, index, writes ? f->outputs : 0, fault);
	if (!status)
		status = batch_open(command, f, index);
	if (!status && f->given.form != EMBENG_FORM_PARTITIONED)
		status = ids_fit(model, index, f, training, fault);
	if (status)
		batch_close(command->context, f);
	return status;
}

/* Reports the first feature that has a mistake, even if a core finds a later one sooner. */
u16 batch_take(struct command *command, struct batch *batch, bool training)
{
	u16 status = 0, copied;
	u64 moved = 0;
	u32 good = 0;

	while (good < batch->feature_count) {
		status = accept_feature(command, &batch->features[good], good, &moved, training,
					!batch->ids_only);
		if (status)
			break;
		good++;
	}
	copied = batch_copy(command, batch, good, training);
	for (u32 i = 0; i < good; i++)
		batch_close(command->context, &batch->features[i]);
	return copied ? copied : status;
}

u16 batch_check_total(const struct model *model, const struct batch *batch, struct fault *fault)
{
	u64 total = 0, limit = U32_MAX / model->blob.engine.replicas, moved = 0;

	for (u32 i = 0; i < batch->feature_count; i++) {
		const struct batch_feature *f = &batch->features[i];
		u64 row = 4ull * model->tables[model->blob.features[i].table].record.dim;

		/* Stacks say only now how many ids there are. */
		if (check_moves(model->engine, &moved, (f->occurrences + f->outputs) * row, i,
				fault))
			return fault->status;
		total += batch->features[i].occurrences;
		if (total > limit)
			return fault_set(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_IDS, i, 0, total,
					 limit);
	}
	return 0;
}

/* A replica's LOOKUPs are accepted one after another: one of its batches is enough. */
static struct stacks *stacks_of(const struct command *command, struct batch *batch, bool training)
{
	const struct model *model = command->context->model;

	if (!training)
		return &batch->stacks;
	return &model->steps[0].parts[command->queue->replica].batch->stacks;
}

u16 lookup_accept(struct command *command)
{
	struct model *model = command->context->model;
	struct batch *batch = batch_of(command);
	bool training = lookup_trains(command);
	struct stacks *stacks = stacks_of(command, batch, training);
	u16 status = read_lookup(command, batch, stacks);

	batch->ids_only = command->cmd.flags & EMBENG_CMD_IDS_ONLY;
	if (!status)
		status = batch_take(command, batch, training);
	if (!status)
		status = stacks_accept(command, batch, stacks, training);
	if (!status)
		status = batch_check_total(model, batch, &command->fault);
	if (!status && batch_cut(command, batch) && !command_is_cut(command))
		status = fault_set(&command->fault, EMBENG_STATUS_NO_MEMORY, EMBENG_FIELD_DESC,
				   EMBENG_NO_INDEX, 0, 0, 0);
	return command_is_cut(command) ? abort_command(command) : status;
}
