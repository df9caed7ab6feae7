// SPDX-License-Identifier: MIT
/*
 * A page of the program that does not come, under each call that touches memory of the program: the
 * driver is unbound meanwhile, and the call ends when the page comes. The pages are userfaultfd's,
 * which tells when the kernel waits for one.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/support/suite.h"
#include "accel.h"

#define PAGE 4096u
#define DRIVER "/sys/bus/pci/drivers/embeng/"
#define ADDRESS "0eb0:00:00.0"

static int fd, faults;
static char *missing; /* a page that comes when the test says so */
static struct ring ring;

/* One way to have the kernel wait for the page. Return: what the call gave. */
struct way {
	const char *name;
	int (*call)(void);
	int after; /* the answer if the driver was unbound meanwhile */
};

static int submit_commands(void)
{
	struct embeng_accel_submit arg = {.queue = ring.made.queue,
					  .count = 1,
					  .stride = sizeof(struct embeng_cmd),
					  .commands = (uintptr_t)missing};

	return accel_call(fd, DRM_IOCTL_EMBENG_SUBMIT, &arg);
}

static int submit_fences(bool in)
{
	struct embeng_cmd nop = {.opcode = EMBENG_OP_NOP};
	struct embeng_accel_submit arg = {.queue = ring.made.queue,
					  .count = 1,
					  .stride = sizeof(nop),
					  .commands = (uintptr_t)&nop,
					  .in_syncs = in ? (uintptr_t)missing : 0,
					  .in_count = in,
					  .out_syncs = in ? 0 : (uintptr_t)missing,
					  .out_count = !in};

	return accel_call(fd, DRM_IOCTL_EMBENG_SUBMIT, &arg);
}

static int submit_in_fences(void)
{
	return submit_fences(true);
}

static int submit_out_fences(void)
{
	return submit_fences(false);
}

static int load_model(void)
{
	struct embeng_accel_model_load arg = {
		.queue = ring.made.queue, .blob = (uintptr_t)missing, .length = PAGE};

	return accel_call(fd, DRM_IOCTL_EMBENG_MODEL_LOAD, &arg);
}

static int pin_memory(void)
{
	struct embeng_accel_userptr arg = {.address = (uintptr_t)missing, .size = PAGE};

	return accel_call(fd, DRM_IOCTL_EMBENG_USERPTR, &arg);
}

static int query_device(void)
{
	struct embeng_accel_query arg = {.what = EMBENG_ACCEL_QUERY_DEVICE,
					 .size = sizeof(struct embeng_accel_device),
					 .data = (uintptr_t)missing};

	return accel_call(fd, DRM_IOCTL_EMBENG_QUERY, &arg);
}

static int read_argument(void)
{
	return accel_call(fd, DRM_IOCTL_EMBENG_WAIT, missing);
}

static int read_argument_tail(void)
{
	return accel_call(fd,
			  _IOC(_IOC_READ | _IOC_WRITE, DRM_IOCTL_BASE,
			       _IOC_NR(DRM_IOCTL_EMBENG_BO_CREATE), PAGE),
			  missing);
}

static int import_buffer(void)
{
	return accel_call(fd, DRM_IOCTL_PRIME_FD_TO_HANDLE, missing);
}

static const struct way ways[] = {
	{"the commands of SUBMIT", submit_commands, -ENODEV},
	{"the in-fences of SUBMIT", submit_in_fences, -ENODEV},
	{"the out-fences of SUBMIT", submit_out_fences, -ENODEV},
	{"the blob of MODEL_LOAD", load_model, -EBADMSG},
	{"the pages of USERPTR", pin_memory, -ENODEV},
	{"the answer of QUERY", query_device, 0},
	{"the argument of WAIT", read_argument, -ENODEV},
	{"the unknown tail of BO_CREATE", read_argument_tail, -ENODEV},
	{"the argument of PRIME_FD_TO_HANDLE", import_buffer, -ENODEV},
};

#define WAYS ((int)(sizeof(ways) / sizeof(ways[0])))

static void setup(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};

	faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	ck_assert_msg(faults >= 0, "userfaultfd: %s", strerror(errno));
	ck_assert_int_eq(ioctl(faults, UFFDIO_API, &api), 0);
	missing = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(missing, MAP_FAILED);
	range.range = (struct uffdio_range){(uintptr_t)missing, PAGE};
	ck_assert_int_eq(ioctl(faults, UFFDIO_REGISTER, &range), 0);
	fd = accel_open();
	accel_context(fd);
	ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0);
}

static void teardown(void)
{
	munmap(missing, PAGE);
	close(faults);
	close(fd);
}

static void *make_call(void *arg)
{
	const struct way *way = arg;

	return (void *)(intptr_t)way->call();
}

static void await_fault(const char *what)
{
	struct pollfd watched = {.fd = faults, .events = POLLIN};
	struct uffd_msg message;

	ck_assert_msg(poll(&watched, 1, 30000) == 1, "%s: no fault", what);
	ck_assert_int_eq(read(faults, &message, sizeof(message)), sizeof(message));
	ck_assert_int_eq(message.event, UFFD_EVENT_PAGEFAULT);
}

/* Writes to a file of the driver in a process of its own, which may not come back. */
static void write_in_time(const char *what, const char *path)
{
	int status = -1, tries = 0;
	pid_t child = fork();

	if (!child) {
		accel_write(path, ADDRESS);
		_exit(0);
	}
	ck_assert_int_gt(child, 0);
	while (waitpid(child, &status, WNOHANG) != child) {
		ck_assert_msg(++tries < 6000, "%s: %s does not come back", what, path);
		usleep(10000);
	}
	ck_assert_int_eq(status, 0);
}

START_TEST(test_unbind_waits_for_no_page)
{
	struct uffdio_zeropage zero = {.range = {(uintptr_t)missing, PAGE}};
	const struct way *way = &ways[_i];
	pthread_t thread;
	void *ret;

	ck_assert_int_eq(pthread_create(&thread, NULL, make_call, (void *)way), 0);
	await_fault(way->name);
	write_in_time(way->name, DRIVER "unbind");
	ck_assert_int_eq(ioctl(faults, UFFDIO_ZEROPAGE, &zero), 0);
	pthread_join(thread, &ret);
	ck_assert_msg((int)(intptr_t)ret == way->after, "%s: %d, not %d", way->name,
		      (int)(intptr_t)ret, way->after);
	write_in_time(way->name, DRIVER "bind");
	accel_works();
}
END_TEST

/* A program that is killed there takes nothing with it. */
START_TEST(test_kill_waits_for_no_page)
{
	const struct way *way = &ways[_i];
	int status;
	pid_t child = fork();

	if (!child) {
		pthread_t thread;

		teardown();
		setup();
		ck_assert_int_eq(pthread_create(&thread, NULL, make_call, (void *)way), 0);
		await_fault(way->name);
		raise(SIGKILL);
	}
	ck_assert_int_gt(child, 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(WTERMSIG(status), SIGKILL);
	accel_works();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, test_unbind_waits_for_no_page, 0, WAYS);
	tcase_add_loop_test(tcase, test_kill_waits_for_no_page, 0, WAYS);
}

int main(void)
{
	return suite_main("stuck_page", add);
}
