// SPDX-License-Identifier: MIT
/*
 * Gradients that wait for an update. A framework of pure functions cannot hold them itself: its values
 * have fixed shapes, and ids differ from batch to batch. So a backward pass leaves copies here, in the
 * engine, and the step of the optimizer makes one update of all.
 *
 * open->lock guards the list of an engine. A thread owns alone the gradients that it took from the list.
 */
#include "pending.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One feature of a push: bags by splits from 0, without padding. */
struct pending_feature {
	int feature;
	bool positions;
	size_t samples, ids, elements;
	int64_t *splits; /* [samples + 1] */
	int64_t *values; /* [ids] */
	float *weights;	 /* [ids], or NULL: 1 */
	float *gradient; /* [elements] */
};

struct pending {
	struct pending *next;
	uint32_t part;
	size_t count;
	struct pending_feature features[];
};

static void free_pending(struct pending *pending)
{
	for (size_t k = 0; pending && k < pending->count; k++) {
		free(pending->features[k].splits);
		free(pending->features[k].values);
		free(pending->features[k].weights);
		free(pending->features[k].gradient);
	}
	free(pending);
}

static void free_list(struct pending *list)
{
	while (list) {
		struct pending *next = list->next;

		free_pending(list);
		list = next;
	}
}

void pending_free(struct open_engine *open)
{
	free_list(open->pending);
	open->pending = NULL;
}

/* -- copies of bags -------------------------------------------------------------------- */

static int64_t take_number_at(enum embeng_id_type type, const void *numbers, size_t at)
{
	return type == EMBENG_I32 ? ((const int32_t *)numbers)[at] : ((const int64_t *)numbers)[at];
}

static size_t count_samples(const struct embeng_bags *bags)
{
	size_t bounds = bags->bound_count;

	return bags->form == EMBENG_BAGS_SPLITS && bounds ? bounds - 1 : bounds;
}

/* One past the last id of a sample, of which the first is known. */
static int64_t find_end(const struct embeng_bags *bags, size_t sample, size_t samples,
			int64_t first)
{
	int64_t end;

	switch (bags->form) {
	case EMBENG_BAGS_SPLITS:
		return take_number_at(bags->bound_type, bags->bounds, sample + 1);
	case EMBENG_BAGS_STARTS:
		if (sample + 1 == samples)
			return (int64_t)bags->id_count;
		return take_number_at(bags->bound_type, bags->bounds, sample + 1);
	case EMBENG_BAGS_LENGTHS:
		end = take_number_at(bags->bound_type, bags->bounds, sample);
		return __builtin_add_overflow(first, end, &end) ? -1 : end;
	default:
		return first + bags->length;
	}
}

static void copy_bag(struct pending_feature *to, const struct embeng_bags *bags, int64_t from,
		     int64_t end)
{
	for (int64_t k = from; k < end; k++) {
		int64_t id = take_number_at(bags->type, bags->ids, (size_t)k);

		if (bags->has_padding && id == bags->padding)
			continue;
		if (to->weights)
			to->weights[to->ids] = bags->weights[k];
		to->values[to->ids++] = id;
	}
}

static int copy_bags(struct pending_feature *to, const struct embeng_bags *bags,
		     struct embeng_error *error)
{
	int64_t first = 0;

	for (size_t k = 0; k < to->samples; k++) {
		int64_t end = find_end(bags, k, to->samples, first);

		if (end < first || (size_t)end > bags->id_count)
			return open_error_set(
				error, -EINVAL,
				"feature %d, sample %zu: its ids are %lld to %lld, of %zu; "
				"correct the splits or lengths",
				to->feature, k, (long long)first, (long long)end, bags->id_count);
		copy_bag(to, bags, first, end);
		to->splits[k + 1] = (int64_t)to->ids;
		first = end;
	}
	return 0;
}

static int copy_feature(struct pending_feature *to, const struct raw_feature *from,
			struct embeng_error *error)
{
	const struct embeng_bags *bags = &from->bags;

	if (from->indices)
		return open_error_set(
			error, -ENOTSUP,
			"feature %d: gradients of coordinates cannot wait for an update",
			from->feature);
	to->feature = from->feature;
	to->positions = from->positions;
	to->samples = count_samples(bags);
	to->elements = from->gradient ? from->gradient_elements : 0;
	to->splits = calloc(to->samples + 1, sizeof(*to->splits));
	to->values = malloc((bags->id_count + 1) * sizeof(*to->values));
	to->weights = bags->weights ? malloc((bags->id_count + 1) * sizeof(*to->weights)) : NULL;
	to->gradient = malloc((to->elements + 1) * sizeof(*to->gradient));
	if (!to->splits || !to->values || !to->gradient || (bags->weights && !to->weights))
		return open_error_set(error, -ENOMEM, "no memory for gradients that wait");
	if (to->elements)
		memcpy(to->gradient, from->gradient, to->elements * sizeof(float));
	return copy_bags(to, bags, error);
}

static struct pending *make_pending(uint32_t part, const struct raw_feature *features, size_t count,
				    struct embeng_error *error)
{
	struct pending *pending = calloc(1, sizeof(*pending) + count * sizeof(*pending->features));

	if (!pending) {
		open_error_set(error, -ENOMEM, "no memory for gradients that wait");
		return NULL;
	}
	pending->part = part;
	for (size_t k = 0; k < count; k++) {
		pending->count++;
		if (copy_feature(&pending->features[k], &features[k], error)) {
			free_pending(pending);
			return NULL;
		}
	}
	return pending;
}

int pending_push(int64_t engine, uint32_t part, const struct raw_feature *features, size_t count,
		 struct embeng_error *error)
{
	struct pending *pending, **at;
	struct open_engine *open = open_engine_find(engine, error);

	if (!open)
		return error->code;
	pending = make_pending(part, features, count, error);
	if (pending) {
		pthread_mutex_lock(&open->lock);
		for (at = &open->pending; *at && (*at)->part <= part;)
			at = &(*at)->next;
		pending->next = *at;
		*at = pending;
		open->pending_count++;
		pthread_mutex_unlock(&open->lock);
	}
	open_engine_done(open);
	return pending ? 0 : error->code;
}

/* -- one update of all ----------------------------------------------------------------- */

/* Sums sizes of the parts of one feature. Return: -EINVAL for ids and bags in one. */
static int measure_feature(const struct pending *list, struct pending_feature *sum, bool *weighted,
			   struct embeng_error *error)
{
	bool found = false;

	for (; list; list = list->next)
		for (size_t k = 0; k < list->count; k++) {
			const struct pending_feature *f = &list->features[k];

			if (f->feature != sum->feature)
				continue;
			if (found && f->positions != sum->positions)
				return open_error_set(
					error, -EINVAL,
					"feature %d: a sequence feature's single ids and its "
					"bags cannot be in one update; apply in between",
					f->feature);
			found = true;
			sum->positions = f->positions;
			sum->samples += f->samples;
			sum->ids += f->ids;
			sum->elements += f->elements;
			*weighted |= f->weights != NULL;
		}
	return 0;
}

static void append_feature(struct pending_feature *sum, const struct pending_feature *f)
{
	memcpy(sum->values + sum->ids, f->values, f->ids * sizeof(*f->values));
	memcpy(sum->gradient + sum->elements, f->gradient, f->elements * sizeof(float));
	for (size_t k = 0; sum->weights && k < f->ids; k++)
		sum->weights[sum->ids + k] = f->weights ? f->weights[k] : 1;
	for (size_t k = 0; k < f->samples; k++)
		sum->splits[sum->samples + k + 1] = (int64_t)sum->ids + f->splits[k + 1];
	sum->samples += f->samples;
	sum->ids += f->ids;
	sum->elements += f->elements;
}

static int join_feature(const struct pending *list, struct pending_feature *sum,
			struct embeng_error *error)
{
	bool weighted = false;
	int ret = measure_feature(list, sum, &weighted, error);

	if (ret)
		return ret;
	sum->splits = calloc(sum->samples + 1, sizeof(*sum->splits));
	sum->values = malloc((sum->ids + 1) * sizeof(*sum->values));
	sum->weights = weighted ? malloc((sum->ids + 1) * sizeof(float)) : NULL;
	sum->gradient = malloc((sum->elements + 1) * sizeof(float));
	if (!sum->splits || !sum->values || !sum->gradient || (weighted && !sum->weights))
		return open_error_set(error, -ENOMEM, "no memory to join gradients");
	sum->samples = sum->ids = sum->elements = 0;
	for (; list; list = list->next)
		for (size_t k = 0; k < list->count; k++)
			if (list->features[k].feature == sum->feature)
				append_feature(sum, &list->features[k]);
	return 0;
}

static bool has_feature(const struct pending *joined, int feature)
{
	for (size_t k = 0; k < joined->count; k++)
		if (joined->features[k].feature == feature)
			return true;
	return false;
}

/* All of a list as one, each feature once. */
static struct pending *join_list(const struct pending *list, struct embeng_error *error)
{
	struct pending *joined;
	size_t most = 0;

	for (const struct pending *p = list; p; p = p->next)
		most += p->count;
	joined = calloc(1, sizeof(*joined) + most * sizeof(*joined->features));
	if (!joined) {
		open_error_set(error, -ENOMEM, "no memory to join gradients");
		return NULL;
	}
	for (const struct pending *p = list; p; p = p->next)
		for (size_t k = 0; k < p->count; k++) {
			if (has_feature(joined, p->features[k].feature))
				continue;
			joined->features[joined->count].feature = p->features[k].feature;
			if (join_feature(list, &joined->features[joined->count++], error)) {
				free_pending(joined);
				return NULL;
			}
		}
	return joined;
}

static struct raw_feature show_feature(const struct pending_feature *f)
{
	return (struct raw_feature){
		.feature = f->feature,
		.positions = f->positions,
		.bags = {.form = EMBENG_BAGS_SPLITS,
			 .type = EMBENG_I64,
			 .ids = f->values,
			 .id_count = f->ids,
			 .bound_type = EMBENG_I64,
			 .bounds = f->splits,
			 .bound_count = f->samples + 1,
			 .weights = f->weights,
			 .weight_count = f->weights ? f->ids : 0},
		.gradient = f->gradient,
		.gradient_elements = f->elements,
	};
}

static int update_pending(int64_t engine, const struct pending *pending,
			  const struct raw_step *step, struct embeng_error *error)
{
	struct raw_feature *features = calloc(pending->count + 1, sizeof(*features));
	int ret;

	if (!features)
		return open_error_set(error, -ENOMEM, "no memory for an update");
	for (size_t k = 0; k < pending->count; k++)
		features[k] = show_feature(&pending->features[k]);
	ret = raw_update(engine, features, pending->count, step, error);
	free(features);
	return ret;
}

static int refuse_count(size_t expected, size_t count, struct embeng_error *error)
{
	return open_error_set(
		error, -EPROTO,
		"%zu gradients of lookups wait for an update, but this one was given those "
		"of %zu: a gradient was computed and not applied, or that of the state was "
		"scaled, averaged or clipped; discard() drops what waits",
		count, expected);
}

/* Takes the list of an engine, if it has as many as expected. Return: 0, or an error. */
static int take_list(struct open_engine *open, size_t expected, struct pending **list,
		     struct embeng_error *error)
{
	size_t count;

	*list = NULL;
	pthread_mutex_lock(&open->lock);
	count = open->pending_count;
	if (count == expected) {
		*list = open->pending;
		open->pending = NULL;
		open->pending_count = 0;
	}
	pthread_mutex_unlock(&open->lock);
	return count == expected ? 0 : refuse_count(expected, count, error);
}

int pending_apply(int64_t engine, size_t expected, const struct raw_step *step,
		  struct embeng_error *error)
{
	struct open_engine *open = open_engine_find(engine, error);
	struct pending *list, *joined;
	int ret;

	if (!open)
		return error->code;
	ret = take_list(open, expected, &list, error);
	if (list && list->next) {
		joined = join_list(list, error);
		ret = joined ? update_pending(engine, joined, step, error) : error->code;
		free_pending(joined);
	} else if (list) {
		ret = update_pending(engine, list, step, error);
	}
	free_list(list);
	open_engine_done(open);
	return ret;
}

int64_t pending_drop(int64_t engine, struct embeng_error *error)
{
	struct open_engine *open = open_engine_find(engine, error);
	struct pending *list;
	int64_t count;

	if (!open)
		return error->code;
	pthread_mutex_lock(&open->lock);
	list = open->pending;
	count = (int64_t)open->pending_count;
	open->pending = NULL;
	open->pending_count = 0;
	pthread_mutex_unlock(&open->lock);
	free_list(list);
	open_engine_done(open);
	return count;
}
