// SPDX-License-Identifier: MIT
/* The emulated function as a driver would find it, without one: runs in a virtual machine. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../unit/support/suite.h"
#include "raw_function.h"
#include "embeng_barrier.h"

#define BAR0 0x10
#define POWER 0x44 /* power management control */
#define POWER_D3 3
#define MSIX 0x52 /* message control */
#define MSIX_ENABLE 0x8000
#define MSIX_MASK_ALL 0x4000
#define PENDING 0x800
#define REGION_KEYS 4
#define BEYOND_MEMORY (1ull << 40)

START_TEST(it_boots_and_answers)
{
	struct raw_function *b = raw_open();
	struct embeng_admin_cmd nop = {.opcode = EMBENG_ADMIN_NOP, .cookie = 7};
	struct embeng_cqe cqe;

	ck_assert_uint_eq(raw_read32(b, EMBENG_REG_MAGIC), EMBENG_DEVICE_MAGIC);
	raw_await(b, EMBENG_REG_BOOT_STATE, EMBENG_BOOT_ROM);
	ck_assert_uint_eq(raw_boot(b), EMBENG_BOOT_RUNNING);
	ck_assert_uint_gt(raw_read64(b, EMBENG_REG_TABLE_MEMORY), 0);
	cqe = raw_admin(b, nop);
	ck_assert_uint_eq(cqe.cookie, 7);
	ck_assert_uint_eq(cqe.status, EMBENG_STATUS_OK);
	raw_close(b);
}
END_TEST

START_TEST(it_reaches_ram_alone)
{
	struct raw_function *b = raw_open();
	struct embeng_admin_cmd cmd = {.opcode = EMBENG_ADMIN_CONTEXT_CREATE, .count = REGION_KEYS};
	uint8_t *table = raw_alloc(b, REGION_KEYS * sizeof(struct embeng_region));

	ck_assert_uint_eq(raw_boot_from(b, BEYOND_MEMORY, 4096), EMBENG_BOOT_FAILED);
	ck_assert_uint_eq(raw_read32(b, EMBENG_REG_BOOT_ERROR), EMBENG_BOOT_ERROR_ADDRESS);
	ck_assert_uint_eq(raw_boot(b), EMBENG_BOOT_RUNNING);
	cmd.address = BEYOND_MEMORY;
	ck_assert_uint_eq(raw_admin(b, cmd).status, EMBENG_STATUS_KEY);
	cmd.address = raw_config_read(b, BAR0, 4) & ~15u;
	ck_assert_uint_eq(raw_admin(b, cmd).status, EMBENG_STATUS_KEY);
	cmd.address = raw_address(b, table);
	ck_assert_uint_eq(raw_admin(b, cmd).status, EMBENG_STATUS_OK);
	raw_close(b);
}
END_TEST

START_TEST(without_bus_mastering_it_reaches_nothing)
{
	struct raw_function *b = raw_open();

	raw_config_write(b, 4, 2, 2);
	ck_assert_uint_eq(raw_boot(b), EMBENG_BOOT_FAILED);
	ck_assert_uint_eq(raw_read32(b, EMBENG_REG_BOOT_ERROR), EMBENG_BOOT_ERROR_ADDRESS);
	raw_config_write(b, 4, 2, 6);
	ck_assert_uint_eq(raw_boot(b), EMBENG_BOOT_RUNNING);
	raw_close(b);
}
END_TEST

START_TEST(a_function_level_reset_forgets_all)
{
	struct raw_function *b = raw_open();
	uint32_t bar = raw_config_read(b, BAR0, 4), command = raw_config_read(b, 4, 2);

	ck_assert_uint_eq(raw_boot(b), EMBENG_BOOT_RUNNING);
	ck_assert_int_eq(raw_sysfs(b, "reset", "1"), 0);
	raw_await(b, EMBENG_REG_BOOT_STATE, EMBENG_BOOT_ROM);
	ck_assert_uint_eq(raw_read32(b, EMBENG_REG_BOOT_SEQUENCE), 0);
	ck_assert_uint_eq(raw_read32(b, EMBENG_REG_BOOT_DONE), 0);
	ck_assert_uint_eq(raw_read64(b, EMBENG_REG_ADMIN_RING), 0);
	ck_assert_uint_eq(*(volatile uint32_t *)b->doorbells, 0);
	ck_assert_uint_eq(raw_config_read(b, BAR0, 4), bar);
	ck_assert_uint_eq(raw_config_read(b, 4, 2), command);
	ck_assert_uint_eq(raw_boot(b), EMBENG_BOOT_RUNNING);
	raw_close(b);
}
END_TEST

START_TEST(the_reset_register_keeps_what_the_driver_wrote)
{
	struct raw_function *b = raw_open();

	ck_assert_uint_eq(raw_boot(b), EMBENG_BOOT_RUNNING);
	raw_write32(b, EMBENG_REG_CONTROL, EMBENG_CONTROL_RESET);
	raw_write32(b, EMBENG_REG_CONTROL_SEQUENCE, 1);
	raw_await(b, EMBENG_REG_CONTROL_DONE, 1);
	ck_assert_uint_eq(raw_read32(b, EMBENG_REG_BOOT_STATE), EMBENG_BOOT_ROM);
	ck_assert_uint_eq(raw_read64(b, EMBENG_REG_ADMIN_RING), raw_address(b, b->queues[0].ring));
	ck_assert_uint_eq(raw_read64(b, EMBENG_REG_TABLE_MEMORY), 0);
	raw_close(b);
}
END_TEST

/* By hand: a function without a driver is not put to sleep by the kernel. */
START_TEST(sleep_stops_it_and_waking_resets_it)
{
	struct raw_function *b = raw_open();
	uint32_t bar = raw_config_read(b, BAR0, 4), beats;

	ck_assert_uint_eq(raw_boot(b), EMBENG_BOOT_RUNNING);
	raw_config_write(b, POWER, 2, POWER_D3);
	usleep(100000);
	beats = raw_read32(b, EMBENG_REG_HEARTBEAT);
	usleep(300000);
	ck_assert_uint_eq(raw_read32(b, EMBENG_REG_HEARTBEAT), beats);
	ck_assert_uint_eq(raw_read32(b, EMBENG_REG_BOOT_STATE), EMBENG_BOOT_RUNNING);
	raw_config_write(b, POWER, 2, 0);
	raw_await(b, EMBENG_REG_BOOT_STATE, EMBENG_BOOT_ROM);
	ck_assert_uint_eq(raw_config_read(b, BAR0, 4) & ~15u, 0);
	raw_config_write(b, BAR0, 4, bar);
	raw_close(b);
}
END_TEST

START_TEST(states_that_it_lacks_are_not_entered)
{
	struct raw_function *b = raw_open();
	uint32_t bar = raw_config_read(b, BAR0, 4);

	raw_config_write(b, POWER, 2, 1);
	ck_assert_uint_eq(raw_config_read(b, POWER, 2) & 3, 0);
	raw_config_write(b, POWER, 2, 2);
	ck_assert_uint_eq(raw_config_read(b, POWER, 2) & 3, 0);
	raw_config_write(b, POWER, 2, POWER_D3);
	raw_config_write(b, POWER, 2, 1);
	ck_assert_uint_eq(raw_config_read(b, POWER, 2) & 3, POWER_D3);
	raw_config_write(b, POWER, 2, 2);
	ck_assert_uint_eq(raw_config_read(b, POWER, 2) & 3, POWER_D3);
	ck_assert_uint_eq(raw_config_read(b, BAR0, 4), bar);
	raw_config_write(b, POWER, 2, 0);
	raw_await(b, EMBENG_REG_BOOT_STATE, EMBENG_BOOT_ROM);
	raw_config_write(b, BAR0, 4, bar);
	raw_close(b);
}
END_TEST

static uint32_t pending(struct raw_function *b)
{
	return *(volatile uint32_t *)(b->msix + PENDING);
}

static void arm_and_nop(struct raw_function *b)
{
	struct embeng_doorbell *doorbell = (struct embeng_doorbell *)b->doorbells;
	struct embeng_admin_cmd nop = {.opcode = EMBENG_ADMIN_NOP};

	doorbell->arm = b->queues[0].cq_head;
	__atomic_store_n(&doorbell->armed, doorbell->armed + 1, __ATOMIC_RELEASE);
	embeng_arm_then_recheck();
	raw_admin(b, nop);
}

START_TEST(a_masked_vector_is_pending)
{
	struct raw_function *b = raw_open();

	ck_assert_uint_eq(raw_boot(b), EMBENG_BOOT_RUNNING);
	arm_and_nop(b);
	usleep(10000);
	ck_assert_uint_eq(pending(b), 0); /* MSI-X is off: nowhere to go */
	raw_config_write(b, MSIX, 2, MSIX_ENABLE | MSIX_MASK_ALL);
	arm_and_nop(b);
	while (!pending(b))
		usleep(1000);
	ck_assert_uint_eq(pending(b), 1);
	raw_config_write(b, MSIX, 2, MSIX_ENABLE); /* the vector's own mask is left */
	usleep(10000);
	ck_assert_uint_eq(pending(b), 1);
	*(volatile uint32_t *)(b->msix + 12) = 0;
	while (pending(b))
		usleep(1000);
	raw_close(b);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, it_boots_and_answers);
	tcase_add_test(tcase, it_reaches_ram_alone);
	tcase_add_test(tcase, without_bus_mastering_it_reaches_nothing);
	tcase_add_test(tcase, a_function_level_reset_forgets_all);
	tcase_add_test(tcase, the_reset_register_keeps_what_the_driver_wrote);
	tcase_add_test(tcase, sleep_stops_it_and_waking_resets_it);
	tcase_add_test(tcase, states_that_it_lacks_are_not_entered);
	tcase_add_test(tcase, a_masked_vector_is_pending);
}

int main(void)
{
	return suite_main("function", add);
}
