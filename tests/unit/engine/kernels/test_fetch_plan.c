// SPDX-License-Identifier: MIT
/*
 * The plan that a processor gets, the way in which rows of a dim are fetched by it, and the way that
 * an engine takes for a table.
 */
#include "direct_model.h"
#include "suite.h"

#define KIB 1024ull
#define MIB (1024 * KIB)

static const struct fetch_machine zen4 = {FETCH_VENDOR_AMD, 32 * KIB, 1 * MIB, 32 * MIB};
static const struct fetch_machine zen5 = {FETCH_VENDOR_AMD, 48 * KIB, 1 * MIB, 32 * MIB};
static const struct fetch_machine xeon = {FETCH_VENDOR_INTEL, 48 * KIB, 2 * MIB, 260 * MIB};
static const struct fetch_machine unknown = {FETCH_VENDOR_OTHER, 0, 0, 0};

static void expect_ways(const struct fetch_ways *ways, u32 lookup, u32 update)
{
	ck_assert_uint_eq(ways->lookup.rows, FETCH_ROWS_LOOKUP);
	ck_assert_uint_eq(ways->lookup.form, lookup);
	ck_assert_uint_eq(ways->update.rows, FETCH_ROWS_UPDATE);
	ck_assert_uint_eq(ways->update.form, update);
}

static struct fetch_plan plan_of(const struct fetch_machine *machine)
{
	struct fetch_plan plan;

	fetch_plan_fill(&plan, machine);
	return plan;
}

START_TEST(test_forms_by_processor)
{
	struct fetch_plan plan = plan_of(&zen4);

	expect_ways(&plan.near, KERNEL_FETCH_TOUCH, KERNEL_FETCH_SECOND);
	expect_ways(&plan.far, KERNEL_FETCH_BURST, KERNEL_FETCH_AGAIN);
	plan = plan_of(&zen5);
	expect_ways(&plan.near, KERNEL_FETCH_FIRST, KERNEL_FETCH_SECOND);
	expect_ways(&plan.far, KERNEL_FETCH_FIRST, KERNEL_FETCH_AGAIN);
	plan = plan_of(&xeon);
	expect_ways(&plan.near, KERNEL_FETCH_TOUCH, KERNEL_FETCH_SECOND);
	expect_ways(&plan.far, KERNEL_FETCH_TOUCH, KERNEL_FETCH_SECOND);
	plan = plan_of(&unknown);
	expect_ways(&plan.near, KERNEL_FETCH_SECOND, KERNEL_FETCH_SECOND);
	expect_ways(&plan.far, KERNEL_FETCH_SECOND, KERNEL_FETCH_SECOND);
}
END_TEST

/* A first cache of one byte less than Zen 5 has is not large. */
START_TEST(test_large_first_cache)
{
	struct fetch_machine machine = zen5;
	struct fetch_plan plan;

	machine.first_bytes--;
	plan = plan_of(&machine);
	ck_assert_uint_eq(plan.far.lookup.form, KERNEL_FETCH_BURST);
	machine.first_bytes = 0;
	plan = plan_of(&machine);
	ck_assert_uint_eq(plan.far.lookup.form, KERNEL_FETCH_BURST);
}
END_TEST

START_TEST(test_limits_by_caches)
{
	static const struct {
		u64 second, third, least, gradient, cached;
	} cases[] = {
		{0, 0, 256 * KIB, 512 * KIB, 32 * MIB},
		{1 * MIB, 32 * MIB, 256 * KIB, 512 * KIB, 32 * MIB},
		{512 * KIB, 16 * MIB, 128 * KIB, 256 * KIB, 16 * MIB},
		{2 * MIB, 260 * MIB, 512 * KIB, 1 * MIB, 64 * MIB},
		{64 * MIB, 64 * MIB, 512 * KIB, 1 * MIB, 64 * MIB},
		{4, 4, 64 * KIB, 128 * KIB, 8 * MIB},
		{~0ull, ~0ull, 512 * KIB, 1 * MIB, 64 * MIB},
	};

	for (u32 i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct fetch_machine machine = {FETCH_VENDOR_OTHER, 0, cases[i].second,
						      cases[i].third};
		struct fetch_plan plan = plan_of(&machine);

		ck_assert_msg(plan.least_bytes == cases[i].least, "case %u: %llu", i,
			      plan.least_bytes);
		ck_assert_msg(plan.gradient_bytes == cases[i].gradient, "case %u: %llu", i,
			      plan.gradient_bytes);
		ck_assert_msg(plan.cached_bytes == cases[i].cached, "case %u: %llu", i,
			      plan.cached_bytes);
	}
}
END_TEST

static struct fetch_way way_of(u32 rows, u32 form)
{
	return (struct fetch_way){rows, form};
}

START_TEST(test_rows_of_lookups)
{
	static const struct {
		u32 rows, form, dim, want;
	} cases[] = {
		{48, KERNEL_FETCH_SECOND, 17, 48},  {48, KERNEL_FETCH_SECOND, 16, 96},
		{48, KERNEL_FETCH_SECOND, 1, 96},   {24, KERNEL_FETCH_SECOND, 8, 48},
		{24, KERNEL_FETCH_SECOND, 256, 24}, {24, KERNEL_FETCH_SECOND, 512, 13},
		{48, KERNEL_FETCH_FIRST, 16, 96},   {48, KERNEL_FETCH_FIRST, 64, 48},
		{48, KERNEL_FETCH_FIRST, 65, 48},   {48, KERNEL_FETCH_FIRST, 128, 25},
		{48, KERNEL_FETCH_FIRST, 512, 7},   {1, KERNEL_FETCH_FIRST, 4096, 1},
		{0, KERNEL_FETCH_FIRST, 4096, 0},   {0, KERNEL_FETCH_SECOND, 8, 0},
		{48, KERNEL_FETCH_TOUCH, 16, 96},   {256, KERNEL_FETCH_BURST, 8, 512},
	};

	for (u32 i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		u32 rows = fetch_lookup(way_of(cases[i].rows, cases[i].form), cases[i].dim).rows;

		ck_assert_msg(rows == cases[i].want, "case %u: %u", i, rows);
	}
}
END_TEST

START_TEST(test_forms_of_lookups)
{
	static const struct {
		u32 wanted, dim, form;
	} cases[] = {
		{KERNEL_FETCH_TOUCH, 16, KERNEL_FETCH_SECOND},
		{KERNEL_FETCH_TOUCH, 17, KERNEL_FETCH_TOUCH},
		{KERNEL_FETCH_TOUCH, 4096, KERNEL_FETCH_TOUCH},
		{KERNEL_FETCH_FIRST, 8, KERNEL_FETCH_FIRST},
		{KERNEL_FETCH_SECOND, 64, KERNEL_FETCH_SECOND},
		{KERNEL_FETCH_BURST, 1, KERNEL_FETCH_BURST},
		{KERNEL_FETCH_BURST, 128, KERNEL_FETCH_BURST},
		{KERNEL_FETCH_BURST, 129, KERNEL_FETCH_SECOND},
	};

	for (u32 i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		u32 form = fetch_lookup(way_of(48, cases[i].wanted), cases[i].dim).form;

		ck_assert_msg(form == cases[i].form, "case %u: %u", i, form);
	}
}
END_TEST

START_TEST(test_rows_that_updates_fetch_again)
{
	static const struct {
		u32 dim, slots;
		bool again;
	} cases[] = {
		{128, 3, true}, {129, 0, false}, {64, 0, true}, {63, 0, false}, {42, 2, false},
		{43, 2, true},	{128, 0, true},	 {64, 1, true}, {63, 1, false}, {64, 4, false},
	};

	for (u32 i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fetch_way way = fetch_update(way_of(32, KERNEL_FETCH_AGAIN), cases[i].dim,
						    cases[i].slots);

		ck_assert_msg(way.form ==
				      (cases[i].again ? KERNEL_FETCH_AGAIN : KERNEL_FETCH_SECOND),
			      "case %u", i);
		ck_assert_uint_eq(way.rows, 32);
	}
	ck_assert_uint_eq(fetch_update(way_of(32, KERNEL_FETCH_SECOND), 64, 1).form,
			  KERNEL_FETCH_SECOND);
	ck_assert_uint_eq(fetch_update(way_of(32, KERNEL_FETCH_BURST), 64, 1).form,
			  KERNEL_FETCH_SECOND);
	ck_assert_uint_eq(fetch_update(way_of(32, KERNEL_FETCH_SECOND), 512, 1).rows, 17);
	ck_assert_uint_eq(update_times(127, 0), 3);
	ck_assert_uint_eq(update_times(128, 0), 2);
	ck_assert_uint_eq(update_times(63, 2), 3);
	ck_assert_uint_eq(update_times(64, 2), 2);
}
END_TEST

/* The way for lookups of a lone table of so many rows of one float. */
static struct fetch_way way_of_table(const struct fetch_plan *plan, u64 rows)
{
	struct small_model m = small_model(rows, 1);
	struct direct *d = direct_new(1, NULL);
	struct direct_blob *b = calloc(1, sizeof(*b));
	struct fetch_way way;

	d->engine.fetch = *plan;
	small_blob(&m, b);
	ck_assert_uint_eq(direct_load(d, b), 0);
	way = d->context.model->tables[0].lookup;
	ck_assert_uint_eq(way.rows ? d->context.model->tables[0].update.rows : 32, 32);
	free(b);
	direct_free(d);
	return way;
}

START_TEST(test_way_by_the_size_of_a_table)
{
	struct fetch_plan plan = plan_of(&zen4);

	plan.least_bytes = 400;
	plan.cached_bytes = 4000;
	ck_assert_uint_eq(way_of_table(&plan, 100).rows, 0);
	ck_assert_uint_eq(way_of_table(&plan, 101).rows, 2 * FETCH_ROWS_LOOKUP);
	plan.near.lookup.form = KERNEL_FETCH_FIRST;
	ck_assert_uint_eq(way_of_table(&plan, 1000).form, KERNEL_FETCH_FIRST);
	ck_assert_uint_eq(way_of_table(&plan, 1001).form, KERNEL_FETCH_BURST);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, test_way_by_the_size_of_a_table);
	tcase_add_test(tcase, test_forms_by_processor);
	tcase_add_test(tcase, test_large_first_cache);
	tcase_add_test(tcase, test_limits_by_caches);
	tcase_add_test(tcase, test_rows_of_lookups);
	tcase_add_test(tcase, test_forms_of_lookups);
	tcase_add_test(tcase, test_rows_that_updates_fetch_again);
}

int main(void)
{
	return suite_main("fetch_plan", add);
}
