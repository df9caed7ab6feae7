/* SPDX-License-Identifier: MIT */
/*
 * Copies the ids, row offsets and weights of a feature into private memory and applies the table's
 * policy to ids that are out of range. All checks look at the private copy alone, so a program that
 * changes its arrays meanwhile cannot get anything past them.
 *
 * Called without engine->lock, by one core for each feature. The memory belongs to the batch.
 */
#include "batch.h"
#include "../f32.h"
#include "../memory/offsets.h"

#define COPY_IDS 128u /* at once; they fit a kernel's stack */

bool ids_widen_all(struct command *command, u64 *to, const void *from, u64 count, u32 width)
{
	for (u64 at = 0, end; at < count; at = end) {
		end = piece_end(at, count);
		ids_widen(to + at, (const u8 *)from + at * width, end - at, width);
		if (end < count && piece_over(command))
			return true;
	}
	return false;
}

/* Also where the command is to stop, which nobody takes for an answer then. */
static bool all_ascend(struct command *command, const u64 *offsets, u64 samples)
{
	for (u64 at = 0, end; at < samples; at = end) {
		end = piece_end(at, samples);
		if (!offsets_ascend(offsets + at, end - at))
			return false;
		if (end < samples && piece_over(command))
			return true;
	}
	return !samples || !(offsets[0] >> 63);
}

u16 ids_check_offsets(struct command *command, const u64 *offsets, u64 samples, u64 ids,
		      u32 feature, struct fault *fault)
{
	u64 previous = 0;

	if (!offsets[0] && offsets[samples] == ids && all_ascend(command, offsets, samples))
		return 0;
	if (offsets[0])
		return fault_set(fault, EMBENG_STATUS_OFFSETS, EMBENG_FIELD_ROW_OFFSETS, feature, 0,
				 offsets[0], 0);
	for (u64 i = 1; i <= samples; i++) {
		u64 offset = offsets[i];

		if (offset < previous || offset > ids)
			return fault_set(fault, EMBENG_STATUS_OFFSETS, EMBENG_FIELD_ROW_OFFSETS,
					 feature, i, offset, offset < previous ? previous : ids);
		previous = offset;
		if (!(i % PIECE_ROWS) && piece_over(command))
			return 0;
	}
	if (previous != ids)
		return fault_set(fault, EMBENG_STATUS_OFFSETS, EMBENG_FIELD_ROW_OFFSETS, feature,
				 samples, previous, ids);
	return 0;
}

static u16 check_weights_finite(struct command *command, const u32 *weights, u64 count, u32 feature,
				struct fault *fault)
{
	u64 i, n;

	for (u64 first = 0; first < count; first += n) {
		n = count - first < PIECE_ROWS ? count - first : PIECE_ROWS;
		if (!f32_row_finite(weights + first, n)) {
			for (i = first; f32_finite(weights[i]); i++)
				;
			return fault_set(fault, EMBENG_STATUS_WEIGHT, EMBENG_FIELD_WEIGHTS, feature,
					 i, weights[i], F32_INFINITY);
		}
		if (n == PIECE_ROWS && piece_over(command))
			return 0;
	}
	return 0;
}

static bool any_outside(const u64 *ids, u64 count, u64 limit)
{
	u64 bad = 0;

	for (u64 i = 0; i < count; i++)
		bad |= ID_OUTSIDE(ids[i], limit);
	return bad >> 63;
}

/* How many come next, up to @last, copied to @to. */
static u64 widen_block(const struct given_ids *ids, u64 at, u64 last, u64 *to)
{
	u64 left = last - at, n = left < COPY_IDS ? left : COPY_IDS;

	ids_widen(to, (const u8 *)ids->from + at * ids->width, n, ids->width);
	return n;
}

/* Checked while a block of the copy is in the nearest cache. Return: whether any is outside. */
static bool copy_wide(struct command *command, u64 *to, const struct given_ids *ids, u64 count)
{
	bool outside = false;

	for (u64 at = 0, n; at < count; at += n) {
		n = widen_block(ids, at, count, to + at);
		outside |= any_outside(to + at, n, ids->limit);
		if (!((at + n) % PIECE_ROWS) && piece_over(command))
			break;
	}
	return outside;
}

/* @ids: the first is id @at of the feature, and one of them is outside. */
static u16 outside_fault(struct command *command, const u64 *ids, u64 at, u64 limit, u32 feature,
			 struct fault *fault)
{
	u64 i = 0;

	while (ids[i] < limit) {
		if (!(++i % PIECE_ROWS) && piece_over(command))
			return 0;
	}
	return fault_set(fault, EMBENG_STATUS_ID, EMBENG_FIELD_IDS, feature, at + i, ids[i], limit);
}

/*
 * Finds the id that is outside among [@at, @last). The ids are read a second time, so all may be
 * inside by now: then these are taken.
 */
static u16 copy_again(u32 *to, const struct given_ids *ids, u64 at, u64 last, u32 feature,
		      struct fault *fault)
{
	u64 block[COPY_IDS];

	for (u64 n; at < last; at += n, to += n) {
		n = widen_block(ids, at, last, block);
		if (any_outside(block, n, ids->limit))
			return outside_fault(NULL, block, at, ids->limit, feature, fault);
		for (u64 i = 0; i < n; i++)
			to[i] = (u32)block[i];
	}
	return 0;
}

u16 ids_take(struct command *command, const struct kernel_ops *kernels, u32 *to,
	     const struct given_ids *ids, u64 first, u64 last, bool stream, u32 feature,
	     struct fault *fault)
{
	u16 status = 0;

	for (u64 at = first, n; !status && at < last; at += n, to += n) {
		struct port_fpu fpu;
		bool bad;

		n = last - at < chunk_rows(1) ? last - at : chunk_rows(1);
		port_fpu_begin(&fpu);
		bad = kernels->take_ids(to, (const u8 *)ids->from + at * ids->width, n, ids->width,
					ids->limit, stream);
		port_fpu_end(&fpu);
		if (bad)
			status = copy_again(to, ids, at, at + n, feature, fault);
		if (at + n < last && piece_over(command))
			return 0;
	}
	return status;
}

/* Row of an id under the table's policy. Return: false to leave it out. */
static bool apply_policy(const struct table *table, struct batch_feature *f, u64 *row)
{
	u64 rows = table->record.rows;

	if (*row < rows)
		return true;
	switch (table->record.out_of_range) {
	case EMBENG_OUT_OF_RANGE_CLAMP:
		*row = (s64)*row < 0 ? 0 : rows - 1;
		f->clamped++;
		return true;
	case EMBENG_OUT_OF_RANGE_ZERO:
		*row = KERNEL_ROW_ZERO;
		f->zeroed++;
		return true;
	}
	f->dropped++;
	return false;
}

/* In place: what is kept never stands behind where it came from. */
static u64 pool_sample(struct command *command, const struct table *table, struct batch_feature *f,
		       u64 first, u64 end, u64 kept, u64 *left)
{
	u64 *rows = f->rows.data;
	u32 *weights = f->weights.data;

	for (u64 i = first; i < end; i++) {
		u64 row = rows[i];

		if (piece_step(command, left))
			return kept;
		if (!apply_policy(table, f, &row))
			continue;
		rows[kept] = row;
		if (f->weighted)
			weights[kept] = weights[i];
		kept++;
	}
	return kept;
}

static void pool_samples(struct command *command, const struct table *table,
			 struct batch_feature *f)
{
	u64 *bag = f->bag.data, kept = 0, first = 0, left = PIECE_ROWS;

	f->asked = f->given.id_count;
	for (u64 s = 0; s < f->given.sample_count; s++) {
		u64 end = bag[s + 1];

		bag[s] = kept;
		kept = pool_sample(command, table, f, first, end, kept, &left);
		first = end;
		if (piece_step(command, &left) || command_is_cut(command))
			return;
	}
	bag[f->given.sample_count] = kept;
	f->occurrences = kept;
}

/* Positions of one sample of a sequence; a bag of one id or of none each. */
static u64 place_sample(struct command *command, const struct table *table, struct batch_feature *f,
			u64 sample, u64 length, u64 kept, u64 *left)
{
	const u64 *offsets = f->offsets.data;
	u64 *bag = (u64 *)f->bag.data + sample * length, position = 0;

	for (u64 i = offsets[sample]; i < offsets[sample + 1] && position < length; i++) {
		u64 row = batch_row(f, i);

		f->asked++;
		if (piece_step(command, left))
			return kept;
		if (!apply_policy(table, f, &row))
			continue;
		bag[position++] = kept;
		batch_put_row(f, kept++, row);
	}
	for (; position < length; position++) {
		bag[position] = kept;
		if (piece_step(command, left))
			break;
	}
	return kept;
}

static void place_samples(struct command *command, const struct table *table,
			  struct batch_feature *f, u64 length)
{
	u64 kept = 0, left = PIECE_ROWS;

	f->asked = 0;
	for (u64 s = 0; s < f->given.sample_count && !command_is_cut(command); s++)
		kept = place_sample(command, table, f, s, length, kept, &left);
	((u64 *)f->bag.data)[f->outputs] = kept;
	f->occurrences = kept;
}

static void number_samples(struct command *command, u64 *offsets, u64 samples)
{
	for (u64 i = 0; i <= samples; i++) {
		offsets[i] = i;
		if (!((i + 1) % PIECE_ROWS) && piece_over(command))
			return;
	}
}

static int need_all(struct model *model, const struct embeng_record_table *table,
		    struct batch_feature *f, u64 length, bool training)
{
	struct batch_size size = {
		.samples = f->given.sample_count,
		.ids = f->given.id_count,
		.length = length,
		.weighted = f->weighted,
		.scaled = f->scaled = batch_scaled(table->combiner, f->given.form, length),
		.identity = f->identity,
		.narrow = f->narrow,
		.training = training,
		.held = batch_held(table, f->given.form, length),
	};

	return batch_fit(model, f, &size);
}

static u16 copy_weights(struct command *command, u32 feature, struct batch_feature *f,
			const struct batch_input *in, struct fault *fault)
{
	u64 ids = f->given.id_count;

	if (!f->weighted || !ids)
		return 0;
	piece_copy(command, f->weights.data, in->weights, ids * 4);
	COPIED();
	if (model_checks_weights(command_model(command), feature))
		return check_weights_finite(command, f->weights.data, ids, feature, fault);
	return 0;
}

static u16 copy_row_offsets(struct command *command, u32 feature, struct batch_feature *f,
			    u64 *offsets, const struct batch_input *in, struct fault *fault)
{
	u64 samples = f->given.sample_count, ids = f->given.id_count;

	if (form_is_dense(f->given.form)) {
		number_samples(command, offsets, samples);
		return 0;
	}
	if (ids_widen_all(command, offsets, in->offsets, samples + 1, f->given.offset_width))
		return 0;
	return ids_check_offsets(command, offsets, samples, ids, feature, fault);
}

static u16 copy_ids(struct command *command, u32 feature, struct batch_feature *f, u64 *offsets,
		    const struct batch_input *in, bool *outside, struct fault *fault)
{
	const struct model *model = command_model(command);
	const struct embeng_record_feature *record = &model->blob.features[feature];
	const struct table *table = &model->tables[record->table];
	u64 ids = f->given.id_count;
	const struct given_ids given = { in->ids, table->record.rows, f->given.id_width };
	u16 status = copy_row_offsets(command, feature, f, offsets, in, fault);

	if (status || command_is_cut(command))
		return status;
	if (f->narrow)
		status = ids_take(command, model->engine->kernels, f->rows.data, &given, 0, ids,
				  in->stream, feature, fault);
	else
		*outside = copy_wide(command, f->rows.data, &given, ids);
	if (*outside && table->record.out_of_range == EMBENG_OUT_OF_RANGE_ERROR)
		status = outside_fault(command, f->rows.data, 0, given.limit, feature, fault);
	return status ? status : copy_weights(command, feature, f, in, fault);
}

u16 ids_fit(struct model *model, u32 feature, struct batch_feature *f, bool training,
	    struct fault *fault)
{
	const struct embeng_record_feature *record = &model->blob.features[feature];
	const struct table *table = &model->tables[record->table];
	u64 length = batch_sequence(model, feature, f);

	f->identity = form_is_dense(f->given.form) && !length &&
		      table->record.out_of_range != EMBENG_OUT_OF_RANGE_DROP;
	if (need_all(model, &table->record, f, length, training))
		return fault_set(fault, EMBENG_STATUS_NO_MEMORY, EMBENG_FIELD_IDS, feature, 0,
				 f->given.id_count, 0);
	return 0;
}

u16 ids_copy(struct command *command, u32 feature, struct batch_feature *f,
	     const struct batch_input *in, struct fault *fault)
{
	const struct model *model = command_model(command);
	const struct table *table = &model->tables[model->blob.features[feature].table];
	u64 length = batch_sequence(model, feature, f);
	bool outside = false;
	u16 status;

	f->dropped = f->clamped = f->zeroed = 0;
	status = copy_ids(command, feature, f, length ? f->offsets.data : f->bag.data, in, &outside,
			  fault);
	if (status || command_is_cut(command))
		return status;
	if (length) {
		place_samples(command, table, f, length);
	} else if (outside) {
		pool_samples(command, table, f);
	} else {
		f->occurrences = f->asked = f->given.id_count;
	}
	return 0;
}
