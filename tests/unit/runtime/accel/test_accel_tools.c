// SPDX-License-Identifier: MIT
/* Registers and reset of a device behind the driver. */
#include "fake_driver.h"
#include "session_help.h"

static void put(uint32_t offset, uint64_t value, size_t bytes)
{
	memcpy(fake.registers + offset, &value, bytes);
}

static uint64_t get(const char *page, uint32_t offset, size_t bytes)
{
	uint64_t value = 0;

	memcpy(&value, page + offset, bytes);
	return value;
}

static void unbind(void)
{
	fake.functions[0].node[0] = fake.functions[0].driver[0] = 0;
}

static void install(void)
{
	fake_install();
	put(EMBENG_REG_MAGIC, EMBENG_DEVICE_MAGIC, 4);
	put(EMBENG_REG_COUNT_IDS, 1ull << 40, 8);
	fake.device.registers = (uintptr_t)fake.registers;
}

static void expect_page(const char *name)
{
	char page[EMBENG_REGISTERS_BYTES];

	ck_assert_int_eq(embeng_registers_read(name, page), 0);
	ck_assert_uint_eq(get(page, EMBENG_REG_MAGIC, 4), EMBENG_DEVICE_MAGIC);
	ck_assert(get(page, EMBENG_REG_COUNT_IDS, 8) == 1ull << 40);
	ck_assert_int_eq(fake.mappings, 0);
	ck_assert_int_eq(fake.files, 0);
}

START_TEST(reads_registers)
{
	char page[EMBENG_REGISTERS_BYTES] = "as it was";

	install();
	expect_page(FAKE_NODE);
	expect_page(NULL);
	fake.device.boot_state = EMBENG_BOOT_FAILED;
	expect_page(FAKE_NODE);
	unbind();
	expect_page("pci:" FAKE_ADDRESS);
	fake.open_error = -EACCES;
	ck_assert_int_eq(embeng_registers_read("pci:" FAKE_ADDRESS, page), -EPERM);
	expect_text("run this as root");
	install();
	fake.device.registers = 0;
	ck_assert_int_eq(embeng_registers_read(FAKE_NODE, page), -EPERM);
	expect_text("CAP_SYS_RAWIO");
	ck_assert_str_eq(page, "as it was");
	ck_assert_int_eq(embeng_registers_read(FAKE_NODE, NULL), -EINVAL);
	ck_assert_int_eq(embeng_registers_read("hard", page), -ENODEV);
	ck_assert_int_eq(embeng_registers_read("soft:cores=1", page), 0);
	ck_assert_uint_eq(get(page, EMBENG_REG_CORES, 4), 1);
	ck_assert_int_eq(fake.files, 0);
}
END_TEST

/* The firmware was refused: there is a file of the function, but no node. */
START_TEST(reads_registers_of_what_the_driver_did_not_take)
{
	install();
	unbind();
	fake.refusal = "firmware -74: refused at byte 0: is no image";
	expect_page("pci:" FAKE_ADDRESS);
	expect_page(NULL);
	ck_assert_int_eq(embeng_register_write(NULL, EMBENG_REG_CONTROL, 1), 0);
	ck_assert_uint_eq(get(fake.registers, EMBENG_REG_CONTROL, 4), 1);
}
END_TEST

/* Nobody has asked for the soft device. */
START_TEST(looks_at_no_other_device)
{
	char page[EMBENG_REGISTERS_BYTES] = "as it was";

	install();
	fake.function_count = 0;
	ck_assert_int_eq(embeng_registers_read(NULL, page), -ENODEV);
	expect_text("named, \"soft\"");
	ck_assert_str_eq(page, "as it was");
	ck_assert_int_eq(embeng_register_write(NULL, EMBENG_REG_CONTROL, 1), -ENODEV);
	ck_assert_int_eq(embeng_device_reset(NULL, EMBENG_RESET_ENGINE), -ENODEV);
}
END_TEST

START_TEST(reads_registers_of_a_wedged_device)
{
	install();
	fake.device.flags |= EMBENG_ACCEL_WEDGED;
	fake.device.boot_state = EMBENG_BOOT_FAILED;
	fake.device.boot_error = EMBENG_BOOT_ERROR_HASH;
	expect_page(FAKE_NODE);
	ck_assert_int_eq(embeng_device_reset(FAKE_NODE, EMBENG_RESET_FUNCTION), -EHOSTDOWN);
	expect_text("did not come back from a reset (firmware failed: ");
	expect_text("echo " FAKE_ADDRESS " >/sys/bus/pci/drivers/embeng/unbind");
	ck_assert_uint_eq(fake.rung, 0);
}
END_TEST

START_TEST(writes_a_register)
{
	install();
	unbind();
	ck_assert_int_eq(embeng_register_write("pci:" FAKE_ADDRESS, EMBENG_REG_CONTROL, 1), 0);
	ck_assert_uint_eq(get(fake.registers, EMBENG_REG_CONTROL, 4), 1);
	ck_assert_uint_eq(get(fake.registers, EMBENG_REG_CONTROL_SEQUENCE, 4), 0);
	ck_assert_int_eq(
		embeng_register_write("pci:" FAKE_ADDRESS, EMBENG_REG_BOOT_ADDRESS, 1ull << 36), 0);
	ck_assert(get(fake.registers, EMBENG_REG_BOOT_ADDRESS, 8) == 1ull << 36);
	ck_assert_int_eq(embeng_register_write("pci:" FAKE_ADDRESS, EMBENG_REG_CONTROL, 1ull << 32),
			 -ERANGE);
	ck_assert_int_eq(embeng_register_write("pci:" FAKE_ADDRESS, EMBENG_REG_MAGIC, 1), -EINVAL);
	ck_assert_int_eq(embeng_register_write("pci:" FAKE_ADDRESS, 0x7fc, 1), -EINVAL);
	expect_text("0x7fc: no register");
	ck_assert_int_eq(embeng_register_write("soft", EMBENG_REG_CONTROL, 1), -ENOTSUP);
	fake.no_write = true;
	ck_assert_int_eq(embeng_register_write("pci:" FAKE_ADDRESS, EMBENG_REG_CONTROL, 7),
			 -ENOTSUP);
	expect_text("unbind the driver");
	ck_assert_uint_eq(get(fake.registers, EMBENG_REG_CONTROL, 4), 1);
	ck_assert_int_eq(fake.mappings, 0);
}
END_TEST

START_TEST(resets)
{
	install();
	ck_assert_int_eq(embeng_device_reset(FAKE_NODE, EMBENG_RESET_ENGINE), 0);
	ck_assert_uint_eq(fake.rung, EMBENG_ACCEL_RESET_ENGINE);
	fake.device.boot_state = EMBENG_BOOT_FAILED;
	ck_assert_int_eq(embeng_device_reset(FAKE_NODE, EMBENG_RESET_FUNCTION), 0);
	ck_assert_uint_eq(fake.rung, EMBENG_ACCEL_RESET_FUNCTION);
	fake.fails = DRM_IOCTL_EMBENG_RESET;
	fake.error = -EACCES;
	ck_assert_int_eq(embeng_device_reset(FAKE_NODE, EMBENG_RESET_ENGINE), -EACCES);
	expect_text("CAP_SYS_ADMIN");
	fake.error = -EIO;
	ck_assert_int_eq(embeng_device_reset(FAKE_NODE, EMBENG_RESET_ENGINE), -EIO);
	expect_text("resetting");
	ck_assert_int_eq(embeng_device_reset(FAKE_NODE, (enum embeng_reset)2), -EINVAL);
	ck_assert_int_eq(embeng_device_reset("soft", EMBENG_RESET_ENGINE), -ENOTSUP);
	unbind();
	ck_assert_int_eq(embeng_device_reset("pci:" FAKE_ADDRESS, EMBENG_RESET_ENGINE), -ENXIO);
	ck_assert_int_eq(fake.files, 0);
}
END_TEST

RUN_SUITE("accel_tools", reads_registers, reads_registers_of_what_the_driver_did_not_take,
	  looks_at_no_other_device, reads_registers_of_a_wedged_device, writes_a_register, resets)
