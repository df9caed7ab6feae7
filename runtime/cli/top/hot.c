// SPDX-License-Identifier: MIT
/*
 * Keeps the last look into each context, so that two looks give rates, and puts the hottest tables
 * first. It is apart from the asking, which needs a device.
 *
 * A look lives until the next one into the same context, or until its context is in no sample any
 * more. All belongs to one thread.
 */
#include "hot.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rates.h"

static void free_look(struct hot_look *look)
{
	if (look)
		free(look->tables);
	free(look);
}

void hot_forget(struct hot *hot)
{
	for (size_t i = 0; i < hot->count; i++)
		free_look(hot->list[i]);
	free(hot->list);
	*hot = (struct hot){0};
}

static bool is_look_into(const struct hot_look *look, const struct sample_context *context)
{
	return context->info.has_client && look->client == context->info.client &&
	       !strcmp(look->address, context->info.address);
}

static bool is_sampled(const struct sample *sample, const struct hot_look *look)
{
	for (size_t i = 0; i < sample->context_count; i++) {
		if (is_look_into(look, &sample->contexts[i]))
			return true;
	}
	return false;
}

void hot_keep(struct hot *hot, const struct sample *sample)
{
	size_t kept = 0;

	for (size_t i = 0; i < hot->count; i++) {
		if (is_sampled(sample, hot->list[i]))
			hot->list[kept++] = hot->list[i];
		else
			free_look(hot->list[i]);
	}
	hot->count = kept;
}

/* Return: the place of the look into a context, which is empty if there was none; NULL: no memory. */
static struct hot_look **find_look(struct hot *hot, const struct sample_context *context)
{
	struct hot_look **larger;

	for (size_t i = 0; i < hot->count; i++) {
		if (is_look_into(hot->list[i], context))
			return &hot->list[i];
	}
	larger = realloc(hot->list, (hot->count + 1) * sizeof(*larger));
	if (!larger)
		return NULL;
	hot->list = larger;
	larger[hot->count] = NULL;
	return &larger[hot->count];
}

static int compare_table_numbers(const void *left, const void *right)
{
	const struct hot_table *a = left, *b = right;

	return (a->table > b->table) - (a->table < b->table);
}

static int compare_heat(const void *left, const void *right)
{
	const struct hot_table *a = left, *b = right;

	if (isnan(a->ids_rate) != isnan(b->ids_rate))
		return isnan(a->ids_rate) ? 1 : -1;
	if (a->ids_rate > b->ids_rate || a->ids_rate < b->ids_rate)
		return a->ids_rate > b->ids_rate ? -1 : 1;
	if (a->ids != b->ids)
		return a->ids > b->ids ? -1 : 1;
	return compare_table_numbers(left, right);
}

static void sort_tables(struct hot_look *look, int (*compare)(const void *, const void *))
{
	if (look->count)
		qsort(look->tables, look->count, sizeof(*look->tables), compare);
}

void hot_compare(struct hot_look *now, struct hot_look *before)
{
	double seconds = before ? (double)(now->time_ns - before->time_ns) / 1e9 : 0;
	size_t at = 0;

	if (before)
		sort_tables(before, compare_table_numbers);
	for (size_t i = 0; before && i < now->count; i++) {
		struct hot_table *table = &now->tables[i];

		while (at < before->count && before->tables[at].table < table->table)
			at++;
		if (at < before->count && before->tables[at].table == table->table)
			table->ids_rate = rate_of(before->tables[at].ids, table->ids, seconds);
	}
	sort_tables(now, compare_heat);
}

static uint64_t read_look_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct hot_look *new_look(const struct sample_context *context, uint64_t sample_ns)
{
	struct hot_look *look = calloc(1, sizeof(*look));

	if (!look)
		return NULL;
	strcpy(look->address, context->info.address);
	look->client = context->info.client;
	look->sample_ns = sample_ns;
	look->time_ns = read_look_ns();
	return look;
}

int hot_look(struct hot *hot, struct tree *tree, const struct sample_context *context,
	     uint64_t sample_ns, const struct hot_look **out)
{
	struct hot_look **place = find_look(hot, context), *look, *before;
	int err;

	if (!place)
		return -ENOMEM;
	before = *place;
	if (before && before->sample_ns == sample_ns) {
		*out = before;
		return 0;
	}
	look = new_look(context, sample_ns);
	err = look ? hot_ask(tree, context, look) : -ENOMEM;
	if (err) {
		free_look(look);
		return err;
	}
	hot_compare(look, before);
	hot->count += !before;
	free_look(before);
	*place = look;
	*out = look;
	return 0;
}
