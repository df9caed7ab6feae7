// SPDX-License-Identifier: MIT
/* The event log of a device, and the time that it worked for each queue. */
#include <string.h>

#include "builtin_image.h"
#include "fake_model.h"
#include "rig.h"
#include "suite.h"

static u8 copy[sizeof(embeng_builtin_image)];

static const struct embeng_event_log *log_of(const struct rig *rig)
{
	const u8 *page = rig->config.registers;

	return (const struct embeng_event_log *)(page + EMBENG_EVENT_LOG);
}

/* The newest event is this one; returns it. */
static const struct embeng_event *expect(const struct rig *rig, u32 number, u32 kind)
{
	const struct embeng_event_log *log = log_of(rig);
	const struct embeng_event *event = &log->events[number % EMBENG_EVENTS];

	ck_assert_uint_eq(log->magic, EMBENG_EVENT_MAGIC);
	ck_assert_uint_eq(log->record_bytes, sizeof(*event));
	ck_assert_uint_eq(log->capacity, EMBENG_EVENTS);
	ck_assert_uint_eq(log->next, number + 1);
	ck_assert_uint_eq(event->number, number);
	ck_assert_uint_eq(event->kind, kind);
	return event;
}

static u32 boot(struct rig *rig)
{
	memcpy(copy, embeng_builtin_image, sizeof(copy));
	return rig_boot(rig, copy, sizeof(copy));
}

START_TEST(boots_and_resets_are_logged)
{
	struct rig *rig = rig_power_on(1, 0);
	const struct embeng_event *event;

	event = expect(rig, 1, EMBENG_EVENT_POWER_ON);
	ck_assert_uint_eq(event->context, EMBENG_NO_INDEX);
	ck_assert_uint_eq(event->queue, EMBENG_EVENT_NO_QUEUE);
	ck_assert_uint_gt(event->time_ns, 0);
	memcpy(copy, embeng_builtin_image, sizeof(copy));
	copy[4] = 9;
	ck_assert_uint_eq(rig_boot(rig, copy, sizeof(copy)), EMBENG_BOOT_FAILED);
	event = expect(rig, 2, EMBENG_EVENT_BOOT_REFUSED);
	ck_assert_uint_eq(event->detail, EMBENG_BOOT_ERROR_FORMAT);
	ck_assert_uint_eq(event->value, 4);
	ck_assert_uint_eq(boot(rig), EMBENG_BOOT_RUNNING);
	event = expect(rig, 3, EMBENG_EVENT_BOOT);
	ck_assert_uint_eq(event->value, reg_read64(rig->engine, EMBENG_REG_FIRMWARE_VERSION));
	rig_warm_reset(rig);
	expect(rig, 4, EMBENG_EVENT_RESET);
	rig_free(rig);
}
END_TEST

/* Power off and on with the same memory, as a function-level reset is. */
START_TEST(the_log_outlives_the_engine)
{
	struct rig *rig = rig_power_on(1, 0);
	const struct embeng_event first = *expect(rig, 1, EMBENG_EVENT_POWER_ON);

	engine_destroy(rig->engine);
	ck_assert_int_eq(engine_create(&rig->config, &rig->engine), 0);
	expect(rig, 2, EMBENG_EVENT_POWER_ON);
	ck_assert_mem_eq(&log_of(rig)->events[1], &first, sizeof(first));
	rig_free(rig);
}
END_TEST

START_TEST(contexts_are_logged_round_and_round)
{
	struct rig *rig = rig_new(1, 0);
	struct embeng_admin_cmd end = {.opcode = EMBENG_ADMIN_CONTEXT_DESTROY, .context = 1};
	const struct embeng_event *event;

	event = expect(rig, 3, EMBENG_EVENT_CONTEXT_MADE);
	ck_assert_uint_eq(event->context, 0);
	ck_assert_uint_eq(event->value, RIG_REGIONS);
	for (u32 i = 0; i < EMBENG_EVENTS; i++) {
		rig_context(rig, 1);
		event = expect(rig, 4 + 2 * i, EMBENG_EVENT_CONTEXT_MADE);
		ck_assert_uint_eq(event->context, 1);
		ck_assert_uint_eq(rig_admin(rig, &end).status, 0);
		expect(rig, 5 + 2 * i, EMBENG_EVENT_CONTEXT_ENDED);
	}
	rig_free(rig);
}
END_TEST

START_TEST(a_wrong_index_is_logged_once)
{
	struct rig *rig = rig_new(1, 0);
	struct rig_queue *q = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	const struct embeng_event *event;

	embeng_doorbell_tail(&q->doorbell->sq_tail, 5000);
	rig_run(rig);
	rig_run(rig);
	event = expect(rig, 4, EMBENG_EVENT_QUEUE_STOPPED);
	ck_assert_uint_eq(event->queue, q->number);
	ck_assert_uint_eq(event->context, 0);
	ck_assert_uint_eq(event->detail, 5000);
	rig_free(rig);
}
END_TEST

/* Time of work is counted in the header of the queue, and in the registers for the core. */
START_TEST(work_is_counted_by_queue_and_core)
{
	struct embeng_cmd nop = {.opcode = EMBENG_OP_NOP};
	struct rig *rig = rig_new(1, 0);
	struct rig_queue *q = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	struct rig_queue *idle = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	u64 busy;

	ck_assert_uint_eq(rig_header(q)->busy_ns, 0);
	while (!rig_header(q)->busy_ns)
		rig_call(q, &nop);
	busy = reg_read64(rig->engine, EMBENG_CORE_BUSY(0));
	ck_assert_uint_eq(busy, rig_header(q)->busy_ns);
	ck_assert_uint_eq(rig_header(idle)->busy_ns, 0);
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_CORE_BUSY(1)), 0);
	rig_warm_reset(rig);
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_CORE_BUSY(0)), 0);
	rig_free(rig);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, boots_and_resets_are_logged);
	tcase_add_test(tcase, the_log_outlives_the_engine);
	tcase_add_test(tcase, contexts_are_logged_round_and_round);
	tcase_add_test(tcase, a_wrong_index_is_logged_once);
	tcase_add_test(tcase, work_is_counted_by_queue_and_core);
}

int main(void)
{
	return suite_main("events", add);
}
