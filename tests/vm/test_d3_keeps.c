// SPDX-License-Identifier: MIT
/* With d3_keeps=1 the function keeps its state in D3hot, and goes on where it was. */
#include <unistd.h>

#include "../unit/support/suite.h"
#include "raw_function.h"

#define POWER 0x44 /* power management control */
#define POWER_D3 3
#define NO_SOFT_RESET 8

START_TEST(waking_keeps_everything)
{
	struct raw_function *b = raw_open();
	struct embeng_admin_cmd nop = {.opcode = EMBENG_ADMIN_NOP};
	struct embeng_cqe cqe;

	raw_await(b, EMBENG_REG_BOOT_STATE, EMBENG_BOOT_ROM);
	ck_assert_uint_eq(raw_boot(b), EMBENG_BOOT_RUNNING);
	ck_assert_uint_eq(raw_config_read(b, POWER, 2), NO_SOFT_RESET);
	raw_config_write(b, POWER, 2, POWER_D3);
	usleep(100000);
	raw_submit(&b->queues[0], &nop);
	usleep(300000);
	ck_assert(!raw_reap(&b->queues[0], &cqe));
	raw_config_write(b, POWER, 2, 0);
	while (!raw_reap(&b->queues[0], &cqe))
		usleep(1000);
	ck_assert_uint_eq(cqe.status, EMBENG_STATUS_OK);
	ck_assert_uint_eq(raw_read32(b, EMBENG_REG_BOOT_STATE), EMBENG_BOOT_RUNNING);
	raw_close(b);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, waking_keeps_everything);
}

int main(void)
{
	return suite_main("d3_keeps", add);
}
