// SPDX-License-Identifier: MIT
/*
 * The hottest tables and rows in `embeng top`: what is taken of the device's answer, rates and order of
 * tables, their lines, and contexts that cannot be asked. tests/vm/top.sh asks a real one.
 */
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "runtime/cli/top/hot.h"
#include "runtime/cli/top/page.h"
#include "suite.h"

static struct embeng_stats made_stats(uint32_t table, uint64_t rows)
{
	struct embeng_stats stats = {.table = table,
				     .ids = 400,
				     .unique_ids = 200,
				     .steps = 100,
				     .hot_count = rows,
				     .hot_error = 3};

	for (uint32_t i = 0; i < EMBENG_STATS_HOT; i++)
		stats.hot[i] = (struct embeng_hot_row){.row = 1000 + i, .count = 100 - i};
	return stats;
}

START_TEST(answers_are_checked)
{
	struct embeng_stats stats = made_stats(7, EMBENG_STATS_HOT);
	struct hot_table table;

	ck_assert(hot_read(&stats, 7, &table));
	ck_assert_uint_eq(table.table, 7);
	ck_assert_uint_eq(table.ids, 400);
	ck_assert_uint_eq(table.unique_ids, 200);
	ck_assert_uint_eq(table.steps, 100);
	ck_assert_uint_eq(table.error, 3);
	ck_assert(isnan(table.ids_rate));
	ck_assert_uint_eq(table.row_count, EMBENG_STATS_HOT);
	ck_assert_uint_eq(table.rows[31].row, 1031);
	ck_assert_uint_eq(table.rows[31].count, 69);
	ck_assert(!hot_read(&stats, 6, &table));
	stats.hot_count = EMBENG_STATS_HOT + 1;
	ck_assert(!hot_read(&stats, 7, &table));
	stats.hot_count = UINT64_MAX;
	ck_assert(!hot_read(&stats, 7, &table));
	stats.hot_count = 0;
	ck_assert(hot_read(&stats, 7, &table));
	ck_assert_uint_eq(table.row_count, 0);
}
END_TEST

static struct hot_table counted(uint32_t table, uint64_t ids)
{
	return (struct hot_table){.table = table, .ids = ids, .ids_rate = NAN};
}

static void check_tables(const struct hot_look *look, const uint32_t *expected)
{
	for (size_t i = 0; i < look->count; i++)
		ck_assert_uint_eq(look->tables[i].table, expected[i]);
}

START_TEST(the_hottest_table_is_first)
{
	struct hot_table first[] = {counted(0, 50), counted(1, 900), counted(2, 900),
				    counted(3, 100)};
	struct hot_table second[] = {counted(0, 90), counted(1, 910), counted(2, 4),
				     counted(3, 102), counted(4, 7000)};
	struct hot_look before = {.time_ns = 1000000000, .tables = first, .count = 4};
	struct hot_look now = {.time_ns = 3000000000, .tables = second, .count = 5};

	hot_compare(&before, NULL);
	check_tables(&before, (uint32_t[]){1, 2, 3, 0});
	hot_compare(&now, &before);
	/* Table 2 was cleared and table 4 is new, so that nobody knows their rates. */
	check_tables(&now, (uint32_t[]){0, 1, 3, 4, 2});
	ck_assert_double_eq(now.tables[0].ids_rate, 20);
	ck_assert_double_eq(now.tables[1].ids_rate, 5);
	ck_assert_double_eq(now.tables[2].ids_rate, 1);
	ck_assert(isnan(now.tables[3].ids_rate));
	ck_assert(isnan(now.tables[4].ids_rate));
}
END_TEST

START_TEST(no_tables_have_no_order)
{
	struct hot_look before = {.time_ns = 1}, now = {.time_ns = 2};

	hot_compare(&before, NULL);
	hot_compare(&now, &before);
	ck_assert_uint_eq(now.count, 0);
}
END_TEST

static void check_line(int width, const struct hot_table *table, const char *expected)
{
	struct hot_table tables[] = {*table};
	struct hot_look look = {.model_tables = 1, .tables = tables, .count = 1};
	struct page page = {.width = width};
	struct lines lines = {0};

	page_hot(&page, &look, &lines);
	ck_assert_uint_eq(lines.count, 2);
	ck_assert_str_eq(lines.list[1].text, expected);
	lines_free(&lines);
}

START_TEST(rows_have_their_share)
{
	struct hot_table table = {.table = 3,
				  .ids = 400,
				  .ids_rate = 1234,
				  .row_count = 2,
				  .rows = {{41, 300}, {18446744073709551615u, 100}}};

	check_line(0, &table,
		   "    3    1.23k              400  41 (75 %), 18446744073709551615 (25 %)");
	/* A row that does not fit is left out as a whole. */
	check_line(66, &table, "    3    1.23k              400  41 (75 %)");
	check_line(10, &table, "    3    1.23k              400  -");
	table.row_count = 0;
	table.ids = 0;
	table.ids_rate = NAN;
	check_line(80, &table, "    3        -                0  -");
}
END_TEST

START_TEST(a_page_shows_eight_tables)
{
	struct hot_table tables[9];
	struct hot_look look = {.model_tables = 5000, .tables = tables, .count = 9};
	struct page page = {0};
	struct lines lines = {0};

	for (uint32_t i = 0; i < 9; i++)
		tables[i] = counted(i, 100 - i);
	page_hot(&page, &look, &lines);
	ck_assert_uint_eq(lines.count, 10);
	ck_assert_str_eq(lines.list[9].text, "the hottest 8 of 5000 tables");
	lines_free(&lines);
}
END_TEST

START_TEST(a_reason_stands_in_the_place_of_rows)
{
	struct hot_look look = {.reason = "the process has ended"};
	struct page page = {0};
	struct lines lines = {0};

	page_hot(&page, &look, &lines);
	ck_assert_uint_eq(lines.count, 1);
	ck_assert_str_eq(lines.list[0].text,
			 "Its hottest rows are not known: the process has ended.");
	lines_free(&lines);
}
END_TEST

/* A context that this process claims to have by @fd. */
static struct sample_context claimed(uint32_t pid, int fd)
{
	struct sample_context context = {.pid = pid, .fd = (uint32_t)fd};

	strcpy(context.info.address, "0000:01:00.0");
	context.info.client = 17;
	context.info.has_client = true;
	return context;
}

static const struct hot_look *look_at(struct hot *hot, const struct sample_context *context,
				      uint64_t sample_ns)
{
	const struct hot_look *look = NULL;
	struct tree *tree;

	ck_assert_int_eq(tree_open(NULL, &tree), 0);
	ck_assert_int_eq(hot_look(hot, tree, context, sample_ns, &look), 0);
	tree_close(tree);
	ck_assert_ptr_nonnull(look);
	ck_assert_uint_eq(look->count, 0);
	return look;
}

#ifdef EMBENG_HAVE_ACCEL
static void check_reason(const struct sample_context *context, const char *reason)
{
	struct hot hot = {0};

	ck_assert_str_eq(look_at(&hot, context, 1)->reason, reason);
	hot_forget(&hot);
}

/* Nothing is asked of a file that is not the context's. */
START_TEST(descriptors_that_changed)
{
	int null = open("/dev/null", O_RDWR), file = open("/proc/self/exe", O_RDONLY);
	struct sample_context context = claimed((uint32_t)getpid(), null);

	check_reason(&context, "the descriptor of the process leads elsewhere by now");
	context = claimed((uint32_t)getpid(), file);
	check_reason(&context, "the descriptor of the process leads elsewhere by now");
	close(file);
	context = claimed((uint32_t)getpid(), 900);
	check_reason(&context, "the process has closed the device");
	context = claimed(0x7ffffffe, 3);
	check_reason(&context, "the process has ended");
	context = claimed((uint32_t)getpid(), null);
	context.info.has_client = false;
	check_reason(&context, "the driver is an older one, which does not say to which context a "
			       "descriptor leads");
	close(null);
}
END_TEST
#endif

START_TEST(one_look_for_a_sample)
{
	struct hot hot = {0};
	struct sample_context contexts[] = {claimed(0x7ffffffe, 3), claimed(0x7ffffffe, 4)};
	struct sample sample = {.contexts = &contexts[1], .context_count = 1};
	const struct hot_look *first, *other;
	uint64_t time_ns;

	contexts[1].info.client = 18;
	first = look_at(&hot, &contexts[0], 5);
	time_ns = first->time_ns;
	other = look_at(&hot, &contexts[1], 5);
	ck_assert_ptr_ne(first, other);
	ck_assert_ptr_eq(look_at(&hot, &contexts[0], 5), first);
	ck_assert_uint_eq(look_at(&hot, &contexts[0], 6)->sample_ns, 6);
	ck_assert_uint_gt(look_at(&hot, &contexts[0], 6)->time_ns, time_ns);
	ck_assert_uint_eq(hot.count, 2);
	/* A context that has ended is forgotten. */
	hot_keep(&hot, &sample);
	ck_assert_uint_eq(hot.count, 1);
	ck_assert_uint_eq(hot.list[0]->client, 18);
	hot_forget(&hot);
	ck_assert_uint_eq(hot.count, 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_test(tcase, answers_are_checked);
	tcase_add_test(tcase, the_hottest_table_is_first);
	tcase_add_test(tcase, no_tables_have_no_order);
	tcase_add_test(tcase, rows_have_their_share);
	tcase_add_test(tcase, a_page_shows_eight_tables);
	tcase_add_test(tcase, a_reason_stands_in_the_place_of_rows);
#ifdef EMBENG_HAVE_ACCEL
	tcase_add_test(tcase, descriptors_that_changed);
#endif
	tcase_add_test(tcase, one_look_for_a_sample);
}

int main(void)
{
	return suite_main("top_hot", add_tests);
}
