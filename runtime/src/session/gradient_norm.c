// SPDX-License-Identifier: MIT
/*
 * The L2 norm of what a step's gradients sum up to, row by row, and the first gradient that is not
 * finite. Ids and gradients are all that it takes, but for tables whose combiner is max, whose rows say
 * who gets a gradient. It is computed here, in f64 and by one thread, and has the same bits
 * everywhere.
 *
 * Batches and gradients are the caller's. Memory lives for one table at a time.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../../engine/kernels/kernels.h"
#include "../../../engine/kernels/root.h"
#include "base/ask.h"
#include "touches.h"

#define CALL "embeng_gradient_norm"

struct norm_call {
	struct embeng *e;
	struct given_gradients *parts;
	size_t count;
	struct held_bags *held; /* [held_count], by part and then by feature */
	size_t held_count;
};

/* Whether the update touches rows of @table for a feature; without gradients they get zeros. */
static bool touches_table(const struct norm_call *call, size_t part, size_t feature, size_t table)
{
	const struct embeng *e = call->e;

	return (size_t)e->model->features[feature].table == table &&
	       (session_gradient(e, call->parts[part].g, feature) ||
		!session_leaves_alone(e, feature));
}

/* A feature of a part with gradients whose rows have holders. */
static bool is_held(const struct norm_call *call, size_t part, uint32_t feature)
{
	const struct given_gradients *given = &call->parts[part];

	return holders_are_wanted(given->b, feature) &&
	       session_gradient(call->e, given->g, feature);
}

static const uint32_t *holders_of(const struct norm_call *call, size_t part, uint32_t feature)
{
	for (size_t i = 0; i < call->held_count; i++)
		if (call->held[i].b == call->parts[part].b && call->held[i].feature == feature)
			return call->held[i].holders;
	return NULL;
}

static size_t most_touches(const struct norm_call *call, size_t table)
{
	size_t most = 0;

	for (size_t k = 0; k < call->count; k++)
		for (uint32_t f = 0; f < call->e->model->feature_count; f++)
			if (touches_table(call, k, f, table))
				most += touches_most(call->parts[k].b, f);
	return most;
}

static int list_table(const struct norm_call *call, size_t table, struct touch *to, size_t *count)
{
	int ret = 0;

	*count = 0;
	for (size_t k = 0; k < call->count; k++) {
		for (uint32_t f = 0; !ret && f < call->e->model->feature_count; f++) {
			const struct given_gradients *part = &call->parts[k];
			size_t n = 0;

			if (touches_table(call, k, f, table))
				ret = touches_list(part->b, f,
						   session_gradient(call->e, part->g, f),
						   holders_of(call, k, f), to + *count, &n);
			*count += n;
		}
	}
	return ret;
}

/*
 * Adds the squares of one row's sum to those of each column. @touched: out, touches of that row. Return:
 * 0, or -EINTR.
 */
static int add_row(const struct table *t, const struct touch *touches, size_t count, double *sum,
		   double *squares, size_t *touched)
{
	size_t dim = (size_t)t->dim, n = 0;
	double share;
	int ret = 0;

	memset(sum, 0, dim * sizeof(*sum));
	for (; !ret && n < count && touches[n].row == touches->row; n++) {
		const float *gradient = touches[n].gradient;
		const uint32_t *holders = touches[n].holders;
		double gain = touches[n].gain;

		for (size_t c = 0; gradient && c < dim; c++)
			if (!holders || holders[c] == touches[n].place)
				sum[c] += gain * gradient[c];
		ret = touches_ask(n);
	}
	share = t->optimizer.scale_by_frequency ? 1 / (double)n : 1;
	for (size_t c = 0; c < dim; c++) {
		double x = sum[c] * share;

		squares[c] += x * x;
	}
	*touched = n;
	return ret;
}

static int sum_squares(const struct table *t, const struct touch *touches, size_t count,
		       double *columns, double *square)
{
	size_t dim = (size_t)t->dim;
	double *sum = columns, *squares = columns + dim, total = 0;
	int ret = 0;

	memset(squares, 0, dim * sizeof(*squares));
	for (size_t i = 0, row = 0, touched = 0; !ret && i < count; i += touched, row++) {
		ret = add_row(t, touches + i, count - i, sum, squares, &touched);
		ret = ret ? ret : touches_ask(row);
	}
	for (size_t c = 0; c < dim; c++)
		total += squares[c];
	/* The sign of a NaN is not the same on every processor. */
	*square = isnan(total) ? (double)NAN : total;
	return ret;
}

static int square_table(const struct norm_call *call, size_t table, double *square)
{
	const struct table *t = &call->e->model->tables[table];
	size_t most = most_touches(call, table), count;
	struct touch *touches;
	double *columns;
	int ret = 0;

	*square = 0;
	if (!most)
		return 0;
	touches = reallocarray(NULL, most, 2 * sizeof(*touches));
	columns = reallocarray(NULL, (size_t)t->dim, 2 * sizeof(*columns));
	if (!touches || !columns)
		ret = fail(-ENOMEM, CALL ": no memory for the %zu ids of table %s", most, t->name);
	ret = ret ? ret : list_table(call, table, touches, &count);
	ret = ret ? ret : touches_sort(touches, touches + most, count, (uint64_t)t->rows);
	ret = ret ? ret : sum_squares(t, touches, count, columns, square);
	free(touches);
	free(columns);
	return ret;
}

/* All that are counted, also those that reach no row: an update would refuse them. */
static void find_non_finite(const struct norm_call *call, struct embeng_gradient_norms *norms)
{
	const struct embeng *e = call->e;

	for (size_t k = 0; k < call->count; k++) {
		for (uint32_t f = 0; f < e->model->feature_count; f++) {
			const float *gradient = session_gradient(e, call->parts[k].g, f);
			uint64_t count = call->parts[k].elements[f], at = count;
			size_t samples = call->parts[k].b->inputs[f].samples;

			if (gradient)
				at = kernel_finite_until(e->kernels, gradient, count);
			if (at == count)
				continue;
			norms->non_finite = 1;
			norms->part = k;
			norms->feature = (int)f;
			norms->sample = (size_t)at / ((size_t)count / samples);
			norms->element = (size_t)at;
			return;
		}
	}
}

static int compute_norms(const struct norm_call *call, const struct embeng_gradient_norms *given,
			 double *squares, struct embeng_gradient_norms *out)
{
	size_t tables = call->e->model->table_count;
	double total = 0;
	int ret = 0;

	for (size_t t = 0; !ret && t < tables; t++) {
		ret = square_table(call, t, &squares[t]);
		total += squares[t];
	}
	if (ret)
		return ret;
	*out = (struct embeng_gradient_norms){
		.size = given->size,
		.tables = given->tables,
		.table_count = given->table_count,
		.feature = -1,
		.norm = isnan(total) ? (double)NAN : root64(total),
	};
	for (size_t t = 0; out->tables && t < tables; t++)
		out->tables[t] = isnan(squares[t]) ? (double)NAN : root64(squares[t]);
	find_non_finite(call, out);
	return 0;
}

static int find_step_holders(struct norm_call *call)
{
	const struct embeng *e = call->e;
	size_t most = 0;

	for (size_t k = 0; k < call->count; k++)
		for (uint32_t f = 0; f < e->model->feature_count; f++)
			most += is_held(call, k, f);
	call->held = calloc(most + 1, sizeof(*call->held));
	if (!call->held)
		return fail(-ENOMEM, CALL ": no memory for the bags of %zu features", most);
	for (size_t k = 0; k < call->count; k++)
		for (uint32_t f = 0; f < e->model->feature_count; f++)
			if (is_held(call, k, f))
				call->held[call->held_count++] = (struct held_bags){
					.b = call->parts[k].b, .feature = f};
	return holders_find(call->e, CALL, call->held, call->held_count);
}

static int open_parts(struct norm_call *call, struct embeng_batch *const *batches,
		      const struct embeng_gradients *const *gradients, size_t count)
{
	int ret = 0;

	call->parts = calloc(count + 1, sizeof(*call->parts));
	if (!call->parts)
		return fail(-ENOMEM, CALL ": no memory for %zu batches", count);
	for (size_t k = 0; !ret && k < count; k++, call->count++)
		ret = touches_open(call->e, CALL, batches[k], gradients[k], &call->parts[k]);
	return ret;
}

static void close_parts(struct norm_call *call)
{
	for (size_t k = 0; k < call->count; k++)
		touches_close(&call->parts[k]);
	free(call->parts);
	holders_free(call->held, call->held_count);
	free(call->held);
}

static int check_norms(const struct embeng *e, struct embeng_batch *const *batches,
		       const struct embeng_gradients *const *gradients, size_t count,
		       const struct embeng_gradient_norms *norms)
{
	int ret = session_check_alone(e, CALL);

	if (ret)
		return ret;
	if (!norms || norms->size < sizeof(*norms))
		return fail(-EINVAL, CALL ": norms must be given, with their size");
	if (count && (!batches || !gradients))
		return fail(-EINVAL, CALL ": %s of %zu parts are NULL",
			    batches ? "gradients" : "batches", count);
	if (norms->tables && norms->table_count != e->model->table_count)
		return fail(-EINVAL, CALL ": room for norms of %zu tables, the model has %zu",
			    norms->table_count, e->model->table_count);
	return 0;
}

int embeng_gradient_norm(struct embeng *e, struct embeng_batch *const *batches,
			 const struct embeng_gradients *const *gradients, size_t count,
			 struct embeng_gradient_norms *norms)
{
	int ret = check_norms(e, batches, gradients, count, norms);
	struct norm_call call = {.e = e};
	double *squares;
	bool before;

	if (ret)
		return ret;
	squares = calloc(e->model->table_count + 1, sizeof(*squares));
	if (!squares)
		return fail(-ENOMEM, CALL ": no memory for the norms of %zu tables",
			    e->model->table_count);
	ret = open_parts(&call, batches, gradients, count);
	before = ask_allow(true);
	ret = ret ? ret : find_step_holders(&call);
	ret = ret ? ret : compute_norms(&call, norms, squares, norms);
	ask_allow(before);
	close_parts(&call);
	free(squares);
	return ret;
}
