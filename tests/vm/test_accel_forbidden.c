// SPDX-License-Identifier: MIT
/* With the parameter mapped_queues=0 the driver refuses to map a queue. */
#include "../unit/support/suite.h"
#include "accel.h"

#include <unistd.h>

START_TEST(test_mapped_queues_are_forbidden)
{
	int fd = accel_open();
	struct embeng_accel_queue_create arg = accel_queue(EMBENG_QUEUE_TRANSFER,
							   EMBENG_ACCEL_QUEUE_MAPPED);

	accel_context(fd);
	ck_assert(!(accel_device(fd).flags & EMBENG_ACCEL_CAN_MAP_QUEUES));
	for (uint32_t kind = EMBENG_QUEUE_INPUT; kind <= EMBENG_QUEUE_TRANSFER; kind++) {
		arg.kind = kind;
		REFUSED(EOPNOTSUPP, fd, DRM_IOCTL_EMBENG_QUEUE_CREATE);
	}
	ck_assert_uint_eq(accel_state(fd).queues, 0);
	close(fd);
}
END_TEST

START_TEST(test_validated_queues_are_not)
{
	int fd = accel_open();
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_NOP, .cookie = 6};
	struct embeng_accel_submit arg = {
		.count = 1, .stride = sizeof(cmd), .commands = (uintptr_t)&cmd};
	struct ring ring;

	accel_context(fd);
	ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0);
	arg.queue = ring.made.queue;
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_SUBMIT, &arg), 0);
	ck_assert_uint_eq(accel_take(fd, &ring).cookie, 6);
	close(fd);
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_test(tc, test_mapped_queues_are_forbidden);
	tcase_add_test(tc, test_validated_queues_are_not);
}

int main(void)
{
	return suite_main("forbidden", add);
}
