/* SPDX-License-Identifier: MIT */
#include "direct_main.h"
#include "direct.h"

static u64 state;

static u64 draw(u64 below)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 16 ^ state << 40) % below;
}

/* Groups ascend, hold every occurrence once, in order, under its own row. */
static void check(const struct partition *p, const u64 *rows, u64 count)
{
	u64 seen = 0, kept = 0;

	for (u64 i = 0; i < count; i++)
		kept += rows[i] != KERNEL_ROW_ZERO;
	ck_assert_uint_eq(p->count, kept);
	for (u64 g = 0; g < p->group_count; g++) {
		const struct kernel_group *group = &p->groups[g];

		ck_assert(!g || group[-1].row < group->row);
		ck_assert_uint_eq(group->first, seen);
		ck_assert_uint_ge(group->count, 1);
		for (u64 k = 0; k < group->count; k++) {
			u32 occurrence = p->order[seen + k];

			ck_assert(!k || p->order[seen + k - 1] < occurrence);
			ck_assert_uint_eq(rows[occurrence], group->row);
		}
		seen += group->count;
	}
	ck_assert_uint_eq(seen, kept);
}

/* The same rows in 32 bits, where they have them. */
static u32 *narrow_of(const u64 *rows, u64 count, u64 limit, bool zeros)
{
	u32 *narrow = malloc((count + 1) * 4);

	for (u64 i = 0; i < count; i++)
		narrow[i] = (u32)rows[i];
	if (limit <= U32_MAX && !zeros && draw(2))
		return narrow;
	free(narrow);
	return NULL;
}

/* What a source calls its occurrences, from a base that lies as far below. */
#define FURTHER 5u

static u32 *numbers_of(u64 count)
{
	u32 *numbers = malloc((count + 1) * 4);

	for (u64 i = 0; i < count; i++)
		numbers[i] = (u32)i + FURTHER;
	return numbers;
}

static void partition_of(u64 limit, u64 count, bool zeros, u32 cores)
{
	struct partition_source sources[2];
	struct partition p = { .sources = sources };
	u64 *rows = malloc((count + 1) * 8), third = count / 3;
	u32 *narrow, *numbers;

	p.below = draw(4) ? count : 0;
	for (u64 i = 0; i < count; i++) {
		rows[i] = draw(3) ? draw(limit) : draw(limit < 9 ? limit : 9);
		if (zeros && !draw(5))
			rows[i] = KERNEL_ROW_ZERO;
	}
	if (count)
		rows[count / 2] = limit - 1;
	narrow = narrow_of(rows, count, limit, zeros);
	numbers = draw(2) ? numbers_of(count) : NULL;
	sources[0] = (struct partition_source){ rows, narrow, 0, third, 0, NULL };
	sources[1] = (struct partition_source){ rows + third, narrow ? narrow + third : NULL, third,
						count - third, numbers ? third - FURTHER : third,
						numbers };
	ck_assert_int_eq(partition_make(&p, 2, limit, zeros, NULL, cores), 0);
	check(&p, rows, count);
	partition_free(&p);
	free(numbers);
	free(narrow);
	free(rows);
}

START_TEST(test_sorts_for_any_size_and_core_count)
{
	static const u64 limits[] = { 1, 2, 2047, 2048, 1000000, 4097, 1ull << 24, U32_MAX,
				      1ull << 32, 1ull << 33, 1ull << 40, U64_MAX >> 1 };

	for (u64 i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		for (u32 cores = 1; cores <= 7; cores += 3) {
			partition_of(limits[i], 0, false, cores);
			partition_of(limits[i], 1, false, cores);
			partition_of(limits[i], 3000, true, cores);
			partition_of(limits[i], 150000, i % 2, cores);
		}
	}
}
END_TEST

/* Occurrence i has row @row_of(i) and the number @step * i: the same groups, whoever sorts them. */
static void sorted_alike(u64 limit, u64 count, u64 step, u64 below, u64 (*row_of)(u64 i))
{
	struct partition_source source;
	struct partition p = { .below = below, .sources = &source };
	u64 *rows = malloc(count * 8);
	u32 *numbers = malloc(count * 4);

	for (u64 i = 0; i < count; i++) {
		rows[i] = row_of(i);
		numbers[i] = (u32)(step * i);
	}
	source = (struct partition_source){ rows, NULL, 0, count, 0, numbers };
	for (u32 cores = 1; cores <= 4; cores += 3) {
		ck_assert_int_eq(partition_make(&p, 1, limit, false, NULL, cores), 0);
		ck_assert_uint_eq(p.count, count);
		for (u64 g = 0, seen = 0; g < p.group_count; seen += p.groups[g++].count) {
			ck_assert(!g || p.groups[g - 1].row < p.groups[g].row);
			ck_assert_uint_eq(p.groups[g].first, seen);
			for (u64 k = 0; k < p.groups[g].count; k++) {
				u64 number = p.order[seen + k];

				ck_assert(!k || p.order[seen + k - 1] < number);
				ck_assert_uint_eq(row_of(number / step), p.groups[g].row);
			}
			ck_assert(g + 1 < p.group_count || seen + p.groups[g].count == count);
		}
	}
	partition_free(&p);
	free(numbers);
	free(rows);
}

static u64 row_same(u64 i)
{
	(void)i;
	return 70001;
}

static u64 row_of_stretch(u64 i)
{
	return i / 30000 << 12;
}

static u64 row_scattered(u64 i)
{
	return i * 2654435761u % 1000000;
}

/* Numbers up to the last that stands beside a digit of 10 bits in 32, and one too large. */
START_TEST(test_numbers_beside_a_digit)
{
	static u64 (*const laws[])(u64) = { row_same, row_of_stretch, row_scattered };
	const u64 most = 1u << 22, count = most / 32 + 1;

	for (u64 i = 0; i < sizeof(laws) / sizeof(laws[0]); i++) {
		sorted_alike(1000000, count, 31, most, laws[i]);
		sorted_alike(1000000, count, 32, most + 1, laws[i]);
		sorted_alike(1000000, 32768, 128, 32767 * 128 + 1, laws[i]);
	}
}
END_TEST

START_TEST(test_core_of_a_row_beyond_32_bits)
{
	ck_assert_uint_eq(model_core(1ull << 40, 0, 7), 2);
	ck_assert_uint_eq(model_core((1ull << 40) + 5, 3, 7), 3);
	ck_assert_uint_eq(model_core((1ull << 63) - 1, 1, 4), 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { test_sorts_for_any_size_and_core_count,
				       test_numbers_beside_a_digit,
				       test_core_of_a_row_beyond_32_bits, NULL };

	return direct_main("partition", tests);
}
