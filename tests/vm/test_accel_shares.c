// SPDX-License-Identifier: MIT
/*
 * Shares of a device: as much as one user may have of contexts, queues and memory, at the limit and
 * one beyond; two users who take all that they can, and an administrator who works all the same.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/support/suite.h"
#include "accel.h"

#define PARAMETERS "/sys/module/embeng/parameters/"
#define MIB (1u << 20)

static struct embeng_caps caps;

static void setup(void)
{
	struct rlimit files = {4096, 4096};
	struct embeng_accel_query arg = {
		.what = EMBENG_ACCEL_QUERY_CAPS, .size = sizeof(caps), .data = (uintptr_t)&caps};
	char path[64];
	int fd = accel_open_path(path, sizeof(path));

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_QUERY, &arg), 0);
	close(fd);
	ck_assert_int_eq(chmod(path, 0666), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
}

static void teardown(void)
{
	accel_write(PARAMETERS "contexts_per_user", "0");
	accel_write(PARAMETERS "queues_per_user", "0");
	accel_write(PARAMETERS "memory_per_user_mib", "0");
}

/* One more of a thing. Return: 0 or -errno. */
typedef int take(int fd);

static int take_context(int fd)
{
	struct embeng_accel_context_create arg = {0};

	(void)fd;
	return accel_call(accel_open(), DRM_IOCTL_EMBENG_CONTEXT_CREATE, &arg);
}

static int take_queue(int fd)
{
	struct embeng_accel_queue_create arg = accel_queue(EMBENG_QUEUE_TRANSFER, 0);

	return accel_call(fd, DRM_IOCTL_EMBENG_QUEUE_CREATE, &arg);
}

static int take_memory(int fd)
{
	struct embeng_accel_bo_create arg = {.size = MIB / 4};

	return accel_call(fd, DRM_IOCTL_EMBENG_BO_CREATE, &arg);
}

struct thing {
	take *take;
	const char *parameter;
	uint32_t unit; /* takes in one unit of the parameter */
};

static const struct thing things[] = {
	{take_context, PARAMETERS "contexts_per_user", 1},
	{take_queue, PARAMETERS "queues_per_user", 1},
	{take_memory, PARAMETERS "memory_per_user_mib", 4},
};

#define THINGS ((int)(sizeof(things) / sizeof(things[0])))

/* The result of a user who took as much as there was. */
struct taken {
	uint32_t count;
	int error; /* with which the next one was refused */
};

/* A user who takes a thing up to @most times, says how often it was given, and holds it all. */
static pid_t start_user(uid_t uid, take *take, uint32_t most, struct taken *out)
{
	struct taken taken = {0};
	int fd, said[2];
	pid_t child;

	ck_assert_int_eq(pipe(said), 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (!child) {
		ck_assert_int_eq(setgid(uid), 0);
		ck_assert_int_eq(setuid(uid), 0);
		fd = accel_open();
		if (take != take_context)
			accel_context(fd);
		while (taken.count < most && !(taken.error = take(fd)))
			taken.count++;
		ck_assert_int_eq(write(said[1], &taken, sizeof(taken)), sizeof(taken));
		pause();
		_exit(0);
	}
	ck_assert_int_eq(read(said[0], out, sizeof(*out)), sizeof(*out));
	close(said[0]);
	close(said[1]);
	return child;
}

static void end_user(pid_t child)
{
	kill(child, SIGKILL);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

/* The parameter's value exactly, and all of it again when the user has gone. */
START_TEST(test_limit_of_a_user)
{
	const struct thing *thing = &things[_i];
	struct taken taken, more;
	pid_t child, other;

	accel_write(thing->parameter, "3");
	for (int round = 0; round < 2; round++) {
		child = start_user(1000, thing->take, UINT32_MAX, &taken);
		ck_assert_uint_eq(taken.count, 3 * thing->unit);
		ck_assert_int_eq(taken.error, -EDQUOT);
		/* Another process of the user has nothing left, and another user all. */
		if (thing->take != take_context) {
			other = start_user(1000, thing->take, 1, &more);
			ck_assert_uint_eq(more.count, 0);
			ck_assert_int_eq(more.error, -EDQUOT);
			end_user(other);
		}
		other = start_user(1001, thing->take, UINT32_MAX, &more);
		ck_assert_uint_eq(more.count, 3 * thing->unit);
		end_user(other);
		end_user(child);
	}
	accel_works();
}
END_TEST

/* Users take all contexts or queues that there are for them: an eighth is left. */
START_TEST(test_reserve)
{
	uint32_t all = _i ? caps.queues - 1 : caps.contexts, common = all - all / 8, sum = 0;
	take *take = things[_i].take;
	pid_t children[3];
	struct taken taken[3];

	for (uint32_t i = 0; i < 3; i++) {
		children[i] = start_user(1000 + i, take, UINT32_MAX, &taken[i]);
		sum += taken[i].count;
	}
	ck_assert_uint_eq(taken[0].count, (common + 1) / 2);
	ck_assert_int_eq(taken[0].error, -EDQUOT);
	ck_assert_uint_eq(taken[2].count, 0);
	ck_assert_int_eq(taken[2].error, -ENOSPC);
	ck_assert_uint_eq(sum, common);
	accel_works();
	for (uint32_t i = 0; i < 3; i++)
		end_user(children[i]);
	accel_works();
}
END_TEST

/* An administrator has no limit but what there is. */
START_TEST(test_administrator)
{
	int fd = accel_open();
	uint32_t count = 0;

	accel_write(PARAMETERS "queues_per_user", "1");
	accel_context(fd);
	while (!take_queue(fd))
		count++;
	ck_assert_uint_eq(count, caps.queues - 1);
	ck_assert_int_eq(take_queue(fd), -ENOSPC);
	close(fd);
	accel_works();
}
END_TEST

/* An administrator who takes until nothing is there, and is refused, is counted for what was given. */
START_TEST(test_refused_is_not_counted)
{
	uint32_t all = _i ? caps.queues - 1 : caps.contexts, common = all - all / 8;
	struct taken taken[3];
	pid_t children[3];

	for (int round = 0; round < 4; round++) {
		children[0] = start_user(0, things[_i].take, UINT32_MAX, &taken[0]);
		ck_assert_uint_eq(taken[0].count, all);
		ck_assert_int_eq(taken[0].error, -ENOSPC);
		end_user(children[0]);
	}
	for (uint32_t i = 0; i < 3; i++)
		children[i] = start_user(1000 + i, things[_i].take, UINT32_MAX, &taken[i]);
	ck_assert_uint_eq(taken[0].count + taken[1].count + taken[2].count, common);
	for (uint32_t i = 0; i < 3; i++)
		end_user(children[i]);
}
END_TEST

/* A descriptor that is handed on changes nothing: its opener pays for all that is made with it. */
START_TEST(test_descriptor_of_another_user)
{
	int fd = accel_open(), status;
	pid_t child;

	accel_write(PARAMETERS "queues_per_user", "2");
	accel_context(fd);
	ck_assert_int_eq(take_queue(fd), 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (!child) {
		ck_assert_int_eq(setuid(1000), 0);
		_exit(take_queue(fd) || take_queue(fd) != -EDQUOT);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	close(fd);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, test_limit_of_a_user, 0, THINGS);
	tcase_add_loop_test(tcase, test_reserve, 0, 2);
	tcase_add_test(tcase, test_administrator);
	tcase_add_loop_test(tcase, test_refused_is_not_counted, 0, 2);
	tcase_add_test(tcase, test_descriptor_of_another_user);
}

int main(void)
{
	return suite_main("shares", add);
}
