// SPDX-License-Identifier: MIT
/* The reader of Debian's control files: one basket for each stanza. */
#include <errno.h>

#include "runtime/examples/item2vec/debian.h"
#include "cli_text.h"
#include "suite.h"

START_TEST(names_alone_count)
{
	expect_uses(debian_read,
		    "Package: a\nDepends: libc6 (>= 2.34), python3:any, x | y, z [amd64]\n"
		    "Pre-Depends: dpkg (>= 1)\n",
		    "a:libc6 a:python3 a:x a:z a:dpkg");
}
END_TEST

START_TEST(binaries_share_their_source)
{
	expect_uses(debian_read,
		    "Package: a1\nSource: a (1.2)\nDepends: x\n\n\nPackage: a2\nSource: a\n"
		    "Depends: y\n\nPackage: b\nRecommends: x\n",
		    "a:x a:y");
}
END_TEST

START_TEST(continuation_lines)
{
	expect_uses(debian_read,
		    "Package: a\nDescription: d\n Depends: no\nDepends: x,\n y (= 1),\n\tz\n",
		    "a:x a:y a:z");
	expect_uses(debian_read, "Package: a\ndepends:\nDescription: d\n", "");
}
END_TEST

static const struct {
	const char *text, *sentence;
} malformed[] = {
	{"Package: a\nno colon\n", "file:2: the line is neither 'Field: value'"},
	{"Package: a\n: x\n", "file:2: the line is neither 'Field: value'"},
	{" x\n", "file:1: the line begins with a space and continues no field"},
	{"Depends: x\n\n", "file:2: the package that ends here has no field Package"},
	{"Package: a\nDepends: x\nDepends: y\n", "file:3: the package has field Depends twice"},
	{"Package: a\nDepends: x,, y\n\n", "file:3: field Depends of the package that ends here"},
	{"Package: a\nPre-Depends: (>= 1)\n", "file:2: field Pre-Depends of the package"},
	{"Package: a\nDepends: x!y\n", "file:2: field Depends of the package"},
	{"Package:\nDepends: x\n", "file:2: field Package of the package"},
	{"Package: a\nSource: (1)\n", "file:2: field Source of the package"},
};

START_TEST(malformed_lines_are_named)
{
	expect_malformed(debian_read, malformed[_i].text, malformed[_i].sentence);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, names_alone_count);
	tcase_add_test(tcase, binaries_share_their_source);
	tcase_add_test(tcase, continuation_lines);
	tcase_add_loop_test(tcase, malformed_lines_are_named, 0,
			    sizeof(malformed) / sizeof(malformed[0]));
}

int main(void)
{
	return suite_main("data_debian", add);
}
