// SPDX-License-Identifier: MIT
/*
 * Sorts the contexts of a comparison. The order is total, so that lines do not change places while
 * numbers stay the same.
 */
#define _GNU_SOURCE
#include "order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const words[ORDERS] = {
#define WORD(name, word, words) word,
	ORDER_TABLE(WORD)
#undef WORD
};

const char *order_word(enum order order)
{
	return words[order];
}

enum order order_named(const char *word)
{
	size_t i = 0;

	while (i < ORDERS && strcmp(words[i], word) != 0)
		i++;
	return (enum order)i;
}

static double find_order_value(const struct rated_context *context, enum order order)
{
	const struct fdinfo *info = &context->now->info;

	switch (order) {
	case ORDER_COMMANDS:
		return context->rates[FDINFO_COMMANDS];
	case ORDER_IDS:
		return context->rates[FDINFO_IDS];
	case ORDER_ROWS:
		return context->rates[FDINFO_ROWS];
	case ORDER_MEMORY:
		return info->known & FDINFO_BIT(MEMORY) ? (double)info->numbers[FDINFO_MEMORY]
							: NAN;
	case ORDER_STALLS:
		return rates_context_waits(context);
	case ORDER_PID:
		return -(double)context->now->pid;
	default:
		return context->busy;
	}
}

static int compare_contexts(const void *left, const void *right, void *arg)
{
	const struct rated_context *a = left, *b = right;
	enum order order = *(const enum order *)arg;
	double x = find_order_value(a, order), y = find_order_value(b, order);

	if (isnan(x) != isnan(y))
		return isnan(x) ? 1 : -1;
	if (x > y || x < y)
		return x > y ? -1 : 1;
	if (a->now->pid != b->now->pid)
		return a->now->pid < b->now->pid ? -1 : 1;
	return (a->now->info.client > b->now->info.client) -
	       (a->now->info.client < b->now->info.client);
}

void order_contexts(struct rates *rates, enum order order)
{
	if (rates->sample->context_count)
		qsort_r(rates->contexts, rates->sample->context_count, sizeof(*rates->contexts),
			compare_contexts, &order);
}
