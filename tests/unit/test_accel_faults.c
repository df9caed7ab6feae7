// SPDX-License-Identifier: MIT
/* Commands that fail, end late or end badly, on queues of the driver. */
#define _GNU_SOURCE /* pthread_timedjoin_np */
#include <pthread.h>
#include <time.h>

#include "accel_help.h"
#include "suite.h"

#define VALIDATED FAKE_NODE ",path=validated"
#define SOON_SECONDS 20

static struct embeng *open_validated(void)
{
	fake_install();
	return open_on(VALIDATED, 1);
}

static void ends_soon(pthread_t thread)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SOON_SECONDS;
	ck_assert_msg(!pthread_timedjoin_np(thread, NULL, &until), "it hangs");
}

static void *train(void *e)
{
	train_step(e, 0);
	return NULL;
}

/* Updates that come behind it are not held back for ever. */
START_TEST(a_lookup_that_was_not_submitted)
{
	struct embeng *e = open_validated();
	pthread_t thread;

	fake.fails = DRM_IOCTL_EMBENG_SUBMIT;
	fake.error = -ENOMEM;
	ck_assert_int_eq(enqueue_bags(e, EMBENG_INFERENCE, 0, -1), -ENOMEM);
	fake.fails = 0;
	ck_assert_int_eq(pthread_create(&thread, NULL, train, e), 0);
	ends_soon(thread);
	embeng_close(e);
	nothing_left();
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_test(tc, a_lookup_that_was_not_submitted);
}

int main(void)
{
	return suite_main("accel_faults", add);
}
