// SPDX-License-Identifier: MIT
/* Ids, weights and gradients of a bench: drawn, or read as the peer writes them. */
#include <errno.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/cli/bench/input.h"
#include "runtime/cli/frame/exit.h"
#include "cli_capture.h"
#include "scratch_help.h"
#include "suite.h"

enum { ROWS = 100, SAMPLES = 8, POOL = 3, IDS = SAMPLES * POOL, DIM = 4 };

static const struct bench_workload pooled = {"P",  2,	 {ROWS, 50},  DIM, SAMPLES,
					     POOL, true, LAW_UNIFORM, 0};
static const struct bench_workload unpooled = {"U",  1,	    {ROWS},	 DIM, SAMPLES,
					       POOL, false, LAW_UNIFORM, 0};

static const struct output text = {.verb = "bench"};
static char *folder;
static struct bench_input input;

static void put(const char *name, const void *data, size_t bytes)
{
	char *path = inside(folder, name);
	FILE *f = fopen(path, "wb");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(data, 1, bytes, f), bytes);
	ck_assert_int_eq(fclose(f), 0);
	free(path);
}

/* Over what stands at @at of a file. */
static void poke(const char *name, size_t at, const void *data, size_t bytes)
{
	char *path = inside(folder, name);
	FILE *f = fopen(path, "r+b");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fseek(f, (long)at, SEEK_SET), 0);
	ck_assert_uint_eq(fwrite(data, 1, bytes, f), bytes);
	ck_assert_int_eq(fclose(f), 0);
	free(path);
}

static void cut(const char *name, size_t bytes)
{
	char *path = inside(folder, name);

	ck_assert_int_eq(truncate(path, (off_t)bytes), 0);
	free(path);
}

static void drop(const char *name)
{
	char *path = inside(folder, name);

	ck_assert_int_eq(unlink(path), 0);
	free(path);
}

static void put_column(int batch, int table, bool weights)
{
	int64_t ids[IDS], offsets[SAMPLES];
	float weight[IDS];
	char name[32];

	for (int k = 0; k < IDS; k++) {
		ids[k] = (batch * 7 + table * 3 + k) % 50;
		weight[k] = 0.5f + (float)k;
	}
	for (int s = 0; s < SAMPLES; s++)
		offsets[s] = s * POOL;
	snprintf(name, sizeof(name), "ids_%d_%d.bin", batch, table);
	put(name, ids, sizeof(ids));
	snprintf(name, sizeof(name), "offsets_%d_%d.bin", batch, table);
	put(name, offsets, sizeof(offsets));
	snprintf(name, sizeof(name), "weights_%d_%d.bin", batch, table);
	if (weights)
		put(name, weight, sizeof(weight));
}

static void put_all(bool weights)
{
	float gradient[SAMPLES * DIM];

	for (int k = 0; k < SAMPLES * DIM; k++)
		gradient[k] = (float)k;
	for (int k = 0; k < 4; k++)
		put_column(k / 2, k % 2, weights);
	put("grad.bin", gradient, sizeof(gradient));
}

static void setup(void)
{
	ck_assert_int_eq(scratch_make(&folder), 0);
	put_all(true);
}

static void teardown(void)
{
	scratch_remove(folder);
}

static int read_input(const struct bench_workload *w)
{
	const struct bench_source source = {.folder = folder, .batches = 4};

	return bench_input_make(&input, w, &source, &text);
}

/* Refused, in words that have this in them. */
static void expect_refused(const struct bench_workload *w, const char *said)
{
	struct capture c;
	int code;

	capture_start(&c);
	code = read_input(w);
	capture_expect_in(&c, "", said);
	ck_assert_int_eq(code, CLI_USAGE);
	ck_assert_uint_eq(input.block_count, 0);
}

START_TEST(reads_what_was_written)
{
	ck_assert_int_eq(read_input(&pooled), 0);
	ck_assert_int_eq(input.type, EMBENG_I64);
	ck_assert_int_eq(input.batches, 2);
	ck_assert_int_eq(bench_id(&input, &input.columns[1][1], 5), 7 + 3 + 5);
	ck_assert_int_eq(input.columns[1][1].splits[3], 9);
	ck_assert_int_eq(input.columns[1][1].splits[SAMPLES], IDS);
	ck_assert_float_eq(input.columns[0][1].weights[2], 2.5f);
	ck_assert_float_eq(input.gradient[7], 7);
	bench_input_free(&input);
}
END_TEST

START_TEST(reads_integers_of_32_bits)
{
	int32_t ids[IDS] = {99, 1, 2}, offsets[SAMPLES] = {0, 1, 3, 3, 3, 10, 20, IDS};

	drop("ids_1_0.bin");
	drop("weights_0_0.bin");
	put("ids_0_0.bin", ids, sizeof(ids));
	put("offsets_0_0.bin", offsets, sizeof(offsets));
	put("ids_0_1.bin", ids + 1, sizeof(ids) - sizeof(*ids));
	put("offsets_0_1.bin", offsets, sizeof(offsets));
	expect_refused(&pooled,
		       "ids_0_1.bin, offset 92: the file has 92 bytes, P wants 192 (int64) "
		       "or 96 (int32)");
	ids[0] = 49;
	put("ids_0_1.bin", ids, sizeof(ids));
	ck_assert_int_eq(read_input(&pooled), 0);
	ck_assert_int_eq(input.type, EMBENG_I32);
	ck_assert_int_eq(input.batches, 1);
	ck_assert_int_eq(bench_id(&input, &input.columns[0][1], 0), 49);
	ck_assert_int_eq(input.columns[0][0].splits[2], 3);
	ck_assert_int_eq(input.columns[0][0].splits[7], IDS);
	ck_assert_ptr_null(input.columns[0][0].weights);
	bench_input_free(&input);
}
END_TEST

START_TEST(what_is_not_pooled_has_no_offsets)
{
	float gradient[IDS * DIM] = {0};

	drop("offsets_0_0.bin");
	put("grad.bin", gradient, sizeof(gradient));
	ck_assert_int_eq(read_input(&unpooled), 0);
	ck_assert_int_eq(input.columns[0][0].splits[5], 5);
	ck_assert_int_eq(input.columns[0][0].splits[IDS], IDS);
	bench_input_free(&input);
}
END_TEST

START_TEST(at_most_the_batches_that_are_asked_for)
{
	const struct bench_source source = {.folder = folder, .batches = 1};

	ck_assert_int_eq(bench_input_make(&input, &pooled, &source, &text), 0);
	ck_assert_int_eq(input.batches, 1);
	bench_input_free(&input);
}
END_TEST

START_TEST(missing_files_are_named)
{
	static const char *const names[] = {"ids_0_0.bin", "ids_1_1.bin", "offsets_0_1.bin",
					    "weights_1_0.bin", "grad.bin"};

	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
		char said[64];

		put_all(true);
		drop(names[k]);
		snprintf(said, sizeof(said), "%s: No such file", names[k]);
		expect_refused(&pooled, said);
	}
}
END_TEST

START_TEST(short_files_are_refused)
{
	static const char *const names[] = {"ids_1_0.bin", "offsets_0_1.bin", "weights_1_0.bin",
					    "grad.bin"};

	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
		char said[64];

		put_all(true);
		cut(names[k], 17);
		snprintf(said, sizeof(said), "%s, offset 17: the file has 17 bytes", names[k]);
		expect_refused(&pooled, said);
	}
}
END_TEST

START_TEST(long_files_are_refused)
{
	cut("offsets_1_1.bin", SAMPLES * 8 + 1);
	expect_refused(&pooled, "offsets_1_1.bin, offset 65: the file has 65 bytes, P wants 64");
}
END_TEST

START_TEST(a_folder_is_no_file)
{
	char *path = inside(folder, "grad.bin");

	drop("grad.bin");
	ck_assert_int_eq(mkdir(path, 0755), 0);
	free(path);
	expect_refused(&pooled, "grad.bin: Is a directory");
}
END_TEST

START_TEST(types_must_agree)
{
	const int32_t offsets[SAMPLES] = {0};

	put("offsets_0_1.bin", offsets, sizeof(offsets));
	expect_refused(&pooled, "offsets_0_1.bin, offset 0: the integers have 4 bytes, those of "
				"earlier files have 8");
}
END_TEST

START_TEST(ids_outside_the_table_are_refused)
{
	const int64_t beyond = 50, below = -1;

	poke("ids_1_1.bin", 5 * 8, &beyond, 8);
	expect_refused(&pooled,
		       "ids_1_1.bin, offset 40: id 50 is outside the table, which has rows "
		       "0 to 49");
	poke("ids_0_0.bin", 16, &below, 8);
	expect_refused(&pooled,
		       "ids_0_0.bin, offset 16: id -1 is outside the table, which has rows "
		       "0 to 99");
}
END_TEST

START_TEST(offsets_must_rise_from_zero_to_the_end)
{
	const int64_t one = 1, falls = 2, beyond = IDS + 1;

	poke("offsets_0_0.bin", 0, &one, 8);
	expect_refused(&pooled, "offsets_0_0.bin, offset 0: the first bag begins at 1, not at 0");
	put_all(true);
	poke("offsets_0_0.bin", 16, &falls, 8);
	expect_refused(&pooled,
		       "offsets_0_0.bin, offset 16: bag 2 begins at 2; it must be 3 to 24");
	put_all(true);
	poke("offsets_1_0.bin", 56, &beyond, 8);
	expect_refused(&pooled,
		       "offsets_1_0.bin, offset 56: bag 7 begins at 25; it must be 18 to 24");
}
END_TEST

START_TEST(floats_must_be_finite)
{
	const float not_a_number = NAN, endless = INFINITY;

	poke("weights_1_1.bin", 12, &not_a_number, 4);
	expect_refused(&pooled, "weights_1_1.bin, offset 12: nan is not finite");
	put_all(true);
	poke("grad.bin", 0, &endless, 4);
	expect_refused(&pooled, "grad.bin, offset 0: inf is not finite");
}
END_TEST

static void draw_input(const struct bench_workload *w, enum embeng_id_type type, bool weights)
{
	const struct bench_source source = {
		.type = type, .batches = 3, .weights = weights, .seed = 5};

	ck_assert_int_eq(bench_input_make(&input, w, &source, &text), 0);
	ck_assert_int_eq(input.batches, 3);
	ck_assert_int_eq(input.type, type);
}

START_TEST(draws_the_same_ids_in_both_widths)
{
	int64_t ids[3][2][IDS];

	draw_input(&pooled, EMBENG_I64, false);
	for (int k = 0; k < 6; k++)
		memcpy(ids[k / 2][k % 2], input.columns[k / 2][k % 2].ids, sizeof(ids[0][0]));
	ck_assert_ptr_null(input.columns[0][0].weights);
	bench_input_free(&input);
	draw_input(&pooled, EMBENG_I32, false);
	for (int k = 0; k < 6 * IDS; k++)
		ck_assert_int_eq(
			bench_id(&input, &input.columns[k / IDS / 2][k / IDS % 2], k % IDS),
			ids[k / IDS / 2][k / IDS % 2][k % IDS]);
	bench_input_free(&input);
}
END_TEST

START_TEST(draws_weights_and_gradients_like_the_peer)
{
	draw_input(&unpooled, EMBENG_I64, true);
	for (int k = 0; k < IDS; k++) {
		ck_assert_float_ge(input.columns[2][0].weights[k], 0.5f);
		ck_assert_float_lt(input.columns[2][0].weights[k], 1.5f);
	}
	for (int k = 0; k < IDS * DIM; k++)
		ck_assert_float_le(fabsf(input.gradient[k]), 0.5e-2f);
	ck_assert_int_eq(input.columns[2][0].splits[IDS], IDS);
	bench_input_free(&input);
}
END_TEST

START_TEST(weights_are_drawn_where_a_folder_has_none)
{
	const struct bench_source source = {.folder = folder, .batches = 4, .weights = true};
	float read_one;

	ck_assert_int_eq(bench_input_make(&input, &pooled, &source, &text), 0);
	read_one = input.columns[0][0].weights[3];
	bench_input_free(&input);
	ck_assert_float_eq(read_one, 3.5f);
	drop("weights_0_0.bin");
	ck_assert_int_eq(bench_input_make(&input, &pooled, &source, &text), 0);
	ck_assert_float_lt(input.columns[1][1].weights[3], 1.5f);
	bench_input_free(&input);
}
END_TEST

START_TEST(unique_rows_are_counted)
{
	static const int64_t ids[IDS] = {0, 1, 64, 64, 99, 99};

	put("ids_0_0.bin", ids, sizeof(ids));
	ck_assert_int_eq(read_input(&pooled), 0);
	/* 5 - 1, the other columns 24 each, over two batches */
	ck_assert_double_eq(bench_unique(&input, &pooled), (4 + 3 * 24) / 2.);
	bench_input_free(&input);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, reads_what_was_written);
	tcase_add_test(tcase, reads_integers_of_32_bits);
	tcase_add_test(tcase, what_is_not_pooled_has_no_offsets);
	tcase_add_test(tcase, at_most_the_batches_that_are_asked_for);
	tcase_add_test(tcase, missing_files_are_named);
	tcase_add_test(tcase, short_files_are_refused);
	tcase_add_test(tcase, long_files_are_refused);
	tcase_add_test(tcase, a_folder_is_no_file);
	tcase_add_test(tcase, types_must_agree);
	tcase_add_test(tcase, ids_outside_the_table_are_refused);
	tcase_add_test(tcase, offsets_must_rise_from_zero_to_the_end);
	tcase_add_test(tcase, floats_must_be_finite);
	tcase_add_test(tcase, draws_the_same_ids_in_both_widths);
	tcase_add_test(tcase, draws_weights_and_gradients_like_the_peer);
	tcase_add_test(tcase, weights_are_drawn_where_a_folder_has_none);
	tcase_add_test(tcase, unique_rows_are_counted);
}

int main(void)
{
	return suite_main("bench_input", add);
}
