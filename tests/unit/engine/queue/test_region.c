// SPDX-License-Identifier: MIT
/*
 * Memory keys: which keys and ranges the engine accepts, which rights it checks, and how it
 * unbinds a region that is in use.
 */
#include <stdlib.h>

#include "engine/memory/operand.h"
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

static struct embeng_cqe last; /* the completion that expect() got */

static void expect(const struct embeng_mem *desc, u16 status)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_ROWS_WRITE, .cookie = 1, .desc = *desc};
	struct embeng_cqe cqe = rig_call(q, &cmd);

	last = cqe;
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
	{{.index = 1, .generation = 0xffffffff}, EMBENG_STATUS_KEY},
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
	if (mem.index >= RIG_REGIONS)
		ck_assert_uint_eq(last.limit, RIG_REGIONS);
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

static struct embeng_region *entry_of(u32 index)
{
	return &rig->contexts[0].table[index];
}

static u16 get(u32 rights, struct view *view)
{
	struct command command = {.context = rig->engine->contexts[0]};

	return region_get(&command, &mem, rights, 8, 0, 0, view);
}

/* Both of two, and not one of them. */
START_TEST(all_rights_are_needed)
{
	const u32 both = EMBENG_REGION_DEVICE_READ | EMBENG_REGION_DEVICE_WRITE;
	struct view view;

	start();
	ck_assert_uint_eq(get(both, &view), EMBENG_STATUS_RIGHTS);
	ck_assert_ptr_null(view.data);
	mem = rig_bind(rig, 0, other, sizeof(other), both);
	ck_assert_uint_eq(get(both, &view), EMBENG_STATUS_OK);
	ck_assert_ptr_eq(view.data, other);
	region_put(rig->engine->contexts[0], &view);
	rig_free(rig);
}
END_TEST

/* The driver unbinds it, and gives the number to other memory, without an INVALIDATE between. */
START_TEST(a_key_is_compared_each_time)
{
	struct embeng_mem old;
	struct view view;

	start();
	expect(&mem, EMBENG_STATUS_OK);
	EMBENG_STORE_RELEASE(&entry_of(mem.index)->generation, 0);
	expect(&mem, EMBENG_STATUS_KEY);
	old = mem;
	rig->contexts[0].used = mem.index;
	mem = rig_bind(rig, 0, other, sizeof(other), EMBENG_REGION_DEVICE_READ);
	expect(&old, EMBENG_STATUS_KEY);
	ck_assert_uint_eq(get(EMBENG_REGION_DEVICE_READ, &view), EMBENG_STATUS_OK);
	ck_assert_ptr_eq(view.data, other);
	region_put(rig->engine->contexts[0], &view);
	rig_free(rig);
}
END_TEST

/* Several commands have it; until the last is done with it, nothing else takes its place. */
START_TEST(a_region_in_use_stays)
{
	struct view first, second, refused;
	struct embeng_mem old;

	start();
	ck_assert_uint_eq(get(EMBENG_REGION_DEVICE_READ, &first), EMBENG_STATUS_OK);
	ck_assert_uint_eq(get(EMBENG_REGION_DEVICE_READ, &second), EMBENG_STATUS_OK);
	ck_assert_ptr_eq(second.data, data);
	old = mem;
	rig->contexts[0].used = mem.index;
	mem = rig_bind(rig, 0, other, sizeof(other), EMBENG_REGION_DEVICE_READ);
	ck_assert_uint_eq(get(EMBENG_REGION_DEVICE_READ, &refused), EMBENG_STATUS_KEY);
	region_put(rig->engine->contexts[0], &first);
	ck_assert_uint_eq(get(EMBENG_REGION_DEVICE_READ, &refused), EMBENG_STATUS_KEY);
	region_put(rig->engine->contexts[0], &second);
	expect(&mem, EMBENG_STATUS_OK);
	expect(&old, EMBENG_STATUS_KEY);
	rig_free(rig);
}
END_TEST

static u32 swaps; /* so often the driver changes an entry while the device copies it */

/* The device asks for faults between its copy of an entry and its second look. */
static u64 swap_entry(void *arg, enum port_fault fault, u32 target)
{
	(void)arg;
	(void)target;
	if (fault != PORT_FAULT_REFUSE_REGION || !swaps)
		return 0;
	swaps--;
	EMBENG_STORE_RELEASE(&entry_of(mem.index)->generation, mem.generation + 1);
	return 0;
}

/* The copy may be half of two entries: it is not used, then or later. */
START_TEST(an_entry_that_changes_is_not_used)
{
	struct embeng_region *entry;
	struct view view;

	start();
	entry = entry_of(mem.index);
	rig->host.fault = swap_entry;
	swaps = 1;
	ck_assert_uint_eq(get(EMBENG_REGION_DEVICE_READ, &view), EMBENG_STATUS_KEY);
	ck_assert_ptr_null(view.data);
	ck_assert_uint_eq(swaps, 0);
	/* The same key again, for other memory: generations wrap. */
	rig_grant(rig, other, sizeof(other));
	rig->contexts[0].segments[mem.index].address = (u64)(size_t)other;
	EMBENG_STORE_RELEASE(&entry->generation, mem.generation);
	ck_assert_uint_eq(get(EMBENG_REGION_DEVICE_READ, &view), EMBENG_STATUS_OK);
	ck_assert_ptr_eq(view.data, other);
	region_put(rig->engine->contexts[0], &view);
	rig_free(rig);
}
END_TEST

/* As many segments as the interface allows, and one more. */
START_TEST(segments_have_a_limit)
{
	u64 count = EMBENG_SEGMENTS_MAX + 1;
	struct embeng_segment *segments = calloc(count, sizeof(*segments));

	ck_assert_ptr_nonnull(segments);
	start();
	segments[0] = rig->contexts[0].segments[mem.index];
	for (u64 i = 1; i < count; i++)
		segments[i].address = segments[0].address + segments[0].length;
	rig_grant(rig, segments, count * sizeof(*segments));
	entry_of(mem.index)->segments = (u64)(size_t)segments;
	entry_of(mem.index)->segment_count = (u32)count;
	expect(&mem, EMBENG_STATUS_KEY);
	entry_of(mem.index)->segment_count = 0;
	expect(&mem, EMBENG_STATUS_KEY);
	entry_of(mem.index)->segment_count = EMBENG_SEGMENTS_MAX;
	expect(&mem, EMBENG_STATUS_OK);
	rig_free(rig);
	free(segments);
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
	struct view view;

	ck_assert_uint_eq(region_get(command, &mem, EMBENG_REGION_DEVICE_READ, 1, 0, 0, &view),
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

/* -- what a command names -------------------------------------------------- */

static const struct {
	u64 length, count, width;
	u16 status;
} lengths[] = {
	{64, 8, 8, EMBENG_STATUS_OK},
	{63, 8, 8, EMBENG_STATUS_LENGTH},
	{65, 8, 8, EMBENG_STATUS_LENGTH},
	{0, 0, 8, EMBENG_STATUS_OK},
	{0, 1ull << 62, 4, EMBENG_STATUS_LENGTH},	/* wraps to 0 */
	{8, (1ull << 61) + 1, 8, EMBENG_STATUS_LENGTH}, /* and to 8 */
	{U64_MAX, U64_MAX, 1, EMBENG_STATUS_LENGTH},
};

START_TEST(a_length_is_that_of_its_elements)
{
	struct embeng_mem given = {.length = lengths[_i].length};
	struct fault fault = {0};

	ck_assert_uint_eq(check_length(&given, lengths[_i].count, lengths[_i].width,
				       EMBENG_FIELD_IDS, 2, &fault),
			  lengths[_i].status);
	ck_assert_uint_eq(fault.status, lengths[_i].status);
	ck_assert_uint_eq(fault.feature, lengths[_i].status ? 2 : 0);
}
END_TEST

/* Bytes of one command add up, and never to less than they are. */
START_TEST(moves_add_up)
{
	struct engine engine = {.caps.command_bytes = 100};
	struct fault fault = {0};
	u64 sum = 0;

	ck_assert_uint_eq(check_moves(&engine, &sum, 60, 0, &fault), EMBENG_STATUS_OK);
	ck_assert_uint_eq(check_moves(&engine, &sum, 40, 0, &fault), EMBENG_STATUS_OK);
	ck_assert_uint_eq(sum, 100);
	ck_assert_uint_eq(check_moves(&engine, &sum, 1, 3, &fault), EMBENG_STATUS_COUNT);
	ck_assert_uint_eq(fault.value, 101);
	ck_assert_uint_eq(fault.limit, 100);
	sum = 60;
	ck_assert_uint_eq(check_moves(&engine, &sum, U64_MAX - 50, 3, &fault), EMBENG_STATUS_COUNT);
	ck_assert_uint_eq(sum, U64_MAX);
	engine.caps.command_bytes = 0;
	ck_assert_uint_eq(check_moves(&engine, &sum, 1, 3, &fault), EMBENG_STATUS_OK);
}
END_TEST

static const struct {
	u32 count, stride;
	u64 length;
	u16 status;
} records[] = {
	{2, 24, 16 + 48, EMBENG_STATUS_OK},	{2, 32, 16 + 64, EMBENG_STATUS_OK},
	{2, 16, 16 + 32, EMBENG_STATUS_STRIDE}, {2, 28, 16 + 56, EMBENG_STATUS_STRIDE},
	{2, 24, 16 + 40, EMBENG_STATUS_LENGTH}, {2, 24, 16 + 56, EMBENG_STATUS_LENGTH},
	{0, 24, 16, EMBENG_STATUS_OK},
};

/* Records have 24 bytes each and stand behind a header of 16. */
START_TEST(records_stand_side_by_side)
{
	struct embeng_mem desc = {.length = records[_i].length};
	struct fault fault = {0};

	ck_assert_uint_eq(
		check_records(records[_i].count, records[_i].stride, 24, 16, &desc, &fault),
		records[_i].status);
}
END_TEST

START_TEST(a_descriptor_has_its_header)
{
	struct command command = {0};
	struct view view;

	start();
	command.context = rig->engine->contexts[0];
	command.cmd.desc = mem;
	ck_assert_uint_eq(desc_get(&command, sizeof(data), EMBENG_REGION_DEVICE_READ, &view),
			  EMBENG_STATUS_OK);
	region_put(command.context, &view);
	ck_assert_uint_eq(desc_get(&command, sizeof(data) + 1, EMBENG_REGION_DEVICE_READ, &view),
			  EMBENG_STATUS_LENGTH);
	ck_assert_uint_eq(command.fault.value, sizeof(data));
	ck_assert_uint_eq(command.fault.limit, sizeof(data) + 1);
	ck_assert_uint_eq(command.context->accesses, 0);
	rig_free(rig);
}
END_TEST

#define COUNT(cases) ((int)(sizeof(cases) / sizeof((cases)[0])))

static void add(TCase *t)
{
	tcase_add_test(t, a_good_key_works);
	tcase_add_loop_test(t, a_wrong_key_or_range_is_refused, 0,
			    (int)(sizeof(wrong) / sizeof(wrong[0])));
	tcase_add_test(t, rights_are_checked);
	tcase_add_test(t, all_rights_are_needed);
	tcase_add_test(t, a_key_is_compared_each_time);
	tcase_add_test(t, a_region_in_use_stays);
	tcase_add_test(t, an_entry_that_changes_is_not_used);
	tcase_add_test(t, segments_have_a_limit);
	tcase_add_test(t, a_stale_key_is_refused);
	tcase_add_test(t, no_key_reaches_into_another_context);
	tcase_add_test(t, memory_that_the_device_was_not_given_is_refused);
	tcase_add_test(t, segments_that_are_too_short_are_refused);
	tcase_add_loop_test(t, a_length_is_that_of_its_elements, 0, COUNT(lengths));
	tcase_add_test(t, moves_add_up);
	tcase_add_loop_test(t, records_stand_side_by_side, 0, COUNT(records));
	tcase_add_test(t, a_descriptor_has_its_header);
	tcase_add_loop_test(t, unbinding_waits_for_the_access_in_flight, 0, 2);
}

int main(void)
{
	return suite_main("region", add);
}
