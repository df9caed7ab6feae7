// SPDX-License-Identifier: MIT
/*
 * Keeps the newest two samples and their rates.
 *
 * On this machine, the time between two samples is measured. Recorded trees do not say when they
 * were recorded: they count as recorded at the interval.
 *
 * All of it belongs to one thread.
 */
#include "sampler.h"

#include <errno.h>

static int open_next_root(struct sampler *s)
{
	tree_close(s->tree);
	s->tree = NULL;
	gather_forget(s->gather);
	return tree_open(s->roots[s->next++], &s->tree);
}

static double measure_seconds(const struct sampler *s)
{
	if (s->root_count)
		return s->interval;
	return (double)(s->samples[1].time_ns - s->samples[0].time_ns) / 1e9;
}

int sampler_take(struct sampler *s)
{
	struct sample sample;
	int err = s->root_count ? open_next_root(s) : 0;

	if (!err)
		err = gather_sample(s->gather, s->tree, &sample);
	if (err)
		return err;
	rates_free(&s->rates);
	sample_free(&s->samples[0]);
	s->samples[0] = s->samples[1];
	s->samples[1] = sample;
	hot_keep(&s->hot, &s->samples[1]);
	err = rates_make(s->taken ? &s->samples[0] : NULL, &s->samples[1], measure_seconds(s),
			 &s->rates);
	s->taken = true;
	return err;
}

int sampler_look(struct sampler *s, struct rated_context *context)
{
	if (s->root_count)
		return 0;
	return hot_look(&s->hot, s->tree, context->now, s->samples[1].time_ns, &context->hot);
}

int sampler_open(struct sampler *s, const char *device)
{
	int err = s->root_count ? 0 : tree_open(NULL, &s->tree);

	s->gather = gather_new(device);
	if (!s->gather)
		return -ENOMEM;
	return err ? err : sampler_take(s);
}

bool sampler_goes_on(const struct sampler *s)
{
	return !s->root_count || s->next < s->root_count;
}

void sampler_close(struct sampler *s)
{
	rates_free(&s->rates);
	hot_forget(&s->hot);
	sample_free(&s->samples[0]);
	sample_free(&s->samples[1]);
	gather_free(s->gather);
	tree_close(s->tree);
}
