// SPDX-License-Identifier: MIT
/*
 * The gradients of the weights of a batch's ids. Each is made of the products of the rows of its bag
 * with the gradient of its sample. On a device in this process the rows are taken where the engine
 * has them; from any other device, or from other hosts, each row of a feature is read once.
 *
 * All memory lives for one call. direct_enter() keeps updates back while rows are used; it and
 * rows_read_together() take the locks. The output is the caller's, and is written last.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../../engine/kernels/kernels.h"
#include "base/ask.h"
#include "batch/input.h"
#include "rows.h"
#include "touches.h"
#include "wait.h"

#define CALL "embeng_weight_gradients"
#define LANES 16u
#define AHEAD 12u /* rows that are fetched before they are used */

/*
 * struct weighing - one feature whose weights get gradients
 * @touches: [@count] ids that read rows
 * @products: [ids] product of each id's row with its sample's gradient; then the gradients
 */
struct weighing {
	uint32_t feature;
	size_t count;
	struct touch *touches;
	double *products;
};

struct weigh_call {
	struct embeng *e;
	struct given_gradients given;
	float *const *weights;
	const size_t *counts;
	struct weighing *features; /* [feature_count], those without @products are not wanted */
	struct rows_reading *readings;
};

/* The lanes and their order are those of decision 16; products of two floats are exact in f64. */
static double multiply_rows(const float *a, const float *b, size_t n)
{
	double lanes[LANES] = {0};

	for (size_t c = 0; c + LANES <= n; c += LANES)
		for (size_t l = 0; l < LANES; l++)
			lanes[l] += (double)a[c + l] * b[c + l];
	for (size_t c = n - n % LANES; c < n; c++)
		lanes[c % LANES] += (double)a[c] * b[c];
	for (size_t half = LANES / 2; half; half /= 2)
		for (size_t l = 0; l < half; l++)
			lanes[l] += lanes[l + half];
	return lanes[0];
}

static int check_weighted(const struct weigh_call *call, size_t f)
{
	const struct input *in = &call->given.b->inputs[f];
	const char *name = call->e->model->features[f].name;

	if (in->form == INPUT_PARTITIONED)
		return fail(-ENOTSUP,
			    CALL ": feature %s: its input is partitioned, which has gains in "
				 "place of weights; give the batch the ids themselves",
			    name);
	if (in->form == INPUT_DENSE || !in->pooled)
		return fail(-EINVAL,
			    CALL ": feature %s: %s takes no weights; leave its output NULL", name,
			    in->form == INPUT_DENSE ? "a dense input" : "a sequence");
	if (call->e->model->features[f].largest)
		return fail(-EINVAL,
			    CALL ": feature %s: its table's combiner is max, which takes no "
				 "weights; leave its output NULL",
			    name);
	if (call->counts[f] != input_given(in))
		return fail(-EINVAL,
			    CALL ": feature %s: room for %zu gradients of weights, its input has "
				 "%zu ids",
			    name, call->counts[f], input_given(in));
	return 0;
}

static int prepare_feature(struct weigh_call *call, uint32_t f)
{
	const struct embeng_batch *b = call->given.b;
	struct weighing *w = &call->features[f];
	const float *gradient = call->given.g->features[f];
	size_t ids = b->inputs[f].id_count;
	int ret = check_weighted(call, f);

	if (ret)
		return ret;
	w->feature = f;
	w->products = calloc(ids + 1, sizeof(*w->products));
	w->touches = reallocarray(NULL, ids + 1, sizeof(*w->touches));
	if (!w->products || !w->touches)
		return fail(-ENOMEM, CALL ": feature %s: no memory for %zu ids",
			    call->e->model->features[f].name, ids);
	/* Without gradients all are zeros, but the ids are checked all the same. */
	ret = touches_list(b, f, gradient, NULL, w->touches, &w->count);
	if (!gradient)
		w->count = 0;
	return ret;
}

/* A row as lookups of a quantized table see it. */
static void quantize_row(const struct embeng *e, const struct kernel_quantization *q,
			 const float *row, size_t dim, float *out)
{
	const u64 rows[] = {0}, bag[] = {0, 1};
	const struct kernel_bag_work work = {
		.table = row,
		.stride = dim,
		.dim = (u32)dim,
		.rows = rows,
		.rows_count = 1,
		.quantization = q,
		.bag = bag,
		.out = out,
		.out_stride = dim,
	};

	e->kernels->lookup(&work, 0, 1);
}

/* They lie anywhere in a large table; rows that were read follow each other. */
static void fetch_ahead(const struct weighing *w, size_t i, const float *rows, size_t dim)
{
	const float *row;

	if (i + AHEAD >= w->count)
		return;
	row = rows + w->touches[i + AHEAD].row * dim;
	for (size_t c = 0; c < dim; c += 16)
		__builtin_prefetch(row + c);
}

/* @rows: all of the table; or with @apart, those of the touches, each once and in their order. */
static int multiply_feature(const struct weigh_call *call, struct weighing *w, const float *rows,
			    bool apart)
{
	const struct embeng_model *m = call->e->model;
	const struct table *t = &m->tables[m->features[w->feature].table];
	size_t dim = (size_t)t->dim;
	struct kernel_quantization q;
	float *seen = NULL;
	int ret = 0;

	if (t->quantization.num_buckets) {
		touches_quantization(t, &q);
		seen = reallocarray(NULL, dim, sizeof(*seen));
		if (!seen)
			return fail(-ENOMEM, CALL ": no memory for a row of table %s", t->name);
	}
	for (size_t i = 0; !ret && i < w->count; i++) {
		const struct touch *touch = &w->touches[i];
		const float *row = apart ? rows : rows + touch->row * dim;

		if (apart && i && touch->row != touch[-1].row)
			row = rows += dim;
		if (!apart)
			fetch_ahead(w, i, rows, dim);
		if (seen)
			quantize_row(call->e, &q, row, dim, seen);
		w->products[touch->place] = multiply_rows(seen ? seen : row, touch->gradient, dim);
		ret = touches_ask(i);
	}
	free(seen);
	return ret;
}

static int multiply_in_place(struct weigh_call *call)
{
	struct embeng *e = call->e;
	struct device *d = e->device;
	int ret = 0;

	for (size_t f = 0; !ret && f < e->model->feature_count; f++) {
		uint32_t table = (uint32_t)e->model->features[f].table;
		void *rows;

		if (!call->features[f].count)
			continue;
		if (d->ops->table_rows(d, table, EMBENG_SLOT_PARAMETERS, 0, &rows))
			ret = fail(-EIO, CALL ": table %s: the engine has no rows of it",
				   e->model->tables[table].name);
		ret = ret ? ret : multiply_feature(call, &call->features[f], rows, false);
	}
	return ret;
}

static int multiply_direct(struct weigh_call *call)
{
	struct embeng *e = call->e;
	int ret;

	pthread_mutex_lock(&e->lock);
	ret = direct_enter(e, deadline_in(0), CALL);
	pthread_mutex_unlock(&e->lock);
	if (ret)
		return ret;
	ret = multiply_in_place(call);
	pthread_mutex_lock(&e->lock);
	direct_leave(e);
	pthread_mutex_unlock(&e->lock);
	return ret;
}

/* The rows of a feature, each once. */
static int want_rows(struct weigh_call *call, size_t f)
{
	const struct embeng_model *m = call->e->model;
	const struct table *t = &m->tables[m->features[f].table];
	struct rows_reading *reading = &call->readings[f];
	struct weighing *w = &call->features[f];
	struct touch *room;
	int64_t *ids;
	int ret = 0;

	reading->table = m->features[f].table;
	if (!w->count)
		return 0;
	reading->ids = ids = reallocarray(NULL, w->count, sizeof(*ids));
	room = reallocarray(NULL, w->count, sizeof(*room));
	if (!ids || !room)
		ret = fail(-ENOMEM, CALL ": no memory for %zu ids", w->count);
	ret = ret ? ret : touches_sort(w->touches, room, w->count, (uint64_t)t->rows);
	free(room);
	if (ret)
		return ret;
	for (size_t i = 0; i < w->count; i++)
		if (!i || w->touches[i].row != w->touches[i - 1].row)
			ids[reading->count++] = (int64_t)w->touches[i].row;
	reading->data = reallocarray(NULL, reading->count, (size_t)t->dim * sizeof(float));
	if (!reading->data)
		return fail(-ENOMEM, CALL ": no memory for %zu rows of table %s", reading->count,
			    t->name);
	return 0;
}

/* Over a group all hosts read rows together, also one that has a @status. */
static int multiply_read(struct weigh_call *call, int status)
{
	size_t features = call->e->model->feature_count;
	int ret = status;

	for (size_t f = 0; !ret && f < features; f++)
		ret = want_rows(call, f);
	ret = rows_read_together(call->e, CALL, call->readings, call->readings ? features : 0, ret);
	for (size_t f = 0; !ret && f < features; f++)
		ret = multiply_feature(call, &call->features[f], call->readings[f].data, true);
	return ret;
}

/*
 * From the products p of a bag to the gradients of its weights w, in place. The activation is
 * y = sum(w r) / D, so with p_i = r_i . g the gradient is p_i / D - (y . g) D'_i / D, where
 * y . g = sum(w p) / D and D'_i = dD/dw_i: for the sum D = 1 and D' = 0; for the mean D = sum(w) and
 * D' = 1; for sqrtn D = sqrt(sum(w^2)) and D'_i = w_i / D. A bag with D = 0 has the activation 0 by
 * definition, and gradients of 0.
 */
static int weigh_bag(const struct embeng_batch *b, uint32_t feature, size_t first, size_t end,
		     double *p)
{
	const struct embeng_model *m = b->e->model;
	enum embeng_combiner_name combiner = m->tables[m->features[feature].table].combiner;
	double sum = 0, all = 0, d;
	uint64_t row;
	float weight;

	for (size_t k = first; k < end; k++) {
		int named = touches_resolve(b, feature, k, &row, &weight);
		int ret = named < 0 ? named : touches_ask(k);

		if (ret)
			return ret;
		if (named == NAMES_NOTHING)
			continue;
		sum = touches_add(combiner, sum, weight);
		all += weight * p[k];
	}
	d = touches_denominator(combiner, sum);
	for (size_t k = first; k < end; k++) {
		int named = touches_resolve(b, feature, k, &row, &weight);
		double slope = combiner == EMBENG_MEAN ? 1 : weight / d;

		if (named < 0)
			return named;
		if (named == NAMES_NOTHING || d == 0)
			p[k] = 0;
		else if (combiner != EMBENG_SUM)
			p[k] = (p[k] - all / d * slope) / d;
	}
	return 0;
}

static int weigh_feature(const struct embeng_batch *b, struct weighing *w)
{
	const struct input *in = &b->inputs[w->feature];
	size_t first, end;
	int ret = 0;

	for (size_t s = 0; !ret && w->products && s < in->samples; s++) {
		ret = touches_bag(b, w->feature, s, &first, &end);
		ret = ret ? ret : weigh_bag(b, w->feature, first, end, w->products);
		ret = ret ? ret : touches_ask(s);
	}
	return ret;
}

/* Padding was left out of the ids, and gets gradients of 0. */
static void give_weights(const struct input *in, const struct weighing *w, float *to)
{
	size_t next = 0;

	for (size_t k = 0; k < input_given(in); k++)
		to[k] = input_pads(in, k) || next == in->id_count ? 0 : (float)w->products[next++];
}

static int weigh_batch(struct weigh_call *call, int status)
{
	size_t features = call->e->model->feature_count;
	const struct embeng_batch *b = call->given.b;
	int ret = status;

	for (uint32_t f = 0; !ret && f < features; f++)
		ret = call->weights[f] ? prepare_feature(call, f) : 0;
	if (call->e->calls)
		ret = multiply_read(call, ret);
	else if (!ret)
		ret = direct_can(call->e) ? multiply_direct(call) : multiply_read(call, 0);
	for (size_t f = 0; !ret && f < features; f++)
		ret = weigh_feature(b, &call->features[f]);
	for (size_t f = 0; !ret && f < features; f++)
		if (call->weights[f])
			give_weights(&b->inputs[f], &call->features[f], call->weights[f]);
	return ret;
}

static void free_weighings(struct weigh_call *call)
{
	for (size_t f = 0; f < call->e->model->feature_count; f++) {
		if (call->features) {
			free(call->features[f].touches);
			free(call->features[f].products);
		}
		if (call->readings) {
			free((void *)(uintptr_t)call->readings[f].ids);
			free(call->readings[f].data);
		}
	}
	free(call->features);
	free(call->readings);
}

static int check_weight_outputs(const struct weigh_call *call, size_t count)
{
	const size_t features = call->e->model->feature_count;

	if (call->weights && call->counts && count == features)
		return 0;
	return fail(-EINVAL, CALL ": outputs of %zu features, the model has %zu",
		    call->weights && call->counts ? count : 0, features);
}

int embeng_weight_gradients(struct embeng *e, struct embeng_batch *b,
			    const struct embeng_gradients *g, float *const *weights,
			    const size_t *counts, size_t count)
{
	struct weigh_call call = {.e = e, .weights = weights, .counts = counts};
	int ret = session_check(e, CALL);
	bool before;

	if (ret)
		return ret;
	ret = touches_open(e, CALL, b, g, &call.given);
	ret = ret ? ret : check_weight_outputs(&call, count);
	if (!ret || e->calls) {
		call.features = calloc(e->model->feature_count + 1, sizeof(*call.features));
		call.readings = calloc(e->model->feature_count + 1, sizeof(*call.readings));
		if (!ret && (!call.features || !call.readings))
			ret = fail(-ENOMEM, CALL ": no memory for %zu features", count);
		/* Over hosts it cannot end on one of them alone. */
		before = ask_allow(!e->calls);
		if (!ret || e->calls)
			ret = weigh_batch(&call, ret);
		ask_allow(before);
		free_weighings(&call);
	}
	touches_close(&call.given);
	return ret;
}
