// SPDX-License-Identifier: MIT
/*
 * The caller's memory as the output of a lookup. Where it lies in a buffer the engine writes it in
 * place, with its stride; anywhere else activations are copied there out of the slot.
 *
 * The memory is the caller's; a buffer stays pinned by the slot until the lookup is done.
 * outputs_place() is called with e->lock held, outputs_copy() by the thread that has the slot.
 */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "session.h"

/* Floats of one sample's activations. */
static uint64_t sample_width(const struct embeng *e, const struct embeng_batch *b, size_t f)
{
	const struct feature *feature = &e->model->features[f];
	uint64_t dim = (uint64_t)e->model->tables[feature->table].dim;
	const struct input *in = &b->inputs[f];

	if (feature->max_sequence_length && in->form == INPUT_CSR && !in->pooled)
		return dim * (uint64_t)feature->max_sequence_length;
	return dim;
}

/* Floats from the first of an output to behind its last; UINT64_MAX: more than there can be. */
static uint64_t output_span(const struct slot *slot, size_t f, uint64_t width)
{
	uint64_t stride = slot->outputs[f].stride ? slot->outputs[f].stride : width, span;

	if (!slot->elements[f])
		return 0;
	if (__builtin_mul_overflow(slot->elements[f] / width - 1, stride, &span) ||
	    __builtin_add_overflow(span, width, &span) || span > UINT64_MAX / 4)
		return UINT64_MAX;
	return span;
}

static int check_caller_output(const struct embeng *e, const struct slot *slot, size_t f,
			       uint64_t width)
{
	const struct embeng_output *to = &slot->outputs[f];
	const char *name = e->model->features[f].name;

	if (to->stride && to->stride < width)
		return fail(-EINVAL,
			    "feature %s: its outputs are %zu floats apart, a sample has %" PRIu64,
			    name, to->stride, width);
	if (to->data && to->elements < output_span(slot, f, width))
		return fail(-EINVAL,
			    "feature %s: its output has room for %zu floats, %" PRIu64
			    " are needed for %" PRIu64 " samples",
			    name, to->elements, output_span(slot, f, width),
			    slot->elements[f] / width);
	return 0;
}

int outputs_place(struct embeng *e, struct slot *slot, const struct embeng_batch *b)
{
	for (size_t f = 0; f < e->model->feature_count; f++) {
		const struct embeng_output *to = &slot->outputs[f];
		uint64_t width = sample_width(e, b, f);
		/* The engine has a stride for rows alone, not for sequences. */
		bool packs = width == (uint64_t)e->model->tables[e->model->features[f].table].dim;
		struct buffer *buffer = NULL;
		int ret = check_caller_output(e, slot, f, width);

		slot->placed[f] = (struct embeng_mem){0};
		if (!ret && to->data && slot->elements[f] && (packs || !to->stride))
			buffer = buffers_find(&e->buffers, to->data,
					      4 * output_span(slot, f, width), 4, &slot->placed[f]);
		if (buffer)
			ret = pin(&slot->gradient_pins, buffer);
		if (ret)
			return ret;
	}
	return 0;
}

static uint64_t copy_output(float *to, const float *from, uint64_t count, uint64_t width,
			    uint64_t stride)
{
	if (stride == width) {
		memcpy(to, from, 4 * count);
		return 4 * count;
	}
	for (uint64_t at = 0; at < count; at += width, to += stride)
		memcpy(to, from + at, 4 * width);
	return 4 * count;
}

void outputs_copy(struct embeng *e, const struct slot *slot, const struct embeng_batch *b)
{
	uint64_t bytes = 0, start = now_ns();

	for (size_t f = 0; f < e->model->feature_count; f++) {
		const struct embeng_output *to = &slot->outputs[f];
		uint64_t width = sample_width(e, b, f);

		if (!to->data || !slot->elements[f] || slot->placed[f].generation)
			continue;
		bytes += copy_output(
			to->data,
			(const float *)(const void *)(slot->activations.data + slot->at[f]),
			slot->elements[f], width, to->stride ? to->stride : width);
	}
	if (!bytes)
		return;
	__atomic_add_fetch(&e->counters.time_copy_ns, now_ns() - start, __ATOMIC_RELAXED);
	__atomic_add_fetch(&e->counters.bytes_copied, bytes, __ATOMIC_RELAXED);
}
