// SPDX-License-Identifier: MIT
/* Telemetry of the device: temperature, power and clock, the event log, and the usage of each context. */
#include "../unit/support/suite.h"
#include "embeng_regs.h"
#include "fault_file.h"
#include "flood.h"

#include <glob.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FUNCTION "/sys/bus/pci/devices/0eb0:00:00.0/"
#define EVENTS "/sys/kernel/debug/accel/0eb0:00:00.0/events"
#define CONTEXTS "/sys/kernel/debug/accel/0eb0:00:00.0/contexts"
#define THERMAL "/sys/kernel/debug/embeng_emu/0/thermal/"

/* A sensor by the name of its file. */
static const char *sensor_text(const char *name)
{
	const char *text;
	char path[128];
	glob_t found;

	snprintf(path, sizeof(path), FUNCTION "hwmon/hwmon*/%s", name);
	ck_assert_msg(!glob(path, 0, NULL, &found), "%s", path);
	text = accel_read_file(found.gl_pathv[0]);
	globfree(&found);
	return text;
}

static long sensor(const char *name)
{
	return strtol(sensor_text(name), NULL, 10);
}

static uint64_t function_number(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), FUNCTION "%s", name);
	return strtoull(accel_read_file(path), NULL, 10);
}

static void await_idle(void)
{
	while (sensor("power1_input") != 6000000)
		usleep(10000);
}

START_TEST(test_work_is_warm)
{
	int fd = accel_open();
	struct flood f;
	pthread_t thread;
	long cold, hot;

	accel_write(THERMAL "time_ms", "300");
	ck_assert_str_eq(sensor_text("name"), "embeng\n");
	ck_assert_str_eq(sensor_text("temp1_label"), "engine\n");
	ck_assert_str_eq(sensor_text("power1_label"), "device\n");
	ck_assert_int_eq(sensor("temp1_crit"), 95000);
	await_idle();
	cold = sensor("temp1_input");
	ck_assert_int_gt(cold, 30000);
	accel_context(fd);
	f = flood_of(fd);
	ck_assert_int_eq(pthread_create(&thread, NULL, flood, &f), 0);
	while (sensor("power1_input") <= 6000000 || sensor("temp1_input") <= cold)
		usleep(10000);
	ck_assert_int_le(sensor("power1_input"), 35000000);
	hot = sensor("temp1_input");
	ck_assert_int_lt(hot, 72001);
	flood_stop(&f);
	pthread_join(thread, NULL);
	await_idle();
	while (sensor("temp1_input") >= hot)
		usleep(10000);
	close(fd);
}
END_TEST

static void await_clock(const char *name, uint64_t hz)
{
	while (function_number(name) != hz)
		usleep(10000);
}

START_TEST(test_work_raises_the_clock)
{
	int fd = accel_open();
	struct flood f;
	pthread_t thread;

	ck_assert_uint_eq(function_number("clock_limit_hz"), 1000000000);
	await_clock("clock_hz", 300000000);
	accel_context(fd);
	f = flood_of(fd);
	ck_assert_int_eq(pthread_create(&thread, NULL, flood, &f), 0);
	while (function_number("clock_hz") <= 300000000)
		usleep(10000);
	ck_assert_uint_le(function_number("clock_hz"), 1000000000);
	flood_stop(&f);
	pthread_join(thread, NULL);
	await_clock("clock_hz", 300000000);
	close(fd);
}
END_TEST

/* The model may have any numbers, and the register always has numbers that fit together. */
START_TEST(test_the_clock_keeps_to_its_limit)
{
	accel_write(THERMAL "full_khz", "200000");
	await_clock("clock_limit_hz", 200000000);
	ck_assert_uint_eq(function_number("clock_hz"), 200000000);
	accel_write(THERMAL "full_khz", "4294967295");
	await_clock("clock_limit_hz", 4294967295000);
	ck_assert_uint_ge(function_number("clock_hz"), 300000000);
	accel_write(THERMAL "full_khz", "0");
	await_clock("clock_limit_hz", 0);
	ck_assert_uint_eq(function_number("clock_hz"), 0);
	accel_write(THERMAL "full_khz", "1000000");
	await_clock("clock_limit_hz", 1000000000);
}
END_TEST

static uint64_t number_in(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	ck_assert_msg(at, "no %s in %s", name, text);
	return strtoull(at + strlen(name), NULL, 10);
}

static uint64_t usage(int fd, const char *key)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	return number_in(accel_read_file(path), key);
}

static uint64_t busy_ns(int fd)
{
	return usage(fd, "drm-engine-compute:");
}

/* The two keys belong to the engine of one name, as drm-usage-stats has it. */
START_TEST(test_the_highest_clock_of_the_engine)
{
	int fd = accel_open();

	ck_assert_uint_eq(usage(fd, "drm-maxfreq-compute:"), function_number("clock_limit_hz"));
	ck_assert_uint_eq(usage(fd, "drm-engine-compute:"), 0);
	close(fd);
}
END_TEST

START_TEST(test_busy_time)
{
	int fd = accel_open(), other = accel_open();
	uint64_t cores = strtoull(accel_read_file(FUNCTION "cores_busy_ns"), NULL, 10), before;
	uint64_t commands;
	struct flood f;
	pthread_t thread;

	accel_context(fd);
	accel_context(other);
	f = flood_of(fd);
	ck_assert_uint_eq(busy_ns(fd), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, flood, &f), 0);
	while (!busy_ns(fd))
		usleep(1000);
	before = busy_ns(fd);
	while (busy_ns(fd) == before)
		usleep(1000);
	flood_stop(&f);
	pthread_join(thread, NULL);
	before = busy_ns(fd);
	commands = usage(fd, "embeng-commands:");
	ck_assert_uint_gt(commands, 0);
	ck_assert_uint_eq(usage(fd, "embeng-queues:"), 1);
	ck_assert_uint_ne(usage(fd, "embeng-context:"), usage(other, "embeng-context:"));
	ck_assert_uint_gt(strtoull(accel_read_file(FUNCTION "cores_busy_ns"), NULL, 10), cores);
	accel_ring_close(fd, &f.ring);
	ck_assert_uint_ge(busy_ns(fd), before);
	ck_assert_uint_ge(usage(fd, "embeng-commands:"), commands);
	ck_assert_uint_eq(usage(fd, "embeng-queues:"), 0);
	ck_assert_uint_eq(busy_ns(other), 0);
	ck_assert_uint_eq(usage(other, "embeng-commands:"), 0);
	close(fd);
	close(other);
}
END_TEST

/* The newest event of a kind, behind its name; numbers of events grow by one. */
static const char *newest(const char *kind)
{
	char *line = (char *)accel_read_file(EVENTS), *found = NULL, *end;
	uint64_t number, last = 0;

	for (; *line; line = end + 1) {
		end = strchr(line, '\n');
		*end = 0;
		number = strtoull(line, &line, 10);
		ck_assert(!last || number == last + 1);
		last = number;
		strtoull(line, &line, 10);
		if (!strncmp(line + 1, kind, strlen(kind)) && line[1 + strlen(kind)] == ' ')
			found = line + 1 + strlen(kind);
	}
	ck_assert_msg(found, "no %s", kind);
	return found;
}

static uint64_t last_number(void)
{
	const char *text = accel_read_file(EVENTS), *line = text, *next;

	while ((next = strchr(line, '\n')) && next[1])
		line = next + 1;
	return strtoull(line, NULL, 10);
}

static void reset(uint32_t rung)
{
	struct embeng_accel_reset arg = {.rung = rung};
	int fd = accel_open();

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_RESET, &arg), 0);
	close(fd);
}

START_TEST(test_log_outlives_resets)
{
	uint64_t before;

	accel_works();
	before = last_number();
	ck_assert(strstr(newest("CONTEXT_MADE"), "context "));
	/* A mapping has held that context until here. */
	reset(EMBENG_ACCEL_RESET_ENGINE);
	ck_assert_uint_eq(last_number(), before + 3);
	newest("CONTEXT_ENDED");
	newest("RESET");
	ck_assert_uint_gt(number_in(newest("BOOT"), "value "), 0);
	before = last_number();
	reset(EMBENG_ACCEL_RESET_FUNCTION);
	ck_assert_uint_ge(last_number(), before + 2);
	newest("RESET");
	newest("POWER_ON");
}
END_TEST

START_TEST(test_log_of_faults)
{
	int fd = accel_open();
	struct ring ring;
	char text[64];

	accel_context(fd);
	ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, EMBENG_ACCEL_QUEUE_MAPPED);
	fault_arm("ecc_correctable", 1);
	accel_push(&ring, (struct embeng_cmd){.cookie = 4});
	accel_take(fd, &ring);
	snprintf(text, sizeof(text), " queue %u ", ring.made.queue);
	ck_assert(strstr(newest("ECC_CORRECTABLE"), text));
	fault_arm("dma_error", 1);
	accel_push(&ring, (struct embeng_cmd){.cookie = 5});
	accel_take(fd, &ring);
	ck_assert_uint_eq(number_in(newest("COMMAND_FAILED"), "detail "), EMBENG_STATUS_INTERNAL);
	ck_assert_uint_eq(number_in(newest("COMMAND_FAILED"), "value "), 1);
	embeng_doorbell_tail(&ring.doorbell->sq_tail, 7777);
	while (accel_header(&ring)->report.state != EMBENG_QUEUE_ERROR)
		usleep(1000);
	ck_assert_uint_eq(number_in(newest("QUEUE_STOPPED"), "detail "), 7777);
	close(fd);
}
END_TEST

/* Every register from COUNT_COMMANDS on, in the order of the table. */
static uint64_t counter(int fd, uint32_t reg)
{
	uint64_t counters[64] = {0};
	uint32_t count = 0, place = 0;
	struct embeng_accel_query arg = {.what = EMBENG_ACCEL_QUERY_COUNTERS,
					 .size = sizeof(counters),
					 .data = (uintptr_t)counters};

#define PLACE(name, offset, bytes, writer, reset, words) \
	if ((offset) == reg) \
		place = count; \
	if ((offset) >= EMBENG_REG_COUNT_COMMANDS) \
		count++;
	EMBENG_REGISTER_TABLE(PLACE)
#undef PLACE
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_QUERY, &arg), 0);
	ck_assert_uint_eq(arg.size, count * sizeof(counters[0]));
	return counters[place];
}

START_TEST(test_counters)
{
	int fd = accel_open();
	struct ring ring;
	uint64_t corrected = counter(fd, EMBENG_REG_COUNT_ECC_CORRECTABLE);
	uint64_t commands = counter(fd, EMBENG_REG_COUNT_COMMANDS);

	accel_context(fd);
	ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, EMBENG_ACCEL_QUEUE_MAPPED);
	fault_arm("ecc_correctable", 1);
	accel_push(&ring, (struct embeng_cmd){.cookie = 4});
	accel_take(fd, &ring);
	ck_assert_uint_eq(counter(fd, EMBENG_REG_COUNT_ECC_CORRECTABLE), corrected + 1);
	ck_assert_uint_eq(counter(fd, EMBENG_REG_COUNT_COMMANDS), commands + 1);
	ck_assert_uint_eq(strtoull(accel_read_file(FUNCTION "counters/ecc_correctable"), NULL, 10),
			  corrected + 1);
	close(fd);
}
END_TEST

/* Has the device do so many commands, in a context of their own. */
static void do_commands(uint32_t count)
{
	int fd = accel_open();
	struct ring ring;

	accel_context(fd);
	ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, EMBENG_ACCEL_QUEUE_MAPPED);
	for (uint32_t i = 0; i < count; i++) {
		accel_push(&ring, (struct embeng_cmd){.cookie = i});
		ck_assert_uint_eq(accel_take(fd, &ring).cookie, i);
	}
	close(fd);
}

/*
 * The device counts from 0 after each of its resets. It does more between two of them each time, so
 * that what it has counted since the last says nothing of what it had before.
 */
START_TEST(test_counters_outlive_resets)
{
	int fd = accel_open();
	uint64_t commands;

	reset(EMBENG_ACCEL_RESET_ENGINE);
	commands = counter(fd, EMBENG_REG_COUNT_COMMANDS);
	do_commands(2);
	reset(EMBENG_ACCEL_RESET_ENGINE);
	ck_assert_uint_eq(counter(fd, EMBENG_REG_COUNT_COMMANDS), commands + 2);
	do_commands(5);
	ck_assert_uint_eq(counter(fd, EMBENG_REG_COUNT_COMMANDS), commands + 7);
	reset(EMBENG_ACCEL_RESET_FUNCTION);
	do_commands(11);
	ck_assert_uint_eq(counter(fd, EMBENG_REG_COUNT_COMMANDS), commands + 18);
	close(fd);
}
END_TEST

START_TEST(test_contexts_are_shown)
{
	struct embeng_accel_context_create context = {.memory_limit = 1u << 20};
	int fd = accel_open();
	struct embeng_accel_bo_create bo = accel_bo(fd, 4096);
	struct ring ring;
	char text[128];

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_CONTEXT_CREATE, &context), 0);
	accel_bind(fd, bo.handle, EMBENG_REGION_DEVICE_READ);
	ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, EMBENG_ACCEL_QUEUE_MAPPED);
	accel_push(&ring, (struct embeng_cmd){.cookie = 4});
	while (embeng_observe_cq_tail(&accel_header(&ring)->cq_tail) != 1)
		usleep(1000);
	snprintf(text, sizeof(text), " regions 1 memory %llu of 1048576 events ",
		 4096 + ring.made.layout.size);
	ck_assert(strstr(accel_read_file(CONTEXTS), text));
	snprintf(text, sizeof(text),
		 "  queue %u kind 4 mapped sq_tail 1 sq_head 1 cq_head 0 cq_tail 1 ",
		 ring.made.queue);
	ck_assert(strstr(accel_read_file(CONTEXTS), text));
	close(fd);
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_test(tc, test_work_is_warm);
	tcase_add_test(tc, test_work_raises_the_clock);
	tcase_add_test(tc, test_the_clock_keeps_to_its_limit);
	tcase_add_test(tc, test_the_highest_clock_of_the_engine);
	tcase_add_test(tc, test_busy_time);
	tcase_add_test(tc, test_counters);
	tcase_add_test(tc, test_counters_outlive_resets);
	tcase_add_test(tc, test_contexts_are_shown);
	tcase_add_test(tc, test_log_outlives_resets);
	tcase_add_test(tc, test_log_of_faults);
}

int main(void)
{
	return suite_main("telemetry", add);
}
