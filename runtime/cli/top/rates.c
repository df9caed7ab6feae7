// SPDX-License-Identifier: MIT
/*
 * Makes rates of two samples. Devices are compared by their address and contexts by the number of
 * their file, so that what is only in one of the samples has no rate.
 *
 * While a device cannot be read, as during a reset, its counts stand still: they have no rate either.
 * The rates point into the newer sample, which must outlive them.
 */
#include "rates.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

double rate_of(uint64_t before, uint64_t now, double seconds)
{
	uint64_t grown = now - before;

	if (grown > INT64_MAX || !(seconds > 0))
		return NAN;
	return (double)grown / seconds;
}

static const struct sample_device *find_old_device(const struct sample *before,
						   const struct sample_device *now)
{
	for (size_t i = 0; before && i < before->device_count; i++) {
		if (!strcmp(before->devices[i].address, now->address))
			return &before->devices[i];
	}
	return NULL;
}

static const struct sample_context *find_old_context(const struct sample *before,
						     const struct sample_context *now)
{
	for (size_t i = 0; before && i < before->context_count; i++) {
		const struct sample_context *old = &before->contexts[i];

		if (strcmp(old->info.address, now->info.address) != 0)
			continue;
		if (old->info.has_client && now->info.has_client &&
		    old->info.client == now->info.client)
			return old;
	}
	return NULL;
}

static double rate_cores(const struct sample_device *before, const struct sample_device *now,
			 double seconds)
{
	double sum = 0;

	if (!now->cores || before->cores != now->cores)
		return NAN;
	for (uint32_t core = 0; core < now->cores; core++)
		sum += rate_of(before->core_ns[core], now->core_ns[core], seconds);
	/* The device may have noted more than the time between the readings. */
	return isnan(sum) ? NAN : fmin(sum / 1e9 / now->cores, 1);
}

static bool is_read_now(const struct sample_device *device)
{
	return !device->gauges[GAUGE_AGE] && !device->gauges[GAUGE_WEDGED];
}

static void rate_device(const struct sample_device *before, double seconds,
			struct rated_device *out)
{
	const struct sample_device *now = out->now;
	bool read = before && is_read_now(now);

	out->busy = read ? rate_cores(before, now, seconds) : NAN;
	for (size_t i = 0; i < COUNTS; i++) {
		bool known = read && before->known & now->known & 1u << i;

		out->rates[i] = known ? rate_of(before->counts[i], now->counts[i], seconds) : NAN;
	}
}

static void rate_context(const struct sample_context *before, double seconds,
			 struct rated_context *out)
{
	const uint32_t gauges = FDINFO_BIT(MEMORY) | FDINFO_BIT(RESIDENT) | FDINFO_BIT(NUMBER) |
				FDINFO_BIT(QUEUES);
	const struct fdinfo *now = &out->now->info;

	for (size_t i = 0; i < FDINFO_NUMBERS; i++) {
		bool known = before && before->info.known & now->known & ~gauges & 1u << i;

		out->rates[i] = known ? rate_of(before->info.numbers[i], now->numbers[i], seconds)
				      : NAN;
	}
	out->busy = out->rates[FDINFO_BUSY_NS] / 1e9;
}

int rates_make(const struct sample *before, const struct sample *now, double seconds,
	       struct rates *out)
{
	*out = (struct rates){
		.sample = now,
		.seconds = before ? seconds : 0,
		.devices = calloc(now->device_count + 1, sizeof(*out->devices)),
		.contexts = calloc(now->context_count + 1, sizeof(*out->contexts)),
	};
	if (!out->devices || !out->contexts) {
		rates_free(out);
		return -ENOMEM;
	}
	for (size_t i = 0; i < now->device_count; i++) {
		out->devices[i].now = &now->devices[i];
		rate_device(find_old_device(before, out->devices[i].now), seconds,
			    &out->devices[i]);
	}
	for (size_t i = 0; i < now->context_count; i++) {
		out->contexts[i].now = &now->contexts[i];
		rate_context(find_old_context(before, out->contexts[i].now), seconds,
			     &out->contexts[i]);
	}
	return 0;
}

void rates_free(struct rates *rates)
{
	free(rates->devices);
	free(rates->contexts);
	*rates = (struct rates){0};
}

double rates_context_waits(const struct rated_context *context)
{
	double sum = NAN;

	for (size_t i = FDINFO_WAITS_LOOKUP; i <= FDINFO_WAITS_SPACE; i++) {
		if (!isnan(context->rates[i]))
			sum = (isnan(sum) ? 0 : sum) + context->rates[i];
	}
	return sum;
}
