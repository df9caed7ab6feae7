// SPDX-License-Identifier: MIT
/*
 * The last batch of an epoch is smaller than the others, and some batches have no samples at all. Each
 * has the size that it has: nothing is padded, and views are of that size.
 */
#include <stdio.h>
#include <stdlib.h>

#include "embeng.h"

enum { ROWS = 100, DIM = 2, SAMPLES = 70, BATCH = 32, EPOCHS = 300 };

static void check(int rc)
{
	struct embeng_error err = EMBENG_INIT(embeng_error);

	if (rc >= 0)
		return;
	embeng_last_error(&err);
	fprintf(stderr, "%s\n", err.text);
	exit(1);
}

/* Row r should read (r, -r) / 100. Returns the squared error of the batch. */
static float train(struct embeng *e, struct embeng_batch *batch, const int64_t *ids, int64_t count)
{
	struct embeng_activations act = EMBENG_INIT(embeng_activations);
	float gradients[BATCH * DIM] = {0}, loss = 0;
	const float *const features[] = {gradients};

	check(embeng_batch_dense(batch, 0, EMBENG_I64, ids, (size_t)count, &count, 1));
	check(embeng_enqueue(e, batch, -1));
	check(embeng_dequeue(e, 0, -1, &act));
	if (act.features[0].shape[0] != count)
		exit(1);
	for (int64_t k = 0; k < count * DIM; k++) {
		float want = (k % DIM ? -1.0f : 1.0f) * (float)ids[k / DIM] / ROWS;

		gradients[k] = act.features[0].data[k] - want;
		loss += gradients[k] * gradients[k];
	}
	check(embeng_apply_gradients(
		e, &EMBENG_INIT(embeng_gradients, .count = 1, .features = features), -1));
	return loss;
}

int main(void)
{
	struct embeng_model *model = embeng_model_new();
	struct embeng_batch *batch;
	int64_t ids[SAMPLES];
	float loss = 1;
	struct embeng *e;

	for (int k = 0; k < SAMPLES; k++)
		ids[k] = (k * 7) % ROWS;
	check(embeng_model_add_table(model, &EMBENG_INIT(embeng_table_config, .name = "items",
							 .vocabulary_size = ROWS, .dim = DIM,
							 .optimizer = embeng_sgd(0.5f))));
	check(embeng_model_add_feature(model, &EMBENG_INIT(embeng_feature_config, .name = "item")));
	check(embeng_open(NULL, model, &e, NULL));
	batch = embeng_batch_new(e, EMBENG_TRAIN, 0);
	for (int epoch = 0; epoch < EPOCHS; epoch++) {
		loss = 0;
		for (int at = 0; at < SAMPLES; at += BATCH) {
			int left = SAMPLES - at;

			loss += train(e, batch, ids + at, left < BATCH ? left : BATCH);
		}
		/* A shard that has run out of data still takes part. */
		loss += train(e, batch, ids, 0);
	}
	printf("batches of %d, %d and %d: loss %.6f\n", BATCH, BATCH, SAMPLES % BATCH, loss);
	embeng_batch_free(batch);
	embeng_close(e);
	embeng_model_free(model);
	return loss < 1e-3f ? 0 : 1;
}
