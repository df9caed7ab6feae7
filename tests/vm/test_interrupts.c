// SPDX-License-Identifier: MIT
/* The emulator's interrupts, counted at the driver's handler. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../unit/support/suite.h"
#include "accel.h"
#include "fault_file.h"

#define SETTLE_US 200000

static int fd;
static struct ring ring;

/* Counts the interrupts of all vectors of the emulator on the first two processors. */
static unsigned long interrupts(void)
{
	FILE *file = fopen("/proc/interrupts", "r");
	unsigned long sum = 0, one, two;
	char line[256];

	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file)) {
		if (strstr(line, "EMBENG-PCI-MSIX") &&
		    sscanf(line, " %*u: %lu %lu", &one, &two) == 2)
			sum += one + two;
	}
	fclose(file);
	return sum;
}

static void setup(void)
{
	fd = accel_open();
	accel_context(fd);
	ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, EMBENG_ACCEL_QUEUE_MAPPED);
	usleep(SETTLE_US);
}

static void teardown(void)
{
	accel_ring_close(fd, &ring);
	close(fd);
}

/* Interrupts that one command brings which ends after the ring was armed. */
static unsigned long of_one_command(void)
{
	unsigned long before = interrupts();

	ring.doorbell->arm = ring.cq_head;
	EMBENG_STORE_RELEASE(&ring.doorbell->armed, ring.doorbell->armed + 1);
	accel_push(&ring, (struct embeng_cmd){.opcode = EMBENG_OP_NOP});
	/* Not by waiting in the kernel, which may arm the ring as well. */
	while (embeng_observe_cq_tail(&accel_header(&ring)->cq_tail) == ring.cq_head)
		usleep(100);
	usleep(SETTLE_US);
	accel_take(fd, &ring);
	return interrupts() - before;
}

START_TEST(an_armed_ring_interrupts_once)
{
	ck_assert_uint_eq(of_one_command(), 1);
	ck_assert_uint_eq(of_one_command(), 1);
}
END_TEST

START_TEST(a_lost_interrupt_does_not_come)
{
	fault_arm("lose_interrupt", 1);
	ck_assert_uint_eq(of_one_command(), 0);
	ck_assert_uint_eq(fault_get("lose_interrupt", "count"), 0);
	ck_assert_uint_eq(of_one_command(), 1);
}
END_TEST

START_TEST(a_repeated_interrupt_comes_again_without_cause)
{
	fault_file_set("repeat_interrupt", "value", 5);
	fault_arm("repeat_interrupt", 1);
	ck_assert_uint_eq(of_one_command(), 6);
	ck_assert_uint_eq(of_one_command(), 1);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, an_armed_ring_interrupts_once);
	tcase_add_test(tcase, a_lost_interrupt_does_not_come);
	tcase_add_test(tcase, a_repeated_interrupt_comes_again_without_cause);
}

int main(void)
{
	return suite_main("interrupts", add);
}
