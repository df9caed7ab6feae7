// SPDX-License-Identifier: MIT
/*
 * The workloads that are measured, their sizes, and ids drawn by their laws. Criteo-Kaggle's tables
 * are among them; the largest is kept at 10 M rows, the other large ones at 1.25 M.
 *
 * The workloads are constant; ids go into memory of the caller.
 */
#include <math.h>
#include <string.h>

#include "../frame/random.h"
#include "workload.h"

/* Criteo-Kaggle's tables; the largest kept at 10 M rows, the other large ones at 1.25 M. */
#define CRITEO \
	{1460,	583,  10000000, 1250000, 305, 24,     12517,   633,   10, \
	 93145, 5683, 1250000,	3194,	 27,  14992,  1250000, 10,    5652, \
	 2173,	10,   1250000,	18,	 15,  286181, 105,     142572}
#define MILLION 1000000
#define EIGHT_MILLIONS {MILLION, MILLION, MILLION, MILLION, MILLION, MILLION, MILLION, MILLION}

const struct bench_workload bench_workloads[BENCH_WORKLOADS] = {
	{"W1", 8, EIGHT_MILLIONS, 64, 4096, 20, true, LAW_UNIFORM, 0},
	{"W2", 8, EIGHT_MILLIONS, 64, 4096, 20, true, LAW_ZIPF, 1.05},
	{"W3", 26, CRITEO, 128, 2048, 1, true, LAW_ZIPF, 1.05},
	{"W4", 1, {16 * MILLION}, 32, 16384, 50, true, LAW_ZIPF, 1.05},
	{"W5", 1, {4 * MILLION}, 128, 1024, 128, false, LAW_UNIFORM, 0},
	{"W1-zipf1.2", 8, EIGHT_MILLIONS, 64, 4096, 20, true, LAW_ZIPF, 1.2},
	{"W1-same", 8, EIGHT_MILLIONS, 64, 4096, 20, true, LAW_SAME, 0},
};

int bench_workload_find(const char *name)
{
	for (size_t i = 0; i < BENCH_WORKLOADS; i++)
		if (!strcmp(name, bench_workloads[i].name))
			return (int)i;
	return -1;
}

static int64_t scale_count(int64_t n, double scale, int64_t multiple)
{
	int64_t less = (int64_t)((double)n * scale) / multiple * multiple;

	return less < multiple ? multiple : less;
}

struct bench_workload bench_workload_scaled(const struct bench_workload *workload, double scale)
{
	struct bench_workload w = *workload;

	for (int t = 0; t < w.tables; t++)
		w.rows[t] = scale_count(w.rows[t], scale, 1);
	w.samples = scale_count(w.samples, scale, 8);
	return w;
}

struct bench_workload bench_workload_shaped(const struct bench_workload *workload,
					    const struct bench_shape *shape)
{
	struct bench_workload w = *workload;

	if (!(shape->tables | shape->rows | shape->dim | shape->samples | shape->pool))
		return w;
	w.name = "shaped";
	for (int t = w.tables; t < shape->tables; t++)
		w.rows[t] = w.rows[t % workload->tables];
	w.tables = shape->tables ? shape->tables : w.tables;
	for (int t = 0; shape->rows && t < w.tables; t++)
		w.rows[t] = shape->rows;
	w.dim = shape->dim ? shape->dim : w.dim;
	w.samples = shape->samples ? shape->samples : w.samples;
	w.pool = shape->pool ? shape->pool : w.pool;
	return w;
}

size_t bench_table_ids(const struct bench_workload *workload)
{
	return (size_t)(workload->samples * workload->pool);
}

uint64_t bench_step_ids(const struct bench_workload *workload)
{
	return (uint64_t)workload->tables * bench_table_ids(workload);
}

size_t bench_bags(const struct bench_workload *workload)
{
	return (size_t)(workload->samples * (workload->pooled ? 1 : workload->pool));
}

size_t bench_elements(const struct bench_workload *workload)
{
	return bench_bags(workload) * (size_t)workload->dim;
}

/* A number from [0, 1), in steps of 2^-53. */
static double next_uniform(void *arg)
{
	return (double)(random_next(arg) >> 11) * 0x1p-53;
}

/* Integral of x^-s, and what it is the integral of up to; both stay exact near s = 1. */
static double hat_integral(double x, double s)
{
	double log_x = log(x);

	return s == 1 ? log_x : expm1((1 - s) * log_x) / (1 - s);
}

static double hat_inverse(double area, double s)
{
	return s == 1 ? exp(area) : exp(log1p(area * (1 - s)) / (1 - s));
}

/* Rejection-inversion: Hoermann and Derflinger 1996. The hat covers rank k within k +- 1/2. */
int64_t bench_zipf_rank(int64_t rows, double exponent, double (*uniform)(void *arg), void *arg)
{
	double s = exponent, last = hat_integral((double)rows + 0.5, s);
	double first = hat_integral(1.5, s) - 1;

	for (;;) {
		double area = last + uniform(arg) * (first - last), x = hat_inverse(area, s);
		double k = floor(x + 0.5);

		k = k<1 ? 1 : k>(double) rows ? (double)rows : k;
		if (area >= hat_integral(k + 0.5, s) - pow(k, -s))
			return (int64_t)k - 1;
	}
}

/* Hot ranks are scattered over the table: one to one, the prime being larger than any of them. */
static int64_t scatter_rank(int64_t rank, int64_t rows)
{
	return (int64_t)((uint64_t)rank * 2654435761u % (uint64_t)rows);
}

static struct random stream_of(uint64_t seed, uint64_t stream)
{
	struct random r = {seed};

	r.state = random_next(&r) ^ stream * 0xd1342543de82ef95u;
	random_next(&r);
	return r;
}

void bench_draw(const struct bench_workload *workload, int table, int batch, uint64_t seed,
		int64_t *ids, size_t count)
{
	int64_t rows = workload->rows[table];
	struct random r = stream_of(seed, (uint64_t)batch << 32 | (uint64_t)(table + 1));

	for (size_t k = 0; k < count; k++) {
		if (workload->law == LAW_ZIPF)
			ids[k] = scatter_rank(
				bench_zipf_rank(rows, workload->exponent, next_uniform, &r), rows);
		else if (workload->law == LAW_SAME)
			ids[k] = rows / 2;
		else
			ids[k] = (int64_t)(random_next(&r) % (uint64_t)rows);
	}
}

void bench_draw_floats(uint64_t seed, uint64_t stream, float *values, size_t count)
{
	struct random r = stream_of(seed, stream << 48);

	for (size_t k = 0; k < count; k++)
		values[k] = (float)(random_next(&r) >> 40) * 0x1p-24f;
}
