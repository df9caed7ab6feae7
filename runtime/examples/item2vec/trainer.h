/* SPDX-License-Identifier: MIT */
/*
 * The model and its training: table items_in reads the rest of a basket as one
 * mean, table items_out holds what is compared with it; the dense side is the
 * logistic loss of their products, and hands gradients back to the engine.
 */
#ifndef ITEM2VEC_TRAINER_H
#define ITEM2VEC_TRAINER_H

#include "embeng.h"

#include "sampler.h"
#include "settings.h"

/**
 * struct place - where a training is, between two steps
 * @epoch: epochs finished
 * @step: steps taken of the next
 * @random: state of the draws
 * @loss_sum: of the steps taken of the epoch
 * @loss: mean over the examples of the last epoch that was finished
 */
struct place {
	int64_t epoch;
	size_t step;
	uint64_t random;
	double loss_sum, loss;
};

/**
 * struct trainer - an open device with the two tables
 * @out: the batch's examples; arrays in memory that the engine reads in place
 * @at: but for its random, which the sampler has
 * @dense_ns: time in the program's own arithmetic
 */
struct trainer {
	const struct settings *settings;
	struct embeng *e;
	struct embeng_batch *batch;
	struct sampler sampler;
	struct samples samples;
	struct place at;
	uint64_t dense_ns;
};

/* 0 or a negative errno: -ENODATA when there is nothing to learn, else embeng_last_error(). */
int trainer_open(struct trainer *t, const struct dataset *data, const struct split *split,
		 const struct settings *settings);

/* One step; @t->at has moved on when it returns. 0 or what libembeng failed with. */
int trainer_step(struct trainer *t);

struct place trainer_place(const struct trainer *t);

/**
 * trainer_go_to() - go on from a place as if the trainer had come to it itself
 *
 * The tables are the caller's to restore. Return: 0, or -ERANGE: there is no such place.
 */
int trainer_go_to(struct trainer *t, const struct place *place);

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
