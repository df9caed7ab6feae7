/* SPDX-License-Identifier: MIT */
/*
 * The numbers of a table that each UPDATE gives anew, as it gives rates: which those are, and the
 * table with the values of a step. It is apart from table.c, since steps ask for it.
 *
 * Nothing is kept here; functions look only at their arguments. Floats are only moved, never computed
 * with.
 */
#include "parser.h"
#include "../f32.h"
#include "../kernels/optimizers.h"

#define AT_NUMBER(member) offsetof(struct embeng_record_table, member)

/* A number that every optimizer has; @idle: bits of one that has no effect. */
static const struct setting {
	u32 flag;
	u32 at;
	u32 idle;
	bool limit; /* a clip has it */
} settings[] = {
	{ EMBENG_TABLE_WEIGHT_DECAY_DYNAMIC, AT_NUMBER(weight_decay), 0, false },
	{ EMBENG_TABLE_CLIP_GRADIENT_MIN_DYNAMIC, AT_NUMBER(clip_gradient_min),
	  F32_SIGN | F32_INFINITY, true },
	{ EMBENG_TABLE_CLIP_GRADIENT_MAX_DYNAMIC, AT_NUMBER(clip_gradient_max), F32_INFINITY,
	  true },
	{ EMBENG_TABLE_CLIP_WEIGHT_MIN_DYNAMIC, AT_NUMBER(clip_weight_min), F32_SIGN | F32_INFINITY,
	  true },
	{ EMBENG_TABLE_CLIP_WEIGHT_MAX_DYNAMIC, AT_NUMBER(clip_weight_max), F32_INFINITY, true },
	{ EMBENG_TABLE_MAX_NORM_DYNAMIC, AT_NUMBER(max_norm), 0, false },
};

#define SETTINGS (sizeof(settings) / sizeof(settings[0]))
#define NUMBERS (SETTINGS + EMBENG_HYPERPARAMETERS_MAX)

/* The settings come first, then the hyperparameters. */
static u32 flag_of_number(u32 number)
{
	return number < SETTINGS ? settings[number].flag :
				   EMBENG_TABLE_HYPERPARAMETER_DYNAMIC(number - SETTINGS);
}

static u32 place_of_number(u32 number)
{
	return number < SETTINGS ? settings[number].at :
				   (u32)(AT_NUMBER(hyperparameter) + (number - SETTINGS) * 4);
}

static u32 bits_of_number(const struct embeng_record_table *t, u32 number)
{
	u32 bits;

	memcpy(&bits, (const u8 *)t + place_of_number(number), sizeof(bits));
	return bits;
}

static void set_bits_of_number(struct embeng_record_table *t, u32 number, u32 bits)
{
	memcpy((u8 *)t + place_of_number(number), &bits, sizeof(bits));
}

u32 blob_dynamic_flags(u32 kind)
{
	u32 flags = 0;

	for (u32 n = 0; n < SETTINGS; n++)
		flags |= settings[n].flag;
	for (u32 i = 0; kind != U32_MAX && i < kernel_optimizers[kind].hyper_count; i++)
		flags |= EMBENG_TABLE_HYPERPARAMETER_DYNAMIC(i);
	return flags;
}

u16 blob_check_dynamic(struct parser *p, u64 at, const struct embeng_record_table *t)
{
	u32 count = p->blob->engine.rate_count;

	for (u32 n = 0; n < NUMBERS; n++) {
		u32 rate = bits_of_number(t, n);

		if (!(t->flags & flag_of_number(n)))
			continue;
		if (rate >= count)
			return broken(p, EMBENG_STATUS_BLOB_VALUE, at + place_of_number(n), rate,
				      count);
		if (n < SETTINGS && settings[n].limit)
			p->blob->limits[rate] = true;
	}
	return 0;
}

struct embeng_record_table blob_fill_dynamic(const struct embeng_record_table *t, u32 kind)
{
	struct embeng_record_table filled = *t;

	if (t->flags & EMBENG_TABLE_RATE_DYNAMIC)
		filled.rate = 0;
	for (u32 n = 0; n < NUMBERS; n++) {
		u32 bits;

		if (!(t->flags & flag_of_number(n)))
			continue;
		if (n < SETTINGS)
			bits = settings[n].idle;
		else
			memcpy(&bits, &kernel_optimizers[kind].hyper[n - SETTINGS].value,
			       sizeof(bits));
		set_bits_of_number(&filled, n, bits);
	}
	return filled;
}

void table_at_step(const struct embeng_record_table *table, const u32 *rates,
		   struct embeng_record_table *out)
{
	*out = *table;
	if (table->flags & EMBENG_TABLE_RATE_DYNAMIC)
		out->rate = rates[table->rate];
	for (u32 n = 0; table->flags & TABLE_NUMBERS_DYNAMIC && n < NUMBERS; n++) {
		if (table->flags & flag_of_number(n))
			set_bits_of_number(out, n, rates[bits_of_number(table, n)]);
	}
	out->flags &= ~(EMBENG_TABLE_RATE_DYNAMIC | TABLE_NUMBERS_DYNAMIC);
}

u32 blob_rate_at(const struct embeng_record_table *t, u64 place)
{
	if (place == AT_NUMBER(rate))
		return t->flags & EMBENG_TABLE_RATE_DYNAMIC ? t->rate : U32_MAX;
	for (u32 n = 0; n < NUMBERS; n++) {
		if (place_of_number(n) == place)
			return t->flags & flag_of_number(n) ? bits_of_number(t, n) : U32_MAX;
	}
	return U32_MAX;
}
