/* SPDX-License-Identifier: MIT */
/* Samples at an interval, of this machine or of recorded trees, with the rates between them. */
#ifndef CLI_TOP_SAMPLER_H
#define CLI_TOP_SAMPLER_H

#include "gather.h"
#include "rates.h"

#define SAMPLER_ROOTS 64

/**
 * struct sampler - the newest two samples
 * @roots: [@root_count] recorded trees, of which each sample takes the next one; 0: this machine
 * @interval: seconds between two samples
 * @next: recorded tree of the next sample
 * @rates: rates between @samples[0] and @samples[1], the newer one
 * @hot: the last looks into contexts
 */
struct sampler {
	const char *const *roots;
	size_t root_count, next;
	double interval;
	struct tree *tree;
	struct gather *gather;
	struct sample samples[2];
	bool taken;
	struct rates rates;
	struct hot hot;
};

/**
 * sampler_open() - take the first sample
 *
 * Return: 0 or a negative errno; sampler_close() is called in either case.
 */
int sampler_open(struct sampler *sampler, const char *device);

/* Takes the next sample, now. With recorded trees @interval has passed. 0 or a negative errno. */
int sampler_take(struct sampler *sampler);

/*
 * Asks a context of the newest sample for its hottest tables and rows; asking again for the same
 * sample does nothing. Recorded trees have nobody to ask. Return: 0 or -ENOMEM.
 */
int sampler_look(struct sampler *sampler, struct rated_context *context);

/* True if another recorded tree is left, and always on this machine. */
bool sampler_goes_on(const struct sampler *sampler);

void sampler_close(struct sampler *sampler);

#endif
