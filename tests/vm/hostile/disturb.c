// SPDX-License-Identifier: MIT
/*
 * Makes things happen to a device, for the chaos: it is a file of its own so that what may happen
 * stands in one list.
 *
 * An act runs in a process of its own, beside the programs that it disturbs, and ends by itself.
 */
#include "disturb.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../fault_file.h"
#include "rounds.h"

#define DRIVER "/sys/bus/pci/drivers/embeng/"
#define NODE_S 30

/* Faults that a device may have; some are told to the program alone, others cost the device. */
static const char *const faults[] = {
	"drop_completion", "delay_completion", "corrupt_completion", "stall_queue",
	"refuse_region",   "dma_error",	       "ecc_correctable",    "ecc_uncorrectable",
	"heartbeat_stops", "engine_dies",      "link_down",	     "refuse_mapping",
};

#define FAULTS (sizeof(faults) / sizeof(faults[0]))

/* Faults that nobody is to notice. */
static const char *const harmless[] = {"lose_interrupt", "repeat_interrupt", "ecc_correctable"};

static void do_nothing(uint64_t *state)
{
	(void)state;
}

static void arm_fault(uint64_t *state)
{
	fault_arm(faults[round_draw(state) % FAULTS], 1 + (uint32_t)(round_draw(state) % 3));
}

static void arm_harmless(uint64_t *state)
{
	fault_arm(harmless[round_draw(state) % 3], 1 + (uint32_t)(round_draw(state) % 20));
}

/* A boot that goes wrong needs a reset to be seen. */
static void arm_boot_fault(uint64_t *state)
{
	static const char *const boots[] = {"firmware_refuses", "firmware_dies", "firmware_slow"};

	fault_arm(boots[round_draw(state) % 3], 1);
	accel_write(DISTURB_FUNCTION "reset", "1");
}

static void reset_by_ioctl(uint64_t *state)
{
	struct embeng_accel_reset arg = {.rung = round_draw(state) % 2
							 ? EMBENG_ACCEL_RESET_ENGINE
							 : EMBENG_ACCEL_RESET_FUNCTION};
	int fd = accel_open();

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_RESET, &arg), 0);
	close(fd);
}

static void reset_function(uint64_t *state)
{
	(void)state;
	accel_write(DISTURB_FUNCTION "reset", "1");
}

static void bind_anew(uint64_t *state)
{
	accel_write(DRIVER "unbind", DISTURB_ADDRESS);
	usleep((useconds_t)(round_draw(state) % 200000));
	accel_write(DRIVER "bind", DISTURB_ADDRESS);
}

static void take_out(uint64_t *state)
{
	accel_write(DISTURB_FUNCTION "remove", "1");
	usleep((useconds_t)(round_draw(state) % 200000));
	accel_write("/sys/bus/pci/rescan", "1");
}

/* "devices" leaves the device awake, "platform" puts it to D3hot. */
static void fall_asleep(uint64_t *state)
{
	accel_write("/sys/power/pm_test", round_draw(state) % 2 ? "devices" : "platform");
	accel_write("/sys/power/state", "freeze");
}

static size_t find_available_memory(void)
{
	unsigned long long kib = 0;
	char line[128];
	FILE *file = fopen("/proc/meminfo", "re");

	ck_assert_ptr_nonnull(file);
	while (!kib && fgets(line, sizeof(line), file))
		sscanf(line, "MemAvailable: %llu kB", &kib);
	fclose(file);
	return (size_t)kib * 1024;
}

/* Four fifths of what there is are taken for a moment, by a process that would be killed first. */
static void take_memory(uint64_t *state)
{
	size_t length = find_available_memory() / 5 * 4;
	char *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	accel_write("/proc/self/oom_score_adj", "1000");
	ck_assert_ptr_ne(at, MAP_FAILED);
	for (size_t i = 0; i < length; i += 4096)
		at[i] = 1;
	usleep((useconds_t)(round_draw(state) % 200000));
	munmap(at, length);
}

const struct disturbance disturbances[DISTURBANCES] = {
	{"nothing", false, false, do_nothing},
	{"harmless fault", false, false, arm_harmless},
	{"memory", false, false, take_memory},
	{"fault", true, true, arm_fault},
	{"boot fault", true, true, arm_boot_fault},
	{"reset", true, false, reset_by_ioctl},
	{"function reset", true, false, reset_function},
	{"bind anew", true, false, bind_anew},
	{"take out", true, false, take_out},
	{"sleep", true, false, fall_asleep},
};

void disturb_open_node(void)
{
	for (int tries = 0; tries < NODE_S * 100; tries++) {
		glob_t found;
		int missing = glob("/dev/accel/accel*", 0, NULL, &found);

		if (!missing) {
			ck_assert_int_eq(chmod(found.gl_pathv[0], 0666), 0);
			globfree(&found);
			return;
		}
		usleep(10000);
	}
	ck_abort_msg("the node is not back after %d s", NODE_S);
}

unsigned long long disturb_number(const char *attribute)
{
	char path[128], text[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), DISTURB_FUNCTION "%s", attribute);
	file = fopen(path, "re");
	ck_assert_msg(file && fgets(text, sizeof(text), file), "%s cannot be read", path);
	fclose(file);
	return strtoull(text, NULL, 10);
}

void disturb_end(void)
{
	static const char *const boots[] = {"firmware_refuses", "firmware_dies", "firmware_slow"};

	for (size_t i = 0; i < FAULTS; i++)
		fault_arm(faults[i], 0);
	for (size_t i = 0; i < 3; i++) {
		fault_arm(harmless[i], 0);
		fault_arm(boots[i], 0);
	}
	disturb_open_node();
	if (disturb_number("resets/wedged")) {
		accel_write(DRIVER "unbind", DISTURB_ADDRESS);
		accel_write(DRIVER "bind", DISTURB_ADDRESS);
		disturb_open_node();
	}
}
