/* SPDX-License-Identifier: MIT */
/*
 * Computes how much memory the private copy of an input takes, and makes it that large. The sizes
 * are needed when an input comes, when a model reserves memory beforehand, and when a forecast is
 * made without a device, so they are computed in one place.
 *
 * The buffers belong to the batch and are kept from one input to the next. No lock is taken; the
 * caller owns the batch.
 */
#include "batch.h"

static int multiply_bytes(u64 count, u64 width, u64 *bytes)
{
	return __builtin_mul_overflow(count, width, bytes) ? -1 : 0;
}

int batch_needs(const struct batch_size *size, u64 bytes[BATCH_BUFFERS])
{
	u64 outputs = size->samples, bags;

	if (size->length && multiply_bytes(outputs, size->length, &outputs))
		return -1;
	if (__builtin_add_overflow(outputs, 1, &bags))
		return -1;
	memset(bytes, 0, BATCH_BUFFERS * sizeof(*bytes));
	if (multiply_bytes(size->ids, size->narrow ? 4 : 8, &bytes[BATCH_ROWS]) ||
	    multiply_bytes(bags, 8, &bytes[BATCH_BAG]))
		return -1;
	/* Counts above fit 61 bits, and so do these. */
	if (size->training && !size->identity)
		bytes[BATCH_OUTPUTS_OF] = size->ids * 4;
	if (size->weighted)
		bytes[BATCH_WEIGHTS] = size->ids * 4;
	if (size->scaled)
		bytes[BATCH_SCALES] = outputs * 4;
	if (size->scaled && size->training)
		bytes[BATCH_COEF] = size->ids * 4;
	if (size->length)
		bytes[BATCH_OFFSETS] = (size->samples + 1) * 8;
	if (size->training && multiply_bytes(outputs * 4, size->held, &bytes[BATCH_HOLDERS]))
		return -1;
	return 0;
}

int batch_fit(struct model *model, struct batch_feature *f, const struct batch_size *size)
{
	struct buffer *const buffers[BATCH_BUFFERS] = {
		[BATCH_ROWS] = &f->rows,
		[BATCH_BAG] = &f->bag,
		[BATCH_OUTPUTS_OF] = &f->outputs_of,
		[BATCH_WEIGHTS] = &f->weights,
		[BATCH_SCALES] = &f->scales,
		[BATCH_COEF] = &f->coef,
		[BATCH_OFFSETS] = &f->offsets,
		[BATCH_HOLDERS] = &f->holders,
	};
	u64 bytes[BATCH_BUFFERS];

	if (batch_needs(size, bytes))
		return -1;
	for (u32 i = 0; i < BATCH_BUFFERS; i++) {
		if (bytes[i] && grow(model, &buffers[i]->data, &buffers[i]->bytes, bytes[i]))
			return -1;
	}
	return 0;
}

struct batch_size batch_largest(const struct blob *blob, u32 feature, bool training)
{
	const struct embeng_record_feature *record = &blob->features[feature];
	const struct embeng_record_table *table = &blob->tables[record->table];

	return (struct batch_size){
		.samples = record->max_samples,
		.ids = record->max_ids,
		.length = record->max_sequence_length,
		.scaled = batch_scaled(table->combiner, EMBENG_FORM_CSR,
				       record->max_sequence_length),
		.narrow = batch_narrow(table),
		.training = training,
		.held = batch_held(table, EMBENG_FORM_CSR, record->max_sequence_length),
	};
}
