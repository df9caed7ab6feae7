// SPDX-License-Identifier: MIT
/*
 * The table of suites: what each proves, its checks, and the suites that it needs. The times are
 * measured: on a soft device with two cores, and on the emulator, in a virtual machine without KVM,
 * there with --mib 1 for all but quick.
 *
 * Suites stand in the order in which they run. A suite needs only what stands before it.
 */
#include "suites.h"

#include <string.h>

#include "checks.h"

#ifdef EMBENG_HAVE_ACCEL
#define ON_BOARD(run) run
#else
#define ON_BOARD(run) NULL
#endif

static const struct check link_checks[] = {
	{"present", "the function answers on the bus, with the ids that the kernel found",
	 check_link_present, CHECK_BOARD},
	{"width", "the link has as many lanes as both ends can use", check_link_width, CHECK_BOARD},
	{"speed", "the link runs as fast as both ends can", check_link_speed, CHECK_BOARD},
	{"errors", "many reads of registers are right and cause no errors or replays on the link",
	 check_link_errors, CHECK_BOARD},
	{0},
};

static const struct check device_checks[] = {
	{"state", "the firmware runs, and the device asks for no reset", check_device_state,
	 CHECK_ANYWHERE},
	{"heartbeat", "the heartbeat of the firmware grows", check_device_heartbeat, CHECK_BOARD},
	{"commands", "each command is completed once, in order, with its cookie and in time",
	 ON_BOARD(check_device_commands), CHECK_BOARD},
	{"lookups", "small lookups come back one after another, each with its row",
	 check_device_lookups, CHECK_SOFT},
	{0},
};

static const struct check interrupt_checks[] = {
	{"vectors", "each vector fires once for each time that a queue is armed",
	 ON_BOARD(check_interrupt_vectors), CHECK_BOARD},
	{"silence", "no interrupt comes while no queue is armed", ON_BOARD(check_interrupt_silence),
	 CHECK_BOARD},
	{"coalescing", "a queue that is armed for several completions interrupts once, at the last",
	 ON_BOARD(check_interrupt_coalescing), CHECK_BOARD},
	{"sleep", "a sleeper wakes when its command is complete", ON_BOARD(check_interrupt_sleep),
	 CHECK_BOARD},
	{0},
};

static const struct check dma_checks[] = {
	{"transfers", "commands end without errors of the engine's transfers",
	 ON_BOARD(check_dma_transfers), CHECK_BOARD},
	{"regions", "memory is reached by its key, and only as far as its region allows",
	 ON_BOARD(check_dma_regions), CHECK_BOARD},
	{"buffers", "rows of many sizes at many offsets arrive whole in buffers", check_buffers,
	 CHECK_ANYWHERE},
	{"copies", "they arrive whole in plain memory, which the library copies", check_copies,
	 CHECK_ANYWHERE},
	{"registered", "they arrive whole in registered memory of the program", check_registered,
	 CHECK_SOFT},
	{"userptr", "they arrive whole in pinned pages of the program", ON_BOARD(check_dma_userptr),
	 CHECK_BOARD},
	{"shared", "they arrive whole in a dma-buf of another file", ON_BOARD(check_dma_shared),
	 CHECK_BOARD},
	{"errors", "all of this caused no errors or replays on the link", check_dma_errors,
	 CHECK_BOARD},
	{0},
};

static const struct check memory_checks[] = {
	{"patterns", "solid, walking and random words are read as they were written",
	 check_memory_patterns, CHECK_ANYWHERE},
	{"addresses", "each address has a word of its own", check_memory_addresses, CHECK_ANYWHERE},
	{"march", "words keep their bits while their neighbours change (March C-)",
	 check_memory_march, CHECK_ANYWHERE},
	{"errors", "the memory counts no error, corrected or not", check_memory_errors,
	 CHECK_BOARD},
	{0},
};

static const struct check fence_checks[] = {
	{"order", "a command runs after those whose fences it waits for",
	 ON_BOARD(check_fence_order), CHECK_BOARD},
	{"signal", "a fence signals when its command is complete, and not before",
	 ON_BOARD(check_fence_signal), CHECK_BOARD},
	{"error", "the error of a command goes on to the fences that depend on it",
	 ON_BOARD(check_fence_error), CHECK_BOARD},
	{0},
};

static const struct check numeric_checks[] = {
	{"lookups", "combiners give the numbers of f64, as near as f32 can", check_numeric_lookups,
	 CHECK_ANYWHERE},
	{"updates", "a training step gives the rows of f64, as near as f32 can",
	 check_numeric_updates, CHECK_ANYWHERE},
	{"reference", "training gives the bits of the reference with six optimizers",
	 check_numeric_reference, CHECK_ANYWHERE},
	{0},
};

static const struct check throughput_checks[] = {
	{"rows", "lookups reach a stated share of what memory and link give", check_throughput_rows,
	 CHECK_ANYWHERE},
	{0},
};

static const struct check reset_checks[] = {
	{"queue", "a queue that is reset aborts its commands and goes on",
	 ON_BOARD(check_reset_queue), CHECK_BOARD},
	{"engine", "the engine boots again in time, and contexts say that they are lost",
	 ON_BOARD(check_reset_engine), CHECK_BOARD},
	{"function", "so it does after a reset of the PCI function", ON_BOARD(check_reset_function),
	 CHECK_BOARD},
	{0},
};

const struct suite suites[SUITES] = {
	[SUITE_LINK] = {.name = "link",
			.proves = "the board sits in its slot as it should",
			.checks = link_checks,
			.board_ms = {89, 2301}},
	[SUITE_DEVICE] = {.name = "device",
			  .proves = "its firmware runs and takes commands",
			  .checks = device_checks,
			  .needs = SUITE_BIT(SUITE_LINK),
			  .soft_ms = {5, 3},
			  .board_ms = {1267, 1362}},
	[SUITE_INTERRUPT] = {.name = "interrupt",
			     .proves = "interrupts come, and none too many",
			     .checks = interrupt_checks,
			     .needs = SUITE_BIT(SUITE_DEVICE),
			     .board_ms = {821, 2665}},
	/* A program that waits for a lost interrupt takes a second for each command. */
	[SUITE_DMA] = {.name = "dma",
		       .proves = "bytes move between host memory and tables",
		       .checks = dma_checks,
		       .needs = SUITE_BIT(SUITE_INTERRUPT),
		       .soft_ms = {263, 1167},
		       .board_ms = {4600, 25343}},
	[SUITE_MEMORY] = {.name = "memory",
			  .proves = "table memory keeps what is written to it",
			  .checks = memory_checks,
			  .needs = SUITE_BIT(SUITE_DMA),
			  .soft_ms = {320, 7731},
			  .board_ms = {6816, 1874}},
	[SUITE_FENCES] = {.name = "fences",
			  .proves = "fences order commands and carry errors",
			  .checks = fence_checks,
			  .needs = SUITE_BIT(SUITE_DMA),
			  .board_ms = {611, 374}},
	[SUITE_NUMERIC] = {.name = "numeric",
			   .proves = "lookups and training give the right numbers",
			   .checks = numeric_checks,
			   .needs = SUITE_BIT(SUITE_MEMORY),
			   .soft_ms = {90, 90},
			   .board_ms = {2738, 3973}},
	[SUITE_THROUGHPUT] = {.name = "throughput",
			      .proves = "the device is as fast as memory and link let it be",
			      .checks = throughput_checks,
			      .needs = SUITE_BIT(SUITE_NUMERIC),
			      .soft_ms = {1400, 1400},
			      .board_ms = {7159, 7159}},
	[SUITE_RESET] = {.name = "reset",
			 .proves = "the device comes back from each reset",
			 .checks = reset_checks,
			 .needs = SUITE_BIT(SUITE_DMA),
			 .disturbs = true,
			 .board_ms = {412, 412}},
};

#define QUICK_SUITES \
	(SUITE_BIT(SUITE_LINK) | SUITE_BIT(SUITE_DEVICE) | SUITE_BIT(SUITE_INTERRUPT) | \
	 SUITE_BIT(SUITE_DMA) | SUITE_BIT(SUITE_MEMORY) | SUITE_BIT(SUITE_FENCES) | \
	 SUITE_BIT(SUITE_NUMERIC))
#define ALL_SUITES (SUITE_BIT(SUITES) - 1)

const struct suite_set suite_sets[SUITE_SETS] = {
	{"quick", "all suites but throughput and reset, with little data", QUICK_SUITES, false, 0},
	{"full", "all suites, with as much data as they need", ALL_SUITES, true, 0},
	{"soak", "all suites as in full, again and again for an hour", ALL_SUITES, true, 3600},
};

size_t suite_check_count(const struct suite *suite)
{
	size_t count = 0;

	while (suite->checks[count].name)
		count++;
	return count;
}

int suite_find(const char *name)
{
	for (int i = 0; i < SUITES; i++) {
		if (!strcmp(suites[i].name, name))
			return i;
	}
	return -1;
}

const struct suite_set *suite_set_find(const char *name)
{
	for (size_t i = 0; i < SUITE_SETS; i++) {
		if (!strcmp(suite_sets[i].name, name))
			return &suite_sets[i];
	}
	return NULL;
}
