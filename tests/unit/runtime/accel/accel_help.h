/* SPDX-License-Identifier: MIT */
/* Handles on the fake driver's device. */
#ifndef TEST_ACCEL_HELP_H
#define TEST_ACCEL_HELP_H

#include "fake_driver.h"
#include "session_help.h"

#define STEPS 3

static inline struct embeng_model *small_model(uint32_t replicas)
{
	struct embeng_table_config t = {.size = sizeof(t),
					.name = "t",
					.vocabulary_size = 4,
					.dim = 2,
					.optimizer = embeng_adagrad(0.1f)};
	struct embeng_feature_config f = {.size = sizeof(f), .name = "f"};
	struct embeng_engine_config c = {.size = sizeof(c), .replicas = replicas};
	struct embeng_model *m = embeng_model_new();

	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	ck_assert_int_eq(embeng_model_set_engine(m, &c), 0);
	return m;
}

static inline int try_open(const char *name, uint32_t replicas, struct embeng **out)
{
	struct embeng_model *m = small_model(replicas);
	int ret = embeng_open(name, m, out, NULL);

	embeng_model_free(m);
	return ret;
}

static inline struct embeng *open_on(const char *name, uint32_t replicas)
{
	const float rows[] = {0, 1, 10, 11, 20, 21, 30, 31};
	struct embeng *e = NULL;
	struct embeng_error error = {.size = sizeof(error)};
	int ret = try_open(name, replicas, &e);

	embeng_last_error(&error);
	ck_assert_msg(!ret, "%s", error.text);
	ck_assert_int_eq(embeng_rows_write(e, 0, NULL, NULL, 4, rows), 0);
	return e;
}

static inline void nothing_left(void)
{
	ck_assert_int_eq(fake.bos, 0);
	ck_assert_int_eq(fake.bindings, 0);
	ck_assert_int_eq(fake.mappings, 0);
	ck_assert_int_eq(fake.files, 0);
}

static inline void train_step(struct embeng *e, uint32_t replica)
{
	struct embeng_activations a = {.size = sizeof(a)};

	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, replica, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, replica, -1, &a), 0);
	ck_assert_int_eq(apply_ones(e, replica), 0);
}

#endif
