// SPDX-License-Identifier: MIT
/* Documents, errno names and exit codes of the command. */
#include <check.h>
#include <errno.h>
#include <math.h>

#include "runtime/cli/frame/exit.h"
#include "runtime/cli/frame/output.h"
#include "suite.h"

static void check_float(double value, const char *expected)
{
	struct json_object *number = json_float(value);

	ck_assert_str_eq(json_object_to_json_string(number), expected);
	json_object_put(number);
}

START_TEST(floats)
{
	check_float(0.1, "0.1");
	check_float(-2.5, "-2.5");
	check_float(NAN, "\"nan\"");
	check_float(INFINITY, "\"inf\"");
	check_float(-INFINITY, "\"-inf\"");
}
END_TEST

START_TEST(document_has_schema)
{
	struct output out = {.verb = "train", .json = true};
	struct json_object *document = json_document(&out);

	ck_assert_str_eq(json_object_get_string(json_object_object_get(document, "schema")),
			 "embeng.train/1");
	json_object_put(document);
}
END_TEST

START_TEST(a_command_is_named)
{
	struct output out = {.verb = "checkpoint", .command = "ls", .json = true};
	struct json_object *document = json_document(&out);

	ck_assert_str_eq(json_object_to_json_string_ext(
				 document, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE),
			 "{\"schema\":\"embeng.checkpoint/1\",\"command\":\"ls\"}");
	json_object_put(document);
}
END_TEST

/* Exit codes are frozen: each errno of the interface with the one it has. */
/* clang-format off */
static const struct {
	int err;
	const char *name;
	int exit_code;
} errnos[] = {
	{EINVAL, "EINVAL", 2},	 {ERANGE, "ERANGE", 2},	     {ENOENT, "ENOENT", 2},
	{EEXIST, "EEXIST", 2},	 {EPROTO, "EPROTO", 2},	     {ENOTSUP, "ENOTSUP", 3},
	{EACCES, "EACCES", 4},	 {EPERM, "EPERM", 4},	     {EBUSY, "EBUSY", 5},
	{ENOSPC, "ENOSPC", 5},	 {ENODEV, "ENODEV", 6},	     {ESHUTDOWN, "ESHUTDOWN", 7},
	{ENOMEM, "ENOMEM", 7},	 {ECANCELED, "ECANCELED", 7}, {EIO, "EIO", 7},
	{EDQUOT, "EDQUOT", 5},	 {EFBIG, "EFBIG", 5},	     {EROFS, "EROFS", 4},
	{ENAMETOOLONG, "ENAMETOOLONG", 2},
	{ETIME, "ETIME", 8},	 {EBADMSG, "EBADMSG", 11},
};
/* clang-format on */

START_TEST(exit_codes)
{
	ck_assert_int_eq(exit_of_errno(errnos[_i].err), errnos[_i].exit_code);
	ck_assert_int_eq(exit_of_errno(-errnos[_i].err), errnos[_i].exit_code);
	ck_assert_str_eq(errno_name(-errnos[_i].err), errnos[_i].name);
	ck_assert_int_eq(errno_by_name(errnos[_i].name), errnos[_i].err);
}
END_TEST

START_TEST(unknown_errnos)
{
	ck_assert_int_eq(errno_by_name("EFROB"), 0);
	ck_assert_int_eq(errno_by_name(""), 0);
	ck_assert_str_eq(errno_name(123456), "EIO");
	ck_assert_int_eq(exit_of_errno(123456), CLI_DEVICE);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, floats);
	tcase_add_test(tcase, document_has_schema);
	tcase_add_test(tcase, a_command_is_named);
	tcase_add_loop_test(tcase, exit_codes, 0, (int)(sizeof(errnos) / sizeof(errnos[0])));
	tcase_add_test(tcase, unknown_errnos);
}

int main(void)
{
	return suite_main("cli_json", add);
}
