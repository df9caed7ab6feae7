/* SPDX-License-Identifier: MIT */
/* An open device with a table of the check's own, through the library. */
#ifndef CLI_VALIDATE_BED_H
#define CLI_VALIDATE_BED_H

#include "subject.h"

/**
 * struct bed_config - the table to make
 * @device: name of another device to open it on, or NULL
 * @optimizer: zeroed: none
 */
struct bed_config {
	const char *device;
	int64_t rows, dim;
	enum embeng_combiner_name combiner;
	struct embeng_optimizer optimizer;
};

/**
 * struct bed - the open table, with one feature
 */
struct bed {
	struct embeng *e;
	struct embeng_batch *batch;
	int64_t rows, dim;
};

/**
 * struct bed_bags - bags of ids
 * @ids: [bounds[samples]]
 * @weights: as many, or NULL
 * @bounds: [samples + 1] row splits
 */
struct bed_bags {
	const int64_t *ids;
	const float *weights;
	const int64_t *bounds;
	size_t samples;
};

/* These fail @f and return false if the library refuses. Numbers may have any bits. */
bool bed_open(const struct subject *s, const struct bed_config *config, struct bed *out,
	      struct finding *f);
void bed_close(struct bed *bed);

/* Looks bags up: [samples][dim]. */
bool bed_lookup(const struct bed *bed, const struct bed_bags *bags, float *out, struct finding *f);

/* A training step: looks bags up into @out, and applies the gradients [samples][dim]. */
bool bed_train(const struct bed *bed, const struct bed_bags *bags, const float *gradients,
	       float *out, struct finding *f);

#endif
