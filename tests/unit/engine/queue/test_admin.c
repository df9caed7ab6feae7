// SPDX-License-Identifier: MIT
/* The admin queue, and features that involve several queues: fences, reports, interrupts. */
#include "fake_model.h"
#include "rig.h"
#include "suite.h"

static struct rig *rig;

static void start(void)
{
	fake = (struct fake_model){.admitted = U64_MAX, .ready = U64_MAX};
	rig = rig_new(1, 0);
}

static u8 ring[8192] __attribute__((aligned(64)));

static const struct {
	struct embeng_admin_cmd change; /* added to a good one */
	u16 status;
} wrong[] = {
	{{.context = 1}, EMBENG_STATUS_KEY},
	{{.context = 0xffffffff}, EMBENG_STATUS_KEY},
	{{.queue = -3u}, EMBENG_STATUS_COUNT},
	{{.queue = RIG_QUEUES}, EMBENG_STATUS_COUNT},
	{{.queue = RIG_QUEUES - 3}, EMBENG_STATUS_COUNT},
	{{.queue = -2u}, EMBENG_STATUS_MODEL_BUSY},
	{{.kind = (u8)-EMBENG_QUEUE_INPUT}, EMBENG_STATUS_QUEUE_KIND},
	{{.kind = 4}, EMBENG_STATUS_QUEUE_KIND},
	{{.kind = 3, .replica = 1}, EMBENG_STATUS_COUNT},
	{{.replica = 64}, EMBENG_STATUS_COUNT},
	{{.priority = 4}, EMBENG_STATUS_COUNT},
	{{.vector = 8}, EMBENG_STATUS_COUNT},
	{{.sq_entries = -4u}, EMBENG_STATUS_COUNT},
	{{.sq_entries = 1}, EMBENG_STATUS_COUNT},
	{{.cq_entries = -4u}, EMBENG_STATUS_COUNT},
	{{.cq_entries = 1}, EMBENG_STATUS_COUNT},
	{{.kind = 3, .sq_entries = 8192 - 4, .cq_entries = 8192 - 8}, EMBENG_STATUS_COUNT},
	{{.address = 8}, EMBENG_STATUS_KEY},
	{{.address = 1 << 20}, EMBENG_STATUS_KEY},
	{{.flags = EMBENG_ADMIN_QUEUE_HUNG}, EMBENG_STATUS_RESERVED},
	{{.sq_index = 1}, EMBENG_STATUS_RESERVED},
	{{.cq_index = 1}, EMBENG_STATUS_RESERVED},
	{{.reserved = 1}, EMBENG_STATUS_RESERVED},
	{{.opcode = 3}, EMBENG_STATUS_OPCODE},
};

static struct embeng_admin_cmd good_queue(void)
{
	return (struct embeng_admin_cmd){
		.opcode = EMBENG_ADMIN_QUEUE_CREATE,
		.cookie = 5,
		.kind = EMBENG_QUEUE_INPUT,
		.queue = 3,
		.sq_entries = 4,
		.cq_entries = 8,
		.address = (u64)(size_t)ring,
	};
}

START_TEST(a_wrong_queue_is_refused)
{
	struct embeng_admin_cmd cmd = good_queue(), d = wrong[_i].change;
	struct embeng_cqe cqe;

	start();
	rig_queue(rig, 0, EMBENG_QUEUE_INPUT, 0);
	rig_grant(rig, ring, sizeof(ring));
	cmd.opcode += d.opcode;
	cmd.kind += d.kind;
	cmd.priority += d.priority;
	cmd.flags += d.flags;
	cmd.replica += d.replica;
	cmd.context += d.context;
	cmd.queue += d.queue;
	cmd.address += d.address;
	cmd.sq_entries += d.sq_entries;
	cmd.cq_entries += d.cq_entries;
	cmd.vector += d.vector;
	cmd.sq_index += d.sq_index;
	cmd.cq_index += d.cq_index;
	cmd.reserved += d.reserved;
	cqe = rig_admin(rig, &cmd);
	ck_assert_uint_eq(cqe.status, wrong[_i].status);
	ck_assert_uint_eq(cqe.cookie, 5);
	if (d.context == 0xffffffff)
		ck_assert_uint_eq(cqe.value, 0xffffffff);
	cmd = good_queue();
	ck_assert_uint_eq(rig_admin(rig, &cmd).status, EMBENG_STATUS_OK);
	rig_free(rig);
}
END_TEST

static void expect_admin(struct embeng_admin_cmd cmd, u16 status)
{
	ck_assert_uint_eq(rig_admin(rig, &cmd).status, status);
}

START_TEST(a_wrong_context_or_index_is_refused)
{
	struct embeng_admin_cmd create = {.opcode = EMBENG_ADMIN_CONTEXT_CREATE,
					  .context = 1,
					  .count = 1,
					  .address = (u64)(size_t)ring};
	struct embeng_admin_cmd cmd = create;

	start();
	rig_grant(rig, ring, 64);
	cmd.context = 64;
	expect_admin(cmd, EMBENG_STATUS_COUNT);
	cmd.context = 0;
	expect_admin(cmd, EMBENG_STATUS_MODEL_BUSY);
	cmd = create;
	cmd.count = 0;
	expect_admin(cmd, EMBENG_STATUS_COUNT);
	cmd.count = 4097;
	expect_admin(cmd, EMBENG_STATUS_COUNT);
	cmd.count = 2;
	expect_admin(cmd, EMBENG_STATUS_KEY);
	cmd = create;
	cmd.address += 4;
	expect_admin(cmd, EMBENG_STATUS_ALIGNMENT);
	expect_admin(create, EMBENG_STATUS_OK);
	cmd = (struct embeng_admin_cmd){.opcode = EMBENG_ADMIN_INVALIDATE, .context = 2};
	expect_admin(cmd, EMBENG_STATUS_KEY);
	cmd.context = 1;
	cmd.index = 1;
	expect_admin(cmd, EMBENG_STATUS_COUNT);
	cmd.opcode = EMBENG_ADMIN_CONTEXT_DESTROY;
	expect_admin(cmd, EMBENG_STATUS_OK);
	expect_admin(cmd, EMBENG_STATUS_KEY);
	cmd = (struct embeng_admin_cmd){.opcode = EMBENG_ADMIN_QUEUE_DESTROY, .queue = 9};
	expect_admin(cmd, EMBENG_STATUS_KEY);
	cmd.queue = 0;
	expect_admin(cmd, EMBENG_STATUS_KEY);
	cmd.queue = RIG_QUEUES;
	expect_admin(cmd, EMBENG_STATUS_KEY);
	cmd = (struct embeng_admin_cmd){.opcode = EMBENG_ADMIN_NOP};
	expect_admin(cmd, EMBENG_STATUS_OK);
	rig_free(rig);
}
END_TEST

START_TEST(destroying_a_queue_aborts_what_waits)
{
	struct embeng_admin_cmd destroy = {.opcode = EMBENG_ADMIN_QUEUE_DESTROY};
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_DRAIN, .cookie = 4, .step = 1};
	struct rig_queue *q;
	struct embeng_cqe cqe;

	start();
	fake.ready = 0;
	q = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	rig_submit(q, &cmd);
	rig_run(rig);
	destroy.queue = q->number;
	expect_admin(destroy, EMBENG_STATUS_OK);
	ck_assert(rig_reap(q, &cqe));
	rig_assert_cqe(&cqe, 4, EMBENG_STATUS_ABORTED, EMBENG_FIELD_NONE);
	ck_assert_uint_eq(fake.finishes, 1);
	ck_assert_uint_eq(fake.releases, 1);
	ck_assert_uint_eq(rig_header(q)->dead, 0);
	rig_free(rig);
}
END_TEST

/* Another thread works for queue 1, has memory of context 0, or has a command of it. */
static void hold_object(int how, bool holds)
{
	struct context *c = rig->engine->contexts[0];

	if (how == 0)
		rig->engine->queues[1]->accepting = holds;
	else if (how == 1)
		c->accesses = holds;
	else
		c->in_flight = holds;
}

/* Two commands end what still works; a third finds nothing. None of them is told to try again. */
START_TEST(ending_twice_ends_once)
{
	const struct embeng_admin_cmd ends[] = {
		{.opcode = EMBENG_ADMIN_QUEUE_DESTROY, .queue = 1},
		{.opcode = EMBENG_ADMIN_CONTEXT_DESTROY},
		{.opcode = EMBENG_ADMIN_CONTEXT_DESTROY},
	};
	struct embeng_admin_cmd cmd = ends[_i];
	struct embeng_cqe cqe;
	u64 cookie;

	start();
	rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	hold_object(_i, true);
	for (cookie = 1; cookie <= 2; cookie++) {
		cmd.cookie = cookie;
		rig_admin_submit(rig, &cmd);
	}
	rig_run(rig);
	ck_assert(!rig_reap(&rig->admin, &cqe));
	hold_object(_i, false);
	for (cookie = 1; cookie <= 2; cookie++)
		ck_assert_uint_eq(rig_wait(&rig->admin).status, EMBENG_STATUS_OK);
	expect_admin(ends[_i], EMBENG_STATUS_KEY);
	rig_free(rig);
}
END_TEST

/* Nothing new comes to a context that is on its way out. */
START_TEST(a_dying_context_gets_no_queue)
{
	struct embeng_admin_cmd end = {.opcode = EMBENG_ADMIN_CONTEXT_DESTROY}, cmd = good_queue();
	struct embeng_cqe cqe;

	start();
	rig_grant(rig, ring, sizeof(ring));
	hold_object(1, true);
	rig_admin_submit(rig, &end);
	rig_run(rig);
	cqe = rig_admin(rig, &cmd);
	ck_assert_uint_eq(cqe.cookie, 5);
	ck_assert_uint_eq(cqe.status, EMBENG_STATUS_KEY);
	hold_object(1, false);
	ck_assert_uint_eq(rig_wait(&rig->admin).status, EMBENG_STATUS_OK);
	rig_free(rig);
}
END_TEST

START_TEST(a_context_may_have_all_regions)
{
	static u8 table[4097 * sizeof(struct embeng_region)] __attribute__((aligned(64)));
	struct embeng_admin_cmd cmd = {
		.opcode = EMBENG_ADMIN_CONTEXT_CREATE, .context = 1, .address = (u64)(size_t)table};
	struct embeng_cqe cqe;

	start();
	rig_grant(rig, table, sizeof(table));
	ck_assert_uint_eq(reg_read32(rig->engine, EMBENG_REG_REGIONS), 4096);
	cmd.count = 4097;
	cqe = rig_admin(rig, &cmd);
	rig_assert_cqe(&cqe, 0, EMBENG_STATUS_COUNT, EMBENG_FIELD_DATA);
	ck_assert_uint_eq(cqe.value, 4097);
	ck_assert_uint_eq(cqe.limit, 4096);
	cmd.count = 4096;
	expect_admin(cmd, EMBENG_STATUS_OK);
	rig_free(rig);
}
END_TEST

/* The driver found it hung; that somebody else ends it, too, takes nothing back. */
START_TEST(a_hang_is_not_taken_back)
{
	struct embeng_admin_cmd end = {.opcode = EMBENG_ADMIN_QUEUE_DESTROY,
				       .flags = EMBENG_ADMIN_QUEUE_HUNG,
				       .cq_index = 9};
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_DRAIN, .cookie = 4, .step = 1};
	struct rig_queue *q;
	struct embeng_cqe cqe;

	start();
	fake.ready = 0;
	q = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	rig_submit(q, &cmd);
	rig_run(rig);
	hold_object(0, true);
	end.queue = q->number;
	rig_admin_submit(rig, &end);
	end.flags = 0;
	end.cq_index = 0;
	rig_admin_submit(rig, &end);
	rig_run(rig);
	hold_object(0, false);
	rig_wait(&rig->admin);
	ck_assert(rig_reap(q, &cqe));
	ck_assert_uint_eq(cqe.status, EMBENG_STATUS_HUNG);
	ck_assert_uint_eq(cqe.value, 9000000);
	rig_free(rig);
}
END_TEST

#define ADMIN_PLACES 32u /* entries of the rig's admin completion ring */
#define ADMIN_PENDING 3u

/* Each command that waits has its place: no other answer takes it, however full the ring is. */
START_TEST(answers_of_waiting_commands_have_room)
{
	struct embeng_admin_cmd end = {.opcode = EMBENG_ADMIN_CONTEXT_DESTROY};
	struct embeng_admin_cmd nop = {.opcode = EMBENG_ADMIN_NOP};
	u32 head = 0, places;
	struct embeng_cqe cqe;

	start();
	head = rig_header(&rig->admin)->sq_head;
	hold_object(1, true);
	for (end.cookie = 1; end.cookie <= ADMIN_PENDING; end.cookie++)
		rig_admin_submit(rig, &end);
	rig_run(rig);
	for (nop.cookie = 100; nop.cookie < 110; nop.cookie++)
		rig_admin_submit(rig, &nop);
	rig_run(rig);
	for (; nop.cookie < 100 + ADMIN_PLACES; nop.cookie++)
		rig_admin_submit(rig, &nop);
	rig_run(rig);
	places = ADMIN_PLACES - ADMIN_PENDING;
	ck_assert_uint_eq(rig_header(&rig->admin)->sq_head - head, ADMIN_PENDING + places);
	hold_object(1, false);
	rig_run(rig);
	for (u64 i = 0; i < places; i++) {
		ck_assert(rig_reap(&rig->admin, &cqe));
		ck_assert_uint_eq(cqe.cookie, 100 + i);
	}
	/* The newest first; then the places are free for what waited in the ring. */
	for (u64 i = ADMIN_PENDING; i; i--) {
		ck_assert(rig_reap(&rig->admin, &cqe));
		ck_assert_uint_eq(cqe.cookie, i);
	}
	for (u64 i = 0; i < ADMIN_PENDING; i++)
		ck_assert_uint_eq(rig_wait(&rig->admin).cookie, 100 + places + i);
	ck_assert_uint_eq(rig->engine->pending_count, 0);
	rig_free(rig);
}
END_TEST

static struct embeng_fence_point points[EMBENG_FENCE_POINTS_MAX + 1];

static struct embeng_cmd fence(u32 count)
{
	struct embeng_mem mem = rig_bind(rig, 0, points, sizeof(points), EMBENG_REGION_DEVICE_READ);

	mem.length = count * sizeof(points[0]);
	return (struct embeng_cmd){.opcode = EMBENG_OP_FENCE, .cookie = 50, .desc = mem};
}

START_TEST(a_fence_waits_for_what_it_names)
{
	struct embeng_cmd drain = {.opcode = EMBENG_OP_DRAIN, .step = 1}, cmd;
	struct rig_queue *waits, *works;
	struct embeng_queue_report report;
	struct embeng_cqe cqe;

	start();
	fake.ready = 0;
	works = rig_queue_at(rig, 0, EMBENG_QUEUE_TRANSFER, 0, 4, 4, 0xffffffff);
	waits = rig_queue(rig, 0, EMBENG_QUEUE_INPUT, 0);
	points[0] = (struct embeng_fence_point){works->number, rig_submit(works, &drain)};
	cmd = fence(1);
	rig_submit(waits, &cmd);
	rig_run(rig);
	report = rig_report(waits);
	ck_assert_uint_eq(report.state, EMBENG_QUEUE_BLOCKED);
	ck_assert_uint_eq(report.wait, EMBENG_WAIT_QUEUE);
	ck_assert_uint_eq(report.replica, works->number);
	ck_assert(!rig_reap(waits, &cqe));
	/* The DRAIN waits, too; and neither waits once more when nothing changes. */
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_COUNT_WAITS), 2);
	rig_run(rig);
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_COUNT_WAITS), 2);
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_COUNT_WAITS_QUEUE), 1);
	ck_assert_uint_eq(rig_header(waits)->waits[EMBENG_WAIT_QUEUE - 1], 1);
	fake.ready = 1;
	cqe = rig_wait(waits);
	rig_assert_cqe(&cqe, 50, EMBENG_STATUS_OK, EMBENG_FIELD_NONE);
	ck_assert(rig_reap(works, &cqe));
	rig_free(rig);
}
END_TEST

START_TEST(a_fence_names_queues_it_can_wait_for)
{
	struct rig_queue *q, *theirs;
	struct embeng_cmd cmd;
	struct embeng_cqe cqe;
	u32 i, number[4];

	start();
	rig_context(rig, 1);
	q = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	theirs = rig_queue(rig, 1, EMBENG_QUEUE_TRANSFER, 0);
	number[0] = q->number;
	number[1] = theirs->number;
	number[2] = 0;
	number[3] = 0xffffffff;
	cmd = fence(1);
	for (i = 0; i < 4; i++) {
		points[0] = (struct embeng_fence_point){number[i], 0};
		cqe = rig_call(q, &cmd);
		rig_assert_cqe(&cqe, 50, EMBENG_STATUS_FENCE, EMBENG_FIELD_DESC);
		ck_assert_uint_eq(cqe.value, number[i]);
	}
	cmd.desc.length = 0;
	ck_assert_uint_eq(rig_call(q, &cmd).status, EMBENG_STATUS_LENGTH);
	cmd.desc.length = 12;
	ck_assert_uint_eq(rig_call(q, &cmd).status, EMBENG_STATUS_LENGTH);
	cmd.desc.length = sizeof(points);
	ck_assert_uint_eq(rig_call(q, &cmd).status, EMBENG_STATUS_COUNT);
	rig_free(rig);
}
END_TEST

START_TEST(reports_of_a_context_share_an_epoch)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_LOOKUP, .step = 2};
	struct embeng_queue_report a, b;
	struct rig_queue *input, *gradient;
	u32 epoch;

	start();
	fake.ready = 1;
	input = rig_queue(rig, 0, EMBENG_QUEUE_INPUT, 3);
	gradient = rig_queue(rig, 0, EMBENG_QUEUE_GRADIENT, 3);
	rig_submit(input, &cmd);
	rig_run(rig);
	a = rig_report(input);
	b = rig_report(gradient);
	ck_assert_uint_eq(a.epoch, b.epoch);
	ck_assert_uint_eq(a.epoch % 2, 0);
	ck_assert_uint_eq(a.state, EMBENG_QUEUE_BLOCKED);
	ck_assert_uint_eq(a.wait, EMBENG_WAIT_UPDATE);
	ck_assert_uint_eq(a.replica, 3);
	ck_assert_uint_eq(a.step, 1);
	ck_assert_uint_eq(a.tail, 1);
	ck_assert_uint_eq(b.state, EMBENG_QUEUE_RUNNING);
	ck_assert_uint_eq(b.tail, 0);
	epoch = a.epoch;
	rig_run(rig);
	ck_assert_uint_eq(rig_report(input).epoch, epoch);
	cmd = (struct embeng_cmd){.opcode = EMBENG_OP_NOP};
	rig_submit(gradient, &cmd);
	rig_run(rig);
	ck_assert_uint_eq(rig_report(input).epoch, epoch + 2);
	ck_assert_uint_eq(rig_report(gradient).tail, 1);
	/* It is the same wait, however often it is reported. */
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_COUNT_WAITS), 1);
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_COUNT_WAITS_UPDATE), 1);
	ck_assert_uint_eq(rig_header(input)->waits[EMBENG_WAIT_UPDATE - 1], 1);
	ck_assert_uint_eq(rig_header(input)->waits[EMBENG_WAIT_LOOKUP - 1], 0);
	ck_assert_uint_eq(rig_header(input)->commands, 0);
	ck_assert_uint_eq(rig_header(gradient)->commands, 1);
	rig_free(rig);
}
END_TEST

static void arm(struct rig_queue *q, u32 at)
{
	EMBENG_STORE_RELEASE(&q->doorbell->arm, at);
	EMBENG_STORE_RELEASE(&q->doorbell->armed, q->doorbell->armed + 1);
}

START_TEST(interrupts_come_once_for_each_arming)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_NOP};
	struct rig_queue *q;
	u32 *count;

	start();
	q = rig_queue_at(rig, 0, EMBENG_QUEUE_TRANSFER, 0, 8, 8, 0xfffffffe);
	count = &rig->interrupts[q->number % 8];
	rig_call(q, &cmd);
	ck_assert_uint_eq(*count, 0);
	arm(q, 0xffffffff + 1u);
	rig_call(q, &cmd);
	ck_assert_uint_eq(*count, 0);
	rig_call(q, &cmd);
	ck_assert_uint_eq(*count, 1);
	rig_call(q, &cmd);
	ck_assert_uint_eq(*count, 1);
	rig_free(rig);
}
END_TEST

START_TEST(a_sleeper_is_woken_by_the_report)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_DRAIN, .step = 1};
	struct rig_queue *q;

	start();
	fake.ready = 0;
	q = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	arm(q, 0);
	rig_submit(q, &cmd);
	rig_run(rig);
	ck_assert_uint_eq(rig->interrupts[q->number % 8], 1);
	rig_free(rig);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, a_wrong_queue_is_refused, 0,
			    (int)(sizeof(wrong) / sizeof(wrong[0])));
	tcase_add_test(t, a_wrong_context_or_index_is_refused);
	tcase_add_test(t, destroying_a_queue_aborts_what_waits);
	tcase_add_loop_test(t, ending_twice_ends_once, 0, 3);
	tcase_add_test(t, a_dying_context_gets_no_queue);
	tcase_add_test(t, a_context_may_have_all_regions);
	tcase_add_test(t, a_hang_is_not_taken_back);
	tcase_add_test(t, answers_of_waiting_commands_have_room);
	tcase_add_test(t, a_fence_waits_for_what_it_names);
	tcase_add_test(t, a_fence_names_queues_it_can_wait_for);
	tcase_add_test(t, reports_of_a_context_share_an_epoch);
	tcase_add_test(t, interrupts_come_once_for_each_arming);
	tcase_add_test(t, a_sleeper_is_woken_by_the_report);
}

int main(void)
{
	return suite_main("admin", add);
}
