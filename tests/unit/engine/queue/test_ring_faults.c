// SPDX-License-Identifier: MIT
/*
 * Faults that a host injects into rings and commands, looks at the device from inside a command,
 * and what a queue, a drain and the clock do then.
 */
#include "ring_help.h"

#define HOUR_NS 3600000000000ull

static struct rig_queue *q;

/* The fault strikes queue @number so many times. */
static struct {
	enum port_fault fault;
	u32 number, times;
	u64 value;
} struck;

static u64 strike(void *arg, enum port_fault fault, u32 target)
{
	(void)arg;
	if (fault != struck.fault || target != struck.number || !struck.times)
		return 0;
	struck.times--;
	return struck.value;
}

static void inject(enum port_fault fault, u32 times, u64 value)
{
	struck.fault = fault;
	struck.number = q->number;
	struck.times = times;
	struck.value = value;
	rig->host.fault = strike;
}

static struct embeng_cmd nop(u64 cookie)
{
	return (struct embeng_cmd){.opcode = EMBENG_OP_NOP, .cookie = cookie};
}

static void run_some(void)
{
	for (u32 i = 0; i < 4; i++)
		rig_run(rig);
}

/* Until it is destroyed, and its heart does not beat. */
START_TEST(a_stalled_queue_stays_stalled)
{
	struct embeng_admin_cmd end = {.opcode = EMBENG_ADMIN_QUEUE_DESTROY};
	struct embeng_cmd cmd = nop(1);
	struct rig_queue *other;
	u32 beat;

	start();
	q = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	other = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	inject(PORT_FAULT_STALL_QUEUE, 1, 1);
	rig_submit(q, &cmd);
	run_some();
	ck_assert_uint_eq(rig_header(q)->sq_head, 0);
	beat = rig_header(q)->heartbeat;
	while (rig_header(other)->heartbeat < beat + 2)
		rig_run(rig);
	ck_assert_uint_eq(rig_header(q)->heartbeat, beat);
	ck_assert_uint_eq(rig_call(other, &cmd).cookie, 1);
	end.queue = q->number;
	ck_assert_uint_eq(rig_admin(rig, &end).status, EMBENG_STATUS_OK);
	rig_free(rig);
}
END_TEST

START_TEST(a_dropped_completion_counts_as_sent)
{
	struct embeng_cmd cmd = nop(1);
	struct embeng_cqe cqe;

	start();
	q = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	inject(PORT_FAULT_DROP_COMPLETION, 1, 1);
	rig_submit(q, &cmd);
	run_some();
	ck_assert(!rig_reap(q, &cqe));
	ck_assert_uint_eq(rig_header(q)->sent, 1);
	ck_assert_uint_eq(rig_header(q)->done, 1);
	ck_assert_uint_eq(rig_header(q)->cq_tail, 0);
	cmd = nop(2);
	ck_assert_uint_eq(rig_call(q, &cmd).cookie, 2);
	ck_assert_uint_eq(rig_header(q)->sent, 2);
	rig_free(rig);
}
END_TEST

START_TEST(no_completion_comes_before_a_late_one)
{
	struct embeng_cmd cmd;
	struct embeng_cqe cqe;

	start();
	q = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	inject(PORT_FAULT_DELAY_COMPLETION, 1, HOUR_NS);
	for (u64 i = 1; i <= 2; i++) {
		cmd = nop(i);
		rig_submit(q, &cmd);
	}
	run_some();
	ck_assert_uint_eq(rig_header(q)->sq_head, 2);
	ck_assert_uint_eq(rig_header(q)->cq_tail, 0);
	ck_assert_uint_eq(rig_header(q)->done, 0);
	ck_assert(!rig_reap(q, &cqe));
	rig_free(rig);
}
END_TEST

static const struct {
	enum port_fault fault;
	u16 status;
	u32 counter; /* register that counts it, or 0 */
} memory_faults[] = {
	{PORT_FAULT_DMA_ERROR, EMBENG_STATUS_INTERNAL, 0},
	{PORT_FAULT_ECC_UNCORRECTABLE, EMBENG_STATUS_INTERNAL, EMBENG_REG_COUNT_ECC_UNCORRECTABLE},
	{PORT_FAULT_ECC_CORRECTABLE, EMBENG_STATUS_OK, EMBENG_REG_COUNT_ECC_CORRECTABLE},
};

/* A command that fails with one is not run, and counts as the device's. */
START_TEST(memory_faults_fail_what_meets_them)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_STATE_READ, .cookie = 3};
	u16 status = memory_faults[_i].status;

	start();
	q = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	inject(memory_faults[_i].fault, 1, 1);
	ck_assert_uint_eq(rig_call(q, &cmd).status, status);
	ck_assert_uint_eq(fake.runs, !status);
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_COUNT_ERRORS_DEVICE), !!status);
	if (memory_faults[_i].counter)
		ck_assert_uint_eq(reg_read64(rig->engine, memory_faults[_i].counter), 1);
	ck_assert_uint_eq(rig_call(q, &cmd).status, EMBENG_STATUS_OK);
	ck_assert_uint_eq(fake.runs, 1 + !status);
	rig_free(rig);
}
END_TEST

/* A NOP's wish is the program's, another failure of it the device's. */
START_TEST(a_fault_is_no_wish)
{
	struct embeng_cmd cmd = nop(3);

	start();
	q = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	inject(PORT_FAULT_DMA_ERROR, 1, 1);
	ck_assert_uint_eq(rig_call(q, &cmd).status, EMBENG_STATUS_INTERNAL);
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_COUNT_ERRORS_DEVICE), 1);
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_COUNT_ERRORS_PROGRAM), 0);
	rig_free(rig);
}
END_TEST

/* Each that is in flight will post one more. */
START_TEST(completions_in_flight_are_reserved)
{
	static const u16 flags[] = {EMBENG_CQE_ACCEPTED, EMBENG_CQE_ACCEPTED, EMBENG_CQE_DONE,
				    EMBENG_CQE_DONE};
	struct embeng_cmd cmd;
	struct embeng_cqe cqe;

	start();
	fake.ready = 0;
	q = rig_queue_at(rig, 0, EMBENG_QUEUE_INPUT, 0, 2, 4, 0);
	for (u64 step = 1; step <= 3; step++) {
		cmd = lookup(step);
		rig_submit(q, &cmd);
		run_some();
	}
	ck_assert_uint_eq(rig_header(q)->sq_head, 2);
	ck_assert_uint_eq(rig_report(q).state, EMBENG_QUEUE_CQ_FULL);
	fake.ready = 2;
	run_some();
	ck_assert_uint_eq(rig_header(q)->cq_tail, 4);
	for (u32 i = 0; i < 4; i++) {
		ck_assert(rig_reap(q, &cqe));
		ck_assert_uint_eq(cqe.flags, flags[i]);
		ck_assert_uint_eq(cqe.step, 1 + i % 2);
	}
	run_some();
	ck_assert_uint_eq(rig_header(q)->sq_head, 3);
	rig_free(rig);
}
END_TEST

/* -- looks from inside a command ------------------------------------------ */

static u32 taken, runs, commits;

static void look_inside(void)
{
	engine_run(rig->engine, ENGINE_RUN_ALL);
	taken = rig_header(q)->sq_head;
	runs = fake.runs;
	commits = fake.commits;
}

static void submit_and_look(struct command *command)
{
	struct embeng_cmd next = lookup(2);

	if (command->cmd.step != 1)
		return;
	rig_submit(q, &next);
	look_inside();
}

/* The thread that accepts it has the queue, and the command, to itself. */
START_TEST(a_queue_is_fetched_by_one_thread)
{
	struct embeng_cmd cmd;

	start();
	fake.accepting = submit_and_look;
	q = rig_queue(rig, 0, EMBENG_QUEUE_INPUT, 0);
	cmd = lookup(1);
	rig_submit(q, &cmd);
	run_some();
	ck_assert_uint_eq(taken, 1);
	ck_assert_uint_eq(commits, 0);
	ck_assert_uint_eq(runs, 0);
	ck_assert_uint_eq(fake.runs, 2);
	ck_assert_uint_eq(fake.log[0], 1);
	ck_assert_uint_eq(fake.log[1], 2);
	rig_free(rig);
}
END_TEST

static void look_once(struct command *command)
{
	(void)command;
	if (fake.runs == 1)
		look_inside();
}

/* Whatever context the others are of. */
START_TEST(one_command_runs_at_a_time)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_STATE_READ, .cookie = 1};
	struct rig_queue *other;

	start();
	rig_context(rig, 1);
	fake.running = look_once;
	q = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	other = rig_queue(rig, 1, EMBENG_QUEUE_TRANSFER, 0);
	rig_submit(q, &cmd);
	cmd.cookie = 2;
	rig_submit(other, &cmd);
	run_some();
	ck_assert_uint_eq(runs, 1);
	ck_assert_uint_eq(fake.runs, 2);
	rig_free(rig);
}
END_TEST

/* -- drains --------------------------------------------------------------- */

START_TEST(a_drain_does_not_wait_for_the_blocked)
{
	struct embeng_cmd cmd, drain = {.opcode = EMBENG_OP_DRAIN, .cookie = 8, .step = 1};
	struct rig_queue *transfer;
	struct embeng_cqe cqe;

	start();
	fake.admitted = 1;
	q = rig_queue(rig, 0, EMBENG_QUEUE_INPUT, 0);
	transfer = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	cmd = lookup(2);
	rig_submit(q, &cmd);
	run_some();
	ck_assert_uint_eq(rig_header(q)->sq_head, 0);
	rig_submit(transfer, &drain);
	run_some();
	ck_assert(rig_reap(transfer, &cqe));
	ck_assert_uint_eq(cqe.cookie, 8);
	rig_free(rig);
}
END_TEST

static struct rig_queue *drains;

static void drain_while_it_ends(struct command *command)
{
	struct embeng_cmd drain = {.opcode = EMBENG_OP_DRAIN, .cookie = 8, .step = 1};
	struct embeng_admin_cmd end = {.opcode = EMBENG_ADMIN_QUEUE_DESTROY, .queue = q->number};

	if (command->cmd.opcode != EMBENG_OP_LOOKUP)
		return;
	rig_admin_submit(rig, &end);
	rig_submit(drains, &drain);
	look_inside();
}

/* A queue that ends does nothing more of what it still has. */
START_TEST(a_drain_does_not_wait_for_a_queue_that_ends)
{
	struct embeng_cmd cmd;

	start();
	fake.accepting = drain_while_it_ends;
	q = rig_queue(rig, 0, EMBENG_QUEUE_INPUT, 0);
	drains = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	for (u64 step = 1; step <= 2; step++) {
		cmd = lookup(step);
		rig_submit(q, &cmd);
	}
	rig_run(rig);
	ck_assert_uint_eq(runs, 1);
	ck_assert_uint_eq(fake.log[0], 8);
	rig_free(rig);
}
END_TEST

START_TEST(the_clock_never_goes_back)
{
	u64 now;

	start();
	now = clock_read(rig->engine);
	clock_saw(rig->engine, now - 1);
	ck_assert_uint_eq(rig->engine->now_ns, now);
	clock_saw(rig->engine, now + 1);
	ck_assert_uint_eq(rig->engine->now_ns, now + 1);
	rig_free(rig);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, a_stalled_queue_stays_stalled);
	tcase_add_test(t, a_dropped_completion_counts_as_sent);
	tcase_add_test(t, no_completion_comes_before_a_late_one);
	tcase_add_loop_test(t, memory_faults_fail_what_meets_them, 0, 3);
	tcase_add_test(t, a_fault_is_no_wish);
	tcase_add_test(t, completions_in_flight_are_reserved);
	tcase_add_test(t, a_queue_is_fetched_by_one_thread);
	tcase_add_test(t, one_command_runs_at_a_time);
	tcase_add_test(t, a_drain_does_not_wait_for_the_blocked);
	tcase_add_test(t, a_drain_does_not_wait_for_a_queue_that_ends);
	tcase_add_test(t, the_clock_never_goes_back);
}

int main(void)
{
	return suite_main("ring_faults", add);
}
