/* SPDX-License-Identifier: MIT */
/* The private copy of a LOOKUP's input: what UPDATE uses later, too. */
#ifndef EMBENG_ENGINE_BATCH_H
#define EMBENG_ENGINE_BATCH_H

#include "model.h"

/* Memory that is kept from batch to batch. */
struct buffer {
	void *data;
	u64 bytes;
};

/**
 * struct batch_feature - one feature's checked input
 * @given: private copy of the descriptor
 * @outputs: rows of the activations: samples, or samples * max_sequence_length
 * @occurrences: rows that are read
 * @asked: ids that count as asked for: not those beyond a sequence's length
 * @rows: [occurrences] u64, KERNEL_ROW_ZERO by policy
 * @bag: [outputs + 1] u64, into @rows
 * @outputs_of: [occurrences] u32, gradient row; training, unless it is the identity
 * @weights: [occurrences] f32, when given
 * @scales: [outputs] f32, unless they are all 1
 * @coef: [occurrences] f32, training, unless they are @weights or all 1
 * @offsets: [samples + 1] u64, where @bag is made from them
 */
struct batch_feature {
	struct embeng_lookup_feature given;
	u64 outputs, occurrences, asked;
	u64 dropped, clamped, zeroed;
	bool weighted, scaled, identity;
	struct buffer rows, bag, outputs_of, weights, scales, coef, offsets;
};

/* A stretch of outputs of one feature, so that one call does bounded work. */
struct batch_task {
	u32 feature;
	u64 first, last;
};

struct batch {
	struct batch *next;
	struct batch_feature *features;
	u32 feature_count;
	struct buffer tasks; /* [task_count] struct batch_task */
	u64 task_count;
	u64 occurrences, bytes;
};

/* Positions that each sample keeps in order, 0: its ids are combined. */
static inline u64 batch_sequence(const struct model *model, u32 feature,
				 const struct batch_feature *f)
{
	return f->given.form == EMBENG_FORM_CSR ?
		       model->blob.features[feature].max_sequence_length : 0;
}

struct batch *batch_new(struct model *model);
void batch_free(struct batch *batch);

/* Memory for the largest batches that the model allows, where it says. */
int batch_reserve(struct model *model, struct batch *batch, bool training);

/**
 * batch_accept() - check and copy all that a LOOKUP names
 * @batch: where to
 * @training: keep what gradients will need
 *
 * Return: 0 or a status with command->fault.
 */
u16 batch_accept(struct command *command, struct batch *batch, bool training);

/* ids.c: one feature's ids, offsets and weights, resolved. */
struct batch_input {
	const void *ids, *offsets, *weights;
};

u16 ids_copy(const struct model *model, u32 feature, struct batch_feature *f,
	     const struct batch_input *in, bool training, struct fault *fault);

/* scales.c: what weights and combiner mean for outputs and gradients. */
u16 scales_make(const struct model *model, u32 feature, struct batch_feature *f, bool training,
		struct fault *fault);

/* Cuts the work of a batch into tasks. Return: 0, or -1 without memory. */
int batch_cut(const struct model *model, struct batch *batch);

/* Coefficients of gradients: f32 per occurrence, or NULL for all 1. */
const void *batch_coef(const struct model *model, u32 feature, const struct batch_feature *f);

static inline int buffer_need(struct buffer *b, u64 count, u64 width)
{
	u64 bytes;

	if (__builtin_mul_overflow(count, width, &bytes))
		return -1;
	return grow(&b->data, &b->bytes, bytes);
}

#endif
