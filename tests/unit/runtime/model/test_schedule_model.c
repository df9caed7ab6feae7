// SPDX-License-Identifier: MIT
/* Models whose dynamic rates follow a schedule, through training, restores and copies. */
#include "checkpoint_help.h"
#include "test_model.h"
#include "runtime/src/session/session.h"

static const uint64_t boundaries[] = {0, 2};
static const float values[] = {8.0f, 4.0f, 2.0f};

/* A table of one row and column, whose rate "slow" is 8, 4, 4, then 2. */
static struct embeng_model *scheduled(void)
{
	struct embeng_schedule s = embeng_schedule_piecewise(boundaries, values, 2);
	struct embeng_table_config t = table_config("t");
	struct embeng_feature_config f = feature_config("f");
	struct embeng_model *m = embeng_model_new();

	t.vocabulary_size = t.dim = 1;
	t.combiner = EMBENG_SUM;
	t.optimizer.rate_name = "slow";
	t.initializer.kind = EMBENG_INIT_CONSTANT;
	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	ck_assert_int_eq(embeng_model_set_schedule(m, "slow", &s), 0);
	return m;
}

static struct embeng *opened(const struct embeng_model *m)
{
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng *e = NULL;

	ck_assert_msg(!embeng_open(SMALL, m, &e, &error), "%s", error.text);
	return e;
}

/* A step with gradient 1, so that the row falls by the rate. */
static int step(struct embeng *e, const struct embeng_rate *rate)
{
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	struct embeng_activations a = {.size = sizeof(a)};
	const float one[] = {1}, *const features[] = {one};
	struct embeng_gradients g = {.size = sizeof(g),
				     .count = 1,
				     .features = features,
				     .rates = rate,
				     .rate_count = rate != NULL};
	const int64_t ids[] = {0}, shape[] = {1};

	ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I64, ids, 1, shape, 1), 0);
	ck_assert_int_eq(embeng_enqueue(e, b, -1), 0);
	embeng_batch_free(b);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	return embeng_apply_gradients(e, &g, -1);
}

static float row(struct embeng *e)
{
	float x;

	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, 1, &x), 0);
	return x;
}

START_TEST(test_training_follows_it)
{
	struct embeng_model *m = scheduled();
	struct embeng *e = opened(m);

	embeng_model_free(m);
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(step(e, NULL), 0);
	ck_assert(row(e) == -(8.0f + 4.0f + 4.0f + 2.0f + 2.0f));
	embeng_close(e);
}
END_TEST

START_TEST(test_a_given_rate_counts_instead)
{
	const struct embeng_rate rate = {"slow", 0.5f};
	struct embeng_model *m = scheduled();
	struct embeng *e = opened(m);

	embeng_model_free(m);
	ck_assert_int_eq(step(e, &rate), 0);
	ck_assert_int_eq(step(e, NULL), 0);
	ck_assert(row(e) == -4.5f);
	embeng_close(e);
}
END_TEST

START_TEST(test_restores_go_on)
{
	struct embeng_model *m = scheduled();
	struct embeng *e = opened(m), *f = opened(m);
	char folder[HELP_PATH];

	embeng_model_free(m);
	folder_new(folder);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(step(e, NULL), 0);
	ck_assert_int_eq(embeng_save(e, folder, NULL), 0);
	ck_assert_int_eq(step(f, NULL), 0);
	ck_assert_int_eq(embeng_restore(f, folder, NULL), 0);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(step(e, NULL), 0);
		ck_assert_int_eq(step(f, NULL), 0);
		ck_assert(row(e) == row(f));
	}
	ck_assert(row(f) == -18.0f);
	/* and back to what was saved, again */
	ck_assert_int_eq(embeng_restore(e, folder, NULL), 0);
	ck_assert_int_eq(step(e, NULL), 0);
	ck_assert(row(e) == -16.0f);
	embeng_close(e);
	embeng_close(f);
	folder_remove(folder);
}
END_TEST

/* The table refuses the value, and the step may be given again. */
START_TEST(test_a_rate_that_a_table_refuses)
{
	struct embeng_schedule s = embeng_schedule_polynomial(1.0f, 1);
	struct embeng_model *m = embeng_model_new();
	const struct embeng_rate rate = {"slow", 0.5f};
	struct embeng_table_config t = table_config("t");
	struct embeng_feature_config f = feature_config("f");
	struct embeng *e;

	s.end_learning_rate = -1.0f;
	t.optimizer = embeng_ftrl(0.5f);
	t.optimizer.rate_name = "slow";
	t.dim = 1;
	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	ck_assert_int_eq(embeng_model_set_schedule(m, "slow", &s), 0);
	e = opened(m);
	embeng_model_free(m);
	ck_assert_int_eq(step(e, NULL), 0);
	ASSERT_REFUSED(step(e, NULL), ERANGE, "slow", "learning_rate -1");
	{
		const float one[] = {1}, *const features[] = {one};
		struct embeng_gradients g = {.size = sizeof(g),
					     .count = 1,
					     .features = features,
					     .rates = &rate,
					     .rate_count = 1};

		ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), 0);
	}
	embeng_close(e);
}
END_TEST

START_TEST(test_a_schedule_without_a_rate)
{
	struct embeng_schedule s = embeng_schedule_exponential(1.0f, 1, 1e30f);
	struct embeng_model *m = scheduled();
	struct embeng *e;

	s.learning_rate = 1e30f;
	ck_assert_int_eq(embeng_model_set_schedule(m, "slow", &s), 0);
	e = opened(m);
	embeng_model_free(m);
	ck_assert_int_eq(step(e, NULL), 0);
	ASSERT_REFUSED(step(e, NULL), ERANGE, "learning rate slow", "step 1", "inf");
	embeng_close(e);
}
END_TEST

START_TEST(test_a_rate_that_is_missing)
{
	struct embeng_model *m = scheduled();
	struct embeng *e;

	ck_assert_int_eq(embeng_model_set_schedule(m, "slow", NULL), 0);
	ck_assert_int_eq(embeng_model_set_schedule(m, "slow", NULL), 0);
	ck_assert_ptr_null(embeng_model_schedule(m, 0));
	e = opened(m);
	embeng_model_free(m);
	ASSERT_REFUSED(step(e, NULL), EINVAL, "learning rate slow is missing");
	embeng_close(e);
}
END_TEST

/*
 * A schedule needs a context of its own: a restore by another process would change the step count.
 */
START_TEST(test_a_shared_context)
{
	struct embeng_model *m = scheduled();
	struct embeng *e = opened(m);

	embeng_model_free(m);
	e->shared = true;
	ASSERT_REFUSED(step(e, NULL), EINVAL, "slow is missing", "shared",
		       "embeng_schedule_rate()");
	e->shared = false;
	embeng_close(e);
}
END_TEST

START_TEST(test_models_own_their_schedules)
{
	struct embeng_schedule s = embeng_schedule_cosine(0.5f, 10);
	uint64_t mine[] = {1};
	float my_values[] = {1, 2};
	struct embeng_model *m = scheduled(), *copy;
	uint64_t hash = embeng_model_hash(m);
	const struct embeng_schedule *got;

	ck_assert_int_eq(embeng_model_set_schedule(m, "slow", &s), 0);
	got = embeng_model_schedule(m, 0);
	ck_assert(got->kind == EMBENG_SCHEDULE_COSINE && got->decay_steps == 10 && !got->values);
	s = embeng_schedule_piecewise(mine, my_values, 1);
	ck_assert_int_eq(embeng_model_set_schedule(m, "slow", &s), 0);
	mine[0] = 9;
	my_values[1] = 9;
	copy = model_copy(m);
	ck_assert_uint_eq(embeng_model_hash(m), hash);
	embeng_model_free(m);
	got = embeng_model_schedule(copy, 0);
	ck_assert(got->boundary_count == 1 && got->boundaries[0] == 1 && got->values[1] == 2.0f);
	ck_assert_ptr_null(embeng_model_schedule(copy, 1));
	ck_assert_ptr_null(embeng_model_schedule(NULL, 0));
	embeng_model_free(copy);
}
END_TEST

START_TEST(test_refused)
{
	struct embeng_schedule s = embeng_schedule_cosine(0.5f, 0);
	struct embeng_model *m = scheduled();

	ASSERT_REFUSED(embeng_model_set_schedule(NULL, "slow", &s), EINVAL, "model");
	ASSERT_REFUSED(embeng_model_set_schedule(m, NULL, &s), EINVAL, "name of a rate");
	ASSERT_REFUSED(embeng_model_set_schedule(m, "fast", &s), ENOENT, "fast", "rate_name");
	ASSERT_REFUSED(embeng_model_set_schedule(m, "slow", &s), ERANGE, "slow", "decay_steps 0");
	s.size = 3;
	ASSERT_REFUSED(embeng_model_set_schedule(m, "slow", &s), EINVAL, "embeng_schedule",
		       "size 3");
	ck_assert(embeng_model_schedule(m, 0)->kind == EMBENG_SCHEDULE_PIECEWISE);
	embeng_model_free(m);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_training_follows_it,
		test_a_given_rate_counts_instead,
		test_restores_go_on,
		test_a_rate_that_a_table_refuses,
		test_a_schedule_without_a_rate,
		test_a_rate_that_is_missing,
		test_a_shared_context,
		test_models_own_their_schedules,
		test_refused,
	};

	return run_tests("schedule_model", tests, COUNT(tests));
}
