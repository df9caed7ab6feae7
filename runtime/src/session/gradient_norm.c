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
#include "norm.h"

#define CALL "embeng_gradient_norm"

bool norm_touches(const struct norm_call *call, size_t part, size_t feature, size_t table)
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

const uint32_t *norm_holders(const struct norm_call *call, size_t part, uint32_t feature)
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
			if (norm_touches(call, k, f, table))
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

			if (norm_touches(call, k, f, table))
				ret = touches_list(part->b, f,
						   session_gradient(call->e, part->g, f),
						   norm_holders(call, k, f), to + *count, &n);
			*count += n;
		}
	}
	return ret;
}

/*
 * Adds the squares of one row's sum to those of each column. @touched: out, touches of that row. Return:
 * 0, or -EINTR.
 */
static int add_row(const struct table *t, const struct touch *touches, size_t count, size_t dim,
		   double *columns, size_t *touched)
{
	double *sum = columns, *squares = columns + dim;
	size_t n = 0;
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

int norm_add_columns(const struct table *t, struct touch *touches, size_t count, size_t dim,
		     double *columns)
{
	int ret = touches_sort(touches, touches + count, count, (uint64_t)t->rows);

	memset(columns + dim, 0, dim * sizeof(*columns));
	for (size_t i = 0, row = 0, touched = 0; !ret && i < count; i += touched, row++) {
		ret = add_row(t, touches + i, count - i, dim, columns, &touched);
		ret = ret ? ret : touches_ask(row);
	}
	return ret;
}

double norm_sum_columns(const double *squares, size_t dim)
{
	double total = 0;

	for (size_t c = 0; c < dim; c++)
		total += squares[c];
	/* The sign of a NaN is not the same on every processor. */
	return isnan(total) ? (double)NAN : total;
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
	ret = ret ? ret : norm_add_columns(t, touches, count, (size_t)t->dim, columns);
	if (!ret)
		*square = norm_sum_columns(columns + t->dim, (size_t)t->dim);
	free(touches);
	free(columns);
	return ret;
}

struct norm_fault norm_find_fault(const struct norm_call *call)
{
	const struct embeng *e = call->e;

	for (size_t k = 0; k < call->count; k++) {
		for (uint32_t f = 0; f < e->model->feature_count; f++) {
			const float *gradient = session_gradient(e, call->parts[k].g, f);
			uint64_t count = call->parts[k].elements[f], at = count;
			size_t samples = call->parts[k].b->inputs[f].samples;

			if (gradient)
				at = kernel_finite_until(e->kernels, gradient, count);
			if (at < count)
				return (struct norm_fault){1, k, f, at / (count / samples), at};
		}
	}
	return (struct norm_fault){0};
}

/* @squares: out: [tables] */
static int square_tables(const struct norm_call *call, double *squares, struct norm_fault *fault)
{
	int ret = 0;

	for (size_t t = 0; !ret && t < call->e->model->table_count; t++)
		ret = square_table(call, t, &squares[t]);
	*fault = norm_find_fault(call);
	return ret;
}

static void tell_norms(const struct embeng *e, const double *squares,
		       const struct norm_fault *fault, struct embeng_gradient_norms *norms)
{
	const struct embeng_gradient_norms given = *norms;
	size_t tables = e->model->table_count;
	double total = 0;

	for (size_t t = 0; t < tables; t++)
		total += squares[t];
	*norms = (struct embeng_gradient_norms){
		.size = given.size,
		.tables = given.tables,
		.table_count = given.table_count,
		.norm = isnan(total) ? (double)NAN : root64(total),
		.non_finite = (int)fault->found,
		.part = (size_t)fault->part,
		.feature = fault->found ? (int)fault->feature : -1,
		.sample = (size_t)fault->sample,
		.element = (size_t)fault->element,
	};
	for (size_t t = 0; norms->tables && t < tables; t++)
		norms->tables[t] = isnan(squares[t]) ? (double)NAN : root64(squares[t]);
}

/* Over hosts all of them look for holders if the model has a table of the combiner max. */
static bool looks_for_largest(const struct embeng *e)
{
	bool has = false;

	for (size_t f = 0; f < e->model->feature_count; f++)
		has |= e->model->features[f].largest;
	return has;
}

static int list_held(struct norm_call *call)
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
	return 0;
}

static int find_step_holders(struct norm_call *call, int status)
{
	int ret = status ? status : list_held(call);

	if (call->e->calls && !looks_for_largest(call->e))
		return ret;
	return holders_find(call->e, CALL, call->held, call->held_count, ret);
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

static int square_step(struct norm_call *call, int status, double *squares,
		       struct norm_fault *fault)
{
	const bool alone = !call->e->calls;
	/* Over hosts it cannot end on one of them alone. */
	const bool before = ask_allow(alone);
	int ret = find_step_holders(call, status);

	if (!alone)
		ret = call->e->calls->norm(call, ret, squares, fault);
	else
		ret = ret ? ret : square_tables(call, squares, fault);
	ask_allow(before);
	return ret;
}

int embeng_gradient_norm(struct embeng *e, struct embeng_batch *const *batches,
			 const struct embeng_gradients *const *gradients, size_t count,
			 struct embeng_gradient_norms *norms)
{
	struct norm_call call = {.e = e};
	struct norm_fault fault = {0};
	int ret = session_check(e, CALL);
	double *squares;

	if (ret)
		return ret;
	ret = check_norms(e, batches, gradients, count, norms);
	if (ret && !e->calls)
		return ret;
	squares = calloc(e->model->table_count + 1, sizeof(*squares));
	if (!ret && !squares)
		ret = fail(-ENOMEM, CALL ": no memory for the norms of %zu tables",
			   e->model->table_count);
	ret = ret ? ret : open_parts(&call, batches, gradients, count);
	ret = square_step(&call, ret, squares, &fault);
	if (!ret)
		tell_norms(e, squares, &fault, norms);
	close_parts(&call);
	free(squares);
	return ret;
}
