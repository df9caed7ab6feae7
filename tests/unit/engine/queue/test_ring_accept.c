// SPDX-License-Identifier: MIT
/* Commands that are taken before they may run: lookups ahead, drains. */
#include <unistd.h>

#include "ring_help.h"

#define WAITERS 4u

START_TEST(lookups_are_accepted_ahead_and_done_in_order)
{
	struct rig_queue *q;
	struct embeng_cmd cmd;
	struct embeng_cqe cqe;
	u64 step, depth;

	start();
	fake.ready = 0;
	q = rig_queue(rig, 0, EMBENG_QUEUE_INPUT, 0);
	depth = reg_read32(rig->engine, EMBENG_REG_STEP_DEPTH);
	for (step = 1; step <= depth + 1; step++) {
		cmd = lookup(step);
		rig_submit(q, &cmd);
	}
	rig_run(rig);
	ck_assert_uint_eq(fake.commits, depth);
	ck_assert_uint_eq(rig_header(q)->sq_head, depth);
	for (step = 1; step <= depth; step++) {
		ck_assert(rig_reap(q, &cqe));
		ck_assert_uint_eq(cqe.flags, EMBENG_CQE_ACCEPTED);
		ck_assert_uint_eq(cqe.step, step);
	}
	fake.ready = U64_MAX;
	for (step = 1; step <= depth + 1; step++) {
		do
			cqe = rig_wait(q);
		while (cqe.flags != EMBENG_CQE_DONE);
		ck_assert_uint_eq(cqe.step, step);
		ck_assert_uint_eq(fake.log[step - 1], step);
	}
	ck_assert_uint_eq(fake.finishes, depth + 1);
	ck_assert_uint_eq(fake.releases, depth + 1);
	rig_free(rig);
}
END_TEST

START_TEST(a_refused_lookup_answers_at_once)
{
	struct rig_queue *q;
	struct embeng_cmd cmd = lookup(1);
	struct embeng_cqe cqe;

	start();
	fake.ready = 0;
	q = rig_queue(rig, 0, EMBENG_QUEUE_INPUT, 0);
	ck_assert_uint_eq(rig_call(q, &cmd).flags, EMBENG_CQE_ACCEPTED);
	fake.accept_status = EMBENG_STATUS_ID;
	cmd = lookup(2);
	cqe = rig_call(q, &cmd);
	rig_assert_cqe(&cqe, 2, EMBENG_STATUS_ID, EMBENG_FIELD_IDS);
	ck_assert_uint_eq(cqe.flags, EMBENG_CQE_DONE);
	ck_assert_uint_eq(cqe.feature, 3);
	ck_assert_uint_eq(cqe.element, 4);
	ck_assert_uint_eq(cqe.value, 5);
	ck_assert_uint_eq(cqe.limit, 6);
	ck_assert_uint_eq(fake.finishes, 0);
	ck_assert_uint_eq(fake.releases, 1);
	/* The queue goes on behind the one that waits, which is not done before it. */
	ck_assert_uint_eq(rig_header(q)->done, 0);
	fake.accept_status = 0;
	cmd = lookup(3);
	ck_assert_uint_eq(rig_call(q, &cmd).flags, EMBENG_CQE_ACCEPTED);
	ck_assert_uint_eq(rig_header(q)->done, 0);
	fake.ready = U64_MAX;
	ck_assert_uint_eq(rig_wait(q).step, 1);
	ck_assert_uint_eq(rig_wait(q).step, 3);
	ck_assert_uint_eq(rig_header(q)->done, 3);
	rig_free(rig);
}
END_TEST

/* A completion tells the step of its command: its own, or the one that it comes after. */
START_TEST(a_completion_tells_the_step)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_LOOKUP, .after = 3};
	struct rig_queue *q;

	start();
	cmd.desc = mem;
	q = rig_queue(rig, 0, EMBENG_QUEUE_INFERENCE, 0);
	ck_assert_uint_eq(rig_call(q, &cmd).step, 3);
	ck_assert_uint_eq(rig_wait(q).step, 3);
	rig_free(rig);
}
END_TEST

/* Only queues of lookups and gradients have steps to take ahead. */
START_TEST(a_transfer_queue_takes_one)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_DRAIN, .step = 1};
	struct rig_queue *q;

	start();
	fake.ready = 0;
	q = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	for (u32 i = 0; i < 3; i++)
		rig_submit(q, &cmd);
	rig_run(rig);
	ck_assert_uint_eq(rig_header(q)->sq_head, 1);
	ck_assert_uint_eq(fake.commits, 1);
	rig_free(rig);
}
END_TEST

static u64 accepted[WAITERS];
static u32 accepted_count;

static void note_accepted(struct command *command)
{
	accepted[accepted_count++ % WAITERS] = command->cmd.cookie;
}

/* One of each queue: the highest priority first, whatever the numbers of the queues are. */
START_TEST(a_higher_priority_is_fetched_first)
{
	static const u8 priorities[WAITERS] = {1, 3, 0, 2};
	static const u64 order[WAITERS] = {2, 4, 1, 3};
	struct rig_queue *queues[WAITERS];
	struct embeng_admin_cmd made = {
		.kind = EMBENG_QUEUE_INPUT, .sq_entries = 16, .cq_entries = 32};
	struct embeng_cmd cmd;

	start();
	accepted_count = 0;
	fake.ready = 0;
	fake.accepting = note_accepted;
	for (made.replica = 0; made.replica < WAITERS; made.replica++) {
		made.priority = priorities[made.replica];
		queues[made.replica] = rig_queue_of(rig, made, 0);
	}
	for (u32 i = 0; i < WAITERS; i++) {
		cmd = lookup(1);
		cmd.cookie = 1 + i;
		rig_submit(queues[i], &cmd);
	}
	rig_run(rig);
	ck_assert_uint_eq(accepted_count, WAITERS);
	for (u32 i = 0; i < WAITERS; i++)
		ck_assert_uint_eq(accepted[i], order[i]);
	rig_free(rig);
}
END_TEST

static struct rig_queue *gradient, *transfer;

/* The gradient queue was looked at just before, the transfer queue comes next. */
static void ring_two(struct command *command)
{
	struct embeng_cmd update = {
		.opcode = EMBENG_OP_UPDATE, .cookie = 70, .step = 1, .desc = mem};
	struct embeng_cmd drain = {.opcode = EMBENG_OP_DRAIN, .cookie = 71, .step = 1};

	if (command->cmd.opcode != EMBENG_OP_LOOKUP)
		return;
	rig_submit(gradient, &update);
	rig_submit(transfer, &drain);
}

START_TEST(a_drain_covers_what_was_rung_before_it)
{
	struct rig_queue *input;
	struct embeng_cmd cmd;
	struct embeng_cqe cqe;

	start();
	gradient = rig_queue(rig, 0, EMBENG_QUEUE_GRADIENT, 0);
	input = rig_queue(rig, 0, EMBENG_QUEUE_INPUT, 0);
	transfer = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	fake.ready = 1; /* the lookup itself waits */
	fake.accepting = ring_two;
	cmd = lookup(2);
	rig_submit(input, &cmd);
	cqe = rig_wait(transfer);
	rig_assert_cqe(&cqe, 71, EMBENG_STATUS_OK, EMBENG_FIELD_NONE);
	ck_assert_uint_eq(fake.runs, 2);
	ck_assert_uint_eq(fake.log[0], 70);
	ck_assert_uint_eq(fake.log[1], 71);
	rig_free(rig);
}
END_TEST

START_TEST(accepting_computes_nothing)
{
	struct rig_queue *q;
	struct embeng_cmd cmd = lookup(1);
	struct embeng_cqe cqe;

	start();
	q = rig_queue(rig, 0, EMBENG_QUEUE_INPUT, 0);
	rig_submit(q, &cmd);
	ck_assert_int_eq(engine_run(rig->engine, ENGINE_RUN_ACCEPT), 1);
	ck_assert(rig_reap(q, &cqe));
	ck_assert_uint_eq(cqe.flags, EMBENG_CQE_ACCEPTED);
	ck_assert_uint_eq(fake.runs, 0);
	ck_assert_int_eq(engine_run(rig->engine, ENGINE_RUN_ALL), 1);
	ck_assert_uint_eq(fake.runs, 1);
	ck_assert_int_eq(engine_run(rig->engine, ENGINE_RUN_ALL), 0);
	rig_free(rig);
}
END_TEST

/* One program's flood: the call comes back with the rest undone, and does not call that still. */
START_TEST(a_call_is_bounded)
{
	const struct embeng_ring_header *header;
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_NOP};
	struct rig_queue *q;

	start();
	q = rig_queue_at(rig, 0, EMBENG_QUEUE_TRANSFER, 0, 4096, 8192, 0);
	header = (const struct embeng_ring_header *)(q->ring + q->layout.header);
	for (u32 i = 0; i < 4096; i++)
		rig_submit(q, &cmd);
	ck_assert_int_eq(engine_run(rig->engine, ENGINE_RUN_ALL), 1);
	ck_assert_uint_gt(header->cq_tail, 0);
	ck_assert_uint_lt(header->cq_tail, 4096);
	ck_assert_uint_ne(header->report.tail, 4096);
	while (engine_run(rig->engine, ENGINE_RUN_ALL))
		;
	ck_assert_uint_eq(header->cq_tail, 4096);
	ck_assert_uint_eq(header->report.tail, 4096);
	rig_free(rig);
}
END_TEST

/* Small work is done when it was given; the rest is left, and a sleeper woken for it. */
START_TEST(giving_does_what_is_small)
{
	struct embeng_cmd cmd = lookup(1);
	struct embeng_cqe cqe;
	struct rig_queue *q;

	start();
	q = rig_queue(rig, 0, EMBENG_QUEUE_INPUT, 0);
	fake.small = _i;
	rig_submit(q, &cmd);
	engine_give(rig->engine);
	ck_assert_uint_eq(fake.runs, _i);
	ck_assert(rig_reap(q, &cqe));
	ck_assert_uint_eq(cqe.flags, EMBENG_CQE_ACCEPTED);
	ck_assert_int_eq(rig_reap(q, &cqe), _i);
	ck_assert_int_eq(engine_run(rig->engine, ENGINE_RUN_ALL), !_i);
	ck_assert_uint_eq(fake.runs, 1);
	rig_free(rig);
}
END_TEST

static u32 given_state(struct rig_queue *q, u64 step)
{
	struct embeng_cmd cmd = lookup(step);

	rig_submit(q, &cmd);
	engine_give(rig->engine);
	return rig_report(q).state;
}

/*
 * engine_give() that ends a wait reports the queue as running, so that the next wait counts again.
 */
START_TEST(giving_reports_what_ends_a_wait)
{
	struct embeng_cqe cqe;
	struct rig_queue *q;

	start();
	q = rig_queue(rig, 0, EMBENG_QUEUE_INPUT, 0);
	fake.small = true;
	for (u64 waits = 1; waits <= 2; waits++) {
		fake.ready = 0;
		ck_assert_uint_eq(given_state(q, waits), EMBENG_QUEUE_BLOCKED);
		ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_COUNT_WAITS), waits);
		fake.ready = waits;
		engine_give(rig->engine);
		ck_assert_uint_eq(rig_report(q).state, EMBENG_QUEUE_RUNNING);
		while (rig_reap(q, &cqe))
			;
		ck_assert_uint_eq(cqe.step, waits);
	}
	rig_free(rig);
}
END_TEST

/* Nobody runs the engine but its own thread, which sleeps when nothing comes for a while. */
START_TEST(what_is_not_small_wakes_the_service)
{
	struct embeng_cmd cmd;
	struct embeng_cqe cqe;
	struct rig_queue *q;

	rig = rig_new(1, 1);
	fake = (struct fake_model){.admitted = U64_MAX, .ready = U64_MAX};
	q = rig_queue(rig, 0, EMBENG_QUEUE_INPUT, 0);
	for (u64 step = 1; step <= 20; step++) {
		usleep(500 * (step % 4));
		cmd = lookup(step);
		rig_submit(q, &cmd);
		engine_give(rig->engine);
		do {
			while (!rig_reap(q, &cqe))
				usleep(10);
		} while (cqe.flags != EMBENG_CQE_DONE);
		ck_assert_uint_eq(cqe.step, step);
	}
	rig_free(rig);
}
END_TEST

#define STEPS 3u

/* Queues of as many replicas, each with lookups that may run all at once. */
static void run_waiters(const u8 *priorities)
{
	struct embeng_admin_cmd made = {
		.kind = EMBENG_QUEUE_INPUT, .sq_entries = 16, .cq_entries = 32};
	struct embeng_cmd cmd;
	struct rig_queue *q;
	u64 step;

	start();
	fake.ready = 0;
	for (made.replica = 0; made.replica < WAITERS; made.replica++) {
		made.priority = priorities[made.replica];
		q = rig_queue_of(rig, made, 0);
		for (step = 1; step <= STEPS; step++) {
			cmd = lookup(step);
			cmd.cookie = 10 * made.replica + step;
			rig_submit(q, &cmd);
		}
	}
	rig_run(rig);
	ck_assert_uint_eq(fake.commits, WAITERS * STEPS);
	fake.ready = U64_MAX;
	rig_run(rig);
	ck_assert_uint_eq(fake.runs, WAITERS * STEPS);
	rig_free(rig);
}

/* All that a queue has goes before anything of one below it. */
START_TEST(a_higher_priority_goes_first)
{
	static const u64 order[] = {11, 12, 13, 31, 32, 33, 1, 2, 3, 21, 22, 23};
	u32 i;

	run_waiters((const u8[WAITERS]){1, 3, 0, 2});
	for (i = 0; i < WAITERS * STEPS; i++)
		ck_assert_uint_eq(fake.log[i], order[i]);
}
END_TEST

START_TEST(equals_take_turns)
{
	u32 i;

	run_waiters((const u8[WAITERS]){1, 1, 1, 1});
	for (i = 0; i < WAITERS * STEPS; i++)
		ck_assert_uint_eq(fake.log[i], 10 * (i % WAITERS) + i / WAITERS + 1);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, lookups_are_accepted_ahead_and_done_in_order);
	tcase_add_test(t, a_refused_lookup_answers_at_once);
	tcase_add_test(t, a_completion_tells_the_step);
	tcase_add_test(t, a_transfer_queue_takes_one);
	tcase_add_test(t, a_higher_priority_is_fetched_first);
	tcase_add_test(t, a_drain_covers_what_was_rung_before_it);
	tcase_add_test(t, accepting_computes_nothing);
	tcase_add_test(t, a_call_is_bounded);
	tcase_add_test(t, giving_reports_what_ends_a_wait);
	tcase_add_loop_test(t, giving_does_what_is_small, 0, 2);
	tcase_add_test(t, what_is_not_small_wakes_the_service);
	tcase_add_test(t, a_higher_priority_goes_first);
	tcase_add_test(t, equals_take_turns);
}

int main(void)
{
	return suite_main("ring_accept", add);
}
