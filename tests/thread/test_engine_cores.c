/* SPDX-License-Identifier: MIT */
/*
 * Random models whose work is large enough for all cores, of all optimizers, trained through
 * the public calls: the same bits for any number of cores and both kernel variants.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../unit/session_help.h"

#define MODELS 4
#define STEPS 3
#define FEATURES 3
#define TABLES 2
#define SAMPLES 1500
#define BAG 12 /* most ids of a sample */
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

static uint32_t draw(struct drawing *d, uint32_t below)
{
	d->state = d->state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((d->state >> 33) % below);
}

static float draw_float(struct drawing *d)
{
	return (float)((int)draw(d, 20001) - 10000) / 7919.0f;
}

static void record(struct trace *t, const void *data, size_t bytes)
{
	if (t->length + bytes > t->room) {
		t->room = 2 * (t->length + bytes);
		t->bytes = realloc(t->bytes, t->room);
		ck_assert_ptr_nonnull(t->bytes);
	}
	memcpy(t->bytes + t->length, data, bytes);
	t->length += bytes;
}

/* Each of the four in turn: the tables of four models have each twice. */
static struct embeng_optimizer draw_optimizer(struct drawing *d, uint64_t turn)
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
	o.use_gradient_accumulation = o.lazy_adam == EMBENG_OFF || draw(d, 3) ? EMBENG_ON :
										EMBENG_OFF;
	o.weight_decay_factor = draw(d, 2) ? 0.01f : 0.0f;
	return o;
}

static struct embeng_model *draw_model(struct drawing *d)
{
	uint64_t turn = d->state;
	struct embeng_engine_config c = {.size = sizeof(c), .pipelining = draw(d, 2)};
	struct embeng_model *m = embeng_model_new();

	for (int i = 0; i < TABLES; i++) {
		struct embeng_table_config t = {.size = sizeof(t), .vocabulary_size = ROWS,
						.combiner = draw(d, 3)};

		d->dim[i] = t.dim = 17 + draw(d, 60);
		t.optimizer = draw_optimizer(d, turn + 3 * i);
		d->optimizer[i] = t.optimizer.kind;
		t.out_of_range = draw(d, 2) ? EMBENG_POLICY_DROP : EMBENG_POLICY_ZERO;
		ck_assert_int_eq(embeng_model_add_table(m, &t), i);
	}
	for (int i = 0; i < FEATURES; i++) {
		struct embeng_feature_config f = {.size = sizeof(f), .table = i % TABLES};

		ck_assert_int_eq(embeng_model_add_feature(m, &f), i);
	}
	ck_assert_int_eq(embeng_model_set_engine(m, &c), 0);
	return m;
}

/* A third of all ids is one row, so that it is updated in pieces; some are outside. */
static void draw_batch(struct drawing *d, struct embeng *e, enum embeng_mode mode)
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
		ck_assert_int_eq(embeng_batch_ragged(b, f, EMBENG_I64, ids[f], count, lengths[f],
						     SAMPLES, f ? weights[f] : NULL,
						     f ? count : 0), 0);
	}
	ck_assert_int_eq(embeng_enqueue(e, b, -1), 0);
	embeng_batch_free(b);
	for (int f = 0; f < FEATURES; f++) {
		free(ids[f]);
		free(weights[f]);
	}
}

static void record_activations(struct trace *t, const struct embeng_activations *a,
			       const struct drawing *d)
{
	for (int f = 0; f < FEATURES; f++)
		record(t, a->features[f].data, SAMPLES * d->dim[f % TABLES] * sizeof(float));
}

static void train_step(struct drawing *d, struct embeng *e, struct trace *t)
{
	struct embeng_activations a = {.size = sizeof(a)};
	float *gradients[FEATURES];
	struct embeng_gradients g = {.size = sizeof(g), .count = FEATURES,
				     .features = (const float *const *)gradients};

	draw_batch(d, e, EMBENG_TRAIN);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	record_activations(t, &a, d);
	for (int f = 0; f < FEATURES; f++) {
		size_t count = SAMPLES * d->dim[f % TABLES];

		gradients[f] = malloc(count * sizeof(float));
		for (size_t i = 0; i < count; i++)
			gradients[f][i] = draw_float(d);
	}
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), 0);
	for (int f = 0; f < FEATURES; f++)
		free(gradients[f]);
}

static void infer(struct drawing *d, struct embeng *e, struct trace *t)
{
	struct embeng_activations a = {.size = sizeof(a)};

	draw_batch(d, e, EMBENG_INFERENCE);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	ck_assert_int_eq(a.mode, EMBENG_INFERENCE);
	record_activations(t, &a, d);
	ck_assert_int_eq(embeng_release(e, &a), 0);
}

static void record_tables(struct drawing *d, struct embeng *e, struct trace *t)
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
		ck_assert_int_eq(embeng_rows_read(e, i / 3, slot, NULL, ROWS, rows), 0);
		record(t, rows, bytes);
		free(rows);
	}
}

static struct trace run(uint64_t seed, int cores, const char *variant)
{
	struct drawing d = {.state = seed};
	struct embeng_model *m = draw_model(&d);
	struct embeng_error error = {.size = sizeof(error)};
	struct trace t = {0};
	struct embeng *e = NULL;
	char name[64];

	snprintf(name, sizeof(name), "soft:cores=%d,memory=64M,variant=%s", cores, variant);
	ck_assert_msg(!embeng_open(name, m, &e, &error), "%s: %s", name, error.text);
	embeng_model_free(m);
	for (int step = 0; step < STEPS; step++)
		train_step(&d, e, &t);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	record_tables(&d, e, &t);
	infer(&d, e, &t);
	embeng_close(e);
	return t;
}

/* Whether this processor has it: a device of it opens. */
static int has_variant(const char *variant)
{
	struct drawing d = {.state = 1};
	struct embeng_model *m = draw_model(&d);
	struct embeng *e = NULL;
	char name[64];
	int ret;

	snprintf(name, sizeof(name), "soft:cores=1,memory=64M,variant=%s", variant);
	ret = embeng_open(name, m, &e, NULL);
	embeng_close(e);
	embeng_model_free(m);
	return !ret;
}

START_TEST(same_bits_on_any_cores)
{
	static const char *const variants[] = {"portable", "avx2"};
	static const int cores[] = {1, 2, 3, 4, 7};

	for (uint64_t seed = 70; seed < 70 + MODELS; seed++) {
		struct trace first = run(seed, 1, "portable");

		printf("seed %d: %zu bytes\n", (int)seed, first.length);
		for (int i = 1; i < 10; i++) {
			struct trace t;

			if (!has_variant(variants[i / 5]))
				continue;
			t = run(seed, cores[i % 5], variants[i / 5]);
			ck_assert_uint_eq(t.length, first.length);
			ck_assert_msg(!memcmp(t.bytes, first.bytes, t.length),
				      "seed %d: %d cores, %s differ", (int)seed, cores[i % 5],
				      variants[i / 5]);
			free(t.bytes);
		}
		free(first.bytes);
	}
}
END_TEST

RUN_SUITE("engine_cores", same_bits_on_any_cores)
