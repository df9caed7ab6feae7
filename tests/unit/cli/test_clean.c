// SPDX-License-Identifier: MIT
/* `embeng report` takes personal words out of a text, and leaves all others as they are. */
#include "../../../runtime/cli/report/clean.h"

#include <stdlib.h>

#include "../support/suite.h"

static char host[] = "wopr17", user[] = "dlightman", person[] = "David Lightman";
static char *hosts[] = {host}, *users[] = {user, person};
static const struct clean names = {.hosts = {hosts, 1}, .users = {users, 2}};

static void expect_clean(const char *text, const char *want)
{
	char *got = clean_text_of(&names, text);

	ck_assert_str_eq(got, want);
	free(got);
}

START_TEST(test_taken_out)
{
	static const char *const texts[][2] = {
		{"on wopr17", "on (host)"},
		{"wopr17.example.org: up", "(host): up"},
		{"dlightman, David Lightman", "(user), (user)"},
		{"/home/other/x.c:3", "/home/(user)/x.c:3"},
		{"MAC 52:54:00:12:34:56.", "MAC (mac)."},
		{"id 52-54-00-12-34-56", "id (mac)"},
		{"root=UUID=0a1b2c3d-1111-2222-3333-444455556666 ro", "root=UUID=(uuid) ro"},
		{"0123456789abcdef0123456789abcdef", "(uuid)"},
		{"at ffff888012345678,", "at (address),"},
		{"0xffffffffc0401234", "(address)"},
		{"register ADMIN_RING 0x104000\n", "register ADMIN_RING (address)\n"},
		{"BOOT_ADDRESS\t0x7f", "BOOT_ADDRESS\t(address)"},
		{"SerialNumber: A1", "SerialNumber: (serial)"},
		{"serial=SN-0815", "serial=(serial)"},
		{"Serial Number: 17-af, next", "Serial Number: (serial), next"},
		{"context 4 program my tool[77] regions", "context 4 program (program) regions"},
		{"queue 1 of context 2 of my tool[77]: stalled",
		 "queue 1 of context 2 of (program): stalled"},
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		expect_clean(texts[i][0], texts[i][1]);
}
END_TEST

START_TEST(test_left_alone)
{
	static const char *const texts[] = {
		"",
		"wopr171 and xwopr17",
		"0000:03:00.0 and 0eb0:00:00.0",
		"a serial port, serial: none",
		"0xffffffffffffffff",
		"hash 0123456789abcdef",
		"register COUNT_IDS 0x104000",
		"1.2.3.4:5:6",
		"the program is [old]",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		expect_clean(texts[i], texts[i]);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, test_taken_out);
	tcase_add_test(tcase, test_left_alone);
}

int main(void)
{
	return suite_main("clean", add);
}
