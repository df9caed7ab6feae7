// SPDX-License-Identifier: MIT
/*
 * Queues, contexts and the device end while their commands are at work: nothing more is taken or
 * run, nothing is freed too early, all completions come, and others stay as they are. The test's
 * own thread looks at the device from inside a command, as other threads do.
 */
#include "builtin_image.h"
#include "ring_help.h"

#define MOST_CQES 8u

static struct rig_queue *q;
static struct embeng_cqe early; /* an answer of the admin queue while the command was at work */
static bool answered;
static u32 taken; /* commands of the queue, when the command ended its work */

static struct embeng_cmd state_read(u64 cookie)
{
	return (struct embeng_cmd){.opcode = EMBENG_OP_STATE_READ, .cookie = cookie};
}

static void end_queue(const struct rig_queue *queue)
{
	struct embeng_admin_cmd cmd = {
		.opcode = EMBENG_ADMIN_QUEUE_DESTROY, .cookie = 77, .queue = queue->number};

	rig_admin_submit(rig, &cmd);
}

static void end_context(u32 number)
{
	struct embeng_admin_cmd cmd = {
		.opcode = EMBENG_ADMIN_CONTEXT_DESTROY, .cookie = 78, .context = number};

	rig_admin_submit(rig, &cmd);
}

static void look_inside(void)
{
	engine_run(rig->engine, ENGINE_RUN_ALL);
	answered |= rig_reap(&rig->admin, &early);
	taken = rig_header(q)->sq_head;
}

static u32 reap_statuses(struct rig_queue *queue, u16 statuses[MOST_CQES])
{
	struct embeng_cqe cqe;
	u32 count = 0;

	while (count < MOST_CQES && rig_reap(queue, &cqe))
		if (cqe.flags == EMBENG_CQE_DONE)
			statuses[count++] = cqe.status;
	return count;
}

static void end_inside(struct command *command)
{
	struct embeng_cmd next = lookup(command->cmd.step + 1);

	if (command->cmd.step != 1)
		return;
	rig_submit(q, &next);
	if (command->queue->replica)
		end_context(0);
	else
		end_queue(q);
	look_inside();
}

/* Nothing that is submitted meanwhile is taken, and nothing is freed under the command. */
START_TEST(a_dying_queue_takes_nothing)
{
	struct embeng_cmd cmd;
	u16 statuses[MOST_CQES];

	start();
	q = rig_queue(rig, 0, EMBENG_QUEUE_INPUT, (u32)_i);
	cmd = lookup(1);
	fake.running = end_inside;
	rig_submit(q, &cmd);
	rig_run(rig);
	ck_assert_uint_eq(taken, 1);
	ck_assert(!answered);
	ck_assert_uint_eq(rig_wait(&rig->admin).cookie, _i ? 78 : 77);
	ck_assert_uint_eq(rig_header(q)->sq_head, 1);
	ck_assert_uint_eq(fake.commits, 1);
	ck_assert_uint_eq(reap_statuses(q, statuses), 1);
	ck_assert_uint_eq(statuses[0], EMBENG_STATUS_OK);
	/* A queue that its driver destroyed is no news to its program; a lost one is. */
	ck_assert_uint_eq(rig_header(q)->dead, _i);
	rig_free(rig);
}
END_TEST

static u32 runs_inside;

static void end_while_accepting(struct command *command)
{
	if (command->cmd.step != 2)
		return;
	fake.ready = U64_MAX;
	end_queue(q);
	look_inside();
	runs_inside = fake.runs;
}

/* Its oldest could run by now, while another is still being accepted. */
START_TEST(a_dying_queue_runs_nothing)
{
	struct embeng_cmd cmd;
	u16 statuses[MOST_CQES];

	start();
	fake.ready = 0;
	fake.accepting = end_while_accepting;
	q = rig_queue(rig, 0, EMBENG_QUEUE_INPUT, 0);
	for (u64 step = 1; step <= 2; step++) {
		cmd = lookup(step);
		rig_submit(q, &cmd);
	}
	rig_run(rig);
	ck_assert(!answered);
	ck_assert_uint_eq(runs_inside, 0);
	rig_run(rig);
	ck_assert(rig_reap(&rig->admin, &early));
	ck_assert_uint_eq(fake.runs, 0);
	ck_assert_uint_eq(reap_statuses(q, statuses), 2);
	ck_assert_uint_eq(statuses[0], EMBENG_STATUS_ABORTED);
	ck_assert_uint_eq(statuses[1], EMBENG_STATUS_ABORTED);
	/* To be aborted is nobody's error. */
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_COUNT_ERRORS_PROGRAM), 0);
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_COUNT_ERRORS_DEVICE), 0);
	rig_free(rig);
}
END_TEST

/* The others go on, and its number can be used again. */
START_TEST(a_queue_leaves_the_others)
{
	struct rig_queue *queues[3];
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_NOP, .cookie = 4};
	struct embeng_admin_cmd again = {.opcode = EMBENG_ADMIN_QUEUE_CREATE,
					 .kind = EMBENG_QUEUE_TRANSFER,
					 .sq_entries = 16,
					 .cq_entries = 32};

	start();
	for (u32 i = 0; i < 3; i++)
		queues[i] = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	end_queue(queues[_i]);
	ck_assert_uint_eq(rig_wait(&rig->admin).status, EMBENG_STATUS_OK);
	for (u32 i = 0; i < 3; i++)
		if ((int)i != _i)
			ck_assert_uint_eq(rig_call(queues[i], &cmd).cookie, 4);
	again.queue = queues[_i]->number;
	again.address = (u64)(size_t)queues[_i]->ring;
	ck_assert_uint_eq(rig_admin(rig, &again).status, EMBENG_STATUS_OK);
	ck_assert_uint_eq(rig_call(queues[_i], &cmd).cookie, 4);
	rig_free(rig);
}
END_TEST

/* All queues of it, with and without commands, and no other; each command of theirs is answered. */
START_TEST(a_context_ends_with_its_queues)
{
	struct rig_queue *queues[3], *other;
	struct embeng_cmd cmd;
	u16 statuses[MOST_CQES];

	start();
	fake.ready = 0;
	rig_context(rig, 1);
	for (u32 i = 0; i < 3; i++) {
		queues[i] = rig_queue(rig, 0, EMBENG_QUEUE_INPUT, i);
		cmd = lookup(1);
		if (i != 1)
			rig_submit(queues[i], &cmd);
	}
	other = rig_queue(rig, 1, EMBENG_QUEUE_TRANSFER, 0);
	rig_run(rig);
	end_context(0);
	ck_assert_uint_eq(rig_wait(&rig->admin).status, EMBENG_STATUS_OK);
	for (u32 i = 0; i < 3; i++) {
		ck_assert_uint_eq(rig_header(queues[i])->dead, 1);
		ck_assert_uint_eq(reap_statuses(queues[i], statuses), i != 1);
		if (i != 1)
			ck_assert_uint_eq(statuses[0], EMBENG_STATUS_ABORTED);
	}
	ck_assert_uint_eq(rig_header(other)->dead, 0);
	cmd = (struct embeng_cmd){.opcode = EMBENG_OP_NOP, .cookie = 9};
	ck_assert_uint_eq(rig_call(other, &cmd).cookie, 9);
	rig_free(rig);
}
END_TEST

static u32 tail_when_dead;
static bool seen_dead;

/* Armed again each time: each change of the ring can be seen. */
static void note_dead(void *arg, u32 vector)
{
	(void)arg;
	if (vector != q->number % 8)
		return;
	if (EMBENG_LOAD_ACQUIRE(&rig_header(q)->dead) && !seen_dead) {
		seen_dead = true;
		tail_when_dead = EMBENG_LOAD_ACQUIRE(&rig_header(q)->cq_tail);
	}
	EMBENG_STORE_RELEASE(&q->doorbell->armed, q->doorbell->armed + 1);
}

/* A program that finds its queue dead has all that it will get. */
START_TEST(the_mark_comes_behind_all_completions)
{
	struct embeng_cmd cmd;

	start();
	fake.ready = 0;
	seen_dead = false;
	q = rig_queue(rig, 0, EMBENG_QUEUE_INPUT, 0);
	for (u64 step = 1; step <= 2; step++) {
		cmd = lookup(step);
		rig_submit(q, &cmd);
	}
	rig_run(rig);
	rig->host.interrupt = note_dead;
	EMBENG_STORE_RELEASE(&q->doorbell->armed, 1);
	end_context(0);
	rig_wait(&rig->admin);
	ck_assert(seen_dead);
	ck_assert_uint_eq(tail_when_dead, 4);
	rig_free(rig);
}
END_TEST

static u64 hold_completions(void *arg, enum port_fault fault, u32 target)
{
	(void)arg;
	return fault == PORT_FAULT_DELAY_COMPLETION && target ? 3600000000000ull : 0;
}

START_TEST(late_completions_come_with_the_end)
{
	struct embeng_cmd cmd = state_read(6);
	struct embeng_cqe cqe;

	start();
	q = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	rig->host.fault = hold_completions;
	rig_submit(q, &cmd);
	rig_run(rig);
	ck_assert(!rig_reap(q, &cqe));
	rig->host.fault = NULL;
	end_queue(q);
	rig_wait(&rig->admin);
	ck_assert(rig_reap(q, &cqe));
	ck_assert_uint_eq(cqe.cookie, 6);
	ck_assert_uint_eq(cqe.status, EMBENG_STATUS_OK);
	rig_free(rig);
}
END_TEST

/* -- the end of the device ------------------------------------------------ */

static u32 reset_sequence, admin_taken;
static bool reset_done_inside, boots, booted_inside;

static void ask_reset(void)
{
	reset_sequence = reg_read32(rig->engine, EMBENG_REG_CONTROL_SEQUENCE) + 1;
	reg_write32(rig->engine, EMBENG_REG_CONTROL, EMBENG_CONTROL_RESET);
	reg_write32(rig->engine, EMBENG_REG_CONTROL_SEQUENCE, reset_sequence);
}

static bool is_reset(void)
{
	return reg_read32(rig->engine, EMBENG_REG_CONTROL_DONE) == reset_sequence;
}

static void reset_inside(struct command *command)
{
	struct embeng_admin_cmd nop = {.opcode = EMBENG_ADMIN_NOP, .cookie = 5};

	(void)command;
	end_queue(q);
	engine_run(rig->engine, ENGINE_RUN_ALL);
	ask_reset();
	engine_run(rig->engine, ENGINE_RUN_ALL);
	admin_taken = rig_header(&rig->admin)->sq_head;
	rig_admin_submit(rig, &nop);
	if (boots)
		reg_write32(rig->engine, EMBENG_REG_BOOT_SEQUENCE, 90);
	engine_run(rig->engine, ENGINE_RUN_ALL);
	booted_inside = reg_read32(rig->engine, EMBENG_REG_BOOT_DONE) == 90;
	admin_taken = rig_header(&rig->admin)->sq_head - admin_taken;
	reset_done_inside = is_reset();
}

/* It waits for the command, takes no admin command, boots nothing, and forgets the one that waits. */
START_TEST(a_reset_ends_all_of_it)
{
	struct embeng_cmd cmd = state_read(1);
	struct rig_queue *other;
	struct embeng_cqe cqe;

	start();
	rig_context(rig, 1);
	q = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	other = rig_queue(rig, 1, EMBENG_QUEUE_TRANSFER, 0);
	boots = _i;
	fake.running = reset_inside;
	rig_submit(q, &cmd);
	rig_run(rig);
	ck_assert(!reset_done_inside);
	ck_assert_uint_eq(admin_taken, 0);
	ck_assert(!booted_inside);
	for (u32 i = 0; i < 100 && !is_reset(); i++)
		rig_run(rig);
	ck_assert(is_reset());
	ck_assert(!rig_reap(&rig->admin, &cqe));
	ck_assert_uint_eq(rig_header(q)->dead, 1);
	ck_assert_uint_eq(rig_header(other)->dead, 1);
	/* A new admin queue in its place knows nothing of it. */
	ck_assert_uint_eq(rig_header(&rig->admin)->dead, !_i);
	ck_assert(rig_reap(q, &cqe));
	ck_assert_uint_eq(cqe.cookie, 1);
	ck_assert_uint_eq(rig->engine->pending_count, 0);
	if (!_i)
		rig_boot(rig, embeng_builtin_image, sizeof(embeng_builtin_image));
	else
		ck_assert_uint_eq(reg_read32(rig->engine, EMBENG_REG_BOOT_DONE), 90);
	ck_assert_uint_eq(reg_read32(rig->engine, EMBENG_REG_BOOT_STATE), EMBENG_BOOT_RUNNING);
	rig_context(rig, 0);
	ck_assert(!rig_reap(&rig->admin, &cqe));
	rig_free(rig);
}
END_TEST

START_TEST(a_stopped_admin_queue_stays_stopped)
{
	struct embeng_admin_cmd nop = {.opcode = EMBENG_ADMIN_NOP};
	u32 head;

	start();
	head = rig_header(&rig->admin)->sq_head;
	embeng_doorbell_tail(&rig->admin.doorbell->sq_tail, rig->admin.tail + 1000);
	rig_run(rig);
	ck_assert_uint_eq(reg_read32(rig->engine, EMBENG_REG_STATUS), EMBENG_DEVICE_FAULT);
	rig_submit(&rig->admin, &nop);
	for (u32 i = 0; i < 3; i++)
		rig_run(rig);
	ck_assert_uint_eq(rig_header(&rig->admin)->sq_head, head);
	rig_free(rig);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, a_dying_queue_takes_nothing, 0, 2);
	tcase_add_test(t, a_dying_queue_runs_nothing);
	tcase_add_loop_test(t, a_queue_leaves_the_others, 0, 3);
	tcase_add_test(t, a_context_ends_with_its_queues);
	tcase_add_test(t, the_mark_comes_behind_all_completions);
	tcase_add_test(t, late_completions_come_with_the_end);
	tcase_add_loop_test(t, a_reset_ends_all_of_it, 0, 2);
	tcase_add_test(t, a_stopped_admin_queue_stays_stopped);
}

int main(void)
{
	return suite_main("queue_end", add);
}
