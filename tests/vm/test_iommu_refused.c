// SPDX-License-Identifier: MIT
/* A function behind an IOMMU refuses physical addresses. */
#include "../unit/support/suite.h"
#include "raw_function.h"

START_TEST(a_physical_address_is_refused)
{
	struct raw_function *b = raw_open();

	ck_assert_uint_eq(raw_boot(b), EMBENG_BOOT_FAILED);
	ck_assert_uint_eq(raw_read32(b, EMBENG_REG_BOOT_ERROR), EMBENG_BOOT_ERROR_ADDRESS);
	raw_close(b);
}
END_TEST

START_TEST(an_address_that_nobody_mapped_is_refused)
{
	struct raw_function *b = raw_open();

	ck_assert_uint_eq(raw_boot_from(b, b->address | 1ull << 45, 4096), EMBENG_BOOT_FAILED);
	ck_assert_uint_eq(raw_read32(b, EMBENG_REG_BOOT_ERROR), EMBENG_BOOT_ERROR_ADDRESS);
	raw_close(b);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, a_physical_address_is_refused);
	tcase_add_test(tcase, an_address_that_nobody_mapped_is_refused);
}

int main(void)
{
	return suite_main("iommu_refused", add);
}
