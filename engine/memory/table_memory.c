// SPDX-License-Identifier: MIT
/*
 * The account of table memory: how much of the device's memory for tables the models of all
 * contexts hold. A model takes what it needs before it allocates anything, so that a load or a
 * stage is refused whole; the bytes are given back when the memory is freed.
 *
 * table_memory_change() is called with engine->lock held, the others take it.
 */
#include "../model/model.h"

void table_memory_change(struct model *model, u64 bytes)
{
	struct engine *engine = model->engine;

	model->table_bytes += bytes;
	engine->table_memory_used += bytes;
	reg_write64(engine, EMBENG_REG_TABLE_MEMORY_USED, engine->table_memory_used);
}

u16 table_memory_take(struct command *command, u64 need, u32 field)
{
	struct model *model = command->context->model;
	struct engine *engine = model->engine;
	u64 left;

	port_lock(engine->lock);
	left = engine->caps.table_memory - engine->table_memory_used;
	if (need <= left) {
		table_memory_change(model, need);
	}
	port_unlock(engine->lock);
	if (need <= left)
		return 0;
	return fault_set(&command->fault, EMBENG_STATUS_NO_SPACE, field, EMBENG_NO_INDEX, 0, need,
			 left);
}

void table_memory_give(struct model *model, u64 bytes)
{
	port_lock(model->engine->lock);
	table_memory_change(model, -bytes);
	port_unlock(model->engine->lock);
}
