// SPDX-License-Identifier: MIT
/*
 * Clipping by global norm. Two replicas give each step its gradients; the step is clipped so that all
 * of it, over rows of both, is no longer than LIMIT. Now and then a target is wild, or not a number:
 * such a step is clipped, or told and left out.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "embeng.h"

enum { ROWS = 100, DIM = 2, SAMPLES = 16, REPLICAS = 2, STEPS = 2000 };

#define LIMIT 1.0

static void check(int rc)
{
	struct embeng_error err = {.size = sizeof(err)};

	if (rc >= 0)
		return;
	embeng_last_error(&err);
	fprintf(stderr, "%s\n", err.text);
	exit(1);
}

/* The share of one replica in a step. */
struct part {
	struct embeng_batch *batch;
	int64_t ids[SAMPLES];
	float gradients[SAMPLES * DIM];
	const float *features[1];
	struct embeng_gradients given;
};

static float target(int64_t row, int column, unsigned int *seed)
{
	int luck = rand_r(seed) % 10000;

	if (luck < 20)
		return luck ? 1000 : NAN;
	return (column ? -1.0f : 1.0f) * (float)row / ROWS;
}

/* Looks ids up, takes the view back, and keeps the gradients of the squared error. */
static void run_part(struct embeng *e, struct part *p, uint32_t replica, unsigned int *seed)
{
	struct embeng_activations act = {.size = sizeof(act)};
	const int64_t shape[] = {SAMPLES};

	for (int k = 0; k < SAMPLES; k++)
		p->ids[k] = rand_r(seed) % ROWS;
	check(embeng_batch_dense(p->batch, 0, EMBENG_I64, p->ids, SAMPLES, shape, 1));
	check(embeng_enqueue(e, p->batch, -1));
	check(embeng_dequeue(e, replica, -1, &act));
	for (int i = 0; i < SAMPLES * DIM; i++)
		p->gradients[i] = act.features[0].data[i] - target(p->ids[i / DIM], i % DIM, seed);
	p->features[0] = p->gradients;
	p->given = (struct embeng_gradients){
		.size = sizeof(p->given), .replica = replica, .count = 1, .features = p->features};
}

/* Whether the step was applied. */
static int end_step(struct embeng *e, struct part parts[REPLICAS], double *norm)
{
	struct embeng_batch *batches[REPLICAS];
	const struct embeng_gradients *gradients[REPLICAS];
	struct embeng_gradient_norms norms = {.size = sizeof(norms)};

	for (int r = 0; r < REPLICAS; r++) {
		batches[r] = parts[r].batch;
		gradients[r] = &parts[r].given;
	}
	check(embeng_gradient_norm(e, batches, gradients, REPLICAS, &norms));
	*norm = norms.norm;
	if (norms.non_finite)
		printf("left out: replica %zu, sample %zu\n", norms.part, norms.sample);
	for (int r = 0; r < REPLICAS; r++) {
		parts[r].given.multiplier = norms.norm > LIMIT ? (float)(LIMIT / norms.norm) : 1;
		check(norms.non_finite ? embeng_discard(e, (uint32_t)r, -1)
				       : embeng_apply_gradients(e, &parts[r].given, -1));
	}
	return !norms.non_finite;
}

static struct embeng *open_model(void)
{
	struct embeng_model *model = embeng_model_new();
	struct embeng *e;

	check(embeng_model_add_table(
		model, &(struct embeng_table_config){.size = sizeof(struct embeng_table_config),
						     .name = "items",
						     .vocabulary_size = ROWS,
						     .dim = DIM,
						     .optimizer = embeng_sgd(0.1f)}));
	check(embeng_model_add_feature(
		model, &(struct embeng_feature_config){.size = sizeof(struct embeng_feature_config),
						       .name = "item"}));
	check(embeng_model_set_engine(
		model, &(struct embeng_engine_config){.size = sizeof(struct embeng_engine_config),
						      .replicas = REPLICAS}));
	check(embeng_open(NULL, model, &e, NULL));
	embeng_model_free(model);
	return e;
}

int main(void)
{
	struct embeng *e = open_model();
	struct part parts[REPLICAS];
	unsigned int seed = 1;
	int applied = 0, clipped = 0;
	double norm = 0, wild = 0;

	for (int r = 0; r < REPLICAS; r++)
		parts[r].batch = embeng_batch_new(e, EMBENG_TRAIN, (uint32_t)r);
	for (int step = 0; step < STEPS; step++) {
		for (int r = 0; r < REPLICAS; r++)
			run_part(e, &parts[r], (uint32_t)r, &seed);
		if (!end_step(e, parts, &norm))
			continue;
		applied++;
		clipped += norm > LIMIT;
		wild = norm > wild ? norm : wild;
	}
	printf("%d steps, %d of them clipped; the longest was %.1f, the last %.4f\n", applied,
	       clipped, wild, norm);
	for (int r = 0; r < REPLICAS; r++)
		embeng_batch_free(parts[r].batch);
	embeng_close(e);
	return applied < STEPS && clipped && wild > 100 && norm < LIMIT ? 0 : 1;
}
