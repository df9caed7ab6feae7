// SPDX-License-Identifier: MIT
/* The loops that measure memory bandwidth really read and change all the memory that they count. */
#include <stdlib.h>
#include <string.h>

#include "runtime/cli/bench/limits.h"
#include "runtime/cli/bench/memory.h"
#include "runtime/cli/frame/machine.h"
#include "suite.h"

enum { ROWS = 37, BAGS = 3, COUNT = BAGS * MEMORY_POOL - 5, ROW_MOST = 1024 };

static _Alignas(64) float rows[ROWS * ROW_MOST / 4];
static _Alignas(64) float sums[BAGS * ROW_MOST / 4];
static uint32_t index_of[COUNT + MEMORY_BEYOND];

static void fill(void)
{
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
		rows[k] = (float)(k % 1021);
	for (size_t k = 0; k < COUNT + MEMORY_BEYOND; k++)
		index_of[k] = (uint32_t)(k * 29 % ROWS);
}

static void expect_sums(size_t row_bytes)
{
	size_t dim = row_bytes / 4;

	for (size_t bag = 0; bag < BAGS; bag++) {
		for (size_t d = 0; d < dim; d++) {
			float expected = 0;

			for (size_t k = bag * MEMORY_POOL; k < (bag + 1) * MEMORY_POOL && k < COUNT;
			     k++)
				expected += rows[index_of[k] * dim + d];
			ck_assert_float_eq(sums[bag * dim + d], expected);
		}
	}
}

START_TEST(a_gather_adds_rows_of_any_length_up)
{
	fill();
	for (size_t row_bytes = 64; row_bytes <= ROW_MOST; row_bytes += 64) {
		for (int fetch = 0; fetch < MEMORY_FETCHES; fetch++) {
			size_t ahead = fetch == MEMORY_SECOND ? 16 : MEMORY_AHEAD;

			memset(sums, 0, sizeof(sums));
			memory_loops()->gather[fetch]((char *)rows, row_bytes, index_of, COUNT,
						      ahead, (char *)sums);
			expect_sums(row_bytes);
		}
	}
}
END_TEST

START_TEST(a_change_changes_each_row_once_an_id)
{
	int times[ROWS] = {0};

	fill();
	for (size_t k = 0; k < COUNT; k++)
		times[index_of[k]]++;
	for (int fetch = 0; fetch < MEMORY_FETCHES; fetch++) {
		if (!memory_loops()->rmw[fetch])
			continue;
		memset(rows, 0, sizeof(rows));
		memory_loops()->rmw[fetch]((char *)rows, 192, index_of, COUNT,
					   fetch == MEMORY_SECOND ? 8 : MEMORY_AHEAD);
		for (size_t k = 0; k < ROWS * 48; k++)
			ck_assert_float_eq_tol(rows[k], (float)times[k / 48] * 1e-6f, 1e-9f);
	}
	ck_assert(memory_loops()->rmw[MEMORY_SECOND] && memory_loops()->rmw[MEMORY_BURSTS]);
}
END_TEST

START_TEST(a_stream_reads_all)
{
	double expected = 0;

	fill();
	for (size_t k = 0; k < 8 * 1024; k++)
		expected += (double)rows[k];
	ck_assert_double_eq((double)memory_loops()->stream((char *)rows, 8 * 4096), expected);
}
END_TEST

static void expect_rates(struct spread s)
{
	ck_assert_double_gt(s.min, 0);
	ck_assert_double_le(s.min, s.median);
	ck_assert_double_le(s.median, s.max);
}

START_TEST(limits_are_measured_with_any_number_of_threads)
{
	for (int threads = 1; threads <= 3; threads++) {
		struct bench_limits l = {
			.row_bytes = 100, .table_bytes = 1 << 20, .threads = threads};
		int cpus[MACHINE_CPUS], count = machine_cpus(cpus);

		ck_assert_int_gt(count, 0);
		ck_assert_int_eq(bench_limits_measure(&l, cpus, count, RUNS_LEAST, 1e-4), 0);
		ck_assert_uint_eq(l.row_bytes, 128);
		ck_assert_uint_ge(l.table_bytes, (1 << 20) - 128);
		expect_rates(l.gather);
		expect_rates(l.rmw);
		expect_rates(l.stream);
		ck_assert_int_eq(l.paired, count > 1);
		if (l.paired) {
			expect_rates(l.cache_line_us);
			expect_rates(l.futex_us);
		}
	}
}
END_TEST

START_TEST(limits_are_taken_between_the_runs_of_something_else)
{
	struct bench_limits known = {.row_bytes = 100,
				     .table_bytes = 1 << 20,
				     .threads = 2,
				     .gather_fetch = MEMORY_TOUCH,
				     .gather_ahead = 16,
				     .rmw_ahead = 8,
				     .gather = {1, 1, 1},
				     .stream = {5, 6, 7}},
			    out = known;
	int cpus[MACHINE_CPUS], count = machine_cpus(cpus);
	struct bench_beside *beside = bench_beside_open(&known, cpus, count, 1e-4);

	ck_assert_ptr_nonnull(beside);
	for (int k = 0; k < 3; k++)
		ck_assert_int_eq(bench_beside_run(beside), 0);
	bench_beside_close(beside, &out);
	expect_rates(out.gather);
	expect_rates(out.rmw);
	ck_assert_double_gt(out.gather.min, 1);
	ck_assert_double_eq(out.stream.max, 7);
	ck_assert_uint_eq(out.row_bytes, 128);
	ck_assert_uint_eq(out.gather_ahead, 16);
}
END_TEST

START_TEST(limits_of_no_run_are_those_known)
{
	const struct bench_limits known = {
		.row_bytes = 64, .table_bytes = 1 << 20, .threads = 1, .gather = {1, 2, 3}};
	struct bench_limits out = {0};
	int cpu = 0;

	bench_beside_close(NULL, &out);
	ck_assert_double_eq(out.gather.max, 0);
	bench_beside_close(bench_beside_open(&known, &cpu, 1, 1e-4), &out);
	ck_assert_double_eq(out.gather.max, 3);
}
END_TEST

START_TEST(runs_are_sorted)
{
	double values[] = {5, 1, 4, 2, 3};
	struct spread s = spread_of(values, 5);

	ck_assert_double_eq(s.min, 1);
	ck_assert_double_eq(s.median, 3);
	ck_assert_double_eq(s.max, 5);
}
END_TEST

START_TEST(the_machine_tells_of_itself)
{
	double busy = machine_busy(20);

	ck_assert(busy == -1 || (busy >= 0 && busy <= 1));
	ck_assert_uint_gt(machine_memory_available(), 0);
	ck_assert_uint_le(machine_memory_available(), machine_memory());
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, a_gather_adds_rows_of_any_length_up);
	tcase_add_test(tcase, a_change_changes_each_row_once_an_id);
	tcase_add_test(tcase, a_stream_reads_all);
	tcase_add_test(tcase, limits_are_measured_with_any_number_of_threads);
	tcase_add_test(tcase, limits_are_taken_between_the_runs_of_something_else);
	tcase_add_test(tcase, limits_of_no_run_are_those_known);
	tcase_add_test(tcase, runs_are_sorted);
	tcase_add_test(tcase, the_machine_tells_of_itself);
}

int main(void)
{
	return suite_main("bench_limits", add);
}
