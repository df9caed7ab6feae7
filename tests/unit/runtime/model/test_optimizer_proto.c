// SPDX-License-Identifier: MIT
/*
 * Optimizers of the TPU protobuf and of the second library: their defaults, and each way in which
 * they are refused.
 */
#include <math.h>

#include "runtime/src/checkpoint/index.h"
#include "test_model.h"

#define REFUSED(kind, change, code, ...) \
	ASSERT_TABLE_REFUSED((c.optimizer = embeng_##kind(0.5f), change), code, "users", \
			     __VA_ARGS__)
#define NUMBER(kind, member, value, ...) \
	REFUSED(kind, c.optimizer.member = (value), ERANGE, #member, __VA_ARGS__)

START_TEST(test_start_as_documented)
{
	struct embeng_optimizer o = embeng_momentum(0.25f);

	ck_assert(o.kind == EMBENG_MOMENTUM && o.learning_rate == 0.25f && o.momentum == 0.9f);
	o = embeng_lion(1);
	ck_assert(o.kind == EMBENG_LION && o.beta1 == 0.9f && o.beta2 == 0.99f && !o.use_non_lazy);
	o = embeng_rms_prop(1);
	ck_assert(o.kind == EMBENG_RMS_PROP && o.rho == 0.9f && o.momentum == 0.0f);
	ck_assert(o.epsilon == 1e-10f);
	o = embeng_centered_rms_prop(1);
	ck_assert(o.kind == EMBENG_CENTERED_RMS_PROP && o.rho == 0.9f && o.epsilon == 1e-10f);
	o = embeng_adadelta(1);
	ck_assert(o.kind == EMBENG_ADADELTA && o.rho == 0.95f && o.epsilon == 1e-8f);
	o = embeng_proximal_adagrad(1);
	ck_assert(o.kind == EMBENG_PROXIMAL_ADAGRAD && o.initial_accumulator_value == 0.1f);
	ck_assert(o.l1 == 0.0f && o.l2 == 0.0f);
	ck_assert(embeng_assign(1).kind == EMBENG_ASSIGN);
	o = embeng_laprop(1);
	ck_assert(o.kind == EMBENG_LAPROP && o.b1 == 0.9f && o.b2 == 0.95f && o.eps == 1e-30f);
	o = embeng_proximal_yogi(1);
	ck_assert(o.kind == EMBENG_PROXIMAL_YOGI && o.beta1 == 0.9f && o.beta2 == 0.999f);
	ck_assert(o.epsilon == 1e-3f && o.initial_accumulator_value == 1e-6f);
	o = embeng_bounded_adagrad(1);
	ck_assert(o.kind == EMBENG_BOUNDED_ADAGRAD && o.initial_accumulator_value == 0.1f);
	ck_assert(!o.update_accumulator_first && !o.max_var_update && !o.max_accumulator);
	o = embeng_online_yogi(1);
	ck_assert(o.kind == EMBENG_ONLINE_YOGI && o.beta2 == 0.999f && !o.l1 && !o.l2);
	o = embeng_frequency_estimator(7);
	ck_assert(o.kind == EMBENG_FREQUENCY_ESTIMATOR && o.learning_rate == 7.0f);
	ck_assert(o.tau == 0.01f && o.max_delta == 10000.0f && o.outlier_threshold == 100.0f);
	ck_assert(o.weight_exponent == 1.0f);
	o = embeng_frequency_aware_adagrad(1);
	ck_assert(o.kind == EMBENG_FREQUENCY_AWARE_ADAGRAD && o.max_lr_multiplier == 1e6f);
	ck_assert(o.probability_exponent == 0.5f && o.accumulator_decay == 1.0f);
	ck_assert(o.initial_accumulator_value == 0.1f);
	o = embeng_mdl_adagrad_light(1);
	ck_assert(o.kind == EMBENG_MDL_ADAGRAD_LIGHT && o.lr_power == -0.5f && o.l2 == 0.0f);
	ck_assert(!o.min_servable_mdl_benefit && !o.mdl_mix_in_margin && !o.mdl_min_weight);
	ck_assert(!o.mdl_benefit_rampup_coeff && !o.benefit_revisit_scale);
	ck_assert(!o.max_event_benefit && !o.max_total_benefit && !o.mdl_hard_limit);
	ck_assert(!o.hard_limit_min_benefit && !o.mdl_regularize);
	o = embeng_rowwise_adagrad(1);
	ck_assert(o.kind == EMBENG_ROWWISE_ADAGRAD && o.epsilon == 1e-8f && !o.mean_gradient);
	ck_assert(o.initial_accumulator_value == 0.0f);
	o = embeng_partial_rowwise_adam(1);
	ck_assert(o.kind == EMBENG_PARTIAL_ROWWISE_ADAM && o.epsilon == 1e-8f);
	ck_assert(o.beta_1 == 0.9f && o.beta_2 == 0.999f);
}
END_TEST

/* Forms of kinds that have a function of their own. */
START_TEST(test_forms_start_as_documented)
{
	struct embeng_optimizer o = embeng_adagrad_epsilon(0.25f);

	ck_assert(o.kind == EMBENG_ADAGRAD && o.learning_rate == 0.25f && o.epsilon == 1e-10f);
	ck_assert(o.initial_accumulator_value == 0.0f);
	o = embeng_adam_epsilon_hat(1);
	ck_assert(o.kind == EMBENG_ADAM && o.bias_correction && o.epsilon_hat);
	ck_assert(o.epsilon == 1e-8f && !o.weight_decay_factor);
	o = embeng_adamw(1);
	ck_assert(o.kind == EMBENG_ADAM && o.bias_correction && !o.epsilon_hat);
	ck_assert(o.weight_decay_factor == 0.01f && o.multiply_weight_decay_by_rate);
	ck_assert(!o.weight_decay_in_gradient && !o.scale_by_frequency && !o.max_norm);
}
END_TEST

START_TEST(test_rowwise)
{
	NUMBER(rowwise_adagrad, epsilon, 0.0f, "epsilon 0", "above 0");
	NUMBER(rowwise_adagrad, initial_accumulator_value, -0.5f, "0 or above");
	NUMBER(partial_rowwise_adam, beta_1, 1.0f, "beta_1 1", "[0, 1)");
	NUMBER(partial_rowwise_adam, beta_2, -0.5f, "beta_2 -0.5", "[0, 1)");
	NUMBER(partial_rowwise_adam, epsilon, 0.0f, "epsilon 0", "above 0");
	NUMBER(adagrad, epsilon, -0.5f, "epsilon -0.5", "0 or above");
	NUMBER(adagrad, initial_accumulator_value, 0.0f, "above 0", "unless epsilon is");
	NUMBER(adagrad_epsilon, initial_accumulator_value, -0.5f, "0 or above");
}
END_TEST

START_TEST(test_options_of_all_kinds)
{
	NUMBER(sgd, max_norm, -1.0f, "max_norm -1", "0 or above");
	NUMBER(sgd, max_norm, INFINITY, "max_norm inf");
	REFUSED(adam,
		(c.optimizer.scale_by_frequency = 1,
		 c.optimizer.use_gradient_accumulation = EMBENG_OFF),
		EINVAL, "scale_by_frequency", "use_gradient_accumulation");
	REFUSED(assign, c.optimizer.weight_decay_in_gradient = 1, EINVAL,
		"weight_decay_in_gradient", "assign");
	REFUSED(frequency_estimator, (c.dim = 1, c.optimizer.weight_decay_in_gradient = 1), EINVAL,
		"weight_decay_in_gradient", "frequency_estimator");
	REFUSED(adamw, c.optimizer.weight_decay_in_gradient = 1, EINVAL, "weight_decay_in_gradient",
		"multiply_weight_decay_by_rate");
}
END_TEST

START_TEST(test_momenta)
{
	NUMBER(momentum, momentum, NAN, "finite");
	NUMBER(momentum, momentum, INFINITY, "inf");
	NUMBER(lion, beta1, 1.0f, "beta1 1", "[0, 1)");
	NUMBER(lion, beta1, -0.5f, "-0.5");
	NUMBER(lion, beta2, 1.0f, "beta2 1", "[0, 1)");
	NUMBER(lion, beta2, NAN, "nan");
	REFUSED(lion,
		(c.optimizer.use_non_lazy = 1, c.optimizer.use_gradient_accumulation = EMBENG_OFF),
		EINVAL, "use_non_lazy", "use_gradient_accumulation");
	NUMBER(laprop, b1, 1.0f, "b1 1", "[0, 1)");
	NUMBER(laprop, b1, -0.5f, "-0.5");
	NUMBER(laprop, b2, 1.0f, "b2 1", "[0, 1)");
	NUMBER(laprop, eps, 0.0f, "eps 0", "above 0");
}
END_TEST

START_TEST(test_means_of_squares)
{
	NUMBER(rms_prop, rho, 1.5f, "rho 1.5", "[0, 1]");
	NUMBER(rms_prop, rho, -0.5f, "-0.5");
	NUMBER(rms_prop, momentum, INFINITY, "finite");
	NUMBER(rms_prop, epsilon, 0.0f, "epsilon 0", "above 0");
	NUMBER(centered_rms_prop, rho, 1.5f, "rho 1.5", "[0, 1]");
	NUMBER(centered_rms_prop, momentum, NAN, "finite");
	NUMBER(centered_rms_prop, epsilon, 0.0f, "epsilon 0", "above 0");
	NUMBER(adadelta, rho, 1.5f, "rho 1.5", "[0, 1]");
	NUMBER(adadelta, epsilon, 0.0f, "epsilon 0", "above 0");
}
END_TEST

START_TEST(test_proximal)
{
	NUMBER(proximal_adagrad, l1, -0.5f, "l1 -0.5", "0 or above");
	NUMBER(proximal_adagrad, l2, -0.5f, "l2 -0.5", "0 or above");
	NUMBER(proximal_adagrad, l2, INFINITY, "inf");
	NUMBER(proximal_adagrad, initial_accumulator_value, 0.0f, "above 0");
	NUMBER(proximal_yogi, l1, -0.5f, "l1 -0.5", "0 or above");
	NUMBER(proximal_yogi, l2, -0.5f, "l2 -0.5", "0 or above");
	NUMBER(proximal_yogi, beta1, 1.0f, "beta1 1", "[0, 1)");
	NUMBER(proximal_yogi, beta2, 1.0f, "beta2 1", "[0, 1)");
	NUMBER(proximal_yogi, epsilon, 0.0f, "epsilon 0", "above 0");
	NUMBER(proximal_yogi, initial_accumulator_value, 0.0f, "above 0");
	NUMBER(online_yogi, l1, -0.5f, "l1 -0.5", "0 or above");
	NUMBER(online_yogi, l2, -0.5f, "l2 -0.5", "0 or above");
	NUMBER(online_yogi, beta2, 1.0f, "beta2 1", "[0, 1)");
	NUMBER(online_yogi, learning_rate, 0.0f, "learning_rate 0", "divides");
}
END_TEST

START_TEST(test_other_adagrads)
{
	NUMBER(bounded_adagrad, max_var_update, -0.5f, "-0.5", "0 or above");
	NUMBER(bounded_adagrad, max_accumulator, INFINITY, "inf", "0 or above");
	NUMBER(bounded_adagrad, initial_accumulator_value, 0.0f, "above 0");
	ASSERT_TABLE_REFUSED(
		(c.optimizer = embeng_frequency_aware_adagrad(0.5f), c.optimizer.step_counter = ""),
		EINVAL, "step_counter", "empty");
	NUMBER(frequency_aware_adagrad, l1_regularization_strength, -0.5f, "0 or above");
	NUMBER(frequency_aware_adagrad, l2_regularization_strength, -0.5f, "0 or above");
	NUMBER(frequency_aware_adagrad, max_lr_multiplier, 0.0f, "above 0");
	NUMBER(frequency_aware_adagrad, probability_exponent, INFINITY, "finite");
	NUMBER(frequency_aware_adagrad, accumulator_decay, 1.5f, "[0, 1]");
	NUMBER(frequency_aware_adagrad, initial_accumulator_value, 0.0f, "above 0");
}
END_TEST

START_TEST(test_mdl_adagrad_light)
{
	NUMBER(mdl_adagrad_light, l2, -0.5f, "l2 -0.5", "0 or above");
	NUMBER(mdl_adagrad_light, lr_power, 0.5f, "lr_power 0.5", "0 or below");
	NUMBER(mdl_adagrad_light, min_servable_mdl_benefit, NAN, "nan", "finite");
	NUMBER(mdl_adagrad_light, mdl_mix_in_margin, -0.5f, "0 or above");
	NUMBER(mdl_adagrad_light, mdl_benefit_rampup_coeff, -0.5f, "0 or above");
	NUMBER(mdl_adagrad_light, mdl_min_weight, 1.5f, "mdl_min_weight 1.5", "[0, 1]");
	NUMBER(mdl_adagrad_light, benefit_revisit_scale, -0.5f, "-0.5", "[0, 1]");
	NUMBER(mdl_adagrad_light, max_event_benefit, -0.5f, "0 or above");
	NUMBER(mdl_adagrad_light, max_total_benefit, INFINITY, "inf", "0 or above");
	NUMBER(mdl_adagrad_light, mdl_hard_limit, -0.5f, "0 or above");
}
END_TEST

START_TEST(test_frequency_estimator)
{
	REFUSED(frequency_estimator, c.dim = 2, EINVAL, "frequency_estimator", "dim 2");
	REFUSED(frequency_estimator, (c.dim = 1, c.optimizer.tau = 1.5f), ERANGE, "tau 1.5",
		"[0, 1]");
	REFUSED(frequency_estimator, (c.dim = 1, c.optimizer.max_delta = 0.0f), ERANGE,
		"max_delta 0", "above 0");
	REFUSED(frequency_estimator, (c.dim = 1, c.optimizer.outlier_threshold = -0.5f), ERANGE,
		"outlier_threshold -0.5", "0 or above");
	REFUSED(frequency_estimator, (c.dim = 1, c.optimizer.weight_exponent = NAN), ERANGE,
		"weight_exponent nan", "finite");
}
END_TEST

/* Every setting another than its default, none out of range. */
static void unsettle(struct embeng_optimizer *o)
{
	const struct optimizer_info *info = optimizer_info(o->kind);

	for (size_t i = 0; i < info->key_count; i++) {
		void *member = (char *)o + info->keys[i].at;

		if (info->keys[i].type == KEY_SWITCH)
			*(unsigned char *)member = 1;
		else if (info->keys[i].type == KEY_NUMBER)
			*(float *)member = info->keys[i].start ? info->keys[i].start / 2 : 0.25f;
	}
	o->weight_decay_factor = 0.25f;
	o->weight_decay_in_gradient = o->kind != EMBENG_ASSIGN &&
				      o->kind != EMBENG_FREQUENCY_ESTIMATOR;
	o->scale_by_frequency = 1;
	o->max_norm = 2.0f;
	if (o->kind == EMBENG_FREQUENCY_AWARE_ADAGRAD)
		o->step_counter = "step";
}

/* The index of a checkpoint has all that the engine is told. */
START_TEST(test_index_keeps_them)
{
	const struct place at = {.file = "index.json"};
	struct embeng_model *m = embeng_model_new(), *read;
	struct json_writer w;
	const struct json *index;
	size_t length;
	char *text;
	struct embeng_table_config t = table_config(NULL);
	const char *name;

	t.dim = 1;
	for (int kind = EMBENG_SGD; (name = embeng_optimizer_text(kind)); kind++) {
		ck_assert_int_eq(embeng_optimizer_by_name(name, 0.5f, &t.optimizer), 0);
		unsettle(&t.optimizer);
		ck_assert_int_eq(embeng_model_add_table(m, &t), kind - EMBENG_SGD);
	}
	json_write_begin(&w, JSON_LINES);
	json_write_object(&w, NULL);
	index_write_model(&w, &(struct index){.model = m});
	json_write_close(&w);
	ck_assert_int_eq(json_finish(&w, "the model", &text, &length), 0);
	ck_assert_int_eq(json_parse_strict(text, length, &at, &index), 0);
	ck_assert_int_eq(index_read_model(index, &at, &read), 0);
	ck_assert_uint_eq(embeng_model_hash(read), embeng_model_hash(m));
	ck_assert_int_eq(
		embeng_model_get_table(read, EMBENG_FREQUENCY_AWARE_ADAGRAD - EMBENG_SGD, &t), 0);
	ck_assert_str_eq(t.optimizer.step_counter, "step");
	embeng_model_free(read);
	embeng_model_free(m);
	json_free(index);
	free(text);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_start_as_documented,
		test_forms_start_as_documented,
		test_rowwise,
		test_options_of_all_kinds,
		test_momenta,
		test_means_of_squares,
		test_proximal,
		test_other_adagrads,
		test_mdl_adagrad_light,
		test_frequency_estimator,
		test_index_keeps_them,
	};

	return run_tests("optimizer_proto", tests, COUNT(tests));
}
