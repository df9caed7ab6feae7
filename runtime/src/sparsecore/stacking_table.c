// SPDX-License-Identifier: MIT
/*
 * Prepares tables for stacking: their padded sizes, their samples, and the order in which a flavour
 * takes them.
 *
 * The result goes into the struct stacker, which lives for one call of embeng_stacking_make().
 */
#include <inttypes.h>
#include <string.h>

#include "model/shape.h"
#include "stacking.h"

#define TF_CORES 4 /* the rule counts samples as if a device had 4 cores, whatever it has */

/* To the next multiple. False when that is more than 64 bits count. */
static bool pad_to_multiple(int64_t n, int64_t to, int64_t *padded)
{
	int64_t rest = n % to;

	return !__builtin_add_overflow(n, rest ? to - rest : 0, padded);
}

static int pad_table(const struct stacker *s, size_t index)
{
	const struct table *t = &s->model->tables[index];
	struct stackable *to = &s->tables[index];

	if (t->combiner == EMBENG_MAX)
		return fail(-ENOTSUP,
			    "table %s: its combiner is max, and a partitioned input only has gains "
			    "for sums; give its ids as ragged, sparse or dense input",
			    t->name);
	if (!pad_to_multiple(t->rows, STACK_ROWS * (int64_t)s->options.sparse_cores, &to->height) ||
	    !pad_to_multiple(t->dim, STACK_COLUMNS, &to->width))
		return fail(-ERANGE,
			    "table %s: %" PRId64 " rows of %" PRId64 " columns, padded, are "
			    "more than 64 bits count",
			    t->name, t->rows, t->dim);
	to->stack = NO_STACK;
	return 0;
}

int64_t feature_samples(const struct feature *f)
{
	struct embeng_shape shape = shape_known(f);

	return shape.rank ? shape_product(shape.dims, shape.rank, false) : 0;
}

static int check_samples(const struct feature *f, int64_t samples)
{
	if (!samples)
		return fail(-EINVAL,
			    "feature %s: its output shape is not fully defined, which "
			    "stacking goes by; give output_shape, or embeng_model_build()",
			    f->name);
	if (samples < 0)
		return fail(-ERANGE,
			    "feature %s: its output shape has more positions than 64 bits "
			    "count",
			    f->name);
	return 0;
}

/* JAX rounds down the samples of each feature, TF those of a table. */
static int count_samples(const struct stacker *s)
{
	bool tf = s->options.flavour == EMBENG_PARTITION_TF;

	for (size_t f = 0; f < s->model->feature_count; f++) {
		const struct feature *feature = &s->model->features[f];
		struct stackable *t = &s->tables[feature->table];
		int64_t samples = feature_samples(feature);
		int ret = check_samples(feature, samples);

		if (!ret && __builtin_add_overflow(t->all_samples, samples, &t->all_samples))
			ret = fail(-ERANGE,
				   "table %s: its features have more samples than 64 bits "
				   "count",
				   s->model->tables[feature->table].name);
		if (ret)
			return ret;
		t->samples += samples / s->options.cores_per_device;
		t->features++;
	}
	for (size_t t = 0; tf && t < s->model->table_count; t++)
		s->tables[t].samples = s->tables[t].all_samples / TF_CORES;
	return 0;
}

/* Insertion keeps it short, and there are few tables. */
static void order_by_name(const struct stacker *s)
{
	for (size_t i = 0; i < s->model->table_count; i++) {
		size_t at = i;

		while (at && strcmp(s->model->tables[s->order[at - 1]].name,
				    s->model->tables[i].name) > 0) {
			s->order[at] = s->order[at - 1];
			at--;
		}
		s->order[at] = i;
	}
}

static void order_by_feature(const struct stacker *s)
{
	size_t count = 0;

	/* Until tables are stacked, a stack marks those that are in the list. */
	for (size_t f = 0; f < s->model->feature_count; f++) {
		size_t t = (size_t)s->model->features[f].table;

		if (s->tables[t].stack == NO_STACK)
			s->order[count++] = t;
		s->tables[t].stack = 0;
	}
	for (size_t t = 0; t < s->model->table_count; t++) {
		if (s->tables[t].stack == NO_STACK)
			s->order[count++] = t;
		s->tables[t].stack = NO_STACK;
	}
}

int stacker_tables(struct stacker *s)
{
	int ret = 0;

	for (size_t t = 0; !ret && t < s->model->table_count; t++)
		ret = pad_table(s, t);
	ret = ret ? ret : count_samples(s);
	if (ret)
		return ret;
	if (s->options.flavour == EMBENG_PARTITION_TF)
		order_by_name(s);
	else
		order_by_feature(s);
	return 0;
}
