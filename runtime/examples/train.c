// SPDX-License-Identifier: MIT
/*
 * Teach a table of 100 rows that row r should read (r, -r) / 100: look ids up,
 * hand back the gradient of the squared error, and the engine updates the rows.
 */
#include <stdio.h>
#include <stdlib.h>

#include "embeng.h"

enum { ROWS = 100, DIM = 2, BATCH = 32, STEPS = 2000 };

static void check(int rc)
{
	struct embeng_error err = EMBENG_INIT(embeng_error);

	if (rc >= 0)
		return;
	embeng_last_error(&err);
	fprintf(stderr, "%s\n", err.text);
	exit(1);
}

int main(void)
{
	struct embeng_model *model = embeng_model_new();
	struct embeng *e;
	unsigned int seed = 1;
	float loss = 0;
	int items, item;

	check(items = embeng_model_add_table(model,
					     &EMBENG_INIT(embeng_table_config, .name = "items",
							  .vocabulary_size = ROWS, .dim = DIM,
							  .optimizer = embeng_adagrad(0.1f))));
	check(item = embeng_model_add_feature(
		      model, &EMBENG_INIT(embeng_feature_config, .name = "item", .table = items)));
	check(embeng_open(NULL, model, &e, NULL));

	struct embeng_batch *batch = embeng_batch_new(e, EMBENG_TRAIN, 0);
	int32_t *ids = embeng_buffer_alloc(e, BATCH * sizeof(*ids)); /* read in place */

	if (!batch || !ids)
		check(-1);
	for (int step = 1; step <= STEPS; step++) {
		struct embeng_activations act = EMBENG_INIT(embeng_activations);
		const int64_t shape[] = {BATCH};
		float *grad;

		for (int k = 0; k < BATCH; k++)
			ids[k] = (int32_t)(rand_r(&seed) % ROWS);
		embeng_batch_reset(batch, EMBENG_TRAIN);
		check(embeng_batch_dense(batch, item, EMBENG_I32, ids, BATCH, shape, 1));
		check(embeng_enqueue(e, batch, -1));
		check(embeng_dequeue(e, 0, -1, &act));
		grad = embeng_gradient_buffer(e, 0, item); /* written in place */
		loss = 0;
		for (int k = 0; k < BATCH * DIM; k++) {
			float want = (k % DIM ? -1.0f : 1.0f) * (float)ids[k / DIM] / ROWS;

			grad[k] = act.features[item].data[k] - want;
			loss += grad[k] * grad[k] / BATCH;
		}
		check(embeng_apply_gradients(e,
					     &EMBENG_INIT(embeng_gradients, .count = 1,
							  .features = (const float *const[]){grad}),
					     -1));
		if (step % 500 == 0)
			printf("step %d: loss %.6f\n", step, loss);
	}
	embeng_batch_free(batch);
	embeng_close(e);
	embeng_model_free(model);
	return loss < 1e-3f ? 0 : 1;
}
