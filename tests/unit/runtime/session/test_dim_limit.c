// SPDX-License-Identifier: MIT
/* The widest rows that a device has work, and wider ones are refused with the table's name. */
#include <stdio.h>

#include "session_help.h"
#include "suite.h"
#include "embeng/tpu.h"

#define ROWS 3

static struct embeng_model *wide_model(int64_t dim)
{
	struct embeng_table_config thin = {.size = sizeof(thin),
					   .name = "thin",
					   .vocabulary_size = ROWS,
					   .dim = 1,
					   .optimizer = embeng_adam(0.5f)};
	struct embeng_table_config wide = {.size = sizeof(wide),
					   .name = "wide",
					   .vocabulary_size = ROWS,
					   .dim = dim,
					   .combiner = EMBENG_SUM,
					   .optimizer = embeng_adam(0.5f)};
	struct embeng_feature_config f = {
		.size = sizeof(f), .name = "f", .table = 1, .output_rank = 1, .output_shape = {1}};
	struct embeng_engine_config c = {.size = sizeof(c), .replicas = 1};
	struct embeng_model *m = embeng_model_new();

	thin.initializer = wide.initializer = (struct embeng_initializer){
		.kind = EMBENG_INIT_CONSTANT, .a = 2.0f};
	ck_assert_int_eq(embeng_model_add_table(m, &thin), 0);
	ck_assert_int_eq(embeng_model_add_table(m, &wide), 1);
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	ck_assert_int_eq(embeng_model_set_engine(m, &c), 0);
	return m;
}

static int64_t widest(void)
{
	struct embeng_device_info info = {.size = sizeof(info)};
	struct embeng_model *m = wide_model(1);
	struct embeng *e;

	ck_assert_int_eq(embeng_open(SMALL, m, &e, NULL), 0);
	ck_assert_int_eq(embeng_info(e, &info), 0);
	embeng_close(e);
	embeng_model_free(m);
	return info.dim;
}

/* Every column of rows 1 and 2 is updated, and none of row 0. */
START_TEST(the_widest_rows_train)
{
	const int64_t dim = widest(), ids[] = {1, 2}, lengths[] = {2};
	struct embeng_activations view = {.size = sizeof(view)};
	struct embeng_model *m = wide_model(dim);
	float *gradient = malloc((size_t)dim * sizeof(float));
	float *rows = malloc((size_t)(ROWS * dim) * sizeof(float));
	const float *features[] = {gradient};
	const size_t elements[] = {(size_t)dim};
	struct embeng_gradients g = {
		.size = sizeof(g), .count = 1, .features = features, .elements = elements};
	struct embeng_batch *b;
	struct embeng *e;

	for (int64_t k = 0; k < dim; k++)
		gradient[k] = 1.0f;
	ck_assert_int_eq(embeng_open(SMALL, m, &e, NULL), 0);
	b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	ck_assert_int_eq(embeng_batch_ragged(b, 0, EMBENG_I64, ids, 2, lengths, 1, NULL, 0), 0);
	ck_assert_int_eq(embeng_enqueue(e, b, 0), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &view), 0);
	for (int64_t k = 0; k < dim; k++)
		ck_assert_float_eq(view.features[0].data[k], 4.0f);
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), 0);
	ck_assert_int_eq(embeng_rows_read(e, 1, NULL, NULL, ROWS, rows), 0);
	for (int64_t k = 0; k < dim; k++) {
		ck_assert_float_eq(rows[k], 2.0f);
		ck_assert_float_lt(rows[dim + k], 2.0f);
		ck_assert_float_eq(rows[dim + k], rows[dim]);
		ck_assert_float_eq(rows[2 * dim + k], rows[dim]);
	}
	embeng_batch_free(b);
	embeng_close(e);
	embeng_model_free(m);
	free(gradient);
	free(rows);
}
END_TEST

static void expect_too_wide(const struct embeng_model *m, int64_t dim, int64_t most)
{
	char text[128];
	struct embeng *e = NULL;

	snprintf(text, sizeof(text), "table wide: dim is %lld, and must be at most %lld",
		 (long long)dim, (long long)most);
	ck_assert_int_eq(embeng_open(SMALL, m, &e, NULL), -ERANGE);
	expect_text(text);
	ck_assert_ptr_null(e);
}

/* The structure and a protobuf are alike. */
START_TEST(wider_rows_are_refused_by_name)
{
	const int64_t most = widest(), dims[] = {most + 1, 2 * most, INT32_MAX};
	struct embeng_tpu *tpu;
	size_t length;
	void *bytes;

	for (size_t i = 0; i < sizeof(dims) / sizeof(*dims); i++) {
		struct embeng_model *m = wide_model(dims[i]);

		expect_too_wide(m, dims[i], most);
		ck_assert_int_eq(embeng_tpu_export(m, NULL, &bytes, &length), 0);
		ck_assert_int_eq(embeng_tpu_import(bytes, length, NULL, &tpu), 0);
		expect_too_wide(embeng_tpu_model(tpu), dims[i], most);
		embeng_tpu_free(tpu);
		free(bytes);
		embeng_model_free(m);
	}
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, the_widest_rows_train);
	tcase_add_test(tcase, wider_rows_are_refused_by_name);
}

int main(void)
{
	return suite_main("dim-limit", add);
}
