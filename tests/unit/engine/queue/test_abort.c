// SPDX-License-Identifier: MIT
/*
 * The device is asked for something while a command runs: administrators are served between its
 * pieces, and what ends its context, its queue or the device ends the command.
 */
#include "fake_model.h"
#include "rig.h"
#include "suite.h"

#define PATIENCE_NS 20000000000ull

static struct rig *rig;
static struct rig_queue *q;

/* How the command ran: its hook asks for something, and it goes on for as long as it may. */
static struct {
	void (*ask)(void);
	bool (*answered)(void);
	bool finishes, stopped, seen;
	u32 most; /* pieces after the answer */
} job;

static void work(struct command *command)
{
	u64 until = port_now_ns() + PATIENCE_NS;
	u32 after = 0;

	command->finishes = job.finishes;
	job.ask();
	while (!job.stopped && after < 100 && port_now_ns() < until) {
		job.stopped = piece_over(command);
		job.seen |= job.answered();
		after += job.seen;
	}
	command->result = after;
}

static void start(void (*ask)(void), bool (*answered)(void))
{
	memset(&job, 0, sizeof(job));
	job.ask = ask;
	job.answered = answered;
	fake = (struct fake_model){.admitted = U64_MAX, .ready = U64_MAX, .running = work};
	rig = rig_new(1, 0);
	rig_context(rig, 1);
	q = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
}

static struct embeng_cmd drain(u64 cookie)
{
	return (struct embeng_cmd){.opcode = EMBENG_OP_STATE_READ, .cookie = cookie};
}

static struct embeng_cqe answer;

static bool admin_answered(void)
{
	return rig_reap(&rig->admin, &answer);
}

static bool never(void)
{
	return false;
}

static void ask_admin(u16 opcode, u32 context, u32 queue, u8 flags)
{
	struct embeng_admin_cmd cmd = {
		.opcode = opcode,
		.cookie = 77,
		.context = context,
		.queue = queue,
		.flags = flags,
		.cq_index = flags ? 9 : 0,
	};

	rig_admin_submit(rig, &cmd);
}

static void end_own_context(void)
{
	ask_admin(EMBENG_ADMIN_CONTEXT_DESTROY, 0, 0, 0);
}

static void end_other_context(void)
{
	ask_admin(EMBENG_ADMIN_CONTEXT_DESTROY, 1, 0, 0);
}

static void end_own_queue(void)
{
	ask_admin(EMBENG_ADMIN_QUEUE_DESTROY, 0, q->number, 0);
}

static void end_hung_queue(void)
{
	ask_admin(EMBENG_ADMIN_QUEUE_DESTROY, 0, q->number, EMBENG_ADMIN_QUEUE_HUNG);
}

static void ask_reset(void)
{
	reg_write32(rig->engine, EMBENG_REG_CONTROL, EMBENG_CONTROL_RESET);
	reg_write32(rig->engine, EMBENG_REG_CONTROL_SEQUENCE,
		    reg_read32(rig->engine, EMBENG_REG_CONTROL_SEQUENCE) + 1);
}

/* As the emulator does for a function-level reset, before it switches the engine off. */
static void take_power(void)
{
	reg_write32(rig->engine, EMBENG_REG_BOOT_STATE, EMBENG_BOOT_RESET);
}

static void run_command(void)
{
	struct embeng_cmd cmd = drain(5);

	rig_submit(q, &cmd);
	while (!fake.runs)
		rig_run(rig);
}

static void expect(u16 status, u64 value)
{
	struct embeng_cqe cqe;

	ck_assert(rig_reap(q, &cqe));
	ck_assert_uint_eq(cqe.cookie, 5);
	ck_assert_uint_eq(cqe.status, status);
	ck_assert_uint_eq(cqe.value, value);
	ck_assert(!rig_reap(q, &cqe));
}

static void expect_admin(void)
{
	if (!job.seen)
		answer = rig_wait(&rig->admin);
	ck_assert_uint_eq(answer.cookie, 77);
	ck_assert_uint_eq(answer.status, EMBENG_STATUS_OK);
}

START_TEST(others_are_served_while_it_runs)
{
	start(end_other_context, admin_answered);
	run_command();
	ck_assert(job.seen);
	ck_assert(!job.stopped);
	expect_admin();
	expect(EMBENG_STATUS_OK, 100);
	rig_free(rig);
}
END_TEST

START_TEST(the_end_of_its_context_stops_it)
{
	start(end_own_context, admin_answered);
	job.finishes = _i;
	run_command();
	ck_assert(job.stopped);
	expect_admin();
	expect(EMBENG_STATUS_ABORTED, 0);
	ck_assert_uint_eq(rig_header(q)->dead, 1);
	ck_assert_uint_eq(rig_header(q)->done, 1);
	rig_free(rig);
}
END_TEST

START_TEST(the_end_of_its_queue_stops_it)
{
	start(end_own_queue, admin_answered);
	run_command();
	ck_assert(job.stopped);
	expect_admin();
	expect(EMBENG_STATUS_ABORTED, 0);
	ck_assert_uint_eq(fake.finishes, 1);
	ck_assert_uint_eq(fake.releases, 1);
	rig_free(rig);
}
END_TEST

START_TEST(a_hung_command_is_told_so)
{
	start(end_hung_queue, admin_answered);
	run_command();
	expect_admin();
	expect(EMBENG_STATUS_HUNG, 9000000);
	rig_free(rig);
}
END_TEST

static u32 pieces_left;

static bool some_pieces(void)
{
	return !--pieces_left;
}

/* Tables are at work: the queue's end waits for the command, and is then served. */
START_TEST(an_update_is_not_left_half_done)
{
	start(end_own_queue, some_pieces);
	job.finishes = true;
	pieces_left = 100000;
	run_command();
	ck_assert(!job.stopped);
	expect(EMBENG_STATUS_OK, 100);
	job.seen = false;
	expect_admin();
	rig_free(rig);
}
END_TEST

START_TEST(a_reset_stops_it)
{
	u32 sequence;

	start(ask_reset, never);
	job.finishes = _i;
	sequence = reg_read32(rig->engine, EMBENG_REG_CONTROL_SEQUENCE) + 1;
	run_command();
	ck_assert(job.stopped);
	while (reg_read32(rig->engine, EMBENG_REG_CONTROL_DONE) != sequence)
		rig_run(rig);
	expect(EMBENG_STATUS_ABORTED, 0);
	ck_assert_uint_eq(rig_header(q)->dead, 1);
	ck_assert_uint_eq(reg_read32(rig->engine, EMBENG_REG_BOOT_STATE), EMBENG_BOOT_ROM);
	rig_free(rig);
}
END_TEST

START_TEST(the_end_of_power_stops_it)
{
	start(take_power, never);
	run_command();
	ck_assert(job.stopped);
	rig_free(rig);
}
END_TEST

static void accept_long(struct command *command)
{
	work(command);
	fake.accept_status = job.stopped ? EMBENG_STATUS_ABORTED : 0;
}

/* While it is checked and copied, too. */
START_TEST(a_command_that_is_accepted_stops)
{
	struct embeng_cmd cmd = drain(5);

	start(end_own_context, admin_answered);
	fake.accepting = accept_long;
	rig_submit(q, &cmd);
	while (!fake.commits)
		rig_run(rig);
	ck_assert(job.stopped);
	expect_admin();
	ck_assert_uint_eq(fake.runs, 0);
	rig_free(rig);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, others_are_served_while_it_runs);
	tcase_add_loop_test(tcase, the_end_of_its_context_stops_it, 0, 2);
	tcase_add_test(tcase, the_end_of_its_queue_stops_it);
	tcase_add_test(tcase, a_hung_command_is_told_so);
	tcase_add_test(tcase, an_update_is_not_left_half_done);
	tcase_add_loop_test(tcase, a_reset_stops_it, 0, 2);
	tcase_add_test(tcase, the_end_of_power_stops_it);
	tcase_add_test(tcase, a_command_that_is_accepted_stops);
}

int main(void)
{
	return suite_main("abort", add);
}
