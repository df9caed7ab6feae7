// SPDX-License-Identifier: MIT
/* Memory of the driver's device that other threads, or other drivers, have a hand in. */
#include <unistd.h>

#include "accel_help.h"
#include "suite.h"

START_TEST(an_exporter_that_refuses)
{
	struct embeng *e;
	int fd;

	fake_install();
	e = open_on(FAKE_NODE, 1);
	fd = fake_foreign_dmabuf();
	fake.fails = DRM_IOCTL_PRIME_FD_TO_HANDLE;
	fake.error = -ENODEV;
	ck_assert_ptr_null(embeng_buffer_import(e, fd, NULL));
	expect_text("no dma-buf that this device can reach");
	fake.error = -EOPNOTSUPP;
	ck_assert_ptr_null(embeng_buffer_import(e, fd, NULL));
	expect_text("exporter");
	expect_text("swiotlb");
	fake.fails = 0;
	/* Neither was the device's end. */
	train_step(e, 0);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	fake_lose(-ENODEV);
	ck_assert_ptr_null(embeng_buffer_import(e, fd, NULL));
	expect_text("the device is gone");
	close(fd);
	embeng_close(e);
	nothing_left();
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_test(tc, an_exporter_that_refuses);
}

int main(void)
{
	return suite_main("accel_memory", add);
}
