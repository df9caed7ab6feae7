// SPDX-License-Identifier: MIT
/* Measurements of `embeng bench` on an engine, and the results that it reports. */
#include <stdlib.h>
#include <string.h>

#include "runtime/cli/bench/engine.h"
#include "runtime/cli/bench/measure.h"
#include "runtime/cli/bench/report.h"
#include "runtime/cli/frame/exit.h"
#include "cli_capture.h"
#include "scratch_help.h"
#include "suite.h"

enum { SAMPLES = 8, POOL = 3, IDS = SAMPLES * POOL, DIM = 4 };

static const struct bench_workload small = {"P",  2,	{100, 50},   DIM, SAMPLES,
					    POOL, true, LAW_UNIFORM, 0};
static const struct output text = {.verb = "bench"};
static struct bench_call call;
static struct bench_input input;

static void setup(void)
{
	const struct bench_source source = {
		.type = EMBENG_I64, .batches = 2, .weights = true, .seed = 3};

	call = (struct bench_call){
		.threads = 1, .cores = 1, .runs = RUNS_LEAST, .scale = 1, .seed = 7};
	call.cpu_count = machine_cpus(call.cpus);
	ck_assert_int_gt(call.cpu_count, 0);
	ck_assert_int_eq(bench_input_make(&input, &small, &source, &text), 0);
}

static void teardown(void)
{
	bench_input_free(&input);
}

START_TEST(what_does_not_fit_the_memory_is_refused_before_it_is_taken)
{
	struct bench_workload huge = small;
	struct bench_setup how = {.call = &call,
				  .workload = &huge,
				  .input = &input,
				  .optimizer = &bench_optimizers[1]};
	struct bench_engine b;
	struct capture c;
	int code;

	huge.rows[1] = 1000000000000;
	capture_start(&c);
	code = bench_engine_open(&b, &how, &text);
	capture_expect_in(&c, "", "P with adagrad needs 29.1 TiB of memory, ");
	ck_assert_int_eq(code, CLI_BUSY);
	ck_assert_ptr_null(b.e);
}
END_TEST

START_TEST(a_device_that_is_not_there)
{
	struct bench_setup how = {.call = &call, .workload = &small, .input = &input};
	struct bench_engine b;
	struct capture c;
	int code;

	call.device = "nowhere";
	capture_start(&c);
	code = bench_engine_open(&b, &how, &text);
	capture_expect_in(&c, "", "nowhere");
	ck_assert_int_eq(code, CLI_NO_DEVICE);
	ck_assert_ptr_null(b.e);
}
END_TEST

/* Steps share their splits and weights, so they are copied once. */
START_TEST(input_is_placed_where_the_engine_reaches_it)
{
	struct bench_setup how = {.call = &call,
				  .workload = &small,
				  .input = &input,
				  .optimizer = &bench_optimizers[2]};
	struct bench_engine b;

	ck_assert_int_eq(bench_engine_open(&b, &how, &text), 0);
	ck_assert_uint_eq(b.slots, 2);
	for (int k = 0; k < 4; k++) {
		const struct bench_column *from = &input.columns[k / 2][k % 2];
		const struct bench_column *c = &b.input.columns[k / 2][k % 2];

		ck_assert_ptr_ne(c->ids, from->ids);
		ck_assert_mem_eq(c->ids, from->ids, IDS * sizeof(int64_t));
		ck_assert_mem_eq(c->splits, from->splits, (SAMPLES + 1) * sizeof(int64_t));
		ck_assert_mem_eq(c->weights, from->weights, IDS * sizeof(float));
		ck_assert_ptr_eq(c->splits, b.input.columns[0][0].splits);
	}
	ck_assert_mem_eq(b.input.gradient, input.gradient, SAMPLES * DIM * sizeof(float));
	bench_engine_close(&b);
}
END_TEST

START_TEST(weights_can_be_left_out)
{
	struct bench_setup how = {
		.call = &call, .workload = &small, .input = &input, .unweighted = true};
	struct bench_engine b;

	ck_assert_int_eq(bench_engine_open(&b, &how, &text), 0);
	ck_assert_ptr_null(b.input.columns[1][1].weights);
	ck_assert_ptr_null(b.input.gradient);
	bench_engine_close(&b);
}
END_TEST

/*
 * The times of the stages and of the rest add up to the mean of the runs, unless clocks disagree.
 */
START_TEST(training_is_measured)
{
	struct bench_results results = {0};
	const struct bench_limits limits = {.row_bytes = DIM * 4,
					    .table_bytes = 1 << 20,
					    .threads = 1,
					    .gather_ahead = 8,
					    .rmw_ahead = 8,
					    .gather = {1, 1, 1},
					    .rmw = {1, 1, 1},
					    .stream = {7, 7, 7}};
	const struct bench_job job = {.call = &call,
				      .workload = &small,
				      .input = &input,
				      .limits = &limits,
				      .unique = 40,
				      .results = &results,
				      .out = &text};
	const struct bench_result *r;
	double mean = 0, stages = 0;

	ck_assert_int_eq(bench_training(&job, &bench_optimizers[1]), 0);
	ck_assert_uint_eq(results.count, 1);
	r = &results.items[0];
	for (int k = 0; k < r->runs; k++)
		mean += r->run_ms[k] / r->runs;
	for (int s = 0; s < BENCH_STAGES; s++)
		stages += r->stage_ms[s];
	ck_assert_double_ge(stages, mean * 0.999);
	ck_assert_double_gt(r->stage_ms[STAGE_UPDATE], 0);
	ck_assert_uint_eq(r->held.table_bytes, 2 * 150 * DIM * 4);
	ck_assert_uint_eq(r->ids_per_step, 2 * IDS);
	/* Those between the runs, and what is not taken there. */
	ck_assert_double_gt(r->limits.gather.min, 1);
	ck_assert_double_gt(r->limits.rmw.min, 1);
	ck_assert_double_eq(r->limits.stream.median, 7);
	/* 48 ids, 40 rows and their slots */
	ck_assert_double_eq_tol(r->limit_ms,
				48e3 / r->limits.gather.median + 80e3 / r->limits.rmw.median, 1e-9);
	free(results.items);
}
END_TEST

START_TEST(a_busy_machine_is_warned_of)
{
	char said[BENCH_WARNING];

	call.busy = 0.5;
	ck_assert_ptr_nonnull(strstr(bench_warning(&call, 0, said), "50 % busy"));
	call.busy = -1;
	ck_assert_ptr_nonnull(strstr(bench_warning(&call, 0, said), "nothing tells"));
	call.busy = 0.01;
	ck_assert_ptr_null(bench_warning(&call, 0, said));
}
END_TEST

START_TEST(threads_without_a_processor_are_warned_of)
{
	char said[BENCH_WARNING];

	call.threads = call.cpu_count;
	ck_assert_ptr_null(bench_warning(&call, 1, said));
	call.threads++;
	ck_assert_ptr_nonnull(strstr(bench_warning(&call, 1, said), "threads share "));
}
END_TEST

#define DRAWING 65536

static char *drawn(const struct bench_results *results)
{
	char *folder, *path, *svg = calloc(1, DRAWING);
	FILE *f;

	ck_assert_int_eq(scratch_make(&folder), 0);
	path = inside(folder, "x.svg");
	ck_assert_int_eq(bench_draw_svg(path, results), 0);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_gt(fread(svg, 1, DRAWING - 1, f), 0);
	fclose(f);
	free(path);
	scratch_remove(folder);
	return svg;
}

/* A step of 4 ms, a quarter of it lookup; the limit is half of it. */
START_TEST(a_drawing_has_stages_and_limit)
{
	struct bench_results results = {0};
	struct bench_result *r = bench_result_add(&results);
	char *svg;

	ck_assert_ptr_nonnull(r);
	r->workload = bench_workloads[0];
	r->op = BENCH_FWD;
	r->threads = 1;
	r->runs = 1;
	r->run_ms[0] = 4;
	bench_result_finish(r);
	r->stage_ms[STAGE_LOOKUP] = 1;
	r->stage_ms[STAGE_OTHER] = 3;
	r->limit_ms = 2;
	svg = drawn(&results);
	ck_assert_ptr_nonnull(strstr(svg, "x=\"360.00\" y=\"70\" width=\"140.00\""));
	ck_assert_ptr_nonnull(strstr(svg, "x=\"500.00\" y=\"70\" width=\"420.00\""));
	ck_assert_ptr_nonnull(strstr(svg, "<line x1=\"640.00\""));
	ck_assert_ptr_nonnull(strstr(svg, ">4 ms, 50 % of the limit<"));
	free(svg);
	free(results.items);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, what_does_not_fit_the_memory_is_refused_before_it_is_taken);
	tcase_add_test(tcase, a_device_that_is_not_there);
	tcase_add_test(tcase, input_is_placed_where_the_engine_reaches_it);
	tcase_add_test(tcase, weights_can_be_left_out);
	tcase_add_test(tcase, training_is_measured);
	tcase_add_test(tcase, a_busy_machine_is_warned_of);
	tcase_add_test(tcase, threads_without_a_processor_are_warned_of);
	tcase_add_test(tcase, a_drawing_has_stages_and_limit);
}

int main(void)
{
	return suite_main("bench_engine", add);
}
