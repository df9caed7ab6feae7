/* SPDX-License-Identifier: MIT */
/* Models and refusals for the tests of models and batches. */
#ifndef TEST_MODEL_H
#define TEST_MODEL_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* Check has an old macro of this name. */
#undef fail
#include "runtime/src/base/error.h"
#include "runtime/src/model/model.h"
#include "suite.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The call failed with this errno, and its sentence has all of these words. */
#define ASSERT_REFUSED(call, errno_, ...) \
	do { \
		static const char *const words_[] = {__VA_ARGS__}; \
		struct embeng_error error_ = {.size = sizeof(error_)}; \
\
		error_set(0, 0, "%s", ""); \
		ck_assert_int_eq((call), -(errno_)); \
		embeng_last_error(&error_); \
		ck_assert_int_eq(error_.code, -(errno_)); \
		for (size_t i_ = 0; i_ < COUNT(words_); i_++) \
			ck_assert_msg(strstr(error_.text, words_[i_]), "\"%s\" not in \"%s\"", \
				      words_[i_], error_.text); \
	} while (0)

/* Refuses a change of an otherwise valid table, and leaves the model as it was. */
#define ASSERT_TABLE_REFUSED(change, errno_, ...) \
	do { \
		struct embeng_model *m_ = embeng_model_new(); \
		struct embeng_table_config c = table_config("users"); \
\
		c.optimizer = embeng_adagrad(0.5f); \
		change; \
		ASSERT_REFUSED(embeng_model_add_table(m_, &c), errno_, __VA_ARGS__); \
		ck_assert_uint_eq(embeng_model_table_count(m_), 0); \
		ck_assert_uint_eq(embeng_model_rate_count(m_), 0); \
		embeng_model_free(m_); \
	} while (0)

static inline struct embeng_table_config table_config(const char *name)
{
	return (struct embeng_table_config){
		.size = sizeof(struct embeng_table_config),
		.name = name,
		.vocabulary_size = 8,
		.dim = 3,
		.optimizer = embeng_sgd(0.5f),
	};
}

static inline struct embeng_feature_config feature_config(const char *name)
{
	return (struct embeng_feature_config){
		.size = sizeof(struct embeng_feature_config),
		.name = name,
	};
}

/* main() of a test program: each test in a process of its own, unless CK_FORK=no. */
static inline int run_tests(const char *name, const TTest *const *tests, size_t count)
{
	Suite *suite = suite_create(name);
	TCase *cases = tcase_create(name);

	for (size_t i = 0; i < count; i++)
		tcase_add_test(cases, tests[i]);
	suite_add_tcase(suite, cases);
	return suite_run(suite);
}

#endif
