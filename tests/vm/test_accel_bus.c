// SPDX-License-Identifier: MIT
/* Errors of the bus, as the emulator plays the PCI core. */
#include "../unit/support/suite.h"
#include "fault_file.h"
#include "recovery.h"

#define BUS_ERROR "/sys/kernel/debug/embeng_emu/0/bus_error"

/* The driver has given the device up, and finds it again. */
static void expect_given_up(void)
{
	await_end(POLLHUP);
	uevents_expect_rung("none", "gone");
	expect_gone();
	accel_write("/sys/bus/pci/devices/" ADDRESS "/remove", "1");
	accel_write("/sys/bus/pci/rescan", "1");
	accel_works();
}

/* Nobody is harmed by what is corrected. */
START_TEST(test_bus_error)
{
	accel_write(BUS_ERROR, "nonfatal");
	accel_give(fd, &rings[1], nop(1, 0));
	ck_assert_uint_eq(accel_take(fd, &rings[1]).status, EMBENG_STATUS_OK);
	ck_assert_uint_eq(accel_resets(fd).sequence, before.sequence);
	ck_assert_uint_eq(accel_state(fd).status, EMBENG_ACCEL_CONTEXT_ALIVE);
}
END_TEST

START_TEST(test_fatal_bus_error)
{
	give_work();
	sleep(1); /* the driver has seen how far the doorbells are */
	accel_write(BUS_ERROR, "fatal");
	await_end(POLLERR);
	uevents_expect_rung("function", "bus");
	expect_lost(EMBENG_ACCEL_CAUSE_BUS, EMBENG_ACCEL_RESET_FUNCTION);
	expect_aborted(&rings[0]);
	expect_aborted(&rings[1]);
	accel_works();
}
END_TEST

/* The device had lost data already when the bus could be read again. */
START_TEST(test_bus_error_of_a_broken_device)
{
	accel_write(PARAMETERS "hang_ms", "0");
	fault_arm("ecc_uncorrectable", 1);
	accel_give(fd, &rings[1], nop(1, 0));
	ck_assert_uint_eq(accel_take(fd, &rings[1]).status, EMBENG_STATUS_INTERNAL);
	accel_write(BUS_ERROR, "nonfatal");
	expect_lost(EMBENG_ACCEL_CAUSE_BUS, EMBENG_ACCEL_RESET_FUNCTION);
	accel_works();
}
END_TEST

/* Recovery that fails for somebody else's sake tells nobody. */
START_TEST(test_bus_error_without_end)
{
	struct embeng_accel_reset reset = {.rung = EMBENG_ACCEL_RESET_FUNCTION};
	struct embeng_accel_unbind unbind = {0};
	struct embeng_accel_bo_create bo = accel_bo(fd, 4096);
	struct embeng_mem key = accel_bind(fd, bo.handle, EMBENG_REGION_DEVICE_READ);

	give_work();
	sleep(1);
	accel_write(BUS_ERROR, "abandoned");
	/* Nothing is reset before the bus is, and nobody says so. */
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_RESET, &reset), -ENODEV);
	unbind.index = key.index;
	unbind.generation = key.generation;
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_UNBIND, &unbind), 0);
	expect_given_up();
}
END_TEST

START_TEST(test_permanent_bus_error)
{
	give_work();
	sleep(1);
	accel_write(BUS_ERROR, "permanent");
	expect_given_up();
	expect_gone();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_bus_error);
	tcase_add_test(tcase, test_fatal_bus_error);
	tcase_add_test(tcase, test_bus_error_of_a_broken_device);
	tcase_add_test(tcase, test_bus_error_without_end);
	tcase_add_test(tcase, test_permanent_bus_error);
}

int main(void)
{
	return suite_main("bus", add);
}
