/* SPDX-License-Identifier: MIT */
/*
 * Checks the values that an UPDATE gives. Each table that has dynamic numbers is checked with the
 * values of the step in their places by the checks of a blob, so that both allow the same. It is apart
 * from table.c, which a blob is checked by alone.
 *
 * Nothing is kept here; the values are a private copy.
 */
#include "parser.h"
#include "../f32.h"

static u16 refuse_rate(struct fault *fault, u32 rate, u64 value, u64 limit)
{
	return fault_set(fault, EMBENG_STATUS_NUMBER, EMBENG_FIELD_RATES, EMBENG_NO_INDEX, rate,
			 value, limit);
}

/*
 * Says which RATE stands for the number at a place of the record. The fault of two limits that cross
 * is at the lower one; if that is constant, the upper one behind it was given.
 */
static u16 refuse_rate_at(const struct embeng_record_table *t, const u32 *rates,
			  const struct fault *found, struct fault *fault)
{
	u32 rate = blob_rate_at(t, found->element);

	if (rate != U32_MAX)
		return refuse_rate(fault, rate, found->value, found->limit);
	rate = blob_rate_at(t, found->element + 4);
	return refuse_rate(fault, rate, rates[rate], found->value);
}

static u16 check_table_rates(const struct blob *blob, u32 table, const u32 *rates,
			     struct fault *fault)
{
	const struct embeng_record_table *t = &blob->tables[table];
	struct fault found;
	struct parser p = { .fault = &found };
	struct embeng_record_table now;

	if (t->flags & EMBENG_TABLE_STEP_DYNAMIC && !f32_finite(rates[t->step_rate]))
		return refuse_rate(fault, t->step_rate, rates[t->step_rate], F32_GREATEST);
	table_at_step(t, rates, &now);
	if (!blob_check_numbers(&p, 0, &now, blob->kernels[table]))
		return 0;
	return refuse_rate_at(t, rates, &found, fault);
}

u16 blob_check_rates(const struct blob *blob, const u32 *rates, struct fault *fault)
{
	bool infinite = false;
	u16 status = 0;

	for (u32 i = 0; i < blob->engine.rate_count; i++) {
		if (f32_finite(rates[i]))
			continue;
		if (f32_nan(rates[i]) || !blob->limits[i])
			return refuse_rate(fault, i, rates[i], F32_GREATEST);
		infinite = true;
	}
	for (u32 t = 0; !status && t < blob->engine.table_count; t++) {
		if (infinite || blob->tables[t].flags & TABLE_NUMBERS_DYNAMIC)
			status = check_table_rates(blob, t, rates, fault);
	}
	return status;
}
