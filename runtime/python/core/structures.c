// SPDX-License-Identifier: MIT
/*
 * The members of the library's structures, by their names in its headers, so that a name means the same
 * in C and in Python. They are constants; settings.c reads and describes structures by them.
 */
#include "settings.h"

#define SETTING(type, member, kind) {#member, offsetof(struct type, member), SETTING_##kind, NULL}
#define SETTING_OF(type, member, names) \
	{#member, offsetof(struct type, member), SETTING_NAME, names}
#define SETTING_ELSEWHERE(member) {#member, 0, SETTING_SKIP, NULL}

static const char *const combiners[] = {"mean", "sum", "sqrtn", "max", NULL};
static const char *const policies[] = {"error", "clamp", "drop", "zero", NULL};
static const char *const shardings[] = {"div", "mod", NULL};
static const char *const non_finites[] = {"error", "drop", "allow", NULL};
static const char *const initializers[] = {"default", "constant", "uniform", "truncated_normal",
					   NULL};
static const char *const id_types[] = {"int32", "int64", NULL};

static const struct setting table_settings[] = {
	SETTING(embeng_table_config, name, TEXT),
	SETTING(embeng_table_config, vocabulary_size, I64),
	SETTING(embeng_table_config, dim, I64),
	SETTING_OF(embeng_table_config, combiner, combiners),
	SETTING_OF(embeng_table_config, out_of_range, policies),
	SETTING(embeng_table_config, frozen, SWITCH),
	SETTING_ELSEWHERE(optimizer),
	SETTING_ELSEWHERE(initializer),
	SETTING_ELSEWHERE(slot_starts),
	SETTING_ELSEWHERE(quantization),
	SETTING_ELSEWHERE(part),
	{0},
};

static const struct setting feature_settings[] = {
	SETTING(embeng_feature_config, name, TEXT),
	SETTING(embeng_feature_config, max_sequence_length, I64),
	SETTING(embeng_feature_config, check_weights, SWITCH),
	SETTING(embeng_feature_config, max_samples, U64),
	SETTING(embeng_feature_config, max_ids, U64),
	SETTING_ELSEWHERE(table),
	SETTING_ELSEWHERE(output_shape),
	{0},
};

static const struct setting engine_settings[] = {
	SETTING(embeng_engine_config, replicas, U32),
	SETTING(embeng_engine_config, pipelining, SWITCH),
	SETTING(embeng_engine_config, step_depth, U32),
	SETTING(embeng_engine_config, hosts, U32),
	SETTING_OF(embeng_engine_config, sharding, shardings),
	SETTING_OF(embeng_engine_config, non_finite, non_finites),
	SETTING(embeng_engine_config, fixed_shapes, SWITCH),
	{0},
};

static const struct setting plan_settings[] = {
	SETTING(embeng_plan_options, batch_size, I64),
	SETTING(embeng_plan_options, ids_per_sample, I64),
	SETTING_OF(embeng_plan_options, id_type, id_types),
	SETTING(embeng_plan_options, weights, SWITCH),
	SETTING(embeng_plan_options, buffers, SWITCH),
	SETTING(embeng_plan_options, inference, SWITCH),
	SETTING(embeng_plan_options, step_depth, U32),
	SETTING(embeng_plan_options, cores, U32),
	SETTING(embeng_plan_options, splits, SWITCH),
	{0},
};

static const struct setting device_settings[] = {
	SETTING(embeng_device_info, name, CHARS),
	SETTING(embeng_device_info, kind, CHARS),
	SETTING(embeng_device_info, variant, CHARS),
	SETTING(embeng_device_info, interface_major, U32),
	SETTING(embeng_device_info, interface_minor, U32),
	SETTING(embeng_device_info, firmware_version, U64),
	SETTING(embeng_device_info, cores, U32),
	SETTING(embeng_device_info, step_depth, U32),
	SETTING(embeng_device_info, replicas, U32),
	SETTING(embeng_device_info, dim, U32),
	SETTING(embeng_device_info, tables, U32),
	SETTING(embeng_device_info, table_memory, U64),
	SETTING(embeng_device_info, address, CHARS),
	SETTING(embeng_device_info, driver, CHARS),
	SETTING(embeng_device_info, description, CHARS),
	SETTING(embeng_device_info, state, CHARS),
	SETTING(embeng_device_info, problem, CHARS),
	SETTING(embeng_device_info, fetch, CHARS),
	SETTING(embeng_device_info, fetch_source, CHARS),
	SETTING(embeng_device_info, tune_problem, CHARS),
	SETTING(embeng_device_info, command_bytes, U64),
	SETTING(embeng_device_info, first_replica, U32),
	SETTING(embeng_device_info, replica_count, U32),
	SETTING(embeng_device_info, host, U32),
	SETTING(embeng_device_info, hosts, U32),
	{0},
};

static const struct setting optimizer_settings[] = {
	SETTING(embeng_optimizer, learning_rate, F32),
	SETTING(embeng_optimizer, rate_name, TEXT),
	SETTING(embeng_optimizer, initial_accumulator_value, F32),
	SETTING(embeng_optimizer, momentum, F32),
	SETTING(embeng_optimizer, use_nesterov, BOOL),
	SETTING(embeng_optimizer, exponent, F32),
	SETTING(embeng_optimizer, beta2, F32),
	SETTING(embeng_optimizer, epsilon, F32),
	SETTING(embeng_optimizer, learning_rate_power, F32),
	SETTING(embeng_optimizer, l1_regularization_strength, F32),
	SETTING(embeng_optimizer, l2_regularization_strength, F32),
	SETTING(embeng_optimizer, beta, F32),
	SETTING(embeng_optimizer, multiply_linear_by_learning_rate, BOOL),
	SETTING(embeng_optimizer, allow_zero_accumulator, BOOL),
	SETTING(embeng_optimizer, beta_1, F32),
	SETTING(embeng_optimizer, beta_2, F32),
	SETTING(embeng_optimizer, lazy_adam, TRISTATE),
	SETTING(embeng_optimizer, sum_inside_sqrt, TRISTATE),
	SETTING(embeng_optimizer, bias_correction, BOOL),
	SETTING(embeng_optimizer, use_gradient_accumulation, TRISTATE),
	SETTING(embeng_optimizer, low_dimensional_packing, BOOL),
	SETTING(embeng_optimizer, clip_weight_min, F32),
	SETTING(embeng_optimizer, clip_weight_max, F32),
	SETTING(embeng_optimizer, clip_min, F32),
	SETTING(embeng_optimizer, clip_max, F32),
	SETTING(embeng_optimizer, weight_decay_factor, F32),
	SETTING(embeng_optimizer, multiply_weight_decay_by_rate, SWITCH),
	SETTING(embeng_optimizer, beta1, F32),
	SETTING(embeng_optimizer, use_non_lazy, BOOL),
	SETTING(embeng_optimizer, rho, F32),
	SETTING(embeng_optimizer, l1, F32),
	SETTING(embeng_optimizer, l2, F32),
	SETTING(embeng_optimizer, b1, F32),
	SETTING(embeng_optimizer, b2, F32),
	SETTING(embeng_optimizer, eps, F32),
	SETTING(embeng_optimizer, update_accumulator_first, BOOL),
	SETTING(embeng_optimizer, max_var_update, F32),
	SETTING(embeng_optimizer, max_accumulator, F32),
	SETTING(embeng_optimizer, tau, F32),
	SETTING(embeng_optimizer, max_delta, F32),
	SETTING(embeng_optimizer, outlier_threshold, F32),
	SETTING(embeng_optimizer, weight_exponent, F32),
	SETTING(embeng_optimizer, max_lr_multiplier, F32),
	SETTING(embeng_optimizer, probability_exponent, F32),
	SETTING(embeng_optimizer, accumulator_decay, F32),
	SETTING(embeng_optimizer, step_counter, TEXT),
	SETTING(embeng_optimizer, lr_power, F32),
	SETTING(embeng_optimizer, min_servable_mdl_benefit, F32),
	SETTING(embeng_optimizer, mdl_mix_in_margin, F32),
	SETTING(embeng_optimizer, mdl_benefit_rampup_coeff, F32),
	SETTING(embeng_optimizer, mdl_min_weight, F32),
	SETTING(embeng_optimizer, benefit_revisit_scale, F32),
	SETTING(embeng_optimizer, max_event_benefit, F32),
	SETTING(embeng_optimizer, max_total_benefit, F32),
	SETTING(embeng_optimizer, mdl_hard_limit, F32),
	SETTING(embeng_optimizer, hard_limit_min_benefit, BOOL),
	SETTING(embeng_optimizer, mdl_regularize, BOOL),
	SETTING(embeng_optimizer, mean_gradient, BOOL),
	SETTING(embeng_optimizer, epsilon_hat, BOOL),
	SETTING(embeng_optimizer, weight_decay_in_gradient, BOOL),
	SETTING(embeng_optimizer, scale_by_frequency, BOOL),
	SETTING(embeng_optimizer, max_norm, F32),
	SETTING_ELSEWHERE(kind),
	SETTING_ELSEWHERE(dynamic),
	{0},
};

static const struct setting schedule_settings[] = {
	SETTING(embeng_schedule, learning_rate, F32),
	SETTING(embeng_schedule, decay_steps, U64),
	SETTING(embeng_schedule, decay_rate, F32),
	SETTING(embeng_schedule, staircase, BOOL),
	SETTING(embeng_schedule, end_learning_rate, F32),
	SETTING(embeng_schedule, power, F32),
	SETTING(embeng_schedule, cycle, BOOL),
	SETTING(embeng_schedule, alpha, F32),
	SETTING(embeng_schedule, warmup_steps, U64),
	SETTING(embeng_schedule, warmup_learning_rate, F32),
	SETTING(embeng_schedule, starts_after_warmup, BOOL),
	SETTING_ELSEWHERE(kind),
	SETTING_ELSEWHERE(boundaries),
	SETTING_ELSEWHERE(values),
	{0},
};

static const struct setting initializer_settings[] = {
	SETTING_OF(embeng_initializer, kind, initializers),
	SETTING(embeng_initializer, a, F32),
	SETTING(embeng_initializer, b, F32),
	SETTING(embeng_initializer, seed, U64),
	{0},
};

static const struct setting quantization_settings[] = {
	SETTING(embeng_quantization, num_buckets, I64),
	SETTING(embeng_quantization, lower, F32),
	SETTING(embeng_quantization, upper, F32),
	{0},
};

static const struct setting part_settings[] = {
	SETTING(embeng_table_part, rows, I64),	       SETTING(embeng_table_part, first_row, I64),
	SETTING(embeng_table_part, row_step, I64),     SETTING(embeng_table_part, dim, I64),
	SETTING(embeng_table_part, first_column, I64), {0},
};

const struct structure structure_table = {"table", table_settings};
const struct structure structure_feature = {"feature", feature_settings};
const struct structure structure_engine = {"options of the model", engine_settings};
const struct structure structure_plan = {"options of the plan", plan_settings};
const struct structure structure_device = {"device", device_settings};
const struct structure structure_optimizer = {"optimizer", optimizer_settings};
const struct structure structure_schedule = {"schedule", schedule_settings};
const struct structure structure_initializer = {"initializer", initializer_settings};
const struct structure structure_quantization = {"quantization", quantization_settings};
const struct structure structure_part = {"part", part_settings};
