/* SPDX-License-Identifier: MIT */
/*
 * The model and its training. Lookups in table items_in read the rest of a basket as one
 * mean, and table items_out has the rows that are compared with it. The dense part is the
 * logistic loss of their products, and gives gradients back to the engine.
 */
#ifndef ITEM2VEC_TRAINER_H
#define ITEM2VEC_TRAINER_H

#include "embeng.h"

#include "sampler.h"
#include "settings.h"

/**
 * struct place - position of a training between two steps
 * @epoch: number of epochs finished
 * @step: number of steps taken in the next epoch
 * @random: state of the generator for draws
 * @loss_sum: sum of the losses of the steps taken in the epoch
 * @loss: mean loss over the examples of the last finished epoch
 */
struct place {
	int64_t epoch;
	size_t step;
	uint64_t random;
	double loss_sum, loss;
};

/**
 * struct trainer - an open device with the two tables
 * @samples: examples of the batch, in arrays that the engine reads in place
 * @at: position, except its random, which is in @sampler
 * @dense_ns: time spent in the program's own arithmetic
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

/* Return: 0; -ENODATA when there is nothing to learn; -EXDEV: the device is on several hosts; or an errno with embeng_last_error() set. */
int trainer_open(struct trainer *t, const struct dataset *data, const struct split *split,
		 const struct settings *settings);

/*
 * Trains one step and moves @t->at on. Return: 0; -EDOM when the loss or a gradient is not finite,
 * which leaves the tables and @t->at as they were; or the errno of libembeng.
 */
int trainer_step(struct trainer *t);

/*
 * Looks for numbers in the tables and their slots that are not finite. Return: 0, -EDOM if there
 * are any, or the errno of libembeng.
 */
int trainer_check(struct trainer *t);

struct place trainer_place(const struct trainer *t);

/**
 * trainer_go_to() - continue from a place as if the trainer had come to it by itself
 *
 * The caller restores the tables. Return: 0, or -ERANGE when there is no such place.
 */
int trainer_go_to(struct trainer *t, const struct place *place);

/* Number of epochs in the settings, or one that suits the size of the data. */
int64_t trainer_epochs(const struct trainer *t);

/* The time of the monotonic clock in nanoseconds. */
uint64_t clock_ns(void);

/* Number of steps in an epoch. */
size_t trainer_steps(const struct trainer *t);

enum trainer_table { TABLE_IN, TABLE_OUT };

/* Reads a whole table, [items][dim] and malloc'd. Return: NULL with embeng_last_error() set. */
float *trainer_rows(struct trainer *t, enum trainer_table table);

void trainer_close(struct trainer *t);

#endif
