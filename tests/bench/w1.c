// SPDX-License-Identifier: MIT
/*
 * Workload W1 through the public API: 8 tables of 1 M rows, dim 64, 4096 samples
 * of 20 uniform ids per table and step. Prints lookups and updates per second,
 * and how the time of a training step divides. A program to run, not a test:
 *
 *   build/tests/bench/w1 [CORES] [RUNS] [ROWS PER TABLE]
 */
#include "bench.h"

enum { TABLES = 8, DIM = 64, BATCH = 4096, POOL = 20, BATCHES = 4, IDS = TABLES * BATCH * POOL };

struct bench {
	struct embeng *e;
	struct embeng_batch *batch;
	int32_t *ids[BATCHES][TABLES];
	int64_t *splits;
	float *gradient;
	struct embeng_counter_values base; /* when the timed runs began */
};

static void *buffer(struct embeng *e, size_t bytes)
{
	void *p = embeng_buffer_alloc(e, bytes);

	if (!p)
		check(-1);
	return p;
}

static void bench_open(struct bench *b, const char *device, int64_t rows,
		       struct embeng_optimizer optimizer)
{
	struct embeng_model *model = embeng_model_new();
	struct embeng_error err = { .size = sizeof(err) };

	for (int t = 0; t < TABLES; t++) {
		check(embeng_model_add_table(model, &(struct embeng_table_config){
			.size = sizeof(struct embeng_table_config), .vocabulary_size = rows,
			.dim = DIM, .combiner = EMBENG_SUM, .optimizer = optimizer }));
		check(embeng_model_add_feature(model, &(struct embeng_feature_config){
			.size = sizeof(struct embeng_feature_config), .table = t,
			.max_samples = BATCH, .max_ids = BATCH * POOL }));
	}
	if (embeng_open(device, model, &b->e, &err) < 0) {
		fprintf(stderr, "w1: %s\n", err.text);
		exit(1);
	}
	embeng_model_free(model);
}

static void bench_input(struct bench *b, int64_t rows)
{
	uint64_t state = 20240229;

	b->splits = buffer(b->e, (BATCH + 1) * sizeof(*b->splits));
	b->gradient = buffer(b->e, (size_t)BATCH * DIM * sizeof(float));
	for (int s = 0; s <= BATCH; s++)
		b->splits[s] = (int64_t)s * POOL;
	for (int k = 0; k < BATCH * DIM; k++)
		b->gradient[k] = (float)((double)(next_random(&state) >> 40) / (1 << 24) - 0.5) *
				 1e-2f;
	for (int i = 0; i < BATCHES; i++) {
		for (int t = 0; t < TABLES; t++) {
			b->ids[i][t] = buffer(b->e, BATCH * POOL * sizeof(int32_t));
			for (int k = 0; k < BATCH * POOL; k++)
				b->ids[i][t][k] = (int32_t)(next_random(&state) % (uint64_t)rows);
		}
	}
	b->batch = embeng_batch_new(b->e, EMBENG_TRAIN, 0);
	if (!b->batch)
		check(-1);
}

static double one_step(struct bench *b, int which, enum embeng_mode mode)
{
	struct embeng_activations act = { .size = sizeof(act) };
	const float *gradients[TABLES];
	double begin = now_ms();

	embeng_batch_reset(b->batch, mode);
	for (int t = 0; t < TABLES; t++) {
		check(embeng_batch_ragged_splits(b->batch, t, EMBENG_I32, b->ids[which][t],
						 BATCH * POOL, b->splits, BATCH + 1, NULL, 0));
		gradients[t] = b->gradient;
	}
	check(embeng_enqueue(b->e, b->batch, -1));
	check(embeng_dequeue(b->e, 0, -1, &act));
	if (mode == EMBENG_INFERENCE) {
		check(embeng_release(b->e, &act));
	} else {
		check(embeng_apply_gradients(b->e, &(struct embeng_gradients){
			.size = sizeof(struct embeng_gradients), .count = TABLES,
			.features = gradients }, -1));
		check(embeng_flush(b->e, -1));
	}
	return now_ms() - begin;
}

static struct spread measure(struct bench *b, enum embeng_mode mode, int runs)
{
	double ms[MAX_RUNS];

	for (int i = 0; i < BATCHES; i++)
		one_step(b, i, mode);
	b->base.size = sizeof(b->base);
	check(embeng_counters(b->e, &b->base));
	for (int r = 0; r < runs; r++)
		ms[r] = one_step(b, r % BATCHES, mode);
	return spread_of(ms, runs);
}

static void print_shares(struct bench *b)
{
	struct embeng_counter_values v = { .size = sizeof(v) };
	double check_ns, lookup, partition, update, ring, copy, all;

	check(embeng_counters(b->e, &v));
	check_ns = (double)(v.time_check_ns - b->base.time_check_ns);
	lookup = (double)(v.time_lookup_ns - b->base.time_lookup_ns);
	partition = (double)(v.time_partition_ns - b->base.time_partition_ns);
	update = (double)(v.time_update_ns - b->base.time_update_ns);
	ring = (double)(v.time_ring_ns - b->base.time_ring_ns);
	copy = (double)(v.time_copy_ns - b->base.time_copy_ns);
	all = (check_ns + lookup + partition + update + ring + copy) / 100;
	if (all > 0)
		printf("%-14s check %.1f %%, lookup %.1f %%, partition %.1f %%, update %.1f %%, "
		       "rings %.1f %%, copies %.1f %% (%llu bytes)\n", "", check_ns / all,
		       lookup / all, partition / all, update / all, ring / all, copy / all,
		       (unsigned long long)(v.bytes_copied - b->base.bytes_copied));
}

int main(int argc, char **argv)
{
	int cores = argc > 1 ? atoi(argv[1]) : 1;
	int runs = argc > 2 ? atoi(argv[2]) : 7;
	int64_t rows = argc > 3 ? atoll(argv[3]) : 1000000;
	struct embeng_optimizer optimizers[] = { embeng_sgd(0.01f), embeng_adagrad(0.01f) };
	const char *names[] = { "train SGD", "train Adagrad" };
	char device[64];

	if (cores < 1 || cores > 64 || runs < 1 || runs > MAX_RUNS || rows < 1) {
		fprintf(stderr, "usage: w1 [CORES 1-64] [RUNS 1-%d] [ROWS]\n", MAX_RUNS);
		return 2;
	}
	snprintf(device, sizeof(device), "soft:cores=%d", cores);
	for (size_t o = 0; o < 2; o++) {
		struct bench b = { 0 };

		bench_open(&b, device, rows, optimizers[o]);
		bench_input(&b, rows);
		if (o == 0) {
			spread_print("lookup", measure(&b, EMBENG_INFERENCE, runs), IDS);
			print_shares(&b);
		}
		spread_print(names[o], measure(&b, EMBENG_TRAIN, runs), IDS);
		print_shares(&b);
		embeng_batch_free(b.batch);
		embeng_close(b.e);
	}
	return 0;
}
