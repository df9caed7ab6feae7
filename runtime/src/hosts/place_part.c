// SPDX-License-Identifier: MIT
/*
 * The part of a table that one host can have: which parts keep the bits of the whole table, how many
 * rows and bytes a part has. It is a file of its own because both ways of making a placement
 * (place.c, place_spread.c) build on it, and it on neither.
 *
 * Only arguments are touched; no lock is needed.
 */
#include <stdlib.h>

#include "model/model.h"
#include "place.h"

uint32_t place_replicas_most = 64;

bool place_must_spread(const struct embeng_model *model)
{
	return model->engine.replicas > place_replicas_most;
}

const char *place_refuse_replicas(const struct embeng_model *model, enum embeng_exchange_kind kind)
{
	if (!place_must_spread(model) || kind == EMBENG_EXCHANGE_ROWS ||
	    kind == EMBENG_EXCHANGE_ROWS_GRADIENTS)
		return NULL;
	return "the model has more replicas than a device, so the rows of all tables are spread";
}

bool place_is_elementwise(const struct embeng_model *model, int table, const char **why_not)
{
	const struct table *t = &model->tables[table];
	const char *why = NULL;

	for (size_t s = 1; s <= t->slot_count; s++) {
		if (model_width(t, s) != (uint64_t)t->dim)
			why = "its optimizer has a slot of one number a row";
	}
	if (t->optimizer.max_norm > 0.0f || t->dynamic[NUMBER_MAX_NORM] >= 0)
		why = "max_norm takes the length of a whole row";
	if (table_has_optimizer(t) && model->engine.non_finite == EMBENG_NON_FINITE_DROP)
		why = "the policy for gradients that are not finite drops the update of a whole "
		      "row";
	if (why_not)
		*why_not = why;
	return !why;
}

const char *place_refuse_sums(const struct embeng_model *model, size_t table)
{
	const struct table *t = &model->tables[table];

	if (!table_has_optimizer(t))
		return NULL;
	if (t->optimizer.use_gradient_accumulation == EMBENG_OFF)
		return "its optimizer takes each gradient by itself, and sums would be sent";
	if (t->optimizer.scale_by_frequency)
		return "scale_by_frequency needs the number of a row's gradients, which sums do "
		       "not tell";
	if (model->engine.non_finite == EMBENG_NON_FINITE_DROP)
		return "the policy for gradients that are not finite looks at each gradient, and "
		       "sums would be sent";
	return NULL;
}

const char *place_refuse_gradients(const struct embeng_model *model, size_t table)
{
	const struct table *t = &model->tables[table];

	if (!table_has_optimizer(t))
		return "no optimizer changes the table, so no gradients are sent";
	if (t->combiner == EMBENG_MAX)
		return "the combiner max gives each column's gradient to one row, which only the "
		       "asking host knows";
	if (t->optimizer.scale_by_frequency)
		return "scale_by_frequency needs the number of a row's gradients in all replicas, "
		       "and the owner makes a sum for each of them";
	if (model->engine.non_finite == EMBENG_NON_FINITE_DROP)
		return "the policy for gradients that are not finite looks at each gradient, and "
		       "the owner makes sums of them";
	return NULL;
}

bool place_can_spread(const struct embeng_model *model, size_t table,
		      enum embeng_exchange_kind kind)
{
	return (kind == EMBENG_EXCHANGE_ROWS && !place_refuse_sums(model, table)) ||
	       (kind == EMBENG_EXCHANGE_ROWS_GRADIENTS && !place_refuse_gradients(model, table));
}

uint32_t place_row_parts(const struct table *t, uint32_t hosts)
{
	return (uint64_t)t->rows < hosts ? (uint32_t)t->rows : hosts;
}

int place_row_part(const struct table *t, const struct embeng_shard *shard,
		   enum embeng_exchange_kind kind, struct place_part *part)
{
	part->kind = PLACE_ROWS;
	part->host = shard->host;
	part->columns = (uint32_t)t->dim;
	part->gradients = kind == EMBENG_EXCHANGE_ROWS_GRADIENTS;
	return embeng_shard_rows(shard, t->rows, &part->rows);
}

uint64_t place_part_bytes(const struct embeng_model *model, const struct place_part *part)
{
	const struct table *t = &model->tables[part->table];
	uint64_t row = model_whole_row_bytes(t);

	/* All slots of a table that is cut have as many columns as its rows. */
	if (part->kind == PLACE_COLUMN)
		row = row / (uint64_t)t->dim * part->columns;
	return (uint64_t)part->rows.count * row;
}

uint32_t place_row_width(uint64_t rows, uint32_t hosts)
{
	return (rows - 1) / hosts > INT32_MAX ? sizeof(int64_t) : sizeof(int32_t);
}

void placement_free(struct placement *placement)
{
	free(placement->parts);
	free(placement->first);
	free(placement->bytes);
	*placement = (struct placement){0};
}
