// SPDX-License-Identifier: MIT
/*
 * Row reads between steps see every update that was handed in, while the service
 * thread and the caller race to fetch the update and the drain behind it.
 */
#include "suite.h"
#include "embeng.h"

#define STEPS 4000

static struct embeng *open_model(int pipelining)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng_engine_config config = {.size = sizeof(config), .pipelining = pipelining};
	struct embeng_table_config table = {.size = sizeof(table),
					    .vocabulary_size = 4,
					    .dim = 1,
					    .optimizer = embeng_sgd(1.0f),
					    .initializer = {.kind = EMBENG_INIT_CONSTANT}};
	struct embeng_feature_config feature = {.size = sizeof(feature)};
	struct embeng *e = NULL;

	ck_assert_int_eq(embeng_model_set_engine(m, &config), 0);
	ck_assert_int_eq(embeng_model_add_table(m, &table), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, &feature), 0);
	ck_assert_int_eq(embeng_open("soft:cores=3", m, &e, NULL), 0);
	embeng_model_free(m);
	return e;
}

static void one_step(struct embeng *e, struct embeng_batch *b)
{
	struct embeng_activations act = {.size = sizeof(act)};
	const float one = 1.0f, *features[] = {&one};
	struct embeng_gradients g = {.size = sizeof(g), .count = 1, .features = features};
	const int64_t id = 2, shape = 1;

	embeng_batch_reset(b, EMBENG_TRAIN);
	ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I64, &id, 1, &shape, 1), 0);
	ck_assert_int_eq(embeng_enqueue(e, b, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &act), 0);
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), 0);
}

START_TEST(test_every_update_is_drained)
{
	struct embeng *e = open_model(_i);
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	const int64_t row = 2;

	for (int step = 1; step <= STEPS; step++) {
		float value = 0.0f;

		one_step(e, b);
		ck_assert_int_eq(embeng_rows_read(e, 0, NULL, &row, 1, &value), 0);
		ck_assert_float_eq(value, (float)-step);
	}
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, test_every_update_is_drained, 0, 2);
}

int main(void)
{
	return suite_main("drain", add);
}
