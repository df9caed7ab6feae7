// SPDX-License-Identifier: MIT
/*
 * Copies the descriptor of a UNIQUE, POOL or SUM and checks it, before any of its arrays is looked at.
 * Later phases use the copy alone. The counts and forms of a feature's ids are checked when these are
 * copied, by the rules of a LOOKUP.
 *
 * The copy is command->state and is freed when the command is released. Called without engine->lock
 * while the command is accepted.
 */
#include "exchange.h"

static u16 refuse_head(struct command *command, u16 status, u32 field, u64 value, u64 limit)
{
	return fault_set(&command->fault, status, field, EMBENG_NO_INDEX, 0, value, limit);
}

static u16 refuse_at(struct command *command, u16 status, u32 field, u32 index, u64 value,
		     u64 limit)
{
	return fault_set(&command->fault, status, field, index, 0, value, limit);
}

static bool is_unique(const struct command *command)
{
	return command->cmd.opcode == EMBENG_OP_UNIQUE;
}

static u16 check_head_counts(struct command *command, const struct embeng_row_exchange *g)
{
	if (!g->table_count || g->table_count > EMBENG_EXCHANGE_TABLES_MAX)
		return refuse_head(command, EMBENG_STATUS_COUNT, EMBENG_FIELD_TABLE_COUNT,
				   g->table_count, EMBENG_EXCHANGE_TABLES_MAX);
	if (!g->feature_count || g->feature_count > EMBENG_EXCHANGE_FEATURES_MAX)
		return refuse_head(command, EMBENG_STATUS_COUNT, EMBENG_FIELD_FEATURE_COUNT,
				   g->feature_count, EMBENG_EXCHANGE_FEATURES_MAX);
	if (g->table_stride < sizeof(struct embeng_exchange_table) || g->table_stride % 8)
		return refuse_head(command, EMBENG_STATUS_STRIDE, EMBENG_FIELD_TABLE,
				   g->table_stride, sizeof(struct embeng_exchange_table));
	return check_records(g->feature_count, g->feature_stride,
			     sizeof(struct embeng_exchange_feature),
			     sizeof(*g) + (u64)g->table_count * g->table_stride, &command->cmd.desc,
			     &command->fault);
}

static u16 check_head(struct command *command, const struct embeng_row_exchange *g)
{
	u32 flags = is_unique(command) ? 0 : EMBENG_EXCHANGE_NON_FINITE;
	u32 hosts = is_unique(command) ? EMBENG_EXCHANGE_HOSTS_MAX : 0;
	u32 placement = is_unique(command) ? EMBENG_PLACEMENT_MOD : 0;

	if (g->flags & ~flags)
		return refuse_head(command, EMBENG_STATUS_RESERVED, EMBENG_FIELD_FLAGS, g->flags,
				   flags);
	if (g->reserved)
		return refuse_head(command, EMBENG_STATUS_RESERVED, EMBENG_FIELD_RESERVED,
				   g->reserved, 0);
	if (g->hosts > hosts || (hosts && !g->hosts))
		return refuse_head(command, EMBENG_STATUS_COUNT, EMBENG_FIELD_HOSTS, g->hosts,
				   hosts);
	if (g->placement > placement)
		return refuse_head(command, EMBENG_STATUS_FORM, EMBENG_FIELD_HOSTS, g->placement,
				   placement);
	return check_head_counts(command, g);
}

/* @from: the descriptor, as large as its head says */
static u16 copy_records(struct command *command, const struct embeng_row_exchange *g,
			const u8 *from)
{
	u64 tables = g->table_count * sizeof(struct embeng_exchange_table);
	u64 bytes = tables + g->feature_count * sizeof(struct embeng_exchange_feature);
	struct exchange_call *call = port_alloc(sizeof(*call) + bytes);

	if (!call)
		return refuse_head(command, EMBENG_STATUS_NO_MEMORY, EMBENG_FIELD_DESC, bytes, 0);
	call->given = *g;
	call->tables = (struct embeng_exchange_table *)(call + 1);
	call->features = (struct embeng_exchange_feature *)(call->tables + g->table_count);
	from += sizeof(*g);
	for (u32 i = 0; i < g->table_count; i++, from += g->table_stride)
		memcpy(&call->tables[i], from, sizeof(call->tables[i]));
	for (u32 i = 0; i < g->feature_count; i++, from += g->feature_stride)
		memcpy(&call->features[i], from, sizeof(call->features[i]));
	COPIED();
	command->state = call;
	return 0;
}

static u16 read_exchange(struct command *command)
{
	struct embeng_row_exchange head;
	struct view view;
	u16 status = desc_get(command, sizeof(head), EMBENG_REGION_DEVICE_READ, &view);

	if (status)
		return status;
	memcpy(&head, view.data, sizeof(head));
	COPIED();
	status = check_head(command, &head);
	if (!status)
		status = copy_records(command, &head, view.data);
	region_put(command->context, &view);
	return status;
}

static u16 check_list_kind(struct command *command, const struct embeng_exchange_table *t,
			   u32 index)
{
	bool unique = is_unique(command);
	u32 dim = unique ? 0 : command->context->engine->caps.dim;

	if (t->reserved)
		return refuse_at(command, EMBENG_STATUS_RESERVED, EMBENG_FIELD_TABLE, index,
				 t->reserved, 0);
	if (t->dim > dim || (dim && !t->dim))
		return refuse_at(command, EMBENG_STATUS_COUNT, EMBENG_FIELD_TABLE, index, t->dim,
				 dim);
	if (t->combiner > (unique ? 0 : EMBENG_COMBINER_MAX))
		return refuse_at(command, EMBENG_STATUS_FORM, EMBENG_FIELD_TABLE, index,
				 t->combiner, unique ? 0 : EMBENG_COMBINER_MAX);
	if (t->out_of_range > EMBENG_OUT_OF_RANGE_ZERO ||
	    (!unique && t->out_of_range == EMBENG_OUT_OF_RANGE_CLAMP))
		return refuse_at(command, EMBENG_STATUS_FORM, EMBENG_FIELD_TABLE, index,
				 t->out_of_range, EMBENG_OUT_OF_RANGE_ZERO);
	if (t->row_count >> 63 || (unique && !t->row_count))
		return refuse_at(command, EMBENG_STATUS_COUNT, EMBENG_FIELD_ROWS, index,
				 t->row_count, U64_MAX >> 1);
	return 0;
}

/* Memory of a table that is given where its command uses it, and nowhere else. */
static u16 check_list_array(struct command *command, const struct embeng_mem *mem, u64 count,
			    u64 width, u32 field, u32 index)
{
	if (width)
		return check_length(mem, count, width, field, index, &command->fault);
	if (mem_given(mem))
		return refuse_at(command, EMBENG_STATUS_FORM, field, index, mem->length, 0);
	return 0;
}

static u16 check_list_arrays(struct command *command, const struct exchange_call *call, u32 index)
{
	const struct embeng_exchange_table *t = &call->tables[index];
	bool sums = command->cmd.opcode == EMBENG_OP_SUM;
	bool reads = !sums || t->combiner == EMBENG_COMBINER_MAX;
	u64 row = 4ull * t->dim;
	u16 status;

	if (is_unique(command)) {
		status = check_list_array(command, &t->rows, t->rows.length / 8, 8,
					  EMBENG_FIELD_ROWS, index);
		return status ? status :
				check_list_array(command, &t->result, call->given.hosts, 8,
						 EMBENG_FIELD_RESULT, index);
	}
	status = check_list_array(command, &t->rows, t->row_count, reads ? row : 0,
				  EMBENG_FIELD_ROWS, index);
	return status ? status :
			check_list_array(command, &t->result, t->row_count, sums ? row : 0,
					 EMBENG_FIELD_RESULT, index);
}

static u16 check_exchange_feature(struct command *command, const struct exchange_call *call,
				  u32 index)
{
	const struct embeng_exchange_feature *f = &call->features[index];

	if (f->reserved || f->reserved1)
		return refuse_at(command, EMBENG_STATUS_RESERVED, EMBENG_FIELD_RESERVED, index,
				 f->reserved | f->reserved1, 0);
	if (f->table >= call->given.table_count)
		return refuse_at(command, EMBENG_STATUS_TABLE, EMBENG_FIELD_FEATURE_INDEX, index,
				 f->table, call->given.table_count);
	if (f->form > EMBENG_FORM_POOLED)
		return refuse_at(command, EMBENG_STATUS_FORM, EMBENG_FIELD_NONE, index, f->form,
				 EMBENG_FORM_POOLED);
	if (is_unique(command) && mem_given(&f->weights))
		return refuse_at(command, EMBENG_STATUS_FORM, EMBENG_FIELD_WEIGHTS, index, 0, 0);
	return 0;
}

u16 exchange_accept(struct command *command)
{
	const struct exchange_call *call;
	u16 status = 0;

	if (!(command->context->engine->caps.features & EMBENG_CAP_EXCHANGE))
		return refuse_head(command, EMBENG_STATUS_OPCODE, EMBENG_FIELD_OPCODE,
				   command->cmd.opcode, EMBENG_OP_SNAPSHOT_END);
	status = read_exchange(command);
	call = command->state;
	for (u32 i = 0; !status && i < call->given.table_count; i++) {
		status = check_list_kind(command, &call->tables[i], i);
		if (!status)
			status = check_list_arrays(command, call, i);
	}
	for (u32 i = 0; !status && i < call->given.feature_count; i++)
		status = check_exchange_feature(command, call, i);
	return status;
}

void exchange_release(struct command *command)
{
	port_free(command->state);
}
