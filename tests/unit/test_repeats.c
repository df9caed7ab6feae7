/* SPDX-License-Identifier: MIT */
/* Whether the rows of a feature repeat, by a sample of them. */
#include <math.h>
#include <stdlib.h>

#include "../../engine/batch.h"
#include "direct_main.h"

enum { MOST = 81920, ROWS = 1000000, LEAST = 4096 };

static u64 wide[MOST];
static u32 narrow[MOST];
static u64 state;

static double draw(void)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(state >> 11) * 0x1p-53;
}

/* The same of both widths; ranks of Zipf's law with exponent 1 lie anywhere in the table. */
static bool repeats(u64 count, bool zipf)
{
	struct batch_feature f = { .occurrences = count, .rows.data = wide };
	bool of_wide;

	for (u64 k = 0; k < count; k++) {
		u64 rank = zipf ? (u64)pow(ROWS, draw()) : (u64)(draw() * ROWS);

		narrow[k] = (u32)(wide[k] = rank * 7919 % ROWS);
	}
	of_wide = batch_repeats(&f);
	f.narrow = true;
	f.rows.data = narrow;
	ck_assert_int_eq(batch_repeats(&f), of_wide);
	return of_wide;
}

START_TEST(zipf_repeats_uniform_does_not)
{
	for (u64 seed = 0; seed < 200; seed++) {
		state = seed;
		ck_assert_msg(repeats(MOST, true), "seed %llu", seed);
		ck_assert_msg(!repeats(MOST, false), "seed %llu", seed);
		ck_assert_msg(repeats(LEAST, true), "seed %llu", seed);
		ck_assert_msg(!repeats(LEAST, false), "seed %llu", seed);
	}
}
END_TEST

START_TEST(a_few_occurrences_and_rows_of_zeros_do_not)
{
	struct batch_feature f = { .occurrences = LEAST - 1, .rows.data = wide };

	memset(wide, 0, sizeof(wide));
	ck_assert(!batch_repeats(&f));
	f.occurrences = LEAST;
	ck_assert(batch_repeats(&f));
	for (u64 k = 0; k < LEAST; k++)
		wide[k] = KERNEL_ROW_ZERO;
	ck_assert(!batch_repeats(&f));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { zipf_repeats_uniform_does_not,
				       a_few_occurrences_and_rows_of_zeros_do_not, NULL };

	return direct_main("repeats", tests);
}
