// SPDX-License-Identifier: MIT
/*
 * The time that a modelled device takes for a command, also after a reset has zeroed its counters.
 */
#include "builtin_image.h"
#include "fake_model.h"
#include "rig.h"
#include "suite.h"

#define HOUR_NS 3600000000000ull

static struct port_speed modelled; /* all 0: the host models nothing */

bool __wrap_port_speed(void *host, struct port_speed *speed);

bool __wrap_port_speed(void *host, struct port_speed *speed)
{
	(void)host;
	*speed = modelled;
	return speed->fixed_ns || speed->ns_per_kib || speed->ns_per_row || speed->virtual_time;
}

static struct rig *rig;
static struct rig_queue *queue;

static void setup(void)
{
	fake = (struct fake_model){.admitted = U64_MAX, .ready = U64_MAX};
	rig = rig_new(1, 0);
	queue = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
}

static void teardown(void)
{
	rig_free(rig);
}

static void boot_again(void)
{
	rig_warm_reset(rig);
	ck_assert_uint_eq(rig_boot(rig, embeng_builtin_image, sizeof(embeng_builtin_image)),
			  EMBENG_BOOT_RUNNING);
	rig_context(rig, 0);
	queue = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
}

static void move(u64 kib, u64 rows)
{
	reg_count(rig->engine, EMBENG_REG_COUNT_BYTES_READ, kib * 1024);
	reg_count(rig->engine, EMBENG_REG_COUNT_IDS, rows);
}

/* Submits one; true when its completion is there at once. */
static bool answers(struct embeng_cqe *cqe)
{
	struct embeng_cmd nop = {.opcode = EMBENG_OP_NOP};

	rig_submit(queue, &nop);
	rig_run(rig);
	return rig_reap(queue, cqe);
}

/* By the device's own clock, how long a command took that moved so much. */
static u64 takes(u64 kib, u64 rows)
{
	u64 before = rig->engine->virtual_ns;
	struct embeng_cqe cqe;

	move(kib, rows);
	ck_assert(answers(&cqe));
	ck_assert_uint_eq(cqe.timestamp, rig->engine->virtual_ns);
	return cqe.timestamp - before;
}

START_TEST(what_moved_has_its_price)
{
	modelled = (struct port_speed){
		.virtual_time = true, .fixed_ns = 7, .ns_per_kib = 1000, .ns_per_row = 50};
	ck_assert_uint_eq(takes(3, 0), 3007);
	ck_assert_uint_eq(takes(0, 4), 207);
	ck_assert_uint_eq(takes(0, 0), 7);
}
END_TEST

START_TEST(a_reset_device_owes_nothing)
{
	modelled = (struct port_speed){.virtual_time = true, .ns_per_kib = 1000, .ns_per_row = 50};
	ck_assert_uint_eq(takes(3, 4), 3200);
	boot_again();
	ck_assert_uint_eq(takes(0, 0), 0);
	ck_assert_uint_eq(takes(1, 1), 1050);
}
END_TEST

START_TEST(a_reset_device_is_not_busy)
{
	struct embeng_cqe cqe;

	modelled = (struct port_speed){.fixed_ns = HOUR_NS};
	ck_assert(!answers(&cqe));
	boot_again();
	modelled = (struct port_speed){.fixed_ns = 1};
	if (!answers(&cqe)) {
		ck_assert_uint_lt(rig->engine->free_ns, port_now_ns() + HOUR_NS / 2);
		rig_wait(queue);
	}
}
END_TEST

START_TEST(what_came_before_the_model_costs_nothing)
{
	struct embeng_cqe cqe;

	modelled = (struct port_speed){0};
	move(1000, 1000);
	ck_assert(answers(&cqe));
	modelled = (struct port_speed){.virtual_time = true, .ns_per_kib = 1000, .ns_per_row = 50};
	ck_assert_uint_eq(takes(1, 0), 1000);
	modelled = (struct port_speed){0};
	move(1000, 1000);
	ck_assert(answers(&cqe));
	modelled = (struct port_speed){.virtual_time = true, .ns_per_kib = 1000, .ns_per_row = 50};
	ck_assert_uint_eq(takes(0, 1), 50);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, what_moved_has_its_price);
	tcase_add_test(t, a_reset_device_owes_nothing);
	tcase_add_test(t, a_reset_device_is_not_busy);
	tcase_add_test(t, what_came_before_the_model_costs_nothing);
}

int main(void)
{
	return suite_main("timing", add);
}
