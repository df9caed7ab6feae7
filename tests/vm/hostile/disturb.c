// SPDX-License-Identifier: MIT
/*
 * Makes things happen to a device, for the chaos: it is a file of its own so that what may happen
 * stands in one list.
 *
 * An act runs in a process of its own, beside the programs that it disturbs, and ends by itself.
 */
#include "disturb.h"

#include <fcntl.h>
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

/* The node may be there before the driver's own link to it, by which the next call looks for it. */
void disturb_open_node(void)
{
	char node[64];

	for (int tries = 0; tries < NODE_S * 100; tries++) {
		if (accel_find(node, sizeof(node)) && !chmod(node, 0666))
			return;
		usleep(10000);
	}
	ck_abort_msg("the node is not back after %d s", NODE_S);
}

/* A device that was away for a moment is given up, too, and says no more that it is there. */
static bool is_given_up(void)
{
	struct embeng_accel_device device;
	struct embeng_accel_query arg = {.what = EMBENG_ACCEL_QUERY_DEVICE,
					 .size = sizeof(device),
					 .data = (uintptr_t)&device};
	int fd = accel_open(), ret = accel_call(fd, DRM_IOCTL_EMBENG_QUERY, &arg);

	close(fd);
	return ret || device.flags & EMBENG_ACCEL_WEDGED;
}

/* It may still be away, and its configuration space is lost: the PCI core looks until it is there. */
static void find_function_anew(void)
{
	accel_write(DISTURB_FUNCTION "remove", "1");
	for (int tries = 0; tries < NODE_S * 10 && access(DISTURB_FUNCTION, F_OK); tries++) {
		usleep(100000);
		accel_write("/sys/bus/pci/rescan", "1");
	}
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
	if (is_given_up()) {
		find_function_anew();
		disturb_open_node();
	}
}
