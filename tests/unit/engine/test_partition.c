/* SPDX-License-Identifier: MIT */
/*
 * The stable radix sort of a table's occurrences by row, for any size, any core count and row
 * numbers beyond 32 bits.
 */
#include "direct_main.h"
#include "direct.h"

static u64 state;

static u64 draw(u64 below)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 16 ^ state << 40) % below;
}

static const u64 *sorted_rows;

static int by_row(const void *a, const void *b)
{
	u64 i = *(const u64 *)a, k = *(const u64 *)b;

	if (sorted_rows[i] != sorted_rows[k])
		return sorted_rows[i] < sorted_rows[k] ? -1 : 1;
	return i < k ? -1 : i > k;
}

/* Groups ascend, and have every occurrence's number under its row, as a plain sort orders them. */
static void check(const struct partition *p, const u64 *rows, const u32 *numbers, u64 count)
{
	u64 *plain = malloc((count + 1) * 8), seen = 0, kept = 0;

	for (u64 i = 0; i < count; i++) {
		if (rows[i] != KERNEL_ROW_ZERO)
			plain[kept++] = i;
	}
	sorted_rows = rows;
	qsort(plain, kept, 8, by_row);
	ck_assert_uint_eq(p->count, kept);
	for (u64 g = 0; g < p->group_count; g++) {
		const struct kernel_group *group = &p->groups[g];

		ck_assert(!g || group[-1].row < group->row);
		ck_assert_uint_eq(group->first, seen);
		ck_assert_uint_ge(group->count, 1);
		for (u64 k = 0; k < group->count; k++, seen++) {
			ck_assert_uint_eq(rows[plain[seen]], group->row);
			ck_assert_uint_eq(p->order[seen], numbers[plain[seen]]);
		}
	}
	ck_assert_uint_eq(seen, kept);
	free(plain);
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

/* Bags of @count occurrences, up to five in most of them, numbered from @base. Return: how many. */
static u64 draw_bags(u64 *bag, u64 count, u64 base, u32 *numbers)
{
	u64 bags = 0, i = 0;

	for (bag[0] = 0; i < count || !bags; bag[++bags] = i) {
		u64 most = draw(6) + (draw(200) ? 0 : count / 7), end = i + most;

		for (; i < count && i < end; i++)
			numbers[i] = (u32)(base + bags);
	}
	return bags;
}

/* Some have bags that follow those of others, some a number for each occurrence. */
static struct partition_source draw_source(const u64 *rows, const u32 *narrow, u64 first, u64 end,
					   u64 *base, u64 *bag, u32 *numbers)
{
	struct partition_source source = {.rows = rows + first,
					  .narrow = narrow ? narrow + first : NULL,
					  .first = first,
					  .count = end - first,
					  .base = *base};

	if (draw(2)) {
		source.bag = bag;
		source.bags = draw_bags(bag, source.count, *base, numbers + first);
		*base += source.bags;
		return source;
	}
	for (u64 i = first; i < end; i++)
		numbers[i] = (u32)(*base + i - first);
	*base += source.count;
	return source;
}

static void draw_rows(u64 *rows, u64 count, u64 limit, bool zeros)
{
	for (u64 i = 0; i < count; i++) {
		rows[i] = draw(3) ? draw(limit) : draw(limit < 9 ? limit : 9);
		if (zeros && !draw(5))
			rows[i] = KERNEL_ROW_ZERO;
	}
	if (count)
		rows[count / 2] = limit - 1;
}

static void partition_of(u64 limit, u64 count, bool zeros, u32 cores)
{
	struct partition_source sources[2];
	struct partition p = {.sources = sources};
	u64 *rows = malloc((count + 1) * 8), *bag = malloc((2 * count + 99) * 2 * 8), base = 0;
	u32 *narrow, *numbers = malloc((count + 1) * 4);
	/* The second source is the longer one, or has fewer items than are looked ahead. */
	u64 cut = draw(2) ? count / 3 : count - draw(count < 40 ? count + 1 : 40);

	draw_rows(rows, count, limit, zeros);
	narrow = narrow_of(rows, count, limit, zeros);
	sources[0] = draw_source(rows, narrow, 0, cut, &base, bag, numbers);
	sources[1] = draw_source(rows, narrow, cut, count, &base, bag + 2 * count + 99, numbers);
	p.below = draw(4) ? base : 0;
	ck_assert_int_eq(partition_make(&p, 2, limit, zeros, NULL, false, cores), 0);
	check(&p, rows, numbers, count);
	partition_free(&p);
	free(numbers);
	free(narrow);
	free(bag);
	free(rows);
}

START_TEST(test_sorts_for_any_size_and_core_count)
{
	static const u64 limits[] = {1,		 2,	     2047,	 2048,
				     1000000,	 4097,	     1ull << 24, U32_MAX,
				     1ull << 32, 1ull << 33, 1ull << 40, U64_MAX >> 1};

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

/*
 * Occurrence i has row @row_of(i) and the number @step * i, empty bags between: the same groups,
 * whoever sorts them.
 */
static void sorted_alike(u64 limit, u64 count, u64 step, u64 below, u64 (*row_of)(u64 i))
{
	struct partition_source source;
	struct partition p = {.below = below, .sources = &source};
	u64 *rows = malloc(count * 8), bags = step * (count - 1) + 1;
	u64 *bag = malloc((bags + 1) * 8);
	u32 *numbers = malloc(count * 4);

	for (u64 i = 0; i < count; i++) {
		rows[i] = row_of(i);
		numbers[i] = (u32)(step * i);
	}
	for (u64 b = 0; b <= bags; b++)
		bag[b] = (b + step - 1) / step;
	source = (struct partition_source){rows, NULL, 0, count, 0, bag, bags};
	for (u32 cores = 1; cores <= 4; cores += 3) {
		ck_assert_int_eq(partition_make(&p, 1, limit, false, NULL, false, cores), 0);
		check(&p, rows, numbers, count);
	}
	partition_free(&p);
	free(numbers);
	free(bag);
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
	static u64 (*const laws[])(u64) = {row_same, row_of_stretch, row_scattered};
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
	const TTest *const tests[] = {test_sorts_for_any_size_and_core_count,
				      test_numbers_beside_a_digit,
				      test_core_of_a_row_beyond_32_bits, NULL};

	return direct_main("partition", tests);
}
