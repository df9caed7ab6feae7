/* SPDX-License-Identifier: MIT */
/*
 * The model and its training: table items_in reads the rest of a basket as one
 * mean, table items_out holds what is compared with it; the dense side is the
 * logistic loss of their products, and hands gradients back to the engine.
 */
#ifndef CLI_TRAINER_H
#define CLI_TRAINER_H

#include <stdbool.h>

#include "embeng.h"

#include "sampler.h"

/**
 * struct settings - how to learn
 * @epochs: 0: chosen by the size of the data
 */
struct settings {
	const char *device;
	int64_t dim, epochs, negatives, batch;
	double learning_rate;
	bool adagrad;
	uint64_t seed;
	enum split_by split;
	int64_t min_count, min_basket;
};

extern const struct settings settings_default;

/**
 * struct trainer - an open device with the two tables
 * @out: the batch's examples; arrays in memory that the engine reads in place
 * @dense_ns: time in the program's own arithmetic
 */
struct trainer {
	const struct settings *settings;
	struct embeng *e;
	struct embeng_batch *batch;
	struct sampler sampler;
	struct samples samples;
	uint64_t dense_ns;
};

/* 0 or a negative errno: -ENODATA when there is nothing to learn, else embeng_last_error(). */
int trainer_open(struct trainer *t, const struct dataset *data, const struct split *split,
		 const struct settings *settings);

/* @loss: mean over the epoch's examples. 0 or what libembeng failed with. */
int trainer_epoch(struct trainer *t, double *loss);

/* The settings' epochs, or what suits the size of the data. */
int64_t trainer_epochs(const struct trainer *t);

/* Monotonic. */
uint64_t clock_ns(void);

/* Steps of an epoch. */
size_t trainer_steps(const struct trainer *t);

enum trainer_table { TABLE_IN, TABLE_OUT };

/* The whole table, malloc'd, [items][dim]; NULL: embeng_last_error() says why. */
float *trainer_rows(struct trainer *t, enum trainer_table table);

void trainer_close(struct trainer *t);

#endif
