// SPDX-License-Identifier: MIT
/*
 * Makes a sum of gradients for each row out of gradients of samples that came from another host, with the
 * command that a host runs before it sends sums. All occurrences of a row in a replica are in one message,
 * in their order, so that the sums have the bits that they have there.
 *
 * Everything is the gradients thread's: the message is the group's until the next one, and sums are in
 * h->summing until the owner handle has them. No lock is needed.
 */
#include <stdlib.h>
#include <string.h>

#include "samples.h"

/* A reader, as its message tells it. */
struct came {
	const struct samples_head *head;
	const uint32_t *ids;
	const float *coefficients;
};

/**
 * struct taking - one replica's gradients
 * @batch: the call; @came: [readers of gradients]: what its features are made of
 * @elements: floats of the owner handle's features
 */
struct taking {
	struct hosts *h;
	struct embeng_spread batch;
	struct embeng_spread_table *tables;
	struct embeng_spread_feature *features;
	struct came *came;
	size_t count;
	const size_t *elements;
};

static bool is_sound(const struct samples_head *head)
{
	const uint32_t both = SAMPLES_SCALES | SAMPLES_WEIGHTS;

	if (head->bags > UINT32_MAX || head->ids > UINT32_MAX ||
	    head->form & ~(SAMPLES_BAGS | both) || (head->form & both) == both)
		return false;
	return head->form & SAMPLES_BAGS ? head->bags <= head->ids
					 : !head->form && head->bags == head->ids;
}

static bool read_reader(struct reading *segment, uint64_t dim, struct came *came,
			struct embeng_spread_feature *f)
{
	const struct samples_head *head = came->head = read_next(segment, sizeof(*head));
	uint64_t coefficients;

	if (!head || !is_sound(head))
		return false;
	coefficients = head->form & SAMPLES_WEIGHTS  ? head->ids
		       : head->form & SAMPLES_SCALES ? head->bags
						     : 0;
	f->samples = head->bags;
	f->id_count = head->ids;
	came->ids = read_next(segment, head->form & SAMPLES_BAGS ? 4 * head->bags : 0);
	f->places = (int32_t *)(uintptr_t)read_next(segment, 4 * head->ids);
	came->coefficients = read_next(segment, 4 * coefficients);
	f->gradients = read_next(segment, head->given ? 4 * dim * head->bags : 0);
	if (!came->ids || !f->places || !came->coefficients || !f->gradients)
		return false;
	if (!head->given)
		f->gradients = NULL;
	return true;
}

/* Tables that this host has rows of, and their readers. */
static bool read_readers(struct taking *x, struct reading *segment)
{
	const struct hosts *h = x->h;
	const struct embeng_model *m = h->e->model;
	size_t reader = h->summed_readers;

	for (size_t i = h->summed_lists; i < h->trained_lists; i++) {
		const struct table *t = &m->tables[h->lists[i].table];
		const bool here = h->lists[i].served >= 0;

		if (here)
			x->tables[x->batch.table_count] = (struct embeng_spread_table){
				.name = t->name,
				.dim = t->dim,
				.combiner = EMBENG_SUM,
				.out_of_range = EMBENG_POLICY_ERROR,
				.count = x->elements[h->lists[i].served] / (size_t)t->dim,
			};
		for (; reader < h->trained_readers &&
		       m->features[h->readers[reader]].table == h->lists[i].table;
		     reader++) {
			if (!here)
				continue;
			x->features[x->count].name = m->features[h->readers[reader]].name;
			x->features[x->count].table = x->batch.table_count;
			if (!read_reader(segment, (uint64_t)t->dim, &x->came[x->count],
					 &x->features[x->count]))
				return false;
			x->count++;
		}
		x->batch.table_count += here;
	}
	return true;
}

/* Offsets and a weight for each id. Return: false if the numbers of ids are not as many as there are. */
static bool expand_reader(const struct came *came, struct embeng_spread_feature *f, char **to)
{
	const struct samples_head *head = came->head;
	int64_t *offsets = (void *)*to;
	float *weights;
	uint64_t at = 0;

	f->offsets = NULL;
	f->weights = NULL;
	if (!(head->form & SAMPLES_BAGS))
		return true;
	*to += 8 * (head->bags + 1);
	weights = (void *)*to;
	if (head->form & SAMPLES_WEIGHTS)
		f->weights = came->coefficients;
	if (head->form & SAMPLES_SCALES) {
		f->weights = weights;
		*to += segment_pad(4 * head->ids);
	}
	f->offsets = offsets;
	for (uint64_t b = 0; b < head->bags; b++) {
		offsets[b] = (int64_t)at;
		if (came->ids[b] > head->ids - at)
			return false;
		for (uint32_t k = 0; head->form & SAMPLES_SCALES && k < came->ids[b]; k++)
			weights[at + k] = came->coefficients[b];
		at += came->ids[b];
	}
	offsets[head->bags] = (int64_t)at;
	return at == head->ids;
}

static int sum_readers(struct taking *x, uint32_t host, const float **features)
{
	struct hosts *h = x->h;
	uint64_t bytes = 8;
	bool sound = true;
	char *to;
	int ret;

	for (size_t i = 0; i < x->count; i++)
		bytes += 8 * (x->features[i].samples + 1) +
			 segment_pad(4 * (uint64_t)x->features[i].id_count);
	for (size_t i = 0; i < x->batch.table_count; i++)
		bytes += segment_pad(4 * x->tables[i].count * (uint64_t)x->tables[i].dim);
	ret = memory_need(&h->summing, bytes);
	if (ret)
		return ret;
	to = h->summing.data;
	for (size_t i = 0; i < x->count; i++)
		sound = sound && expand_reader(&x->came[i], &x->features[i], &to);
	if (!sound)
		return segment_bad(h, host, "gradients of samples");
	for (size_t i = h->summed_lists, t = 0; i < h->trained_lists; i++) {
		if (h->lists[i].served < 0)
			continue;
		x->tables[t].sums = (float *)(void *)to;
		features[h->lists[i].served] = x->tables[t].sums;
		to += segment_pad(4 * x->tables[t].count * (uint64_t)x->tables[t].dim);
		t++;
	}
	x->batch.feature_count = x->count;
	return embeng_spread_sum(h->owner, &x->batch);
}

int samples_take(struct hosts *h, uint32_t host, struct reading *segment, const size_t *elements,
		 const float **features)
{
	const size_t lists = h->trained_lists - h->summed_lists;
	const size_t readers = h->trained_readers - h->summed_readers;
	struct taking x = {.h = h, .elements = elements};
	int ret = 0;

	if (!lists)
		return 0;
	x.tables = calloc(lists + 1, sizeof(*x.tables));
	x.features = calloc(readers + 1, sizeof(*x.features));
	x.came = calloc(readers + 1, sizeof(*x.came));
	x.batch = EMBENG_INIT(embeng_spread, .tables = x.tables, .features = x.features,
			      .allow_non_finite = 1); /* they were checked */
	if (!x.tables || !x.features || !x.came)
		ret = fail(-ENOMEM, "there is no memory to sum gradients");
	else if (!read_readers(&x, segment))
		ret = segment_bad(h, host, "gradients of samples");
	if (!ret && x.batch.table_count)
		ret = sum_readers(&x, host, features);
	free(x.tables);
	free(x.features);
	free(x.came);
	return ret;
}
