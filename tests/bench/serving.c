// SPDX-License-Identifier: MIT
/*
 * Lookups on the CPU from a mapped checkpoint, one thread, beside the same lookups of the
 * engine on one core: 4096 samples of 20 uniform ids, dim 64, runs in turn. A program to
 * run, not a test:
 *
 *   build/tests/bench/serving FOLDER [ROWS] [RUNS]      FOLDER takes ROWS * 256 bytes
 */
#include "../../runtime/cli/frame/random.h"
#include "bench.h"

enum { DIM = 64, BATCH = 4096, POOL = 20, BATCHES = 4, IDS = BATCH * POOL };

struct bench {
	struct embeng *e;
	struct embeng_serving *serving;
	struct embeng_batch *batch;
	int64_t rows;
	int32_t *ids[BATCHES];
	int64_t splits[BATCH + 1];
	float out[BATCH * DIM];
};

static void bench_open(struct bench *b, const char *folder, uint64_t shard_bytes, uint32_t flags)
{
	struct embeng_model *model = embeng_model_new();
	const struct embeng_save_options options = {.size = sizeof(options),
						    .shard_bytes = shard_bytes};

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
	check(embeng_serving_open(folder, NULL, flags, &b->serving, NULL));
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

static double by_engine(struct bench *b, int which)
{
	struct embeng_activations act = {.size = sizeof(act)};
	double begin = now_ms();

	embeng_batch_reset(b->batch, EMBENG_INFERENCE);
	check(embeng_batch_ragged_splits(b->batch, 0, EMBENG_I32, b->ids[which], IDS, b->splits,
					 BATCH + 1, NULL, 0));
	check(embeng_enqueue(b->e, b->batch, -1));
	check(embeng_dequeue(b->e, 0, -1, &act));
	check(embeng_release(b->e, &act));
	return now_ms() - begin;
}

static double by_serving(struct bench *b, int which)
{
	const struct embeng_serving_input in = {.size = sizeof(in),
						.form = EMBENG_RAGGED,
						.type = EMBENG_I32,
						.ids = b->ids[which],
						.id_count = IDS,
						.row_splits = b->splits,
						.split_count = BATCH + 1,
						.out = b->out,
						.out_elements = BATCH * DIM};
	double begin = now_ms();

	check(embeng_serving_lookup(b->serving, &in, 1));
	return now_ms() - begin;
}

/* One bag of 20 at a time, as requests come in. */
static double one_by_one(struct bench *b, int which)
{
	double begin = now_ms();

	for (int s = 0; s < BATCH; s++) {
		const struct embeng_serving_input in = {.size = sizeof(in),
							.form = EMBENG_RAGGED,
							.type = EMBENG_I32,
							.ids = b->ids[which] + s * POOL,
							.id_count = POOL,
							.row_splits = b->splits,
							.split_count = 2,
							.out = b->out,
							.out_elements = DIM};

		check(embeng_serving_lookup(b->serving, &in, 1));
	}
	return now_ms() - begin;
}

static void measure(struct bench *b, int runs)
{
	double engine[RUNS_MOST], serving[RUNS_MOST], single[RUNS_MOST];

	for (int r = -BATCHES; r < runs; r++) {
		int which = (r + BATCHES) % BATCHES, at = r < 0 ? 0 : r;

		engine[at] = by_engine(b, which);
		serving[at] = by_serving(b, which);
		single[at] = one_by_one(b, which);
	}
	spread_print("engine", spread_of(engine, runs), IDS);
	spread_print("serving", spread_of(serving, runs), IDS);
	spread_print("one by one", spread_of(single, runs), IDS);
}

int main(int argc, char **argv)
{
	static struct bench b;
	int runs = argc > 3 ? atoi(argv[3]) : 21;
	/* chunks checked at open, checked on first use, and that in eight shards */
	static const struct {
		const char *title;
		uint64_t parts;
		uint32_t flags;
	} kinds[] = {
		{"verified", 1, EMBENG_SERVING_VERIFY},
		{"on first use", 1, 0},
		{"on first use, 8 shards", 8, 0},
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
		puts(kinds[i].title);
		measure(&b, runs);
		embeng_batch_free(b.batch);
		embeng_serving_close(b.serving);
		embeng_close(b.e);
	}
	return 0;
}
