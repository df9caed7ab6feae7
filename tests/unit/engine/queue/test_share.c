// SPDX-License-Identifier: MIT
/*
 * The device is shared by contexts, and by the time that it works for them: on a clock of the test's
 * own, commands take as long as they say.
 */
#include "fake_model.h"
#include "rig.h"
#include "suite.h"

#define MS 1000000ull
#define HOGS 6u

static struct rig *rig;
static u64 clock_ns = 1000 * MS;
static struct rig_queue *hogs[HOGS], *meek;

static struct {
	u64 cost_ns[2];	  /* time that a command takes, by context */
	u64 served_ns[2]; /* worked for them */
	u32 runs[2], accepts[2];
	u64 until;    /* both always have commands, see refill() */
	bool refuses; /* commands of context 0, after they were looked at */
	bool pieces;  /* a command of context 0 works in pieces of a millisecond */
} test;

u64 __wrap_port_now_ns(void);
u64 __wrap_port_now_ns(void)
{
	return clock_ns += 10;
}

static void take_time(struct command *command)
{
	u32 context = command->context->number;
	u64 left = test.cost_ns[context];

	for (u64 n; left; left -= n) {
		n = test.pieces && left > MS ? MS : left;
		clock_ns += n;
		if (!test.until || clock_ns <= test.until + n)
			test.served_ns[context] += n;
		for (u32 i = 0; test.pieces && !context && i < 16; i++)
			piece_over(command);
	}
}

static struct rig_queue *queue_of(u32 context, u32 priority)
{
	struct embeng_admin_cmd cmd = {.kind = EMBENG_QUEUE_TRANSFER,
				       .context = context,
				       .priority = (u8)priority,
				       .sq_entries = 16,
				       .cq_entries = 16};

	return rig_queue_of(rig, cmd, 0);
}

static void give(struct rig_queue *q, u64 arg)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_STATE_READ, .arg = arg};
	struct embeng_cqe cqe;

	while (rig_reap(q, &cqe))
		;
	while (q->tail - q->head < 8)
		rig_submit(q, &cmd);
}

static void give_hogs(void)
{
	for (u32 i = 0; i < HOGS; i++)
		give(hogs[i], 0);
}

/* Programs give more work as soon as there is room, until that time. */
static void refill(void)
{
	if (clock_ns >= test.until)
		return;
	give_hogs();
	give(meek, 0);
}

static void work(struct command *command)
{
	test.runs[command->context->number]++;
	take_time(command);
	refill();
}

static void look(struct command *command)
{
	u32 context = command->context->number;

	test.accepts[context]++;
	fake.accept_status = test.refuses && !context ? EMBENG_STATUS_ID : 0;
	if (test.refuses && !context)
		take_time(command);
	refill();
}

static void start(u32 hog_priority, u32 priority, u64 hog_ns, u64 ns)
{
	memset(&test, 0, sizeof(test));
	test.cost_ns[0] = hog_ns;
	test.cost_ns[1] = ns;
	fake = (struct fake_model){
		.admitted = U64_MAX, .ready = U64_MAX, .running = work, .accepting = look};
	rig = rig_new(1, 0);
	rig_context(rig, 1);
	for (u32 i = 0; i < HOGS; i++)
		hogs[i] = queue_of(0, hog_priority);
	meek = queue_of(1, priority);
}

/* Both have work all the time, until the device worked for so long. */
static void compete(u64 ns)
{
	test.until = clock_ns + ns;
	refill();
	while (clock_ns < test.until)
		engine_run(rig->engine, ENGINE_RUN_ALL);
}

static void expect_halves(u64 each)
{
	u64 a = test.served_ns[0], b = test.served_ns[1];

	ck_assert_msg((a > b ? a - b : b - a) <= each, "%llu and %llu", a, b);
}

/* One queue of short commands against several of long ones, whatever the ordinary priorities are. */
START_TEST(contexts_have_equal_shares)
{
	static const struct {
		u64 hog_ns, ns;
		u32 hog_priority, priority;
	} cases[] = {
		{10 * MS, 10 * MS, 0, 0}, {50 * MS, 5 * MS, 0, 0},    {5 * MS, 50 * MS, 0, 0},
		{10 * MS, 10 * MS, 1, 0}, {1000 * MS, MS / 10, 1, 0}, {10 * MS, 10 * MS, 3, 3},
	};
	const u64 all = cases[_i].hog_ns > cases[_i].ns ? cases[_i].hog_ns : cases[_i].ns;

	start(cases[_i].hog_priority, cases[_i].priority, cases[_i].hog_ns, cases[_i].ns);
	compete(100 * all);
	/* Looks at rings take time, too. */
	expect_halves(2 * all + all);
	rig_free(rig);
}
END_TEST

/* Time that was not used is not saved up, and time that was used alone is not held against anybody. */
START_TEST(idle_contexts_save_nothing)
{
	start(0, 0, 10 * MS, 10 * MS);
	for (u32 i = 0; i < 50; i++) {
		give_hogs();
		engine_run(rig->engine, ENGINE_RUN_ALL);
	}
	ck_assert_uint_ge(test.runs[0], 500);
	memset(test.served_ns, 0, sizeof(test.served_ns));
	compete(1000 * MS);
	expect_halves(2 * 10 * MS);
	rig_free(rig);
}
END_TEST

/* A privilege: before all shares. */
static void expect_high(struct command *command)
{
	if (fake.runs <= 8)
		ck_assert_uint_eq(command->queue->priority, 2);
	clock_ns += 10 * MS;
}

START_TEST(high_priorities_come_first)
{
	struct rig_queue *high;

	start(1, 1, 10 * MS, 10 * MS);
	high = queue_of(0, 2);
	give_hogs();
	give(meek, 0);
	give(high, 0);
	fake.running = expect_high;
	engine_run(rig->engine, ENGINE_RUN_ALL);
	ck_assert_uint_eq(fake.runs, 8 * (HOGS + 2));
	rig_free(rig);
}
END_TEST

/* Commands that are refused only after all of them was read cost their context, too. */
START_TEST(refused_commands_cost_their_context)
{
	start(0, 0, 100 * MS, MS);
	test.refuses = true;
	compete(20000 * MS);
	ck_assert_uint_eq(test.runs[0], 0);
	/* In a round each queue of the hog's may have one refused. */
	expect_halves(3ull * HOGS * 100 * MS);
	rig_free(rig);
}
END_TEST

static struct embeng_cmd lookup_of(u64 step)
{
	return (struct embeng_cmd){
		.opcode = EMBENG_OP_LOOKUP, .step = step, .desc = {.length = 64}};
}

/* Nobody else has anything that can be taken: then all of it is. */
START_TEST(nobody_waits_for_the_blocked)
{
	struct embeng_cmd never = lookup_of(6);
	struct rig_queue *blocked;

	start(0, 0, 100 * MS, MS);
	blocked = rig_queue(rig, 1, EMBENG_QUEUE_INPUT, 0);
	fake.admitted = 5;
	for (u32 i = 0; i < 3; i++) {
		give_hogs();
		/* By now the other context is far ahead of this one, whose command is seen first. */
		if (i)
			rig_submit(blocked, &never);
		engine_run(rig->engine, ENGINE_RUN_ALL);
		ck_assert(!i || rig_report(blocked).state == EMBENG_QUEUE_BLOCKED);
		ck_assert_uint_eq(test.runs[0], (i + 1) * 8 * HOGS);
	}
	ck_assert_uint_eq(test.runs[1], 0);
	rig_free(rig);
}
END_TEST

static u32 accepted[8], accepted_count;

static void note_context(struct command *command)
{
	accepted[accepted_count++ % 8] = command->context->number;
}

/*
 * A context that gives nothing, and one whose command cannot be taken, are behind all others, but
 * nobody lets them go first: one command each of the two that have some is taken in turn.
 */
START_TEST(idle_and_stuck_contexts_hold_nobody_back)
{
	struct embeng_cmd never = lookup_of(6);
	struct rig_queue *stuck, *near, *far;

	start(0, 0, MS, MS);
	rig_context(rig, 2);
	stuck = rig_queue(rig, 0, EMBENG_QUEUE_INPUT, 0);
	near = rig_queue(rig, 1, EMBENG_QUEUE_INPUT, 0);
	far = rig_queue(rig, 2, EMBENG_QUEUE_INPUT, 0);
	fake.admitted = 5;
	fake.accepting = note_context;
	accepted_count = 0;
	if (_i)
		rig_submit(stuck, &never);
	engine_run(rig->engine, ENGINE_RUN_ACCEPT);
	ck_assert(!_i || rig_report(stuck).state == EMBENG_QUEUE_BLOCKED);
	rig->engine->contexts[1]->served_ns = rig->engine->share_ns + 8 * MS;
	rig->engine->contexts[2]->served_ns = rig->engine->share_ns + 15 * MS;
	for (u64 step = 1; step <= 2; step++) {
		struct embeng_cmd cmd = lookup_of(step);

		rig_submit(near, &cmd);
		rig_submit(far, &cmd);
	}
	engine_run(rig->engine, ENGINE_RUN_ACCEPT);
	ck_assert_uint_eq(accepted_count, 4);
	for (u32 i = 0; i < 4; i++)
		ck_assert_uint_eq(accepted[i], 1 + i % 2);
	rig_free(rig);
}
END_TEST

static u64 stall_first(void *arg, enum port_fault fault, u32 target)
{
	(void)arg;
	return fault == PORT_FAULT_STALL_QUEUE && target == hogs[0]->number;
}

/* It looks as if it had something to take, for ever. */
START_TEST(a_stalled_queue_holds_nobody_back)
{
	start(0, 0, MS, MS);
	rig->host.fault = stall_first;
	give(hogs[0], 0);
	engine_run(rig->engine, ENGINE_RUN_ALL);
	rig->engine->contexts[1]->served_ns = rig->engine->share_ns + 1000 * MS;
	give(meek, 0);
	engine_run(rig->engine, ENGINE_RUN_ALL);
	ck_assert_uint_eq(test.runs[0], 0);
	ck_assert_uint_eq(test.runs[1], 8);
	rig_free(rig);
}
END_TEST

static u32 meek_runs_at_end; /* when the long command ended */
static u32 accepts_at_end;   /* commands of its own context, when the first command ended */

static void work_noted(struct command *command)
{
	work(command);
	if (fake.runs == 1)
		accepts_at_end = test.accepts[0];
	if (!command->context->number)
		meek_runs_at_end = test.runs[1];
}

/* Between the pieces of a long command, as long as their context has less than its share. */
START_TEST(small_commands_do_not_wait_for_long_ones)
{
	struct embeng_cmd small = {.opcode = EMBENG_OP_STATE_READ, .arg = _i ? FAKE_SMALL : 0};
	struct embeng_cmd large = {.opcode = EMBENG_OP_STATE_READ};

	start(0, 0, 1000 * MS, MS);
	test.pieces = true;
	fake.running = work_noted;
	rig_submit(hogs[0], &large);
	engine_run(rig->engine, ENGINE_RUN_ACCEPT);
	for (u32 i = 0; i < 10; i++)
		rig_submit(meek, &small);
	/* The context that has waited, and the one that runs, are both served. */
	rig->engine->contexts[1]->served_ns = rig->engine->share_ns + 5 * MS;
	while (!test.runs[0])
		engine_run(rig->engine, ENGINE_RUN_ALL);
	ck_assert_uint_eq(meek_runs_at_end, _i ? 10 : 0);
	rig_free(rig);
}
END_TEST

/* But no more than their context's share. */
START_TEST(long_commands_go_on)
{
	struct embeng_cmd large = {.opcode = EMBENG_OP_STATE_READ};
	struct embeng_cmd small = {.opcode = EMBENG_OP_STATE_READ, .arg = FAKE_SMALL};

	start(0, 0, 40 * MS, 5 * MS);
	test.pieces = true;
	fake.running = work_noted;
	rig_submit(hogs[0], &large);
	engine_run(rig->engine, ENGINE_RUN_ACCEPT);
	for (u32 i = 0; i < 15; i++)
		rig_submit(meek, &small);
	rig->engine->contexts[1]->served_ns = rig->engine->share_ns + 1;
	while (!test.runs[0] || test.runs[1] < 15)
		engine_run(rig->engine, ENGINE_RUN_ALL);
	/* In 40 ms of its own the others had 40, and what was begun; those are not its own. */
	ck_assert_uint_le(rig->engine->contexts[0]->served_ns, 45 * MS);
	ck_assert_uint_ge(meek_runs_at_end, 7);
	ck_assert_uint_le(meek_runs_at_end, 9);
	rig_free(rig);
}
END_TEST

static void work_after_giving(struct command *command)
{
	struct embeng_cmd small = {.opcode = EMBENG_OP_STATE_READ, .arg = FAKE_SMALL, .cookie = 9};

	if (fake.runs == 1)
		rig_submit(hogs[1], &small);
	work_noted(command);
}

/* The device serves another queue of the context that it works for when that is done. */
START_TEST(a_context_does_not_overtake_itself)
{
	struct embeng_cmd large = {.opcode = EMBENG_OP_STATE_READ};

	start(0, 0, 40 * MS, 5 * MS);
	test.pieces = true;
	fake.running = work_after_giving;
	rig_submit(hogs[0], &large);
	while (test.runs[0] < 2)
		engine_run(rig->engine, ENGINE_RUN_ALL);
	/* Nor was it fetched between the pieces. */
	ck_assert_uint_eq(accepts_at_end, 1);
	ck_assert_uint_eq(fake.log[0], 0);
	ck_assert_uint_eq(fake.log[1], 9);
	rig_free(rig);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, contexts_have_equal_shares, 0, 6);
	tcase_add_test(tcase, idle_contexts_save_nothing);
	tcase_add_test(tcase, high_priorities_come_first);
	tcase_add_test(tcase, refused_commands_cost_their_context);
	tcase_add_test(tcase, nobody_waits_for_the_blocked);
	tcase_add_loop_test(tcase, idle_and_stuck_contexts_hold_nobody_back, 0, 2);
	tcase_add_test(tcase, a_stalled_queue_holds_nobody_back);
	tcase_add_loop_test(tcase, small_commands_do_not_wait_for_long_ones, 0, 2);
	tcase_add_test(tcase, long_commands_go_on);
	tcase_add_test(tcase, a_context_does_not_overtake_itself);
}

int main(void)
{
	return suite_main("share", add);
}
