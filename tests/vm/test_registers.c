// SPDX-License-Identifier: MIT
/* A walk over all registers of the function, as EMBENG_REGISTER_TABLE has them. */
#include "../unit/support/suite.h"
#include "raw_function.h"

enum writer { DEVICE, DRIVER };

static const struct {
	const char *name;
	uint32_t offset, bytes;
	enum writer writer;
	uint64_t reset;
} registers[] = {
#define ENTRY(name, offset, bytes, writer, reset, words) {#name, offset, bytes, writer, reset},
	EMBENG_REGISTER_TABLE(ENTRY)
#undef ENTRY
};

#define COUNT (sizeof(registers) / sizeof(registers[0]))
#define AREA EMBENG_CORE_BUSY(0) /* behind the last register */

static uint64_t read_whole(struct raw_function *b, size_t k)
{
	return registers[k].bytes == 4 ? raw_read32(b, registers[k].offset)
				       : raw_read64(b, registers[k].offset);
}

static struct raw_function *fresh(void)
{
	struct raw_function *b = raw_open();

	ck_assert_int_eq(raw_sysfs(b, "reset", "1"), 0);
	raw_await(b, EMBENG_REG_BOOT_STATE, EMBENG_BOOT_ROM);
	return b;
}

/* These move in a device that has no firmware yet, or are the product's. */
static bool moves(uint32_t offset)
{
	switch (offset) {
	case EMBENG_REG_BOOT_STATE:
	case EMBENG_REG_HEARTBEAT:
	case EMBENG_REG_HEARTBEAT_MS:
	case EMBENG_REG_TEMPERATURE:
	case EMBENG_REG_TEMPERATURE_LIMIT:
	case EMBENG_REG_POWER:
	case EMBENG_REG_CLOCK:
	case EMBENG_REG_CLOCK_LIMIT:
	case EMBENG_REG_FIRMWARE_MINIMUM:
		return true;
	}
	return false;
}

START_TEST(a_reset_leaves_the_values_of_the_table)
{
	struct raw_function *b = fresh();

	for (size_t k = 0; k < COUNT; k++)
		if (!moves(registers[k].offset))
			ck_assert_msg(read_whole(b, k) == registers[k].reset, "%s: %#llx",
				      registers[k].name, (unsigned long long)read_whole(b, k));
	raw_close(b);
}
END_TEST

START_TEST(nothing_is_between_them)
{
	struct raw_function *b = fresh();
	uint8_t taken[AREA] = {0};

	for (size_t k = 0; k < COUNT; k++) {
		ck_assert_uint_eq(registers[k].offset % registers[k].bytes, 0);
		for (uint32_t i = 0; i < registers[k].bytes; i++)
			ck_assert_msg(!taken[registers[k].offset + i]++, "%s", registers[k].name);
	}
	for (uint32_t offset = 0; offset < AREA; offset += 4)
		if (!taken[offset])
			ck_assert_msg(!raw_read32(b, offset), "offset %#x: %#x", offset,
				      raw_read32(b, offset));
	raw_close(b);
}
END_TEST

static void keeps(struct raw_function *b, size_t k, uint64_t value)
{
	if (registers[k].bytes == 4) {
		raw_write32(b, registers[k].offset, (uint32_t)value);
		value = (uint32_t)value;
	} else {
		raw_write64(b, registers[k].offset, value);
		ck_assert_uint_eq(raw_read32(b, registers[k].offset), (uint32_t)value);
		ck_assert_uint_eq(raw_read32(b, registers[k].offset + 4), value >> 32);
	}
	ck_assert_msg(read_whole(b, k) == value, "%s: %#llx", registers[k].name,
		      (unsigned long long)read_whole(b, k));
}

/* All but the sequences, which act. */
START_TEST(the_drivers_registers_keep_every_bit)
{
	struct raw_function *b = fresh();
	uint32_t walked = 0;

	for (size_t k = 0; k < COUNT; k++) {
		if (registers[k].writer == DEVICE ||
		    registers[k].offset == EMBENG_REG_BOOT_SEQUENCE ||
		    registers[k].offset == EMBENG_REG_CONTROL_SEQUENCE)
			continue;
		for (uint32_t bit = 0; bit < registers[k].bytes * 8; bit++)
			keeps(b, k, 1ull << bit);
		keeps(b, k, UINT64_MAX);
		keeps(b, k, 0x0123456789abcdef + k);
		walked++;
	}
	ck_assert_uint_eq(walked, 9);
	/* None reached into another's place. */
	for (size_t k = 0; k < COUNT; k++)
		if (registers[k].writer == DEVICE && !moves(registers[k].offset))
			ck_assert_msg(read_whole(b, k) == registers[k].reset, "%s",
				      registers[k].name);
	raw_close(b);
}
END_TEST

START_TEST(capabilities_come_with_firmware)
{
	struct raw_function *b = fresh();

	ck_assert_uint_eq(raw_boot(b), EMBENG_BOOT_RUNNING);
	for (size_t k = 0; k < COUNT; k++)
		if (registers[k].offset >= EMBENG_REG_FEATURES &&
		    registers[k].offset <= EMBENG_REG_DOORBELL_STRIDE)
			ck_assert_msg(read_whole(b, k) != 0, "%s", registers[k].name);
	ck_assert_uint_eq(raw_read32(b, EMBENG_REG_ROW_DTYPES) & 1, 1);
	ck_assert_uint_ne(raw_read64(b, EMBENG_REG_FIRMWARE_VERSION), 0);
	ck_assert_uint_eq(raw_read64(b, EMBENG_REG_TABLE_MEMORY_USED), 0);
	raw_close(b);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, a_reset_leaves_the_values_of_the_table);
	tcase_add_test(tcase, nothing_is_between_them);
	tcase_add_test(tcase, the_drivers_registers_keep_every_bit);
	tcase_add_test(tcase, capabilities_come_with_firmware);
}

int main(void)
{
	return suite_main("registers", add);
}
