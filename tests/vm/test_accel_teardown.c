// SPDX-License-Identifier: MIT
/* Contexts and devices end under load: by close, kill, resets, and the device pulled out. */
#include "../unit/support/suite.h"
#include "accel.h"
#include "flood.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u
#define FUNCTION "/sys/bus/pci/devices/0eb0:00:00.0/"
#define MAPPED EMBENG_ACCEL_QUEUE_MAPPED
#define BYTES FLOOD_BYTES

START_TEST(test_unbind_under_flood)
{
	int fd = accel_open();
	struct flood f;
	pthread_t thread;
	unsigned char *bytes;

	accel_context(fd);
	f = flood_of(fd);
	ck_assert_int_eq(pthread_create(&thread, NULL, flood, &f), 0);
	for (int i = 0; i < 100; i++) {
		struct embeng_accel_bo_create bo = accel_bo(fd, BYTES);
		struct drm_gem_close end = {.handle = bo.handle};
		struct embeng_mem key = accel_bind(fd, bo.handle, EMBENG_REGION_DEVICE_READ);
		struct embeng_accel_unbind unbind = {key.index, key.generation};

		bytes = accel_map(fd, bo.offset, BYTES, PROT_READ | PROT_WRITE);
		bytes[i * PAGE % BYTES] = 1;
		__atomic_store_n(&f.key.generation, key.generation, __ATOMIC_RELAXED);
		usleep(500);
		ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_UNBIND, &unbind), 0);
		munmap(bytes, BYTES);
		ck_assert_int_eq(accel_call(fd, DRM_IOCTL_GEM_CLOSE, &end), 0);
	}
	flood_stop(&f);
	pthread_join(thread, NULL);
	ck_assert_uint_gt(f.pushed, 0);
	close(fd);
	accel_works();
}
END_TEST

START_TEST(test_kill_under_flood)
{
	for (int i = 0; i < 10; i++) {
		pid_t child = fork();

		if (!child) {
			int fd = accel_open();
			struct flood f;
			struct embeng_accel_bo_create bo;

			accel_context(fd);
			bo = accel_bo(fd, BYTES);
			f = flood_of(fd);
			f.key = accel_bind(fd, bo.handle, EMBENG_REGION_DEVICE_READ);
			flood(&f);
			_exit(0);
		}
		usleep(30000);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	accel_works();
}
END_TEST

START_TEST(test_reset)
{
	int fd = accel_open();
	struct ring ring;
	struct embeng_accel_reset arg = {.rung = (uint32_t)_i};

	accel_context(fd);
	ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, MAPPED);
	accel_push(&ring, (struct embeng_cmd){.arg = 1000000ull << EMBENG_NOP_DELAY_SHIFT});
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_RESET, &arg), 0);
	accel_check_lost(fd, &ring);
	accel_works();
	accel_ring_close(fd, &ring);
	close(fd);
	accel_works();
}
END_TEST

/* A submit to a validated queue of a lost context is refused. */
START_TEST(test_lost_submit)
{
	int fd = accel_open();
	struct embeng_accel_reset arg = {.rung = EMBENG_ACCEL_RESET_ENGINE};
	struct embeng_blob_header blob = {
		.magic = EMBENG_BLOB_MAGIC, .version = EMBENG_BLOB_VERSION, .length = sizeof(blob)};
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_NOP};
	struct embeng_accel_submit submit = {
		.count = 1, .stride = sizeof(cmd), .commands = (uintptr_t)&cmd};
	struct embeng_accel_model_load load = {.blob = (uintptr_t)&blob, .length = sizeof(blob)};

	accel_context(fd);
	submit.queue = load.queue = accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0).made.queue;
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_RESET, &arg), 0);
	LOST(submit, DRM_IOCTL_EMBENG_SUBMIT);
	LOST(load, DRM_IOCTL_EMBENG_MODEL_LOAD);
	close(fd);
}
END_TEST

START_TEST(test_reset_needs_rights)
{
	int fd = accel_open();
	struct embeng_accel_reset arg = {.rung = EMBENG_ACCEL_RESET_ENGINE};

	ck_assert_int_eq(setuid(65534), 0);
	REFUSED(EACCES, fd, DRM_IOCTL_EMBENG_RESET);
	arg = (struct embeng_accel_reset){.rung = EMBENG_ACCEL_RESET_ENGINE, .queue = 1};
	REFUSED(EINVAL, fd, DRM_IOCTL_EMBENG_RESET);
}
END_TEST

START_TEST(test_function_reset_from_outside)
{
	int fd = accel_open();
	struct flood f;
	struct calls c;
	pthread_t threads[2];

	accel_context(fd);
	f = flood_of(fd);
	c = calls_of(fd);
	ck_assert_int_eq(pthread_create(&threads[0], NULL, flood, &f), 0);
	ck_assert_int_eq(pthread_create(&threads[1], NULL, flood_calls, &c), 0);
	usleep(20000);
	accel_write(FUNCTION "reset", "1");
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	ck_assert_int_eq(c.error, -ESHUTDOWN);
	ck_assert_uint_gt(c.pushed, 0);
	accel_check_lost(fd, &f.ring);
	accel_check_lost(fd, &c.ring);
	accel_works();
	close(fd);
}
END_TEST

struct sleeper {
	int fd;
	struct ring *ring;
	int error;
};

static void *sleep_long(void *arg)
{
	struct sleeper *s = arg;
	struct embeng_accel_wait wait = {.queue = EMBENG_ACCEL_ANY_QUEUE,
					 .deadline_ns = accel_now() + 100 * SECOND};

	do {
		wait.cq_tail = wait.state = 0;
		s->error = accel_call(s->fd, DRM_IOCTL_EMBENG_WAIT, &wait);
	} while (!s->error);
	return NULL;
}

/* Every access goes on, to memory that says that the device is dead; nobody gets a signal. */
static void check_gone(int fd, struct ring *ring, const uint32_t *bytes,
		       const volatile uint32_t *registers)
{
	struct embeng_accel_query arg = {.what = EMBENG_ACCEL_QUERY_CAPS};
	struct pollfd watched = {.fd = fd, .events = POLLIN};

	ck_assert_uint_eq(accel_header(ring)->dead, 1);
	ring->memory[ring->made.layout.sq] = 1;
	ring->doorbell->sq_tail = 77;
	ck_assert_uint_eq(bytes[3], 1234);
	ck_assert_uint_eq(registers[0], 0);
	REFUSED(ENODEV, fd, DRM_IOCTL_EMBENG_QUERY);
	UNMAPPED(ENODEV, fd, ring->made.ring, PAGE, PROT_READ, MAP_SHARED);
	ck_assert_int_eq(poll(&watched, 1, 0), 1);
	ck_assert(watched.revents & POLLHUP);
}

static void pull_out(const char *out, const char *out_text, const char *in, const char *in_text)
{
	int fd = accel_open();
	struct sleeper s = {.fd = fd};
	struct ring ring;
	struct embeng_accel_bo_create bo = accel_bo(fd, BYTES);
	uint32_t *bytes = accel_map(fd, bo.offset, BYTES, PROT_READ | PROT_WRITE);
	uint32_t *registers = accel_map(fd, accel_device(fd).registers, PAGE, PROT_READ);
	struct flood f;
	struct calls c;
	pthread_t sleeping, flooding, calling;

	bytes[3] = 1234;
	ck_assert_uint_eq(registers[0], 0x474e424d);
	accel_context(fd);
	accel_bind(fd, bo.handle, EMBENG_REGION_DEVICE_READ);
	ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, MAPPED);
	accel_push(&ring, (struct embeng_cmd){.cookie = 5});
	ck_assert_uint_eq(accel_take(fd, &ring).cookie, 5);
	f = flood_of(fd);
	c = calls_of(fd);
	ck_assert_int_eq(pthread_create(&sleeping, NULL, sleep_long, &s), 0);
	ck_assert_int_eq(pthread_create(&flooding, NULL, flood, &f), 0);
	ck_assert_int_eq(pthread_create(&calling, NULL, flood_calls, &c), 0);
	usleep(20000);
	accel_write(out, out_text);
	/* By this the threads end. */
	ck_assert_uint_eq(accel_header(&ring)->dead, 1);
	pthread_join(flooding, NULL);
	pthread_join(calling, NULL);
	pthread_join(sleeping, NULL);
	ck_assert_int_eq(s.error, -ENODEV);
	ck_assert_int_eq(c.error, -ENODEV);
	ck_assert_uint_gt(c.pushed, 0);
	check_gone(fd, &ring, bytes, registers);
	ck_assert_uint_eq(accel_header(&ring)->cq_tail, 1);
	accel_write(in, in_text);
	accel_works();
	check_gone(fd, &ring, bytes, registers);
	close(fd);
	munmap(ring.memory, ring.made.layout.size);
	munmap(bytes, BYTES);
	munmap(registers, PAGE);
	accel_works();
}

START_TEST(test_removed)
{
	pull_out(FUNCTION "remove", "1", "/sys/bus/pci/rescan", "1");
}
END_TEST

START_TEST(test_unbound)
{
	pull_out("/sys/bus/pci/drivers/embeng/unbind", "0eb0:00:00.0",
		 "/sys/bus/pci/drivers/embeng/bind", "0eb0:00:00.0");
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_test(tc, test_unbind_under_flood);
	tcase_add_test(tc, test_kill_under_flood);
	tcase_add_loop_test(tc, test_reset, EMBENG_ACCEL_RESET_ENGINE,
			    EMBENG_ACCEL_RESET_FUNCTION + 1);
	tcase_add_test(tc, test_lost_submit);
	tcase_add_test(tc, test_reset_needs_rights);
	tcase_add_test(tc, test_function_reset_from_outside);
	tcase_add_test(tc, test_removed);
	tcase_add_test(tc, test_unbound);
}

int main(void)
{
	return suite_main("teardown", add);
}
