// SPDX-License-Identifier: MIT
/* Two devices: one can be pulled out whatever programs do with the other. */
#include "../unit/support/suite.h"
#include "accel.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define DRIVER "/sys/bus/pci/drivers/embeng/"
#define NEIGHBOUR "0eb1:00:00.0"
#define PATIENCE_S 20

static void *sleep_for_ever(void *arg)
{
	const int *fd = arg;
	struct embeng_accel_wait wait = {
		.queue = EMBENG_ACCEL_ANY_QUEUE,
		.events = accel_state(*fd).events,
		.deadline_ns = INT64_MAX,
	};

	ck_assert_int_eq(accel_call(*fd, DRM_IOCTL_EMBENG_WAIT, &wait), 0);
	return NULL;
}

static void tell_driver(const char *file, const char *address)
{
	int fd = open(file, O_WRONLY);

	_exit(write(fd, address, strlen(address)) < 0);
}

/* In a process of its own: it may never come back. */
static bool in_time(const char *file, const char *address)
{
	pid_t child = fork();
	int status;

	if (!child)
		tell_driver(file, address);
	for (int i = 0; i < PATIENCE_S * 100; i++) {
		if (waitpid(child, &status, WNOHANG) == child)
			return !status;
		usleep(10000);
	}
	return false;
}

START_TEST(a_sleeper_keeps_no_other_device)
{
	int fd = accel_open();
	pthread_t sleeper;
	bool unbound;
	struct ring ring;

	accel_context(fd);
	ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0);
	ck_assert_int_eq(pthread_create(&sleeper, NULL, sleep_for_ever, &fd), 0);
	usleep(200000);
	unbound = in_time(DRIVER "unbind", NEIGHBOUR);
	/* Ends the sleep in either case. */
	accel_give(fd, &ring, (struct embeng_cmd){.opcode = EMBENG_OP_NOP});
	pthread_join(sleeper, NULL);
	ck_assert(unbound);
	ck_assert(access("/sys/bus/pci/devices/" NEIGHBOUR "/accel", F_OK));
	ck_assert(in_time(DRIVER "bind", NEIGHBOUR));
	close(fd);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, a_sleeper_keeps_no_other_device);
}

int main(void)
{
	return suite_main("two_devices", add);
}
