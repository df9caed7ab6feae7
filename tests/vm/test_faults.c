// SPDX-License-Identifier: MIT
/* Each fault of the emulator, as it shows at its BARs and rings. */
#include <errno.h>
#include <unistd.h>

#include "../unit/support/suite.h"
#include "raw_function.h"
#include "fault_file.h"

#define SHORT_US 200000 /* long enough to see that nothing comes */

static struct raw_function *b;

static void start(void)
{
	b = raw_open();
	raw_await(b, EMBENG_REG_BOOT_STATE, EMBENG_BOOT_ROM);
	ck_assert_uint_eq(raw_boot(b), EMBENG_BOOT_RUNNING);
	raw_context(b);
}

static struct embeng_cqe nop(uint64_t cookie)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_NOP, .cookie = cookie};

	return raw_call(&b->queues[1], &cmd);
}

static void nop_unanswered(void)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_NOP, .cookie = 99};
	struct embeng_cqe cqe;

	raw_submit(&b->queues[1], &cmd);
	usleep(SHORT_US);
	ck_assert(!raw_reap(&b->queues[1], &cqe));
}

START_TEST(a_dropped_completion_never_comes)
{
	start();
	fault_arm("drop_completion", 1);
	nop_unanswered();
	ck_assert_uint_eq(nop(2).cookie, 2);
	ck_assert_uint_eq(fault_get("drop_completion", "count"), 0);
	raw_close(b);
}
END_TEST

START_TEST(a_delayed_completion_comes_late)
{
	struct embeng_cqe cqe;

	start();
	fault_file_set("delay_completion", "value", 2000000000);
	fault_arm("delay_completion", 1);
	nop_unanswered();
	while (!raw_reap(&b->queues[1], &cqe))
		usleep(1000);
	ck_assert_uint_eq(cqe.cookie, 99);
	ck_assert_uint_eq(nop(2).cookie, 2);
	raw_close(b);
}
END_TEST

START_TEST(a_corrupt_completion_has_another_cookie)
{
	start();
	fault_arm("corrupt_completion", 1);
	ck_assert_uint_eq(nop(5).cookie, ~5ull);
	ck_assert_uint_eq(nop(5).cookie, 5);
	raw_close(b);
}
END_TEST

START_TEST(a_fault_strikes_its_target_alone)
{
	struct embeng_admin_cmd admin = {.opcode = EMBENG_ADMIN_NOP, .cookie = 5};

	start();
	fault_arm("corrupt_completion", 1);
	fault_file_set("corrupt_completion", "target", 1);
	ck_assert_uint_eq(raw_admin(b, admin).cookie, 5);
	ck_assert_uint_eq(nop(5).cookie, ~5ull);
	raw_close(b);
}
END_TEST

/* The same seed strikes at the same occasions, another one at others. */
static uint64_t struck(const char *fault, uint64_t seed)
{
	uint64_t hits = 0;

	fault_arm(fault, UINT32_MAX);
	fault_file_set(fault, "target", 1);
	fault_file_set(fault, "per_mille", 300);
	fault_file_set(fault, "seed", seed);
	for (int i = 0; i < 64; i++) {
		struct embeng_cqe cqe = nop(7);

		hits |= (uint64_t)(cqe.cookie != 7 || cqe.status != EMBENG_STATUS_OK) << i;
	}
	fault_arm(fault, 0);
	return hits;
}

START_TEST(the_seed_chooses_when_it_strikes)
{
	static const char *const faults[] = {"corrupt_completion", "dma_error"};
	uint64_t one, other;

	start();
	one = struck(faults[_i], 1);
	ck_assert_int_gt(__builtin_popcountll(one), 5);
	ck_assert_int_lt(__builtin_popcountll(one), 40);
	other = struck(faults[_i], 2);
	ck_assert_uint_ne(one, other);
	ck_assert_uint_eq(struck(faults[_i], 1), one);
	raw_close(b);
}
END_TEST

START_TEST(a_count_of_more_than_32_bits_is_refused)
{
	fault_arm("drop_completion", 3);
	ck_assert_int_eq(fault_write("drop_completion", "count", 1ull << 32), -ERANGE);
	ck_assert_uint_eq(fault_get("drop_completion", "count"), 3);
	fault_arm("drop_completion", 0);
}
END_TEST

START_TEST(a_stalled_queue_takes_nothing_until_it_is_made_anew)
{
	struct embeng_admin_cmd destroy = {.opcode = EMBENG_ADMIN_QUEUE_DESTROY, .queue = 1};
	struct embeng_admin_cmd admin = {.opcode = EMBENG_ADMIN_NOP};

	start();
	fault_arm("stall_queue", 1);
	fault_file_set("stall_queue", "target", 1);
	nop_unanswered();
	ck_assert_uint_eq(((struct embeng_ring_header *)b->queues[1].ring)->sq_head, 0);
	ck_assert_uint_eq(raw_admin(b, admin).status, EMBENG_STATUS_OK);
	ck_assert_uint_eq(raw_admin(b, destroy).status, EMBENG_STATUS_OK);
	raw_close(b);
}
END_TEST

static uint16_t load_nonsense(void)
{
	struct embeng_cmd cmd = {
		.opcode = EMBENG_OP_MODEL_LOAD,
		.desc = {.index = 0, .generation = 1, .length = 4096},
	};

	return raw_call(&b->queues[1], &cmd).status;
}

START_TEST(a_refused_region_is_no_key)
{
	start();
	fault_arm("refuse_region", 1);
	ck_assert_uint_eq(load_nonsense(), EMBENG_STATUS_KEY);
	ck_assert_uint_eq(load_nonsense(), EMBENG_STATUS_BLOB_FRAME);
	raw_close(b);
}
END_TEST

START_TEST(a_dma_error_fails_the_command)
{
	start();
	fault_arm("dma_error", 1);
	ck_assert_uint_eq(nop(1).status, EMBENG_STATUS_INTERNAL);
	ck_assert_uint_eq(nop(1).status, EMBENG_STATUS_OK);
	ck_assert_uint_eq(raw_read32(b, EMBENG_REG_STATUS), EMBENG_DEVICE_OK);
	raw_close(b);
}
END_TEST

START_TEST(a_correctable_memory_error_is_counted)
{
	start();
	fault_arm("ecc_correctable", 1);
	ck_assert_uint_eq(nop(1).status, EMBENG_STATUS_OK);
	ck_assert_uint_eq(raw_read64(b, EMBENG_REG_COUNT_ECC_CORRECTABLE), 1);
	ck_assert_uint_eq(raw_read32(b, EMBENG_REG_STATUS), EMBENG_DEVICE_OK);
	raw_close(b);
}
END_TEST

START_TEST(an_uncorrectable_memory_error_asks_for_a_reset)
{
	start();
	fault_arm("ecc_uncorrectable", 1);
	ck_assert_uint_eq(nop(1).status, EMBENG_STATUS_INTERNAL);
	ck_assert_uint_eq(raw_read64(b, EMBENG_REG_COUNT_ECC_UNCORRECTABLE), 1);
	ck_assert_uint_eq(raw_read32(b, EMBENG_REG_STATUS), EMBENG_DEVICE_FAULT);
	raw_close(b);
}
END_TEST

START_TEST(firmware_refuses)
{
	b = raw_open();
	raw_await(b, EMBENG_REG_BOOT_STATE, EMBENG_BOOT_ROM);
	fault_file_set("firmware_refuses", "value", EMBENG_BOOT_ERROR_HASH);
	fault_arm("firmware_refuses", 1);
	ck_assert_uint_eq(raw_boot(b), EMBENG_BOOT_FAILED);
	ck_assert_uint_eq(raw_read32(b, EMBENG_REG_BOOT_ERROR), EMBENG_BOOT_ERROR_HASH);
	ck_assert_uint_eq(raw_boot(b), EMBENG_BOOT_RUNNING);
	raw_close(b);
}
END_TEST

static void boot_unanswered(void)
{
	b = raw_open();
	raw_await(b, EMBENG_REG_BOOT_STATE, EMBENG_BOOT_ROM);
	raw_write32(b, EMBENG_REG_BOOT_SEQUENCE, 1);
	raw_await(b, EMBENG_REG_BOOT_STATE, EMBENG_BOOT_LOADING);
	usleep(SHORT_US);
	ck_assert_uint_eq(raw_read32(b, EMBENG_REG_BOOT_STATE), EMBENG_BOOT_LOADING);
}

START_TEST(firmware_is_slow)
{
	fault_file_set("firmware_slow", "value", 2000000000);
	fault_arm("firmware_slow", 1);
	boot_unanswered();
	raw_await(b, EMBENG_REG_BOOT_STATE, EMBENG_BOOT_FAILED); /* there was no image */
	raw_close(b);
}
END_TEST

START_TEST(firmware_dies_until_the_function_is_reset)
{
	fault_arm("firmware_dies", 1);
	boot_unanswered();
	ck_assert_int_eq(raw_sysfs(b, "reset", "1"), 0);
	raw_await(b, EMBENG_REG_BOOT_STATE, EMBENG_BOOT_ROM);
	ck_assert_uint_eq(raw_boot(b), EMBENG_BOOT_RUNNING);
	raw_close(b);
}
END_TEST

START_TEST(a_dead_engine_lives_after_a_function_reset)
{
	start();
	fault_arm("engine_dies", 1);
	while (fault_get("engine_dies", "count"))
		usleep(1000);
	nop_unanswered();
	raw_write32(b, EMBENG_REG_CONTROL, EMBENG_CONTROL_RESET);
	raw_write32(b, EMBENG_REG_CONTROL_SEQUENCE, 1);
	usleep(SHORT_US);
	ck_assert_uint_eq(raw_read32(b, EMBENG_REG_CONTROL_DONE), 0);
	ck_assert_int_eq(raw_sysfs(b, "reset", "1"), 0);
	raw_await(b, EMBENG_REG_BOOT_STATE, EMBENG_BOOT_ROM);
	raw_close(b);
}
END_TEST

START_TEST(the_heartbeat_stops_and_work_goes_on)
{
	uint32_t beats;

	start();
	fault_arm("heartbeat_stops", UINT32_MAX);
	nop(1);
	beats = raw_read32(b, EMBENG_REG_HEARTBEAT);
	usleep(SHORT_US);
	ck_assert_uint_eq(nop(1).status, EMBENG_STATUS_OK);
	ck_assert_uint_eq(raw_read32(b, EMBENG_REG_HEARTBEAT), beats);
	fault_arm("heartbeat_stops", 0);
	while (raw_read32(b, EMBENG_REG_HEARTBEAT) == beats)
		usleep(1000);
	raw_close(b);
}
END_TEST

START_TEST(the_link_goes_down_and_comes_back_reset)
{
	start();
	fault_file_set("link_down", "value", 500000000);
	fault_arm("link_down", 1);
	raw_await(b, EMBENG_REG_MAGIC, 0xffffffff);
	ck_assert_uint_eq(raw_config_read(b, 0, 4), 0xffffffff);
	raw_await(b, EMBENG_REG_MAGIC, EMBENG_DEVICE_MAGIC);
	while (raw_config_read(b, 0, 2) != EMBENG_PCI_VENDOR)
		usleep(1000);
	raw_await(b, EMBENG_REG_BOOT_STATE, EMBENG_BOOT_ROM);
	ck_assert_uint_eq(raw_config_read(b, 4, 2), 0);
	raw_close(b);
}
END_TEST

/* Last: nothing brings it back but making it again. */
START_TEST(surprise_removal_leaves_all_ones)
{
	start();
	fault_arm("config_all_ones", 1);
	raw_await(b, EMBENG_REG_MAGIC, 0xffffffff);
	ck_assert_uint_eq(raw_config_read(b, 0, 4), 0xffffffff);
	ck_assert_uint_eq(raw_read32(b, EMBENG_REG_HEARTBEAT), 0xffffffff);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, a_dropped_completion_never_comes);
	tcase_add_test(tcase, a_delayed_completion_comes_late);
	tcase_add_test(tcase, a_corrupt_completion_has_another_cookie);
	tcase_add_test(tcase, a_fault_strikes_its_target_alone);
	tcase_add_loop_test(tcase, the_seed_chooses_when_it_strikes, 0, 2);
	tcase_add_test(tcase, a_count_of_more_than_32_bits_is_refused);
	tcase_add_test(tcase, a_stalled_queue_takes_nothing_until_it_is_made_anew);
	tcase_add_test(tcase, a_refused_region_is_no_key);
	tcase_add_test(tcase, a_dma_error_fails_the_command);
	tcase_add_test(tcase, a_correctable_memory_error_is_counted);
	tcase_add_test(tcase, an_uncorrectable_memory_error_asks_for_a_reset);
	tcase_add_test(tcase, firmware_refuses);
	tcase_add_test(tcase, firmware_is_slow);
	tcase_add_test(tcase, firmware_dies_until_the_function_is_reset);
	tcase_add_test(tcase, a_dead_engine_lives_after_a_function_reset);
	tcase_add_test(tcase, the_heartbeat_stops_and_work_goes_on);
	tcase_add_test(tcase, the_link_goes_down_and_comes_back_reset);
	tcase_add_test(tcase, surprise_removal_leaves_all_ones);
}

int main(void)
{
	return suite_main("faults", add);
}
