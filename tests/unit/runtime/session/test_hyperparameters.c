/* SPDX-License-Identifier: MIT */
/*
 * Hyperparameters that each step gives: every one of every optimizer, against models that have the
 * values of the step as constants, bit by bit; and each way to refuse a model or a step.
 */
#include <math.h>

#include "session_help.h"
#undef fail
#include "test_model.h"

#define ROWS 6
#define WIDTH 3
#define MOST_SLOTS 3
#define STEPS 4

/* Parameters and slots. */
struct rows {
	float numbers[1 + MOST_SLOTS][ROWS * WIDTH];
};

static const float choices[][2] = {
	[RANGE_FINITE] = {0.5f, -0.25f}, [RANGE_ABOVE_0] = {0.5f, 2.0f},
	[RANGE_FROM_0] = {0.0f, 0.5f},	 [RANGE_TO_0] = {-0.5f, -0.75f},
	[RANGE_0_TO_1] = {0.25f, 1.0f},	 [RANGE_0_BELOW_1] = {0.5f, 0.0f},
};

static const struct optimizer_key *key_of(enum embeng_optimizer_name kind, const char *name)
{
	const struct optimizer_info *info = optimizer_info(kind);

	for (size_t i = 0; i < info->key_count; i++) {
		if (!strcmp(info->keys[i].name, name))
			return &info->keys[i];
	}
	ck_abort_msg("%s has no key %s", info->name, name);
	return NULL;
}

/* The value of a number in even and in odd steps. */
static float value_of(enum embeng_optimizer_name kind, int number, int step)
{
	static const float common[NUMBER_FIRST_KEY][2] = {
		[NUMBER_DECAY] = {0.125f, 0.0f},	 [NUMBER_CLIP_MIN] = {-0.25f, -INFINITY},
		[NUMBER_CLIP_MAX] = {INFINITY, 0.125f},	 [NUMBER_CLIP_WEIGHT_MIN] = {-0.5f, -1.0f},
		[NUMBER_CLIP_WEIGHT_MAX] = {0.5f, 1.0f}, [NUMBER_MAX_NORM] = {0.75f, 0.0f},
	};
	const struct optimizer_key *key;

	if (number < NUMBER_FIRST_KEY)
		return common[number][step % 2];
	key = key_of(kind, number_name(kind, number));
	return key->type == KEY_NUMBER ? choices[key->range][step % 2] : (float)(step % 2);
}

static struct embeng *open_table(const struct embeng_optimizer *optimizer)
{
	struct embeng_table_config t = table_config("t");
	struct embeng_feature_config f = feature_config("f");
	struct embeng_model *m = embeng_model_new();
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng *e = NULL;

	t.vocabulary_size = ROWS;
	t.dim = optimizer->kind == EMBENG_FREQUENCY_ESTIMATOR ? 1 : WIDTH;
	t.optimizer = *optimizer;
	ck_assert_msg(!embeng_model_add_table(m, &t), "%s", embeng_optimizer_text(optimizer->kind));
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	ck_assert_msg(!embeng_open(SMALL, m, &e, &error), "%s", error.text);
	embeng_model_free(m);
	return e;
}

static const char *slot_of(enum embeng_optimizer_name kind, size_t i)
{
	return i ? optimizer_info(kind)->slots[i - 1].name : NULL;
}

static void read_all(struct embeng *e, enum embeng_optimizer_name kind, struct rows *rows)
{
	memset(rows, 0, sizeof(*rows));
	for (size_t i = 0; i <= optimizer_info(kind)->slot_count; i++)
		ck_assert_int_eq(
			embeng_rows_read(e, 0, slot_of(kind, i), NULL, ROWS, rows->numbers[i]), 0);
}

static void write_all(struct embeng *e, enum embeng_optimizer_name kind, const struct rows *rows)
{
	for (size_t i = 0; i <= optimizer_info(kind)->slot_count; i++)
		ck_assert_int_eq(
			embeng_rows_write(e, 0, slot_of(kind, i), NULL, ROWS, rows->numbers[i]), 0);
}

static int train(struct embeng *e, int step, const struct embeng_rate *rates, size_t count)
{
	const int64_t ids[] = {1, 2, 1, 4, step}, shape[] = {5};
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	float gradients[5 * WIDTH];
	const float *features[] = {gradients};
	struct embeng_gradients g = {.size = sizeof(g),
				     .count = 1,
				     .features = features,
				     .rates = rates,
				     .rate_count = count};
	int ret;

	for (int i = 0; i < 5 * WIDTH; i++)
		gradients[i] = (float)((i * 7 + step * 13) % 17 - 8) / 16;
	ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I64, ids, 5, shape, 1), 0);
	ret = embeng_update(e, b, &g, -1);
	embeng_batch_free(b);
	return ret;
}

/* The optimizer with the numbers of a mask as constants. */
static struct embeng_optimizer constant(struct embeng_optimizer o, uint32_t mask, int step)
{
	for (int n = 0; n < NUMBERS; n++) {
		if (mask & 1u << n)
			number_set(&o, n, value_of(o.kind, n, step));
	}
	return o;
}

static void same_rows(const struct rows *a, const struct rows *b, const char *kind, uint32_t mask,
		      int step)
{
	for (size_t i = 0; i <= MOST_SLOTS; i++)
		ck_assert_msg(!memcmp(a->numbers[i], b->numbers[i], sizeof(a->numbers[i])),
			      "%s, numbers 0x%x, step %d: array %zu differs", kind, mask, step, i);
}

/* Trains with the numbers of a mask dynamic, and step by step with models of constants. */
static void compare(const struct embeng_optimizer *o, uint32_t mask)
{
	struct embeng_dynamic list[NUMBERS];
	struct embeng_rate rates[NUMBERS];
	struct embeng_optimizer dynamic = *o;
	struct rows want, got;
	struct embeng *e;
	size_t count = 0;

	for (int n = 0; n < NUMBERS; n++) {
		if (mask & 1u << n)
			list[count++].hyperparameter = number_name(o->kind, n);
	}
	for (size_t i = 0; i < count; i++)
		list[i].name = list[i].hyperparameter;
	dynamic.dynamic = list;
	dynamic.dynamic_count = count;
	e = open_table(&dynamic);
	read_all(e, o->kind, &want);
	for (int step = 0; step < STEPS; step++) {
		struct embeng_optimizer now = constant(*o, mask, step);
		struct embeng *c = open_table(&now);

		for (size_t i = 0; i < count; i++)
			rates[i] = (struct embeng_rate){
				list[i].name,
				value_of(o->kind, number_find(o->kind, list[i].name), step)};
		write_all(c, o->kind, &want);
		ck_assert_int_eq(embeng_set_step(c, (uint64_t)step), 0);
		ck_assert_int_eq(train(c, step, NULL, 0), 0);
		ck_assert_int_eq(train(e, step, rates, count), 0);
		read_all(c, o->kind, &want);
		read_all(e, o->kind, &got);
		same_rows(&want, &got, optimizer_info(o->kind)->name, mask, step);
		embeng_close(c);
	}
	embeng_close(e);
}

/* Each number alone, then all at once. */
START_TEST(test_every_hyperparameter_of_every_kind)
{
	enum embeng_optimizer_name kind = (enum embeng_optimizer_name)_i;
	struct embeng_optimizer o;
	uint32_t all = 0;

	ck_assert_int_eq(embeng_optimizer_by_name(embeng_optimizer_text(kind), 0.25f, &o), 0);
	for (int n = 0; n < NUMBERS && number_name(kind, n); n++) {
		compare(&o, 1u << n);
		all |= 1u << n;
	}
	compare(&o, all);
}
END_TEST

/* The rules of steps that are taken together. */
START_TEST(test_other_forms_of_kinds)
{
	struct embeng_optimizer o = embeng_adam_corrected(0.25f);
	const uint32_t betas = 3u << NUMBER_FIRST_KEY;

	compare(&o, betas);
	o.epsilon_hat = 1;
	compare(&o, betas | 1u << number_find(EMBENG_ADAM, "bias_correction"));
	o.lazy_adam = EMBENG_OFF;
	compare(&o, betas | 1u << NUMBER_DECAY);
	o = embeng_sgd(0.25f);
	o.weight_decay_in_gradient = 1;
	compare(&o, 1u << NUMBER_DECAY | 1u << NUMBER_CLIP_MAX);
	o = embeng_momentum(0.25f);
	o.multiply_weight_decay_by_rate = 1;
	o.use_gradient_accumulation = EMBENG_OFF;
	compare(&o, 1u << NUMBER_DECAY | 1u << NUMBER_FIRST_KEY);
	o = embeng_lion(0.25f);
	o.use_non_lazy = 1;
	compare(&o, betas | 1u << NUMBER_MAX_NORM);
}
END_TEST

#define REFUSE(kind_, errno_, list_, ...) \
	ASSERT_TABLE_REFUSED((c.optimizer = (kind_), c.optimizer.dynamic = (list_), \
			      c.optimizer.dynamic_count = 2), \
			     errno_, "users", __VA_ARGS__)

START_TEST(test_refused_models)
{
	const struct embeng_dynamic good = {"momentum", "m"};
	const struct embeng_dynamic lists[][2] = {
		{good, {"epsilon", "x"}},      {good, {"momentum", "x"}},
		{good, {NULL, "x"}},	       {good, {"max_norm", NULL}},
		{good, {"max_norm", ""}},      {good, {"learning_rate", "x"}},
		{good, {"step_counter", "x"}}, {good, {"clip_min", "x"}},
	};
	struct embeng_optimizer o = embeng_momentum(0.5f);

	REFUSE(o, ENOENT, lists[0], "momentum", "epsilon", "weight_decay_factor, clip_min",
	       "momentum and use_nesterov");
	REFUSE(o, EINVAL, lists[1], "momentum is there twice");
	REFUSE(o, EINVAL, lists[2], "dynamic 1", "must be given");
	REFUSE(o, EINVAL, lists[3], "dynamic 1", "must be given");
	REFUSE(o, EINVAL, NULL, "dynamic_count is 2, dynamic is NULL");
	ASSERT_REFUSED(({
			       struct embeng_model *m = embeng_model_new();
			       struct embeng_table_config t = table_config("t");
			       int code;

			       t.optimizer = o;
			       t.optimizer.dynamic = lists[4];
			       t.optimizer.dynamic_count = 2;
			       code = embeng_model_add_table(m, &t);
			       embeng_model_free(m);
			       code;
		       }),
		       EINVAL, "hyperparameter", "name");
	REFUSE(o, EINVAL, lists[5], "learning_rate", "rate_name");
	REFUSE(o, EINVAL, lists[6], "step_counter", "member");
	o.use_gradient_accumulation = EMBENG_OFF;
	REFUSE(o, EINVAL, lists[7], "gradient clipping needs gradient accumulation");
}
END_TEST

/* A value that a constant could not have: the step is refused by name, and nothing has changed. */
START_TEST(test_refused_steps)
{
	const struct embeng_dynamic list[] = {
		{"epsilon", "eps"}, {"clip_min", "low"}, {"clip_max", "high"}};
	struct embeng_optimizer o = embeng_adagrad_epsilon(0.5f);
	struct embeng_rate rates[] = {{"eps", 0.5f}, {"low", -1.0f}, {"high", 1.0f}, {"more", 1}};
	struct rows before, after;
	struct embeng *e;

	o.dynamic = list;
	o.dynamic_count = 3;
	e = open_table(&o);
	read_all(e, o.kind, &before);
	ASSERT_REFUSED(train(e, 0, rates, 2), EINVAL, "hyperparameter high is missing");
	ASSERT_REFUSED(train(e, 0, rates, 4), ENOENT, "named more");
	rates[3] = rates[0];
	ASSERT_REFUSED(train(e, 0, rates, 4), EINVAL, "hyperparameter eps is given twice");
	rates[0].value = -0.5f;
	ASSERT_REFUSED(train(e, 0, rates, 3), ERANGE, "hyperparameter eps of table t",
		       "epsilon -0.5", "0 or above");
	rates[0].value = INFINITY;
	ASSERT_REFUSED(train(e, 0, rates, 3), ERANGE, "epsilon inf");
	rates[0].value = 0;
	ASSERT_REFUSED(train(e, 0, rates, 3), ERANGE, "table t with the values of this step",
		       "initial_accumulator_value 0");
	rates[0].value = 0.5f;
	rates[1].value = 1.5f;
	ASSERT_REFUSED(train(e, 0, rates, 3), ERANGE, "table t",
		       "clip_min 1.5 is above clip_max 1");
	rates[1].value = INFINITY;
	ASSERT_REFUSED(train(e, 0, rates, 3), ERANGE, "hyperparameter low", "clip_min inf", "-inf");
	rates[1].value = -INFINITY;
	rates[2].value = NAN;
	ASSERT_REFUSED(train(e, 0, rates, 3), ERANGE, "hyperparameter high", "clip_max nan");
	read_all(e, o.kind, &after);
	same_rows(&before, &after, "refused", 0, 0);
	rates[2].value = INFINITY;
	ck_assert_int_eq(train(e, 0, rates, 3), 0);
	read_all(e, o.kind, &after);
	ck_assert(memcmp(&before, &after, sizeof(before)) != 0);
	embeng_close(e);
}
END_TEST

START_TEST(test_switches_are_0_or_1)
{
	const struct embeng_dynamic list[] = {{"multiply_linear_by_learning_rate", "times"}};
	struct embeng_optimizer o = embeng_ftrl(0.5f);
	struct embeng_rate rates[] = {{"times", 0.5f}, {"lr", 0.0f}};
	struct embeng *e;

	o.rate_name = "lr";
	o.dynamic = list;
	o.dynamic_count = 1;
	e = open_table(&o);
	ASSERT_REFUSED(train(e, 0, rates, 2), ERANGE, "times", "0 or 1");
	rates[0].value = -0.0f;
	ASSERT_REFUSED(train(e, 0, rates, 2), ERANGE, "times", "0 or 1");
	/* a rate of 0 needs the switch, and this step's counts */
	rates[0].value = 0;
	ASSERT_REFUSED(train(e, 0, rates, 2), ERANGE, "table t", "learning_rate 0", "above 0");
	rates[0].value = 1;
	ck_assert_int_eq(train(e, 0, rates, 2), 0);
	embeng_close(e);
}
END_TEST

/* A schedule gives a hyperparameter as it gives a rate, in a copy of the model too. */
START_TEST(test_schedules_drive_them)
{
	static const uint64_t boundaries[] = {0};
	static const float values[] = {0.5f, 1.0f};
	const struct embeng_dynamic list[] = {{"weight_decay_factor", "decay"}};
	struct embeng_schedule s = embeng_schedule_piecewise(boundaries, values, 1);
	struct embeng_table_config t = table_config("t");
	struct embeng_feature_config f = feature_config("f");
	struct embeng_model *m = embeng_model_new();
	const float eight[WIDTH] = {8, 8, 8};
	struct embeng *e = NULL;
	const int64_t id = 5;
	float row[WIDTH];

	t.optimizer = embeng_sgd(0);
	t.optimizer.dynamic = list;
	t.optimizer.dynamic_count = 1;
	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	ck_assert_uint_eq(embeng_model_rate_count(m), 1);
	ck_assert_str_eq(embeng_model_rate_name(m, 0), "decay");
	ASSERT_REFUSED(embeng_model_set_schedule(m, "weight_decay_factor", &s), ENOENT,
		       "weight_decay_factor", "dynamic");
	ck_assert_int_eq(embeng_model_set_schedule(m, "decay", &s), 0);
	ck_assert_int_eq(embeng_open(SMALL, m, &e, NULL), 0);
	embeng_model_free(m);
	ck_assert_int_eq(embeng_rows_write(e, 0, NULL, &id, 1, eight), 0);
	ck_assert_int_eq(train(e, 5, NULL, 0), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, &id, 1, row), 0);
	ck_assert(row[0] == 4.0f && row[2] == 4.0f);
	ck_assert_int_eq(train(e, 5, NULL, 0), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, &id, 1, row), 0);
	ck_assert(row[0] == 0.0f && row[2] == 0.0f);
	embeng_close(e);
}
END_TEST

/* The model owns its list, hands it out again, and its hash tells models apart. */
START_TEST(test_models_keep_them)
{
	struct embeng_dynamic list[] = {{"beta1", "b"}, {"beta2", "b"}};
	struct embeng_table_config t = table_config("t"), back = {.size = sizeof(back)};
	struct embeng_model *m = embeng_model_new(), *other = embeng_model_new(), *copy;

	t.optimizer = embeng_lion(0.5f);
	ck_assert_int_eq(embeng_model_add_table(other, &t), 0);
	t.optimizer.dynamic = list;
	t.optimizer.dynamic_count = 2;
	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	list[0].name = list[1].hyperparameter = "gone";
	ck_assert_uint_eq(embeng_model_rate_count(m), 1);
	copy = model_copy(m);
	ck_assert_int_eq(embeng_model_get_table(copy, 0, &back), 0);
	ck_assert_uint_eq(back.optimizer.dynamic_count, 2);
	ck_assert_str_eq(back.optimizer.dynamic[0].name, "b");
	ck_assert_str_eq(back.optimizer.dynamic[1].hyperparameter, "beta2");
	ck_assert_uint_eq(embeng_model_hash(copy), embeng_model_hash(m));
	ck_assert_uint_ne(embeng_model_hash(other), embeng_model_hash(m));
	embeng_model_free(copy);
	embeng_model_free(other);
	embeng_model_free(m);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hyperparameters");
	TCase *all = tcase_create("all");

	tcase_set_timeout(all, 300);
	tcase_add_loop_test(all, test_every_hyperparameter_of_every_kind, EMBENG_SGD,
			    EMBENG_PARTIAL_ROWWISE_ADAM + 1);
	tcase_add_test(all, test_other_forms_of_kinds);
	tcase_add_test(all, test_refused_models);
	tcase_add_test(all, test_refused_steps);
	tcase_add_test(all, test_switches_are_0_or_1);
	tcase_add_test(all, test_schedules_drive_them);
	tcase_add_test(all, test_models_keep_them);
	suite_add_tcase(suite, all);
	return suite_run(suite);
}
