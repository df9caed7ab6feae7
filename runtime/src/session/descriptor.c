// SPDX-License-Identifier: MIT
/*
 * Writes a batch down as the engine reads it. Arrays that lie in a buffer of the program are named
 * in place, and others are copied into memory of the slot.
 *
 * Called with e->lock held. The lock is released while arrays are copied; the slot belongs to its
 * caller meanwhile, and buffers are pinned.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "batch/partitioned.h"

void copy_counted(struct embeng *e, void *to, const void *from, uint64_t bytes)
{
	uint64_t start = now_ns();

	memcpy(to, from, bytes);
	__atomic_add_fetch(&e->counters.time_copy_ns, now_ns() - start, __ATOMIC_RELAXED);
	__atomic_add_fetch(&e->counters.bytes_copied, bytes, __ATOMIC_RELAXED);
}

/* Those of the stacks stand behind the features'. Return: how many there are of both. */
static size_t list_arrays(struct slot *slot, const struct embeng_batch *b,
			  struct stack_counts *stacks)
{
	for (size_t f = 0; f < b->count; f++) {
		const struct input *in = &b->inputs[f];
		struct array *a = &slot->arrays[ARRAYS * f];

		layout_arrays(a, in->samples, in->id_count, in->type);
		a[OFFSETS].data = in->form == INPUT_CSR ? in->offsets : NULL;
		/* An empty array is not read, so it needs no memory. */
		a[IDS].data = in->id_count ? in->ids : NULL;
		a[WEIGHTS].data = in->id_count ? in->weights : NULL;
	}
	*stacks = stacks_list(b, &slot->arrays[ARRAYS * b->count]);
	return ARRAYS * b->count + STACK_ARRAYS * (size_t)stacks->stacks;
}

int arrays_pin(struct embeng *e, struct array *arrays, size_t count, struct pins *pins)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < count; i++) {
		struct array *a = &arrays[i];
		struct buffer *buffer;

		if (!a->data)
			continue;
		buffer = buffers_find(&e->buffers, a->data, a->count * a->width, a->width, &a->mem);
		a->in_place = buffer != NULL;
		if (buffer)
			ret = pin(pins, buffer);
	}
	return ret;
}

static void make_copies(struct embeng *e, struct slot *slot, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct array *a = &slot->arrays[i];

		if (!a->data || a->in_place)
			continue;
		copy_counted(e, slot->input.data + a->at, a->data, a->count * a->width);
		a->mem = region_part(&slot->input, a->at, a->count * a->width);
	}
}

static void write_lookup_head(struct embeng *e, struct slot *slot, const struct embeng_batch *b,
			      const struct stack_counts *stacks)
{
	struct embeng_lookup head = {
		.feature_count = (uint32_t)b->count,
		.feature_stride = sizeof(struct embeng_lookup_feature),
		.model_hash = e->model_hash,
		.stack_count = stacks->stacks,
		.member_count = stacks->members,
	};

	if (stacks->stacks) {
		head.stack_stride = sizeof(struct embeng_lookup_stack);
		head.member_stride = sizeof(struct embeng_lookup_member);
	}
	memcpy(slot->input.data, &head, sizeof(head));
}

static uint8_t form_of_input(const struct input *in)
{
	switch (in->form) {
	case INPUT_DENSE:
		return in->gathers ? EMBENG_FORM_ROWS : EMBENG_FORM_DENSE;
	case INPUT_PARTITIONED:
		return EMBENG_FORM_PARTITIONED;
	default:
		return in->pooled ? EMBENG_FORM_POOLED : EMBENG_FORM_CSR;
	}
}

static void write_lookup_features(struct slot *slot, const struct embeng_batch *b)
{
	char *to = slot->input.data + sizeof(struct embeng_lookup);

	for (size_t f = 0; f < b->count; f++) {
		const struct input *in = &b->inputs[f];
		const struct array *a = &slot->arrays[ARRAYS * f];
		struct embeng_lookup_feature feature = {
			.feature = (uint32_t)f,
			.form = form_of_input(in),
			.id_width = in->form == INPUT_PARTITIONED ? 0 : (uint8_t)a[IDS].width,
			.offset_width = in->form == INPUT_CSR ? 8 : 0,
			.sample_count = in->samples,
			.id_count = in->id_count,
			.offsets = a[OFFSETS].mem,
			.ids = a[IDS].mem,
			.weights = a[WEIGHTS].mem,
		};

		if (slot->outputs && slot->placed[f].generation) {
			feature.activations = slot->placed[f];
			feature.activation_stride = 4 * slot->outputs[f].stride;
		} else if (!slot->ids_only) {
			feature.activations = region_part(&slot->activations, slot->at[f],
							  4 * slot->elements[f]);
		}

		memcpy(to + f * sizeof(feature), &feature, sizeof(feature));
	}
}

static int64_t length_of_sample(const struct input *in, size_t sample, int64_t most)
{
	int64_t length = in->offsets[sample + 1] - in->offsets[sample];

	return length < 0 ? 0 : length > most ? most : length;
}

/* Ids per sample of sequence features, for the views. */
int slot_note_lengths(struct embeng *e, struct slot *slot, const struct embeng_batch *b)
{
	for (size_t f = 0; f < b->count; f++) {
		int64_t most = e->model->features[f].max_sequence_length;
		const struct input *in = &b->inputs[f];
		int64_t *lengths;

		slot->views[f].lengths = NULL;
		slot->views[f].lengths_count = 0;
		if (!most || in->form != INPUT_CSR || in->pooled)
			continue;
		lengths = realloc(slot->lengths[f], (in->samples + 1) * sizeof(*lengths));
		if (!lengths)
			return fail(-ENOMEM, "no memory for sequence lengths");
		slot->lengths[f] = lengths;
		for (size_t s = 0; s < in->samples; s++)
			lengths[s] = length_of_sample(in, s, most);
		slot->views[f].lengths = lengths;
		slot->views[f].lengths_count = in->samples;
	}
	return 0;
}

/* Without the lock. @count: of the arrays of features and stacks. */
static int write_lookup(struct embeng *e, struct slot *slot, const struct embeng_batch *b,
			const struct stack_counts *stacks, size_t count,
			struct embeng_mem *descriptor)
{
	uint64_t features = layout_input_head(b->count), head = features + stacks_bytes(stacks);
	int ret = region_grow(e, &slot->input, layout_copies(slot->arrays, count, head));

	if (!ret && !slot->ids_only)
		ret = region_grow(e, &slot->activations, slot->bytes);
	if (!ret && !slot->ids_only && !slot->outputs)
		ret = slot_note_lengths(e, slot, b);
	if (ret)
		return ret;
	make_copies(e, slot, count);
	write_lookup_head(e, slot, b, stacks);
	write_lookup_features(slot, b);
	stacks_write(b, &slot->arrays[ARRAYS * b->count], slot->input.data + features);
	*descriptor = region_part(&slot->input, 0, head);
	return 0;
}

/* The engine refuses it as well, but only after it was queued. */
static int check_command_bytes(const struct embeng *e, const struct slot *slot,
			       const struct embeng_batch *b)
{
	uint64_t limit = e->device->info.command_bytes, sum = 0;

	for (size_t f = 0; limit && f < b->count; f++) {
		const struct feature *feature = &e->model->features[f];
		uint64_t dim = (uint64_t)e->model->tables[feature->table].dim, n, bytes;

		if (__builtin_mul_overflow(b->inputs[f].id_count, dim, &n) ||
		    __builtin_add_overflow(n, slot->elements[f], &n) ||
		    __builtin_mul_overflow(n, 4, &bytes) ||
		    __builtin_add_overflow(sum, bytes, &sum) || sum > limit)
			return error_set(
				-ERANGE, EMBENG_STATUS_COUNT,
				"feature %s: with its %zu ids and its activations the batch "
				"moves more than the %" PRIu64 " bytes that the device takes "
				"in one command; give the samples in several batches",
				feature->name, b->inputs[f].id_count, limit);
	}
	return 0;
}

int describe_lookup(struct embeng *e, struct slot *slot, const struct embeng_batch *b,
		    struct embeng_mem *descriptor)
{
	struct stack_counts stacks;
	size_t count = list_arrays(slot, b, &stacks);
	int ret = layout_outputs(e->model, slot->resolved, slot->at, slot->elements, &slot->bytes);

	ret = ret ? ret : check_command_bytes(e, slot, b);
	ret = ret ? ret : arrays_pin(e, slot->arrays, count, &slot->input_pins);
	ret = ret || !slot->outputs ? ret : outputs_place(e, slot, b);
	if (ret)
		return ret;
	pthread_mutex_unlock(&e->lock);
	ret = write_lookup(e, slot, b, &stacks, count, descriptor);
	pthread_mutex_lock(&e->lock);
	return ret;
}
