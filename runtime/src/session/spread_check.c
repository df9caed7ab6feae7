// SPDX-License-Identifier: MIT
/*
 * Checks of the calls of embeng/spread.h, and sentences of their commands that the engine refused. They
 * name tables and features as the caller does.
 *
 * Only arguments are read, but for the input of a batch that is to gather; no lock is needed.
 */
#include <inttypes.h>
#include <stdio.h>

#include "batch/input.h"
#include "spread.h"

#define NAME_TEXT 96

const char *spread_call(uint16_t opcode)
{
	switch (opcode) {
	case EMBENG_OP_UNIQUE:
		return "embeng_spread_unique";
	case EMBENG_OP_POOL:
		return "embeng_spread_pool";
	}
	return "embeng_spread_sum";
}

static const char *name_or_number(const char *name, size_t number, char text[NAME_TEXT])
{
	if (name)
		snprintf(text, NAME_TEXT, "%s", name);
	else
		snprintf(text, NAME_TEXT, "%zu", number);
	return text;
}

static int table_fault(uint16_t opcode, const struct embeng_spread *s, size_t table,
		       const char *what)
{
	char name[NAME_TEXT];

	return fail(-EINVAL, "%s: table %s: %s", spread_call(opcode),
		    name_or_number(s->tables[table].name, table, name), what);
}

static int feature_fault(uint16_t opcode, const struct embeng_spread *s, size_t feature,
			 const char *what)
{
	char name[NAME_TEXT];

	return fail(-EINVAL, "%s: feature %s: %s", spread_call(opcode),
		    name_or_number(s->features[feature].name, feature, name), what);
}

static int check_device_exchanges(const struct embeng *e)
{
	if (e->device->info.features & EMBENG_CAP_EXCHANGE)
		return 0;
	return fail(-ENOTSUP,
		    "%s exchanges no rows between hosts; its firmware may be an older one",
		    e->device->info.name);
}

static int check_spread_head(uint16_t opcode, const struct embeng_spread *s)
{
	const char *call = spread_call(opcode);

	if (!s || s->size < sizeof(*s))
		return fail(-EINVAL, "%s: no batch, or of another size", call);
	if (!s->tables || !s->table_count || s->table_count > EMBENG_EXCHANGE_TABLES_MAX)
		return fail(-EINVAL, "%s: %zu tables; give 1 to %u", call,
			    s->tables ? s->table_count : 0, EMBENG_EXCHANGE_TABLES_MAX);
	if (!s->features || !s->feature_count || s->feature_count > EMBENG_EXCHANGE_FEATURES_MAX)
		return fail(-EINVAL, "%s: %zu features; give 1 to %u", call,
			    s->features ? s->feature_count : 0, EMBENG_EXCHANGE_FEATURES_MAX);
	if (opcode != EMBENG_OP_UNIQUE)
		return 0;
	if (!s->hosts || s->hosts > EMBENG_EXCHANGE_HOSTS_MAX)
		return fail(-ERANGE, "%s: %" PRIu32 " hosts; give 1 to %u", call, s->hosts,
			    EMBENG_EXCHANGE_HOSTS_MAX);
	if (s->sharding != EMBENG_SHARDING_DIV && s->sharding != EMBENG_SHARDING_MOD)
		return fail(-EINVAL, "%s: the sharding %d is unknown", call, (int)s->sharding);
	return 0;
}

static int check_listed_table(const struct embeng *e, uint16_t opcode,
			      const struct embeng_spread *s, size_t table)
{
	const struct embeng_spread_table *t = &s->tables[table];

	if (t->out_of_range < EMBENG_POLICY_ERROR || t->out_of_range > EMBENG_POLICY_ZERO)
		return table_fault(opcode, s, table, "its out_of_range is unknown");
	if (opcode == EMBENG_OP_UNIQUE) {
		if (t->rows < 1)
			return table_fault(opcode, s, table, "it has no rows");
		if (!t->counts || (t->room && !t->list))
			return table_fault(opcode, s, table, "its counts or its list is NULL");
		return 0;
	}
	if (t->combiner < EMBENG_MEAN || t->combiner > EMBENG_MAX)
		return table_fault(opcode, s, table, "its combiner is unknown");
	if (t->dim < 1 || (uint64_t)t->dim > e->device->info.dim)
		return table_fault(opcode, s, table, "its dim is one that the device has not");
	if (t->count > (size_t)INT32_MAX)
		return table_fault(opcode, s, table, "its list has more rows than places can say");
	if (t->count && spread_reads_rows(opcode, t) && !t->data)
		return table_fault(opcode, s, table, "its data is NULL");
	if (t->count && opcode == EMBENG_OP_SUM && !t->sums)
		return table_fault(opcode, s, table, "its sums are NULL");
	return 0;
}

static int check_spread_arrays(uint16_t opcode, const struct embeng_spread *s, size_t feature)
{
	const struct embeng_spread_feature *f = &s->features[feature];
	bool unique = opcode == EMBENG_OP_UNIQUE;

	if (f->id_count && unique && !f->ids)
		return feature_fault(opcode, s, feature, "its ids are NULL");
	if (f->id_count && !f->places)
		return feature_fault(opcode, s, feature, "its places are NULL");
	if (!unique && f->weights && !f->offsets)
		return feature_fault(opcode, s, feature,
				     "one id in each sample has no weight; give offsets");
	if (opcode == EMBENG_OP_POOL && f->samples && !f->activations)
		return feature_fault(opcode, s, feature, "its activations are NULL");
	return 0;
}

static int check_spread_feature(uint16_t opcode, const struct embeng_spread *s, size_t feature)
{
	const struct embeng_spread_feature *f = &s->features[feature];

	if (f->table >= s->table_count)
		return feature_fault(opcode, s, feature, "there is no such table");
	if (f->type != EMBENG_I32 && f->type != EMBENG_I64)
		return feature_fault(opcode, s, feature, "its ids have an unknown type");
	if (f->samples > UINT32_MAX || f->id_count > UINT32_MAX)
		return feature_fault(opcode, s, feature,
				     "it has more than 4294967295 samples or ids");
	if (f->max_sequence_length < 0 || f->max_sequence_length > (int64_t)UINT32_MAX)
		return feature_fault(opcode, s, feature,
				     "its max_sequence_length is not 0 to 4294967295");
	if (spread_outputs(f) > UINT32_MAX)
		return feature_fault(opcode, s, feature,
				     "its samples have more than 4294967295 positions");
	if (!f->offsets && f->id_count != f->samples)
		return feature_fault(opcode, s, feature,
				     "without offsets each sample has one id; the counts differ");
	return check_spread_arrays(opcode, s, feature);
}

int spread_check(const struct embeng *e, uint16_t opcode, const struct embeng_spread *s)
{
	int ret = session_check_alone(e, spread_call(opcode));

	ret = ret ? ret : check_device_exchanges(e);
	ret = ret ? ret : check_spread_head(opcode, s);
	for (size_t i = 0; !ret && i < s->table_count; i++)
		ret = check_listed_table(e, opcode, s, i);
	for (size_t i = 0; !ret && i < s->feature_count; i++)
		ret = check_spread_feature(opcode, s, i);
	return ret;
}

/* The sample that id @at belongs to; offsets were accepted. */
static size_t sample_of_id(const struct embeng_spread_feature *f, uint64_t at)
{
	size_t sample = 0;

	if (!f->offsets)
		return (size_t)at;
	while (sample + 1 < f->samples && (uint64_t)f->offsets[sample + 1] <= at)
		sample++;
	return sample;
}

static int spread_id_error(uint16_t opcode, const struct embeng_spread *s,
			   const struct embeng_cqe *c)
{
	const struct embeng_spread_feature *f = &s->features[c->feature];
	const struct embeng_spread_table *t = &s->tables[f->table];
	bool unique = opcode == EMBENG_OP_UNIQUE;
	char feature[NAME_TEXT], table[NAME_TEXT];

	return error_set(-ERANGE, c->status,
			 "%s: feature %s, sample %zu: %s %" PRId64
			 " is outside %stable %s, which has rows 0 to %" PRId64,
			 spread_call(opcode), name_or_number(f->name, c->feature, feature),
			 sample_of_id(f, c->element), unique ? "id" : "place", (int64_t)c->value,
			 unique ? "" : "the list of ", name_or_number(t->name, f->table, table),
			 (unique ? t->rows : (int64_t)t->count) - 1);
}

int spread_error(uint16_t opcode, const struct embeng_spread *s, const struct embeng_cqe *c)
{
	bool table = c->field == EMBENG_FIELD_TABLE || c->field == EMBENG_FIELD_ROWS ||
		     c->field == EMBENG_FIELD_RESULT;
	char name[NAME_TEXT], where[256];

	if (c->feature >= (table ? s->table_count : s->feature_count))
		return command_error(spread_call(opcode), c);
	if (!table && c->status == EMBENG_STATUS_ID)
		return spread_id_error(opcode, s, c);
	if (table && c->status == EMBENG_STATUS_COUNT && opcode == EMBENG_OP_UNIQUE)
		return error_set(-ERANGE, c->status,
				 "%s: table %s: the batch reads %" PRIu64
				 " rows, and its list has room for %" PRIu64,
				 spread_call(opcode),
				 name_or_number(s->tables[c->feature].name, c->feature, name),
				 (uint64_t)c->value, (uint64_t)c->limit);
	snprintf(where, sizeof(where), "%s: %s %s", spread_call(opcode),
		 table ? "table" : "feature",
		 name_or_number(table ? s->tables[c->feature].name : s->features[c->feature].name,
				c->feature, name));
	return command_error(where, c);
}

int embeng_batch_gather(struct embeng_batch *b, int feature)
{
	const struct feature *f;
	struct input *in;
	int ret = b ? input_feature(b->e->model, feature, &f)
		    : fail(-EINVAL, "embeng_batch_gather: no batch");

	ret = ret ? ret : check_device_exchanges(b->e);
	if (ret)
		return ret;
	in = (size_t)feature < b->count ? &b->inputs[feature] : NULL;
	if (!in || in->form != INPUT_DENSE)
		return fail(-EINVAL,
			    "embeng_batch_gather: feature %s: give its rows with "
			    "embeng_batch_dense() first",
			    f->name);
	in->gathers = true;
	return 0;
}
