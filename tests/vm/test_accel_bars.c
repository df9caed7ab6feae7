// SPDX-License-Identifier: MIT
/*
 * Mappings of doorbells and registers while the device is reset: programs see the device as it runs,
 * or scratch pages, and never a function that is in a reset; and they go on without a fault.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/support/suite.h"
#include "accel.h"
#include "embeng_regs.h"

#define FUNCTION "/sys/bus/pci/devices/0eb0:00:00.0/"
#define MARK 0x5ca1ab1eu

static int fd;
static struct ring ring;
static volatile uint32_t *registers;

static void setup(void)
{
	fd = accel_open();
	accel_context(fd);
	ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, EMBENG_ACCEL_QUEUE_MAPPED);
	registers = accel_map(fd, accel_device(fd).registers, 4096, PROT_READ);
}

static void teardown(void)
{
	munmap((void *)registers, 4096);
	close(fd);
}

static int reset_by_core(void)
{
	accel_write(FUNCTION "reset", "1");
	return 0;
}

static int reset_by_ioctl(uint32_t rung)
{
	struct embeng_accel_reset arg = {.rung = rung};
	int other = accel_open();

	return accel_call(other, DRM_IOCTL_EMBENG_RESET, &arg);
}

static int reset_engine(void)
{
	return reset_by_ioctl(EMBENG_ACCEL_RESET_ENGINE);
}

static int reset_function(void)
{
	return reset_by_ioctl(EMBENG_ACCEL_RESET_FUNCTION);
}

static int (*const ways[])(void) = {reset_by_core, reset_engine, reset_function};

#define WAYS ((int)(sizeof(ways) / sizeof(ways[0])))

/* Starts a reset. Return: the process that makes it. */
static pid_t start_reset(int way)
{
	pid_t child = fork();

	ck_assert_int_ge(child, 0);
	if (!child)
		_exit(ways[way]() != 0);
	return child;
}

/* Return: true if what was read is scratch. */
static bool look_at_registers(void)
{
	uint32_t state = registers[EMBENG_REG_BOOT_STATE / 4];
	uint32_t magic = registers[EMBENG_REG_MAGIC / 4];

	ck_assert_msg(!state || state == EMBENG_BOOT_RUNNING, "BOOT_STATE %u", state);
	ck_assert_msg(!magic || magic == EMBENG_DEVICE_MAGIC, "MAGIC %#x", magic);
	return !state;
}

START_TEST(test_registers)
{
	bool scratch = false;
	pid_t child;
	int status;

	ck_assert(!look_at_registers());
	child = start_reset(_i);
	while (waitpid(child, &status, WNOHANG) != child)
		scratch |= look_at_registers();
	ck_assert_int_eq(status, 0);
	ck_assert(scratch);
	/* And the device again, from the next access on. */
	ck_assert(!look_at_registers());
	ck_assert_uint_eq(registers[EMBENG_REG_MAGIC / 4], EMBENG_DEVICE_MAGIC);
}
END_TEST

/* A context that is lost has no doorbell any more: it writes to memory of its own. */
START_TEST(test_doorbell)
{
	volatile uint32_t *bell = (volatile uint32_t *)ring.doorbell;
	struct ring next;
	int status, other;
	pid_t child = start_reset(_i);

	while (waitpid(child, &status, WNOHANG) != child)
		bell[0]++;
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(accel_state(fd).status, EMBENG_ACCEL_CONTEXT_LOST);
	for (uint32_t i = 0; i < 4; i++)
		bell[i] = MARK;
	for (uint32_t i = 0; i < 4; i++)
		ck_assert_uint_eq(bell[i], MARK);
	/* Another context works, and its doorbell is not that page. */
	other = accel_open();
	accel_context(other);
	next = accel_ring(other, EMBENG_QUEUE_TRANSFER, EMBENG_ACCEL_QUEUE_MAPPED);
	ck_assert_uint_ne(next.doorbell->sq_tail, MARK);
	accel_push(&next, (struct embeng_cmd){.cookie = 5});
	ck_assert_uint_eq(accel_take(other, &next).cookie, 5);
	ck_assert_uint_eq(bell[0], MARK);
	close(other);
}
END_TEST

/* A mapping that is made during a reset shows scratch, too, and the device behind it. */
START_TEST(test_mapping_during_a_reset)
{
	uint64_t offset = accel_device(fd).registers;
	pid_t child = start_reset(_i);
	int status;

	while (waitpid(child, &status, WNOHANG) != child) {
		munmap((void *)registers, 4096);
		registers = accel_map(fd, offset, 4096, PROT_READ);
		look_at_registers();
	}
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(registers[EMBENG_REG_MAGIC / 4], EMBENG_DEVICE_MAGIC);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, test_registers, 0, WAYS);
	tcase_add_loop_test(tcase, test_doorbell, 0, WAYS);
	tcase_add_loop_test(tcase, test_mapping_during_a_reset, 0, WAYS);
}

int main(void)
{
	return suite_main("bars", add);
}
