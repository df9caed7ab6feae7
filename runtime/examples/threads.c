// SPDX-License-Identifier: MIT
/*
 * Several threads look up on one handle while another trains. Each has a batch and memory of its own;
 * a lookup sees whole steps only, so that both numbers of a row are always of the same step.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "embeng.h"

enum { ROWS = 100, DIM = 2, BATCH = 32, STEPS = 500, THREADS = 4, LOOKUPS = 2000 };

static void check(int rc)
{
	struct embeng_error err = EMBENG_INIT(embeng_error);

	if (rc >= 0)
		return;
	embeng_last_error(&err);
	fprintf(stderr, "%s\n", err.text);
	exit(1);
}

struct reader {
	struct embeng *e;
	unsigned int seed;
	int torn;
};

static void *read_rows(void *arg)
{
	struct reader *r = arg;
	struct embeng_batch *batch = embeng_batch_new(r->e, EMBENG_INFERENCE, 0);
	const int64_t shape[] = {BATCH};
	int64_t ids[BATCH];
	float rows[BATCH * DIM];
	const struct embeng_output out = {.data = rows, .elements = BATCH * DIM};

	for (int n = 0; n < LOOKUPS; n++) {
		for (int k = 0; k < BATCH; k++)
			ids[k] = rand_r(&r->seed) % ROWS;
		check(embeng_batch_dense(batch, 0, EMBENG_I64, ids, BATCH, shape, 1));
		check(embeng_lookup(r->e, batch, &out, 1, -1));
		for (int k = 0; k < BATCH; k++)
			r->torn += rows[k * DIM] != -rows[k * DIM + 1];
	}
	embeng_batch_free(batch);
	return NULL;
}

/* The two numbers of a row get opposite gradients. */
static void train(struct embeng *e)
{
	struct embeng_batch *batch = embeng_batch_new(e, EMBENG_TRAIN, 0);
	const int64_t shape[] = {BATCH};
	float gradients[BATCH * DIM];
	const float *const features[] = {gradients};
	int64_t ids[BATCH];
	unsigned int seed = 77;

	for (int k = 0; k < BATCH * DIM; k++)
		gradients[k] = k % DIM ? 1.0f : -1.0f;
	for (int step = 0; step < STEPS; step++) {
		for (int k = 0; k < BATCH; k++)
			ids[k] = rand_r(&seed) % ROWS;
		check(embeng_batch_dense(batch, 0, EMBENG_I64, ids, BATCH, shape, 1));
		check(embeng_update(
			e, batch, &EMBENG_INIT(embeng_gradients, .count = 1, .features = features),
			-1));
	}
	embeng_batch_free(batch);
}

int main(void)
{
	const struct embeng_initializer zeros = {.kind = EMBENG_INIT_CONSTANT};
	struct embeng_model *model = embeng_model_new();
	struct reader readers[THREADS];
	pthread_t threads[THREADS];
	struct embeng *e;
	int torn = 0;

	check(embeng_model_add_table(model, &EMBENG_INIT(embeng_table_config, .name = "items",
							 .vocabulary_size = ROWS, .dim = DIM,
							 .initializer = zeros,
							 .optimizer = embeng_sgd(0.125f))));
	check(embeng_model_add_feature(model, &EMBENG_INIT(embeng_feature_config, .name = "item")));
	check(embeng_open(NULL, model, &e, NULL));
	for (int i = 0; i < THREADS; i++) {
		readers[i] = (struct reader){.e = e, .seed = (unsigned int)i + 1};
		if (pthread_create(&threads[i], NULL, read_rows, &readers[i]))
			return 1;
	}
	train(e);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		torn += readers[i].torn;
	}
	printf("%d lookups beside %d updates, %d rows of two steps\n", THREADS * LOOKUPS, STEPS,
	       torn);
	embeng_close(e);
	embeng_model_free(model);
	return torn ? 1 : 0;
}
