// SPDX-License-Identifier: MIT
/*
 * Reads a [self-test] section of a text source, numbers and arrays by name, and writes it as a test
 * vector of the image.
 *
 * The arrays belong to the struct fw_source and are freed at the end of their section.
 */
#include <stdlib.h>
#include <string.h>

#include "../engine/kernels/optimizers.h"
#include "../uapi/embeng_engine.h"
#include "source.h"

#define BLANK " \t\r"

static const char *const array_names[EMBENG_FW_TEST_ARRAYS] = {
	[EMBENG_FW_TEST_OFFSETS] = "offsets",
	[EMBENG_FW_TEST_IDS] = "ids",
	[EMBENG_FW_TEST_WEIGHT] = "weights",
	[EMBENG_FW_TEST_TABLE] = "table",
	[EMBENG_FW_TEST_SLOTS] = "slots",
	[EMBENG_FW_TEST_GRADIENTS] = "gradients",
	[EMBENG_FW_TEST_ACTIVATIONS] = "activations",
	[EMBENG_FW_TEST_TABLE_AFTER] = "table_after",
	[EMBENG_FW_TEST_SLOTS_AFTER] = "slots_after",
};

static const char *const combiners[] = {
	[EMBENG_COMBINER_SUM] = "sum",
	[EMBENG_COMBINER_MEAN] = "mean",
	[EMBENG_COMBINER_SQRTN] = "sqrtn",
};

static const struct {
	const char *name;
	__u32 kind, kernel;
} optimizers[] = {
#define OPTIMIZER(name, value) {KERNEL_##name##_NAME, value, KERNEL_##name},
	EMBENG_OPTIMIZER_TABLE(OPTIMIZER)
#undef OPTIMIZER
};

enum number {
	NUMBER_COMBINER,
	NUMBER_OPTIMIZER,
	NUMBER_RATE,
	NUMBER_STEP,
	NUMBER_ROWS,
	NUMBER_DIM,
};

static const char *const number_names[] = {
	[NUMBER_COMBINER] = "combiner",	 [NUMBER_OPTIMIZER] = "optimizer",
	[NUMBER_RATE] = "learning_rate", [NUMBER_STEP] = "step",
	[NUMBER_ROWS] = "rows",		 [NUMBER_DIM] = "dim",
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

const char *fw_source_combiner_name(__u32 combiner)
{
	return combiner < COUNT(combiners) ? combiners[combiner] : NULL;
}

const char *fw_source_optimizer_name(__u32 optimizer)
{
	for (size_t i = 0; i < COUNT(optimizers); i++) {
		if (optimizers[i].kind == optimizer)
			return optimizers[i].name;
	}
	return NULL;
}

static int read_combiner(struct fw_source *s, const char *value)
{
	for (__u32 i = 0; i < COUNT(combiners); i++) {
		if (!strcmp(combiners[i], value)) {
			s->test.test.combiner = i;
			return 0;
		}
	}
	return fw_source_fail(s, "combiner is '%s', allowed are sum, mean and sqrtn", value);
}

static const struct kernel_optimizer *optimizer_of(const struct embeng_fw_self_test *t)
{
	for (size_t i = 0; i < COUNT(optimizers); i++) {
		if (optimizers[i].kind == t->optimizer)
			return &kernel_optimizers[optimizers[i].kernel];
	}
	return NULL;
}

/* Hyperparameters that a test does not give have their defaults. */
static int read_test_optimizer(struct fw_source *s, const char *value)
{
	struct embeng_fw_self_test *t = &s->test.test;
	const struct kernel_optimizer *o;

	for (size_t i = 0; i < COUNT(optimizers); i++) {
		if (!strcmp(optimizers[i].name, value))
			t->optimizer = optimizers[i].kind;
	}
	o = optimizer_of(t);
	if (!o)
		return fw_source_fail(s, "there is no optimizer '%s'", value);
	t->slot_count = o->slot_count;
	for (__u32 i = 0; i < o->hyper_count; i++)
		memcpy(&t->hyperparameter[i], &o->hyper[i].value, sizeof(t->hyperparameter[i]));
	return 0;
}

static int read_size(struct fw_source *s, const char *key, const char *value, __u32 *size)
{
	__u64 number;
	int ret = fw_source_number(s, key, value, 1, EMBENG_FW_TEST_VALUES_MAX, &number);

	if (!ret)
		*size = (__u32)number;
	return ret;
}

static int read_number(struct fw_source *s, enum number which, const char *key, const char *value)
{
	struct embeng_fw_self_test *t = &s->test.test;
	__u64 step;
	int ret;

	if (s->test.given & 1u << which)
		return fw_source_fail(s, "%s is given a second time", key);
	s->test.given |= 1u << which;
	switch (which) {
	case NUMBER_COMBINER:
		return read_combiner(s, value);
	case NUMBER_OPTIMIZER:
		return read_test_optimizer(s, value);
	case NUMBER_RATE:
		return fw_source_float(s, key, value, &t->learning_rate);
	case NUMBER_ROWS:
		return read_size(s, key, value, &t->rows);
	case NUMBER_DIM:
		return read_size(s, key, value, &t->dim);
	default:
		ret = fw_source_number(s, key, value, 1, ~0ull, &step);
		t->step = ret ? t->step : step;
		return ret;
	}
}

static int read_array(struct fw_source *s, __u32 which, char *value)
{
	const char *key = array_names[which];
	char *rest = NULL;
	int ret = 0;

	if (s->test.arrays[which].data)
		return fw_source_fail(s, "%s is given a second time", key);
	for (char *word = strtok_r(value, BLANK, &rest); !ret && word;
	     word = strtok_r(NULL, BLANK, &rest)) {
		__u64 number = 0;
		__u32 bits = 0;

		if (which == EMBENG_FW_TEST_OFFSETS || which == EMBENG_FW_TEST_IDS) {
			ret = fw_source_number(s, key, word, 0, EMBENG_FW_TEST_VALUES_MAX, &number);
			bits = (__u32)number;
		} else {
			ret = fw_source_float(s, key, word, &bits);
		}
		if (!ret)
			ret = fw_source_append(s, &s->test.arrays[which], &bits, sizeof(bits));
	}
	return ret;
}

static int read_hyperparameter(struct fw_source *s, const char *key, const char *value)
{
	struct embeng_fw_self_test *t = &s->test.test;
	const struct kernel_optimizer *o = optimizer_of(t);

	if (!o)
		return fw_source_fail(s, "%s: the optimizer goes first", key);
	for (__u32 i = 0; i < o->hyper_count; i++) {
		if (!strcmp(o->hyper[i].name, key))
			return fw_source_float(s, key, value, &t->hyperparameter[i]);
	}
	return fw_source_fail(s, "neither a self-test nor %s has a %s", o->name, key);
}

int fw_source_test_key(struct fw_source *s, const char *key, char *value)
{
	for (__u32 i = 0; i < COUNT(number_names); i++) {
		if (!strcmp(number_names[i], key))
			return read_number(s, i, key, value);
	}
	for (__u32 i = 0; i < EMBENG_FW_TEST_ARRAYS; i++) {
		if (!strcmp(array_names[i], key))
			return read_array(s, i, value);
	}
	return read_hyperparameter(s, key, value);
}

/* Takes the sizes from the arrays, and checks that all of them have the length that follows. */
static int complete_test(struct fw_source *s)
{
	struct fw_source_test *t = &s->test;

	for (__u32 i = 0; i < COUNT(number_names); i++) {
		if (!(t->given & 1u << i))
			return fw_source_fail(s, "this self-test has no %s", number_names[i]);
	}
	if (t->arrays[EMBENG_FW_TEST_OFFSETS].length < 8)
		return fw_source_fail(s, "this self-test has no samples: offsets are one more");
	t->test.samples = (__u32)(t->arrays[EMBENG_FW_TEST_OFFSETS].length / 4 - 1);
	t->test.ids = (__u32)(t->arrays[EMBENG_FW_TEST_IDS].length / 4);
	t->test.kind = EMBENG_FW_TEST_STEP;
	t->test.flags = t->arrays[EMBENG_FW_TEST_WEIGHT].length ? EMBENG_FW_TEST_WEIGHTS : 0;
	for (__u32 i = 0; i < EMBENG_FW_TEST_ARRAYS; i++) {
		__u64 wanted = embeng_fw_test_words(&t->test, i);

		if (t->arrays[i].length != 4 * wanted)
			return fw_source_fail(
				s, "this self-test has %zu %s, %llu follow from its sizes",
				t->arrays[i].length / 4, array_names[i],
				(unsigned long long)wanted);
	}
	return 0;
}

static int write_test(struct fw_source *s)
{
	static const unsigned char zeros[EMBENG_FW_ALIGN];
	struct fw_source_test *t = &s->test;
	__u64 end = embeng_fw_test_offset(&t->test, EMBENG_FW_TEST_ARRAYS);
	__u64 filling = -end & (EMBENG_FW_ALIGN - 1);
	int ret;

	t->test.length = end + filling;
	ret = fw_source_append(s, &s->tests, &t->test, sizeof(t->test));
	for (__u32 i = 0; !ret && i < EMBENG_FW_TEST_ARRAYS; i++)
		ret = fw_source_append(s, &s->tests, t->arrays[i].data, t->arrays[i].length);
	return ret ? ret : fw_source_append(s, &s->tests, zeros, filling);
}

int fw_source_test_end(struct fw_source *s)
{
	unsigned int line = s->line;
	int ret;

	s->line = s->test.line;
	ret = complete_test(s);
	if (!ret)
		ret = write_test(s);
	if (!ret)
		s->line = line;
	fw_source_test_free(&s->test);
	return ret;
}

void fw_source_test_free(struct fw_source_test *t)
{
	for (__u32 i = 0; i < EMBENG_FW_TEST_ARRAYS; i++)
		free(t->arrays[i].data);
	memset(t, 0, sizeof(*t));
}
