// SPDX-License-Identifier: MIT
/*
 * A watchdog sees in a queue's header and in the registers whether the queue and device are alive.
 */
#include "engine/queue/internal.h"
#include "fake_model.h"
#include "rig.h"
#include "suite.h"

static struct rig *rig;
static struct rig_queue *q;

static void start(u32 at)
{
	fake = (struct fake_model){.admitted = U64_MAX, .ready = U64_MAX};
	rig = rig_new(1, 0);
	q = rig_queue_at(rig, 0, EMBENG_QUEUE_GRADIENT, 0, 4, 4, at);
}

static struct embeng_cmd nop(u64 cookie, u32 delay_us)
{
	return (struct embeng_cmd){
		.opcode = EMBENG_OP_NOP,
		.cookie = cookie,
		.arg = (u64)delay_us << EMBENG_NOP_DELAY_SHIFT,
	};
}

static u32 beat_of(const struct rig_queue *queue)
{
	return EMBENG_LOAD_ACQUIRE(&((struct embeng_ring_header *)queue->ring)->heartbeat);
}

START_TEST(indices_say_what_is_done)
{
	struct embeng_cmd now = nop(1, 0), later = nop(2, EMBENG_NOP_DELAY_MAX);

	start(0xfffffffeu);
	ck_assert_uint_eq(rig_header(q)->done, 0xfffffffeu);
	ck_assert_uint_eq(rig_header(q)->sent, 0xfffffffeu);
	rig_call(q, &now);
	rig_call(q, &now);
	rig_submit(q, &later);
	rig_run(rig);
	ck_assert_uint_eq(rig_header(q)->sq_head, 1);
	ck_assert_uint_eq(rig_header(q)->done, 0);
	ck_assert_uint_eq(rig_header(q)->sent, 0);
	ck_assert_uint_eq(rig_header(q)->cq_tail, 0);
	rig_free(rig);
}
END_TEST

/* A heartbeat of the device is one of each queue. */
START_TEST(a_queue_that_waits_lives)
{
	struct embeng_cmd later = nop(2, EMBENG_NOP_DELAY_MAX);
	struct rig_queue *idle;
	u32 beat, progress;

	start(0);
	idle = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	rig_submit(q, &later);
	rig_run(rig);
	beat = beat_of(q);
	progress = rig_header(q)->progress;
	ck_assert_uint_ge(reg_read32(rig->engine, EMBENG_REG_HEARTBEAT_MS), 1);
	while (reg_read32(rig->engine, EMBENG_REG_HEARTBEAT) < beat + 2)
		rig_run(rig);
	ck_assert_uint_eq(beat_of(q), reg_read32(rig->engine, EMBENG_REG_HEARTBEAT));
	/* It is known what it waits for: its own NOP. Nobody else waits for that. */
	ck_assert_uint_ge(rig_header(q)->progress, progress + 1);
	ck_assert_uint_eq(rig_header(idle)->progress, 0);
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_PROGRESS), 0);
	ck_assert_uint_eq(reg_read32(rig->engine, EMBENG_REG_ACTIVE_QUEUE), 0);
	rig_free(rig);
}
END_TEST

static u64 late_queue(void *arg, enum port_fault fault, u32 target)
{
	return fault == PORT_FAULT_DELAY_COMPLETION && target == ((struct rig_queue *)arg)->number
		       ? 3600000000000ull
		       : 0;
}

/* A queue whose completion is late stands, whatever others wait for. */
START_TEST(the_nop_of_another_is_no_reason)
{
	struct embeng_cmd later = nop(2, EMBENG_NOP_DELAY_MAX), now = nop(3, 0);
	struct rig_queue *other;
	u32 beat;

	start(0);
	rig_context(rig, 1);
	other = rig_queue(rig, 1, EMBENG_QUEUE_TRANSFER, 0);
	rig_submit(other, &later);
	rig->host.fault = late_queue;
	rig->host.arg = q;
	rig_submit(q, &now);
	rig_run(rig);
	beat = beat_of(q);
	while (reg_read32(rig->engine, EMBENG_REG_HEARTBEAT) < beat + 2)
		rig_run(rig);
	ck_assert_uint_eq(rig_header(q)->progress, 0);
	ck_assert_uint_ge(rig_header(other)->progress, 1);
	ck_assert_uint_eq(rig_header(q)->cq_tail, 0);
	rig->host.arg = rig;
	rig->host.fault = NULL;
	rig_free(rig);
}
END_TEST

/* Its commands wait for the turn of one that works. */
static struct rig_queue *waits;
static u32 waits_progress; /* when the first command ended */

static void work_for_beats(struct command *command)
{
	u32 beat = reg_read32(rig->engine, EMBENG_REG_HEARTBEAT);

	while (reg_read32(rig->engine, EMBENG_REG_HEARTBEAT) < beat + 3)
		piece_over(command);
	if (fake.runs == 1)
		waits_progress = rig_header(waits)->progress;
}

START_TEST(waiting_for_a_turn_is_a_reason)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_STATE_READ, .cookie = 1};
	struct rig_queue *first, *idle;

	start(0);
	rig_context(rig, 1);
	first = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	waits = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	idle = rig_queue(rig, 1, EMBENG_QUEUE_TRANSFER, 0);
	fake.running = work_for_beats;
	rig_submit(first, &cmd);
	rig_submit(waits, &cmd);
	while (!fake.runs)
		rig_run(rig);
	ck_assert_uint_ge(rig_header(first)->progress, 2);
	ck_assert_uint_ge(waits_progress, 2);
	ck_assert_uint_eq(rig_header(idle)->progress, 0);
	rig_free(rig);
}
END_TEST

START_TEST(a_device_without_work_shows_no_progress)
{
	u32 beat;

	start(0);
	beat = beat_of(q);
	while (reg_read32(rig->engine, EMBENG_REG_HEARTBEAT) < beat + 2)
		rig_run(rig);
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_PROGRESS), 0);
	rig_free(rig);
}
END_TEST

static u64 beats; /* seen by a command while it runs */

static void one_piece(void *arg, u64 task, u32 worker)
{
	(void)task;
	(void)worker;
	beats = reg_read32(arg, EMBENG_REG_HEARTBEAT);
}

/* The heart beats in the middle of a command, however many pieces it has. */
START_TEST(a_long_command_lives)
{
	struct queue queue = {0};
	struct command command = {.queue = &queue};
	u32 before;

	start(0);
	command.context = rig->engine->contexts[0];
	before = reg_read32(rig->engine, EMBENG_REG_HEARTBEAT);
	while (beats < before + 2)
		workers_run(&command, one_piece, rig->engine, 64, 0);
	ck_assert_uint_gt(reg_read64(rig->engine, EMBENG_REG_PROGRESS), 0);
	ck_assert_uint_ge(beat_of(q), before + 2);
	rig_free(rig);
}
END_TEST

static struct embeng_cqe destroy(u8 flags, u32 ms)
{
	struct embeng_admin_cmd cmd = {.opcode = EMBENG_ADMIN_QUEUE_DESTROY,
				       .queue = q->number,
				       .flags = flags,
				       .cq_index = ms};

	return rig_admin(rig, &cmd);
}

static void expect(u64 cookie, u16 status, u64 element, u64 value)
{
	struct embeng_cqe cqe;

	ck_assert(rig_reap(q, &cqe));
	ck_assert_uint_eq(cqe.cookie, cookie);
	ck_assert_uint_eq(cqe.status, status);
	ck_assert_uint_eq(cqe.flags, EMBENG_CQE_DONE);
	ck_assert_uint_eq(cqe.element, element);
	ck_assert_uint_eq(cqe.value, value);
}

START_TEST(a_hung_command_is_told_from_the_rest)
{
	struct embeng_cmd first = nop(7, EMBENG_NOP_DELAY_MAX), second = nop(8, 0);
	struct embeng_cqe cqe;

	start(5);
	rig_submit(q, &first);
	rig_submit(q, &second);
	rig_run(rig);
	ck_assert_uint_eq(destroy(EMBENG_ADMIN_QUEUE_HUNG, 9).status, EMBENG_STATUS_OK);
	expect(7, EMBENG_STATUS_HUNG, 5, 9000000);
	expect(8, EMBENG_STATUS_ABORTED, 0, 0);
	ck_assert(!rig_reap(q, &cqe));
	ck_assert_uint_eq(rig_header(q)->done, 7);
	rig_free(rig);
}
END_TEST

START_TEST(without_a_hang_all_are_aborted)
{
	struct embeng_cmd first = nop(7, EMBENG_NOP_DELAY_MAX);

	start(5);
	rig_submit(q, &first);
	rig_run(rig);
	ck_assert_uint_eq(destroy(0, 0).status, EMBENG_STATUS_OK);
	expect(7, EMBENG_STATUS_ABORTED, 0, 0);
	rig_free(rig);
}
END_TEST

/* A queue goes on in the middle of its rings; what was not read stays. */
START_TEST(a_queue_goes_on_where_it_is_told)
{
	struct embeng_admin_cmd cmd = {.opcode = EMBENG_ADMIN_QUEUE_CREATE,
				       .kind = EMBENG_QUEUE_GRADIENT,
				       .sq_entries = 4,
				       .cq_entries = 4,
				       .flags = EMBENG_ADMIN_QUEUE_AT};
	struct embeng_cmd now = nop(1, 0);

	start(0);
	rig_submit(q, &now);
	rig_run(rig);
	ck_assert_uint_eq(destroy(0, 0).status, EMBENG_STATUS_OK);
	/* By now the program has given two more, which the earlier queue did not take. */
	now.cookie = 11;
	rig_submit(q, &now);
	now.cookie = 12;
	rig_submit(q, &now);
	rig_header(q)->progress = 5;
	cmd.queue = q->number;
	cmd.address = (u64)(size_t)q->ring;
	cmd.sq_index = 1;
	cmd.cq_index = 1;
	ck_assert_uint_eq(rig_admin(rig, &cmd).status, EMBENG_STATUS_OK);
	rig_run(rig);
	ck_assert_uint_eq(rig_header(q)->cq_tail, 3);
	ck_assert_uint_eq(rig_header(q)->sq_head, 3);
	ck_assert_uint_eq(rig->engine->queues[q->number]->progress, 5);
	expect(1, EMBENG_STATUS_OK, 0, 0);
	expect(11, EMBENG_STATUS_OK, 0, 0);
	expect(12, EMBENG_STATUS_OK, 0, 0);
	now.cookie = 2;
	ck_assert_uint_eq(rig_call(q, &now).cookie, 2);
	ck_assert_uint_eq(rig_header(q)->done, 4);
	rig_free(rig);
}
END_TEST

/* Nothing of a queue that had this memory before; one that goes on keeps its counts. */
START_TEST(a_queue_begins_without_the_last_one)
{
	struct embeng_admin_cmd cmd = {.opcode = EMBENG_ADMIN_QUEUE_CREATE,
				       .kind = EMBENG_QUEUE_GRADIENT,
				       .sq_entries = 4,
				       .cq_entries = 4,
				       .flags = _i ? EMBENG_ADMIN_QUEUE_AT : 0};
	struct embeng_ring_header *header;
	struct embeng_cmd now = nop(1, 0);
	u32 interrupts;

	start(0);
	header = rig_header(q);
	ck_assert_uint_eq(destroy(0, 0).status, EMBENG_STATUS_OK);
	header->busy_ns = 7;
	header->progress = 5;
	header->report.state = EMBENG_QUEUE_ERROR;
	header->report.wait = EMBENG_WAIT_SPACE;
	header->report.tail = 9;
	EMBENG_STORE_RELEASE(&q->doorbell->armed, 3);
	cmd.queue = q->number;
	cmd.vector = q->number % 8;
	cmd.address = (u64)(size_t)q->ring;
	interrupts = rig->interrupts[cmd.vector];
	ck_assert_uint_eq(rig_admin(rig, &cmd).status, EMBENG_STATUS_OK);
	ck_assert_uint_eq(header->busy_ns, _i ? 7 : 0);
	ck_assert_uint_eq(header->progress, _i ? 5 : 0);
	ck_assert_uint_eq(header->report.state, EMBENG_QUEUE_RUNNING);
	ck_assert_uint_eq(header->report.wait, EMBENG_WAIT_NOTHING);
	ck_assert_uint_eq(header->report.tail, 0);
	rig_call(q, &now);
	ck_assert_uint_eq(rig->interrupts[cmd.vector], interrupts);
	rig_free(rig);
}
END_TEST

/* The words of its report, as queue_new() leaves them: before the first look at the queue. */
START_TEST(a_report_is_forgotten_at_once)
{
	struct embeng_admin_cmd cmd = {.kind = EMBENG_QUEUE_GRADIENT,
				       .sq_entries = 4,
				       .cq_entries = 4,
				       .flags = EMBENG_ADMIN_QUEUE_AT};
	struct embeng_ring_header *header;
	struct queue *made;

	start(0);
	header = rig_header(q);
	header->report.state = EMBENG_QUEUE_ERROR;
	header->report.wait = EMBENG_WAIT_SPACE;
	header->report.tail = 9;
	cmd.queue = q->number;
	cmd.address = (u64)(size_t)q->ring;
	ck_assert_uint_eq(queue_new(rig->engine, &cmd, &made), EMBENG_STATUS_OK);
	ck_assert_uint_eq(header->report.state, EMBENG_QUEUE_RUNNING);
	ck_assert_uint_eq(header->report.wait, EMBENG_WAIT_NOTHING);
	ck_assert_uint_eq(header->report.tail, 0);
	queue_free(made);
	rig_free(rig);
}
END_TEST

static u64 stop_heart(void *arg, enum port_fault fault, u32 target)
{
	(void)arg;
	(void)target;
	return fault == PORT_FAULT_HEARTBEAT_STOPS;
}

/* Neither a device that hangs has one, nor one that nobody booted. */
START_TEST(a_heart_may_stand_still)
{
	u64 until;
	u32 beat;

	if (_i) {
		start(0);
		rig->host.fault = stop_heart;
	} else {
		rig = rig_power_on(1, 0);
	}
	beat = reg_read32(rig->engine, EMBENG_REG_HEARTBEAT);
	until = port_now_ns() + 2000000ull * rig->engine->heartbeat_ms + 20000000;
	while (port_now_ns() < until)
		rig_run(rig);
	ck_assert_uint_eq(reg_read32(rig->engine, EMBENG_REG_HEARTBEAT), beat);
	rig_free(rig);
}
END_TEST

static u64 lose_memory(void *arg, enum port_fault fault, u32 target)
{
	(void)arg;
	return fault == PORT_FAULT_ECC_UNCORRECTABLE && target;
}

static u32 told;
static u64 errors_when_told;

static void note_errors(void *arg, u32 vector)
{
	(void)arg;
	if (vector)
		return;
	told++;
	errors_when_told = reg_read64(rig->engine, EMBENG_REG_COUNT_ERRORS_DEVICE);
}

/* By the driver's own vector, once for each arming, when the command is counted. */
START_TEST(a_fault_interrupts)
{
	struct embeng_cmd cmd = nop(1, 0);

	start(0);
	rig->host.fault = lose_memory;
	rig->host.interrupt = note_errors;
	ck_assert_uint_eq(rig_call(q, &cmd).status, EMBENG_STATUS_INTERNAL);
	ck_assert_uint_eq(reg_read32(rig->engine, EMBENG_REG_STATUS), EMBENG_DEVICE_FAULT);
	ck_assert_uint_eq(told, 0);
	EMBENG_STORE_RELEASE(&rig->admin.doorbell->arm, rig->admin.head);
	EMBENG_STORE_RELEASE(&rig->admin.doorbell->armed, 1);
	rig_call(q, &cmd);
	rig_call(q, &cmd);
	ck_assert_uint_eq(told, 1);
	ck_assert_uint_eq(errors_when_told, 2);
	rig_free(rig);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, indices_say_what_is_done);
	tcase_add_test(tcase, a_queue_that_waits_lives);
	tcase_add_test(tcase, the_nop_of_another_is_no_reason);
	tcase_add_test(tcase, waiting_for_a_turn_is_a_reason);
	tcase_add_test(tcase, a_device_without_work_shows_no_progress);
	tcase_add_test(tcase, a_long_command_lives);
	tcase_add_test(tcase, a_hung_command_is_told_from_the_rest);
	tcase_add_test(tcase, without_a_hang_all_are_aborted);
	tcase_add_test(tcase, a_queue_goes_on_where_it_is_told);
	tcase_add_loop_test(tcase, a_queue_begins_without_the_last_one, 0, 2);
	tcase_add_test(tcase, a_report_is_forgotten_at_once);
	tcase_add_loop_test(tcase, a_heart_may_stand_still, 0, 2);
	tcase_add_test(tcase, a_fault_interrupts);
}

int main(void)
{
	return suite_main("health", add);
}
