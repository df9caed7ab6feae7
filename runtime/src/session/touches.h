/* SPDX-License-Identifier: MIT */
/*
 * The rows that the ids of a batch name, each with the gradient that it gets: what the engine makes
 * of a batch for its update, as the library needs it to tell norms and gradients of weights.
 */
#ifndef EMBENG_TOUCHES_H
#define EMBENG_TOUCHES_H

#include "session.h"

/**
 * struct given_gradients - a batch and its gradients, checked
 * @call: name of the public call, for sentences
 * @b: the batch
 * @g: its gradients
 * @elements: [features] floats that the gradients of each have; touches_close() frees them
 */
struct given_gradients {
	const char *call;
	struct embeng_batch *b;
	const struct embeng_gradients *g;
	uint64_t *elements;
};

/**
 * struct touch - one id that reads a row
 * @row: the row
 * @gradient: [dim], the gradient of the id's sample, or of its position in a sequence; NULL: zeros
 * @gain: the factor of the row in the activation
 * @place: position of the id in its input
 * @holders: [dim], NULL but for bags of the combiner max: the place that alone gets each column's
 *	gradient
 */
struct touch {
	uint64_t row;
	const float *gradient;
	double gain;
	uint64_t place;
	const uint32_t *holders;
};

/* Checks sizes and forms, as an update does. Return: 0, or an errno; touches_close() either way. */
int touches_open(struct embeng *e, const char *call, struct embeng_batch *b,
		 const struct embeng_gradients *g, struct given_gradients *given);
void touches_close(struct given_gradients *given);

/* How many ids of a feature may read rows, at most. */
size_t touches_most(const struct embeng_batch *b, uint32_t feature);

/*
 * Lists the ids of a feature that read rows, in their order. @gradient: the feature's, or NULL;
 * @holders: [samples][dim] of bags of the combiner max, otherwise NULL; @to: room for touches_most().
 * Return: 0, -EINVAL (offsets), -ERANGE (id, weight).
 */
int touches_list(const struct embeng_batch *b, uint32_t feature, const float *gradient,
		 const uint32_t *holders, struct touch *to, size_t *count);

/**
 * struct held_bags - the bags of a feature whose table's combiner is max
 * @b: their batch
 * @feature: the feature
 * @holders: out, [samples][dim]: position in its input of the id whose row has the largest number of a
 *	column, the first of several; holders_free() frees it
 */
struct held_bags {
	const struct embeng_batch *b;
	uint32_t feature;
	uint32_t *holders;
};

/*
 * holders.c: finds the holders of all @bags in the rows of one moment. @status: 0, or why this process cannot,
 * with the thread's last sentence: over a group all hosts make the call, and return that. Return: 0, or an errno.
 */
int holders_find(struct embeng *e, const char *call, struct held_bags *bags, size_t count,
		 int status);
void holders_free(struct held_bags *bags, size_t count);

/* holders.c: whether a feature of a batch has such bags. */
bool holders_are_wanted(const struct embeng_batch *b, uint32_t feature);

struct kernel_quantization;
/* How lookups see the rows of a table with quantization. */
void touches_quantization(const struct table *t, struct kernel_quantization *q);

/*
 * Asks the program now and then whether the call shall end, when @done of many are done. Return: 0, or
 * -EINTR.
 */
int touches_ask(size_t done);

/*
 * Sorts by row; those of one row keep their order. @room: for as many; @rows: of the table. Return: 0,
 * or -EINTR.
 */
int touches_sort(struct touch *touches, struct touch *room, size_t count, uint64_t rows);

/* An id names a row, or something in place of one. */
enum named {
	NAMES_ROW,
	NAMES_ZERO,    /* zeros in place of a row: it counts in the combiner all the same */
	NAMES_NOTHING, /* it was dropped, and so was its weight */
};

/*
 * Finds out what the id at @place names, by the policy of its table, and its weight. Return: enum
 * named, or an errno with a sentence for an id or a weight that the engine would refuse.
 */
int touches_resolve(const struct embeng_batch *b, uint32_t feature, size_t place, uint64_t *row,
		    float *weight);

/* The ids of a sample, [*first, *end), in CSR form. Return: 0, or -EINVAL where there are none such. */
int touches_bag(const struct embeng_batch *b, uint32_t feature, size_t sample, size_t *first,
		size_t *end);

/* The denominator of mean or sqrtn from the sum that touches_add() gives, else 1. */
double touches_add(enum embeng_combiner_name combiner, double sum, float weight);
double touches_denominator(enum embeng_combiner_name combiner, double sum);

#endif
