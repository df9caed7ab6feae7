// SPDX-License-Identifier: MIT
/* One basket a line. */
#include <errno.h>

#include "runtime/examples/item2vec/basket.h"
#include "cli_text.h"
#include "suite.h"

START_TEST(lines_are_baskets)
{
	expect_uses(basket_read, "bread  milk\n\n\tbread\teggs \r\nwine",
		    "1:bread 1:milk 3:bread 3:eggs 4:wine");
}
END_TEST

START_TEST(control_character_is_named)
{
	expect_malformed(basket_read,
			 "a b\nc \x01"
			 "d\n",
			 "file:2: control character 0x01 in column 3");
}
END_TEST

START_TEST(nul_is_named)
{
	struct source s;
	struct collector c;

	ck_assert_int_eq(read_bytes(basket_read, "a b\nc\0d\n", 8, &s, &c), -EBADMSG);
	ck_assert_str_eq(s.error, "file:2: the line has a NUL byte; the file must be text");
	collector_free(&c);
}
END_TEST

/* A mark, ends of lines from elsewhere, blanks at the end: none of them is part of an item. */
START_TEST(nothing_around_items)
{
	expect_uses(basket_read,
		    "\xef\xbb\xbf"
		    "bread milk\r\nwine \t\r\n",
		    "1:bread 1:milk 2:wine");
	expect_uses(basket_read, "\xef\xbb\xbf", "");
	/* Elsewhere it is no mark. */
	expect_uses(basket_read,
		    "a\n\xef\xbb\xbf"
		    "b\n",
		    "1:a 2:\xef\xbb\xbf"
		    "b");
}
END_TEST

START_TEST(items_between_separators)
{
	struct collector c = {0};
	char text[] = "whole milk, \"bread, brown\",,wine \n";
	struct source s = {.stream = fmemopen(text, strlen(text), "r"),
			   .name = "file",
			   .format = {.kind = FORMAT_BASKETS, .separator = ","}};

	ck_assert_int_eq(basket_read(&s, &c), 0);
	ck_assert_uint_eq(c.items.count, 3);
	ck_assert_str_eq(c.items.text[0], "whole milk");
	ck_assert_str_eq(c.items.text[1], "bread, brown");
	ck_assert_str_eq(c.items.text[2], "wine");
	fclose(s.stream);
	source_free(&s);
	collector_free(&c);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, lines_are_baskets);
	tcase_add_test(tcase, control_character_is_named);
	tcase_add_test(tcase, nul_is_named);
	tcase_add_test(tcase, nothing_around_items);
	tcase_add_test(tcase, items_between_separators);
}

int main(void)
{
	return suite_main("data_basket", add);
}
