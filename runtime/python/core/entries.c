// SPDX-License-Identifier: MIT
/*
 * Lists of entries (entries.h): made of inputs, sorted and joined, and made bags. It is a file of its own
 * because it is arithmetic alone; tensorflow_entries.c has the operators that call it.
 *
 * All memory belongs to the caller or to one call. There are no locks.
 */
#include "entries.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

static int fail_entry_memory(struct embeng_error *error)
{
	return open_error_set(error, -ENOMEM, "no memory for lists of entries");
}

/* -- the samples of ids ------------------------------------------------------------------- */

static int place_sparse(const struct entry_feature *feature, struct entry *to,
			struct embeng_error *error)
{
	for (size_t k = 0; k < feature->input->bags.id_count; k++) {
		int64_t sample = session_find_sample(feature->input, feature->name, k, error);

		if (sample < 0)
			return error->code;
		to[k].place = (uint64_t)sample;
	}
	return 0;
}

static int place_ragged(const struct entry_feature *feature, int64_t samples, struct entry *to,
			struct embeng_error *error)
{
	int64_t *splits = calloc((size_t)samples + 1, sizeof(*splits));
	int ret = splits ? session_read_splits(feature->input, feature->name, samples, splits,
					       error)
			 : fail_entry_memory(error);

	for (int64_t sample = 0; !ret && sample < samples; sample++)
		for (int64_t k = splits[sample]; k < splits[sample + 1]; k++)
			to[k].place = (uint64_t)sample;
	free(splits);
	return ret;
}

/* Sets the places to the samples within the feature. */
static int place_samples(const struct entry_feature *feature, struct entry *to,
			 struct embeng_error *error)
{
	const struct raw_feature *input = feature->input;
	int64_t samples = session_count_samples(input);
	int ret = 0;

	if (input->positions)
		for (size_t k = 0; k < input->bags.id_count; k++)
			to[k].place = k;
	else if (input->indices)
		ret = samples < 0 ? 0 : place_sparse(feature, to, error);
	else
		ret = samples < 0 ? 0 : place_ragged(feature, samples, to, error);
	if (ret || samples == feature->samples)
		return ret;
	return open_error_set(error, -EINVAL,
			      "feature %s: the input has %" PRId64
			      " samples, and the output shape has %" PRId64,
			      feature->name, samples, feature->samples);
}

/* -- gains --------------------------------------------------------------------------------- */

static int take_gains(const struct entry_feature *feature, struct entry *to,
		      struct embeng_error *error)
{
	const struct embeng_bags *bags = &feature->input->bags;

	if (feature->weighted && bags->weight_count != bags->id_count)
		return open_error_set(error, -EINVAL,
				      "feature %s: there are %zu weights for %zu ids",
				      feature->name, bags->weight_count, bags->id_count);
	for (size_t k = 0; k < bags->id_count; k++)
		to[k].gain = feature->weighted ? bags->weights[k] : 1;
	return 0;
}

/* A sample's gains are divided by the sum of these, or by its root. */
static float square_gain(enum embeng_combiner_name combiner, float gain)
{
	return combiner == EMBENG_SQRTN ? gain * gain : gain;
}

static int scale_gains(const struct entry_feature *feature, struct entry *to,
		       struct embeng_error *error)
{
	size_t count = feature->input->bags.id_count;
	enum embeng_combiner_name combiner = feature->combiner;
	double *sums;

	if (combiner == EMBENG_SUM)
		return 0;
	sums = calloc((size_t)feature->samples + 1, sizeof(*sums));
	if (!sums)
		return fail_entry_memory(error);
	for (size_t k = 0; k < count; k++)
		sums[to[k].place] += (double)square_gain(combiner, to[k].gain);
	for (size_t k = 0; k < count; k++) {
		double sum = sums[to[k].place];

		if (combiner == EMBENG_SQRTN)
			sum = sqrt(sum);
		to[k].gain *= sum != 0 ? (float)(1 / sum) : 0;
	}
	free(sums);
	return 0;
}

/* -- ids ----------------------------------------------------------------------------------- */

static int64_t read_entry_id(const struct embeng_bags *bags, size_t at)
{
	return bags->type == EMBENG_I32 ? ((const int32_t *)bags->ids)[at]
					: ((const int64_t *)bags->ids)[at];
}

static int check_entry_ids(const struct entry_feature *feature, const struct entry *entries,
			   struct embeng_error *error)
{
	const struct embeng_bags *bags = &feature->input->bags;

	for (size_t k = 0; k < bags->id_count; k++) {
		int64_t id = read_entry_id(bags, k);

		if (id < 0 || id >= feature->rows)
			return open_error_set(error, -ERANGE,
					      "feature %s, sample %" PRIu64 ": id %" PRId64
					      " is outside table %s, which has rows 0 to %" PRId64
					      "; correct the id",
					      feature->name, entries[k].place, id, feature->table,
					      feature->rows - 1);
	}
	return 0;
}

int entries_list(const struct entry_feature *feature, struct entry *to, struct embeng_error *error)
{
	const struct embeng_bags *bags = &feature->input->bags;
	int ret = place_samples(feature, to, error);

	ret = ret ? ret : take_gains(feature, to, error);
	ret = ret ? ret : check_entry_ids(feature, to, error);
	ret = ret ? ret : scale_gains(feature, to, error);
	for (size_t k = 0; !ret && k < bags->id_count; k++)
		to[k].place = (to[k].place + (uint64_t)feature->first) |
			      (uint64_t)read_entry_id(bags, k) << ENTRY_ID_BIT;
	return ret;
}

/* -- sorting ------------------------------------------------------------------------------- */

#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)

static size_t digit_of(const struct entry *entry, int bit)
{
	return entry->place >> bit & (DIGITS - 1);
}

/* Moves entries in the order of a digit; those that have the same one keep their order. */
static void sort_by_digit(const struct entry *from, struct entry *to, size_t count, int bit)
{
	size_t places[DIGITS] = {0}, at = 0;

	for (size_t k = 0; k < count; k++)
		places[digit_of(&from[k], bit)]++;
	for (size_t k = 0; k < DIGITS; k++) {
		size_t held = places[k];

		places[k] = at;
		at += held;
	}
	for (size_t k = 0; k < count; k++)
		to[places[digit_of(&from[k], bit)]++] = from[k];
}

/* Digits in which no two entries differ are left out, as are those of samples that are in order. */
static struct entry *sort_entries(struct entry *entries, struct entry *spare, size_t count)
{
	static const int bits[] = {0, 11, 22, 32, 43, 54};
	uint64_t differs = 0;
	bool in_order = true;

	for (size_t k = 1; k < count; k++) {
		differs |= entries[k].place ^ entries[0].place;
		in_order &= entry_sample(&entries[k - 1]) <= entry_sample(&entries[k]);
	}
	for (size_t k = in_order ? 3 : 0; k < sizeof(bits) / sizeof(*bits); k++) {
		struct entry *sorted = spare;

		if (!(differs >> bits[k] & (DIGITS - 1)))
			continue;
		sort_by_digit(entries, sorted, count, bits[k]);
		spare = entries;
		entries = sorted;
	}
	return entries;
}

struct entry *entries_join(struct entry *entries, struct entry *spare, size_t *count)
{
	struct entry *sorted = sort_entries(entries, spare, *count);
	size_t at = 0, joined = 0;

	while (at < *count) {
		uint64_t place = sorted[at].place;
		double gain = 0;

		do
			gain += (double)sorted[at++].gain;
		while (at < *count && sorted[at].place == place);
		sorted[joined++] = (struct entry){place, (float)gain};
	}
	*count = joined;
	return sorted;
}

/* -- bags ---------------------------------------------------------------------------------- */

/* Has splits[sample + 1] be the number of the sample's entries. */
static int count_bags(const struct entry_list *list, int64_t *splits, struct embeng_error *error)
{
	for (size_t k = 0; k < list->count; k++) {
		int32_t sample = list->samples[k];

		if (sample < 0 || sample >= list->sample_count)
			return open_error_set(error, -ERANGE,
					      "table %s: sorted_sample_ids[%zu] is %" PRId32
					      ", and there are %" PRId64
					      " samples; give what preprocess_features() returned",
					      list->table, k, sample, list->sample_count);
		splits[sample + 1]++;
	}
	return 0;
}

/* Each split moves from the beginning of its bag to its end, which is the next one's beginning. */
static void fill_bags(const struct entry_list *list, struct entry_bags *to)
{
	for (int64_t k = 0; k < list->sample_count; k++)
		to->splits[k + 1] += to->splits[k];
	for (size_t k = list->count; k-- > 0;) {
		int64_t at = --to->splits[list->samples[k] + 1];

		to->ids[at] = list->ids[k];
		to->gains[at] = list->gains[k];
	}
	/* All splits are now the beginnings of the bags of the samples before. */
	memmove(to->splits, to->splits + 1, (size_t)list->sample_count * sizeof(*to->splits));
	to->splits[list->sample_count] = (int64_t)list->count;
}

int entries_bag(const struct entry_list *list, struct entry_bags *to, struct embeng_bags *bags,
		struct embeng_error *error)
{
	size_t samples = (size_t)list->sample_count;
	int ret;

	to->splits = calloc(samples + 1, sizeof(*to->splits));
	to->ids = malloc((list->count + 1) * sizeof(*to->ids));
	to->gains = malloc((list->count + 1) * sizeof(*to->gains));
	if (!to->splits || !to->ids || !to->gains)
		return fail_entry_memory(error);
	ret = count_bags(list, to->splits, error);
	if (ret)
		return ret;
	fill_bags(list, to);
	*bags = (struct embeng_bags){
		.size = sizeof(*bags),
		.form = EMBENG_BAGS_SPLITS,
		.type = EMBENG_I32,
		.ids = to->ids,
		.id_count = list->count,
		.bound_type = EMBENG_I64,
		.bounds = to->splits,
		.bound_count = samples + 1,
		.weights = to->gains,
		.weight_count = list->count,
	};
	return 0;
}

void entry_bags_put(struct entry_bags *bags)
{
	free(bags->splits);
	free(bags->ids);
	free(bags->gains);
}
