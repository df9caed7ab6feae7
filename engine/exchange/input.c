// SPDX-License-Identifier: MIT
/*
 * Makes of a checked descriptor what the code of a LOOKUP works on: a model whose tables are the lists
 * of rows, and a batch with private copies of ids, offsets and weights. Nothing that a program changes
 * afterwards in these has any effect.
 *
 * The model is the command's from exchange_begin() to exchange_end(); its memory is the context's.
 * Called without engine->lock by the running command.
 */
#include "../memory/record.h"
#include "exchange.h"

u16 exchange_no_memory(struct command *command)
{
	if (command_is_cut(command))
		return abort_command(command);
	return fault_set(&command->fault, EMBENG_STATUS_NO_MEMORY, EMBENG_FIELD_DESC,
			 EMBENG_NO_INDEX, 0, 0, 0);
}

/* UNIQUE reads no row. The ids that it leaves out keep their places, as zeros do. */
static void describe_list(const struct engine *engine, struct table *table,
			  const struct embeng_exchange_table *given, bool unique)
{
	const struct fetch_plan *plan = &engine->fetch;
	const struct fetch_ways *ways;

	table->record.rows = given->row_count;
	table->record.dim = unique ? 1 : given->dim;
	table->record.combiner = given->combiner;
	table->record.out_of_range = given->out_of_range;
	if (unique && given->out_of_range == EMBENG_OUT_OF_RANGE_DROP)
		table->record.out_of_range = EMBENG_OUT_OF_RANGE_ZERO;
	table->bytes = table_array_bytes(table, EMBENG_SLOT_PARAMETERS);
	ways = table->bytes <= plan->cached_bytes ? &plan->near : &plan->far;
	if (table->bytes > plan->least_bytes)
		table->lookup = fetch_lookup(ways->lookup, table->record.dim);
}

static void describe_brought_model(struct exchange *x, const struct exchange_call *call,
				   bool unique)
{
	struct model *m = &x->model;

	m->blob.engine = (struct embeng_record_engine){
		.table_count = call->given.table_count,
		.feature_count = call->given.feature_count,
		.replicas = 1,
	};
	if (call->given.flags & EMBENG_EXCHANGE_NON_FINITE)
		m->blob.engine.flags = EMBENG_ENGINE_GRADIENTS_ALLOW;
	for (u32 i = 0; i < call->given.table_count; i++)
		describe_list(m->engine, &m->tables[i], &call->tables[i], unique);
	for (u32 i = 0; i < call->given.feature_count; i++) {
		m->blob.features[i].table = call->features[i].table;
		m->blob.features[i].max_sequence_length =
			unique ? 0 : call->features[i].max_sequence_length;
	}
}

static void describe_brought_batch(struct exchange *x, const struct exchange_call *call,
				   bool outputs)
{
	x->batch.ids_only = !outputs;
	for (u32 i = 0; i < call->given.feature_count; i++) {
		const struct embeng_exchange_feature *f = &call->features[i];

		x->batch.features[i].given = (struct embeng_lookup_feature){
			.feature = i,
			.form = f->form,
			.id_width = f->id_width,
			.offset_width = f->offset_width,
			.sample_count = f->sample_count,
			.id_count = f->id_count,
			.offsets = f->offsets,
			.ids = f->ids,
			.weights = f->weights,
		};
		if (outputs)
			x->batch.features[i].given.activations = f->data;
	}
}

static u16 map_lists(struct command *command, struct exchange *x, const struct exchange_call *call)
{
	const u32 reads = EMBENG_REGION_DEVICE_READ, writes = EMBENG_REGION_DEVICE_WRITE;
	bool unique = command->cmd.opcode == EMBENG_OP_UNIQUE;
	u16 status = 0;

	for (u32 i = 0; !status && i < call->given.table_count; i++) {
		const struct embeng_exchange_table *t = &call->tables[i];

		status = mem_get(command, &t->rows, unique ? writes : reads, unique ? 8 : 4,
				 EMBENG_FIELD_ROWS, i, exchange_rows(x, i));
		if (!status)
			status = mem_get(command, &t->result, writes, unique ? 8 : 4,
					 EMBENG_FIELD_RESULT, i, exchange_result(x, i));
		if (!unique)
			x->model.tables[i].data = exchange_rows(x, i)->data;
	}
	return status;
}

u16 exchange_map_data(struct command *command, struct exchange *x, u32 rights, u32 field)
{
	const struct exchange_call *call = command->state;
	u16 status = 0;

	for (u32 i = 0; !status && i < call->given.feature_count; i++)
		status = mem_get(command, &call->features[i].data, rights, 4, field, i,
				 exchange_data(x, i));
	return status;
}

u16 exchange_begin(struct command *command, bool training, struct exchange **out)
{
	const struct exchange_call *call = command->state;
	bool unique = command->cmd.opcode == EMBENG_OP_UNIQUE;
	struct exchange *x = *out = exchange_memory(command);
	u16 status;

	if (!x)
		return exchange_no_memory(command);
	x->model.command = command;
	command->brought = &x->model;
	describe_brought_model(x, call, unique);
	describe_brought_batch(x, call, !training && !unique);
	status = batch_take(command, &x->batch, training);
	if (!status)
		status = batch_check_total(&x->model, &x->batch, &command->fault);
	if (!status && batch_cut(command, &x->batch))
		status = exchange_no_memory(command);
	if (!status)
		status = map_lists(command, x, call);
	return command_is_cut(command) ? abort_command(command) : status;
}

void exchange_end(struct command *command, struct exchange *x)
{
	const struct exchange_call *call = command->state;

	command->brought = NULL;
	if (!x)
		return;
	x->model.command = NULL;
	region_put_all(command->context, x->views,
		       2 * call->given.table_count + call->given.feature_count);
}
