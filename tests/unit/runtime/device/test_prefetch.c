// SPDX-License-Identifier: MIT
/* What is measured, and chosen, where lookups take as long as they are told here. */
#include "engine/kernels/kernels.h"
#include "runtime/src/device/soft/prefetch.h"
#include "runtime/src/host/port.h"
#include "suite.h"

#define USUAL_NS 400000u
#define CACHED_FLOATS (PREFETCH_CACHED_BYTES / sizeof(float))

/* Of one way to fetch rows, how long a lookup takes instead of USUAL_NS; ended by rows of 0. */
struct told {
	struct prefetch way;
	u64 ns;
};

static const struct told *told;
static u64 lookups, last_row;

static u64 told_ns(const struct kernel_bag_work *w)
{
	for (const struct told *t = told; t->way.rows; t++)
		if (t->way.rows == w->prefetch && t->way.fetch == w->fetch)
			return t->ns;
	return USUAL_NS;
}

static void lookup(const struct kernel_bag_work *w, u64 first, u64 last)
{
	u64 until = port_now_ns() + told_ns(w);

	(void)first;
	(void)last;
	lookups++;
	for (u64 k = 0; k < w->rows_count; k++)
		last_row = w->narrow[k] > last_row ? w->narrow[k] : last_row;
	while (port_now_ns() < until)
		;
}

static const struct kernel_ops ops = {.lookup = lookup};

static void expect_of(u64 floats, bool steady, const struct told *times, u32 rows, u32 fetch)
{
	struct prefetch found;

	told = times;
	found = prefetch_measured(&ops, floats, steady);
	ck_assert_uint_eq(found.rows, rows);
	ck_assert_uint_eq(found.fetch, fetch);
}

static void expect(u64 floats, const struct told *times, u32 rows, u32 fetch)
{
	expect_of(floats, true, times, rows, fetch);
}

/* Tables that a third cache holds have one in their place, larger ones another. */
START_TEST(measures_out_of_a_table_of_the_kind)
{
	const struct told none[] = {{{0}, 0}};

	expect(CACHED_FLOATS - 1, none, PREFETCH_LOOKUP, KERNEL_FETCH_TOUCH);
	ck_assert_uint_gt(last_row, 90000);
	ck_assert_uint_lt(last_row, 3u << 15);
	last_row = 0;
	/* As long in bursts as otherwise: bursts. */
	expect(CACHED_FLOATS, none, PREFETCH_LOOKUP, KERNEL_FETCH_BURST);
	ck_assert_uint_gt(last_row, 1000000);
	ck_assert_uint_lt(last_row, 1u << 20);
}
END_TEST

START_TEST(measures_once_of_each_kind)
{
	const struct told first[] = {{{64, KERNEL_FETCH_FIRST}, USUAL_NS / 2}, {{0}, 0}};
	u64 near;

	expect(PREFETCH_WORTH_FLOATS, first, 64, KERNEL_FETCH_FIRST);
	near = lookups;
	ck_assert_uint_gt(near, 0);
	expect(CACHED_FLOATS - 1, NULL, 64, KERNEL_FETCH_FIRST);
	ck_assert_uint_eq(lookups, near);
	expect(UINT64_MAX, first, 64, KERNEL_FETCH_FIRST);
	ck_assert_uint_eq(lookups, 2 * near);
	expect(CACHED_FLOATS, NULL, 64, KERNEL_FETCH_FIRST);
	ck_assert_uint_eq(lookups, 2 * near);
}
END_TEST

/* Touches are taken where nothing else is faster by more than noise, near and far. */
START_TEST(touches_unless_another_way_is_faster)
{
	const struct told slower[] = {{{PREFETCH_LOOKUP, KERNEL_FETCH_TOUCH}, 2 * USUAL_NS},
				      {{PREFETCH_LOOKUP, KERNEL_FETCH_BURST}, 3 * USUAL_NS},
				      {{0}, 0}};
	const struct told burst[] = {{{PREFETCH_LOOKUP, KERNEL_FETCH_BURST}, 2 * USUAL_NS},
				     {{0}, 0}};

	expect(CACHED_FLOATS - 1, slower, PREFETCH_LOOKUP, KERNEL_FETCH_SECOND);
	expect(CACHED_FLOATS, burst, PREFETCH_LOOKUP, KERNEL_FETCH_TOUCH);
}
END_TEST

/* Out of a cache bursts have to be the fastest. */
START_TEST(bursts_out_of_a_cache_if_they_are_faster)
{
	const struct told burst[] = {{{PREFETCH_LOOKUP, KERNEL_FETCH_BURST}, USUAL_NS / 2},
				     {{0}, 0}};

	expect(CACHED_FLOATS - 1, burst, PREFETCH_LOOKUP, KERNEL_FETCH_BURST);
}
END_TEST

/* Where they are not known to be steady, they have to be the fastest beyond one, too. */
START_TEST(bursts_that_vary_have_to_be_faster)
{
	const struct told slower[] = {{{PREFETCH_LOOKUP, KERNEL_FETCH_BURST},
				       USUAL_NS + USUAL_NS / 10},
				      {{0}, 0}};

	expect_of(CACHED_FLOATS, false, slower, PREFETCH_LOOKUP, KERNEL_FETCH_TOUCH);
}
END_TEST

START_TEST(bursts_that_vary_are_taken_if_they_are_faster)
{
	const struct told burst[] = {{{PREFETCH_LOOKUP, KERNEL_FETCH_BURST}, USUAL_NS / 2},
				     {{0}, 0}};

	expect_of(CACHED_FLOATS, false, burst, PREFETCH_LOOKUP, KERNEL_FETCH_BURST);
}
END_TEST

START_TEST(steady_bursts_may_be_slower)
{
	const struct told slower[] = {{{PREFETCH_LOOKUP, KERNEL_FETCH_BURST},
				       USUAL_NS + USUAL_NS / 10},
				      {{0}, 0}};

	expect(CACHED_FLOATS, slower, PREFETCH_LOOKUP, KERNEL_FETCH_BURST);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, bursts_that_vary_have_to_be_faster);
	tcase_add_test(t, bursts_that_vary_are_taken_if_they_are_faster);
	tcase_add_test(t, steady_bursts_may_be_slower);
	tcase_add_test(t, measures_out_of_a_table_of_the_kind);
	tcase_add_test(t, measures_once_of_each_kind);
	tcase_add_test(t, touches_unless_another_way_is_faster);
	tcase_add_test(t, bursts_out_of_a_cache_if_they_are_faster);
}

int main(void)
{
	return suite_main("prefetch", add);
}
