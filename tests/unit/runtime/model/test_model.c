// SPDX-License-Identifier: MIT
/*
 * Models as a program builds them: names, order, rates, copies, and each way in which a table or
 * feature is refused.
 */
#include <math.h>
#include <stdio.h>

#include "runtime/src/base/check.h"
#include "test_model.h"

#define ASSERT_FEATURE_REFUSED(change, errno_, ...) \
	do { \
		struct embeng_model *m_ = embeng_model_new(); \
		struct embeng_table_config t_ = table_config("users"); \
		struct embeng_feature_config c = feature_config("clicks"); \
\
		ck_assert_int_eq(embeng_model_add_table(m_, &t_), 0); \
		change; \
		ASSERT_REFUSED(embeng_model_add_feature(m_, &c), errno_, __VA_ARGS__); \
		ck_assert_uint_eq(embeng_model_feature_count(m_), 0); \
		embeng_model_free(m_); \
	} while (0)

static const char *const long_name =
	"0123456789012345678901234567890123456789012345678901234567890123";

START_TEST(test_order_and_names)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng_table_config t = table_config(NULL);
	struct embeng_feature_config f = feature_config(NULL);

	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	t.name = "b";
	ck_assert_int_eq(embeng_model_add_table(m, &t), 1);
	t.name = NULL;
	ck_assert_int_eq(embeng_model_add_table(m, &t), 2);
	f.table = 2;
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	f.name = long_name + 1;
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 1);
	ck_assert_str_eq(embeng_model_table_name(m, 0), "table_0");
	ck_assert_str_eq(embeng_model_table_name(m, 2), "table_2");
	ck_assert_ptr_null(embeng_model_table_name(m, 3));
	ck_assert_str_eq(embeng_model_feature_name(m, 0), "feature_0");
	ck_assert_str_eq(embeng_model_feature_name(m, 1), long_name + 1);
	ck_assert_ptr_null(embeng_model_feature_name(m, 2));
	ck_assert_int_eq(embeng_model_table(m, "b"), 1);
	ck_assert_int_eq(embeng_model_feature(m, "feature_0"), 0);
	ASSERT_REFUSED(embeng_model_table(m, "feature_0"), ENOENT, "feature_0");
	ASSERT_REFUSED(embeng_model_feature(m, "b"), ENOENT, "feature b");
	ASSERT_REFUSED(embeng_model_feature(m, NULL), ENOENT, "NULL");
	t.name = "b";
	ASSERT_REFUSED(embeng_model_add_table(m, &t), EEXIST, "table b", "table 1");
	t.name = "table_3";
	ck_assert_int_eq(embeng_model_add_table(m, &t), 3);
	f.name = "feature_0";
	ASSERT_REFUSED(embeng_model_add_feature(m, &f), EEXIST, "feature feature_0", "feature 0");
	embeng_model_free(m);
}
END_TEST

START_TEST(test_rates_in_table_order_once)
{
	static const char *const names[] = {"slow", NULL, "fast", "slow", "unused"};
	struct embeng_model *m = embeng_model_new();

	for (size_t i = 0; i < COUNT(names); i++) {
		struct embeng_table_config t = table_config(NULL);
		char name[16];

		if (names[i])
			t.optimizer.rate_name = strcpy(name, names[i]);
		if (i == 4)
			t.optimizer.kind = EMBENG_OPTIMIZER_NO;
		ck_assert_int_eq(embeng_model_add_table(m, &t), (int)i);
		memset(name, 'z', sizeof(name));
	}
	ck_assert_uint_eq(embeng_model_rate_count(m), 2);
	ck_assert_str_eq(embeng_model_rate_name(m, 0), "slow");
	ck_assert_str_eq(embeng_model_rate_name(m, 1), "fast");
	ck_assert_ptr_null(embeng_model_rate_name(m, 2));
	ck_assert_int_eq(m->tables[1].rate, -1);
	ck_assert_int_eq(m->tables[2].rate, 1);
	ck_assert_int_eq(m->tables[3].rate, 0);
	ck_assert_str_eq(m->tables[3].optimizer.rate_name, "slow");
	ck_assert_int_eq(m->tables[4].rate, -1);
	embeng_model_free(m);
}
END_TEST

#define LEVELS(...) \
	c.quantization = (struct embeng_quantization) \
	{ \
		__VA_ARGS__ \
	}

START_TEST(test_quantization_refused)
{
	ASSERT_TABLE_REFUSED(LEVELS(1, -1.0f, 1.0f), ERANGE, "users", "num_buckets 1", "2");
	ASSERT_TABLE_REFUSED(LEVELS(-2, -1.0f, 1.0f), ERANGE, "num_buckets -2");
	ASSERT_TABLE_REFUSED(LEVELS(INT64_MIN, -1.0f, 1.0f), ERANGE,
			     "num_buckets -9223372036854775808");
	ASSERT_TABLE_REFUSED(LEVELS(2147483648, -1.0f, 1.0f), ERANGE, "num_buckets 2147483648",
			     "2147483647");
	ASSERT_TABLE_REFUSED(LEVELS(4, -INFINITY, 1.0f), ERANGE, "lower -inf", "finite");
	ASSERT_TABLE_REFUSED(LEVELS(4, -1.0f, NAN), ERANGE, "upper nan", "finite");
	ASSERT_TABLE_REFUSED(LEVELS(4, 1.0f, 1.0f), ERANGE, "lower 1 is not below upper 1");
	ASSERT_TABLE_REFUSED(LEVELS(4, 1.0f, -1.0f), ERANGE, "lower 1", "upper -1");
	ASSERT_TABLE_REFUSED(LEVELS(2, -3e38f, 3e38f), ERANGE, "2 buckets", "inf apart");
	ASSERT_TABLE_REFUSED(LEVELS(1000, 0.0f, 1e-37f), ERANGE, "1000 buckets", "apart");
}
END_TEST

START_TEST(test_quantization_is_told_and_hashed)
{
	struct embeng_table_config c = table_config("t"), got = {.size = sizeof(got)};
	struct embeng_model *none = embeng_model_new(), *some = embeng_model_new(), *copy;

	LEVELS(0, 3.0f, -3.0f);
	ck_assert_int_eq(embeng_model_add_table(none, &c), 0);
	ck_assert_int_eq(embeng_model_get_table(none, 0, &got), 0);
	ck_assert(!got.quantization.num_buckets && !got.quantization.lower);
	LEVELS(2147483647, -1.0f, 2.0f);
	ck_assert_int_eq(embeng_model_add_table(some, &c), 0);
	copy = model_copy(some);
	ck_assert_int_eq(embeng_model_get_table(copy, 0, &got), 0);
	ck_assert_int_eq(got.quantization.num_buckets, 2147483647);
	ck_assert(got.quantization.lower == -1.0f && got.quantization.upper == 2.0f);
	ck_assert_uint_eq(embeng_model_hash(copy), embeng_model_hash(some));
	ck_assert_uint_ne(embeng_model_hash(some), embeng_model_hash(none));
	embeng_model_free(none);
	embeng_model_free(some);
	embeng_model_free(copy);
}
END_TEST

START_TEST(test_copy_means_the_same)
{
	struct embeng_model *m = embeng_model_new(), *copy;
	struct embeng_table_config t = table_config("t");
	struct embeng_feature_config f = feature_config("f");
	struct embeng_engine_config e = {
		sizeof(e), 3, 1, 4, 1, EMBENG_SHARDING_DIV, EMBENG_NON_FINITE_DROP, 1};

	t.optimizer.rate_name = "slow";
	t.initializer = (struct embeng_initializer){EMBENG_INIT_UNIFORM, -1.0f, 2.0f, 77};
	f.output_rank = 2;
	f.output_shape[0] = 4;
	f.max_sequence_length = 5;
	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	f.name = "g";
	f.output_rank = 0;
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 1);
	ck_assert_int_eq(embeng_model_set_engine(m, &e), 0);
	copy = model_copy(m);
	ck_assert_uint_eq(embeng_model_hash(copy), embeng_model_hash(m));
	embeng_model_free(m);
	ck_assert_str_eq(copy->tables[0].name, "t");
	ck_assert_uint_eq(copy->tables[0].initializer.seed, 77);
	ck_assert_str_eq(copy->rates[0], "slow");
	ck_assert_uint_eq(copy->features[0].output_rank, 2);
	ck_assert_int_eq(copy->features[0].output_shape[0], 4);
	ck_assert_int_eq(copy->features[0].max_sequence_length, 0);
	ck_assert_int_eq(copy->features[1].max_sequence_length, 5);
	ck_assert_uint_eq(copy->engine.replicas, 3);
	embeng_model_free(copy);
	embeng_model_free(NULL);
}
END_TEST

START_TEST(test_tells_what_it_was_made_from)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng_table_config t = table_config(NULL), got = {.size = sizeof(got)};
	struct embeng_feature_config f = feature_config(NULL), had = {.size = sizeof(had)};

	t.optimizer = embeng_adam(0.5f);
	t.optimizer.rate_name = "slow";
	t.combiner = EMBENG_SQRTN;
	t.out_of_range = EMBENG_POLICY_ZERO;
	t.dim = 4;
	f.max_sequence_length = 5;
	f.unchecked_serving = 1;
	f.check_weights = 1;
	f.max_samples = 6;
	f.max_ids = 7;
	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	ck_assert_int_eq(embeng_model_get_table(m, 0, &got), 0);
	ck_assert_str_eq(got.name, "table_0");
	ck_assert_int_eq(got.vocabulary_size, 8);
	ck_assert_int_eq(got.dim, 4);
	ck_assert_int_eq(got.combiner, EMBENG_SQRTN);
	ck_assert_int_eq(got.out_of_range, EMBENG_POLICY_ZERO);
	ck_assert_str_eq(got.optimizer.rate_name, "slow");
	ck_assert_int_eq(got.optimizer.use_gradient_accumulation, EMBENG_ON);
	ck_assert_int_eq(got.optimizer.lazy_adam, EMBENG_ON);
	ck_assert_int_eq(got.optimizer.sum_inside_sqrt, EMBENG_ON);
	ck_assert_int_eq(got.initializer.kind, EMBENG_INIT_TRUNCATED_NORMAL);
	ck_assert(got.initializer.a == 0.0f && got.initializer.b == 0.5f);
	ck_assert_uint_eq(got.initializer.seed, 0);
	ck_assert_int_eq(embeng_model_get_feature(m, 0, &had), 0);
	ck_assert_str_eq(had.name, "feature_0");
	ck_assert_int_eq(had.max_sequence_length, 5);
	ck_assert(had.unchecked_serving && had.check_weights);
	ck_assert_uint_eq(had.max_samples, 6);
	ck_assert_uint_eq(had.max_ids, 7);
	ASSERT_REFUSED(embeng_model_get_table(m, 1, &got), ENOENT, "table 1", "1 tables");
	ASSERT_REFUSED(embeng_model_get_feature(m, 1, &had), ENOENT, "feature 1", "1 features");
	ASSERT_REFUSED(embeng_model_get_table(NULL, 0, &got), EINVAL, "model");
	ASSERT_REFUSED(embeng_model_get_feature(NULL, 0, &had), EINVAL, "model");
	ASSERT_REFUSED(embeng_model_get_table(m, 0, NULL), EINVAL, "config");
	ASSERT_REFUSED(embeng_model_get_feature(m, 0, NULL), EINVAL, "config");
	got.size = had.size = 8;
	ASSERT_REFUSED(embeng_model_get_table(m, 0, &got), EINVAL, "size");
	ASSERT_REFUSED(embeng_model_get_feature(m, 0, &had), EINVAL, "size");
	ck_assert_str_eq(got.name, "table_0");
	embeng_model_free(m);
}
END_TEST

START_TEST(test_structures_of_other_sizes)
{
	struct {
		struct embeng_table_config c;
		unsigned char newer[8];
	} large = {.c = table_config("t")};
	struct embeng_model *m = embeng_model_new();

	large.c.size = sizeof(large);
	ck_assert_int_eq(embeng_model_add_table(m, &large.c), 0);
	large.c.name = "u";
	large.newer[3] = 1;
	ASSERT_REFUSED(embeng_model_add_table(m, &large.c), EINVAL, "embeng_table_config",
		       "does not know");
	large.c.size = sizeof(large.c) - 1;
	ASSERT_REFUSED(embeng_model_add_table(m, &large.c), EINVAL, "embeng_table_config",
		       "sizeof");
	large.c.size = (size_t)1 << 40;
	ASSERT_REFUSED(embeng_model_add_table(m, &large.c), EINVAL, "not possible");
	ASSERT_REFUSED(embeng_model_add_table(m, NULL), EINVAL, "NULL");
	ASSERT_REFUSED(embeng_model_add_table(NULL, &large.c), EINVAL, "NULL");
	ASSERT_REFUSED(embeng_model_add_feature(NULL, NULL), EINVAL, "NULL");
	ASSERT_REFUSED(embeng_model_add_feature(m, NULL), EINVAL, "embeng_feature_config");
	ASSERT_REFUSED(embeng_model_set_engine(m, NULL), EINVAL, "embeng_engine_config");
	ASSERT_REFUSED(embeng_model_set_engine(NULL, NULL), EINVAL, "NULL");
	ck_assert_uint_eq(embeng_model_table_count(m), 1);
	embeng_model_free(m);
}
END_TEST

START_TEST(test_tables_refused)
{
	ASSERT_TABLE_REFUSED(c.name = "", EINVAL, "table", "empty");
	ASSERT_TABLE_REFUSED(c.name = long_name, EINVAL, "63", "longer");
	ASSERT_TABLE_REFUSED(c.vocabulary_size = 0, ERANGE, "users", "vocabulary_size 0");
	ASSERT_TABLE_REFUSED(c.dim = 0, ERANGE, "users", "dim 0");
	ASSERT_TABLE_REFUSED(c.dim = (int64_t)1 << 32, ERANGE, "users", "dim 4294967296");
	ASSERT_TABLE_REFUSED(c.combiner = 4, EINVAL, "users", "combiner 4");
	ASSERT_TABLE_REFUSED(c.combiner = -1, EINVAL, "users", "combiner -1");
	ASSERT_TABLE_REFUSED(c.out_of_range = 4, EINVAL, "users", "out_of_range 4");
	ASSERT_TABLE_REFUSED(c.initializer.kind = 4, EINVAL, "users", "initializer kind 4");
	ASSERT_TABLE_REFUSED((c.initializer.kind = EMBENG_INIT_CONSTANT, c.initializer.a = NAN),
			     ERANGE, "users", "initializer a");
	ASSERT_TABLE_REFUSED((c.initializer.kind = EMBENG_INIT_TRUNCATED_NORMAL,
			      c.initializer.a = -1e38f, c.initializer.b = 1.3e38f),
			     ERANGE, "users", "mean a -1e+38", "deviation b 1.3e+38", "3.6e+38");
	ASSERT_TABLE_REFUSED((c.initializer.kind = EMBENG_INIT_UNIFORM, c.initializer.b = INFINITY),
			     ERANGE, "users", "initializer b");
	ASSERT_TABLE_REFUSED((c.initializer.kind = EMBENG_INIT_UNIFORM, c.initializer.b = -1.0f),
			     ERANGE, "users", "above its b");
	ASSERT_TABLE_REFUSED(
		(c.initializer.kind = EMBENG_INIT_TRUNCATED_NORMAL, c.initializer.b = -1.0f),
		ERANGE, "users", "deviation");
}
END_TEST

START_TEST(test_features_refused)
{
	ASSERT_FEATURE_REFUSED(c.name = "", EINVAL, "feature", "empty");
	ASSERT_FEATURE_REFUSED(c.name = long_name, EINVAL, "feature", "63");
	ASSERT_FEATURE_REFUSED(c.table = 1, ENOENT, "clicks", "table 1", "1 tables");
	ASSERT_FEATURE_REFUSED(c.table = -1, ENOENT, "clicks", "table -1");
	ASSERT_FEATURE_REFUSED(c.max_sequence_length = -1, ERANGE, "clicks",
			       "max_sequence_length -1");
	ASSERT_FEATURE_REFUSED(c.max_sequence_length = (int64_t)1 << 32, ERANGE, "clicks",
			       "4294967296");
	ASSERT_FEATURE_REFUSED(c.output_rank = EMBENG_MAX_RANK + 1, ERANGE, "output_rank 9");
	ASSERT_FEATURE_REFUSED((c.output_rank = 2, c.output_shape[1] = -3), ERANGE, "clicks",
			       "entry 1", "[?, -3]");
	ASSERT_FEATURE_REFUSED((c.output_rank = 2, c.output_shape[0] = (int64_t)1 << 32,
				c.output_shape[1] = (int64_t)1 << 31),
			       ERANGE, "clicks", "[4294967296, 2147483648]");
}
END_TEST

START_TEST(test_engine_is_told)
{
	struct embeng_engine_config e = {.size = sizeof(e), .pipelining = 1, .step_depth = 3};
	struct embeng_model *m = embeng_model_new();

	ck_assert_int_eq(embeng_model_set_engine(m, &e), 0);
	e.pipelining = 0;
	ck_assert_int_eq(embeng_model_get_engine(m, &e), 0);
	ck_assert_uint_eq(e.replicas, 1);
	ck_assert_int_eq(e.pipelining, 1);
	ck_assert_uint_eq(e.step_depth, 3);
	ASSERT_REFUSED(embeng_model_get_engine(NULL, &e), EINVAL, "model");
	ASSERT_REFUSED(embeng_model_get_engine(m, NULL), EINVAL, "config");
	e.size = 1;
	ASSERT_REFUSED(embeng_model_get_engine(m, &e), EINVAL, "size");
	embeng_model_free(m);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_order_and_names,		test_rates_in_table_order_once,
		test_quantization_refused,	test_quantization_is_told_and_hashed,
		test_copy_means_the_same,	test_tells_what_it_was_made_from,
		test_structures_of_other_sizes, test_tables_refused,
		test_features_refused,		test_engine_is_told,
	};

	return run_tests("model", tests, COUNT(tests));
}
