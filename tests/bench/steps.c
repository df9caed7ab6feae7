// SPDX-License-Identifier: MIT
/*
 * Steps of one table by embeng_enqueue(), embeng_dequeue() and embeng_apply_gradients(), with SGD: what
 * layers of frameworks cost at least. tests/bench/python/tensorflow_ops.py takes turns with it: for each
 * line of its input the program makes steps for a while, and prints the median time of one.
 *
 *   build/tests/bench/steps ROWS DIM BATCH IDS SECONDS CORES      then a line a round; microseconds
 */
#include <string.h>

#include "../../runtime/cli/frame/random.h"
#include "bench.h"

enum { STEPS_MOST = 1000000 };

struct steps {
	struct embeng *e;
	struct embeng_batch *batch;
	int64_t *ids, *splits;
	float *gradient;
	size_t samples, id_count, elements;
};

static void open_table(struct steps *s, int64_t rows, int64_t dim, const char *device)
{
	struct embeng_model *model = embeng_model_new();
	const struct embeng_optimizer optimizer = EMBENG_INIT(embeng_optimizer, .kind = EMBENG_SGD,
							      .learning_rate = 0.01f);

	check(embeng_model_add_table(
		model, &EMBENG_INIT(embeng_table_config, .vocabulary_size = rows, .dim = dim,
				    .combiner = EMBENG_SUM, .optimizer = optimizer)));
	check(embeng_model_add_feature(model, &EMBENG_INIT(embeng_feature_config)));
	check(embeng_open(device, model, &s->e, NULL));
	embeng_model_free(model);
	s->batch = embeng_batch_new(s->e, EMBENG_TRAIN, 0);
	check(s->batch ? 0 : -1);
}

static void make_input(struct steps *s, int64_t rows, size_t pool)
{
	struct random random = {20240229};

	s->ids = calloc(s->id_count + 1, sizeof(*s->ids));
	s->splits = calloc(s->samples + 1, sizeof(*s->splits));
	s->gradient = calloc(s->elements + 1, sizeof(*s->gradient));
	if (!s->ids || !s->splits || !s->gradient)
		exit(1);
	for (size_t k = 0; k < s->id_count; k++)
		s->ids[k] = random_below(&random, (uint64_t)rows);
	for (size_t k = 0; k <= s->samples; k++)
		s->splits[k] = (int64_t)(k * pool);
	for (size_t k = 0; k < s->elements; k++)
		s->gradient[k] = (float)random_below(&random, 2000) * 1e-6f;
}

static void make_step(struct steps *s)
{
	struct embeng_activations activations = EMBENG_INIT(embeng_activations);
	const float *gradients[] = {s->gradient};
	const struct embeng_gradients given = EMBENG_INIT(
		embeng_gradients, .count = 1, .features = gradients, .elements = &s->elements);

	embeng_batch_reset(s->batch, EMBENG_TRAIN);
	check(embeng_batch_ragged_splits(s->batch, 0, EMBENG_I64, s->ids, s->id_count, s->splits,
					 s->samples + 1, NULL, 0));
	check(embeng_enqueue(s->e, s->batch, -1));
	check(embeng_dequeue(s->e, 0, -1, &activations));
	check(embeng_apply_gradients(s->e, &given, -1));
}

static double time_round(struct steps *s, double seconds)
{
	static double times[STEPS_MOST];
	double end = now_ms() + seconds * 1e3;
	int count = 0;

	while (count < STEPS_MOST && (count < 3 || now_ms() < end)) {
		double begin = now_ms();

		make_step(s);
		times[count++] = now_ms() - begin;
	}
	return spread_of(times, count).median * 1e3;
}

int main(int argc, char **argv)
{
	struct steps s = {0};
	int64_t rows, dim;
	char device[64], line[16];

	if (argc != 7) {
		fprintf(stderr, "usage: %s ROWS DIM BATCH IDS SECONDS CORES\n", argv[0]);
		return 2;
	}
	rows = atoll(argv[1]);
	dim = atoll(argv[2]);
	s.samples = strtoul(argv[3], NULL, 10);
	s.id_count = s.samples * strtoul(argv[4], NULL, 10);
	s.elements = s.samples * (size_t)dim;
	snprintf(device, sizeof(device), "soft:cores=%d", atoi(argv[6]));
	open_table(&s, rows, dim, device);
	make_input(&s, rows, strtoul(argv[4], NULL, 10));
	while (fgets(line, sizeof(line), stdin)) {
		printf("%.3f\n", time_round(&s, atof(argv[5])));
		fflush(stdout);
	}
	embeng_batch_free(s.batch);
	embeng_close(s.e);
	free(s.ids);
	free(s.splits);
	free(s.gradient);
	return 0;
}
