// SPDX-License-Identifier: MIT
/*
 * Partitioned CSR of the five workloads through the public API: ids per second over 64 cores,
 * 4 of them the device's, each table a stack of its own; and what each option costs, on W1. A
 * program to run, not a test:
 *
 *   build/tests/bench-partition [CORES] [RUNS] [WORKLOAD]
 */
#include <math.h>
#include <string.h>

#include "bench.h"

enum { GRID = 64, DEVICE = 4, MAX_TABLES = 26, BATCHES = 4 };

struct workload {
	const char *name;
	int tables;
	int64_t rows;
	int samples, pool;
	double zipf; /* 0: uniform */
};

/* W3 has Criteo-Kaggle's tables; see criteo[]. */
static const struct workload workloads[] = {
	{"W1", 8, 1000000, 4096, 20, 0},   {"W2", 8, 1000000, 4096, 20, 1.05},
	{"W3", 26, 0, 2048, 1, 1.05},	   {"W4", 1, 16000000, 16384, 50, 1.05},
	{"W5", 1, 4000000, 131072, 1, 0},
};

static const int64_t criteo[MAX_TABLES] = {
	1460, 583, 10000000, 1250000, 305, 24, 12517, 633, 10, 93145, 5683, 1250000, 3194,
	27, 14992, 1250000, 10, 5652, 2173, 10, 1250000, 18, 15, 286181, 105, 142572};

struct bench {
	const struct workload *w;
	struct embeng *e;
	struct embeng_batch *batch;
	int32_t *ids[BATCHES][MAX_TABLES];
	int64_t *splits;
	float *weights;
	struct embeng_partitioned out;
	uint32_t max_ids[GRID], max_unique[GRID];
	uint64_t required[DEVICE], first[DEVICE], end[DEVICE];
};

/* What is done beside the plain thing. */
struct variant {
	const char *name;
	int weighted, statistics, combiner, copied, stacked;
	struct embeng_partition_options options;
};

static int64_t rows_of(const struct workload *w, int table)
{
	return w->rows ? w->rows : criteo[table];
}

static void *buffer(struct embeng *e, size_t bytes)
{
	void *p = embeng_buffer_alloc(e, bytes);

	if (!p)
		check(-1);
	return p;
}

/* Rank of the truncated Zipf law, by its inverse on the continuous line; ranks are scattered. */
static int64_t draw(uint64_t *state, int64_t rows, double zipf)
{
	double u = (double)(next_random(state) >> 11) / 9007199254740992.0, s = 1 - zipf;
	int64_t rank;

	if (zipf == 0)
		return (int64_t)(next_random(state) % (uint64_t)rows);
	rank = (int64_t)pow(u * (pow((double)rows + 1, s) - 1) + 1, 1 / s) - 1;
	rank = rank < 0 ? 0 : rank >= rows ? rows - 1 : rank;
	return (int64_t)((uint64_t)rank * 2654435761u % (uint64_t)rows);
}

static void bench_open(struct bench *b, const char *device, enum embeng_combiner_name combiner)
{
	struct embeng_model *model = embeng_model_new();
	struct embeng_error err = {.size = sizeof(err)};

	for (int t = 0; t < b->w->tables; t++) {
		check(embeng_model_add_table(model, &(struct embeng_table_config){
			.size = sizeof(struct embeng_table_config), .dim = 1,
			.vocabulary_size = rows_of(b->w, t), .combiner = combiner,
			.initializer = {.kind = EMBENG_INIT_CONSTANT}}));
		check(embeng_model_add_feature(model, &(struct embeng_feature_config){
			.size = sizeof(struct embeng_feature_config), .table = t}));
	}
	if (embeng_open(device, model, &b->e, &err) < 0) {
		fprintf(stderr, "partition: %s\n", err.text);
		exit(1);
	}
	embeng_model_free(model);
}

static void bench_input(struct bench *b)
{
	const struct workload *w = b->w;
	size_t count = (size_t)w->samples * (size_t)w->pool, most = count * (size_t)w->tables;
	uint64_t state = 20240229;

	b->splits = buffer(b->e, ((size_t)w->samples + 1) * sizeof(*b->splits));
	for (int s = 0; s <= w->samples; s++)
		b->splits[s] = (int64_t)s * w->pool;
	b->weights = buffer(b->e, count * sizeof(*b->weights));
	for (size_t k = 0; k < count; k++)
		b->weights[k] = (float)(next_random(&state) >> 40) / (1 << 24);
	for (int i = 0; i < BATCHES; i++) {
		for (int t = 0; t < w->tables; t++) {
			b->ids[i][t] = buffer(b->e, count * sizeof(int32_t));
			for (size_t k = 0; k < count; k++)
				b->ids[i][t][k] = (int32_t)draw(&state, rows_of(w, t), w->zipf);
		}
	}
	b->batch = embeng_batch_new(b->e, EMBENG_INFERENCE, 0);
	b->out.capacity = most + 8 * 64 * GRID * DEVICE;
	b->out.row_pointer_capacity = 64 * GRID * DEVICE;
}

static void bench_output(struct bench *b, const struct variant *v)
{
	struct embeng_partitioned *out = &b->out;
	size_t items = out->capacity * 4, pointers = out->row_pointer_capacity * 4;

	out->size = sizeof(*out);
	out->row_pointers = v->copied ? malloc(pointers) : buffer(b->e, pointers);
	out->token_ids = v->copied ? malloc(items) : buffer(b->e, items);
	out->sample_ids = v->copied ? malloc(items) : buffer(b->e, items);
	out->gains = v->copied ? malloc(items) : buffer(b->e, items);
	out->max_ids = v->statistics ? b->max_ids : NULL;
	out->max_unique_ids = v->statistics ? b->max_unique : NULL;
	out->required_buffer = v->statistics ? b->required : NULL;
	out->core_first = v->statistics ? b->first : NULL;
	out->core_end = v->statistics ? b->end : NULL;
}

static void add(struct bench *b, const struct variant *v, int which, int table)
{
	const struct workload *w = b->w;
	size_t count = (size_t)w->samples * (size_t)w->pool;
	int64_t shape[] = {w->samples};

	if (w->pool == 1 && !v->weighted)
		check(embeng_batch_dense(b->batch, table, EMBENG_I32, b->ids[which][table], count,
					 shape, 1));
	else
		check(embeng_batch_ragged_splits(b->batch, table, EMBENG_I32, b->ids[which][table],
						 count, b->splits, (size_t)w->samples + 1,
						 v->weighted ? b->weights : NULL,
						 v->weighted ? count : 0));
}

/* All tables of a batch, one call each or, stacked, one for all. */
static double one_step(struct bench *b, const struct variant *v, int which)
{
	double begin = now_ms();

	embeng_batch_reset(b->batch, EMBENG_INFERENCE);
	for (int t = 0; t < b->w->tables; t++) {
		if (!v->stacked)
			embeng_batch_reset(b->batch, EMBENG_INFERENCE);
		add(b, v, which, t);
		if (!v->stacked || t + 1 == b->w->tables)
			check(embeng_partition(b->e, b->batch, &v->options, &b->out));
	}
	return now_ms() - begin;
}

static void bench_variant(const struct workload *w, const char *device, const struct variant *v,
			  int runs)
{
	static struct bench b;
	double ms[MAX_RUNS], ids = (double)w->tables * w->samples * w->pool;
	struct spread s;

	memset(&b, 0, sizeof(b));
	b.w = w;
	bench_open(&b, device, (enum embeng_combiner_name)v->combiner);
	bench_input(&b);
	bench_output(&b, v);
	for (int i = 0; i < BATCHES; i++)
		one_step(&b, v, i);
	for (int i = 0; i < runs; i++)
		ms[i] = one_step(&b, v, i % BATCHES);
	s = spread_of(ms, runs);
	printf("%s %-34s %7.3f ms (%.3f to %.3f)  %6.1f M ids/s  minibatches %u, dropped %llu\n",
	       w->name, v->name, s.median, s.min, s.max, ids / s.median / 1e3, b.out.minibatches,
	       (unsigned long long)b.out.dropped_ids);
	embeng_batch_free(b.batch);
	if (v->copied) {
		free(b.out.row_pointers);
		free(b.out.token_ids);
		free(b.out.sample_ids);
		free(b.out.gains);
	}
	embeng_close(b.e);
}

/* Row pointers packed, so that the buffer is as long as the ids and not as the limit. */
static struct variant plain(const char *name)
{
	return (struct variant){
		.name = name, .weighted = 1, .statistics = 1, .combiner = EMBENG_SUM,
		.options = {.size = sizeof(struct embeng_partition_options),
			    .flavour = EMBENG_PARTITION_TF, .sparse_cores = GRID,
			    .cores_per_device = DEVICE}};
}

static void bench_options(const struct workload *w, const char *device, int runs)
{
	struct variant v = plain("without weights");

	v.weighted = 0;
	bench_variant(w, device, &v, runs);
	v.statistics = 0;
	v.name = "without weights and statistics";
	bench_variant(w, device, &v, runs);
	v = plain("mean");
	v.combiner = EMBENG_MEAN;
	bench_variant(w, device, &v, runs);
	v = plain("jax");
	v.options.flavour = EMBENG_PARTITION_JAX;
	bench_variant(w, device, &v, runs);
	v = plain("output copied");
	v.copied = 1;
	bench_variant(w, device, &v, runs);
	v = plain("all tables stacked");
	v.stacked = 1;
	bench_variant(w, device, &v, runs);
	v = plain("dropping, jax, limit 300");
	v.options.flavour = EMBENG_PARTITION_JAX;
	v.options.allow_id_dropping = 1;
	v.options.max_ids_per_partition = 300;
	bench_variant(w, device, &v, runs);
	v = plain("minibatches, div, limit 200");
	v.options.minibatching = 1;
	v.options.max_ids_per_partition = 200;
	bench_variant(w, device, &v, runs);
	v.name = "minibatches, hash, limit 200";
	v.options.bucket = EMBENG_PARTITION_BUCKET_HASH;
	bench_variant(w, device, &v, runs);
}

int main(int argc, char **argv)
{
	int cores = argc > 1 ? atoi(argv[1]) : 1, runs = argc > 2 ? atoi(argv[2]) : 15;
	const char *only = argc > 3 ? argv[3] : NULL;
	char device[64];

	if (cores < 1 || runs < 1 || runs > MAX_RUNS) {
		fprintf(stderr, "usage: bench-partition [CORES] [RUNS up to %d] [WORKLOAD]\n",
			MAX_RUNS);
		return 2;
	}
	snprintf(device, sizeof(device), "soft:cores=%d,memory=1G", cores);
	for (size_t i = 0; i < sizeof(workloads) / sizeof(workloads[0]); i++) {
		struct variant v = plain("weights and statistics");

		if (only && strcmp(only, workloads[i].name))
			continue;
		bench_variant(&workloads[i], device, &v, runs);
		if (!i)
			bench_options(&workloads[i], device, runs);
	}
	return 0;
}
