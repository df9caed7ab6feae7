// SPDX-License-Identifier: MIT
/*
 * The combiner max from the program's side: holders stay those of the lookup while rows are written,
 * every way to look rows up gives the same bits, steps of long bags and hot rows give the same rows
 * for any number of cores and in each kernel variant, and what max does not take is refused.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "engine/kernels/variants.h"
#include "runtime/cli/frame/random.h"
#include "runtime/src/session/blob_error.h"
#include "runtime/src/session/session.h"

#undef fail /* session.h defines one, and so does Check */
#include "session_help.h"

#define ROWS 60
#define DIM 21
#define SAMPLES 40u
#define MOST 9000u

static struct random random_state = {20261201};

static struct embeng *open_max(const char *device, uint32_t replicas, int pipelining)
{
	struct embeng_table_config t = {.size = sizeof(t),
					.name = "t",
					.vocabulary_size = ROWS,
					.dim = DIM,
					.combiner = EMBENG_MAX,
					.optimizer = embeng_adagrad(0.5f)};
	struct embeng_feature_config f = {.size = sizeof(f), .name = "f"};
	struct embeng_engine_config c = {
		.size = sizeof(c), .replicas = replicas, .pipelining = pipelining};

	return open_single(device, &t, &f, &c);
}

/* Bags of up to 20 ids, and one that is longer than a call of a kernel; few different numbers. */
struct part {
	size_t ids;
	int64_t lengths[SAMPLES], row_ids[MOST];
	float gradients[SAMPLES * DIM];
};

static void make_part(struct part *p)
{
	p->ids = 0;
	for (size_t s = 0; s < SAMPLES; s++) {
		p->lengths[s] = random_below(&random_state, 21);
		if (s == 7)
			p->lengths[s] = 5000;
		for (int64_t k = 0; k < p->lengths[s]; k++)
			p->row_ids[p->ids++] = random_below(&random_state, 4)
						       ? random_below(&random_state, ROWS)
						       : 3;
	}
	for (size_t i = 0; i < SAMPLES * DIM; i++)
		p->gradients[i] = (float)random_below(&random_state, 1000) / 500 - 1;
}

static void make_rows(float rows[ROWS * DIM])
{
	for (size_t i = 0; i < (size_t)ROWS * DIM; i++)
		rows[i] = ((float)random_below(&random_state, 7) - 6) / 4;
}

static struct embeng_batch *fill(struct embeng *e, enum embeng_mode mode, uint32_t replica,
				 const struct part *p)
{
	struct embeng_batch *b = embeng_batch_new(e, mode, replica);

	ck_assert_int_eq(embeng_batch_ragged(b, 0, EMBENG_I64, p->row_ids, p->ids, p->lengths,
					     SAMPLES, NULL, 0),
			 0);
	return b;
}

static struct embeng_gradients gradients_of(const float *const *features, uint32_t replica)
{
	static const size_t elements[] = {SAMPLES * DIM};

	return (struct embeng_gradients){.size = sizeof(struct embeng_gradients),
					 .replica = replica,
					 .count = 1,
					 .features = features,
					 .elements = elements};
}

static void look(struct embeng *e, uint32_t replica, const struct part *p, float *out)
{
	struct embeng_batch *b = fill(e, EMBENG_TRAIN, replica, p);
	struct embeng_activations a = {.size = sizeof(a)};

	ck_assert_int_eq(embeng_enqueue(e, b, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, replica, -1, &a), 0);
	if (out)
		memcpy(out, a.features[0].data, SAMPLES * DIM * sizeof(*out));
	embeng_batch_free(b);
}

static void answer(struct embeng *e, uint32_t replica, const struct part *p)
{
	const float *features[] = {p->gradients};
	struct embeng_gradients g = gradients_of(features, replica);

	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), 0);
}

static void update(struct embeng *e, uint32_t replica, const struct part *p)
{
	const float *features[] = {p->gradients};
	struct embeng_gradients g = gradients_of(features, replica);
	struct embeng_batch *b = fill(e, EMBENG_TRAIN, replica, p);

	ck_assert_int_eq(embeng_update(e, b, &g, -1), 0);
	embeng_batch_free(b);
}

/* Steps with a lookup, without one, and of two replicas of which one has none. */
static void train(const char *device, int pipelining, float *rows, float *sums)
{
	struct embeng *e = open_max(device, 2, pipelining);
	static struct part parts[2];

	random_state.state = 77;
	make_rows(rows);
	ck_assert_int_eq(embeng_rows_write(e, 0, NULL, NULL, ROWS, rows), 0);
	for (int step = 0; step < 6; step++) {
		for (uint32_t r = 0; r < 2; r++) {
			make_part(&parts[r]);
			if (step % 3 == 0 || (step % 3 == 1 && !r))
				look(e, r, &parts[r], NULL);
			else
				update(e, r, &parts[r]);
		}
		for (uint32_t r = 0; r < 2; r++)
			if (step % 3 == 0 || (step % 3 == 1 && !r))
				answer(e, r, &parts[r]);
	}
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, ROWS, rows), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, "accumulators", NULL, ROWS, sums), 0);
	embeng_close(e);
}

START_TEST(the_same_bits_everywhere)
{
	static float want[ROWS * DIM], rows[ROWS * DIM], want_sums[ROWS * DIM], sums[ROWS * DIM];

	for (int pipelining = 0; pipelining < 2; pipelining++) {
		train("soft:cores=1,memory=64M", pipelining, want, want_sums);
		for (int cores = 1; cores <= 5; cores += 2) {
			for (uint32_t v = 0; kernel_variant(v); v++) {
				char device[80];

				if (!kernel_select(kernel_variant(v)))
					continue;
				snprintf(device, sizeof(device),
					 "soft:cores=%d,memory=64M,variant=%s", cores,
					 kernel_variant(v));
				train(device, pipelining, rows, sums);
				ck_assert_mem_eq(rows, want, sizeof(want));
				ck_assert_mem_eq(sums, want_sums, sizeof(want_sums));
			}
		}
	}
}
END_TEST

/* Rows {1, 2} of which the second is larger; then the first is, and still the second learns. */
START_TEST(holders_are_those_of_the_lookup)
{
	const float swapped[] = {50, 51, 40, 41}, want[] = {50, 51, 39, 40, 29, 30};
	struct embeng *e = open_small(
		&(struct shape){.combiner = EMBENG_MAX, .optimizer = embeng_sgd(1)});
	struct embeng_activations a = {.size = sizeof(a)};
	float got[6];

	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a), 0);
	expect_floats(a.features[0].data, (const float[]){20, 21, 0, 0, 30, 31}, 6);
	ck_assert_int_eq(embeng_rows_write(e, 0, NULL, (const int64_t[]){1, 2}, 2, swapped), 0);
	ck_assert_int_eq(apply_ones(e, 0), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, (const int64_t[]){1, 2, 3}, 3, got), 0);
	expect_floats(got, want, 6);
	embeng_close(e);
}
END_TEST

START_TEST(every_lookup_gives_the_same_bits)
{
	struct embeng *e = open_max(SMALL, 1, 0);
	struct embeng_serving *serving = NULL;
	static struct part p;
	static float rows[ROWS * DIM], want[SAMPLES * DIM], got[SAMPLES * DIM];
	struct embeng_output o = {.data = got, .elements = SAMPLES * DIM};
	int64_t splits[SAMPLES + 1] = {0};
	struct embeng_serving_input in = {.size = sizeof(in),
					  .form = EMBENG_RAGGED,
					  .type = EMBENG_I64,
					  .ids = p.row_ids,
					  .row_splits = splits,
					  .split_count = SAMPLES + 1,
					  .out = got,
					  .out_elements = SAMPLES * DIM};
	struct embeng_batch *b;

	make_part(&p);
	make_rows(rows);
	in.id_count = p.ids;
	for (size_t s = 0; s < SAMPLES; s++)
		splits[s + 1] = splits[s] + p.lengths[s];
	ck_assert_int_eq(embeng_rows_write(e, 0, NULL, NULL, ROWS, rows), 0);
	look(e, 0, &p, want);
	ck_assert_int_eq(embeng_discard(e, 0, -1), 0);
	b = fill(e, EMBENG_INFERENCE, 0, &p);
	ck_assert_int_eq(embeng_lookup(e, b, &o, 1, -1), 0);
	ck_assert_mem_eq(got, want, sizeof(want));
	memset(got, 0xff, sizeof(got));
	ck_assert_int_eq(embeng_serving_live(e, NULL, &serving, NULL), 0);
	ck_assert_int_eq(embeng_serving_lookup(serving, &in, 1), 0);
	ck_assert_mem_eq(got, want, sizeof(want));
	embeng_serving_close(serving);
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

/* Row 2 holds both numbers of the first bag, row 3 those of the second. There are no weights. */
START_TEST(norms_of_holders)
{
	struct embeng *e = open_small(
		&(struct shape){.combiner = EMBENG_MAX, .optimizer = embeng_sgd(1)});
	const int64_t ids[] = {1, 2, 3, 2}, lengths[] = {2, 2};
	const float gradient[] = {1, 2, 5, 6}, *features[] = {gradient};
	const size_t elements[] = {4}, counts[] = {4};
	float weights[4], *outputs[] = {weights}, rows[8], low[] = {-9, -9, -9, -9};
	struct embeng_gradients g = {
		.size = sizeof(g), .count = 1, .features = features, .elements = elements};
	const struct embeng_gradients *parts[] = {&g};
	struct embeng_gradient_norms norms = {.size = sizeof(norms)};
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);

	ck_assert_int_eq(embeng_batch_ragged(b, 0, EMBENG_I64, ids, 4, lengths, 2, NULL, 0), 0);
	ck_assert_int_eq(embeng_gradient_norm(e, &b, parts, 1, &norms), 0);
	ck_assert(norms.norm == sqrt(1 + 4 + 25 + 36));
	/* Row 2 holds all once row 3 is low, and its gradients add up. */
	ck_assert_int_eq(embeng_rows_write(e, 0, NULL, &ids[2], 1, low), 0);
	ck_assert_int_eq(embeng_gradient_norm(e, &b, parts, 1, &norms), 0);
	ck_assert(norms.norm == sqrt(6 * 6 + 8 * 8));
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, 4, rows), 0);
	ck_assert(rows[6] == -9.0f);
	ck_assert_int_eq(embeng_weight_gradients(e, b, &g, outputs, counts, 1), -EINVAL);
	expect_text("feature f: its table's combiner is max, which takes no weights");
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

START_TEST(weights_are_refused)
{
	struct embeng *e = open_small(
		&(struct shape){.combiner = EMBENG_MAX, .optimizer = embeng_sgd(1)});
	const int64_t ids[] = {1, 2}, length = 2;
	const float weights[] = {1, 1};
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);

	ck_assert_int_eq(embeng_batch_ragged(b, 0, EMBENG_I64, ids, 2, &length, 1, weights, 2),
			 -EINVAL);
	expect_text("feature f: its table's combiner is max, which takes no weights");
	ck_assert_int_eq(embeng_enqueue(e, b, 0), -EINVAL);
	ck_assert_int_eq(embeng_batch_ragged(b, 0, EMBENG_I64, ids, 2, &length, 1, NULL, 0), 0);
	ck_assert_int_eq(embeng_enqueue(e, b, 0), 0);
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

/* A device that has the other combiners alone answers so. */
START_TEST(an_older_device_is_named)
{
	struct embeng *e = open_small(
		&(struct shape){.combiner = EMBENG_MAX, .optimizer = embeng_sgd(1)});
	const struct embeng_model *m = embeng_get_model(e);
	struct embeng_cqe c = {.status = EMBENG_STATUS_BLOB_VALUE,
			       .field = EMBENG_FIELD_BLOB,
			       .value = EMBENG_COMBINER_MAX,
			       .limit = 7};
	void *blob;
	size_t length;

	ck_assert_int_eq(embeng_model_blob(m, &blob, &length), 0);
	c.element = sizeof(struct embeng_blob_header) + sizeof(struct embeng_record_engine) +
		    offsetof(struct embeng_record_table, combiner);
	ck_assert_int_lt(blob_error(m, blob, length, &c), 0);
	expect_text("table t: combiner max: the device does not take the value 0x3");
	free(blob);
	embeng_close(e);
}
END_TEST

START_TEST(tells_its_seed)
{
	printf("seed %llu\n", (unsigned long long)random_state.state);
}
END_TEST

RUN_SUITE("max", tells_its_seed, the_same_bits_everywhere, holders_are_those_of_the_lookup,
	  every_lookup_gives_the_same_bits, weights_are_refused, norms_of_holders,
	  an_older_device_is_named)
