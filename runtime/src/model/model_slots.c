// SPDX-License-Identifier: MIT
/*
 * Slots of a model's tables, by name and by number. Number 0 is the parameters.
 *
 * Names are constant texts. The model is only read; no lock is needed.
 */
#include <string.h>

#include "base/error.h"
#include "embeng_engine.h"
#include "model.h"

const char *model_slot_name(const struct embeng_model *model, int table, size_t slot)
{
	const struct table *t;

	if (table < 0 || (size_t)table >= model->table_count)
		return NULL;
	t = &model->tables[table];
	if (!slot)
		return "parameters";
	return slot <= t->slot_count ? optimizer_info(t->optimizer.kind)->slots[slot - 1].name
				     : NULL;
}

size_t embeng_model_slot_count(const struct embeng_model *model, size_t table)
{
	return table < embeng_model_table_count(model) ? model->tables[table].slot_count : 0;
}

const char *embeng_model_slot_name(const struct embeng_model *model, size_t table, size_t slot)
{
	if (slot >= embeng_model_slot_count(model, table))
		return NULL;
	return model_slot_name(model, (int)table, slot + 1);
}

uint64_t model_width(const struct table *table, size_t slot)
{
	return embeng_slot_width(optimizer_info(table->optimizer.kind)->engine_kind, (uint32_t)slot,
				 (uint32_t)table->dim);
}

uint64_t model_row_bytes(const struct table *table, size_t slot)
{
	return 4 * model_width(table, slot);
}

uint64_t model_whole_row_bytes(const struct table *table)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i <= table->slot_count; i++)
		bytes += model_row_bytes(table, i);
	return bytes;
}

int64_t embeng_model_slot_width(const struct embeng_model *model, int table, const char *slot)
{
	int number;

	if (!model)
		return fail(-EINVAL, "embeng_model_slot_width: a model must be given");
	number = model_slot(model, table, slot ? slot : "parameters");
	return number < 0 ? number : (int64_t)model_width(&model->tables[table], (size_t)number);
}

int model_slot(const struct embeng_model *model, int table, const char *slot)
{
	char names[SLOT_NAMES_TEXT];
	const char *name;

	if (table < 0 || (size_t)table >= model->table_count)
		return fail(-ENOENT, "there is no table %d; the model has %zu tables", table,
			    model->table_count);
	for (size_t i = 0; (name = model_slot_name(model, table, i)); i++) {
		if (!slot || !strcmp(slot, name))
			return (int)i;
	}
	return fail(-ENOENT, "table %s: there is no slot %s; beside parameters it has %s",
		    model->tables[table].name, slot,
		    slot_names(model->tables[table].optimizer.kind, "none", names));
}
