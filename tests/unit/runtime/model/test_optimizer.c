// SPDX-License-Identifier: MIT
/* Optimizers as they are configured: defaults, and each way to be refused. */
#include <math.h>

#include "engine/blob/blob.h"
#include "engine/kernels/optimizers.h"
#include "test_model.h"

static const char *const long_name =
	"0123456789012345678901234567890123456789012345678901234567890123";

#define LAST_KIND EMBENG_PARTIAL_ROWWISE_ADAM

/* Refuses a change of this optimizer, which is valid without it. */
#define ASSERT_REFUSED_OF(start, change, errno_, ...) \
	ASSERT_TABLE_REFUSED((c.optimizer = (start), change), errno_, "users", __VA_ARGS__)

static int add(struct embeng_optimizer optimizer, int64_t dim)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng_table_config t = table_config("t");
	int code;

	t.optimizer = optimizer;
	t.dim = dim;
	code = embeng_model_add_table(m, &t);
	embeng_model_free(m);
	return code;
}

START_TEST(test_start_as_documented)
{
	struct embeng_optimizer sgd = embeng_sgd(0.25f), adagrad = embeng_adagrad(0.125f),
				momentum = embeng_adagrad_momentum(1.0f), ftrl = embeng_ftrl(2.0f),
				adam = embeng_adam(3.0f), corrected = embeng_adam_corrected(4.0f);

	ck_assert_uint_eq(sgd.size, sizeof(sgd));
	ck_assert(sgd.kind == EMBENG_SGD && sgd.learning_rate == 0.25f);
	ck_assert_ptr_null(sgd.rate_name);
	ck_assert(adagrad.kind == EMBENG_ADAGRAD && adagrad.learning_rate == 0.125f);
	ck_assert(adagrad.initial_accumulator_value == 0.1f);
	ck_assert_int_eq(adagrad.use_gradient_accumulation, EMBENG_DEFAULT);
	ck_assert(!adagrad.has_clip_min && !adagrad.has_clip_weight_max);
	ck_assert(momentum.kind == EMBENG_ADAGRAD_MOMENTUM && momentum.learning_rate == 1.0f);
	ck_assert(momentum.momentum == 0.0f && !momentum.use_nesterov);
	ck_assert(momentum.exponent == 2.0f && momentum.beta2 == 1.0f);
	ck_assert(momentum.epsilon == 1e-10f && momentum.initial_accumulator_value == 0.0f);
	ck_assert(ftrl.kind == EMBENG_FTRL && ftrl.learning_rate == 2.0f);
	ck_assert(ftrl.learning_rate_power == -0.5f && ftrl.initial_accumulator_value == 0.1f);
	ck_assert(ftrl.l1_regularization_strength == 0.0f &&
		  ftrl.l2_regularization_strength == 0.0f && ftrl.beta == 0.0f);
	ck_assert(!ftrl.multiply_linear_by_learning_rate && !ftrl.allow_zero_accumulator);
	ck_assert(adam.kind == EMBENG_ADAM && adam.learning_rate == 3.0f);
	ck_assert(adam.beta_1 == 0.9f && adam.beta_2 == 0.999f && adam.epsilon == 1e-7f);
	ck_assert(adam.lazy_adam == EMBENG_DEFAULT && adam.sum_inside_sqrt == EMBENG_DEFAULT);
	ck_assert(!adam.bias_correction);
	ck_assert(corrected.kind == EMBENG_ADAM && corrected.learning_rate == 4.0f);
	ck_assert(corrected.bias_correction && corrected.epsilon == 1e-8f);
	ck_assert(corrected.beta_1 == 0.9f && corrected.beta_2 == 0.999f);
}
END_TEST

START_TEST(test_all_of_them_build)
{
	ck_assert_int_eq(add(embeng_sgd(0.0f), 3), 0);
	ck_assert_int_eq(add(embeng_adagrad(0.1f), 3), 0);
	ck_assert_int_eq(add(embeng_adagrad_momentum(0.1f), 3), 0);
	ck_assert_int_eq(add(embeng_ftrl(0.1f), 3), 0);
	ck_assert_int_eq(add(embeng_adam(0.1f), 3), 0);
	ck_assert_int_eq(add(embeng_adam_corrected(0.1f), 3), 0);
	for (enum embeng_optimizer_name kind = EMBENG_SGD; kind <= LAST_KIND; kind++) {
		struct embeng_optimizer o;

		ck_assert_int_eq(embeng_optimizer_by_name(embeng_optimizer_text(kind), 0.1f, &o),
				 0);
		ck_assert_int_eq(add(o, kind == EMBENG_FREQUENCY_ESTIMATOR ? 1 : 3), 0);
	}
}
END_TEST

START_TEST(test_have_names)
{
	ck_assert_ptr_null(embeng_optimizer_text(EMBENG_OPTIMIZER_NO));
	ck_assert_str_eq(embeng_optimizer_text(EMBENG_SGD), "sgd");
	ck_assert_str_eq(embeng_optimizer_text(EMBENG_ADAGRAD), "adagrad");
	ck_assert_str_eq(embeng_optimizer_text(EMBENG_ADAGRAD_MOMENTUM), "adagrad_momentum");
	ck_assert_str_eq(embeng_optimizer_text(EMBENG_FTRL), "ftrl");
	ck_assert_str_eq(embeng_optimizer_text(EMBENG_ADAM), "adam");
	ck_assert_str_eq(embeng_optimizer_text(EMBENG_MOMENTUM), "momentum");
	ck_assert_str_eq(embeng_optimizer_text(LAST_KIND), "partial_rowwise_adam");
	ck_assert_ptr_null(embeng_optimizer_text(LAST_KIND + 1));
	ck_assert_ptr_null(embeng_optimizer_text(-1));
}
END_TEST

START_TEST(test_form_refused)
{
	ASSERT_TABLE_REFUSED(c.optimizer.kind = LAST_KIND + 1, EINVAL, "users", "kind 22",
			     "EMBENG_PARTIAL_ROWWISE_ADAM");
	ASSERT_TABLE_REFUSED(c.optimizer.kind = -1, EINVAL, "users", "kind -1");
	ASSERT_TABLE_REFUSED(c.optimizer.size = 0, EINVAL, "users", "embeng_sgd()");
	ASSERT_TABLE_REFUSED(c.optimizer.use_gradient_accumulation = 3, EINVAL, "users",
			     "use_gradient_accumulation 3");
	ASSERT_TABLE_REFUSED(c.optimizer.learning_rate = NAN, ERANGE, "users", "learning_rate");
	ASSERT_TABLE_REFUSED(c.optimizer.learning_rate = INFINITY, ERANGE, "learning_rate", "inf");
	ASSERT_TABLE_REFUSED(c.optimizer.rate_name = "", EINVAL, "learning rate", "empty");
	ASSERT_TABLE_REFUSED(c.optimizer.rate_name = long_name, EINVAL, "learning rate", "63");
	ASSERT_TABLE_REFUSED(c.optimizer.weight_decay_factor = -1.0f, ERANGE,
			     "weight_decay_factor -1");
	ASSERT_TABLE_REFUSED(c.optimizer.weight_decay_factor = NAN, ERANGE, "weight_decay_factor");
	ASSERT_TABLE_REFUSED(c.optimizer.weight_decay_factor = INFINITY, ERANGE,
			     "weight_decay_factor");
}
END_TEST

START_TEST(test_adagrad_refused)
{
	ASSERT_TABLE_REFUSED(c.optimizer.initial_accumulator_value = 0.0f, ERANGE, "users",
			     "initial_accumulator_value 0", "above 0");
	ASSERT_TABLE_REFUSED(c.optimizer.initial_accumulator_value = INFINITY, ERANGE,
			     "initial_accumulator_value inf");
	ASSERT_TABLE_REFUSED(c.optimizer.initial_accumulator_value = NAN, ERANGE,
			     "initial_accumulator_value");
}
END_TEST

START_TEST(test_adagrad_momentum_refused)
{
	const struct embeng_optimizer start = embeng_adagrad_momentum(0.5f);

	ASSERT_REFUSED_OF(start, c.optimizer.momentum = NAN, ERANGE, "momentum nan", "finite");
	ASSERT_REFUSED_OF(start, c.optimizer.momentum = INFINITY, ERANGE, "momentum inf");
	ASSERT_REFUSED_OF(start, c.optimizer.exponent = 0.0f, ERANGE, "exponent 0", "above 0");
	ASSERT_REFUSED_OF(start, c.optimizer.exponent = -2.0f, ERANGE, "exponent -2", "above 0");
	ASSERT_REFUSED_OF(start, c.optimizer.exponent = INFINITY, ERANGE, "exponent inf");
	ASSERT_REFUSED_OF(start, c.optimizer.beta2 = -0.5f, ERANGE, "beta2 -0.5", "[0, 1]");
	ASSERT_REFUSED_OF(start, c.optimizer.beta2 = 1.5f, ERANGE, "beta2 1.5", "[0, 1]");
	ASSERT_REFUSED_OF(start, c.optimizer.beta2 = NAN, ERANGE, "beta2 nan");
	ASSERT_REFUSED_OF(start, c.optimizer.epsilon = 0.0f, ERANGE, "epsilon 0", "above 0");
	ASSERT_REFUSED_OF(start, c.optimizer.epsilon = NAN, ERANGE, "epsilon nan");
}
END_TEST

START_TEST(test_ftrl_refused)
{
	const struct embeng_optimizer start = embeng_ftrl(0.5f);

	ASSERT_REFUSED_OF(start, c.optimizer.learning_rate_power = 0.5f, ERANGE,
			  "learning_rate_power 0.5", "0 or below");
	ASSERT_REFUSED_OF(start, c.optimizer.learning_rate_power = -INFINITY, ERANGE,
			  "learning_rate_power -inf");
	ASSERT_REFUSED_OF(start, c.optimizer.l1_regularization_strength = -1.0f, ERANGE,
			  "l1_regularization_strength -1", "0 or above");
	ASSERT_REFUSED_OF(start, c.optimizer.l2_regularization_strength = -1.0f, ERANGE,
			  "l2_regularization_strength -1", "0 or above");
	ASSERT_REFUSED_OF(start, c.optimizer.l2_regularization_strength = INFINITY, ERANGE,
			  "l2_regularization_strength inf");
	ASSERT_REFUSED_OF(start, c.optimizer.beta = -1.0f, ERANGE, "beta -1", "0 or above");
	ASSERT_REFUSED_OF(start, c.optimizer.initial_accumulator_value = 0.0f, ERANGE,
			  "initial_accumulator_value 0", "above 0");
	ASSERT_REFUSED_OF(start,
			  (c.optimizer.allow_zero_accumulator = 1,
			   c.optimizer.initial_accumulator_value = 0.0f),
			  ERANGE, "initial_accumulator_value 0");
	ASSERT_REFUSED_OF(start, c.optimizer.learning_rate = 0.0f, ERANGE, "learning_rate 0",
			  "divides");
	ASSERT_REFUSED_OF(start,
			  (c.optimizer.multiply_linear_by_learning_rate = 1,
			   c.optimizer.learning_rate = -1.0f),
			  ERANGE, "learning_rate -1", "0 or above");
}
END_TEST

START_TEST(test_adam_refused)
{
	const struct embeng_optimizer start = embeng_adam(0.5f);

	ASSERT_REFUSED_OF(start, c.optimizer.beta_1 = 1.0f, ERANGE, "beta_1 1", "[0, 1)");
	ASSERT_REFUSED_OF(start, c.optimizer.beta_1 = -0.5f, ERANGE, "beta_1 -0.5");
	ASSERT_REFUSED_OF(start, c.optimizer.beta_2 = 1.0f, ERANGE, "beta_2 1", "[0, 1)");
	ASSERT_REFUSED_OF(start, c.optimizer.beta_2 = NAN, ERANGE, "beta_2 nan");
	ASSERT_REFUSED_OF(start, c.optimizer.epsilon = 0.0f, ERANGE, "epsilon 0", "above 0");
	ASSERT_REFUSED_OF(embeng_adam_corrected(0.5f), c.optimizer.epsilon = -1.0f, ERANGE,
			  "epsilon -1");
	ASSERT_REFUSED_OF(start, c.optimizer.lazy_adam = 3, EINVAL, "lazy_adam 3", "EMBENG_ON");
	ASSERT_REFUSED_OF(start, c.optimizer.sum_inside_sqrt = -1, EINVAL, "sum_inside_sqrt -1");
	ASSERT_REFUSED_OF(start,
			  (c.optimizer.lazy_adam = EMBENG_OFF,
			   c.optimizer.use_gradient_accumulation = EMBENG_OFF),
			  EINVAL, "lazy_adam", "use_gradient_accumulation");
}
END_TEST

/*
 * Values at the edge of an allowed interval are accepted, and so are values that other kinds
 * refuse.
 */
START_TEST(test_edges_build)
{
	struct embeng_optimizer o = embeng_adagrad_momentum(-1.0f);

	o.beta2 = 0.0f;
	o.momentum = -2.0f;
	ck_assert_int_eq(add(o, 3), 0);
	o = embeng_ftrl(0.0f);
	o.multiply_linear_by_learning_rate = 1;
	o.learning_rate_power = 0.0f;
	ck_assert_int_eq(add(o, 3), 0);
	o = embeng_ftrl(0.0f);
	o.rate_name = "given each step";
	ck_assert_int_eq(add(o, 3), 0);
	o = embeng_adam(0.5f);
	o.beta_1 = o.beta_2 = 0.0f;
	o.lazy_adam = EMBENG_OFF;
	ck_assert_int_eq(add(o, 3), 0);
	o = embeng_sgd(0.5f);
	o.epsilon = o.beta_1 = -1.0f;
	o.lazy_adam = EMBENG_OFF;
	o.use_gradient_accumulation = EMBENG_OFF;
	ck_assert_int_eq(add(o, 3), 0);
}
END_TEST

START_TEST(test_clips_refused)
{
	/* An infinity is no limit, and on the wrong side makes all numbers infinite. */
	ASSERT_TABLE_REFUSED(
		(c.optimizer.has_clip_weight_max = 1, c.optimizer.clip_weight_max = -INFINITY),
		ERANGE, "users", "clip_weight_max -inf");
	ASSERT_TABLE_REFUSED(
		(c.optimizer.has_clip_weight_min = 1, c.optimizer.clip_weight_min = INFINITY),
		ERANGE, "users", "clip_weight_min inf");
	ASSERT_TABLE_REFUSED((c.optimizer.has_clip_max = 1, c.optimizer.clip_max = -INFINITY),
			     ERANGE, "users", "clip_max -inf");
	ASSERT_TABLE_REFUSED((c.optimizer.has_clip_min = 1, c.optimizer.has_clip_max = 1,
			      c.optimizer.clip_min = c.optimizer.clip_max = INFINITY),
			     ERANGE, "users", "clip_min inf");
	ASSERT_TABLE_REFUSED((c.optimizer.has_clip_weight_min = 1,
			      c.optimizer.clip_weight_min = 2.0f,
			      c.optimizer.has_clip_weight_max = 1),
			     ERANGE, "users", "clip_weight_min 2", "clip_weight_max 0");
	ASSERT_TABLE_REFUSED(
		(c.optimizer.has_clip_weight_max = 1, c.optimizer.clip_weight_max = NAN), ERANGE,
		"clip_weight", "nan");
	ASSERT_TABLE_REFUSED((c.optimizer.has_clip_min = 1, c.optimizer.clip_min = 1.0f,
			      c.optimizer.has_clip_max = 1, c.optimizer.clip_max = 0.5f),
			     ERANGE, "clip_min 1", "clip_max 0.5");
	ASSERT_TABLE_REFUSED((c.optimizer.has_clip_min = 1, c.optimizer.clip_min = NAN), ERANGE,
			     "clip", "nan");
	ASSERT_TABLE_REFUSED(
		(c.optimizer.has_clip_max = 1, c.optimizer.use_gradient_accumulation = EMBENG_OFF),
		EINVAL, "users", "clipping", "accumulation");
}
END_TEST

static struct embeng_optimizer packed(struct embeng_optimizer o)
{
	o.low_dimensional_packing = 1;
	return o;
}

START_TEST(test_packing)
{
	ck_assert_int_eq(add(packed(embeng_sgd(0.5f)), 1), 0);
	ck_assert_int_eq(add(packed(embeng_sgd(0.5f)), 2), 0);
	ck_assert_int_eq(add(packed(embeng_adagrad(0.5f)), 4), 0);
	ASSERT_REFUSED_OF(packed(embeng_adagrad(0.5f)), c.dim = 3, EINVAL,
			  "low_dimensional_packing", "dim 3", "1, 2 and 4");
	ASSERT_REFUSED_OF(packed(embeng_sgd(0.5f)), c.dim = 8, EINVAL, "dim 8");
	ASSERT_REFUSED_OF(packed(embeng_adam(0.5f)), c.dim = 2, EINVAL, "low_dimensional_packing",
			  "adam", "sgd and adagrad");
	ASSERT_REFUSED_OF(packed(embeng_ftrl(0.5f)), c.dim = 2, EINVAL, "ftrl");
	ASSERT_REFUSED_OF(packed(embeng_adagrad_momentum(0.5f)), c.dim = 2, EINVAL,
			  "adagrad_momentum");
}
END_TEST

START_TEST(test_none_is_not_looked_at)
{
	struct embeng_optimizer none = {.learning_rate = NAN, .low_dimensional_packing = 1};
	struct embeng_model *m = embeng_model_new();
	struct embeng_table_config t = table_config("t");

	t.optimizer = none;
	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	ck_assert_uint_eq(m->tables[0].slot_count, 0);
	ck_assert_int_eq(m->tables[0].optimizer.kind, EMBENG_OPTIMIZER_NO);
	embeng_model_free(m);
}
END_TEST

static void expect_hyper(const struct optimizer_key *key, float value,
			 const struct kernel_parameter *hyper)
{
	static const uint32_t ranges[] = {
		[RANGE_FINITE] = KERNEL_FINITE,	   [RANGE_ABOVE_0] = KERNEL_ABOVE_ZERO,
		[RANGE_FROM_0] = KERNEL_FROM_ZERO, [RANGE_TO_0] = KERNEL_UP_TO_ZERO,
		[RANGE_0_TO_1] = KERNEL_UP_TO_ONE, [RANGE_0_BELOW_1] = KERNEL_BELOW_ONE,
	};

	ck_assert_str_eq(key->name, hyper->name);
	ck_assert_msg(value == hyper->value, "%s: %g", key->name, (double)value);
	ck_assert_uint_eq(hyper->range,
			  key->type == KEY_NUMBER ? ranges[key->range] : KERNEL_SWITCH);
}

static void expect_described(const struct embeng_optimizer *o)
{
	const struct optimizer_info *info = optimizer_info(o->kind);
	uint32_t number = optimizer_kernel(info->engine_kind), hyper = 0;
	const struct kernel_optimizer *kernel;

	ck_assert_uint_lt(number, KERNEL_OPTIMIZER_COUNT);
	kernel = &kernel_optimizers[number];
	ck_assert_str_eq(info->name, kernel->name);
	ck_assert_uint_eq(info->slot_count, kernel->slot_count);
	for (size_t s = 0; s < info->slot_count; s++) {
		ck_assert_str_eq(info->slots[s].name, kernel->slots[s].name);
		ck_assert(optimizer_slot_start(o, s) == kernel->slots[s].value);
	}
	for (size_t k = 0; k < info->key_count; k++) {
		if (!info->keys[k].hyper)
			continue;
		ck_assert_uint_lt(hyper, kernel->hyper_count);
		expect_hyper(&info->keys[k], optimizer_value(o, &info->keys[k]),
			     &kernel->hyper[hyper++]);
	}
	ck_assert_uint_eq(hyper, kernel->hyper_count);
}

/* Names, defaults, ranges and order: the library's description of a kind is the engine's. */
START_TEST(test_described_as_the_engine_does)
{
	for (enum embeng_optimizer_name kind = EMBENG_SGD; kind <= LAST_KIND; kind++) {
		struct embeng_optimizer o;

		ck_assert_int_eq(embeng_optimizer_by_name(embeng_optimizer_text(kind), 1, &o), 0);
		ck_assert_int_eq(o.kind, kind);
		optimizer_resolve(&o);
		expect_described(&o);
	}
}
END_TEST

START_TEST(test_by_name)
{
	struct embeng_optimizer made = embeng_ftrl(0.25f), found;
	struct embeng_error error = {.size = sizeof(error)};

	memset(&found, 0xff, sizeof(found));
	ck_assert_int_eq(embeng_optimizer_by_name("ftrls", 0.25f, &found), -ENOENT);
	embeng_last_error(&error);
	ck_assert_ptr_nonnull(strstr(error.text, "no optimizer 'ftrls'; there are sgd, adagrad,"));
	ck_assert_uint_eq(found.size, SIZE_MAX);
	ck_assert_int_eq(embeng_optimizer_by_name(NULL, 0.25f, &found), -EINVAL);
	ck_assert_int_eq(embeng_optimizer_by_name("ftrl", 0.25f, NULL), -EINVAL);
	ck_assert_int_eq(embeng_optimizer_by_name("ftrl", 0.25f, &found), 0);
	ck_assert_int_eq(found.kind, EMBENG_FTRL);
	ck_assert(found.learning_rate == 0.25f);
	ck_assert(found.learning_rate_power == made.learning_rate_power);
	for (enum embeng_optimizer_name k = EMBENG_SGD; k <= LAST_KIND; k++) {
		ck_assert_int_eq(embeng_optimizer_by_name(embeng_optimizer_text(k), 1, &found), 0);
		ck_assert_int_eq(found.kind, k);
	}
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_start_as_documented,
		test_all_of_them_build,
		test_have_names,
		test_form_refused,
		test_adagrad_refused,
		test_adagrad_momentum_refused,
		test_ftrl_refused,
		test_adam_refused,
		test_edges_build,
		test_clips_refused,
		test_packing,
		test_none_is_not_looked_at,
		test_described_as_the_engine_does,
		test_by_name,
	};

	return run_tests("optimizer", tests, COUNT(tests));
}
