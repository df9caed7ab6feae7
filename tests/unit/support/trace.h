/* SPDX-License-Identifier: MIT */
/*
 * Random models whose work is large enough for all cores, trained through the public calls, and all
 * of their results. It uses no test framework, because programs for other processors use it.
 */
#ifndef EMBENG_TESTS_TRACE_H
#define EMBENG_TESTS_TRACE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/include/embeng.h"

#define must(condition) ((condition) ? (void)0 : must_fail(#condition, __LINE__))

static inline void must_fail(const char *condition, int line)
{
	struct embeng_error error = {.size = sizeof(error)};

	embeng_last_error(&error);
	printf("trace.h:%d: %s is false; last error: %s\n", line, condition, error.text);
	fflush(stdout);
	abort();
}

#define STEPS 3
#define FEATURES 3
#define TABLES 2
#define SAMPLES 1500
#define BAG 12	  /* most ids of a sample */
#define ROWS 6000 /* more than a chunk of those that a batch does not touch */

/* Everything that a run shows, one piece after another. */
struct trace {
	unsigned char *bytes;
	size_t length, room;
};

struct drawing {
	uint64_t state;
	int64_t dim[TABLES];
	enum embeng_optimizer_name optimizer[TABLES];
};

static inline uint32_t draw(struct drawing *d, uint32_t below)
{
	d->state = d->state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((d->state >> 33) % below);
}

/* From bits, so that the mode of the FP unit cannot change it; below 2. */
static inline float draw_bits(struct drawing *d, uint32_t exponent)
{
	uint32_t bits = draw(d, 2) << 31 | exponent << 23 | draw(d, 1 << 23);
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

static inline float draw_float(struct drawing *d)
{
	return draw_bits(d, 118 + draw(d, 10));
}

/* A row or a gradient may be denormal; a weight not, for a mean may divide by it. */
static inline float draw_any(struct drawing *d)
{
	return draw_bits(d, draw(d, 20) ? 118 + draw(d, 10) : 0);
}

static inline void record(struct trace *t, const void *data, size_t bytes)
{
	if (t->length + bytes > t->room) {
		t->room = 2 * (t->length + bytes);
		t->bytes = realloc(t->bytes, t->room);
		must(t->bytes);
	}
	memcpy(t->bytes + t->length, data, bytes);
	t->length += bytes;
}

/* Each of the four in turn: eight tables of four models have each twice. */
static inline struct embeng_optimizer draw_optimizer(struct drawing *d, uint64_t turn)
{
	struct embeng_optimizer o;

	switch (turn % 4) {
	case 0:
		o = embeng_adagrad(0.05f);
		break;
	case 1:
		o = embeng_adagrad_momentum(0.05f);
		o.momentum = 0.9f;
		o.exponent = draw(d, 2) ? 2.0f : 3.0f;
		break;
	case 2:
		o = embeng_ftrl(0.05f);
		o.l1_regularization_strength = 0.01f;
		o.learning_rate_power = draw(d, 2) ? -0.5f : -0.75f;
		break;
	default:
		o = draw(d, 2) ? embeng_adam(0.05f) : embeng_adam_corrected(0.05f);
		o.lazy_adam = draw(d, 3) ? EMBENG_OFF : EMBENG_ON;
	}
	o.use_gradient_accumulation = o.lazy_adam == EMBENG_OFF || draw(d, 3) ? EMBENG_ON
									      : EMBENG_OFF;
	o.weight_decay_factor = draw(d, 2) ? 0.01f : 0.0f;
	return o;
}

static inline struct embeng_model *draw_model(struct drawing *d)
{
	uint64_t turn = d->state;
	struct embeng_engine_config c = {.size = sizeof(c), .pipelining = draw(d, 2)};
	struct embeng_model *m = embeng_model_new();

	for (int i = 0; i < TABLES; i++) {
		struct embeng_table_config t = {
			.size = sizeof(t), .vocabulary_size = ROWS, .combiner = draw(d, 3)};

		d->dim[i] = t.dim = 17 + draw(d, 60);
		t.optimizer = draw_optimizer(d, turn + 3 * i);
		d->optimizer[i] = t.optimizer.kind;
		t.out_of_range = draw(d, 2) ? EMBENG_POLICY_DROP : EMBENG_POLICY_ZERO;
		must(embeng_model_add_table(m, &t) == i);
	}
	for (int i = 0; i < FEATURES; i++) {
		struct embeng_feature_config f = {.size = sizeof(f), .table = i % TABLES};

		must(embeng_model_add_feature(m, &f) == i);
	}
	must(!embeng_model_set_engine(m, &c));
	return m;
}

/* A third of all ids is one row, so that it is updated in pieces; some are outside. */
static inline void draw_batch(struct drawing *d, struct embeng *e, enum embeng_mode mode)
{
	struct embeng_batch *b = embeng_batch_new(e, mode, 0);
	int64_t *ids[FEATURES], lengths[FEATURES][SAMPLES];
	float *weights[FEATURES];

	for (int f = 0; f < FEATURES; f++) {
		size_t count = 0;

		ids[f] = malloc(SAMPLES * BAG * sizeof(*ids[f]));
		weights[f] = malloc(SAMPLES * BAG * sizeof(*weights[f]));
		for (int s = 0; s < SAMPLES; s++) {
			lengths[f][s] = draw(d, BAG + 1);
			for (int64_t i = 0; i < lengths[f][s]; i++, count++) {
				ids[f][count] = draw(d, 3) ? draw(d, ROWS + 9) : 7;
				weights[f][count] = draw_float(d);
			}
		}
		must(!embeng_batch_ragged(b, f, EMBENG_I64, ids[f], count, lengths[f], SAMPLES,
					  f ? weights[f] : NULL, f ? count : 0));
	}
	must(!embeng_enqueue(e, b, -1));
	embeng_batch_free(b);
	for (int f = 0; f < FEATURES; f++) {
		free(ids[f]);
		free(weights[f]);
	}
}

static inline void record_activations(struct trace *t, const struct embeng_activations *a,
				      const struct drawing *d)
{
	for (int f = 0; f < FEATURES; f++)
		record(t, a->features[f].data, SAMPLES * d->dim[f % TABLES] * sizeof(float));
}

static inline void train_step(struct drawing *d, struct embeng *e, struct trace *t)
{
	struct embeng_activations a = {.size = sizeof(a)};
	float *gradients[FEATURES];
	struct embeng_gradients g = {
		.size = sizeof(g), .count = FEATURES, .features = (const float *const *)gradients};

	draw_batch(d, e, EMBENG_TRAIN);
	must(!embeng_dequeue(e, 0, -1, &a));
	record_activations(t, &a, d);
	for (int f = 0; f < FEATURES; f++) {
		size_t count = SAMPLES * d->dim[f % TABLES];

		gradients[f] = malloc(count * sizeof(float));
		for (size_t i = 0; i < count; i++)
			gradients[f][i] = draw_any(d);
	}
	must(!embeng_apply_gradients(e, &g, -1));
	for (int f = 0; f < FEATURES; f++)
		free(gradients[f]);
}

static inline void infer(struct drawing *d, struct embeng *e, struct trace *t)
{
	struct embeng_activations a = {.size = sizeof(a)};

	draw_batch(d, e, EMBENG_INFERENCE);
	must(!embeng_dequeue(e, 0, -1, &a));
	must(a.mode == EMBENG_INFERENCE);
	record_activations(t, &a, d);
	must(!embeng_release(e, &a));
}

static inline void record_tables(struct drawing *d, struct embeng *e, struct trace *t)
{
	static const char *const slots[][3] = {
		[EMBENG_ADAGRAD] = {"parameters", "accumulators"},
		[EMBENG_ADAGRAD_MOMENTUM] = {"parameters", "accumulators", "momenta"},
		[EMBENG_FTRL] = {"parameters", "accumulators", "linears"},
		[EMBENG_ADAM] = {"parameters", "momenta", "velocities"},
	};

	for (int i = 0; i < TABLES * 3; i++) {
		const char *slot = slots[d->optimizer[i / 3]][i % 3];
		size_t bytes = ROWS * d->dim[i / 3] * sizeof(float);
		float *rows;

		if (!slot)
			continue;
		rows = malloc(bytes);
		must(!embeng_rows_read(e, i / 3, slot, NULL, ROWS, rows));
		record(t, rows, bytes);
		free(rows);
	}
}

static inline void write_tables(struct drawing *d, struct embeng *e)
{
	for (int i = 0; i < TABLES; i++) {
		size_t count = ROWS * d->dim[i];
		float *rows = malloc(count * sizeof(float));

		for (size_t k = 0; k < count; k++)
			rows[k] = draw_any(d);
		must(!embeng_rows_write(e, i, NULL, NULL, ROWS, rows));
		free(rows);
	}
}

/* The results of a model trained on a device with @cores cores. They depend on @seed alone. */
static inline struct trace trace_run(uint64_t seed, int cores, const char *variant)
{
	struct drawing d = {.state = seed};
	struct embeng_model *m = draw_model(&d);
	struct trace t = {0};
	struct embeng *e = NULL;
	char name[64];

	snprintf(name, sizeof(name), "soft:cores=%d,memory=64M,variant=%s", cores, variant);
	must(!embeng_open(name, m, &e, NULL));
	embeng_model_free(m);
	record_tables(&d, e, &t);
	write_tables(&d, e);
	for (int step = 0; step < STEPS; step++)
		train_step(&d, e, &t);
	must(!embeng_flush(e, -1));
	record_tables(&d, e, &t);
	infer(&d, e, &t);
	embeng_close(e);
	return t;
}

#endif
