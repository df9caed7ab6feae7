// SPDX-License-Identifier: MIT
/* Slots of tables: their names, and how they start. */
#include <math.h>

#include "runtime/src/model/initializer.h"
#include "test_model.h"

/* A table of adagrad_momentum (accumulators, momenta) with these starts. */
static int add_starts(struct embeng_model *m, const struct embeng_slot_start *starts, size_t count)
{
	struct embeng_table_config t = table_config(NULL);

	t.optimizer = embeng_adagrad_momentum(0.5f);
	t.slot_starts = starts;
	t.slot_start_count = count;
	return embeng_model_add_table(m, &t);
}

#define ASSERT_STARTS_REFUSED(errno_, words, ...) \
	do { \
		const struct embeng_slot_start starts_[] = {__VA_ARGS__}; \
		struct embeng_model *m_ = embeng_model_new(); \
\
		ASSERT_REFUSED(add_starts(m_, starts_, COUNT(starts_)), errno_, "table_0", words); \
		ck_assert_uint_eq(embeng_model_table_count(m_), 0); \
		embeng_model_free(m_); \
	} while (0)

#define CONSTANT(x) {EMBENG_INIT_CONSTANT, x, 0.0f, 0}

START_TEST(test_names)
{
	static const struct {
		struct embeng_optimizer (*make)(float rate);
		size_t count;
		const char *slots[3];
	} kinds[] = {
		{embeng_sgd, 0, {NULL, NULL}},
		{embeng_adagrad, 1, {"accumulators", NULL}},
		{embeng_adagrad_momentum, 2, {"accumulators", "momenta"}},
		{embeng_ftrl, 2, {"accumulators", "linears"}},
		{embeng_adam, 2, {"momenta", "velocities"}},
		{embeng_adam_corrected, 2, {"momenta", "velocities"}},
		{embeng_momentum, 1, {"momenta"}},
		{embeng_lion, 1, {"momenta"}},
		{embeng_rms_prop, 2, {"ms", "mom"}},
		{embeng_centered_rms_prop, 3, {"ms", "mom", "mg"}},
		{embeng_adadelta, 2, {"accumulators", "updates"}},
		{embeng_proximal_adagrad, 1, {"accumulators"}},
		{embeng_assign, 0, {NULL}},
		{embeng_laprop, 2, {"mu", "nu"}},
		{embeng_proximal_yogi, 2, {"v", "m"}},
		{embeng_bounded_adagrad, 1, {"accumulators"}},
		{embeng_online_yogi, 2, {"vs", "linears"}},
		{embeng_frequency_estimator, 1, {"last_hit_step"}},
		{embeng_frequency_aware_adagrad, 2, {"accumulators", "counters"}},
		{embeng_mdl_adagrad_light, 3, {"accumulators", "weights", "benefits"}},
		{embeng_rowwise_adagrad, 1, {"accumulators"}},
		{embeng_partial_rowwise_adam, 2, {"momenta", "velocities"}},
	};
	struct embeng_model *m = embeng_model_new();

	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct embeng_table_config t = table_config(NULL);

		t.dim = 1;
		t.optimizer = kinds[i].make(0.5f);
		ck_assert_int_eq(embeng_model_add_table(m, &t), (int)i);
		ck_assert_uint_eq(embeng_model_slot_count(m, i), kinds[i].count);
		ck_assert_int_eq(model_slot(m, (int)i, NULL), 0);
		ck_assert_str_eq(model_slot_name(m, (int)i, 0), "parameters");
		for (size_t s = 0; s < kinds[i].count; s++) {
			ck_assert_str_eq(embeng_model_slot_name(m, i, s), kinds[i].slots[s]);
			ck_assert_str_eq(model_slot_name(m, (int)i, s + 1), kinds[i].slots[s]);
			ck_assert_int_eq(model_slot(m, (int)i, kinds[i].slots[s]), (int)s + 1);
		}
		ck_assert_ptr_null(embeng_model_slot_name(m, i, kinds[i].count));
		ck_assert_ptr_null(model_slot_name(m, (int)i, kinds[i].count + 1));
	}
	ck_assert_uint_eq(embeng_model_slot_count(m, COUNT(kinds)), 0);
	ck_assert_uint_eq(embeng_model_slot_count(NULL, 0), 0);
	ck_assert_ptr_null(embeng_model_slot_name(m, COUNT(kinds), 0));
	ck_assert_ptr_null(model_slot_name(m, -1, 0));
	ASSERT_REFUSED(model_slot(m, 0, "accumulators"), ENOENT, "table_0", "accumulators", "none");
	ASSERT_REFUSED(model_slot(m, 1, "momenta"), ENOENT, "table_1", "slot momenta",
		       "accumulators");
	ASSERT_REFUSED(model_slot(m, 3, "momenta"), ENOENT, "accumulators and linears");
	ASSERT_REFUSED(model_slot(m, 99, NULL), ENOENT, "table 99", "22 tables");
	ASSERT_REFUSED(model_slot(m, -1, NULL), ENOENT, "table -1");
	embeng_model_free(m);
}
END_TEST

/* By name; a slot of one number is one however wide the table is. */
START_TEST(test_widths)
{
	static struct embeng_optimizer (*const makes[])(float rate) = {
		embeng_adagrad, embeng_rowwise_adagrad, embeng_partial_rowwise_adam};
	struct embeng_model *m = embeng_model_new();

	for (size_t i = 0; i < COUNT(makes); i++) {
		struct embeng_table_config t = table_config(NULL);

		t.dim = 70;
		t.optimizer = makes[i](0.5f);
		ck_assert_int_eq(embeng_model_add_table(m, &t), (int)i);
		ck_assert_int_eq(embeng_model_slot_width(m, (int)i, NULL), 70);
		ck_assert_int_eq(embeng_model_slot_width(m, (int)i, "parameters"), 70);
	}
	ck_assert_int_eq(embeng_model_slot_width(m, 0, "accumulators"), 70);
	ck_assert_int_eq(embeng_model_slot_width(m, 1, "accumulators"), 1);
	ck_assert_int_eq(embeng_model_slot_width(m, 2, "momenta"), 70);
	ck_assert_int_eq(embeng_model_slot_width(m, 2, "velocities"), 1);
	ck_assert_uint_eq(model_whole_row_bytes(&m->tables[0]), 2 * 280);
	ck_assert_uint_eq(model_whole_row_bytes(&m->tables[1]), 280 + 4);
	ck_assert_uint_eq(model_whole_row_bytes(&m->tables[2]), 2 * 280 + 4);
	ASSERT_REFUSED(embeng_model_slot_width(m, 1, "momenta"), ENOENT, "slot momenta");
	ASSERT_REFUSED(embeng_model_slot_width(m, 3, NULL), ENOENT, "table 3");
	ASSERT_REFUSED(embeng_model_slot_width(NULL, 0, NULL), EINVAL, "a model must be given");
	embeng_model_free(m);
}
END_TEST

static void expect_start(const struct embeng_model *m, size_t slot, int kind, float a, float b,
			 uint64_t seed)
{
	struct embeng_initializer i = slot_start(&m->tables[0], slot);

	ck_assert_int_eq(i.kind, kind);
	ck_assert(i.a == a && i.b == b);
	ck_assert_uint_eq(i.seed, seed);
}

START_TEST(test_starts_are_kept)
{
	char name[] = "momenta";
	struct embeng_slot_start starts[] = {
		{name, {EMBENG_INIT_UNIFORM, -1.0f, 2.0f, 77}},
		{"accumulators", CONSTANT(3.0f)},
	};
	struct embeng_table_config got = {.size = sizeof(got)};
	struct embeng_model *m = embeng_model_new(), *copy;

	ck_assert_int_eq(add_starts(m, starts, 2), 0);
	memset(starts, 0, sizeof(starts));
	memset(name, 'z', sizeof(name) - 1);
	expect_start(m, 0, EMBENG_INIT_CONSTANT, 3.0f, 0.0f, 0);
	expect_start(m, 1, EMBENG_INIT_UNIFORM, -1.0f, 2.0f, 77);
	copy = model_copy(m);
	ck_assert_uint_eq(embeng_model_hash(copy), embeng_model_hash(m));
	embeng_model_free(m);
	expect_start(copy, 0, EMBENG_INIT_CONSTANT, 3.0f, 0.0f, 0);
	expect_start(copy, 1, EMBENG_INIT_UNIFORM, -1.0f, 2.0f, 77);
	ck_assert_int_eq(embeng_model_get_table(copy, 0, &got), 0);
	ck_assert_uint_eq(got.slot_start_count, 2);
	ck_assert_str_eq(got.slot_starts[0].slot, "momenta");
	ck_assert_str_eq(got.slot_starts[1].slot, "accumulators");
	embeng_model_free(copy);
}
END_TEST

START_TEST(test_starts_by_default)
{
	const struct embeng_slot_start start = {"accumulators", {0}};
	struct embeng_model *m = embeng_model_new();
	struct embeng_table_config t = table_config("t");

	t.optimizer = embeng_ftrl(0.5f);
	t.optimizer.initial_accumulator_value = 4.0f;
	t.slot_starts = &start;
	t.slot_start_count = 1;
	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	expect_start(m, 0, EMBENG_INIT_CONSTANT, 4.0f, 0.0f, 0);
	expect_start(m, 1, EMBENG_INIT_CONSTANT, 0.0f, 0.0f, 0);
	embeng_model_free(m);
}
END_TEST

START_TEST(test_starts_refused)
{
	const struct embeng_slot_start of_none = {"accumulators", CONSTANT(1.0f)};
	struct embeng_model *m = embeng_model_new();

	ASSERT_TABLE_REFUSED(c.slot_start_count = 1, EINVAL, "users", "slot_start_count is 1",
			     "NULL");
	ASSERT_TABLE_REFUSED(
		(c.optimizer = embeng_sgd(0.5f), c.slot_starts = &of_none, c.slot_start_count = 1),
		ENOENT, "users", "slot accumulators", "no slots");
	ASSERT_STARTS_REFUSED(EINVAL, "slot start 1 names no slot", {"momenta", CONSTANT(1.0f)},
			      {NULL, CONSTANT(1.0f)});
	ASSERT_STARTS_REFUSED(ENOENT, "no slot linears to start; it has accumulators and momenta",
			      {"linears", CONSTANT(1.0f)});
	ASSERT_STARTS_REFUSED(ENOENT, "no slot parameters", {"parameters", CONSTANT(1.0f)});
	ASSERT_STARTS_REFUSED(EEXIST, "slot starts 0 and 2 are both of momenta",
			      {"momenta", CONSTANT(1.0f)}, {"accumulators", CONSTANT(1.0f)},
			      {"momenta", CONSTANT(2.0f)});
	ASSERT_STARTS_REFUSED(EINVAL, "slot momenta: initializer kind 9",
			      {"momenta", {9, 0.0f, 0.0f, 0}});
	ASSERT_STARTS_REFUSED(ERANGE, "slot accumulators: initializer a nan",
			      {"accumulators", CONSTANT(NAN)});
	ck_assert_int_eq(add_starts(m, NULL, 0), 0);
	embeng_model_free(m);
}
END_TEST

/* Rows as the engine has them once the model is open. */
static void expect_rows(struct embeng *e, int table, const char *slot, float low, float high)
{
	float rows[8 * 3];

	ck_assert_int_eq(embeng_rows_read(e, table, slot, NULL, 8, rows), 0);
	for (size_t i = 0; i < COUNT(rows); i++)
		ck_assert(rows[i] >= low && rows[i] <= high);
	if (low < high)
		ck_assert(rows[0] != rows[1] && rows[0] != rows[3]);
}

START_TEST(test_starts_reach_the_engine)
{
	const struct embeng_slot_start starts[] = {
		{"accumulators", {EMBENG_INIT_UNIFORM, 5.0f, 6.0f, 0}},
		{"accumulators", CONSTANT(3.0f)},
	};
	const struct embeng_initializer standard = {0};
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng_model *m = embeng_model_new();
	struct embeng_table_config t = table_config(NULL);
	struct embeng *e;

	t.optimizer = embeng_adagrad(0.5f);
	t.slot_start_count = 1;
	t.slot_starts = &starts[0];
	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	t.slot_starts = &starts[1];
	ck_assert_int_eq(embeng_model_add_table(m, &t), 1);
	ck_assert_msg(!embeng_open("soft:cores=2,memory=64M", m, &e, &error), "%s", error.text);
	embeng_model_free(m);
	expect_rows(e, 0, "accumulators", 5.0f, 6.0f);
	expect_rows(e, 1, "accumulators", 3.0f, 3.0f);
	expect_rows(e, 0, "parameters", -1.2f, 1.2f);
	ck_assert_int_eq(embeng_rows_fill(e, 0, "accumulators", 0, 8, &standard), 0);
	expect_rows(e, 0, "accumulators", 0.1f, 0.1f);
	ck_assert_int_eq(embeng_rows_fill(e, 0, NULL, 0, 8, &standard), 0);
	expect_rows(e, 0, "parameters", -1.2f, 1.2f);
	embeng_close(e);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_names,	      test_widths,
		test_starts_are_kept, test_starts_by_default,
		test_starts_refused,  test_starts_reach_the_engine,
	};

	return run_tests("model_slots", tests, COUNT(tests));
}
