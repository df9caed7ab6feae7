// SPDX-License-Identifier: MIT
/* The Keras layer's rules: names, defaults, translation, slots, and what each refuses. */
#include <math.h>

#include "test_model.h"
#include "embeng/keras.h"

START_TEST(test_names)
{
	struct embeng_optimizer o, want;

	ck_assert_int_eq(embeng_keras_by_name("sgd", &o), 0);
	ck_assert(o.kind == EMBENG_SGD && o.learning_rate == 0.01f);
	ck_assert_int_eq(embeng_keras_by_name("adagrad", &o), 0);
	want = embeng_adagrad(0.001f);
	ck_assert_mem_eq(&o, &want, sizeof(o));
	ck_assert_int_eq(embeng_keras_by_name("adam", &o), 0);
	want = embeng_adam(0.001f);
	ck_assert_mem_eq(&o, &want, sizeof(o));
	ck_assert_int_eq(embeng_keras_by_name("ftrl", &o), 0);
	want = embeng_ftrl(0.001f);
	ck_assert_mem_eq(&o, &want, sizeof(o));
	ASSERT_REFUSED(embeng_keras_by_name("adagrad_momentum", &o), ENOENT,
		       "Unknown optimizer name 'adagrad_momentum'",
		       "'sgd', 'adagrad', 'adam', or 'ftrl'");
	ASSERT_REFUSED(embeng_keras_by_name("SGD", &o), ENOENT, "'SGD'");
	ASSERT_REFUSED(embeng_keras_by_name(NULL, &o), EINVAL, "name");
	ASSERT_REFUSED(embeng_keras_by_name("sgd", NULL), EINVAL, "where");
	ck_assert_mem_eq(&o, &want, sizeof(o));
}
END_TEST

START_TEST(test_optimizers_as_they_are)
{
	const struct embeng_optimizer taken[] = {embeng_sgd(0.5f), embeng_adagrad(0.5f),
						 embeng_adam(0.5f), embeng_ftrl(0.5f)};
	struct embeng_optimizer o = embeng_adagrad_momentum(0.5f);

	for (size_t i = 0; i < COUNT(taken); i++)
		ck_assert_int_eq(embeng_keras_accept(&taken[i]), 0);
	ASSERT_REFUSED(embeng_keras_accept(&o), EINVAL, "Unknown optimizer type adagrad_momentum");
	o = embeng_adam_corrected(0.5f);
	ASSERT_REFUSED(embeng_keras_accept(&o), EINVAL, "type adam with bias_correction");
	o = embeng_adagrad_epsilon(0.5f);
	ASSERT_REFUSED(embeng_keras_accept(&o), EINVAL, "type adagrad with epsilon");
	o = (struct embeng_optimizer){.size = sizeof(o)};
	ASSERT_REFUSED(embeng_keras_accept(&o), EINVAL, "type (none)");
	ASSERT_REFUSED(embeng_keras_accept(NULL), EINVAL, "optimizer must be given");
}
END_TEST

static struct embeng_keras_optimizer keras(const char *class_name)
{
	struct embeng_keras_optimizer k;

	ck_assert_int_eq(embeng_keras_defaults(class_name, &k), 0);
	return k;
}

static struct embeng_optimizer translated(const struct embeng_keras_optimizer *k)
{
	struct embeng_optimizer o;

	ck_assert_int_eq(embeng_keras_translate(k, &o), 0);
	return o;
}

START_TEST(test_defaults_mean_the_names)
{
	static const char *const names[][2] = {
		{"SGD", "sgd"}, {"Adagrad", "adagrad"}, {"Adam", "adam"}, {"Ftrl", "ftrl"}};

	for (size_t i = 0; i < COUNT(names); i++) {
		struct embeng_keras_optimizer k = keras(names[i][0]);
		struct embeng_optimizer o = translated(&k), want;

		ck_assert_int_eq(embeng_keras_by_name(names[i][1], &want), 0);
		ck_assert_mem_eq(&o, &want, sizeof(o));
	}
}
END_TEST

START_TEST(test_settings_are_translated)
{
	struct embeng_keras_optimizer k = keras("Adam");
	struct embeng_optimizer o;

	k.learning_rate = 0.5f;
	k.beta_1 = 0.25f;
	k.beta_2 = 0.75f;
	k.epsilon = 0.125f;
	o = translated(&k);
	ck_assert(o.kind == EMBENG_ADAM && o.learning_rate == 0.5f && !o.rate_name);
	ck_assert(o.beta_1 == 0.25f && o.beta_2 == 0.75f && o.epsilon == 0.125f);
	ck_assert(o.lazy_adam == EMBENG_DEFAULT && !o.bias_correction);
	k = keras("Adagrad");
	k.initial_accumulator_value = 2.0f;
	ck_assert(translated(&k).initial_accumulator_value == 2.0f);
	k = keras("Ftrl");
	k.learning_rate_power = -0.25f;
	k.l1_regularization_strength = 1.0f;
	k.l2_regularization_strength = 2.0f;
	k.beta = 3.0f;
	k.initial_accumulator_value = 4.0f;
	o = translated(&k);
	ck_assert(o.learning_rate_power == -0.25f && o.l1_regularization_strength == 1.0f);
	ck_assert(o.l2_regularization_strength == 2.0f && o.beta == 3.0f);
	ck_assert(o.initial_accumulator_value == 4.0f && !o.multiply_linear_by_learning_rate);
	k = keras("SGD");
	k.rate_name = "slow";
	k.epsilon = 5.0f; /* SGD has none */
	o = translated(&k);
	ck_assert(o.kind == EMBENG_SGD && !strcmp(o.rate_name, "slow"));
}
END_TEST

#define ASSERT_KERAS_REFUSED(class_name_, change, errno_, ...) \
	do { \
		struct embeng_keras_optimizer k = keras(class_name_); \
		struct embeng_optimizer o = embeng_sgd(7.0f), before = o; \
		change; \
		ASSERT_REFUSED(embeng_keras_translate(&k, &o), errno_, __VA_ARGS__); \
		ck_assert_mem_eq(&o, &before, sizeof(o)); \
	} while (0)
#define ASSERT_PARAMETER_REFUSED(class_name_, member, value) \
	ASSERT_KERAS_REFUSED(class_name_, k.member = value, EINVAL, \
			     "Optimizer parameter " #member " is unsupported for TPU embeddings")

START_TEST(test_parameters_refused)
{
	ASSERT_PARAMETER_REFUSED("SGD", decay, 0.5f);
	ASSERT_PARAMETER_REFUSED("SGD", decay, NAN);
	ASSERT_PARAMETER_REFUSED("SGD", momentum, 0.9f);
	ASSERT_PARAMETER_REFUSED("SGD", nesterov, 1);
	ASSERT_PARAMETER_REFUSED("Adagrad", epsilon, 1e-10f);
	ASSERT_PARAMETER_REFUSED("Adam", decay, 0.5f);
	ASSERT_PARAMETER_REFUSED("Adam", amsgrad, 1);
	ASSERT_PARAMETER_REFUSED("Ftrl", l2_shrinkage_regularization_strength, 0.5f);
	ASSERT_KERAS_REFUSED("Ftrl", k.has_clipnorm = 1, EINVAL, "Optimizer parameter clipnorm is");
	ASSERT_KERAS_REFUSED("SGD", k.has_clipvalue = 1, EINVAL,
			     "Optimizer parameter clipvalue is");
}
END_TEST

START_TEST(test_classes_refused)
{
	struct embeng_keras_optimizer k;

	ASSERT_KERAS_REFUSED("SGD", k.class_name = "RMSprop", ENOENT,
			     "Keras optimizer RMSprop is unsupported for TPU Embedding");
	ASSERT_KERAS_REFUSED("SGD", k.class_name = NULL, EINVAL, "class_name");
	ASSERT_KERAS_REFUSED("Adam", k.new_style = 1, EINVAL, "New Keras optimizer", "legacy");
	ASSERT_KERAS_REFUSED("Adam", k.size = 0, EINVAL, "embeng_keras_optimizer", "size 0");
	ASSERT_REFUSED(embeng_keras_defaults("adam", &k), ENOENT, "Keras optimizer adam",
		       "Adam and Ftrl");
	ASSERT_REFUSED(embeng_keras_defaults(NULL, &k), EINVAL, "class");
	ASSERT_REFUSED(embeng_keras_defaults("Adam", NULL), EINVAL, "settings");
	k = keras("Adam");
	ASSERT_REFUSED(embeng_keras_translate(&k, NULL), EINVAL, "optimizer must be given");
}
END_TEST

START_TEST(test_numbers_refused)
{
	ASSERT_KERAS_REFUSED("Adam", k.beta_1 = 1.0f, ERANGE, "Adam", "beta_1 1");
	ASSERT_KERAS_REFUSED("Adam", k.epsilon = 0.0f, ERANGE, "Adam", "epsilon 0");
	ASSERT_KERAS_REFUSED("Ftrl", k.learning_rate_power = 1.0f, ERANGE, "Ftrl",
			     "learning_rate_power 1");
	ASSERT_KERAS_REFUSED("SGD", k.learning_rate = INFINITY, ERANGE, "SGD", "learning_rate inf");
	ASSERT_KERAS_REFUSED("SGD", k.rate_name = "", EINVAL, "the name is empty");
}
END_TEST

/* Every slot of what the layer takes has a name, and no slot of anything else. */
START_TEST(test_slots)
{
	static const char *const kinds[] = {"sgd",  "adagrad",	"adam",
					    "ftrl", "momentum", "adagrad_momentum"};
	static const char *const names[][2] = {
		{NULL}, {"accumulator"}, {"m", "v"}, {"accumulator", "linear"}, {NULL}, {NULL}};

	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct embeng_table_config t = table_config("t");
		struct embeng_model *m = embeng_model_new();

		ck_assert_int_eq(embeng_optimizer_by_name(kinds[i], 0.5f, &t.optimizer), 0);
		ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
		for (size_t s = 0; s < embeng_model_slot_count(m, 0); s++)
			ck_assert_pstr_eq(embeng_keras_slot(t.optimizer.kind,
							    embeng_model_slot_name(m, 0, s)),
					  names[i][s]);
		embeng_model_free(m);
	}
	ck_assert_ptr_null(embeng_keras_slot(EMBENG_ADAM, "m"));
	ck_assert_ptr_null(embeng_keras_slot(EMBENG_ADAM, NULL));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_names,
		test_optimizers_as_they_are,
		test_defaults_mean_the_names,
		test_settings_are_translated,
		test_parameters_refused,
		test_classes_refused,
		test_numbers_refused,
		test_slots,
	};

	return run_tests("keras", tests, COUNT(tests));
}
