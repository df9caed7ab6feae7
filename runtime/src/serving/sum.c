// SPDX-License-Identifier: MIT
/*
 * Sums the rows of any serving plan, or takes their largest numbers if the combiner is max; plans that
 * are simple enough go to straight.c instead. Ids become offsets one by one, a chunk at a time, in
 * fixed memory. A chunk holds many small bags or a part of a large one, whose sum goes on with the
 * next chunk.
 *
 * The chunk is on the stack of the caller; no lock is needed.
 */
#include "host/port.h"
#include "serving.h"

#include "../../../engine/kernels/scale.h"

#define CHUNK 512

struct chunk {
	const struct plan *plan;
	const struct row_source *source;
	const struct kernel_ops *kernels;
	struct kernel_bag_work work;
	u64 ids, samples; /* in the chunk; the sample after those may be open */
	uint32_t combiner;
	double denominator; /* the open sample's, as far as its ids are known */
	u64 rows[CHUNK];
	float weights[CHUNK];
	float scales[CHUNK + 1];
	u64 bag[CHUNK + 2];
};

static void chunk_begin(struct chunk *c, const struct plan *plan, const struct row_source *source,
			const struct kernel_ops *kernels)
{
	uint32_t dim = (uint32_t)plan->table->dim;

	c->plan = plan;
	c->source = source;
	c->kernels = kernels;
	c->ids = c->samples = 0;
	c->denominator = 0;
	c->combiner = plan_combiner(plan);
	c->work = (struct kernel_bag_work){
		.table = source->base,
		.stride = 1,
		.dim = dim,
		.prefetch = source->fetch.rows,
		.fetch = source->fetch.form,
		.rows = c->rows,
		.weights = plan->weights ? c->weights : NULL,
		.scales = plan_is_scaled(c->combiner) ? c->scales : NULL,
		.bag = c->bag,
		.out = plan->in.out,
		.out_stride = dim,
	};
	c->bag[0] = 0;
}

/* @open: the last sample's sum goes on in the next chunk, so it is not scaled yet. */
static void chunk_flush(struct chunk *c, bool open)
{
	if (open) {
		c->bag[c->samples + 1] = c->ids;
		c->scales[c->samples] = 1.0f;
	}
	c->work.rows_count = c->ids;
	plan_combine(c->kernels, c->combiner, &c->work, c->samples + open);
	c->work.out += c->samples * c->work.out_stride;
	c->work.resume = open;
	c->ids = c->samples = 0;
}

static void chunk_add(struct chunk *c, const struct bag *bag)
{
	u64 offset = source_offset(c->source, bag->id);

	/* A bag that has no id yet begins with the next chunk. */
	if (c->ids == CHUNK)
		chunk_flush(c, c->bag[c->samples] < c->ids);
	/* The kernel prefetches ahead of itself, so it cannot help its first rows. */
	if (c->ids < c->work.prefetch)
		for (u32 i = 0; i < c->work.dim; i += 16)
			__builtin_prefetch(c->source->base + offset + i, 0, 2);
	c->rows[c->ids] = offset;
	c->weights[c->ids++] = bag->weight;
	if (plan_is_scaled(c->combiner))
		c->denominator = scale_add(c->combiner, c->denominator, bag->weight);
}

static void chunk_end_sample(struct chunk *c, float scale)
{
	c->scales[c->samples] = scale;
	c->denominator = 0;
	c->bag[++c->samples] = c->ids;
	if (c->samples == CHUNK)
		chunk_flush(c, false);
}

static bool bag_next(const struct plan *p, struct bag *bag)
{
	return plan_next(p, bag) && plan_reads(p, bag);
}

static float largest_of_bag(const struct plan *p, struct bag bag)
{
	float largest = 0;

	while (bag_next(p, &bag)) {
		float size = bag.weight < 0 ? -bag.weight : bag.weight;

		largest = size > largest ? size : largest;
	}
	return largest;
}

/*
 * Sums a bag once more whose weights turned out so small that its scale would not fit. Parts of it
 * that went into the output already are forgotten. @bag: as it was at its begin.
 */
static void add_stretched(struct chunk *c, struct bag bag)
{
	double sum = c->denominator;
	double stretch = kernel_stretch(c->combiner, sum, largest_of_bag(c->plan, bag));

	c->ids = c->bag[c->samples];
	if (!c->samples)
		c->work.resume = false;
	while (bag_next(c->plan, &bag)) {
		bag.weight = (float)(stretch * bag.weight);
		chunk_add(c, &bag);
	}
	chunk_end_sample(c, kernel_stretched_scale(c->combiner, sum, stretch));
}

static void end_bag(struct chunk *c, const struct bag *begin)
{
	float scale = 1;

	if (plan_is_scaled(c->combiner))
		scale = scale_of(c->combiner, c->denominator);
	if (scale_overflows(scale))
		add_stretched(c, *begin);
	else
		chunk_end_sample(c, scale);
}

static void add_bag(struct chunk *c, struct bag *bag)
{
	const struct bag begin = *bag;
	const struct plan *p = c->plan;

	while (bag_next(p, bag)) {
		chunk_add(c, bag);
		if (p->length)
			chunk_end_sample(c, 1);
	}
	if (!p->length)
		end_bag(c, &begin);
	for (; bag->kept < p->length; bag->kept++)
		chunk_end_sample(c, 1);
}

void plan_sum(const struct plan *plan, const struct row_source *source,
	      const struct kernel_ops *kernels)
{
	struct bag bag = {0};
	struct port_fpu fpu;
	struct chunk c;

	port_fpu_begin(&fpu);
	if (straight_can(plan, source)) {
		straight_sum(plan, source, kernels);
		port_fpu_end(&fpu);
		return;
	}
	chunk_begin(&c, plan, source, kernels);
	for (size_t s = 0; s < plan->samples; s++) {
		bag = plan_bag(plan, s, bag.end);
		add_bag(&c, &bag);
	}
	if (c.samples)
		chunk_flush(&c, false);
	port_fpu_end(&fpu);
}
