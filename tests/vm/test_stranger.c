// SPDX-License-Identifier: MIT
/* Behind its IOMMU the function knows no physical address. */
#include "../unit/support/suite.h"
#include "bare.h"

START_TEST(a_physical_address_is_refused)
{
	struct bare *b = bare_open();

	ck_assert_uint_eq(bare_boot(b), EMBENG_BOOT_FAILED);
	ck_assert_uint_eq(bare_read32(b, EMBENG_REG_BOOT_ERROR), EMBENG_BOOT_ERROR_ADDRESS);
	bare_close(b);
}
END_TEST

START_TEST(an_address_that_nobody_mapped_is_refused)
{
	struct bare *b = bare_open();

	ck_assert_uint_eq(bare_boot_from(b, b->address | 1ull << 45, 4096), EMBENG_BOOT_FAILED);
	ck_assert_uint_eq(bare_read32(b, EMBENG_REG_BOOT_ERROR), EMBENG_BOOT_ERROR_ADDRESS);
	bare_close(b);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, a_physical_address_is_refused);
	tcase_add_test(tcase, an_address_that_nobody_mapped_is_refused);
}

int main(void)
{
	return suite_main("stranger", add);
}
