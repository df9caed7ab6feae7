// SPDX-License-Identifier: MIT
/*
 * `embeng tune` measures kernels and chooses among plans. Here the clock is the test's own, and
 * says how long each kernel takes, so that nothing depends on the machine.
 */
#include "engine/kernels/kernels.h"
#include "runtime/cli/tune/measure.h"
#include "suite.h"

#define USUAL_NS 100000u

/* One way to fetch rows takes so long in place of USUAL_NS; a list ends with rows of 0. */
struct said {
	struct fetch_way way;
	u64 ns;
};

static const struct said *said;
static u64 lookups, updates, last_row, passes, clock_ns;

/* Stands in for port_now_ns(): the linker sends the calls of tune_measure() here. */
u64 __wrap_port_now_ns(void);
u64 __wrap_port_now_ns(void)
{
	return clock_ns;
}

static void take_time(u32 rows, u32 form)
{
	u64 ns = USUAL_NS;

	for (const struct said *s = said; s && s->way.rows; s++)
		if (s->way.rows == rows && s->way.form == form)
			ns = s->ns;
	clock_ns += ns;
}

static bool fake_lookup(const struct kernel_bag_work *w, u64 first, u64 last)
{
	(void)first;
	(void)last;
	lookups++;
	for (u64 k = 0; k < w->rows_count; k++)
		last_row = w->narrow[k] > last_row ? w->narrow[k] : last_row;
	take_time(w->prefetch, w->fetch);
	return false;
}

static bool fake_update(const struct kernel_update *u, const struct kernel_group *groups, u64 n,
			u64 ahead, const u32 *occ, void *scratch)
{
	(void)occ;
	(void)scratch;
	ck_assert_uint_eq(ahead, 0);
	updates++;
	for (u64 k = 1; k < n; k++)
		ck_assert_uint_gt(groups[k].row, groups[k - 1].row);
	last_row = groups[n - 1].row > last_row ? groups[n - 1].row : last_row;
	take_time(u->prefetch, u->fetch);
	return false;
}

static const struct kernel_ops ops = {
	.name = "fake", .lookup = fake_lookup, .update_rows = fake_update};
static const struct fetch_plan plan = {
	.near = {{48, KERNEL_FETCH_TOUCH}, {32, KERNEL_FETCH_SECOND}},
	.far = {{48, KERNEL_FETCH_BURST}, {32, KERNEL_FETCH_AGAIN}}};

static void count_pass(void *arg, enum tune_kind kind, int done, int all)
{
	ck_assert_ptr_eq(arg, &passes);
	ck_assert_int_lt(kind, TUNE_KINDS);
	ck_assert_int_lt(done, all);
	ck_assert_uint_eq((u64)done, passes);
	passes++;
}

static void measure_all(const struct said *times, struct tune_found *found)
{
	said = times;
	lookups = updates = last_row = passes = 0;
	ck_assert_int_eq(tune_measure(&ops, &plan, found, count_pass, &passes), 0);
}

static void expect_best(const struct tune_found *found, u32 rows, u32 form)
{
	ck_assert_uint_eq(found->trials[found->best].way.rows, rows);
	ck_assert_uint_eq(found->trials[found->best].way.form, form);
}

/* Rows of all of a large table are read, and each way is tried as often as the others. */
START_TEST(test_default_stays_where_all_are_alike)
{
	struct tune_found found[TUNE_KINDS];

	measure_all(NULL, found);
	expect_best(&found[TUNE_NEAR_LOOKUP], 48, KERNEL_FETCH_TOUCH);
	expect_best(&found[TUNE_NEAR_UPDATE], 32, KERNEL_FETCH_SECOND);
	expect_best(&found[TUNE_FAR_LOOKUP], 48, KERNEL_FETCH_BURST);
	expect_best(&found[TUNE_FAR_UPDATE], 32, KERNEL_FETCH_AGAIN);
	for (int kind = 0; kind < TUNE_KINDS; kind++)
		ck_assert_int_eq(found[kind].best, 0);
	ck_assert_int_eq(found[TUNE_NEAR_LOOKUP].count, 7);
	ck_assert_int_eq(found[TUNE_NEAR_UPDATE].count, 4);
	ck_assert_uint_eq(lookups * 4, updates * 7);
	ck_assert_uint_eq(passes * 7, lookups * 2);
	ck_assert_uint_gt(last_row, 1000000);
	ck_assert_uint_lt(last_row, 1u << 20);
	ck_assert_double_ge(found[TUNE_FAR_LOOKUP].trials[0].ns, USUAL_NS / 32768.0);
}
END_TEST

START_TEST(test_faster_ways_are_taken)
{
	const struct said faster[] = {{{96, KERNEL_FETCH_SECOND}, USUAL_NS / 2},
				      {{24, KERNEL_FETCH_FIRST}, USUAL_NS / 4},
				      {{64, KERNEL_FETCH_SECOND}, USUAL_NS / 2},
				      {{0}, 0}};
	struct tune_found found[TUNE_KINDS];

	measure_all(faster, found);
	expect_best(&found[TUNE_NEAR_LOOKUP], 24, KERNEL_FETCH_FIRST);
	expect_best(&found[TUNE_FAR_LOOKUP], 24, KERNEL_FETCH_FIRST);
	expect_best(&found[TUNE_NEAR_UPDATE], 64, KERNEL_FETCH_SECOND);
	expect_best(&found[TUNE_FAR_UPDATE], 64, KERNEL_FETCH_SECOND);
}
END_TEST

/* A fiftieth is noise, a tenth is not. */
START_TEST(test_noise_is_not_worth_it)
{
	const struct said little[] = {{{48, KERNEL_FETCH_SECOND}, USUAL_NS - USUAL_NS / 50},
				      {{16, KERNEL_FETCH_SECOND}, USUAL_NS - USUAL_NS / 10},
				      {{0}, 0}};
	struct tune_found found[TUNE_KINDS];

	measure_all(little, found);
	ck_assert_int_eq(found[TUNE_NEAR_LOOKUP].best, 0);
	ck_assert_int_eq(found[TUNE_FAR_LOOKUP].best, 0);
	expect_best(&found[TUNE_NEAR_UPDATE], 16, KERNEL_FETCH_SECOND);
	expect_best(&found[TUNE_FAR_UPDATE], 16, KERNEL_FETCH_SECOND);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, test_default_stays_where_all_are_alike);
	tcase_add_test(tcase, test_faster_ways_are_taken);
	tcase_add_test(tcase, test_noise_is_not_worth_it);
}

int main(void)
{
	return suite_main("tune_measure", add);
}
