// SPDX-License-Identifier: MIT
/*
 * A setting of 0 is 0 by every way in: the structure, the protobuf with the field written as 0, the
 * protobuf that leaves it out, and JSON. Two steps from the same rows give the same bits.
 */
#include "runtime/cli/conform/settings.h"
#include "json_help.h"
#include "session_help.h"
#include "suite.h"
#include "embeng/tpu.h"

#define BYTES 64
#define NUMBERS (4 * 2)
#define ZERO "0d00000000" /* field 1, a float */

/* Half, the rate of those that are not about the rate. */
#define RATE "6a050d0000003f"

static struct embeng_optimizer no_rate(void)
{
	return embeng_sgd(0.0f);
}

static struct embeng_optimizer no_gradient(void)
{
	struct embeng_optimizer o = embeng_sgd(0.5f);

	o.has_clip_min = o.has_clip_max = 1;
	return o;
}

static struct embeng_optimizer at_most_nothing(void)
{
	struct embeng_optimizer o = embeng_sgd(0.5f);

	o.has_clip_weight_max = 1;
	return o;
}

static struct embeng_optimizer no_decay(void)
{
	struct embeng_optimizer o = embeng_sgd(0.5f);

	o.weight_decay_factor = 0.0f;
	return o;
}

static struct embeng_optimizer no_momentum(void)
{
	struct embeng_optimizer o = embeng_momentum(0.5f);

	o.momentum = 0.0f;
	return o;
}

static struct embeng_optimizer no_betas(void)
{
	struct embeng_optimizer o = embeng_adam(0.5f);

	o.beta_1 = o.beta_2 = 0.0f;
	o.epsilon = 1.0f;
	o.sum_inside_sqrt = EMBENG_OFF;
	return o;
}

static struct embeng_optimizer no_power(void)
{
	struct embeng_optimizer o = embeng_ftrl(0.5f);

	o.learning_rate_power = o.l1_regularization_strength = 0.0f;
	o.l2_regularization_strength = o.beta = 0.0f;
	return o;
}

static struct embeng_optimizer no_rho(void)
{
	struct embeng_optimizer o = embeng_rms_prop(0.5f);

	o.rho = o.momentum = 0.0f;
	o.epsilon = 1.0f;
	return o;
}

static struct embeng_optimizer no_beta(void)
{
	struct embeng_optimizer o = embeng_lion(0.5f);

	o.beta1 = o.beta2 = 0.0f;
	return o;
}

/* @written, @absent: OptimizationParameters. @rows: rows after two steps, where they are plain. */
static const struct zero_case {
	const char *name;
	struct embeng_optimizer (*make)(void);
	const char *written, *absent, *json;
	bool has_rows;
	float rows[NUMBERS];
} cases[] = {
	{"rate",
	 no_rate,
	 "6a05" ZERO "2200",
	 NULL,
	 "{\"kind\":\"sgd\",\"learning_rate\":0}",
	 true,
	 {0, 1, 10, 11, 20, 21, 30, 31}},
	{"gradient clip",
	 no_gradient,
	 RATE "3a0e0a05" ZERO "1205" ZERO "2200",
	 RATE "3a040a0012002200",
	 "{\"kind\":\"sgd\",\"learning_rate\":0.5,\"clipvalue\":[0,0]}",
	 true,
	 {0, 1, 10, 11, 20, 21, 30, 31}},
	{"weight clip",
	 at_most_nothing,
	 RATE "12071205" ZERO "2200",
	 RATE "120212002200",
	 "{\"kind\":\"sgd\",\"learning_rate\":0.5,\"clip_weight_max\":0}",
	 true,
	 {0, 1, -0.5f, -0.5f, -0.5f, -0.5f, -0.5f, -0.5f}},
	{"weight decay",
	 no_decay,
	 RATE "850100000000"
	      "2200",
	 RATE "2200",
	 "{\"kind\":\"sgd\",\"learning_rate\":0.5,\"weight_decay_factor\":0}",
	 true,
	 {0, 1, 9, 10, 19, 20, 29, 30}},
	{"momentum",
	 no_momentum,
	 RATE "4205" ZERO,
	 RATE "4200",
	 "{\"kind\":\"momentum\",\"learning_rate\":0.5,\"momentum\":0}",
	 true,
	 {0, 1, 9, 10, 19, 20, 29, 30}},
	{"betas of adam",
	 no_betas,
	 RATE "320f"
	      "1d00000000"
	      "2500000000"
	      "2d0000803f",
	 RATE "3205"
	      "2d0000803f",
	 "{\"kind\":\"adam\",\"learning_rate\":0.5,\"beta_1\":0,\"beta_2\":0,\"epsilon\":1,"
	 "\"sum_inside_sqrt\":false}",
	 true,
	 {0, 1, 9.5f, 10.5f, 19.5f, 20.5f, 29.5f, 30.5f}},
	{"powers of ftrl",
	 no_power,
	 RATE "2a14" ZERO "1500000000"
	      "1d00000000"
	      "3d00000000",
	 RATE "2a00",
	 "{\"kind\":\"ftrl\",\"learning_rate\":0.5,\"learning_rate_power\":0,"
	 "\"l1_regularization_strength\":0,\"l2_regularization_strength\":0,\"beta\":0}",
	 false,
	 {0}},
	{"rho of rms_prop",
	 no_rho,
	 RATE "4a0f" ZERO "1500000000"
	      "1d0000803f",
	 RATE "4a05"
	      "1d0000803f",
	 "{\"kind\":\"rms_prop\",\"learning_rate\":0.5,\"rho\":0,\"momentum\":0,\"epsilon\":1}",
	 false,
	 {0}},
	{"betas of lion",
	 no_beta,
	 RATE "ea010a" ZERO "1500000000",
	 RATE "ea0100",
	 "{\"kind\":\"lion\",\"learning_rate\":0.5,\"beta1\":0,\"beta2\":0}",
	 false,
	 {0}},
};

#define CASE_COUNT (sizeof(cases) / sizeof(*cases))

static struct embeng_optimizer import(const char *hex)
{
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng_optimizer o = {0};
	uint8_t bytes[BYTES];
	size_t length = strlen(hex) / 2;
	int32_t tag = -7;
	int code;

	for (size_t i = 0; i < length; i++) {
		unsigned int byte;

		ck_assert_int_eq(sscanf(hex + 2 * i, "%2x", &byte), 1);
		bytes[i] = (uint8_t)byte;
	}
	code = embeng_tpu_import_optimizer(bytes, length, &o, &tag);
	embeng_last_error(&error);
	ck_assert_msg(!code, "%s: %s", hex, code ? error.text : "");
	ck_assert_int_eq(tag, -1);
	return o;
}

static struct embeng_optimizer read_text(const char *text)
{
	const struct json *spec = must_read(text);
	struct embeng_optimizer o = {0};

	ck_assert_msg(optimizer_read(spec, &o), "%s", text);
	json_free(spec);
	return o;
}

/* Rows after two steps of gradients of 1. */
static void train(const struct embeng_optimizer *o, float rows[NUMBERS])
{
	struct shape shape = {.optimizer = *o, .combiner = EMBENG_SUM};
	struct embeng *e = open_small(&shape);

	for (int i = 0; i < 2; i++) {
		struct embeng_activations view = {.size = sizeof(view)};

		ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
		ck_assert_int_eq(embeng_dequeue(e, 0, -1, &view), 0);
		ck_assert_int_eq(apply_ones(e, 0), 0);
	}
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, 4, rows), 0);
	embeng_close(e);
}

static void expect_trained(const struct zero_case *z, const char *way,
			   const struct embeng_optimizer *o, const float want[NUMBERS])
{
	float got[NUMBERS];

	train(o, got);
	ck_assert_msg(!memcmp(got, want, sizeof(got)), "%s, %s: row 1 is %a %a, must be %a %a",
		      z->name, way, (double)got[2], (double)got[3], (double)want[2],
		      (double)want[3]);
}

START_TEST(zero_is_zero)
{
	const struct zero_case *z = &cases[_i];
	struct embeng_optimizer own = z->make(), o;
	float want[NUMBERS];

	train(&own, want);
	if (z->has_rows)
		expect_floats(want, z->rows, NUMBERS);
	o = import(z->written);
	expect_trained(z, "written", &o, want);
	if (z->absent) {
		o = import(z->absent);
		expect_trained(z, "absent", &o, want);
	}
	o = read_text(z->json);
	expect_trained(z, "JSON", &o, want);
}
END_TEST

/* JSON and C that leave out a setting have its default, which is another value. */
START_TEST(a_default_is_not_zero)
{
	struct embeng_optimizer o = read_text("{\"kind\":\"adam\",\"learning_rate\":0.5}");
	struct embeng_optimizer own = embeng_adam(0.5f);
	float zero[NUMBERS], by_default[NUMBERS], got[NUMBERS];

	train(&own, by_default);
	own = no_betas();
	train(&own, zero);
	ck_assert(memcmp(zero, by_default, sizeof(zero)) != 0);
	train(&o, got);
	ck_assert_mem_eq(got, by_default, sizeof(got));
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, zero_is_zero, 0, CASE_COUNT);
	tcase_add_test(tcase, a_default_is_not_zero);
}

int main(void)
{
	return suite_main("zero-settings", add);
}
