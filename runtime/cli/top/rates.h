/* SPDX-License-Identifier: MIT */
/* Rates: how much the counts of two samples differ, over the time between them. */
#ifndef CLI_TOP_RATES_H
#define CLI_TOP_RATES_H

#include "hot.h"

/**
 * struct rated_device - a device with its rates
 * @now: the device in the newer sample
 * @rates: each count in a second; NaN if it is not known
 * @busy: share of the time of all cores that they worked, 0 to 1; NaN
 */
struct rated_device {
	const struct sample_device *now;
	double rates[COUNTS];
	double busy;
};

/**
 * struct rated_context - a context with its rates
 * @now: the context in the newer sample
 * @rates: each of its numbers in a second; NaN if it is not known or no count
 * @busy: time that the device worked for it, as a share of all time; NaN
 * @hot: its hottest tables and rows; NULL: it was not looked into
 */
struct rated_context {
	const struct sample_context *now;
	double rates[FDINFO_NUMBERS];
	double busy;
	const struct hot_look *hot;
};

/**
 * struct rates - two samples
 * @sample: the newer one, which must outlive this
 * @seconds: time between the two; 0 if there is no older one
 */
struct rates {
	const struct sample *sample;
	double seconds;
	struct rated_device *devices;	/* [sample->device_count] */
	struct rated_context *contexts; /* [sample->context_count] */
};

/**
 * rate_of() - growth of a count in a second
 *
 * A count that went past 2^64 goes on from 0. One that is smaller than before otherwise was begun
 * anew, by a driver that was bound anew or by another file with the same number: then the rate is
 * not known.
 *
 * Return: the rate, or NaN.
 */
double rate_of(uint64_t before, uint64_t now, double seconds);

/**
 * rates_make() - compare two samples
 * @before: the older one, or NULL: no rate is known
 * @seconds: time between them
 *
 * Return: 0 or -ENOMEM.
 */
int rates_make(const struct sample *before, const struct sample *now, double seconds,
	       struct rates *out);

void rates_free(struct rates *rates);

/* Waits of all causes in a second, NaN if none is known. */
double rates_context_waits(const struct rated_context *context);

#endif
