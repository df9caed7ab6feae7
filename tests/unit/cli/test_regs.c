// SPDX-License-Identifier: MIT
/*
 * The output of "embeng regs", and the order in which it calls the library. This program has
 * functions of its own in place of the library's.
 */
#include <errno.h>

#include "embeng.h"

#include "runtime/cli/frame/command.h"
#include "cli_capture.h"
#include "embeng_regs.h"
#include "suite.h"

#define WRITES_MOST 32

static struct {
	uint32_t offset;
	uint64_t value;
} written[WRITES_MOST + 1];

static size_t count, fails_at;

int embeng_register_write(const char *name, uint32_t offset, uint64_t value)
{
	ck_assert_str_eq(name, "device");
	written[count].offset = offset;
	written[count].value = value;
	return count++ == fails_at ? -EPERM : 0;
}

int embeng_device_info(const char *name, struct embeng_device_info *info)
{
	ck_assert_str_eq(name, "device");
	strcpy(info->name, "the device");
	return -EHOSTDOWN;
}

int embeng_registers_read(const char *name, void *page)
{
	ck_assert_str_eq(name, "device");
	memset(page, 0, EMBENG_REGISTERS_BYTES);
	return 0;
}

static int regs(int argc, char **argv)
{
	argv[0] = "embeng regs";
	argv[1] = "-ddevice";
	count = 0;
	return cmd_regs(argc, argv);
}

START_TEST(writes_all_in_their_order)
{
	char *call[] = {
		0,	0, "--write", "control=1", "--write=boot_address=0x20", "--write=control=2",
		"magic"};
	struct capture c;
	int code;

	fails_at = WRITES_MOST;
	capture_start(&c);
	code = regs(7, call);
	capture_expect_in(&c, "MAGIC", "");
	ck_assert_int_eq(code, CLI_OK);
	ck_assert_uint_eq(count, 3);
	ck_assert_uint_eq(written[0].offset, EMBENG_REG_CONTROL);
	ck_assert_uint_eq(written[0].value, 1);
	ck_assert_uint_eq(written[1].offset, EMBENG_REG_BOOT_ADDRESS);
	ck_assert_uint_eq(written[1].value, 0x20);
	ck_assert_uint_eq(written[2].offset, EMBENG_REG_CONTROL);
	ck_assert_uint_eq(written[2].value, 2);
}
END_TEST

START_TEST(stops_at_a_write_that_fails)
{
	char *call[] = {0, 0, "--write=control=1", "--write=control=2", "--write=control=3"};
	struct capture c;
	int code;

	fails_at = 1;
	capture_start(&c);
	code = regs(5, call);
	capture_expect_in(&c, "", "embeng regs: ");
	ck_assert_int_eq(code, CLI_PERMISSION);
	ck_assert_uint_eq(count, 2);
}
END_TEST

START_TEST(writes_nothing_of_too_many)
{
	char *call[WRITES_MOST + 3];
	struct capture c;
	int code;

	for (int k = 2; k < WRITES_MOST + 3; k++)
		call[k] = "--write=control=1";
	fails_at = WRITES_MOST;
	capture_start(&c);
	code = regs(WRITES_MOST + 3, call);
	capture_expect_in(&c, "", "at most 32 registers");
	ck_assert_int_eq(code, CLI_USAGE);
	ck_assert_uint_eq(count, 0);
	capture_start(&c);
	code = regs(WRITES_MOST + 2, call);
	capture_expect_in(&c, "MAGIC", "");
	ck_assert_int_eq(code, CLI_OK);
	ck_assert_uint_eq(count, WRITES_MOST);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, writes_all_in_their_order);
	tcase_add_test(tcase, stops_at_a_write_that_fails);
	tcase_add_test(tcase, writes_nothing_of_too_many);
}

int main(void)
{
	return suite_main("regs", add);
}
