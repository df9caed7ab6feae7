// SPDX-License-Identifier: MIT
/*
 * Gradient accumulation, and a step that is given up. Four small batches are looked up for training
 * one after another; their ids and gradients are kept, and one update has them all. A batch whose loss
 * is not finite is discarded: it touches no row and counts no step.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embeng.h"

enum { ROWS = 100, DIM = 2, SMALL = 8, PARTS = 4, STEPS = 600 };

static void check(int rc)
{
	struct embeng_error err = EMBENG_INIT(embeng_error);

	if (rc >= 0)
		return;
	embeng_last_error(&err);
	fprintf(stderr, "%s\n", err.text);
	exit(1);
}

/* All that the parts of a step have left. */
struct kept {
	int64_t ids[SMALL * PARTS];
	float gradients[SMALL * PARTS * DIM];
	int64_t count;
};

/* Row r should read (r, -r) / 100. Some targets are missing. */
static float loss_of(const float *rows, const int64_t *ids, float *gradients, unsigned int *seed)
{
	float loss = rand_r(seed) % 50 ? 0 : NAN;

	for (int k = 0; k < SMALL * DIM; k++) {
		float want = (k % DIM ? -1.0f : 1.0f) * (float)ids[k / DIM] / ROWS;

		gradients[k] = rows[k] - want;
		loss += gradients[k] * gradients[k] / SMALL;
	}
	return loss;
}

/* One forward of a training model; returns its loss, NAN where it was given up. */
static float run_part(struct embeng *e, struct embeng_batch *batch, struct kept *kept,
		      unsigned int *seed)
{
	struct embeng_activations act = EMBENG_INIT(embeng_activations);
	int64_t *ids = kept->ids + kept->count;
	const int64_t shape[] = {SMALL};
	float loss;

	for (int k = 0; k < SMALL; k++)
		ids[k] = rand_r(seed) % ROWS;
	check(embeng_batch_dense(batch, 0, EMBENG_I64, ids, SMALL, shape, 1));
	check(embeng_enqueue(e, batch, -1));
	check(embeng_dequeue(e, 0, -1, &act));
	loss = loss_of(act.features[0].data, ids, kept->gradients + kept->count * DIM, seed);
	/* The view is given back either way: its gradients come later, with those of others. */
	check(embeng_discard(e, 0, -1));
	if (isfinite(loss))
		kept->count += SMALL;
	return loss;
}

static void update(struct embeng *e, struct embeng_batch *batch, const struct kept *kept)
{
	const float *const features[] = {kept->gradients};

	check(embeng_batch_dense(batch, 0, EMBENG_I64, kept->ids, (size_t)kept->count, &kept->count,
				 1));
	check(embeng_update(e, batch,
			    &EMBENG_INIT(embeng_gradients, .count = 1, .features = features), -1));
}

int main(void)
{
	struct embeng_model *model = embeng_model_new();
	struct embeng_batch *batch;
	unsigned int seed = 1;
	uint64_t steps = 0;
	float last = 1;
	struct embeng *e;

	check(embeng_model_add_table(model, &EMBENG_INIT(embeng_table_config, .name = "items",
							 .vocabulary_size = ROWS, .dim = DIM,
							 .optimizer = embeng_sgd(0.5f))));
	check(embeng_model_add_feature(model, &EMBENG_INIT(embeng_feature_config, .name = "item")));
	check(embeng_open(NULL, model, &e, NULL));
	batch = embeng_batch_new(e, EMBENG_TRAIN, 0);
	for (int step = 1; step <= STEPS; step++) {
		struct kept kept = {.count = 0};

		for (int part = 0; part < PARTS; part++) {
			float loss = run_part(e, batch, &kept, &seed);

			last = isfinite(loss) ? loss : last;
		}
		if (kept.count)
			update(e, batch, &kept);
	}
	check(embeng_step(e, &steps));
	printf("%llu steps, loss %.6f\n", (unsigned long long)steps, last);
	embeng_batch_free(batch);
	embeng_close(e);
	embeng_model_free(model);
	return steps <= STEPS && last < 1e-3f ? 0 : 1;
}
