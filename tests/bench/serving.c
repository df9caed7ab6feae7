// SPDX-License-Identifier: MIT
/*
 * Lookups on the CPU from a checkpoint and from a live engine, one thread, beside the same lookups
 * of the engine on one core: 4096 samples of 20 uniform ids, dim 64, runs in turn, and bags of a few
 * ids one at a time. A program to run, not a test:
 *
 *   build/tests/bench/serving FOLDER [ROWS] [RUNS]      FOLDER takes ROWS * 256 bytes
 */
#include "../../runtime/cli/frame/random.h"
#include "bench.h"

enum { DIM = 64, BATCH = 4096, POOL = 20, BATCHES = 4, IDS = BATCH * POOL, SINGLES = 2001 };

struct bench {
	struct embeng *e;
	struct embeng_serving *serving, *live;
	struct embeng_batch *batch;
	int64_t rows;
	int32_t *ids[BATCHES];
	int64_t splits[BATCH + 1];
	float out[BATCH * DIM];
	double open_ms;
};

static void bench_open(struct bench *b, const char *folder, uint64_t shard_bytes, uint32_t flags)
{
	struct embeng_model *model = embeng_model_new();
	const struct embeng_save_options options = {.size = sizeof(options),
						    .shard_bytes = shard_bytes};
	double begin;

	check(embeng_model_add_table(
		model, &(struct embeng_table_config){.size = sizeof(struct embeng_table_config),
						     .vocabulary_size = b->rows,
						     .dim = DIM,
						     .combiner = EMBENG_MEAN}));
	check(embeng_model_add_feature(
		model,
		&(struct embeng_feature_config){.size = sizeof(struct embeng_feature_config)}));
	check(embeng_open("soft:cores=1", model, &b->e, NULL));
	embeng_model_free(model);
	check(embeng_save(b->e, folder, &options));
	begin = now_ms();
	check(embeng_serving_open(folder, NULL, flags, &b->serving, NULL));
	b->open_ms = now_ms() - begin;
	check(embeng_serving_live(b->e, NULL, &b->live, NULL));
	b->batch = embeng_batch_new(b->e, EMBENG_INFERENCE, 0);
	check(b->batch ? 0 : -1);
}

static void bench_input(struct bench *b)
{
	struct random random = {20240229};

	for (int s = 0; s <= BATCH; s++)
		b->splits[s] = (int64_t)s * POOL;
	for (int i = 0; i < BATCHES; i++) {
		b->ids[i] = embeng_buffer_alloc(b->e, IDS * sizeof(int32_t));
		check(b->ids[i] ? 0 : -1);
		for (int k = 0; k < IDS; k++)
			b->ids[i][k] = (int32_t)(random_next(&random) % (uint64_t)b->rows);
	}
}

static double by_engine(struct bench *b, const int32_t *ids, size_t samples, size_t count)
{
	struct embeng_activations act = {.size = sizeof(act)};
	double begin = now_ms();

	embeng_batch_reset(b->batch, EMBENG_INFERENCE);
	check(embeng_batch_ragged_splits(b->batch, 0, EMBENG_I32, ids, count,
					 samples > 1 ? b->splits : (int64_t[]){0, (int64_t)count},
					 samples + 1, NULL, 0));
	check(embeng_enqueue(b->e, b->batch, -1));
	check(embeng_dequeue(b->e, 0, -1, &act));
	check(embeng_release(b->e, &act));
	return now_ms() - begin;
}

static double by_serving(struct bench *b, const struct embeng_serving *serving, const int32_t *ids,
			 size_t samples, size_t count)
{
	const int64_t one[] = {0, (int64_t)count};
	const struct embeng_serving_input in = {.size = sizeof(in),
						.form = EMBENG_RAGGED,
						.type = EMBENG_I32,
						.ids = ids,
						.id_count = count,
						.row_splits = samples > 1 ? b->splits : one,
						.split_count = samples + 1,
						.out = b->out,
						.out_elements = BATCH * DIM};
	double begin = now_ms();

	check(embeng_serving_lookup(serving, &in, 1));
	return now_ms() - begin;
}

static void print_ratio(const char *what, struct spread s, struct spread engine)
{
	spread_print(what, s, IDS);
	printf("%14s %7.2f / %7.2f times the engine's (of minima / of medians)\n", "",
	       s.min / engine.min, s.median / engine.median);
}

/* Turns of the engine and @serving; each has other ids than the one before it, whose rows are warm. */
static void measure_beside(struct bench *b, const struct embeng_serving *serving, const char *what,
			   int runs)
{
	double engine[RUNS_MOST], served[RUNS_MOST];
	struct spread s;

	for (int r = -BATCHES; r < runs; r++) {
		const int turn = r + BATCHES, at = r < 0 ? 0 : r;

		engine[at] = by_engine(b, b->ids[turn % BATCHES], BATCH, IDS);
		served[at] = by_serving(b, serving, b->ids[(turn + 2) % BATCHES], BATCH, IDS);
	}
	s = spread_of(engine, runs);
	spread_print("engine", s, IDS);
	print_ratio(what, spread_of(served, runs), s);
}

static void measure(struct bench *b, int runs)
{
	measure_beside(b, b->serving, "serving", runs);
	measure_beside(b, b->live, "live", runs);
}

/* Bags that come one at a time, as requests do, each of other rows. */
static void measure_single(struct bench *b)
{
	static const size_t counts[] = {1, 8, 20, 31, 32, 100, 1000};
	static double engine[SINGLES], serving[SINGLES], live[SINGLES];

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		size_t n = counts[i];

		for (int r = 0; r < SINGLES; r++) {
			size_t at = (size_t)r * n % (IDS - n);

			engine[r] = by_engine(b, b->ids[0] + at, 1, n) * 1e3;
			serving[r] = by_serving(b, b->serving, b->ids[1] + at, 1, n) * 1e3;
			live[r] = by_serving(b, b->live, b->ids[2] + at, 1, n) * 1e3;
		}
		struct spread e = spread_of(engine, SINGLES), s = spread_of(serving, SINGLES),
			      l = spread_of(live, SINGLES);

		printf("a bag of %4zu, us (min/median): engine %6.2f / %6.2f, serving %6.2f / "
		       "%6.2f, live %6.2f / %6.2f\n",
		       n, e.min, e.median, s.min, s.median, l.min, l.median);
	}
}

int main(int argc, char **argv)
{
	static struct bench b;
	int runs = argc > 3 ? atoi(argv[3]) : 21;
	static const struct {
		const char *title;
		uint64_t parts;
		uint32_t flags;
	} kinds[] = {
		{"checked at open", 1, EMBENG_SERVING_VERIFY},
		{"not checked", 1, EMBENG_SERVING_TRUST},
		{"8 shards, copied at open", 8, EMBENG_SERVING_COPY},
		{"checked on first use", 1, 0},
		{"8 shards, checked on first use", 8, 0},
	};

	b.rows = argc > 2 ? atoll(argv[2]) : 1000000;
	if (argc < 2 || runs < 1 || runs > RUNS_MOST || b.rows < 8) {
		fprintf(stderr, "usage: bench-serving FOLDER [ROWS from 8] [RUNS 1-%d]\n",
			RUNS_MOST);
		return 2;
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		bench_open(&b, argv[1], (uint64_t)b.rows * DIM * 4 / kinds[i].parts,
			   kinds[i].flags);
		bench_input(&b);
		printf("%s, opened in %.2f ms\n", kinds[i].title, b.open_ms);
		measure(&b, runs);
		measure_single(&b);
		embeng_batch_free(b.batch);
		embeng_serving_close(b.serving);
		embeng_serving_close(b.live);
		embeng_close(b.e);
	}
	return 0;
}
