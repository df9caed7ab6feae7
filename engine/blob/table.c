/* SPDX-License-Identifier: MIT */
/*
 * Checks the values of TABLE, QUANTIZATION and SHARD records: sizes, flags, optimizer, rates, clips
 * and hyperparameters, and the place of a part in its whole table. It is apart from blob.c, which
 * reads the records, and compares floats as integers, since the engine has no floating point outside
 * kernels/.
 *
 * All functions look only at their arguments, and broken() writes the first fault into the parser.
 * The self-tests of a firmware image use the same checks of optimizers.
 */
#include "parser.h"
#include "../f32.h"
#include "../kernels/ranges.h"
#include "../kernels/optimizers.h"

u32 optimizer_kernel(u32 optimizer)
{
	/* One more than the kernel, so that what is not there has 0. */
	static const u32 kernels[] = {
#define OPTIMIZER_KERNEL(name, value) [value] = KERNEL_##name + 1,
		EMBENG_OPTIMIZER_TABLE(OPTIMIZER_KERNEL)
#undef OPTIMIZER_KERNEL
	};

	return optimizer < sizeof(kernels) / sizeof(kernels[0]) ? kernels[optimizer] - 1 : U32_MAX;
}

static u16 check_is_finite(struct parser *p, u64 offset, u32 bits)
{
	return f32_finite(bits) ? 0 :
				  broken(p, EMBENG_STATUS_BLOB_VALUE, offset, bits, F32_GREATEST);
}

static u16 check_is_number(struct parser *p, u64 offset, u32 bits)
{
	return f32_nan(bits) ? broken(p, EMBENG_STATUS_BLOB_VALUE, offset, bits, 0) : 0;
}

static u16 check_clip(struct parser *p, u64 offset, u32 low, u32 high)
{
	u16 status = check_is_number(p, offset, low);

	if (!status)
		status = check_is_number(p, offset + 4, high);
	if (!status && f32_order(low) > f32_order(high))
		status = broken(p, EMBENG_STATUS_BLOB_VALUE, offset, low, high);
	/* No limit is an infinity; on the wrong side it would make all numbers infinite. */
	if (!status && low == F32_INFINITY)
		status = broken(p, EMBENG_STATUS_BLOB_VALUE, offset, low, F32_GREATEST);
	if (!status && high == (F32_SIGN | F32_INFINITY))
		status = broken(p, EMBENG_STATUS_BLOB_VALUE, offset + 4, high,
				F32_SIGN | F32_GREATEST);
	return status;
}

bool optimizer_number_ok(u32 kernel, u32 index, u32 bits)
{
	if (index >= kernel_optimizers[kernel].hyper_count)
		return !bits;
	return number_in_range(kernel_optimizers[kernel].hyper[index].range, bits);
}

static u16 check_in_range(struct parser *p, u64 offset, u32 bits, u32 range)
{
	return number_in_range(range, bits) ?
		       0 :
		       broken(p, EMBENG_STATUS_BLOB_VALUE, offset, bits, number_bound(range, bits));
}

/* Slots that the optimizer does not have start with 0. */
static u16 check_slot_starts(struct parser *p, u64 at, const struct embeng_record_table *t,
			     u32 kind)
{
	u16 status = 0;

	for (u32 i = 0; !status && i < EMBENG_SLOTS_MAX; i++) {
		u64 offset = AT(at, embeng_record_table, slot_start) + i * 4;

		status = i < t->slot_count ? check_in_range(p, offset, t->slot_start[i],
							    slot_range(kind, i + 1)) :
					     value_above(p, offset, t->slot_start[i], 0);
	}
	return status;
}

static u16 check_settings(struct parser *p, u64 at, const struct embeng_record_table *t)
{
	u16 status = check_is_finite(p, AT(at, embeng_record_table, rate), t->rate);

	if (!status)
		status = check_in_range(p, AT(at, embeng_record_table, weight_decay),
					t->weight_decay, KERNEL_FROM_ZERO);
	if (!status)
		status = check_clip(p, AT(at, embeng_record_table, clip_gradient_min),
				    t->clip_gradient_min, t->clip_gradient_max);
	if (!status)
		status = check_clip(p, AT(at, embeng_record_table, clip_weight_min),
				    t->clip_weight_min, t->clip_weight_max);
	if (!status)
		status = check_in_range(p, AT(at, embeng_record_table, max_norm), t->max_norm,
					KERNEL_FROM_ZERO);
	return status;
}

static u16 check_hyperparameters(struct parser *p, u64 at, const struct embeng_record_table *t,
				 u32 kind)
{
	u32 count = kind == U32_MAX ? 0 : kernel_optimizers[kind].hyper_count;
	u16 status = 0;

	for (u32 i = 0; !status && i < EMBENG_HYPERPARAMETERS_MAX; i++) {
		u64 offset = AT(at, embeng_record_table, hyperparameter) + i * 4;
		u32 bits = t->hyperparameter[i];

		if (i >= count)
			status = value_above(p, offset, bits, 0);
		else if (!optimizer_number_ok(kind, i, bits))
			status = broken(p, EMBENG_STATUS_BLOB_VALUE, offset, bits,
					number_bound(kernel_optimizers[kind].hyper[i].range, bits));
	}
	return status;
}

u16 blob_check_numbers(struct parser *p, u64 at, const struct embeng_record_table *t, u32 kind)
{
	u16 status = check_settings(p, at, t);

	if (!status)
		status = check_slot_starts(p, at, t, kind);
	return status ? status : check_hyperparameters(p, at, t, kind);
}

static u16 check_table_optimizer(struct parser *p, u64 at, const struct embeng_record_table *t,
				 u32 *kind)
{
	u64 offset = AT(at, embeng_record_table, optimizer);
	u32 slots = 0;

	*kind = U32_MAX;
	if (t->optimizer >= 32 || !(p->caps->optimizers & 1u << t->optimizer))
		return broken(p, EMBENG_STATUS_BLOB_VALUE, offset, t->optimizer,
			      p->caps->optimizers);
	if (t->optimizer != EMBENG_OPTIMIZER_NONE) {
		*kind = optimizer_kernel(t->optimizer);
		if (*kind == U32_MAX)
			return broken(p, EMBENG_STATUS_BLOB_VALUE, offset, t->optimizer,
				      p->caps->optimizers);
		slots = kernel_optimizers[*kind].slot_count;
	}
	if (t->optimizer == EMBENG_OPTIMIZER_FREQUENCY_ESTIMATOR && t->dim != 1)
		return broken(p, EMBENG_STATUS_BLOB_VALUE, AT(at, embeng_record_table, dim), t->dim,
			      1);
	return value_within(p, AT(at, embeng_record_table, slot_count), t->slot_count, slots,
			    slots);
}

/* Where the optimizer is a function of the gradient, and the rate has no part in the decay. */
static bool takes_gradient_decay(const struct embeng_record_table *t)
{
	return t->optimizer != EMBENG_OPTIMIZER_NONE && t->optimizer != EMBENG_OPTIMIZER_ASSIGN &&
	       t->optimizer != EMBENG_OPTIMIZER_FREQUENCY_ESTIMATOR &&
	       !(t->flags & EMBENG_TABLE_DECAY_BY_RATE);
}

static u16 check_flags(struct parser *p, u64 at, const struct embeng_record_table *t)
{
	u32 flags = EMBENG_TABLE_ACCUMULATE | EMBENG_TABLE_DECAY_BY_RATE |
		    EMBENG_TABLE_RATE_DYNAMIC;

	if ((t->optimizer == EMBENG_OPTIMIZER_ADAM || t->optimizer == EMBENG_OPTIMIZER_LION) &&
	    t->flags & EMBENG_TABLE_ACCUMULATE)
		flags |= EMBENG_TABLE_NON_LAZY;
	if (t->optimizer == EMBENG_OPTIMIZER_FREQUENCY_AWARE_ADAGRAD)
		flags |= EMBENG_TABLE_STEP_DYNAMIC;
	if (takes_gradient_decay(t))
		flags |= EMBENG_TABLE_DECAY_GRADIENT;
	if (t->flags & EMBENG_TABLE_ACCUMULATE)
		flags |= EMBENG_TABLE_BY_FREQUENCY;
	if (t->optimizer != EMBENG_OPTIMIZER_NONE)
		flags |= blob_dynamic_flags(optimizer_kernel(t->optimizer));
	if (t->flags & ~flags)
		return broken(p, EMBENG_STATUS_BLOB_VALUE, AT(at, embeng_record_table, flags),
			      t->flags, flags);
	return 0;
}

/* Indices of rates, where the record has some. */
static u16 check_rates(struct parser *p, u64 at, const struct embeng_record_table *t)
{
	u32 count = p->blob->engine.rate_count;

	if (t->flags & EMBENG_TABLE_RATE_DYNAMIC && t->rate >= count)
		return broken(p, EMBENG_STATUS_BLOB_VALUE, AT(at, embeng_record_table, rate),
			      t->rate, count);
	if (!(t->flags & EMBENG_TABLE_STEP_DYNAMIC) && t->step_rate)
		return broken(p, EMBENG_STATUS_BLOB_VALUE, AT(at, embeng_record_table, step_rate),
			      t->step_rate, 0);
	if (t->flags & EMBENG_TABLE_STEP_DYNAMIC && t->step_rate >= count)
		return broken(p, EMBENG_STATUS_BLOB_VALUE, AT(at, embeng_record_table, step_rate),
			      t->step_rate, count);
	return blob_check_dynamic(p, at, t);
}

u16 blob_check_table(struct parser *p, u64 at, const struct embeng_record_table *t, u32 *kind)
{
	struct embeng_record_table filled;
	u16 status;

	/* Ids are signed, so no row beyond could be asked for. */
	status = value_within(p, AT(at, embeng_record_table, rows), t->rows, 1, U64_MAX >> 1);
	if (!status)
		status = value_within(p, AT(at, embeng_record_table, dim), t->dim, 1, p->caps->dim);
	if (!status)
		status = check_flags(p, at, t);
	if (!status && (t->combiner >= 32 || !(p->caps->combiners & 1u << t->combiner)))
		status = broken(p, EMBENG_STATUS_BLOB_VALUE, AT(at, embeng_record_table, combiner),
				t->combiner, p->caps->combiners);
	if (!status)
		status = value_above(p, AT(at, embeng_record_table, out_of_range), t->out_of_range,
				     EMBENG_OUT_OF_RANGE_ZERO);
	if (!status)
		status = check_table_optimizer(p, at, t, kind);
	if (!status)
		status = check_rates(p, at, t);
	if (status)
		return status;
	filled = blob_fill_dynamic(t, *kind);
	return blob_check_numbers(p, at, &filled, *kind);
}

u16 blob_check_quantization(struct parser *p, u64 at, const struct embeng_record_quantization *q)
{
	u64 lower = AT(at, embeng_record_quantization, lower);
	u16 status = value_within(p, AT(at, embeng_record_quantization, num_buckets),
				  q->num_buckets, 2, U32_MAX);

	if (!status)
		status = check_is_finite(p, lower, q->lower);
	if (!status)
		status = check_is_finite(p, AT(at, embeng_record_quantization, upper), q->upper);
	if (!status && f32_order(q->lower) >= f32_order(q->upper))
		status = broken(p, EMBENG_STATUS_BLOB_VALUE, lower, q->lower, q->upper);
	return status;
}

/* Rows first, then columns: each number within what the ones before it leave. */
u16 blob_check_shard(struct parser *p, u64 at, const struct embeng_record_shard *s)
{
	const struct embeng_record_table *t = &p->blob->tables[s->table];
	u64 most = U64_MAX;
	u16 status;

	status = value_within(p, AT(at, embeng_record_shard, whole_rows), s->whole_rows, t->rows,
			      U64_MAX >> 1);
	if (!status)
		status = value_above(p, AT(at, embeng_record_shard, first_row), s->first_row,
				     s->whole_rows - t->rows);
	if (!status && t->rows > 1)
		most = (s->whole_rows - 1 - s->first_row) / (t->rows - 1);
	if (!status)
		status = value_within(p, AT(at, embeng_record_shard, row_step), s->row_step, 1,
				      most);
	if (!status)
		status = value_within(p, AT(at, embeng_record_shard, whole_dim), s->whole_dim,
				      t->dim, U32_MAX);
	if (!status)
		status = value_above(p, AT(at, embeng_record_shard, first_column), s->first_column,
				     s->whole_dim - t->dim);
	if (!status)
		status = value_above(p, AT(at, embeng_record_shard, reserved), s->reserved, 0);
	return status;
}
