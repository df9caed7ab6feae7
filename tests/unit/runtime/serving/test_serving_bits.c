// SPDX-License-Identifier: MIT
/*
 * Where nothing is pruned a lookup here has the bits of the engine's, for every kernel
 * variant: over rows in one piece, in several pieces out of order, and of a live engine.
 */
#include "runtime/src/serving/serving.h"
#include "serving_help.h"
#include "suite.h"
#include "test_kernels.h"
#include "variants.h"

#define ROWS 700
#define SAMPLES 700 /* more than a chunk has room for */
#define PIECES 5
#define TRIALS 16

struct trial {
	struct embeng *e;
	struct embeng_model *model;
	size_t dim;
	float *rows; /* [ROWS][dim] */
	int64_t *ids, *indices;
	float *weights;
	int64_t splits[SAMPLES + 1];
	int64_t shape[2];
	bool sparse, weighted;
};

static void make_model(struct trial *t, const char *variant)
{
	static const size_t dims[] = {1, 2, 3, 7, 8, 16, 17, 33, 64, 100, 130, 257};
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng_table_config table = {.size = sizeof(table), .vocabulary_size = ROWS};
	struct embeng_feature_config f = {.size = sizeof(f)};
	/* Rows hold whatever training with this policy leaves there. */
	const struct embeng_engine_config allows = {.size = sizeof(allows),
						    .non_finite = EMBENG_NON_FINITE_ALLOW};
	char name[64];

	t->dim = dims[random_below(12)];
	table.dim = (int64_t)t->dim;
	table.combiner = (enum embeng_combiner_name)random_below(4);
	f.max_sequence_length = random_below(4) ? 0 : (int64_t)random_below(9) + 1;
	t->model = embeng_model_new();
	ck_assert_int_eq(embeng_model_set_engine(t->model, &allows), 0);
	ck_assert_int_eq(embeng_model_add_table(t->model, &table), 0);
	ck_assert_int_eq(embeng_model_add_feature(t->model, &f), 0);
	snprintf(name, sizeof(name), "soft:cores=2,memory=64M,variant=%s", variant);
	ck_assert_msg(!embeng_open(name, t->model, &t->e, &error), "%s", error.text);
	t->rows = random_values(ROWS * t->dim);
	ck_assert_int_eq(embeng_rows_write(t->e, 0, NULL, NULL, ROWS, t->rows), 0);
}

/* Some bags are longer than the chunks that they are walked in. */
static size_t bag_length(void)
{
	switch (random_below(150)) {
	case 0:
		return 500 + random_below(1500);
	case 1:
		return 512;
	default:
		return random_below(4) * random_below(9);
	}
}

static void make_input(struct trial *t)
{
	size_t count;

	t->sparse = random_below(2);
	/* neither sequences nor max take weights */
	t->weighted = random_below(2) && !t->model->features[0].max_sequence_length &&
		      t->model->tables[0].combiner != EMBENG_MAX;
	t->splits[0] = 0;
	for (size_t s = 0; s < SAMPLES; s++)
		t->splits[s + 1] = t->splits[s] + (int64_t)bag_length();
	count = (size_t)t->splits[SAMPLES];
	t->ids = calloc(count + 1, sizeof(*t->ids));
	t->indices = calloc(2 * count + 1, sizeof(*t->indices));
	t->weights = random_values(count);
	for (size_t s = 0; s < SAMPLES; s++) {
		/* so small that the bag's scale does not fit; the long ones come in chunks */
		float size = random_below(4) ? 1.0f : 0x1p-140f;

		for (size_t k = (size_t)t->splits[s]; k < (size_t)t->splits[s + 1]; k++) {
			t->ids[k] = (int64_t)random_below(ROWS);
			t->indices[2 * k] = (int64_t)s;
			t->indices[2 * k + 1] = (int64_t)k - t->splits[s];
			/* above 0, so that a sparse input is not pruned */
			if (t->sparse)
				t->weights[k] = 2.0f + random_unit();
			t->weights[k] *= size;
		}
	}
	t->shape[0] = SAMPLES;
	t->shape[1] = 1 << 20;
}

static struct embeng_serving_input serving_input(const struct trial *t)
{
	size_t count = (size_t)t->splits[SAMPLES];
	struct embeng_serving_input in = ragged_input(0, t->ids, t->splits, SAMPLES + 1);

	if (t->sparse)
		in = sparse_input(0, t->ids, count, t->indices, t->shape, 2);
	if (t->weighted)
		weigh(&in, t->weights);
	return in;
}

/* Returns the activations that the engine computes. The caller frees them. */
static float *engine_lookup(const struct trial *t, size_t elements)
{
	struct embeng_batch *b = embeng_batch_new(t->e, EMBENG_INFERENCE, 0);
	struct embeng_activations a = {.size = sizeof(a)};
	size_t count = (size_t)t->splits[SAMPLES], weights = t->weighted ? count : 0;
	float *out = malloc(elements * sizeof(*out));

	if (t->sparse)
		ck_assert_int_eq(embeng_batch_sparse(b, 0, EMBENG_I64, t->indices, t->ids, count,
						     t->shape, 2, weights ? t->weights : NULL,
						     weights),
				 0);
	else
		ck_assert_int_eq(embeng_batch_ragged_splits(b, 0, EMBENG_I64, t->ids, count,
							    t->splits, SAMPLES + 1,
							    weights ? t->weights : NULL, weights),
				 0);
	ck_assert_int_eq(embeng_enqueue(t->e, b, 0), 0);
	ck_assert_int_eq(embeng_dequeue(t->e, 0, 0, &a), 0);
	memcpy(out, a.features[0].data, elements * sizeof(*out));
	ck_assert_int_eq(embeng_release(t->e, &a), 0);
	embeng_batch_free(b);
	return out;
}

static void expect_bits(const struct plan *p, const float *want, const char *what)
{
	for (size_t i = 0; i < p->elements; i++)
		ck_assert_msg(same_float(p->in.out[i], want[i]), "%s: [%zu] of %zu: %a, engine %a",
			      what, i, p->elements, (double)p->in.out[i], (double)want[i]);
	memset(p->in.out, 0xee, p->elements * sizeof(float));
}

static void one_piece(struct plan *p, const struct trial *t, const struct kernel_ops *ops,
		      const float *want)
{
	struct checkpoint_piece piece = {.count = ROWS, .stride = 1, .rows = t->rows};
	struct row_source source = source_of(&piece, 1, t->dim);

	ck_assert_int_eq(plan_check(p, &source), 0);
	plan_sum(p, &source, ops);
	expect_bits(p, want, "one piece");
}

/* The same ids of 32 bits. */
static void sum_narrow(const struct plan *p, const struct row_source *source,
		       const struct kernel_ops *ops)
{
	struct plan narrow = *p;
	int32_t *ids = calloc(p->in.id_count + 1, sizeof(*ids));

	for (size_t k = 0; k < p->in.id_count; k++)
		ids[k] = (int32_t)((const int64_t *)p->in.ids)[k];
	narrow.in.ids = ids;
	narrow.in.type = EMBENG_I32;
	plan_sum(&narrow, source, ops);
	free(ids);
}

/* Pieces of one length, or of random ones, in memory in the opposite order. */
static void many_pieces(struct plan *p, const struct trial *t, const struct kernel_ops *ops,
			const float *want, bool same)
{
	struct checkpoint_piece pieces[PIECES];
	struct row_source source;
	float *copy = malloc(ROWS * t->dim * sizeof(*copy));
	int64_t first = 0;

	for (size_t i = 0; i < PIECES; i++) {
		int64_t left = ROWS - first;
		int64_t count = same ? 160 : 1 + (int64_t)random_below(200);

		count = i + 1 < PIECES && count < left ? count : left;
		pieces[i] = (struct checkpoint_piece){
			.first = first,
			.count = count,
			.stride = 1,
			.rows = copy + (size_t)(ROWS - first - count) * t->dim};
		memcpy(copy + (size_t)(ROWS - first - count) * t->dim,
		       t->rows + (size_t)first * t->dim, (size_t)count * t->dim * sizeof(*copy));
		first += count;
	}
	source = source_of(pieces, PIECES, t->dim);
	source.fetch = (struct fetch_way){(u32)random_below(FETCH_ROWS_MOST + 1),
					  (u32)random_below(KERNEL_FETCH_BURST + 1)};
	ck_assert_int_eq(source.piece_rows, same ? 160 : 0);
	plan_sum(p, &source, ops);
	expect_bits(p, want, "pieces");
	sum_narrow(p, &source, ops);
	expect_bits(p, want, "pieces, narrow ids");
	free(copy);
}

static void live(struct plan *p, const struct trial *t, const float *want)
{
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng_serving *s;

	ck_assert_msg(!embeng_serving_live(t->e, NULL, &s, &error), "%s", error.text);
	ck_assert_int_eq(embeng_serving_lookup(s, &p->in, 1), 0);
	expect_bits(p, want, "live");
	embeng_serving_close(s);
}

static void check_trial(const char *variant, const struct kernel_ops *ops)
{
	struct trial t = {0};
	struct embeng_serving_input in;
	struct plan plan;
	float *want;

	make_model(&t, variant);
	make_input(&t);
	in = serving_input(&t);
	ck_assert_int_eq(plan_make(t.model, &in, &plan), 0);
	plan.in.out = malloc(plan.elements * sizeof(float));
	plan.in.out_elements = plan.elements;
	want = engine_lookup(&t, plan.elements);
	one_piece(&plan, &t, ops, want);
	many_pieces(&plan, &t, ops, want, false);
	many_pieces(&plan, &t, ops, want, true);
	live(&plan, &t, want);
	free(want);
	free(plan.in.out);
	free(t.rows);
	free(t.ids);
	free(t.indices);
	free(t.weights);
	embeng_close(t.e);
	embeng_model_free(t.model);
}

START_TEST(bits_are_the_engines)
{
	const char *variant = kernel_variant((u32)_i);

	ck_assert_int_eq(setenv("EMBENG_KERNEL", variant, 1), 0);
	for (int i = 0; i < TRIALS; i++)
		check_trial(variant, kernel_select(variant));
	unsetenv("EMBENG_KERNEL");
}
END_TEST

/*
 * A sum that underflowed to -0 goes on as -0: from +0 the next product, -0 too, would
 * leave +0.
 */
START_TEST(a_sum_goes_on_from_minus_zero)
{
	enum { COUNT_OF_IDS = 600 };
	const struct kernel_ops *ops = kernel_select(kernel_variant((u32)_i));
	float row[17], weights[COUNT_OF_IDS], out[17];
	u64 rows[COUNT_OF_IDS] = {0}, bag[] = {0, COUNT_OF_IDS};
	struct kernel_bag_work w = {.table = row,
				    .stride = 17,
				    .dim = 17,
				    .rows = rows,
				    .rows_count = COUNT_OF_IDS,
				    .weights = weights,
				    .bag = bag,
				    .out = out,
				    .out_stride = 17};

	for (int i = 0; i < 17; i++)
		row[i] = 0x1p-149f;
	for (int i = 0; i < COUNT_OF_IDS; i++)
		weights[i] = -0x1p-20f;
	bag[1] = 512;
	ops->lookup(&w, 0, 1);
	ck_assert_uint_eq(bits_of(out[16]), 0x80000000);
	bag[1] = COUNT_OF_IDS - 512;
	w.resume = true;
	ops->lookup(&w, 0, 1);
	for (int i = 0; i < 17; i++)
		ck_assert_uint_eq(bits_of(out[i]), 0x80000000);
	w.resume = false;
	bag[1] = 0;
	ops->lookup(&w, 0, 1);
	ck_assert_uint_eq(bits_of(out[16]), 0);
}
END_TEST

static void add(TCase *tcase)
{
	random_start();
	tcase_set_timeout(tcase, 240);
	add_variant_tests(tcase, bits_are_the_engines, 1);
	add_variant_tests(tcase, a_sum_goes_on_from_minus_zero, 1);
}

int main(void)
{
	return suite_main("serving_bits", add);
}
