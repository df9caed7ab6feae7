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

static void add(TCase *tcase)
{
	tcase_add_test(tcase, lines_are_baskets);
	tcase_add_test(tcase, control_character_is_named);
	tcase_add_test(tcase, nul_is_named);
}

int main(void)
{
	return suite_main("data_basket", add);
}
