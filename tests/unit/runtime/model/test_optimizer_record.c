// SPDX-License-Identifier: MIT
/*
 * Records by which the engine is given optimizers, and the settings that the model's hash covers.
 */
#include <math.h>

#include "embeng_engine.h"
#include "test_model.h"

static struct embeng_model *model_with(struct embeng_optimizer optimizer,
				       const struct embeng_slot_start *start)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng_table_config t = table_config("t");

	t.dim = 2;
	t.optimizer = optimizer;
	t.slot_starts = start;
	t.slot_start_count = start != NULL;
	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	return m;
}

/* The record of a model's only table. */
static struct embeng_record_table record_of(struct embeng_optimizer optimizer,
					    const struct embeng_slot_start *start)
{
	struct embeng_model *m = model_with(optimizer, start);
	struct embeng_record_table r;
	size_t length;
	void *blob;

	ck_assert_int_eq(embeng_model_blob(m, &blob, &length), 0);
	memcpy(&r,
	       (char *)blob + sizeof(struct embeng_blob_header) +
		       sizeof(struct embeng_record_engine),
	       sizeof(r));
	ck_assert_uint_eq(r.head.type, EMBENG_RECORD_TABLE);
	free(blob);
	embeng_model_free(m);
	return r;
}

static uint64_t hash_of(struct embeng_optimizer optimizer)
{
	struct embeng_model *m = model_with(optimizer, NULL);
	uint64_t hash = embeng_model_hash(m);

	embeng_model_free(m);
	return hash;
}

static void expect_floats(const uint32_t *got, size_t room, const float *want, size_t count)
{
	for (size_t i = 0; i < room; i++) {
		float x;

		memcpy(&x, &got[i], sizeof(x));
		ck_assert_msg(x == (i < count ? want[i] : 0.0f), "[%zu] is %g", i, (double)x);
	}
}

#define ASSERT_FLOATS(got, ...) \
	expect_floats(got, COUNT(got), (const float[]){__VA_ARGS__}, \
		      sizeof((const float[]){__VA_ARGS__}) / sizeof(float))

START_TEST(test_adagrad_momentum)
{
	struct embeng_optimizer o = embeng_adagrad_momentum(0.5f);
	struct embeng_record_table r;

	o.momentum = 0.75f;
	o.use_nesterov = 7;
	o.exponent = 3.0f;
	o.beta2 = 0.25f;
	o.epsilon = 0.125f;
	r = record_of(o, NULL);
	ck_assert_uint_eq(r.optimizer, EMBENG_OPTIMIZER_ADAGRAD_MOMENTUM);
	ck_assert_uint_eq(r.slot_count, 2);
	ck_assert_uint_eq(r.flags, EMBENG_TABLE_ACCUMULATE);
	ASSERT_FLOATS(r.hyperparameter, 0.75f, 1.0f, 3.0f, 0.25f, 0.125f);
	ASSERT_FLOATS(r.slot_start, 0.0f, 0.0f);
}
END_TEST

START_TEST(test_ftrl)
{
	struct embeng_optimizer o = embeng_ftrl(0.5f);
	struct embeng_record_table r;

	o.learning_rate_power = -0.25f;
	o.l1_regularization_strength = 1.0f;
	o.l2_regularization_strength = 2.0f;
	o.beta = 3.0f;
	o.initial_accumulator_value = 4.0f;
	o.multiply_linear_by_learning_rate = 1;
	r = record_of(o, NULL);
	ck_assert_uint_eq(r.optimizer, EMBENG_OPTIMIZER_FTRL);
	ck_assert_uint_eq(r.slot_count, 2);
	ASSERT_FLOATS(r.hyperparameter, -0.25f, 1.0f, 2.0f, 3.0f, 1.0f);
	ASSERT_FLOATS(r.slot_start, 4.0f, 0.0f);
}
END_TEST

START_TEST(test_adam)
{
	struct embeng_optimizer o = embeng_adam(0.5f);
	struct embeng_record_table r = record_of(o, NULL);

	ck_assert_uint_eq(r.optimizer, EMBENG_OPTIMIZER_ADAM);
	ck_assert_uint_eq(r.slot_count, 2);
	ck_assert_uint_eq(r.flags, EMBENG_TABLE_ACCUMULATE);
	ASSERT_FLOATS(r.hyperparameter, 0.9f, 0.999f, 1e-7f, 1.0f, 0.0f);
	ASSERT_FLOATS(r.slot_start, 0.0f, 0.0f);
	o.lazy_adam = EMBENG_OFF;
	o.sum_inside_sqrt = EMBENG_OFF;
	r = record_of(o, NULL);
	ck_assert_uint_eq(r.flags, EMBENG_TABLE_ACCUMULATE | EMBENG_TABLE_NON_LAZY);
	ASSERT_FLOATS(r.hyperparameter, 0.9f, 0.999f, 1e-7f, 0.0f, 0.0f);
	r = record_of(embeng_adam_corrected(0.5f), NULL);
	ASSERT_FLOATS(r.hyperparameter, 0.9f, 0.999f, 1e-8f, 0.0f, 1.0f);
}
END_TEST

START_TEST(test_lazy_adam_is_of_adam_alone)
{
	struct embeng_optimizer o = embeng_adagrad(0.5f);

	o.lazy_adam = EMBENG_OFF;
	ck_assert_uint_eq(record_of(o, NULL).flags, EMBENG_TABLE_ACCUMULATE);
}
END_TEST

/* The second rate is the step's; of another kind the name means nothing. */
START_TEST(test_step_counter)
{
	struct embeng_optimizer o = embeng_frequency_aware_adagrad(0.5f);
	struct embeng_record_table r = record_of(o, NULL);

	ck_assert_uint_eq(r.flags, EMBENG_TABLE_ACCUMULATE);
	ASSERT_FLOATS(r.hyperparameter, 0.0f, 0.0f, 1e6f, 0.5f, 1.0f, 0.1f);
	ASSERT_FLOATS(r.slot_start, 0.1f, 0.0f);
	o.rate_name = "rate";
	o.step_counter = "step";
	r = record_of(o, NULL);
	ck_assert_uint_eq(r.flags, EMBENG_TABLE_ACCUMULATE | EMBENG_TABLE_RATE_DYNAMIC |
					   EMBENG_TABLE_STEP_DYNAMIC);
	ck_assert_uint_eq(r.rate, 0);
	ck_assert_uint_eq(r.step_rate, 1);
	o = embeng_sgd(0.5f);
	o.step_counter = "step";
	ck_assert_uint_eq(record_of(o, NULL).flags, EMBENG_TABLE_ACCUMULATE);
}
END_TEST

START_TEST(test_lion_over_all_rows)
{
	struct embeng_optimizer o = embeng_lion(0.5f);

	ck_assert_uint_eq(record_of(o, NULL).flags, EMBENG_TABLE_ACCUMULATE);
	o.use_non_lazy = 1;
	ck_assert_uint_eq(record_of(o, NULL).flags,
			  EMBENG_TABLE_ACCUMULATE | EMBENG_TABLE_NON_LAZY);
}
END_TEST

START_TEST(test_slot_starts)
{
	struct embeng_slot_start start = {"linears", {EMBENG_INIT_CONSTANT, -2.5f, 0.0f, 0}};
	struct embeng_record_table r = record_of(embeng_ftrl(0.5f), &start);

	ASSERT_FLOATS(r.slot_start, 0.1f, -2.5f);
	start.slot = "accumulators";
	start.initializer.a = 2.5f;
	r = record_of(embeng_ftrl(0.5f), &start);
	ASSERT_FLOATS(r.slot_start, 2.5f);
	start.initializer.kind = EMBENG_INIT_UNIFORM;
	start.initializer.b = 3.0f;
	r = record_of(embeng_ftrl(0.5f), &start);
	ASSERT_FLOATS(r.slot_start, 0.0f);
	start.initializer.kind = EMBENG_INIT_DEFAULT;
	r = record_of(embeng_ftrl(0.5f), &start);
	ASSERT_FLOATS(r.slot_start, 0.1f);
}
END_TEST

/* Settings that change nothing are in no hash, all others are. */
START_TEST(test_hash_is_of_the_meaning)
{
	struct embeng_optimizer adam = embeng_adam(0.5f), o = adam;
	uint64_t hash = hash_of(adam);

	o.momentum = 3.0f;
	o.allow_zero_accumulator = 1;
	o.lazy_adam = o.sum_inside_sqrt = o.use_gradient_accumulation = EMBENG_ON;
	ck_assert_uint_eq(hash_of(o), hash);
	o.beta_1 = 0.0f;
	hash = hash_of(o);
	o.beta_1 = -0.0f;
	ck_assert_uint_eq(hash_of(o), hash);
	o.sum_inside_sqrt = EMBENG_OFF;
	ck_assert_uint_ne(hash_of(o), hash);
	hash = hash_of(o);
	o.lazy_adam = EMBENG_OFF;
	ck_assert_uint_ne(hash_of(o), hash);
	hash = hash_of(o);
	o.epsilon = 0.5f;
	ck_assert_uint_ne(hash_of(o), hash);
	o = embeng_adam_corrected(0.5f);
	hash = hash_of(o);
	o.sum_inside_sqrt = EMBENG_OFF;
	ck_assert_uint_eq(hash_of(o), hash);
	o.bias_correction = 0;
	ck_assert_uint_ne(hash_of(o), hash);
	o = embeng_sgd(0.5f);
	hash = hash_of(o);
	o.low_dimensional_packing = 1;
	ck_assert_uint_eq(hash_of(o), hash);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_adagrad_momentum,
		test_ftrl,
		test_adam,
		test_lazy_adam_is_of_adam_alone,
		test_step_counter,
		test_lion_over_all_rows,
		test_slot_starts,
		test_hash_is_of_the_meaning,
	};

	return run_tests("optimizer_record", tests, COUNT(tests));
}
