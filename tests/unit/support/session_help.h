/* SPDX-License-Identifier: MIT */
/* A small model on a small soft device, as most session tests want it. */
#ifndef TEST_SESSION_HELP_H
#define TEST_SESSION_HELP_H

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/include/embeng.h"

/* The device named by EMBENG_TEST_DEVICE, or a soft device. The tests hold for any device. */
static inline const char *test_device(const char *soft)
{
	const char *given = getenv("EMBENG_TEST_DEVICE");

	return given && *given ? given : soft;
}

#define SMALL test_device("soft:cores=2,memory=64M")

struct shape {
	uint32_t replicas;
	int pipelining;
	uint32_t depth;
	struct embeng_optimizer optimizer;
	enum embeng_combiner_name combiner;
	int64_t sequence;
	int64_t samples; /* samples in the output's shape; 0: the shape is not known */
};

/* Opens a device with one table and one feature of it. */
static inline struct embeng *open_single(const char *device, const struct embeng_table_config *t,
					 const struct embeng_feature_config *f,
					 const struct embeng_engine_config *c)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng *e = NULL;

	ck_assert_int_eq(embeng_model_add_table(m, t), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, f), 0);
	ck_assert_int_eq(embeng_model_set_engine(m, c), 0);
	ck_assert_msg(!embeng_open(device, m, &e, &error), "%s", error.text);
	embeng_model_free(m);
	return e;
}

/* One table "t" of 4 x 2 with rows r: (10 r, 10 r + 1), one feature "f". */
static inline struct embeng *open_small(const struct shape *shape)
{
	const float rows[] = {0, 1, 10, 11, 20, 21, 30, 31};
	struct embeng_table_config t = {.size = sizeof(t),
					.name = "t",
					.vocabulary_size = 4,
					.dim = 2,
					.combiner = shape->combiner,
					.optimizer = shape->optimizer};
	struct embeng_feature_config f = {.size = sizeof(f),
					  .name = "f",
					  .max_sequence_length = shape->sequence,
					  .output_rank = shape->samples != 0,
					  .output_shape = {shape->samples}};
	struct embeng_engine_config c = {.size = sizeof(c),
					 .replicas = shape->replicas,
					 .pipelining = shape->pipelining,
					 .step_depth = shape->depth};
	struct embeng *e = open_single(SMALL, &t, &f, &c);

	ck_assert_int_eq(embeng_rows_write(e, 0, NULL, NULL, 4, rows), 0);
	return e;
}

/* Enqueues bags {1, 2}, {} and {3}. */
static inline int enqueue_bags(struct embeng *e, enum embeng_mode mode, uint32_t replica,
			       int64_t timeout)
{
	const int64_t ids[] = {1, 2, 3}, lengths[] = {2, 0, 1};
	struct embeng_batch *b = embeng_batch_new(e, mode, replica);
	int ret = embeng_batch_ragged(b, 0, EMBENG_I64, ids, 3, lengths, 3, NULL, 0);

	ck_assert_int_eq(ret, 0);
	ret = embeng_enqueue(e, b, timeout);
	embeng_batch_free(b);
	return ret;
}

static inline void expect_text(const char *part)
{
	struct embeng_error error = {.size = sizeof(error)};

	embeng_last_error(&error);
	ck_assert_msg(strstr(error.text, part) != NULL, "\"%s\" lacks \"%s\"", error.text, part);
}

static inline void expect_floats(const float *got, const float *want, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ck_assert_msg(got[i] == want[i], "[%zu]: %a, expected %a", i, (double)got[i],
			      (double)want[i]);
}

static inline int apply_ones(struct embeng *e, uint32_t replica)
{
	const float ones[] = {1, 1, 1, 1, 1, 1};
	const float *features[] = {ones};
	const size_t elements[] = {6};
	struct embeng_gradients g = {.size = sizeof(g),
				     .replica = replica,
				     .count = 1,
				     .features = features,
				     .elements = elements};

	return embeng_apply_gradients(e, &g, 0);
}

#define RUN_SUITE(name, ...) \
	int main(void) \
	{ \
		const TTest *const tests[] = {__VA_ARGS__}; \
		Suite *suite = suite_create(name); \
		TCase *tcase = tcase_create(name); \
		SRunner *runner; \
		int failed; \
\
		for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) \
			tcase_add_test(tcase, tests[i]); \
		suite_add_tcase(suite, tcase); \
		runner = srunner_create(suite); \
		srunner_set_fork_status(runner, CK_NOFORK); \
		srunner_run_all(runner, CK_NORMAL); \
		failed = srunner_ntests_failed(runner); \
		srunner_free(runner); \
		return failed != 0; \
	}

#endif
