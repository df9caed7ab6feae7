// SPDX-License-Identifier: MIT
/* Optimizers of vectors are turned into settings of the library. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cli/conform/schema.h"
#include "runtime/cli/conform/settings.h"
#include "json_help.h"
#include "suite.h"

/* Returns the optimizer that the JSON text describes. The text must be valid. */
static struct embeng_optimizer read_text(const char *text)
{
	const struct json *spec = must_read(text);
	struct embeng_optimizer o = {0};
	static char rate[64];

	ck_assert_ptr_nonnull(spec);
	ck_assert_msg(optimizer_read(spec, &o), "%s", text);
	if (o.rate_name)
		o.rate_name = strcpy(rate, o.rate_name);
	json_free(spec);
	return o;
}

/* Nothing but @text's own words differ from what the library starts with. */
static void expect_same(const char *text, struct embeng_optimizer want)
{
	struct embeng_optimizer got = read_text(text);

	ck_assert_int_eq(got.kind, want.kind);
	for (const char *const *key = (const char *const[]){"initial_accumulator_value",
							    "momentum",
							    "exponent",
							    "beta2",
							    "epsilon",
							    "learning_rate_power",
							    "l1_regularization_strength",
							    "l2_regularization_strength",
							    "beta",
							    "beta_1",
							    "beta_2",
							    "beta1",
							    "rho",
							    "l1",
							    "l2",
							    "b1",
							    "b2",
							    "eps",
							    "max_var_update",
							    "max_accumulator",
							    "tau",
							    "max_delta",
							    "outlier_threshold",
							    "weight_exponent",
							    "max_lr_multiplier",
							    "probability_exponent",
							    "accumulator_decay",
							    "weight_decay_factor",
							    NULL};
	     *key; key++) {
		const struct setting *s = setting_find(*key);
		float a, b;

		ck_assert_ptr_nonnull(s);
		memcpy(&a, (char *)&got + s->at, sizeof(a));
		memcpy(&b, (char *)&want + s->at, sizeof(b));
		ck_assert_msg(a == b, "%s: %s is %g, not %g", text, *key, (double)a, (double)b);
	}
	ck_assert(got.learning_rate == want.learning_rate);
	ck_assert_int_eq(got.bias_correction, want.bias_correction);
	ck_assert_int_eq(got.use_nesterov, 0);
	ck_assert_int_eq(got.has_clip_min + got.has_clip_max + got.has_clip_weight_min +
				 got.has_clip_weight_max,
			 0);
}

START_TEST(defaults_are_the_librarys)
{
	expect_same("{\"kind\": \"sgd\"}", embeng_sgd(0.01f));
	expect_same("{\"kind\": \"adagrad\"}", embeng_adagrad(0.001f));
	expect_same("{\"kind\": \"adagrad_momentum\"}", embeng_adagrad_momentum(0.001f));
	expect_same("{\"kind\": \"ftrl\"}", embeng_ftrl(0.001f));
	expect_same("{\"kind\": \"adam\"}", embeng_adam(0.001f));
	expect_same("{\"kind\": \"adam\", \"bias_correction\": false}", embeng_adam(0.001f));
	expect_same("{\"kind\": \"adam\", \"bias_correction\": true}",
		    embeng_adam_corrected(0.001f));
	expect_same("{\"kind\": \"momentum\"}", embeng_momentum(0.001f));
	expect_same("{\"kind\": \"lion\"}", embeng_lion(0.001f));
	expect_same("{\"kind\": \"proximal_yogi\"}", embeng_proximal_yogi(0.01f));
	expect_same("{\"kind\": \"online_yogi\"}", embeng_online_yogi(0.01f));
	expect_same("{\"kind\": \"frequency_estimator\"}", embeng_frequency_estimator(0.001f));
	expect_same("{\"kind\": \"frequency_aware_adagrad\"}",
		    embeng_frequency_aware_adagrad(0.01f));
	expect_same("{\"kind\": \"mdl_adagrad_light\"}", embeng_mdl_adagrad_light(0.001f));
	expect_same("{\"kind\": \"sgd\", \"weight_decay_factor\": null, \"clipvalue\": null, "
		    "\"clip_weight_min\": null}",
		    embeng_sgd(0.01f));
}
END_TEST

START_TEST(keys_reach_their_members)
{
	struct embeng_optimizer o = read_text(
		"{\"kind\": \"adagrad_momentum\", \"learning_rate\": 8, \"momentum\": 1, "
		"\"use_nesterov\": true, \"exponent\": 3, \"beta2\": 0.25, \"epsilon\": 0.5}");

	ck_assert(o.learning_rate == 8 && o.momentum == 1 && o.use_nesterov == 1);
	ck_assert(o.exponent == 3 && o.beta2 == 0.25f && o.epsilon == 0.5f);
	o = read_text("{\"kind\": \"ftrl\", \"learning_rate_power\": -1, "
		      "\"l1_regularization_strength\": 2, \"l2_regularization_strength\": 3, "
		      "\"beta\": 4, \"initial_accumulator_value\": 5, "
		      "\"multiply_linear_by_learning_rate\": true, "
		      "\"allow_zero_accumulator\": true}");
	ck_assert(o.learning_rate_power == -1 && o.l1_regularization_strength == 2);
	ck_assert(o.l2_regularization_strength == 3 && o.beta == 4);
	ck_assert(o.initial_accumulator_value == 5);
	ck_assert(o.multiply_linear_by_learning_rate == 1 && o.allow_zero_accumulator == 1);
	o = read_text("{\"kind\": \"adam\", \"beta_1\": 0.5, \"beta_2\": 0.25, \"epsilon\": 2, "
		      "\"lazy_adam\": false, \"sum_inside_sqrt\": false, "
		      "\"bias_correction\": true}");
	ck_assert(o.beta_1 == 0.5f && o.beta_2 == 0.25f && o.epsilon == 2);
	ck_assert(o.lazy_adam == EMBENG_OFF && o.sum_inside_sqrt == EMBENG_OFF);
	ck_assert_int_eq(o.bias_correction, 1);
	o = read_text("{\"kind\": \"adam\", \"lazy_adam\": true, \"sum_inside_sqrt\": true, "
		      "\"epsilon\": \"inf\"}");
	ck_assert(o.lazy_adam == EMBENG_ON && o.sum_inside_sqrt == EMBENG_ON && isinf(o.epsilon));
}
END_TEST

START_TEST(common_keys_reach_their_members)
{
	struct embeng_optimizer o = read_text(
		"{\"kind\": \"sgd\", \"learning_rate\": {\"dynamic\": \"r\"}, "
		"\"clip_weight_min\": -2, \"clip_weight_max\": 3, \"clipvalue\": 4, "
		"\"weight_decay_factor\": 5, "
		"\"multiply_weight_decay_factor_by_learning_rate\": true, "
		"\"use_gradient_accumulation\": false, "
		"\"low_dimensional_packing_status\": true}");

	ck_assert_str_eq(o.rate_name, "r");
	ck_assert(o.has_clip_weight_min && o.clip_weight_min == -2);
	ck_assert(o.has_clip_weight_max && o.clip_weight_max == 3);
	ck_assert(o.has_clip_min && o.clip_min == -4 && o.has_clip_max && o.clip_max == 4);
	ck_assert(o.weight_decay_factor == 5);
	ck_assert_int_eq(o.multiply_weight_decay_by_rate, 1);
	ck_assert_int_eq(o.use_gradient_accumulation, EMBENG_OFF);
	ck_assert_int_eq(o.low_dimensional_packing, 1);
	o = read_text("{\"kind\": \"sgd\", \"clipvalue\": [-1, null]}");
	ck_assert(o.has_clip_min && o.clip_min == -1 && !o.has_clip_max);
	o = read_text("{\"kind\": \"sgd\", \"clipvalue\": [null, 2]}");
	ck_assert(!o.has_clip_min && o.has_clip_max && o.clip_max == 2);
}
END_TEST

/* A key that the format takes for these kinds and nobody reads would be lost silently. */
START_TEST(no_key_is_lost)
{
	const char *kind;

	for (int k = EMBENG_SGD; (kind = embeng_optimizer_text(k)); k++) {
		ck_assert_ptr_nonnull(optimizer_keys(kind));
		for (const struct key *key = optimizer_keys(kind); key->name; key++)
			ck_assert_msg(setting_find(key->name), "%s of %s", key->name, kind);
	}
}
END_TEST

START_TEST(unknown_kinds)
{
	struct embeng_optimizer o = {.kind = EMBENG_SGD};
	const struct json *lamb = must_read("{\"kind\": \"lamb\", \"beta_1\": 1}");

	ck_assert(!optimizer_read(lamb, &o));
	ck_assert_ptr_null(setting_find("lamb"));
	json_free(lamb);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, defaults_are_the_librarys);
	tcase_add_test(tcase, keys_reach_their_members);
	tcase_add_test(tcase, common_keys_reach_their_members);
	tcase_add_test(tcase, no_key_is_lost);
	tcase_add_test(tcase, unknown_kinds);
}

int main(void)
{
	return suite_main("vector_settings", add);
}
