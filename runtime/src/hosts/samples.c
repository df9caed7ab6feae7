// SPDX-License-Identifier: MIT
/*
 * Packs gradients of samples for the hosts of the rows that they are of (samples.h). A gradient goes once to each
 * host that has a row of its bag. Coefficients are made here, by the kernel that a lookup has them from, since a
 * host does not know all weights of a bag.
 *
 * All is done in the call that hands gradients in, whose slot it is. No lock is needed.
 */
#include <stdlib.h>
#include <string.h>

#include "../../../engine/kernels/kernels.h"
#include "host/port.h"
#include "samples.h"

static uint32_t form_of_reader(const struct cargo *cargo, const struct embeng_spread_feature *r)
{
	if (!r->offsets || r->max_sequence_length)
		return 0;
	if (r->weights)
		return SAMPLES_BAGS | SAMPLES_WEIGHTS;
	return SAMPLES_BAGS | (cargo->lists[r->table].combiner == EMBENG_SUM ? 0 : SAMPLES_SCALES);
}

static bool drops_ids(const struct cargo *cargo, const struct embeng_spread_feature *r)
{
	return cargo->lists[r->table].out_of_range == EMBENG_POLICY_DROP;
}

static void count_reader(const struct hosts *h, struct cargo *cargo, size_t reader)
{
	const struct occurrences *o = cargo->occurrences;
	const struct embeng_spread_feature *r = &cargo->readers[reader];
	struct picked *picked = &o->picked[reader * h->hosts];
	struct sample_walk walk = {.reader = r, .drops = drops_ids(cargo, r)};
	uint64_t bag;
	size_t at;

	memset(picked, 0, h->hosts * sizeof(*picked));
	for (uint32_t host = 0; host < h->hosts; host++)
		o->cursors[host].bag = UINT64_MAX;
	while (sample_next(&walk, &at, &bag)) {
		const uint32_t host = o->owners[r->table][r->places[at]];

		picked[host].ids++;
		picked[host].bags += o->cursors[host].bag != bag;
		o->cursors[host].bag = bag;
	}
}

void samples_count(const struct hosts *h, struct cargo *cargo)
{
	for (size_t i = h->summed_readers; i < h->trained_readers; i++)
		count_reader(h, cargo, i);
}

/* Where the parts of a reader's numbers for a host begin, from the head on; and their end. */
struct sections {
	uint64_t ids, places, coefficients, gradients, end;
};

static struct sections sections_of(const struct samples_head *head, uint64_t dim)
{
	struct sections s = {.ids = sizeof(*head)};
	const uint64_t scales = head->form & SAMPLES_SCALES ? head->bags : 0;

	s.places = s.ids + segment_pad(head->form & SAMPLES_BAGS ? 4 * head->bags : 0);
	s.coefficients = s.places + segment_pad(4 * head->ids);
	s.gradients = s.coefficients +
		      segment_pad(4 * (head->form & SAMPLES_WEIGHTS ? head->ids : scales));
	s.end = s.gradients + segment_pad(head->given ? 4 * dim * head->bags : 0);
	return s;
}

static struct samples_head head_of(const struct hosts *h, const struct cargo *cargo, size_t reader,
				   uint32_t host)
{
	const struct picked *picked = &cargo->occurrences->picked[reader * h->hosts + host];
	const struct embeng_spread_feature *r = &cargo->readers[reader];

	return (struct samples_head){.form = form_of_reader(cargo, r),
				     .given = r->gradients != NULL,
				     .bags = picked->bags,
				     .ids = picked->ids};
}

/* The host has rows of the reader's table. */
static bool has_rows_of(const struct hosts *h, const struct cargo *cargo, size_t reader,
			uint32_t host)
{
	return hosts_part(h, h->lists[cargo->readers[reader].table].table, host) != NULL;
}

uint64_t samples_bytes(const struct hosts *h, const struct cargo *cargo, uint32_t host)
{
	uint64_t bytes = 0;

	for (size_t i = h->summed_readers; i < h->trained_readers; i++) {
		const struct samples_head head = head_of(h, cargo, i, host);
		const int64_t dim = cargo->lists[cargo->readers[i].table].dim;

		if (has_rows_of(h, cargo, i, host))
			bytes += sections_of(&head, (uint64_t)dim).end;
	}
	return bytes;
}

/* A bag does not count ids that the policy leaves out. */
static void leave_out(const struct embeng_spread_feature *r, uint64_t *bag, float *weights)
{
	uint64_t kept = 0;

	for (size_t s = 0; s < r->samples; s++) {
		bag[s] = kept;
		for (int64_t k = r->offsets[s]; k < r->offsets[s + 1]; k++) {
			if (r->places[k] < 0)
				continue;
			weights[kept++] = r->weights ? r->weights[k] : 1.0f;
		}
	}
	bag[r->samples] = kept;
}

static uint32_t kernel_combiner_of(enum embeng_combiner_name combiner)
{
	return combiner == EMBENG_MEAN	  ? KERNEL_MEAN
	       : combiner == EMBENG_SQRTN ? KERNEL_SQRTN
					  : KERNEL_SUM;
}

/* Coefficients of a reader's ids, but for those that are left out; NULL: each is 1. */
static int make_coefficients(const struct hosts *h, struct cargo *cargo,
			     const struct embeng_spread_feature *r, const float **out)
{
	const struct embeng_spread_table *t = &cargo->lists[r->table];
	struct hosts_memory *work = &cargo->occurrences->work;
	const uint64_t ids = segment_pad(4 * (uint64_t)r->id_count);
	struct kernel_scale_work scales = {.combiner = kernel_combiner_of(t->combiner)};
	struct port_fpu fpu;
	char *at;
	int ret;

	*out = NULL;
	if (!(form_of_reader(cargo, r) & (SAMPLES_SCALES | SAMPLES_WEIGHTS)))
		return 0;
	ret = memory_need(work, 8 * ((uint64_t)r->samples + 1) + 3 * ids);
	if (ret)
		return ret;
	at = work->data + 8 * ((uint64_t)r->samples + 1);
	scales.coef = (float *)(void *)at;
	scales.bag = (const void *)r->offsets;
	scales.weights = r->weights;
	if (drops_ids(cargo, r)) {
		float *weights = (float *)(void *)(at + ids);

		leave_out(r, (void *)work->data, weights);
		scales.bag = (const void *)work->data;
		scales.weights = r->weights ? weights : NULL;
	}
	port_fpu_begin(&fpu);
	h->e->kernels->scales(&scales, 0, r->samples);
	port_fpu_end(&fpu);
	*out = scales.coef;
	if (!drops_ids(cargo, r))
		return 0;
	/* Back to the numbers of all ids. */
	at += 2 * ids;
	for (size_t k = 0, kept = 0; k < r->id_count; k++)
		((float *)(void *)at)[k] = r->places[k] < 0 ? 0.0f : scales.coef[kept++];
	*out = (const float *)(const void *)at;
	return 0;
}

static void clear_end(char *data, uint64_t from, uint64_t end)
{
	if (end > from)
		memset(data + end - 8, 0, 8); /* the rest is written */
}

static void begin_host(const struct hosts *h, struct cargo *cargo, size_t reader, uint32_t host)
{
	const int64_t dim = cargo->lists[cargo->readers[reader].table].dim;
	const struct samples_head head = head_of(h, cargo, reader, host);
	const struct sections s = sections_of(&head, (uint64_t)dim);
	char *data = cargo->at[host];

	memcpy(data, &head, sizeof(head));
	clear_end(data, s.ids, s.places);
	clear_end(data, s.places, s.coefficients);
	clear_end(data, s.coefficients, s.gradients);
	clear_end(data, s.gradients, s.end);
	cargo->occurrences->cursors[host] = (struct sample_cursor){
		.ids = (void *)(data + s.ids),
		.places = (void *)(data + s.places),
		.coefficients = (void *)(data + s.coefficients),
		.gradients = (void *)(data + s.gradients),
		.bag = UINT64_MAX,
	};
	cargo->at[host] += s.end;
}

static int put_reader(const struct hosts *h, struct cargo *cargo, size_t reader)
{
	const struct occurrences *o = cargo->occurrences;
	const struct embeng_spread_feature *r = &cargo->readers[reader];
	const uint64_t dim = (uint64_t)cargo->lists[r->table].dim;
	const uint32_t form = form_of_reader(cargo, r);
	struct sample_walk walk = {.reader = r, .drops = drops_ids(cargo, r)};
	const float *coefficients;
	uint64_t bag;
	size_t at;
	int ret = make_coefficients(h, cargo, r, &coefficients);

	for (uint32_t host = 0; !ret && host < h->hosts; host++)
		if (has_rows_of(h, cargo, reader, host))
			begin_host(h, cargo, reader, host);
	while (!ret && sample_next(&walk, &at, &bag)) {
		struct sample_cursor *c = &o->cursors[o->owners[r->table][r->places[at]]];

		*c->places++ = (uint32_t)o->places[reader][at];
		if (form & SAMPLES_WEIGHTS)
			*c->coefficients++ = coefficients[at];
		if (c->bag == bag) {
			c->ids[-1]++;
			continue;
		}
		c->bag = bag;
		if (form & SAMPLES_BAGS)
			*c->ids++ = 1;
		if (form & SAMPLES_SCALES)
			*c->coefficients++ = coefficients[at];
		if (r->gradients)
			memcpy(c->gradients, r->gradients + bag * dim, dim * sizeof(float));
		c->gradients += r->gradients ? dim : 0;
	}
	return ret;
}

int samples_put(const struct hosts *h, struct cargo *cargo)
{
	int ret = 0;

	for (size_t i = h->summed_readers; !ret && i < h->trained_readers; i++)
		ret = put_reader(h, cargo, i);
	return ret;
}
