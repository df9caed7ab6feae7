// SPDX-License-Identifier: MIT
/* Validated submission, model load and reset of a queue. */
#include "../unit/support/suite.h"
#include "accel.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SUBMIT DRM_IOCTL_EMBENG_SUBMIT
#define LOAD DRM_IOCTL_EMBENG_MODEL_LOAD
#define NOP {.opcode = EMBENG_OP_NOP}

static int fd;
static struct ring ring;

static void setup(void)
{
	fd = accel_open();
	accel_context(fd);
	ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, 0);
}

static void teardown(void)
{
	close(fd);
}

static struct embeng_accel_submit request(const struct embeng_cmd *cmds, uint32_t count)
{
	return (struct embeng_accel_submit){.queue = ring.made.queue,
					    .count = count,
					    .stride = sizeof(*cmds),
					    .commands = (uintptr_t)cmds,
					    .cq_head = ring.cq_head};
}

static uint32_t submit(const struct embeng_cmd *cmds, uint32_t count)
{
	struct embeng_accel_submit arg = request(cmds, count);

	ck_assert_int_eq(accel_call(fd, SUBMIT, &arg), 0);
	return arg.index;
}

START_TEST(test_nops)
{
	struct embeng_cmd cmds[5] = {NOP, NOP, NOP, NOP, NOP};
	uint32_t index = 0;

	for (uint64_t round = 0; round < 20; round++) {
		for (uint64_t i = 0; i < 5; i++) {
			cmds[i].cookie = round * 5 + i;
			cmds[i].arg = i;
		}
		ck_assert_uint_eq(submit(cmds, 5), index);
		index += 5;
		ck_assert_int_eq(accel_wait(fd, &ring, 5), 0);
		for (uint64_t i = 0; i < 5; i++) {
			struct embeng_cqe cqe = accel_take(fd, &ring);

			ck_assert_uint_eq(cqe.cookie, round * 5 + i);
			ck_assert_uint_eq(cqe.status, i);
		}
	}
}
END_TEST

START_TEST(test_stride)
{
	struct {
		struct embeng_cmd cmd;
		uint64_t tail;
	} wide[2] = {{.cmd = {.cookie = 4}}, {.cmd = {.cookie = 5}}};
	struct embeng_accel_submit arg = request(&wide[0].cmd, 2);

	arg.stride = sizeof(wide[0]);
	ck_assert_int_eq(accel_call(fd, SUBMIT, &arg), 0);
	ck_assert_uint_eq(accel_take(fd, &ring).cookie, 4);
	ck_assert_uint_eq(accel_take(fd, &ring).cookie, 5);
	wide[1].tail = 1;
	arg = request(&wide[0].cmd, 2);
	arg.stride = sizeof(wide[0]);
	REFUSED(E2BIG, fd, SUBMIT);
}
END_TEST

static const struct {
	const char *what;
	int error;
	struct embeng_accel_submit arg; /* added to a valid one */
} wrong_submits[] = {
	{"flags", EINVAL, {.flags = 1}},
	{"no commands", EINVAL, {.count = -1u}},
	{"more than the queue has", EINVAL, {.count = 16}},
	{"short stride", EINVAL, {.stride = -1u}},
	{"long stride", EINVAL, {.stride = 4096}},
	{"no such queue", ENOENT, {.queue = 1000}},
	{"in fences without a list", EINVAL, {.in_count = 1}},
	{"out fences without a list", EINVAL, {.out_count = 1}},
	{"list of no in fences", EINVAL, {.in_syncs = 8}},
	{"list of no out fences", EINVAL, {.out_syncs = 8}},
	{"index", EINVAL, {.index = 1}},
	{"head beyond the tail", EINVAL, {.cq_head = 1}},
};

START_TEST(test_refused)
{
	struct embeng_cmd cmd = NOP;
	struct embeng_accel_submit arg = request(&cmd, 1);
	const struct embeng_accel_submit *more = &wrong_submits[_i].arg;

	arg.flags += more->flags;
	arg.count += more->count;
	arg.stride += more->stride;
	arg.queue += more->queue;
	arg.in_count += more->in_count;
	arg.out_count += more->out_count;
	arg.in_syncs += more->in_syncs;
	arg.out_syncs += more->out_syncs;
	arg.index += more->index;
	arg.cq_head += more->cq_head;
	REFUSED_FOR(wrong_submits[_i].what, wrong_submits[_i].error, fd, SUBMIT);
	ck_assert_uint_eq(submit(&cmd, 1), 0);
}
END_TEST

#define COUNT_OPCODE(name, value, kinds, flags, words) +1
#define OPCODES (0 EMBENG_OPCODE_TABLE(COUNT_OPCODE))

static const struct {
	const char *what;
	int error;
	struct embeng_cmd cmd;
} wrong_commands[] = {
	{"opcode", EOPNOTSUPP, {.opcode = 1000}},
	{"first opcode that is none", EOPNOTSUPP, {.opcode = OPCODES}},
	{"kind", EINVAL, {.opcode = EMBENG_OP_LOOKUP}},
	{"flags", EINVAL, {.opcode = EMBENG_OP_NOP, .flags = EMBENG_CMD_STAGED}},
	{"other flags", EINVAL, {.opcode = EMBENG_OP_ROWS_WRITE, .flags = 2}},
	{"reserved", EINVAL, {.opcode = EMBENG_OP_NOP, .reserved0 = 1}},
	{"key of nothing",
	 ENOENT,
	 {.opcode = EMBENG_OP_ROWS_READ, .desc = {.index = 3, .generation = 1, .length = 96}}},
};

/* One wrong command, and none of them is given. */
START_TEST(test_command_refused)
{
	struct embeng_cmd cmds[2] = {NOP, wrong_commands[_i].cmd};
	struct embeng_accel_submit arg = request(cmds, 2);

	REFUSED_FOR(wrong_commands[_i].what, wrong_commands[_i].error, fd, SUBMIT);
	ck_assert_uint_eq(submit(cmds, 1), 0);
}
END_TEST

START_TEST(test_faults)
{
	struct embeng_cmd cmd = NOP;
	struct embeng_accel_submit arg = request(&cmd, 1);
	struct ring mapped = accel_ring(fd, EMBENG_QUEUE_TRANSFER, EMBENG_ACCEL_QUEUE_MAPPED);

	arg.commands = 8;
	REFUSED(EFAULT, fd, SUBMIT);
	arg = request(&cmd, 1);
	arg.queue = mapped.made.queue;
	REFUSED(EINVAL, fd, SUBMIT);
}
END_TEST

/* Completions that are not read keep their place: no more is taken than can be answered. */
START_TEST(test_room)
{
	struct embeng_cmd cmds[16] = {NOP};
	struct embeng_accel_submit arg;

	submit(cmds, 16);
	ck_assert_int_eq(accel_wait(fd, &ring, 16), 0);
	submit(cmds, 16);
	ck_assert_int_eq(accel_wait(fd, &ring, 32), 0);
	arg = request(cmds, 1);
	REFUSED(ENOSPC, fd, SUBMIT);
	ring.cq_head = 1;
	ck_assert_uint_eq(submit(cmds, 1), 32);
	ck_assert_int_eq(accel_wait(fd, &ring, 32), 0);
}
END_TEST

/* Commands that the device did not fetch yet keep theirs, and there is room for many completions. */
START_TEST(test_room_for_commands)
{
	struct embeng_cmd cmds[16];
	struct embeng_accel_queue_create made = accel_queue(EMBENG_QUEUE_TRANSFER, 0);
	struct embeng_accel_submit arg = {0};
	uint32_t given = 0;
	int ret = 0;

	for (uint32_t i = 0; i < 16; i++)
		cmds[i] = (struct embeng_cmd){.arg = (uint64_t)EMBENG_NOP_DELAY_MAX
						     << EMBENG_NOP_DELAY_SHIFT};
	made.cq_entries = 1024;
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_QUEUE_CREATE, &made), 0);
	while (!ret && given < made.cq_entries) {
		arg = request(cmds, 16);
		arg.queue = made.queue;
		ret = accel_call(fd, SUBMIT, &arg);
		given += ret ? 0 : 16;
	}
	ck_assert_int_eq(ret, -ENOSPC);
	ck_assert_uint_eq(arg.index, 0);
	ck_assert_uint_ge(given, 16);
	ck_assert_uint_lt(given, made.cq_entries);
}
END_TEST

START_TEST(test_coalesced_events)
{
	struct embeng_accel_queue_create made = accel_queue(EMBENG_QUEUE_TRANSFER, 0);
	struct embeng_accel_wait arg = {.queue = EMBENG_ACCEL_ANY_QUEUE};
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_NOP,
				 .arg = 10000ull << EMBENG_NOP_DELAY_SHIFT};
	struct embeng_accel_submit give;

	made.coalesce_count = 8;
	made.coalesce_us = 100000;
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_QUEUE_CREATE, &made), 0);
	while (!accel_call(fd, DRM_IOCTL_EMBENG_WAIT, &arg))
		arg.cq_tail = arg.state = 0;
	give = request(&cmd, 1);
	give.queue = made.queue;
	ck_assert_int_eq(accel_call(fd, SUBMIT, &give), 0);
	arg.deadline_ns = accel_now() + 10 * SECOND;
	arg.cq_tail = arg.state = 0;
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_WAIT, &arg), 0);
}
END_TEST

START_TEST(test_queue_reset)
{
	struct ring mapped = accel_ring(fd, EMBENG_QUEUE_TRANSFER, EMBENG_ACCEL_QUEUE_MAPPED);
	struct embeng_accel_reset arg = {.rung = EMBENG_ACCEL_RESET_QUEUE,
					 .queue = mapped.made.queue};

	embeng_doorbell_tail(&mapped.doorbell->sq_tail, 1000);
	while (accel_header(&mapped)->report.state != EMBENG_QUEUE_ERROR)
		usleep(1000);
	embeng_doorbell_tail(&mapped.doorbell->sq_tail, 0);
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_RESET, &arg), 0);
	accel_push(&mapped, (struct embeng_cmd){.cookie = 3});
	ck_assert_uint_eq(accel_take(fd, &mapped).cookie, 3);
	arg.queue = 1000;
	REFUSED(ENOENT, fd, DRM_IOCTL_EMBENG_RESET);
	arg.rung = EMBENG_ACCEL_RESET_ENGINE;
	REFUSED(EINVAL, fd, DRM_IOCTL_EMBENG_RESET);
	arg.rung = EMBENG_ACCEL_RESET_NONE;
	REFUSED(EINVAL, fd, DRM_IOCTL_EMBENG_RESET);
	arg.rung = EMBENG_ACCEL_RESET_WEDGED;
	REFUSED(EINVAL, fd, DRM_IOCTL_EMBENG_RESET);
}
END_TEST

START_TEST(test_validated_queue_reset)
{
	struct embeng_accel_reset arg = {.rung = EMBENG_ACCEL_RESET_QUEUE,
					 .queue = ring.made.queue};
	struct embeng_cmd cmds[3] = {NOP, NOP, NOP};

	for (int i = 0; i < 3; i++) {
		cmds[i].cookie = (uint64_t)i;
		cmds[i].arg = (uint64_t)EMBENG_NOP_DELAY_MAX << EMBENG_NOP_DELAY_SHIFT;
	}
	submit(cmds, 3);
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_RESET, &arg), 0);
	cmds[0].arg = 0;
	cmds[0].cookie = 9;
	submit(cmds, 1);
	for (;;) {
		struct embeng_cqe cqe = accel_take(fd, &ring);

		if (cqe.cookie == 9)
			break;
		ck_assert_uint_eq(cqe.status, EMBENG_STATUS_ABORTED);
	}
}
END_TEST

static struct embeng_blob_header blob;

static const struct {
	const char *what;
	int error;
	struct embeng_accel_model_load arg; /* added to a valid one */
	struct embeng_blob_header blob;
} wrong_models[] = {
	{"flags", EINVAL, {.flags = EMBENG_CMD_STAGED}, {0}},
	{"second reserved", EINVAL, {.reserved1 = 1}, {0}},
	{"index", EINVAL, {.index = 1}, {0}},
	{"shorter than a header", EINVAL, {.length = -1ull}, {0}},
	{"longer than 64 MiB", EINVAL, {.length = (64 << 20) - sizeof(blob) + 1}, {0}},
	{"no such queue", ENOENT, {.queue = 1000}, {0}},
	{"no memory there", EFAULT, {.blob = 1ull << 63}, {0}},
	{"magic", EBADMSG, {0}, {.magic = 1}},
	{"version", EBADMSG, {0}, {.version = 1}},
	{"length of the blob", EBADMSG, {0}, {.length = 1}},
};

static struct embeng_accel_model_load load(void)
{
	blob = (struct embeng_blob_header){
		.magic = EMBENG_BLOB_MAGIC, .version = EMBENG_BLOB_VERSION, .length = sizeof(blob)};
	return (struct embeng_accel_model_load){.queue = ring.made.queue,
						.blob = (uintptr_t)&blob,
						.length = sizeof(blob),
						.cookie = 12};
}

START_TEST(test_model_refused)
{
	struct embeng_accel_model_load arg = load();
	const struct embeng_accel_model_load *more = &wrong_models[_i].arg;

	arg.queue += more->queue;
	arg.flags += more->flags;
	arg.reserved1 += more->reserved1;
	arg.index += more->index;
	arg.length += more->length;
	arg.blob += more->blob;
	blob.magic += wrong_models[_i].blob.magic;
	blob.version += wrong_models[_i].blob.version;
	blob.length += wrong_models[_i].blob.length;
	REFUSED_FOR(wrong_models[_i].what, wrong_models[_i].error, fd, LOAD);
	ck_assert_uint_eq(accel_state(fd).regions, 0);
}
END_TEST

START_TEST(test_model_on_the_wrong_queue)
{
	struct embeng_accel_model_load arg = load();

	arg.queue = accel_ring(fd, EMBENG_QUEUE_GRADIENT, 0).made.queue;
	REFUSED(EINVAL, fd, LOAD);
	arg.queue = accel_ring(fd, EMBENG_QUEUE_TRANSFER, EMBENG_ACCEL_QUEUE_MAPPED).made.queue;
	REFUSED(EINVAL, fd, LOAD);
}
END_TEST

/* The frame is the driver's to check, the rest is the engine's. One blob is kept, the newest. */
START_TEST(test_model_is_handed_on)
{
	uint64_t memory = accel_state(fd).memory;

	for (int i = 0; i < 3; i++) {
		struct embeng_accel_model_load arg = load();
		struct embeng_cqe cqe;

		ck_assert_int_eq(accel_call(fd, LOAD, &arg), 0);
		cqe = accel_take(fd, &ring);
		ck_assert_uint_eq(cqe.cookie, 12);
		ck_assert_uint_eq(cqe.status, EMBENG_STATUS_BLOB_CRC);
		ck_assert_uint_eq(accel_state(fd).regions, 1);
		ck_assert_uint_eq(accel_state(fd).memory, memory + 4096);
	}
}
END_TEST

/* A model for which the rings have no room leaves nothing behind. */
START_TEST(test_model_without_room)
{
	struct embeng_accel_model_load arg = load();
	struct embeng_cmd cmds[16] = {NOP};
	uint64_t memory = accel_state(fd).memory;

	submit(cmds, 16);
	ck_assert_int_eq(accel_wait(fd, &ring, 16), 0);
	submit(cmds, 16);
	ck_assert_int_eq(accel_wait(fd, &ring, 32), 0);
	REFUSED(ENOSPC, fd, LOAD);
	ck_assert_uint_eq(accel_state(fd).regions, 0);
	ck_assert_uint_eq(accel_state(fd).memory, memory);
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_nops);
	tcase_add_test(tc, test_stride);
	tcase_add_loop_test(tc, test_refused, 0, sizeof(wrong_submits) / sizeof(wrong_submits[0]));
	tcase_add_loop_test(tc, test_command_refused, 0,
			    sizeof(wrong_commands) / sizeof(wrong_commands[0]));
	tcase_add_test(tc, test_faults);
	tcase_add_test(tc, test_room);
	tcase_add_test(tc, test_room_for_commands);
	tcase_add_test(tc, test_coalesced_events);
	tcase_add_test(tc, test_queue_reset);
	tcase_add_test(tc, test_validated_queue_reset);
	tcase_add_loop_test(tc, test_model_refused, 0,
			    sizeof(wrong_models) / sizeof(wrong_models[0]));
	tcase_add_test(tc, test_model_on_the_wrong_queue);
	tcase_add_test(tc, test_model_is_handed_on);
	tcase_add_test(tc, test_model_without_room);
}

int main(void)
{
	return suite_main("submit", add);
}
