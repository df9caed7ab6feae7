// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "../../runtime/src/name.h"
#include "session_help.h"

START_TEST(parses_options)
{
	struct name n;

	ck_assert_int_eq(name_parse("soft:cores=4,memory=2G,variant=portable", &n), 0);
	ck_assert_uint_eq(n.cores, 4);
	ck_assert_uint_eq(n.memory, 2ull << 30);
	ck_assert_str_eq(n.variant, "portable");
	ck_assert_int_eq(name_parse("soft:memory=4097", &n), 0);
	ck_assert_uint_eq(n.memory, 4097);
	ck_assert_uint_eq(n.cores, 0);
}
END_TEST

START_TEST(takes_the_environment)
{
	struct name n;

	setenv("EMBENG_DEVICE", "soft:cores=3", 1);
	setenv("EMBENG_KERNEL", "portable", 1);
	ck_assert_int_eq(name_parse(NULL, &n), 0);
	ck_assert_uint_eq(n.cores, 3);
	ck_assert_str_eq(n.variant, "portable");
	ck_assert_int_eq(name_parse("soft:variant=avx2", &n), 0);
	ck_assert_str_eq(n.variant, "avx2");
	unsetenv("EMBENG_DEVICE");
	unsetenv("EMBENG_KERNEL");
}
END_TEST

START_TEST(refuses)
{
	static const struct {
		const char *name;
		int code;
		const char *text;
	} cases[] = {
		{"soft:cores=0", -EINVAL, "1 to 64"},
		{"soft:cores=65", -EINVAL, "1 to 64"},
		{"soft:cores=-1", -EINVAL, "cores=-1"},
		{"soft:cores", -EINVAL, "no value"},
		{"soft:memory=0", -EINVAL, "memory=0"},
		{"soft:memory=1T", -EINVAL, "memory=1T"},
		{"soft:memory=99999999999999999999", -EINVAL, "memory="},
		{"soft:memory=18446744073709551615K", -EINVAL, "memory="},
		{"soft:variant=", -EINVAL, "kernel variant"},
		{"soft:speed=1", -EINVAL, "\"speed\" is not known"},
		{"hard", -ENODEV, "\"hard\" is not known"},
		{"/dev/accel/accel0", -ENODEV, "only the soft device"},
		{"pci:0000:01:00.0", -ENODEV, "only the soft device"},
	};
	struct name n = {.cores = 77};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ck_assert_int_eq(name_parse(cases[i].name, &n), cases[i].code);
		expect_text(cases[i].text);
		ck_assert_uint_eq(n.cores, 77);
	}
}
END_TEST

RUN_SUITE("name", parses_options, takes_the_environment, refuses)
