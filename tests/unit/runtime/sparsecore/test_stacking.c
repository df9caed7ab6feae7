// SPDX-License-Identifier: MIT
/* Stacks that no vector has: given by hand, with other limits, of tables that are too large. */
#include "stacking_help.h"

#define TF EMBENG_PARTITION_TF
#define JAX EMBENG_PARTITION_JAX

/* Names of all stacks, parted by spaces. */
static void assert_names(const struct embeng_stacking *s, const char *want)
{
	char got[512] = "";

	for (size_t i = 0; i < s->stack_count; i++) {
		strcat(got, i ? " " : "");
		strcat(got, s->stacks[i].name);
	}
	ck_assert_str_eq(got, want);
}

static void assert_stacks(const struct embeng_model *m, const struct embeng_stacking_options *o,
			  const char *want)
{
	struct embeng_stacking *s = stacked(m, o);

	assert_names(s, want);
	embeng_stacking_free(s);
}

START_TEST(test_numbers)
{
	struct embeng_model *m = three_tables(100);
	struct embeng_stacking_options o = stacking_options(TF);
	struct embeng_stacking *s = stacked(m, &o);
	const struct embeng_stack *stack = &s->stacks[0];
	const struct embeng_table_layout *c = &s->tables[0];

	assert_names(s, "a_b_c");
	ck_assert_int_eq(s->flavour, TF);
	ck_assert_uint_eq(s->sparse_cores, 8);
	ck_assert_uint_eq(s->cores_per_device, 4);
	ck_assert_uint_eq(s->model_hash, embeng_model_hash(m));
	ck_assert_uint_eq(s->table_count, 3);
	ck_assert_uint_eq(s->feature_count, 3);
	ck_assert_int_eq(stack->width, 8);
	ck_assert_int_eq(stack->rows_per_core, 3 * 16);
	ck_assert_int_eq(stack->samples, 192);
	ck_assert_uint_eq(stack->feature_count, 3);
	ck_assert_str_eq(c->table, "c");
	ck_assert_str_eq(c->stack, "a_b_c");
	ck_assert_int_eq(c->sparse_cores, 8);
	ck_assert_int_eq(c->partitions, 2);
	ck_assert_int_eq(c->rows_per_core, 48);
	ck_assert_int_eq(c->rows, 100);
	ck_assert_int_eq(c->dim, 8);
	ck_assert_int_eq(c->padded_rows, 128);
	ck_assert_int_eq(c->padded_dim, 8);
	ck_assert_int_eq(c->row_offset, 32);
	ck_assert_int_eq(c->rotation, 0);
	ck_assert_int_eq(s->tables[2].rotation, 4);
	ck_assert_int_eq(c->samples_per_core, 16);
	ck_assert_int_eq(c->feature_count, 1);
	ck_assert_uint_eq(s->features[1].stack, 0);
	ck_assert_int_eq(s->features[1].offset, 64);
	ck_assert_int_eq(s->features[1].samples, 64);
	embeng_stacking_free(s);
	embeng_model_free(m);
}
END_TEST

START_TEST(test_no_stacking)
{
	struct embeng_model *m = three_tables(8);
	struct embeng_stacking_options o = stacking_options(TF);

	o.no_stacking = 1;
	assert_stacks(m, &o, "a b c");
	o.flavour = JAX;
	assert_stacks(m, &o, "c a b");
	embeng_model_free(m);
}
END_TEST

START_TEST(test_limits)
{
	struct embeng_model *m = three_tables(100);

	for (int f = TF; f <= JAX; f++) {
		struct embeng_stacking_options o = stacking_options(
			(enum embeng_partition_flavour)f);

		o.table_limit = 2;
		assert_stacks(m, &o, f == TF ? "a_b c" : "c_a b");
		o.table_limit = 0;
		o.row_limit = 257; /* 128 each */
		assert_stacks(m, &o, f == TF ? "a_b c" : "c_a b");
		o.row_limit = 256;
		assert_stacks(m, &o, f == TF ? "a b c" : "c a b");
		o.row_limit = 0;
		o.shard_limit_bytes = 4 * 8 * 256 / 2 + 1;
		assert_stacks(m, &o, f == TF ? "a_b c" : "c_a b");
		o.shard_limit_bytes--;
		assert_stacks(m, &o, f == TF ? "a b c" : "c a b");
	}
	embeng_model_free(m);
}
END_TEST

START_TEST(test_default_limits)
{
	/* Two tables of 2^25 rows are 2 GiB of one device. */
	struct embeng_model *m = three_tables(INT64_C(1) << 25);
	struct embeng_stacking_options o = stacking_options(TF);

	o.sparse_cores = 4;
	assert_stacks(m, &o, "a b c");
	o.shard_limit_bytes = UINT64_MAX;
	assert_stacks(m, &o, "a_b_c");
	o = stacking_options(JAX);
	o.sparse_cores = 4;
	assert_stacks(m, &o, "c_a_b");
	embeng_model_free(m);
	/* Two of 2^30 rows are 2^31, which many devices could hold. */
	m = three_tables(INT64_C(1) << 30);
	o = stacking_options(TF);
	o.sparse_cores = 4096;
	assert_stacks(m, &o, "a b c");
	o.row_limit = UINT64_MAX;
	assert_stacks(m, &o, "a_b_c");
	embeng_model_free(m);
}
END_TEST

/* Products beyond 64 bits are beyond any limit, not small numbers again. */
START_TEST(test_huge)
{
	struct embeng_model *m = three_tables(INT64_C(1) << 60);
	struct embeng_stacking_options o = stacking_options(TF);
	struct embeng_stacking *s;

	assert_stacks(m, &o, "a b c");
	o = stacking_options(JAX);
	s = stacked(m, &o);
	ck_assert_int_eq(s->tables[2].row_offset, INT64_C(1) << 58);
	ck_assert_int_eq(s->stacks[0].rows_per_core, INT64_C(3) << 57);
	embeng_stacking_free(s);
	embeng_model_free(m);
	m = embeng_model_new();
	add_table(m, "a", 8);
	add_table(m, "b", 8);
	add_feature(m, "x", 0, INT64_MAX);
	add_feature(m, "y", 1, 4);
	o.activation_limit_bytes = UINT64_MAX - 1;
	assert_stacks(m, &o, "a b");
	embeng_model_free(m);
}
END_TEST

START_TEST(test_rotation)
{
	struct embeng_model *m = three_tables(8);
	struct embeng_stacking_options o = stacking_options(JAX);
	struct embeng_stacking *s;

	o.rotation_given = 1;
	o.rotation = 3;
	s = stacked(m, &o);
	ck_assert_int_eq(s->tables[1].rotation, 3);
	ck_assert_int_eq(s->tables[2].rotation, 6);
	embeng_stacking_free(s);
	o.rotation = UINT32_MAX;
	s = stacked(m, &o);
	ck_assert_int_eq(s->tables[1].rotation, 7);
	ck_assert_int_eq(s->tables[2].rotation, 6);
	embeng_stacking_free(s);
	o.rotation = 0;
	s = stacked(m, &o);
	ck_assert_int_eq(s->tables[2].rotation, 0);
	embeng_stacking_free(s);
	embeng_model_free(m);
}
END_TEST

START_TEST(test_by_hand)
{
	const int both[] = {2, 0};
	struct embeng_stack_group groups[] = {{.name = "pair", .tables = both, .table_count = 2}};
	struct embeng_model *m = three_tables(100);
	struct embeng_stacking_options o = stacking_options(JAX);
	struct embeng_stacking *s;

	o.groups = groups;
	o.group_count = 1;
	s = stacked(m, &o);
	assert_names(s, "pair a");
	ck_assert_int_eq(s->stacks[0].tables[0], 2);
	ck_assert_int_eq(s->stacks[0].tables[1], 0);
	ck_assert_int_eq(s->tables[0].row_offset, 16);
	ck_assert_int_eq(s->tables[0].rotation, 4);
	ck_assert_int_eq(s->features[0].offset, 0);
	ck_assert_int_eq(s->features[2].offset, 64);
	embeng_stacking_free(s);
	groups[0].name = NULL;
	/* No limit parts what hands put together. */
	o.activation_limit_bytes = 1;
	o.table_limit = 1;
	assert_stacks(m, &o, "b_c a");
	embeng_model_free(m);
}
END_TEST

START_TEST(test_by_hand_widens)
{
	const int both[] = {0, 1};
	struct embeng_stack_group group = {.tables = both, .table_count = 2};
	struct embeng_model *m = three_tables(100);
	struct embeng_table_config wide = table_config("wide");
	struct embeng_stacking_options o = stacking_options(TF);
	struct embeng_stacking *s;
	const int with[] = {0, 3};

	wide.dim = 17;
	ck_assert_int_eq(embeng_model_add_table(m, &wide), 3);
	group.tables = with;
	o.groups = &group;
	o.group_count = 1;
	s = stacked(m, &o);
	assert_names(s, "c_wide a b");
	ck_assert_int_eq(s->stacks[0].width, 24);
	ck_assert_int_eq(s->tables[0].padded_dim, 24);
	ck_assert_int_eq(s->tables[3].padded_dim, 24);
	ck_assert_int_eq(s->tables[1].padded_dim, 8);
	embeng_stacking_free(s);
	embeng_model_free(m);
}
END_TEST

START_TEST(test_long_names)
{
	static const char *const names[] = {"a_name_of_thirty_characters_xx",
					    "another_of_thirty_characters_x"};
	const int both[] = {0, 1};
	const struct embeng_stack_group group = {.tables = both, .table_count = 2};
	const char *whole = "a_name_of_thirty_characters_xx_another_of_thirty_characters_x";
	struct embeng_stacking_options o = stacking_options(JAX);
	struct embeng_model *m = embeng_model_new();
	struct embeng_stacking *s;

	add_feature(m, "x", add_table(m, names[0], 8), 64);
	add_feature(m, "y", add_table(m, names[1], 8), 64);
	o.long_names = 1;
	assert_stacks(m, &o, whole);
	o.long_names = 0;
	s = stacked(m, &o);
	ck_assert_uint_eq(strlen(s->stacks[0].name), 50 + 3 + 12);
	ck_assert_int_eq(strncmp(s->stacks[0].name, whole, 50), 0);
	embeng_stacking_free(s);
	o.groups = &group;
	o.group_count = 1;
	s = stacked(m, &o);
	ck_assert_uint_eq(strlen(s->stacks[0].name), 50 + 3 + 12);
	embeng_stacking_free(s);
	embeng_model_free(m);
}
END_TEST

START_TEST(test_built_shapes)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng_feature_config sequence = feature_config("s");
	struct embeng_stacking_options o = stacking_options(TF);
	struct embeng_stacking *s;

	add_table(m, "a", 8);
	sequence.max_sequence_length = 5;
	ck_assert_int_eq(embeng_model_add_feature(m, &sequence), 0);
	ck_assert_int_eq(embeng_model_build(m, 8), 0);
	s = stacked(m, &o);
	ck_assert_int_eq(s->features[0].samples, 40);
	embeng_stacking_free(s);
	embeng_model_free(m);
}
END_TEST

/* A model without optimizers, as for serving, and one without tables. */
START_TEST(test_without)
{
	struct embeng_stacking_options o = stacking_options(TF);
	struct embeng_model *m = embeng_model_new();
	struct embeng_table_config a = table_config("a"), b = table_config("b");
	struct embeng_stacking *s = stacked(m, &o);

	ck_assert_uint_eq(s->stack_count, 0);
	embeng_stacking_free(s);
	a.optimizer = b.optimizer = (struct embeng_optimizer){0};
	ck_assert_int_eq(embeng_model_add_table(m, &a), 0);
	ck_assert_int_eq(embeng_model_add_table(m, &b), 1);
	s = stacked(m, &o);
	assert_names(s, "a_b");
	ck_assert_uint_eq(s->stacks[0].feature_count, 0);
	ck_assert_int_eq(s->stacks[0].samples, 0);
	embeng_stacking_free(s);
	embeng_stacking_free(NULL);
	embeng_model_free(m);
}
END_TEST

int main(void)
{
	const TTest *tests[] = {test_numbers,	     test_no_stacking,	  test_limits,
				test_default_limits, test_huge,		  test_rotation,
				test_by_hand,	     test_by_hand_widens, test_long_names,
				test_built_shapes,   test_without};

	return run_tests("stacking", tests, COUNT(tests));
}
