// SPDX-License-Identifier: MIT
/*
 * The environment of a program that has more rights than its caller (a set-uid program) names no
 * device, kernel, path or file. secure_getenv() says NULL there, as it is wrapped to say here; a
 * variable that the library still sees came by getenv(), which believes anybody.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/tune_file.h"
#include "device/name.h"
#include "device/tracer.h"
#include "suite.h"

static bool more_rights;

char *__real_secure_getenv(const char *name);
char *__wrap_secure_getenv(const char *name);

char *__wrap_secure_getenv(const char *name)
{
	return more_rights ? NULL : __real_secure_getenv(name);
}

static void set_all(void)
{
	setenv("EMBENG_DEVICE", "soft:cores=3", 1);
	setenv("EMBENG_KERNEL", "portable", 1);
	setenv("EMBENG_PREFETCH", "7", 1);
	setenv("EMBENG_PATH", "validated", 1);
	setenv("EMBENG_TUNE", "/tmp/evil.json", 1);
	setenv("EMBENG_TRACE", "/tmp/evil.trace", 1);
	setenv("XDG_CONFIG_HOME", "/tmp/evil", 1);
	setenv("HOME", "/tmp/evil", 1);
}

START_TEST(a_caller_names_what_is_used)
{
	char path[TUNE_PATH];
	struct name name;

	more_rights = false;
	set_all();
	ck_assert_int_eq(name_parse(NULL, &name), 0);
	ck_assert_int_eq(name.kind, NAME_SOFT);
	ck_assert_uint_eq(name.cores, 3);
	ck_assert_str_eq(name.variant, "portable");
	ck_assert_uint_eq(name.fetch_rows, 7);
	ck_assert_int_eq(name.path, NAME_PATH_VALIDATED);
	ck_assert_str_eq(name_kernel(), "portable");
	ck_assert_str_eq(tune_named_path(), "/tmp/evil.json");
	ck_assert(tune_user_path(path));
	ck_assert_str_eq(path, "/tmp/evil/embeng/tune.json");
}
END_TEST

START_TEST(a_caller_with_fewer_rights_names_nothing)
{
	char path[TUNE_PATH];
	struct tracer *tracer;
	struct name name;

	more_rights = true;
	set_all();
	ck_assert_int_eq(name_parse(NULL, &name), 0);
	ck_assert_int_eq(name.kind, NAME_ANY);
	ck_assert_uint_eq(name.cores, 0);
	ck_assert_str_eq(name.variant, "");
	ck_assert_uint_eq(name.fetch_rows, 0);
	ck_assert_int_eq(name.path, NAME_PATH_ANY);
	ck_assert_ptr_null(name_kernel());
	ck_assert_ptr_null(tune_named_path());
	ck_assert(!tune_user_path(path));
	ck_assert_int_eq(tracer_open("soft", &tracer), 0);
	ck_assert_ptr_null(tracer);
}
END_TEST

/* Empty is as not there, and a relative folder is none. */
START_TEST(empty_and_relative_values_are_ignored)
{
	char path[TUNE_PATH];
	struct name name;

	more_rights = false;
	set_all();
	setenv("EMBENG_DEVICE", "", 1);
	setenv("EMBENG_KERNEL", "", 1);
	setenv("EMBENG_PREFETCH", "", 1);
	setenv("EMBENG_PATH", "", 1);
	setenv("EMBENG_TUNE", "", 1);
	setenv("XDG_CONFIG_HOME", "evil", 1);
	ck_assert_int_eq(name_parse(NULL, &name), 0);
	ck_assert_int_eq(name.kind, NAME_ANY);
	ck_assert_str_eq(name.variant, "");
	ck_assert_ptr_null(name_kernel());
	ck_assert_ptr_null(tune_named_path());
	ck_assert(tune_user_path(path));
	ck_assert_str_eq(path, "/tmp/evil/.config/embeng/tune.json");
	setenv("HOME", "evil", 1);
	ck_assert(!tune_user_path(path));
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_test(tc, a_caller_names_what_is_used);
	tcase_add_test(tc, a_caller_with_fewer_rights_names_nothing);
	tcase_add_test(tc, empty_and_relative_values_are_ignored);
}

int main(void)
{
	return suite_main("environment", add);
}
