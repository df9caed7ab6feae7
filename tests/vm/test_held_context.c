// SPDX-License-Identifier: MIT
/*
 * Holds a context with a queue until its standard input ends, and then sees whether both still work.
 * Says "held" once they are there. A reset of the device in between makes it fail.
 */
#include <stdio.h>
#include <unistd.h>

#include "../unit/support/suite.h"
#include "accel.h"
#include "flood.h"

START_TEST(test_held)
{
	int fd = accel_open();
	struct ring ring;
	char byte;

	accel_context(fd);
	ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, EMBENG_ACCEL_QUEUE_MAPPED);
	printf("held\n");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	accel_push(&ring, (struct embeng_cmd){.cookie = 6});
	ck_assert_uint_eq(accel_take(fd, &ring).cookie, 6);
	close(fd);
}
END_TEST

static void add(TCase *tc)
{
	tcase_set_timeout(tc, 600);
	tcase_add_test(tc, test_held);
}

int main(void)
{
	return suite_main("held_context", add);
}
