// SPDX-License-Identifier: MIT
/* Faults of the whole device: which rung of recovery brings it back, and what contexts are told. */
#include <sys/mman.h>

#include "../unit/support/suite.h"
#include "embeng_regs.h"
#include "fault_file.h"
#include "recovery.h"

#define DRIVER "/sys/bus/pci/drivers/embeng/"

START_TEST(test_heartbeat_stops)
{
	give_work();
	fault_arm("heartbeat_stops", UINT32_MAX);
	await_end(POLLERR);
	fault_arm("heartbeat_stops", 0);
	uevents_expect_rung("engine", "heartbeat");
	expect_lost(EMBENG_ACCEL_CAUSE_HEARTBEAT, EMBENG_ACCEL_RESET_ENGINE);
	ck_assert_uint_eq(accel_resets(fd).engines, before.engines + 1);
	ck_assert_uint_eq(accel_resets(fd).functions, before.functions);
	expect_aborted(&rings[0]);
	expect_aborted(&rings[1]);
	devcoredump_expect(devcoredump_take(), "cause heartbeat\n");
	accel_works();
}
END_TEST

/* It answers no reset either: the function is. */
START_TEST(test_engine_dies)
{
	give_work();
	fault_arm("engine_dies", 1);
	await_end(POLLERR);
	uevents_expect_rung("function", "heartbeat");
	expect_lost(EMBENG_ACCEL_CAUSE_HEARTBEAT, EMBENG_ACCEL_RESET_FUNCTION);
	ck_assert_uint_eq(accel_resets(fd).engines, before.engines + 1);
	ck_assert_uint_eq(accel_resets(fd).functions, before.functions + 1);
	expect_aborted(&rings[0]);
	expect_aborted(&rings[1]);
	accel_works();
}
END_TEST

/* Tables lost data: the command says so, and nobody is left with what remains. */
START_TEST(test_memory_error)
{
	fault_arm("ecc_uncorrectable", 1);
	accel_give(fd, &rings[1], nop(1, 0));
	await_end(POLLERR);
	uevents_expect_rung("engine", "fault");
	ck_assert_uint_eq(look(&rings[1], 0).status, EMBENG_STATUS_INTERNAL);
	expect_lost(EMBENG_ACCEL_CAUSE_FAULT, EMBENG_ACCEL_RESET_ENGINE);
	ck_assert_uint_eq(accel_resets(fd).commands, before.commands + 1);
	devcoredump_expect(devcoredump_take(), "register STATUS 0x1\n");
	accel_works();
}
END_TEST

START_TEST(test_failed_command)
{
	struct ring *ring = &rings[_i];

	fault_arm("dma_error", 1);
	accel_give(fd, ring, nop(1, 0));
	ck_assert_uint_eq(accel_take(fd, ring).status, EMBENG_STATUS_INTERNAL);
	accel_give(fd, ring, nop(2, 0));
	ck_assert_uint_eq(accel_take(fd, ring).status, EMBENG_STATUS_OK);
	ck_assert_uint_eq(accel_resets(fd).commands, before.commands + 1);
	ck_assert_uint_eq(accel_resets(fd).queues, before.queues);
	ck_assert_uint_eq(accel_resets(fd).sequence, before.sequence);
	ck_assert_uint_eq(accel_health(fd).count, 0);
}
END_TEST

/* The queue's rung finds nobody who answers: the next one is taken, and the culprit named. */
START_TEST(test_queue_does_not_end)
{
	struct ring *ring = &rings[_i], *other = &rings[!_i];

	fault_arm("stall_queue", 0);
	fault_file_set("stall_queue", "target", ring->made.queue);
	fault_file_set("stall_queue", "count", 1);
	fault_arm("drop_completion", 0);
	fault_file_set("drop_completion", "target", 0);
	fault_file_set("drop_completion", "count", 1);
	accel_give(fd, other, nop(5, EMBENG_NOP_DELAY_MAX));
	accel_give(fd, ring, nop(10, 0));
	accel_give(fd, ring, nop(11, 0));
	await_end(POLLERR);
	uevents_expect_rung("engine", "no-answer");
	ck_assert_uint_eq(look(ring, 0).status, EMBENG_STATUS_HUNG);
	ck_assert_uint_eq(look(ring, 0).cookie, 10);
	ck_assert_uint_eq(look(ring, 0).limit, EMBENG_ACCEL_RESET_ENGINE);
	ck_assert_uint_eq(look(ring, 1).status, EMBENG_STATUS_ABORTED);
	ck_assert_uint_eq(look(other, 0).status, EMBENG_STATUS_ABORTED);
	expect_lost(EMBENG_ACCEL_CAUSE_NO_ANSWER, EMBENG_ACCEL_RESET_ENGINE);
	ck_assert_uint_eq(accel_health(fd).queue, ring->made.queue);
	ck_assert_uint_eq(accel_health(fd).cookie, 10);
	accel_works();
}
END_TEST

/* Gone for less than a look: something has reset it, and config space with it. */
START_TEST(test_link_blinks)
{
	give_work();
	sleep(1); /* the driver has seen how far the doorbells are */
	accel_write(PARAMETERS "hang_ms", "20000");
	usleep(1500000);
	fault_file_set("link_down", "value", 100000000);
	fault_arm("link_down", 1);
	usleep(500000);
	accel_write(PARAMETERS "hang_ms", "1000");
	await_end(POLLERR);
	uevents_expect_rung("function", "state");
	expect_lost(EMBENG_ACCEL_CAUSE_STATE, EMBENG_ACCEL_RESET_FUNCTION);
	expect_aborted(&rings[0]);
	expect_aborted(&rings[1]);
	accel_works();
}
END_TEST

static void bind_anew(void)
{
	accel_write(DRIVER "unbind", ADDRESS);
	accel_write(DRIVER "bind", ADDRESS);
	accel_works();
}

/* Nobody calls the driver: it finds out by itself. */
START_TEST(test_link_down)
{
	give_work();
	sleep(1); /* the driver has seen how far the doorbells are */
	fault_file_set("link_down", "value", 3000000000);
	fault_arm("link_down", 1);
	await_end(POLLHUP);
	uevents_expect_rung("none", "gone");
	expect_gone();
	sleep(4);
	expect_gone();
	bind_anew();
	expect_gone();
}
END_TEST

/* How far a mapped queue was rung the driver sees when its program goes to sleep, either way. */
START_TEST(test_link_down_between_looks)
{
	struct embeng_accel_wait wait = {.queue = rings[1].made.queue, .count = 1};
	struct pollfd watched = {.fd = fd, .events = POLLIN};

	accel_write(PARAMETERS "hang_ms", "10000");
	sleep(1); /* the next look of its own is seconds away */
	give_work();
	if (_i)
		ck_assert_int_ge(poll(&watched, 1, 0), 0);
	else
		ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_WAIT, &wait), -ETIME);
	fault_file_set("link_down", "value", 4000000000);
	fault_arm("link_down", 1);
	while (accel_header(&rings[1])->dead == 0)
		usleep(1000);
	uevents_expect_rung("none", "gone");
	expect_gone();
	sleep(5);
	bind_anew();
}
END_TEST

/* A device that was given up still says why: by its state, and by its registers. */
static void expect_described(void)
{
	struct embeng_accel_device device;
	struct embeng_accel_query arg = {.what = EMBENG_ACCEL_QUERY_DEVICE,
					 .size = sizeof(device),
					 .data = (uintptr_t)&device};
	const volatile uint32_t *page;

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_QUERY, &arg), 0);
	ck_assert(device.flags & EMBENG_ACCEL_WEDGED);
	ck_assert_uint_eq(device.boot_state, EMBENG_BOOT_FAILED);
	ck_assert_uint_ne(device.boot_error, 0);
	page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, (off_t)device.registers);
	ck_assert_ptr_ne((const void *)page, MAP_FAILED);
	ck_assert_uint_eq(page[EMBENG_REG_MAGIC / 4], EMBENG_DEVICE_MAGIC);
	ck_assert_uint_ne(page[EMBENG_REG_BOOT_STATE / 4], EMBENG_BOOT_RUNNING);
	munmap((void *)page, 4096);
}

/* Not even after a reset of the function. */
START_TEST(test_wedged)
{
	struct embeng_accel_reset arg = {.rung = EMBENG_ACCEL_RESET_ENGINE};

	give_work();
	fault_arm("firmware_refuses", 2);
	REFUSED(ENODEV, fd, DRM_IOCTL_EMBENG_RESET);
	uevents_expect_rung("wedged", "request");
	await_end(POLLHUP);
	expect_gone();
	ck_assert_uint_eq(accel_header(&rings[0])->dead, 1);
	expect_described();
	bind_anew();
	expect_gone();
	REFUSED(ENODEV, fd, DRM_IOCTL_EMBENG_QUERY);
}
END_TEST

START_TEST(test_slow_firmware)
{
	struct embeng_accel_reset arg = {.rung = EMBENG_ACCEL_RESET_ENGINE};

	fault_file_set("firmware_slow", "value", 2000000000);
	fault_arm("firmware_slow", 1);
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_RESET, &arg), 0);
	uevents_expect_rung("engine", "request");
	expect_lost(EMBENG_ACCEL_CAUSE_REQUEST, EMBENG_ACCEL_RESET_ENGINE);
	accel_works();
}
END_TEST

/* It never comes up after the first reset, but after the second. */
START_TEST(test_dead_firmware)
{
	struct embeng_accel_reset arg = {.rung = EMBENG_ACCEL_RESET_ENGINE};

	fault_arm("firmware_dies", 1);
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_RESET, &arg), 0);
	uevents_expect_rung("function", "request");
	expect_lost(EMBENG_ACCEL_CAUSE_REQUEST, EMBENG_ACCEL_RESET_FUNCTION);
	accel_works();
}
END_TEST

/* The PCI core resets the function once; that it has to be done again is the driver's to see. */
START_TEST(test_dead_firmware_after_a_reset_of_the_core)
{
	fault_arm("firmware_dies", 1);
	accel_write("/sys/bus/pci/devices/" ADDRESS "/reset", "1");
	ck_assert_uint_eq(accel_resets(fd).wedged, 0);
	ck_assert_uint_eq(accel_resets(fd).functions, before.functions + 2);
	ck_assert_uint_eq(accel_state(fd).status, EMBENG_ACCEL_CONTEXT_LOST);
	accel_works();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_heartbeat_stops);
	tcase_add_test(tcase, test_engine_dies);
	tcase_add_test(tcase, test_memory_error);
	tcase_add_loop_test(tcase, test_failed_command, 0, 2);
	tcase_add_loop_test(tcase, test_queue_does_not_end, 0, 2);
	tcase_add_test(tcase, test_link_blinks);
	tcase_add_test(tcase, test_link_down);
	tcase_add_loop_test(tcase, test_link_down_between_looks, 0, 2);
	tcase_add_test(tcase, test_wedged);
	tcase_add_test(tcase, test_slow_firmware);
	tcase_add_test(tcase, test_dead_firmware);
	tcase_add_test(tcase, test_dead_firmware_after_a_reset_of_the_core);
}

int main(void)
{
	return suite_main("recovery", add);
}
