// SPDX-License-Identifier: MIT
/* embeng_stacking_make() refuses arguments with one thing wrong at a time. */
#include "stacking_help.h"

/* Tables c, a, b with group {0, 1} of JAX; each change is all that is wrong. */
#define ASSERT_STACKING_REFUSED(change, errno_, ...) \
	do { \
		int members[] = {0, 1}, more[] = {2, 1}; \
		struct embeng_stack_group g[] = { \
			{.name = "g", .tables = members, .table_count = 2}, \
			{.name = "h", .tables = more, .table_count = 1}}; \
		struct embeng_stacking_options o = stacking_options(EMBENG_PARTITION_JAX); \
		struct embeng_stacking *s = NULL; \
		struct embeng_model *m = three_tables(8); \
\
		o.groups = g; \
		o.group_count = 2; \
		change; \
		ASSERT_REFUSED(embeng_stacking_make(m, &o, &s), errno_, __VA_ARGS__); \
		ck_assert_ptr_null(s); \
		embeng_model_free(m); \
	} while (0)

START_TEST(test_good)
{
	int members[] = {0, 1}, more[] = {2, 1};
	struct embeng_stack_group g[] = {{.name = "g", .tables = members, .table_count = 2},
					 {.name = "h", .tables = more, .table_count = 1}};
	struct embeng_stacking_options o = stacking_options(EMBENG_PARTITION_JAX);
	struct embeng_model *m = three_tables(8);
	struct embeng_stacking *s;

	o.groups = g;
	o.group_count = 2;
	s = stacked(m, &o);
	ck_assert_uint_eq(s->stack_count, 2);
	embeng_stacking_free(s);
	embeng_model_free(m);
}
END_TEST

START_TEST(test_arguments)
{
	struct embeng_stacking_options o = stacking_options(EMBENG_PARTITION_TF);
	struct embeng_stacking *s = NULL;
	struct embeng_model *m = three_tables(8);

	ASSERT_REFUSED(embeng_stacking_make(NULL, &o, &s), EINVAL, "model");
	ASSERT_REFUSED(embeng_stacking_make(m, &o, NULL), EINVAL, "out");
	ASSERT_REFUSED(embeng_stacking_make(m, NULL, &s), EINVAL, "options");
	o.size = 8;
	ASSERT_REFUSED(embeng_stacking_make(m, &o, &s), EINVAL, "embeng_stacking_options");
	ck_assert_ptr_null(s);
	embeng_model_free(m);
}
END_TEST

START_TEST(test_grid)
{
	ASSERT_STACKING_REFUSED(o.flavour = (enum embeng_partition_flavour)2, EINVAL, "flavour 2");
	ASSERT_STACKING_REFUSED(o.sparse_cores = 0, ERANGE, "0 sparse_cores", "65536");
	ASSERT_STACKING_REFUSED(o.sparse_cores = 65540, ERANGE, "65540 sparse_cores");
	ASSERT_STACKING_REFUSED(o.cores_per_device = 65, ERANGE, "65 cores_per_device", "64");
	ASSERT_STACKING_REFUSED(o.cores_per_device = 3, EINVAL, "8 sparse_cores", "multiple of 3");
	ASSERT_STACKING_REFUSED(o.sparse_cores = 12, EINVAL, "12", "power of two");
}
END_TEST

START_TEST(test_groups)
{
	ASSERT_STACKING_REFUSED(o.groups = NULL, EINVAL, "groups is NULL");
	ASSERT_STACKING_REFUSED(o.no_stacking = 1, EINVAL, "2 groups", "no_stacking");
	ASSERT_STACKING_REFUSED(g[1].tables = NULL, EINVAL, "group 1", "no tables");
	ASSERT_STACKING_REFUSED(g[1].table_count = 0, EINVAL, "group 1", "no tables");
	ASSERT_STACKING_REFUSED(g[0].name = "", EINVAL, "group 0", "empty");
	ASSERT_STACKING_REFUSED(members[1] = 3, ENOENT, "stack g", "no table 3");
	ASSERT_STACKING_REFUSED(members[0] = -1, ENOENT, "stack g", "no table -1");
	ASSERT_STACKING_REFUSED(members[1] = 0, EEXIST, "stack g", "table c is repeated");
	ASSERT_STACKING_REFUSED(g[1].table_count = 2, EEXIST, "stack h",
				"table a is already stacked", "table c");
	ASSERT_STACKING_REFUSED(g[1].name = "g", EEXIST, "two stacks are named g");
	ASSERT_STACKING_REFUSED(g[0].name = "b";
				g[1].name = NULL, EEXIST, "two stacks are named b");
}
END_TEST

/* Adds table d, which differs from c, to the group of c. */
static void differ(struct embeng_model *m, struct embeng_table_config d, int members[2])
{
	d.vocabulary_size = 8;
	members[1] = embeng_model_add_table(m, &d);
	ck_assert_int_eq(members[1], 3);
}

static struct embeng_table_config narrow(void)
{
	struct embeng_table_config d = table_config("d");

	d.dim = 8;
	return d;
}

START_TEST(test_tables_differ)
{
	struct embeng_table_config d = narrow();

	d.optimizer = embeng_sgd(0.25f);
	ASSERT_STACKING_REFUSED(differ(m, d, members), EINVAL, "stack g", "c and d",
				"different optimizers");
	d.optimizer = embeng_adagrad(0.5f);
	ASSERT_STACKING_REFUSED(differ(m, d, members), EINVAL, "different optimizers");
	d.optimizer = embeng_sgd(0.5f);
	d.optimizer.rate_name = "rate";
	ASSERT_STACKING_REFUSED(differ(m, d, members), EINVAL, "different optimizers");
	d.optimizer.rate_name = NULL;
	d.optimizer.low_dimensional_packing = 1;
	d.dim = 4;
	ASSERT_STACKING_REFUSED(differ(m, d, members), EINVAL, "different optimizers");
	d = narrow();
	d.optimizer.scale_by_frequency = 1;
	ASSERT_STACKING_REFUSED(differ(m, d, members), EINVAL, "different optimizers");
	d = narrow();
	d.optimizer.max_norm = 2;
	ASSERT_STACKING_REFUSED(differ(m, d, members), EINVAL, "different optimizers");
	d = narrow();
	d.quantization = (struct embeng_quantization){.num_buckets = 4, .lower = -1, .upper = 1};
	ASSERT_STACKING_REFUSED(differ(m, d, members), EINVAL, "stack g", "c and d",
				"different quantizations");
	d = narrow();
	d.combiner = EMBENG_SUM;
	ASSERT_STACKING_REFUSED(differ(m, d, members), EINVAL, "stack g", "c and d",
				"different combiners");
	d = narrow();
	d.dim = 9;
	ASSERT_STACKING_REFUSED(differ(m, d, members);
				o.no_excess_padding = 1, EINVAL, "c and d", "8 and 16 columns");
}
END_TEST

START_TEST(test_numbers)
{
	struct embeng_stacking_options o = stacking_options(EMBENG_PARTITION_JAX);
	struct embeng_model *m = three_tables(8);
	struct embeng_feature_config open = feature_config("open");
	struct embeng_stacking *s = NULL;

	ck_assert_int_eq(embeng_model_add_feature(m, &open), 3);
	ASSERT_REFUSED(embeng_stacking_make(m, &o, &s), EINVAL, "feature open",
		       "not fully defined");
	embeng_model_free(m);
	m = three_tables(8);
	add_table(m, "d", INT64_MAX);
	ASSERT_REFUSED(embeng_stacking_make(m, &o, &s), ERANGE, "table d", "64 bits");
	embeng_model_free(m);
	m = three_tables(8);
	add_feature(m, "x", 0, INT64_MAX);
	ASSERT_REFUSED(embeng_stacking_make(m, &o, &s), ERANGE, "table c", "samples", "64 bits");
	embeng_model_free(m);
	m = embeng_model_new();
	add_feature(m, "x", add_table(m, "a", 8), INT64_MAX);
	add_feature(m, "y", add_table(m, "b", 8), 1);
	o.activation_limit_bytes = UINT64_MAX;
	ASSERT_REFUSED(embeng_stacking_make(m, &o, &s), ERANGE, "a_b", "samples", "64 bits");
	embeng_model_free(m);
	m = three_tables(INT64_C(1) << 62);
	o.sparse_cores = o.cores_per_device = 1;
	ASSERT_REFUSED(embeng_stacking_make(m, &o, &s), ERANGE, "c_a_b", "rows", "64 bits");
	embeng_model_free(m);
	ck_assert_ptr_null(s);
}
END_TEST

int main(void)
{
	const TTest *tests[] = {test_good,   test_arguments,	 test_grid,
				test_groups, test_tables_differ, test_numbers};

	return run_tests("stacking_refused", tests, COUNT(tests));
}
