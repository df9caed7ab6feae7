// SPDX-License-Identifier: MIT
/*
 * Copies the descriptor of a PARTITION and checks it, before any of its arrays is looked at. Later
 * phases use the copy alone.
 *
 * The copy is command->state and is freed when the command is released. Called without engine->lock
 * while the command is accepted.
 */
#include "partition.h"

#define COLUMNS_MAX (1ull << 31)
#define ID_BYTES 64u /* moved for an id, from its key to its item */
#define FLAGS (EMBENG_PARTITION_MINIBATCHING | EMBENG_PARTITION_DROPPING)

static u16 refuse_call(struct command *command, u16 status, u32 field, u64 value, u64 limit)
{
	return fault_set(&command->fault, status, field, EMBENG_NO_INDEX, 0, value, limit);
}

static u16 copy_features(struct command *command, struct pcsr_call *call, const u8 *from)
{
	const struct embeng_partition *g = &call->given;

	for (u32 i = 0; i < g->feature_count; i++)
		memcpy(&call->features[i], from + sizeof(*g) + (u64)i * g->feature_stride,
		       sizeof(call->features[i]));
	COPIED();
	command->state = call;
	return 0;
}

static u16 copy_call(struct command *command, const struct view *view)
{
	struct embeng_partition head;
	struct pcsr_call *call;
	u16 status;

	memcpy(&head, view->data, sizeof(head));
	COPIED();
	if (!head.feature_count || head.feature_count > EMBENG_PARTITION_FEATURES_MAX)
		return refuse_call(command, EMBENG_STATUS_COUNT, EMBENG_FIELD_FEATURE_COUNT,
				   head.feature_count, EMBENG_PARTITION_FEATURES_MAX);
	status = check_records(head.feature_count, head.feature_stride,
			       sizeof(struct embeng_partition_feature), sizeof(head),
			       &command->cmd.desc, &command->fault);
	if (status)
		return status;
	call = port_alloc(sizeof(*call) + head.feature_count * sizeof(call->features[0]));
	if (!call)
		return refuse_call(command, EMBENG_STATUS_NO_MEMORY, EMBENG_FIELD_DESC,
				   sizeof(*call), 0);
	call->given = head;
	return copy_features(command, call, view->data);
}

static u16 check_call_kind(struct command *command, const struct embeng_partition *g)
{
	if (g->flavour > EMBENG_FLAVOUR_JAX)
		return refuse_call(command, EMBENG_STATUS_FORM, EMBENG_FIELD_NONE, g->flavour,
				   EMBENG_FLAVOUR_JAX);
	if (g->bucket > EMBENG_BUCKET_HASH)
		return refuse_call(command, EMBENG_STATUS_FORM, EMBENG_FIELD_NONE, g->bucket,
				   EMBENG_BUCKET_HASH);
	if (g->flags & ~FLAGS)
		return refuse_call(command, EMBENG_STATUS_RESERVED, EMBENG_FIELD_FLAGS, g->flags,
				   FLAGS);
	if (g->reserved)
		return refuse_call(command, EMBENG_STATUS_RESERVED, EMBENG_FIELD_RESERVED,
				   g->reserved, 0);
	if (g->splits >> (EMBENG_PARTITION_BUCKETS - 1) ||
	    (g->splits && !(g->flags & EMBENG_PARTITION_MINIBATCHING)))
		return refuse_call(command, EMBENG_STATUS_RESERVED, EMBENG_FIELD_RESERVED,
				   g->splits, 0);
	return 0;
}

static u16 check_call_grid(struct command *command, const struct embeng_partition *g)
{
	u16 status = pcsr_check_grid(g->cores, g->device_cores, EMBENG_NO_INDEX, &command->fault);

	if (status)
		return status;
	if (g->flavour == EMBENG_FLAVOUR_JAX && (g->cores & (g->cores - 1)))
		return refuse_call(command, EMBENG_STATUS_GRID, EMBENG_FIELD_CORES, g->cores,
				   g->device_cores);
	if (!g->columns || g->columns > COLUMNS_MAX)
		return refuse_call(command, EMBENG_STATUS_COUNT, EMBENG_FIELD_COLUMNS, g->columns,
				   COLUMNS_MAX);
	if (g->columns % g->cores)
		return refuse_call(command, EMBENG_STATUS_GRID, EMBENG_FIELD_COLUMNS, g->columns,
				   g->cores);
	return 0;
}

static u16 check_call_limits(struct command *command, const struct embeng_partition *g)
{
	bool jax = g->flavour == EMBENG_FLAVOUR_JAX;
	u64 each = jax ? (u64)PCSR_ALIGN * g->device_cores : 1, most = PCSR_ITEMS_MAX / each * each;

	if (g->max_ids > PCSR_ITEMS_MAX)
		return refuse_call(command, EMBENG_STATUS_COUNT, EMBENG_FIELD_MAX_IDS, g->max_ids,
				   PCSR_ITEMS_MAX);
	if (g->max_unique_ids > PCSR_ITEMS_MAX)
		return refuse_call(command, EMBENG_STATUS_COUNT, EMBENG_FIELD_MAX_UNIQUE_IDS,
				   g->max_unique_ids, PCSR_ITEMS_MAX);
	if (g->buffer > most)
		return refuse_call(command, EMBENG_STATUS_COUNT, EMBENG_FIELD_BUFFER, g->buffer,
				   most);
	if (!jax && g->buffer % PCSR_ALIGN)
		return refuse_call(command, EMBENG_STATUS_GRID, EMBENG_FIELD_BUFFER, g->buffer,
				   PCSR_ALIGN);
	return 0;
}

static u16 check_call_outputs(struct command *command, const struct embeng_partition *g)
{
	u64 result = sizeof(struct embeng_partition_result) + 8ull * g->cores +
		     24ull * g->device_cores;

	if (g->samples.length != g->tokens.length)
		return refuse_call(command, EMBENG_STATUS_LENGTH, EMBENG_FIELD_SAMPLE_IDS,
				   g->samples.length, g->tokens.length);
	if (g->gains.length != g->tokens.length)
		return refuse_call(command, EMBENG_STATUS_LENGTH, EMBENG_FIELD_GAINS,
				   g->gains.length, g->tokens.length);
	if (g->result.length != result)
		return refuse_call(command, EMBENG_STATUS_LENGTH, EMBENG_FIELD_RESULT,
				   g->result.length, result);
	return 0;
}

static u16 check_input_form(const struct embeng_partition_feature *f, u32 index,
			    struct fault *fault)
{
	bool dense = f->form == EMBENG_FORM_DENSE;
	bool width = f->offset_width == 4 || f->offset_width == 8;

	if (!dense && f->form != EMBENG_FORM_CSR && f->form != EMBENG_FORM_COO)
		return fault_set(fault, EMBENG_STATUS_FORM, EMBENG_FIELD_NONE, index, 0, f->form,
				 EMBENG_FORM_COO);
	if (f->id_width != 4 && f->id_width != 8)
		return fault_set(fault, EMBENG_STATUS_WIDTH, EMBENG_FIELD_IDS, index, 0,
				 f->id_width, 8);
	if (dense ? f->offset_width != 0 : !width)
		return fault_set(fault, EMBENG_STATUS_WIDTH, EMBENG_FIELD_ROW_OFFSETS, index, 0,
				 f->offset_width, dense ? 0 : 8);
	if (dense && mem_given(&f->offsets))
		return fault_set(fault, EMBENG_STATUS_FORM, EMBENG_FIELD_ROW_OFFSETS, index, 0, 0,
				 0);
	if (dense && mem_given(&f->weights))
		return fault_set(fault, EMBENG_STATUS_FORM, EMBENG_FIELD_WEIGHTS, index, 0, 0, 0);
	if (f->combiner > EMBENG_COMBINER_SQRTN)
		return fault_set(fault, EMBENG_STATUS_FORM, EMBENG_FIELD_NONE, index, 0,
				 f->combiner, EMBENG_COMBINER_SQRTN);
	return 0;
}

static u16 check_input_place(const struct embeng_partition *g,
			     const struct embeng_partition_feature *f, u32 index,
			     struct fault *fault)
{
	u64 rows = (f->rows + g->cores - 1) / g->cores * g->cores;

	if (f->rotation >= g->cores)
		return fault_set(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_CORES, index, 0,
				 f->rotation, g->cores - 1);
	if (!f->rows || f->rows > g->columns)
		return fault_set(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_ROWS, index, 0, f->rows,
				 g->columns);
	if (f->column_offset % g->cores)
		return fault_set(fault, EMBENG_STATUS_GRID, EMBENG_FIELD_COLUMNS, index, 0,
				 f->column_offset, g->cores);
	if (f->column_offset > g->columns - rows)
		return fault_set(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_COLUMNS, index, 0,
				 f->column_offset, g->columns - rows);
	return 0;
}

static u16 check_input_counts(const struct engine *engine, const struct embeng_partition *g,
			      const struct embeng_partition_feature *f, u32 index,
			      struct fault *fault)
{
	const struct embeng_caps *caps = &engine->caps;

	if (f->sample_count > caps->samples)
		return fault_set(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_SAMPLES, index, 0,
				 f->sample_count, caps->samples);
	if (f->sample_count % g->device_cores)
		return fault_set(fault, EMBENG_STATUS_GRID, EMBENG_FIELD_SAMPLES, index, 0,
				 f->sample_count, g->device_cores);
	if (f->id_count > caps->ids)
		return fault_set(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_IDS, index, 0,
				 f->id_count, caps->ids);
	if (f->form == EMBENG_FORM_DENSE && f->id_count != f->sample_count)
		return fault_set(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_IDS, index, 0,
				 f->id_count, f->sample_count);
	return 0;
}

static u16 check_input_lengths(const struct embeng_partition_feature *f, u32 index,
			       struct fault *fault)
{
	u64 offsets = f->form == EMBENG_FORM_COO ? f->id_count : f->sample_count + 1;
	u16 status = check_length(&f->ids, f->id_count, f->id_width, EMBENG_FIELD_IDS, index,
				  fault);

	if (!status && f->form != EMBENG_FORM_DENSE)
		status = check_length(&f->offsets, offsets, f->offset_width,
				      EMBENG_FIELD_ROW_OFFSETS, index, fault);
	if (!status && mem_given(&f->weights))
		status = check_length(&f->weights, f->id_count, 4, EMBENG_FIELD_WEIGHTS, index,
				      fault);
	return status;
}

static u16 check_inputs(struct command *command, const struct pcsr_call *call)
{
	const struct engine *engine = command->context->engine;
	struct fault *fault = &command->fault;
	u64 samples = 0, ids = 0, moved = 0;
	u16 status = 0;

	for (u32 i = 0; !status && i < call->given.feature_count; i++) {
		const struct embeng_partition_feature *f = &call->features[i];

		status = check_input_form(f, i, fault);
		if (!status)
			status = check_input_place(&call->given, f, i, fault);
		if (!status)
			status = check_input_counts(engine, &call->given, f, i, fault);
		if (!status)
			status = check_input_lengths(f, i, fault);
		if (!status)
			status = check_moves(engine, &moved, f->id_count * ID_BYTES, i, fault);
		if (status)
			return status;
		samples += f->sample_count;
		ids += f->id_count;
		if (samples > PCSR_ITEMS_MAX)
			return fault_set(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_SAMPLES, i, 0,
					 samples, PCSR_ITEMS_MAX);
		if (ids > PCSR_ITEMS_MAX)
			return fault_set(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_IDS, i, 0, ids,
					 PCSR_ITEMS_MAX);
	}
	return 0;
}

void pcsr_release(struct command *command)
{
	port_free(command->state);
}

u16 pcsr_accept(struct command *command)
{
	const struct pcsr_call *call;
	struct view view;
	u16 status = desc_get(command, sizeof(struct embeng_partition), EMBENG_REGION_DEVICE_READ,
			      &view);

	if (status)
		return status;
	status = copy_call(command, &view);
	region_put(command->context, &view);
	call = command->state;
	if (!status)
		status = check_call_kind(command, &call->given);
	if (!status)
		status = check_call_grid(command, &call->given);
	if (!status)
		status = check_call_limits(command, &call->given);
	if (!status)
		status = check_call_outputs(command, &call->given);
	return status ? status : check_inputs(command, call);
}
