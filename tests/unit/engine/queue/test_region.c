// SPDX-License-Identifier: MIT
/*
 * Memory keys: which keys and ranges the engine accepts, which rights it checks, and how it
 * unbinds a region that is in use.
 */
#include "fake_model.h"
#include "rig.h"
#include "suite.h"

static struct rig *rig;
static struct rig_queue *q;
static u64 data[8], other[8];
static struct embeng_mem mem;

static void start(void)
{
	fake = (struct fake_model){.admitted = U64_MAX, .ready = U64_MAX};
	rig = rig_new(1, 0);
	mem = rig_bind(rig, 0, data, sizeof(data), EMBENG_REGION_DEVICE_READ);
	q = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
}

static void expect(const struct embeng_mem *desc, u16 status)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_ROWS_WRITE, .cookie = 1, .desc = *desc};
	struct embeng_cqe cqe = rig_call(q, &cmd);

	rig_assert_cqe(&cqe, 1, status, status ? EMBENG_FIELD_DESC : EMBENG_FIELD_NONE);
	ck_assert_uint_eq(cqe.feature, status ? 7 : EMBENG_NO_INDEX);
}

START_TEST(a_good_key_works)
{
	start();
	expect(&mem, EMBENG_STATUS_OK);
	mem.offset = 56;
	mem.length = 8;
	expect(&mem, EMBENG_STATUS_OK);
	rig_free(rig);
}
END_TEST

static const struct {
	struct embeng_mem change; /* added to a good key */
	u16 status;
} wrong[] = {
	{{.index = RIG_REGIONS}, EMBENG_STATUS_KEY},
	{{.index = 0xffffffff}, EMBENG_STATUS_KEY},
	{{.index = 1}, EMBENG_STATUS_KEY},
	{{.generation = 1}, EMBENG_STATUS_KEY},
	{{.generation = 0xffffffff}, EMBENG_STATUS_KEY},
	{{.length = 1}, EMBENG_STATUS_BOUNDS},
	{{.offset = 8}, EMBENG_STATUS_BOUNDS},
	{{.offset = ~(u64)7}, EMBENG_STATUS_BOUNDS},
	{{.offset = 4, .length = (u64)-8}, EMBENG_STATUS_ALIGNMENT},
};

START_TEST(a_wrong_key_or_range_is_refused)
{
	start();
	mem.index += wrong[_i].change.index;
	mem.generation += wrong[_i].change.generation;
	mem.offset += wrong[_i].change.offset;
	mem.length += wrong[_i].change.length;
	if (mem.index == 0xffffffff)
		mem.generation = 1;
	expect(&mem, wrong[_i].status);
	rig_free(rig);
}
END_TEST

START_TEST(rights_are_checked)
{
	start();
	mem = rig_bind(rig, 0, other, sizeof(other), EMBENG_REGION_DEVICE_WRITE);
	expect(&mem, EMBENG_STATUS_RIGHTS);
	rig_free(rig);
}
END_TEST

START_TEST(a_stale_key_is_refused)
{
	start();
	expect(&mem, EMBENG_STATUS_OK);
	rig_unbind(rig, 0, &mem);
	ck_assert_uint_eq(rig_wait(&rig->admin).status, EMBENG_STATUS_OK);
	expect(&mem, EMBENG_STATUS_KEY);
	rig->contexts[0].used = mem.index;
	rig_bind(rig, 0, other, sizeof(other), EMBENG_REGION_DEVICE_READ);
	expect(&mem, EMBENG_STATUS_KEY);
	rig_free(rig);
}
END_TEST

START_TEST(no_key_reaches_into_another_context)
{
	struct embeng_mem theirs;
	u32 i;

	start();
	rig_context(rig, 1);
	for (i = 0; i < 5; i++)
		theirs = rig_bind(rig, 1, other, sizeof(other), EMBENG_REGION_DEVICE_READ);
	expect(&theirs, EMBENG_STATUS_KEY);
	for (i = 0; i < 10; i++) {
		theirs.generation = i;
		expect(&theirs, EMBENG_STATUS_KEY);
	}
	rig_free(rig);
}
END_TEST

START_TEST(memory_that_the_device_was_not_given_is_refused)
{
	start();
	rig->contexts[0].segments[mem.index].address = 4096;
	expect(&mem, EMBENG_STATUS_KEY);
	rig_free(rig);
}
END_TEST

START_TEST(segments_that_are_too_short_are_refused)
{
	start();
	rig->contexts[0].segments[mem.index].length = sizeof(data) - 8;
	expect(&mem, EMBENG_STATUS_KEY);
	rig->contexts[0].table[mem.index].segment_count = 0;
	expect(&mem, EMBENG_STATUS_KEY);
	rig_free(rig);
}
END_TEST

static u32 answers;
static bool destroy;

/* Inside model_run(): the access is in flight, the answer must not come. */
static void unbind_while_running(struct command *command)
{
	struct embeng_admin_cmd cmd = {.opcode = EMBENG_ADMIN_CONTEXT_DESTROY};
	struct embeng_cqe cqe;
	struct fault fault;
	struct view view;

	ck_assert_uint_eq(region_get(command->context, &mem, EMBENG_REGION_DEVICE_READ, 1, 0, 0,
				     &view, &fault),
			  EMBENG_STATUS_OK);
	if (destroy)
		rig_admin_submit(rig, &cmd);
	else
		rig_unbind(rig, 0, &mem);
	engine_run(rig->engine, ENGINE_RUN_ALL);
	answers = rig_reap(&rig->admin, &cqe);
	ck_assert_ptr_eq(view.data, data);
	region_put(command->context, &view);
	ck_assert_ptr_null(view.region);
	region_put(command->context, &view);
}

START_TEST(unbinding_waits_for_the_access_in_flight)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_MODEL_UNLOAD};

	start();
	destroy = _i;
	fake.running = unbind_while_running;
	rig_submit(q, &cmd);
	rig_run(rig);
	ck_assert_uint_eq(answers, 0);
	ck_assert_uint_eq(fake.runs, 1);
	ck_assert_uint_eq(rig_wait(&rig->admin).status, EMBENG_STATUS_OK);
	ck_assert_uint_eq(rig_header(q)->dead, destroy);
	rig_free(rig);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, a_good_key_works);
	tcase_add_loop_test(t, a_wrong_key_or_range_is_refused, 0,
			    (int)(sizeof(wrong) / sizeof(wrong[0])));
	tcase_add_test(t, rights_are_checked);
	tcase_add_test(t, a_stale_key_is_refused);
	tcase_add_test(t, no_key_reaches_into_another_context);
	tcase_add_test(t, memory_that_the_device_was_not_given_is_refused);
	tcase_add_test(t, segments_that_are_too_short_are_refused);
	tcase_add_loop_test(t, unbinding_waits_for_the_access_in_flight, 0, 2);
}

int main(void)
{
	return suite_main("region", add);
}
