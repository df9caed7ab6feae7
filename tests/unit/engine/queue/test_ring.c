// SPDX-License-Identifier: MIT
/*
 * Submission and completion rings: indices that wrap, full rings, wrong indices of the program,
 * and malformed commands.
 */
#include "ring_help.h"

static struct embeng_cmd nop(u64 cookie, u16 status, u32 delay_us)
{
	return (struct embeng_cmd){
		.opcode = EMBENG_OP_NOP,
		.cookie = cookie,
		.arg = status | (u64)delay_us << EMBENG_NOP_DELAY_SHIFT,
	};
}

START_TEST(indices_wrap)
{
	struct rig_queue *q;
	struct embeng_cmd cmd;
	struct embeng_cqe cqe;
	u64 i;

	start();
	q = rig_queue_at(rig, 0, EMBENG_QUEUE_TRANSFER, 0, 4, 4, 0xfffffffau);
	for (i = 1; i <= 40; i++) {
		cmd = nop(i, 0, 0);
		cqe = rig_call(q, &cmd);
		rig_assert_cqe(&cqe, i, EMBENG_STATUS_OK, EMBENG_FIELD_NONE);
		ck_assert_uint_eq(cqe.flags, EMBENG_CQE_DONE);
		ck_assert_uint_eq(cqe.feature, EMBENG_NO_INDEX);
	}
	ck_assert_uint_eq(rig_header(q)->sq_head, 34);
	ck_assert_uint_eq(rig_header(q)->cq_tail, 34);
	rig_free(rig);
}
END_TEST

START_TEST(a_full_ring_is_taken_whole)
{
	struct rig_queue *q;
	struct embeng_cmd cmd;
	struct embeng_cqe cqe;
	u64 i;

	start();
	q = rig_queue_at(rig, 0, EMBENG_QUEUE_TRANSFER, 0, 8, 8, 0);
	for (i = 0; i < 8; i++) {
		cmd = nop(i, 0, 0);
		rig_submit(q, &cmd);
	}
	rig_run(rig);
	for (i = 0; i < 8; i++) {
		ck_assert(rig_reap(q, &cqe));
		rig_assert_cqe(&cqe, i, EMBENG_STATUS_OK, EMBENG_FIELD_NONE);
	}
	ck_assert(!rig_reap(q, &cqe));
	rig_free(rig);
}
END_TEST

START_TEST(a_tail_beyond_the_ring_is_an_error)
{
	struct rig_queue *q;
	struct embeng_queue_report report;

	start();
	q = rig_queue_at(rig, 0, EMBENG_QUEUE_TRANSFER, 0, 8, 8, 0);
	embeng_doorbell_tail(&q->doorbell->sq_tail, 9);
	rig_run(rig);
	report = rig_report(q);
	ck_assert_uint_eq(report.state, EMBENG_QUEUE_ERROR);
	ck_assert_uint_eq(report.tail, 9);
	ck_assert_uint_eq(rig_header(q)->sq_head, 0);
	embeng_doorbell_tail(&q->doorbell->sq_tail, 1);
	rig_run(rig);
	ck_assert_uint_eq(rig_header(q)->sq_head, 0);
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_COUNT_ERRORS_PROGRAM), 1);
	rig_free(rig);
}
END_TEST

START_TEST(a_completion_head_beyond_the_tail_is_an_error)
{
	struct rig_queue *q;

	start();
	q = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	embeng_doorbell_cq_head(&q->doorbell->cq_head, 1);
	rig_run(rig);
	ck_assert_uint_eq(rig_report(q).state, EMBENG_QUEUE_ERROR);
	rig_free(rig);
}
END_TEST

START_TEST(a_full_completion_ring_stops_and_goes_on)
{
	struct rig_queue *q;
	struct embeng_cmd cmd;
	struct embeng_cqe cqe;
	u64 i;

	start();
	q = rig_queue_at(rig, 0, EMBENG_QUEUE_TRANSFER, 0, 8, 2, 0);
	for (i = 0; i < 8; i++) {
		cmd = nop(i, 0, 0);
		rig_submit(q, &cmd);
	}
	rig_run(rig);
	ck_assert_uint_eq(rig_header(q)->cq_tail, 2);
	ck_assert_uint_eq(rig_header(q)->sq_head, 2);
	ck_assert_uint_eq(rig_report(q).state, EMBENG_QUEUE_CQ_FULL);
	ck_assert_uint_eq(rig_report(q).wait, EMBENG_WAIT_SPACE);
	for (i = 0; i < 8; i++) {
		cqe = rig_wait(q);
		rig_assert_cqe(&cqe, i, EMBENG_STATUS_OK, EMBENG_FIELD_NONE);
	}
	rig_free(rig);
}
END_TEST

START_TEST(a_lookup_needs_room_for_both_completions)
{
	struct rig_queue *q;
	struct embeng_cmd cmd;
	struct embeng_cqe cqe;

	start();
	q = rig_queue_at(rig, 0, EMBENG_QUEUE_INPUT, 0, 1, 2, 0);
	cmd = nop(9, 0, 0);
	rig_submit(q, &cmd);
	rig_run(rig);
	cmd = lookup(1);
	rig_submit(q, &cmd);
	rig_run(rig);
	ck_assert_uint_eq(rig_report(q).state, EMBENG_QUEUE_CQ_FULL);
	ck_assert_uint_eq(fake.commits, 0);
	cqe = rig_wait(q);
	ck_assert_uint_eq(cqe.cookie, 9);
	cqe = rig_wait(q);
	ck_assert_uint_eq(cqe.flags, EMBENG_CQE_ACCEPTED);
	cqe = rig_wait(q);
	ck_assert_uint_eq(cqe.flags, EMBENG_CQE_DONE);
	ck_assert_uint_eq(cqe.step, 1);
	rig_free(rig);
}
END_TEST

/* Each with what it breaks, otherwise valid. */
static const struct {
	u32 kind;
	struct embeng_cmd cmd;
	u16 status;
	u32 field;
} refused[] = {
	{EMBENG_QUEUE_TRANSFER,
	 {.opcode = EMBENG_OP_SUM + 1},
	 EMBENG_STATUS_OPCODE,
	 EMBENG_FIELD_OPCODE},
	{EMBENG_QUEUE_INPUT, {.opcode = 13}, EMBENG_STATUS_QUEUE_KIND, EMBENG_FIELD_OPCODE},
	{EMBENG_QUEUE_TRANSFER, {.opcode = 2}, EMBENG_STATUS_QUEUE_KIND, EMBENG_FIELD_OPCODE},
	{EMBENG_QUEUE_INPUT, {.opcode = 3}, EMBENG_STATUS_QUEUE_KIND, EMBENG_FIELD_OPCODE},
	{EMBENG_QUEUE_GRADIENT, {.opcode = 5}, EMBENG_STATUS_QUEUE_KIND, EMBENG_FIELD_OPCODE},
	{EMBENG_QUEUE_TRANSFER, {.flags = 1}, EMBENG_STATUS_RESERVED, EMBENG_FIELD_FLAGS},
	{EMBENG_QUEUE_TRANSFER,
	 {.opcode = 7, .flags = 2},
	 EMBENG_STATUS_RESERVED,
	 EMBENG_FIELD_FLAGS},
	{EMBENG_QUEUE_TRANSFER,
	 {.opcode = 8, .flags = 1},
	 EMBENG_STATUS_RESERVED,
	 EMBENG_FIELD_FLAGS},
	{EMBENG_QUEUE_INFERENCE,
	 {.opcode = EMBENG_OP_LOOKUP, .flags = EMBENG_CMD_IDS_ONLY},
	 EMBENG_STATUS_RESERVED,
	 EMBENG_FIELD_FLAGS},
	{EMBENG_QUEUE_INPUT,
	 {.opcode = EMBENG_OP_LOOKUP, .flags = EMBENG_CMD_DISCARD},
	 EMBENG_STATUS_RESERVED,
	 EMBENG_FIELD_FLAGS},
	{EMBENG_QUEUE_GRADIENT,
	 {.opcode = EMBENG_OP_UPDATE, .flags = EMBENG_CMD_DISCARD, .desc.index = 1},
	 EMBENG_STATUS_RESERVED,
	 EMBENG_FIELD_DESC},
	{EMBENG_QUEUE_INPUT, {.opcode = 14}, EMBENG_STATUS_QUEUE_KIND, EMBENG_FIELD_OPCODE},
	{EMBENG_QUEUE_TRANSFER,
	 {.opcode = 14, .desc.index = 1},
	 EMBENG_STATUS_RESERVED,
	 EMBENG_FIELD_DESC},
	{EMBENG_QUEUE_TRANSFER,
	 {.opcode = EMBENG_OP_SNAPSHOT, .arg = 1},
	 EMBENG_STATUS_RESERVED,
	 EMBENG_FIELD_ARG},
	{EMBENG_QUEUE_TRANSFER,
	 {.opcode = EMBENG_OP_SNAPSHOT_READ, .after = 1},
	 EMBENG_STATUS_RESERVED,
	 EMBENG_FIELD_AFTER},
	{EMBENG_QUEUE_TRANSFER,
	 {.opcode = EMBENG_OP_SNAPSHOT_READ, .arg = 1ull << 32},
	 EMBENG_STATUS_RESERVED,
	 EMBENG_FIELD_ARG},
	{EMBENG_QUEUE_TRANSFER,
	 {.opcode = EMBENG_OP_SNAPSHOT_END, .desc.index = 1},
	 EMBENG_STATUS_RESERVED,
	 EMBENG_FIELD_DESC},
	{EMBENG_QUEUE_INFERENCE,
	 {.opcode = EMBENG_OP_POOL},
	 EMBENG_STATUS_QUEUE_KIND,
	 EMBENG_FIELD_OPCODE},
	{EMBENG_QUEUE_TRANSFER,
	 {.opcode = EMBENG_OP_UNIQUE, .after = 1},
	 EMBENG_STATUS_RESERVED,
	 EMBENG_FIELD_AFTER},
	{EMBENG_QUEUE_TRANSFER,
	 {.opcode = EMBENG_OP_SUM, .arg = 1},
	 EMBENG_STATUS_RESERVED,
	 EMBENG_FIELD_ARG},
	{EMBENG_QUEUE_TRANSFER, {.reserved0 = 1}, EMBENG_STATUS_RESERVED, EMBENG_FIELD_RESERVED},
	{EMBENG_QUEUE_TRANSFER, {.step = 1}, EMBENG_STATUS_RESERVED, EMBENG_FIELD_STEP},
	{EMBENG_QUEUE_TRANSFER, {.after = 1}, EMBENG_STATUS_RESERVED, EMBENG_FIELD_AFTER},
	{EMBENG_QUEUE_TRANSFER, {.desc.index = 1}, EMBENG_STATUS_RESERVED, EMBENG_FIELD_DESC},
	{EMBENG_QUEUE_TRANSFER, {.opcode = 4, .arg = 1}, EMBENG_STATUS_RESERVED, EMBENG_FIELD_ARG},
	{EMBENG_QUEUE_TRANSFER, {.arg = 1u << 16}, EMBENG_STATUS_RESERVED, EMBENG_FIELD_ARG},
	{EMBENG_QUEUE_TRANSFER,
	 {.arg = (EMBENG_NOP_DELAY_MAX + 1ull) << EMBENG_NOP_DELAY_SHIFT},
	 EMBENG_STATUS_COUNT,
	 EMBENG_FIELD_ARG},
	{EMBENG_QUEUE_TRANSFER,
	 {.opcode = 10, .arg = 1ull << 34},
	 EMBENG_STATUS_RESERVED,
	 EMBENG_FIELD_ARG},
	{EMBENG_QUEUE_TRANSFER,
	 {.opcode = 10, .arg = EMBENG_STATS_NOW, .after = 1},
	 EMBENG_STATUS_RESERVED,
	 EMBENG_FIELD_AFTER},
	{EMBENG_QUEUE_TRANSFER,
	 {.opcode = 10, .arg = EMBENG_STATS_NOW | EMBENG_STATS_CLEAR},
	 EMBENG_STATUS_RESERVED,
	 EMBENG_FIELD_ARG},
	{EMBENG_QUEUE_TRANSFER,
	 {.arg = EMBENG_STATUS_SNAPSHOT + 1},
	 EMBENG_STATUS_COUNT,
	 EMBENG_FIELD_ARG},
	{EMBENG_QUEUE_INPUT, {.opcode = 2, .after = 1}, EMBENG_STATUS_RESERVED, EMBENG_FIELD_AFTER},
	{EMBENG_QUEUE_INFERENCE,
	 {.opcode = 2, .step = 1},
	 EMBENG_STATUS_RESERVED,
	 EMBENG_FIELD_STEP},
};

START_TEST(a_malformed_command_is_refused)
{
	struct embeng_cmd cmd = refused[_i].cmd;
	struct embeng_cqe cqe;
	struct rig_queue *q;

	start();
	q = rig_queue(rig, 0, refused[_i].kind, 0);
	cmd.cookie = 77;
	cqe = rig_call(q, &cmd);
	rig_assert_cqe(&cqe, 77, refused[_i].status, refused[_i].field);
	ck_assert_uint_eq(cqe.flags, EMBENG_CQE_DONE);
	ck_assert_uint_eq(fake.commits + fake.runs, 0);
	cmd = nop(78, 0, 0);
	cqe = rig_call(q, &cmd);
	rig_assert_cqe(&cqe, 78, EMBENG_STATUS_OK, EMBENG_FIELD_NONE);
	rig_free(rig);
}
END_TEST

START_TEST(a_nop_gives_the_status_asked_for)
{
	struct rig_queue *q;
	struct embeng_cmd cmd = nop(5, EMBENG_STATUS_INTERNAL, 0);
	struct embeng_cqe cqe;

	start();
	q = rig_queue(rig, 0, EMBENG_QUEUE_GRADIENT, 0);
	cqe = rig_call(q, &cmd);
	rig_assert_cqe(&cqe, 5, EMBENG_STATUS_INTERNAL, EMBENG_FIELD_NONE);
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_COUNT_ERRORS_DEVICE), 0);
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_COUNT_ERRORS_PROGRAM), 1);
	rig_free(rig);
}
END_TEST

START_TEST(a_nop_waits_its_delay_and_holds_back_its_queue)
{
	struct rig_queue *slow, *fast;
	struct embeng_cmd cmd = nop(1, 0, 30000);
	struct embeng_cqe cqe;
	u64 began;

	fake = (struct fake_model){.ready = U64_MAX};
	rig = rig_new(2, _i != 0);
	slow = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	fast = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	began = port_now_ns();
	rig_submit(slow, &cmd);
	cmd = nop(2, 0, 0);
	rig_submit(slow, &cmd);
	cqe = rig_call(fast, &cmd);
	ck_assert_uint_eq(cqe.cookie, 2);
	ck_assert_uint_eq(rig_wait(slow).cookie, 1);
	ck_assert_uint_ge(port_now_ns() - began, 30000000);
	ck_assert_uint_eq(rig_wait(slow).cookie, 2);
	rig_free(rig);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, indices_wrap);
	tcase_add_test(t, a_full_ring_is_taken_whole);
	tcase_add_test(t, a_tail_beyond_the_ring_is_an_error);
	tcase_add_test(t, a_completion_head_beyond_the_tail_is_an_error);
	tcase_add_test(t, a_full_completion_ring_stops_and_goes_on);
	tcase_add_test(t, a_lookup_needs_room_for_both_completions);
	tcase_add_loop_test(t, a_malformed_command_is_refused, 0,
			    (int)(sizeof(refused) / sizeof(refused[0])));
	tcase_add_test(t, a_nop_gives_the_status_asked_for);
	tcase_add_loop_test(t, a_nop_waits_its_delay_and_holds_back_its_queue, 0, 2);
}

int main(void)
{
	return suite_main("ring", add);
}
