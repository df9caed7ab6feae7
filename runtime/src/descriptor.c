// SPDX-License-Identifier: MIT
/* A batch as the engine reads it: arrays in place where they can be, else copied. */
#include <stdlib.h>
#include <string.h>

#include "session.h"
#include "wait.h"

#define COPY_ALIGN 64u

enum { OFFSETS, IDS, WEIGHTS, ARRAYS };

void copy_counted(struct embeng *e, void *to, const void *from, uint64_t bytes)
{
	uint64_t start = now_ns();

	memcpy(to, from, bytes);
	__atomic_add_fetch(&e->counters.time_copy_ns, now_ns() - start, __ATOMIC_RELAXED);
	__atomic_add_fetch(&e->counters.bytes_copied, bytes, __ATOMIC_RELAXED);
}

static struct array array_of(const void *data, uint64_t count, uint64_t width)
{
	return (struct array){.data = data, .count = count, .width = width};
}

static void list_arrays(struct slot *slot, const struct embeng_batch *b)
{
	for (size_t f = 0; f < b->count; f++) {
		const struct input *in = &b->inputs[f];
		struct array *a = &slot->arrays[ARRAYS * f];
		bool csr = in->form == INPUT_CSR;

		a[OFFSETS] = array_of(csr ? in->offsets : NULL, in->samples + 1, 8);
		a[IDS] = array_of(in->ids, in->id_count, in->type == EMBENG_I32 ? 4 : 8);
		a[WEIGHTS] = array_of(in->weights, in->id_count, 4);
		/* An empty array is not read, so it needs no memory. */
		if (!in->id_count)
			a[IDS].data = a[WEIGHTS].data = NULL;
	}
}

/* Which arrays lie in buffers; pins those. */
static int find_in_place(struct embeng *e, struct slot *slot, size_t count)
{
	int ret = 0;

	pthread_mutex_lock(&e->lock);
	for (size_t i = 0; !ret && i < ARRAYS * count; i++) {
		struct array *a = &slot->arrays[i];
		struct buffer *buffer;

		if (!a->data)
			continue;
		buffer = buffers_find(&e->buffers, a->data, a->count * a->width, a->width, &a->mem);
		a->in_place = buffer != NULL;
		if (buffer)
			ret = pin(&slot->input_pins, buffer);
	}
	pthread_mutex_unlock(&e->lock);
	return ret;
}

static uint64_t place_copies(struct slot *slot, size_t count)
{
	uint64_t at = sizeof(struct embeng_lookup) + count * sizeof(struct embeng_lookup_feature);

	for (size_t i = 0; i < ARRAYS * count; i++) {
		struct array *a = &slot->arrays[i];

		if (!a->data || a->in_place)
			continue;
		at = (at + COPY_ALIGN - 1) & ~(uint64_t)(COPY_ALIGN - 1);
		a->at = at;
		at += a->count * a->width;
	}
	return at;
}

static void make_copies(struct embeng *e, struct slot *slot, size_t count)
{
	for (size_t i = 0; i < ARRAYS * count; i++) {
		struct array *a = &slot->arrays[i];

		if (!a->data || a->in_place)
			continue;
		copy_counted(e, slot->input.data + a->at, a->data, a->count * a->width);
		a->mem = region_part(&slot->input, a->at, a->count * a->width);
	}
}

/* Where each feature's activations stand, and how large they are. */
static int place_outputs(struct embeng *e, struct slot *slot)
{
	const struct embeng_model *m = e->model;
	uint64_t at = 0;

	for (size_t f = 0; f < m->feature_count; f++) {
		const struct output *o = &slot->resolved[f];
		uint64_t elements = (uint64_t)m->tables[m->features[f].table].dim, bytes;

		for (size_t i = 0; i < o->rank; i++)
			if (__builtin_mul_overflow(elements, (uint64_t)o->shape[i], &elements))
				elements = UINT64_MAX;
		if (__builtin_mul_overflow(elements, 4, &bytes) ||
		    __builtin_add_overflow(at, bytes, &bytes) || bytes > UINT64_MAX / 4)
			return fail(-ERANGE, "feature %s: its activations are too large for memory",
				    m->features[f].name);
		slot->at[f] = at;
		slot->elements[f] = elements;
		at = (bytes + COPY_ALIGN - 1) & ~(uint64_t)(COPY_ALIGN - 1);
	}
	slot->bytes = at;
	return 0;
}

static void write_features(struct embeng *e, struct slot *slot, const struct embeng_batch *b)
{
	struct embeng_lookup head = {
		.feature_count = (uint32_t)b->count,
		.feature_stride = sizeof(struct embeng_lookup_feature),
		.model_hash = e->model_hash,
	};
	char *to = slot->input.data;

	memcpy(to, &head, sizeof(head));
	for (size_t f = 0; f < b->count; f++) {
		const struct input *in = &b->inputs[f];
		const struct array *a = &slot->arrays[ARRAYS * f];
		struct embeng_lookup_feature feature = {
			.feature = (uint32_t)f,
			.form = in->form == INPUT_DENSE ? EMBENG_FORM_DENSE :
				in->pooled ? EMBENG_FORM_POOLED : EMBENG_FORM_CSR,
			.id_width = (uint8_t)a[IDS].width,
			.offset_width = in->form == INPUT_CSR ? 8 : 0,
			.sample_count = in->samples,
			.id_count = in->id_count,
			.offsets = a[OFFSETS].mem,
			.ids = a[IDS].mem,
			.weights = a[WEIGHTS].mem,
			.activations = region_part(&slot->activations, slot->at[f],
						   4 * slot->elements[f]),
		};

		memcpy(to + sizeof(head) + f * sizeof(feature), &feature, sizeof(feature));
	}
}

static int64_t length_of(const struct input *in, size_t sample, int64_t most)
{
	int64_t length = in->offsets[sample + 1] - in->offsets[sample];

	return length < 0 ? 0 : length > most ? most : length;
}

/* Ids per sample of sequence features, for the views. */
static int note_lengths(struct embeng *e, struct slot *slot, const struct embeng_batch *b)
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
			lengths[s] = length_of(in, s, most);
		slot->views[f].lengths = lengths;
		slot->views[f].lengths_count = in->samples;
	}
	return 0;
}

int describe_lookup(struct embeng *e, struct slot *slot, const struct embeng_batch *b,
		    struct embeng_mem *descriptor)
{
	uint64_t head = sizeof(struct embeng_lookup) + b->count * sizeof(struct embeng_lookup_feature);
	int ret;

	list_arrays(slot, b);
	ret = place_outputs(e, slot);
	ret = ret ? ret : find_in_place(e, slot, b->count);
	ret = ret ? ret : region_grow(e->device, &slot->input, place_copies(slot, b->count));
	ret = ret ? ret : region_grow(e->device, &slot->activations, slot->bytes + COPY_ALIGN);
	ret = ret ? ret : note_lengths(e, slot, b);
	if (ret)
		return ret;
	make_copies(e, slot, b->count);
	write_features(e, slot, b);
	*descriptor = region_part(&slot->input, 0, head);
	return 0;
}
