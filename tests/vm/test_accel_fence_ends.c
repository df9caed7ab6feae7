// SPDX-License-Identifier: MIT
/* Every way in which a fence can end with an error. */
#include "../unit/support/suite.h"
#include "fault_file.h"
#include "train.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xf86drm.h>

#define FUNCTION "/sys/bus/pci/devices/0eb0:00:00.0/"
#define LONG EMBENG_ACCEL_FENCED_DELAY_MAX /* nobody waits for it */
#define give(ring, cmd, in, out) train_give(&t, ring, cmd, in, out)

static struct train t;

static void setup(void)
{
	t = train_open(2, 0);
}

static void teardown(void)
{
	train_close(&t);
}

static void write_file(const char *path, const char *text)
{
	int file = open(path, O_WRONLY);

	ck_assert_msg(file >= 0, "%s: %s", path, strerror(errno));
	ck_assert_int_eq(write(file, text, strlen(text)), (ssize_t)strlen(text));
	close(file);
}

static void expect(struct embeng_accel_sync sync, int status)
{
	ck_assert_int_eq(train_await(t.fd, sync), 0);
	ck_assert_int_eq(train_status(t.fd, sync), status);
}

static int reset(uint32_t rung, uint32_t queue)
{
	struct embeng_accel_reset arg = {.rung = rung, .queue = queue};

	return accel_call(t.fd, DRM_IOCTL_EMBENG_RESET, &arg);
}

static const struct {
	uint16_t status;
	int error;
} failures[] = {
	{EMBENG_STATUS_ID, ERANGE},	    {EMBENG_STATUS_INTERNAL, EIO},
	{EMBENG_STATUS_ABORTED, ECANCELED}, {EMBENG_STATUS_BLOB_CRC, EBADMSG},
	{EMBENG_STATUS_OPCODE, EOPNOTSUPP},
};

START_TEST(test_failure)
{
	struct embeng_accel_sync out = train_sync(t.fd, 0);
	struct embeng_cmd cmds[3] = {{0}};

	cmds[1].arg = failures[_i].status;
	cmds[2].arg = EMBENG_STATUS_KEY;
	ck_assert_int_eq(train_submit(t.fd, &t.transfer, cmds, 3, NULL, &out), 0);
	expect(out, -failures[_i].error);
}
END_TEST

START_TEST(test_refused_lookup)
{
	struct embeng_accel_sync out = train_sync(t.fd, 0);
	struct embeng_cmd lookup = train_lookup(&t, 0, 1);
	uint64_t bad = 1000;

	memcpy(t.data + lookup.desc.offset + 256, &bad, sizeof(bad));
	ck_assert_int_eq(give(&t.input[0], lookup, NULL, &out), 0);
	expect(out, -ERANGE);
	ck_assert_uint_eq(accel_take(t.fd, &t.input[0]).status, EMBENG_STATUS_ID);
	/* It consumed nothing: the step may be given again, and the next is not here yet. */
	ck_assert_int_eq(give(&t.input[0], train_lookup(&t, 0, 1), NULL, &out), 0);
	expect(out, 1);
}
END_TEST

/* Refused ahead of a command that waits: its fence signals in its turn all the same. */
START_TEST(test_order_of_fences)
{
	struct embeng_accel_sync first = train_sync(t.fd, 0), second = train_sync(t.fd, 0);
	struct embeng_accel_sync refused = train_sync(t.fd, 0);
	struct embeng_cmd wrong = train_lookup(&t, 0, 7);

	ck_assert_int_eq(give(&t.input[0], train_nop(300000), NULL, &first), 0);
	ck_assert_int_eq(give(&t.input[0], wrong, NULL, &refused), 0);
	ck_assert_int_eq(
		give(&t.input[0], (struct embeng_cmd){.arg = EMBENG_STATUS_KEY}, NULL, &second), 0);
	ck_assert_uint_eq(accel_take(t.fd, &t.input[0]).status, EMBENG_STATUS_STEP_ORDER);
	ck_assert_int_eq(train_status(t.fd, refused), 0);
	ck_assert_int_eq(train_status(t.fd, first), 0);
	expect(second, -EACCES);
	ck_assert_int_eq(train_status(t.fd, first), 1);
	ck_assert_int_lt(train_status(t.fd, refused), 0);
}
END_TEST

/* An in-fence that failed: what waits for it is not run. */
START_TEST(test_failed_in_fence)
{
	struct embeng_accel_sync in = train_sync(t.fd, 0), out = train_sync(t.fd, 0);
	struct embeng_cmd slow = train_nop(200000);
	struct embeng_cqe cqe;

	slow.arg |= EMBENG_STATUS_ROW;
	ck_assert_int_eq(give(&t.transfer, slow, NULL, &in), 0);
	ck_assert_int_eq(give(&t.input[0], train_lookup(&t, 0, 1), &in, &out), 0);
	expect(out, -ERANGE);
	cqe = accel_take(t.fd, &t.input[0]);
	ck_assert_uint_eq(cqe.status, EMBENG_STATUS_ABORTED);
	ck_assert_uint_eq(cqe.cookie, 1);
	/* The same when it had failed before. */
	ck_assert_int_eq(give(&t.input[0], train_lookup(&t, 0, 1), &in, &out), 0);
	expect(out, -ERANGE);
	ck_assert_uint_eq(accel_take(t.fd, &t.input[0]).status, EMBENG_STATUS_ABORTED);
	ck_assert_int_eq(give(&t.input[0], train_lookup(&t, 0, 1), NULL, &out), 0);
	expect(out, 1);
}
END_TEST

static void look_up_both(void)
{
	struct embeng_accel_sync out = train_sync(t.fd, 0);

	for (uint32_t r = 0; r < 2; r++) {
		ck_assert_int_eq(give(&t.input[r], train_lookup(&t, r, 1), NULL, &out), 0);
		expect(out, 1);
	}
}

static uint64_t queue_resets(void)
{
	struct embeng_accel_resets out;
	struct embeng_accel_query arg = {
		.what = EMBENG_ACCEL_QUERY_RESETS, .size = sizeof(out), .data = (uintptr_t)&out};

	ck_assert_int_eq(accel_call(t.fd, DRM_IOCTL_EMBENG_QUERY, &arg), 0);
	return out.queues;
}

/* A predecessor is refused: only the program could mend that, so the fence ends. */
START_TEST(test_refused_predecessor)
{
	struct embeng_accel_sync out = train_sync(t.fd, 0), in = train_sync(t.fd, 0);
	struct embeng_cmd wrong;
	uint64_t before = queue_resets();

	look_up_both();
	wrong = train_update(&t, 1, 1);
	wrong.desc.length--;
	/* Held until the other has its fence. */
	ck_assert_int_eq(give(&t.transfer, train_nop(300000), NULL, &in), 0);
	ck_assert_int_eq(give(&t.gradient[1], wrong, &in, NULL), 0);
	ck_assert_int_eq(give(&t.gradient[0], train_update(&t, 0, 1), NULL, &out), 0);
	expect(out, -ECANCELED);
	/* The fence ends with its command, a moment before the reset does. */
	while (queue_resets() == before)
		usleep(1000);
	ck_assert_uint_eq(queue_resets(), before + 1);
	ck_assert_uint_ne(accel_take(t.fd, &t.gradient[1]).status, EMBENG_STATUS_OK);
	ck_assert_uint_eq(accel_take(t.fd, &t.gradient[0]).status, EMBENG_STATUS_ABORTED);
	/* Both give the step again, and it goes on. */
	ck_assert_int_eq(give(&t.gradient[1], train_update(&t, 1, 1), NULL, NULL), 0);
	ck_assert_int_eq(give(&t.gradient[0], train_update(&t, 0, 1), NULL, &out), 0);
	expect(out, 1);
}
END_TEST

/* Nothing that the driver counts tells it: the engine's report does. */
START_TEST(test_changed_points)
{
	struct embeng_accel_sync out = train_sync(t.fd, 0), in = train_sync(t.fd, 0);
	struct embeng_fence_point point = {.queue = t.transfer.made.queue};
	struct embeng_cmd fence = {.opcode = EMBENG_OP_FENCE,
				   .desc = {t.key.index, t.key.generation, 60000, sizeof(point)}};

	memcpy(t.data + 60000, &point, sizeof(point));
	ck_assert_int_eq(give(&t.transfer, train_nop(300000), NULL, &in), 0);
	ck_assert_int_eq(give(&t.input[0], fence, &in, &out), 0);
	point.index = 1000;
	memcpy(t.data + 60000, &point, sizeof(point));
	expect(out, -ECANCELED);
	ck_assert_uint_eq(accel_take(t.fd, &t.input[0]).status, EMBENG_STATUS_ABORTED);
}
END_TEST

/* One in the ring, one behind an in-fence of another file, and one of that file. */
struct pending {
	struct embeng_accel_sync in, given, held, other;
	int other_fd;
	struct ring other_ring;
};

static struct pending pend(void)
{
	struct embeng_cmd nop = train_nop(LONG);
	struct pending p = {.in = train_sync(t.fd, 0),
			    .given = train_sync(t.fd, 0),
			    .held = train_sync(t.fd, 0),
			    .other_fd = accel_open()};
	int file;

	accel_context(p.other_fd);
	p.other_ring = accel_ring(p.other_fd, EMBENG_QUEUE_TRANSFER, 0);
	p.other = train_sync(p.other_fd, 0);
	ck_assert_int_eq(train_submit(p.other_fd, &p.other_ring, &nop, 1, NULL, &p.other), 0);
	file = train_sync_file(p.other_fd, p.other);
	ck_assert_int_eq(drmSyncobjImportSyncFile(t.fd, p.in.handle, file), 0);
	close(file);
	ck_assert_int_eq(give(&t.transfer, train_nop(LONG), NULL, &p.given), 0);
	ck_assert_int_eq(give(&t.transfer, train_nop(0), &p.in, &p.held), 0);
	ck_assert_int_eq(train_status(t.fd, p.held), 0);
	return p;
}

/* Closes the other file. A mapping would keep it open, so that is undone first. */
static void close_other(struct pending *p)
{
	munmap(p->other_ring.memory, p->other_ring.made.layout.size);
	close(p->other_fd);
}

START_TEST(test_queue_reset)
{
	struct pending p = pend();
	struct embeng_accel_sync out = train_sync(t.fd, 0);

	ck_assert_int_eq(reset(EMBENG_ACCEL_RESET_QUEUE, t.transfer.made.queue), 0);
	expect(p.given, -ECANCELED);
	expect(p.held, -ECANCELED);
	/* Every command has its completion, also what the device had not been told of. */
	ck_assert_uint_eq(accel_take(t.fd, &t.transfer).status, EMBENG_STATUS_ABORTED);
	ck_assert_uint_eq(accel_take(t.fd, &t.transfer).status, EMBENG_STATUS_ABORTED);
	ck_assert_int_eq(give(&t.transfer, train_nop(0), NULL, &out), 0);
	expect(out, 1);
	close_other(&p);
	expect(p.in, -ECANCELED);
}
END_TEST

START_TEST(test_queue_destroyed)
{
	struct pending p = pend();

	accel_ring_close(t.fd, &t.transfer);
	expect(p.given, -ECANCELED);
	expect(p.held, -ECANCELED);
	close_other(&p);
	expect(p.in, -ECANCELED);
}
END_TEST

START_TEST(test_engine_reset)
{
	struct pending p = pend();

	ck_assert_int_eq(reset(EMBENG_ACCEL_RESET_ENGINE, 0), 0);
	expect(p.given, -ESHUTDOWN);
	expect(p.held, -ESHUTDOWN);
	expect(p.in, -ESHUTDOWN);
	close_other(&p);
}
END_TEST

START_TEST(test_function_reset)
{
	struct pending p = pend();

	write_file(FUNCTION "reset", "1");
	expect(p.given, -ESHUTDOWN);
	expect(p.held, -ESHUTDOWN);
	expect(p.in, -ESHUTDOWN);
	close_other(&p);
}
END_TEST

/* Its fence is waited for by another, who stays. */
START_TEST(test_killed)
{
	struct embeng_accel_sync in = train_sync(t.fd, 0), out = train_sync(t.fd, 0);
	int ends[2], shared, status;
	char byte = 0;
	pid_t child;

	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(drmSyncobjHandleToFD(t.fd, in.handle, &shared), 0);
	child = fork();
	if (!child) {
		struct pending p;
		struct embeng_accel_sync sync = {0};

		t = train_open(2, 0);
		p = pend();
		ck_assert_int_eq(drmSyncobjFDToHandle(t.fd, shared, &sync.handle), 0);
		ck_assert_int_eq(drmSyncobjTransfer(t.fd, sync.handle, 0, p.held.handle, 0, 0), 0);
		ck_assert_int_eq(write(ends[1], &byte, 1), 1);
		pause();
	}
	ck_assert_int_eq(read(ends[0], &byte, 1), 1);
	ck_assert_int_eq(give(&t.transfer, train_nop(0), &in, &out), 0);
	ck_assert_int_eq(kill(child, SIGKILL), 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	expect(out, -ECANCELED);
	ck_assert_uint_eq(accel_take(t.fd, &t.transfer).status, EMBENG_STATUS_ABORTED);
}
END_TEST

/* The fence outlives its file and the device's driver, whose module it keeps. */
START_TEST(test_unbound)
{
	struct pending p = pend();
	int given = train_sync_file(t.fd, p.given), held = train_sync_file(t.fd, p.held);
	int other = train_sync_file(p.other_fd, p.other);

	write_file("/sys/bus/pci/drivers/embeng/unbind", "0eb0:00:00.0");
	train_close(&t);
	close_other(&p);
	ck_assert_int_ne(system("rmmod embeng 2>/dev/null"), 0);
	ck_assert_int_eq(train_file_status(given), -ENODEV);
	ck_assert_int_eq(train_file_status(held), -ENODEV);
	ck_assert_int_eq(train_file_status(other), -ENODEV);
	write_file("/sys/bus/pci/drivers/embeng/bind", "0eb0:00:00.0");
	setup();
}
END_TEST

/* An interrupt that never comes costs a second, not the fence. */
START_TEST(test_lost_interrupt)
{
	struct embeng_accel_sync out = train_sync(t.fd, 0);

	ck_assert_int_eq(give(&t.transfer, train_nop(100000), NULL, &out), 0);
	fault_arm("lose_interrupt", 1);
	expect(out, 1);
	fault_arm("lose_interrupt", 0);
}
END_TEST

static void *submit_all(void *arg)
{
	struct embeng_accel_sync *syncs = arg;

	for (int i = 0; i < 200; i++) {
		int ret = give(&t.input[1], train_nop(1000), i ? &syncs[0] : NULL, &syncs[0]);

		if (ret == -ENOSPC) {
			t.input[1].cq_head = embeng_observe_cq_tail(
				&accel_header(&t.input[1])->cq_tail);
			i--;
		}
	}
	return NULL;
}

/* Resets of a queue that another thread keeps submitting to. */
START_TEST(test_resets_under_load)
{
	struct embeng_accel_sync sync = train_sync(t.fd, 0);
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, submit_all, &sync), 0);
	for (int i = 0; i < 20; i++) {
		usleep(5000);
		ck_assert_int_eq(reset(EMBENG_ACCEL_RESET_QUEUE, t.input[1].made.queue), 0);
	}
	pthread_join(thread, NULL);
	ck_assert_int_eq(train_await(t.fd, sync), 0);
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, test_failure, 0, sizeof(failures) / sizeof(failures[0]));
	tcase_add_test(tc, test_refused_lookup);
	tcase_add_test(tc, test_order_of_fences);
	tcase_add_test(tc, test_failed_in_fence);
	tcase_add_test(tc, test_refused_predecessor);
	tcase_add_test(tc, test_changed_points);
	tcase_add_test(tc, test_queue_reset);
	tcase_add_test(tc, test_queue_destroyed);
	tcase_add_test(tc, test_engine_reset);
	tcase_add_test(tc, test_function_reset);
	tcase_add_test(tc, test_killed);
	tcase_add_test(tc, test_unbound);
	tcase_add_test(tc, test_lost_interrupt);
	tcase_add_test(tc, test_resets_under_load);
}

int main(void)
{
	return suite_main("fence_ends", add);
}
