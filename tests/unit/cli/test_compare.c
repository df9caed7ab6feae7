// SPDX-License-Identifier: MIT
/* "embeng checkpoint compare" finds equal checkpoints equal, and says where others differ. */
#include "checkpoint_help.h"

#include "runtime/cli/checkpoint/compare_lookups.h"

#define ROWS 7

/* "bag" of mean, "walk" a sequence, "grid" of a shape, its first length open. */
static void save(const char *folder, int64_t second)
{
	struct embeng_table_config t = {.size = sizeof(t),
					.name = "t",
					.vocabulary_size = ROWS,
					.dim = 3,
					.optimizer = embeng_adagrad(0.5f)};
	struct embeng_feature_config bag = {.size = sizeof(bag), .name = "bag"}, walk = bag,
				     grid = bag;
	struct embeng_model *m = embeng_model_new();
	struct embeng *e = NULL;

	walk.name = "walk";
	walk.max_sequence_length = 3;
	grid.name = "grid";
	grid.output_rank = 2;
	grid.output_shape[1] = second;
	help_expect_ok(embeng_model_add_table(m, &t));
	ck_assert_int_eq(embeng_model_add_feature(m, &bag), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, &walk), 1);
	ck_assert_int_eq(embeng_model_add_feature(m, &grid), 2);
	help_expect_ok(embeng_open(SMALL, m, &e, NULL));
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, NULL));
	embeng_close(e);
	embeng_model_free(m);
}

static struct comparison start(void)
{
	return (struct comparison){.samples = 5, .random = random_seeded(3, RANDOM_SAMPLES)};
}

START_TEST(both_give_the_same_bits)
{
	struct comparison c = start();
	char folder[HELP_PATH];

	folder_new(folder);
	save(folder, 2);
	help_expect_ok(comparison_open(&c, folder, SMALL));
	for (int i = 0; i < 20; i++)
		help_expect_ok(comparison_batch(&c));
	ck_assert_uint_eq(c.batches, 20);
	ck_assert_uint_eq(c.features[0].floats, 20 * 5 * 3);
	ck_assert_uint_eq(c.features[1].floats, 20 * 5 * 3 * 3);
	ck_assert_uint_eq(c.features[2].floats, 20 * 5 * 2 * 3);
	for (int f = 0; f < 3; f++)
		ck_assert_uint_eq(c.features[f].differing, 0);
	comparison_close(&c);
	folder_remove(folder);
}
END_TEST

/* A row of the engine is another: what reads it differs, and the first is told. */
START_TEST(what_differs_is_told)
{
	const int64_t row = ROWS - 1;
	struct comparison c = start();
	float other[3] = {0};
	char folder[HELP_PATH];

	folder_new(folder);
	save(folder, 2);
	help_expect_ok(comparison_open(&c, folder, SMALL));
	help_expect_ok(embeng_rows_write(c.e, 0, NULL, &row, 1, other));
	for (int i = 0; i < 20; i++)
		help_expect_ok(comparison_batch(&c));
	for (int f = 0; f < 3; f++) {
		const struct difference *d = &c.features[f];

		ck_assert_uint_gt(d->differing, 0);
		ck_assert_uint_lt(d->differing, d->floats);
		ck_assert_double_gt(d->largest, 0);
		ck_assert(d->engine != d->serving);
		ck_assert_uint_lt(d->batch, 20);
		ck_assert_uint_lt(d->at, d->floats / 20);
	}
	/* A sequence has the row itself. */
	ck_assert(c.features[1].engine == 0);
	comparison_close(&c);
	folder_remove(folder);
}
END_TEST

START_TEST(another_seed_draws_others)
{
	struct embeng_feature_config f = {.size = sizeof(f), .name = "f"};
	struct random one = random_seeded(1, RANDOM_SAMPLES), two = one;
	struct compare_input a = {0}, b = {0}, other = {0};
	struct random three = random_seeded(2, RANDOM_SAMPLES);

	ck_assert_int_eq(compare_input_make(&a, &f, ROWS, 100, &one), 0);
	ck_assert_int_eq(compare_input_make(&b, &f, ROWS, 100, &two), 0);
	ck_assert_int_eq(compare_input_make(&other, &f, ROWS, 100, &three), 0);
	ck_assert_uint_eq(a.count, b.count);
	ck_assert_mem_eq(a.ids, b.ids, a.count * sizeof(*a.ids));
	ck_assert(a.count != other.count ||
		  memcmp(a.ids, other.ids, a.count * sizeof(*a.ids)) != 0);
	ck_assert_uint_eq(a.rank, 2);
	ck_assert(a.shape[0] == 100 && a.shape[1] == 8);
	for (size_t k = 0; k < a.count; k++)
		ck_assert(a.ids[k] >= 0 && a.ids[k] < ROWS && a.weights[k] > 0);
	compare_input_free(&a);
	compare_input_free(&b);
	compare_input_free(&other);
}
END_TEST

START_TEST(too_many_samples)
{
	struct comparison c = start();
	char folder[HELP_PATH];

	folder_new(folder);
	save(folder, 1 << 21);
	help_expect_ok(comparison_open(&c, folder, SMALL));
	ck_assert_int_eq(comparison_batch(&c), -EFBIG);
	ck_assert_uint_eq(c.batches, 0);
	comparison_close(&c);
	folder_remove(folder);
}
END_TEST

RUN_SUITE("compare", both_give_the_same_bits, what_differs_is_told, another_seed_draws_others,
	  too_many_samples)
