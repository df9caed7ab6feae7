// SPDX-License-Identifier: MIT
/*
 * The calls that ask for no order beside those that they stand for, in turn, on one core of the soft
 * device: lookups into the caller's memory and live lookups beside a lookup with its view, an update
 * beside a whole step, norms and gradients of weights, and one call for 26 features beside 26 calls. A program to run, not a test:
 *
 *   build/tests/bench/free_order [ROWS] [RUNS]
 */
#include "../../runtime/cli/frame/random.h"
#include "bench.h"

enum { DIM = 64, KEYS = 26, KEY_SAMPLES = 64, MOST = 1000 };

enum { VIEW, INTO, LIVE, STEP, APPLY, UPDATE, NORM, WEIGHTS, CALLS };

static const char *const names[CALLS] = {
	"lookup with its view",
	"embeng_lookup()",
	"live lookup",
	"step",
	"its gradients",
	"embeng_update()",
	"embeng_gradient_norm()",
	"embeng_weight_gradients()",
};

struct bench {
	struct embeng *e;
	struct embeng_serving *serving;
	struct embeng_batch *look, *train;
	int64_t rows, *ids, *splits, samples, pool;
	float *out, *gradients, *weights;
};

static struct embeng *open_tables(int64_t rows, int count)
{
	struct embeng_model *model = embeng_model_new();
	struct embeng *e;

	for (int i = 0; i < count; i++) {
		char name[] = {(char)('a' + i), '\0'};

		check(embeng_model_add_table(
			model,
			&(struct embeng_table_config){.size = sizeof(struct embeng_table_config),
						      .name = name,
						      .vocabulary_size = rows,
						      .dim = DIM,
						      .combiner = EMBENG_SUM,
						      .optimizer = embeng_sgd(0.01f)}));
		check(embeng_model_add_feature(model,
					       &(struct embeng_feature_config){
						       .size = sizeof(struct embeng_feature_config),
						       .name = name,
						       .table = i}));
	}
	check(embeng_open("soft:cores=1", model, &e, NULL));
	embeng_model_free(model);
	return e;
}

static void make_input(struct bench *b, int64_t samples, int64_t pool)
{
	size_t ids = (size_t)(samples * pool), floats = (size_t)samples * DIM * sizeof(float);
	struct random random = {20261128};

	b->samples = samples;
	b->pool = pool;
	b->ids = embeng_buffer_alloc(b->e, ids * sizeof(*b->ids));
	b->splits = embeng_buffer_alloc(b->e, (size_t)(samples + 1) * sizeof(*b->splits));
	b->gradients = embeng_buffer_alloc(b->e, floats);
	b->out = malloc(floats);
	b->weights = malloc(ids * sizeof(float));
	check(b->ids && b->splits && b->gradients && b->out && b->weights ? 0 : -1);
	for (size_t k = 0; k < ids; k++)
		b->ids[k] = (int64_t)(random_next(&random) % (uint64_t)b->rows);
	for (int64_t s = 0; s <= samples; s++)
		b->splits[s] = s * pool;
	b->look = embeng_batch_new(b->e, EMBENG_INFERENCE, 0);
	b->train = embeng_batch_new(b->e, EMBENG_TRAIN, 0);
	check(embeng_batch_ragged_splits(b->look, 0, EMBENG_I64, b->ids, ids, b->splits,
					 (size_t)samples + 1, NULL, 0));
	check(embeng_batch_ragged_splits(b->train, 0, EMBENG_I64, b->ids, ids, b->splits,
					 (size_t)samples + 1, NULL, 0));
}

static void free_input(struct bench *b)
{
	embeng_batch_free(b->look);
	embeng_batch_free(b->train);
	check(embeng_buffer_free(b->e, b->ids));
	check(embeng_buffer_free(b->e, b->splits));
	check(embeng_buffer_free(b->e, b->gradients));
	free(b->out);
	free(b->weights);
}

static void look_up(struct bench *b, struct embeng_batch *batch)
{
	struct embeng_activations act = {.size = sizeof(act)};

	check(embeng_enqueue(b->e, batch, -1));
	check(embeng_dequeue(b->e, 0, -1, &act));
	if (act.mode == EMBENG_INFERENCE)
		check(embeng_release(b->e, &act));
}

static void look_into(struct bench *b)
{
	const struct embeng_output out = {.data = b->out, .elements = (size_t)b->samples * DIM};

	check(embeng_lookup(b->e, b->look, &out, 1, -1));
}

static void look_live(struct bench *b)
{
	const struct embeng_serving_input in = {.size = sizeof(in),
						.form = EMBENG_RAGGED,
						.type = EMBENG_I64,
						.ids = b->ids,
						.id_count = (size_t)(b->samples * b->pool),
						.row_splits = b->splits,
						.split_count = (size_t)b->samples + 1,
						.out = b->out,
						.out_elements = (size_t)b->samples * DIM};

	check(embeng_serving_lookup(b->serving, &in, 1));
}

/* The gradients of weights of 1, and the norm that they are clipped by. */
static void look_at_gradients(struct bench *b, const struct embeng_gradients *g,
			      double times[CALLS])
{
	struct embeng_gradient_norms norms = {.size = sizeof(norms)};
	const size_t counts[] = {(size_t)(b->samples * b->pool)};
	float *const weights[] = {b->weights};
	double begin = now_ms();

	check(embeng_gradient_norm(b->e, &b->train, &g, 1, &norms));
	times[NORM] = now_ms() - begin;
	begin = now_ms();
	check(embeng_weight_gradients(b->e, b->train, g, weights, counts, 1));
	times[WEIGHTS] = now_ms() - begin;
}

static void run_once(struct bench *b, double times[CALLS])
{
	const float *const features[] = {b->gradients};
	const struct embeng_gradients g = {.size = sizeof(g), .count = 1, .features = features};
	double begin = now_ms(), middle;

	look_up(b, b->look);
	times[VIEW] = now_ms() - begin;
	begin = now_ms();
	look_into(b);
	times[INTO] = now_ms() - begin;
	begin = now_ms();
	look_live(b);
	times[LIVE] = now_ms() - begin;
	begin = now_ms();
	look_up(b, b->train);
	middle = now_ms();
	check(embeng_apply_gradients(b->e, &g, -1));
	check(embeng_flush(b->e, -1));
	times[STEP] = now_ms() - begin;
	times[APPLY] = now_ms() - middle;
	begin = now_ms();
	check(embeng_update(b->e, b->train, &g, -1));
	check(embeng_flush(b->e, -1));
	times[UPDATE] = now_ms() - begin;
	look_at_gradients(b, &g, times);
}

static void print_us(const char *what, double *values, int runs)
{
	struct spread s = spread_of(values, runs);

	printf("%-25s %10.2f / %10.2f / %10.2f us (min/median/max)\n", what, s.min * 1e3,
	       s.median * 1e3, s.max * 1e3);
}

static void measure_calls(struct bench *b, int64_t samples, int64_t pool, int runs)
{
	static double times[CALLS][MOST];

	make_input(b, samples, pool);
	for (int i = 0; i < runs; i++) {
		double one[CALLS];

		run_once(b, one);
		for (int c = 0; c < CALLS; c++)
			times[c][i] = one[c];
	}
	printf("%lld bags of %lld ids\n", (long long)samples, (long long)pool);
	for (int c = 0; c < CALLS; c++)
		print_us(names[c], times[c], runs);
	free_input(b);
}

/* One call for all features beside one for each, then the lookup itself. */
static void measure_keys(int64_t rows, int runs)
{
	static double keyed[MOST], apart[MOST];
	static int64_t ids[KEYS * KEY_SAMPLES];
	static int32_t lengths[KEYS * KEY_SAMPLES];
	static float rows_out[KEYS][KEY_SAMPLES * DIM];
	struct embeng *e = open_tables(rows, KEYS);
	struct embeng_batch *batch = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	struct embeng_bags bags = {.size = sizeof(bags),
				   .type = EMBENG_I64,
				   .ids = ids,
				   .id_count = KEYS * KEY_SAMPLES,
				   .form = EMBENG_BAGS_LENGTHS,
				   .bound_type = EMBENG_I32,
				   .bounds = lengths,
				   .bound_count = KEYS * KEY_SAMPLES};
	struct embeng_output out[KEYS];
	int features[KEYS];

	for (int f = 0; f < KEYS; f++) {
		features[f] = f;
		out[f] = (struct embeng_output){.data = rows_out[f], .elements = KEY_SAMPLES * DIM};
	}
	for (int k = 0; k < KEYS * KEY_SAMPLES; k++) {
		ids[k] = k % rows;
		lengths[k] = 1;
	}
	for (int i = 0; i < runs; i++) {
		double begin = now_ms();

		check(embeng_batch_keyed(batch, features, NULL, KEYS, &bags));
		check(embeng_lookup(e, batch, out, KEYS, -1));
		keyed[i] = now_ms() - begin;
		begin = now_ms();
		for (int f = 0; f < KEYS; f++) {
			struct embeng_bags one = bags;

			one.ids = ids + f * KEY_SAMPLES;
			one.bounds = lengths + f * KEY_SAMPLES;
			one.id_count = one.bound_count = KEY_SAMPLES;
			check(embeng_batch_bags(batch, f, &one));
		}
		check(embeng_lookup(e, batch, out, KEYS, -1));
		apart[i] = now_ms() - begin;
	}
	printf("%d features of %d bags of 1 id\n", KEYS, KEY_SAMPLES);
	print_us("one keyed call", keyed, runs);
	print_us("a call a feature", apart, runs);
	embeng_batch_free(batch);
	embeng_close(e);
}

int main(int argc, char **argv)
{
	struct bench b = {.rows = argc > 1 ? atoll(argv[1]) : 1000000};
	int runs = argc > 2 ? atoi(argv[2]) : 101;

	if (b.rows < 1 || runs < 1 || runs > MOST) {
		fprintf(stderr, "free_order: ROWS from 1, RUNS from 1 to %d\n", MOST);
		return 2;
	}
	b.e = open_tables(b.rows, 1);
	check(embeng_serving_live(b.e, NULL, &b.serving, NULL));
	measure_calls(&b, 4096, 20, runs);
	measure_calls(&b, 1024, 1, runs);
	measure_calls(&b, 8, 4, runs);
	embeng_serving_close(b.serving);
	embeng_close(b.e);
	measure_keys(1000, runs);
	return 0;
}
