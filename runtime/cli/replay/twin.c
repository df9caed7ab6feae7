// SPDX-License-Identifier: MIT
/*
 * Powers the device of a replay on and off, boots and resets it, and lets its commands run. Contexts,
 * regions and queues are in place.c.
 *
 * The thread that plays the recording is the only one that calls the engine, so memory changes only
 * while no command runs. Everything belongs to the struct twin. The callbacks of the engine come
 * on that thread or on the engine's helpers, with the engine's lock held.
 */
#define _GNU_SOURCE
#include "twin.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../src/host/limits.h"
#include "place.h"

#define STRIDE 4096u
#define PATIENCE_MS 5000u

const char *twin_problem(const struct twin *m)
{
	return m->problem;
}

const char *twin_variant(const struct twin *m)
{
	return m->engine ? engine_variant(m->engine) : "";
}

uint32_t twin_cores(const struct twin *m)
{
	return m->cores;
}

/* -- callbacks of the engine --------------------------------------------- */

static void on_twin_interrupt(void *arg, u32 vector)
{
	(void)arg;
	(void)vector;
}

/* The time of a delay is not repeated: no result depends on it. */
static u64 on_twin_fault(void *arg, enum port_fault fault, u32 target)
{
	struct twin *m = arg;

	for (uint32_t i = 0; i < m->armed_count; i++) {
		struct embeng_recording_fault armed = m->armed[i];

		if (armed.fault != fault || armed.target != target)
			continue;
		m->armed_count--;
		memmove(&m->armed[i], &m->armed[i + 1], (m->armed_count - i) * sizeof(armed));
		return fault == PORT_FAULT_DELAY_COMPLETION ? 1 : armed.value;
	}
	return 0;
}

static bool on_twin_turn(void *host, u32 queue, u32 index)
{
	const struct twin *m = ((struct port_host *)host)->arg;

	return m->may_run && m->run_queue == queue && m->run_index == index;
}

static void take_own_entry(struct twin *m)
{
	const struct embeng_recording_entry *head = (const void *)m->entry;
	const unsigned char *body = m->entry + sizeof(*head);
	uint64_t fixed = head->type == EMBENG_RECORDING_DONE ? sizeof(struct embeng_recording_done)
							     : 0;

	m->setup.seen(m->setup.arg, head->type, body, body + fixed);
}

/* The bytes of memory are what this program gave itself, so only what fits is kept. */
static bool on_twin_write(void *host, const void *data, u64 length)
{
	struct twin *m = ((struct port_host *)host)->arg;
	uint64_t room = m->entry_room - m->entry_used;

	if (!data)
		return false;
	if (!m->entry_left) {
		m->entry_left = ((const struct embeng_recording_entry *)data)->length;
		m->entry_used = 0;
		room = m->entry_room;
	}
	m->entry_left -= length;
	if (length > room)
		length = room;
	memcpy(m->entry + m->entry_used, data, length);
	m->entry_used += length;
	if (!m->entry_left)
		take_own_entry(m);
	return true;
}

/* -- life ---------------------------------------------------------------- */

struct twin *twin_new(const struct twin_setup *setup)
{
	struct twin *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->setup = *setup;
	m->host = (struct port_host){
		.interrupt = on_twin_interrupt, .fault = on_twin_fault, .arg = m};
	m->recorder = (struct engine_recorder){.write = on_twin_write, .turn = on_twin_turn};
	/* The longest entry that is looked at is a completion with its outputs. */
	m->entry_room = ENTRY_ROOM;
	m->entry = malloc(m->entry_room);
	if (m->entry)
		return m;
	free(m);
	return NULL;
}

void twin_power_off(struct twin *m)
{
	engine_destroy(m->engine);
	m->engine = NULL;
	place_free_all(m);
	if (m->registers)
		munmap(m->registers, EMBENG_REGISTERS_SIZE);
	if (m->doorbells)
		munmap(m->doorbells, (size_t)m->queue_count * STRIDE);
	m->registers = m->doorbells = NULL;
	m->armed_count = 0;
	m->entry_left = 0;
}

void twin_free(struct twin *m)
{
	if (!m)
		return;
	twin_power_off(m);
	free(m->entry);
	free(m);
}

static void *map_zeroes(uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

enum twin_result twin_power_on(struct twin *m, const struct embeng_recording_power_on *on)
{
	struct engine_config config = {
		.host = &m->host,
		.doorbell_stride = STRIDE,
		.queues = on->queues,
		.vectors = on->vectors,
		.cores = m->setup.cores ? m->setup.cores : on->cores,
		.roam = 1,
		.table_memory = on->table_memory,
		.firmware_minimum = on->firmware_minimum,
		.variant = m->setup.variant,
		.recorder = &m->recorder,
	};
	struct host_limits limits;
	int ret;

	twin_power_off(m);
	if (on->queues < 2 || on->queues > QUEUES_MOST)
		return twin_fail(m, "the device has %u queues, which no device has", on->queues);
	if (!host_limits_read("", &limits))
		config.processors = limits.cores;
	m->queue_count = on->queues;
	m->cores = config.cores;
	m->registers = map_zeroes(EMBENG_REGISTERS_SIZE);
	m->doorbells = map_zeroes((uint64_t)on->queues * STRIDE);
	if (!m->registers || !m->doorbells)
		return twin_fail(m, "there is no memory for the device");
	config.registers = m->registers;
	config.doorbells = m->doorbells;
	ret = engine_create(&config, &m->engine);
	if (ret)
		return twin_fail(m,
				 "a device with %u cores and the kernel variant %s cannot be "
				 "made here: %s",
				 config.cores, config.variant ? config.variant : "of its choice",
				 strerror(-ret));
	return TWIN_OK;
}

static void write_register(struct twin *m, uint32_t reg, uint64_t value)
{
	memcpy(m->registers + reg, &value, sizeof(value));
}

static bool is_boot_over(struct twin *m)
{
	return *twin_register(m, EMBENG_REG_BOOT_DONE) ==
	       *twin_register(m, EMBENG_REG_BOOT_SEQUENCE);
}

enum twin_result twin_boot(struct twin *m, const struct embeng_recording_boot *boot,
			   const void *image)
{
	enum twin_result result;

	if (!m->engine)
		return twin_fail(m, "a device that is off boots");
	if (!place_admin_ring(m))
		return twin_fail(m, "there is no memory for the admin queue");
	write_register(m, EMBENG_REG_BOOT_ADDRESS, (uintptr_t)image);
	write_register(m, EMBENG_REG_BOOT_LENGTH, boot->length);
	write_register(m, EMBENG_REG_BOOT_RAISE, boot->raise);
	++*twin_register(m, EMBENG_REG_BOOT_SEQUENCE);
	result = twin_until(m, ENGINE_RUN_ACCEPT, is_boot_over, PATIENCE_MS);
	if (*twin_register(m, EMBENG_REG_BOOT_STATE) == EMBENG_BOOT_RUNNING)
		m->region_limit = *twin_register(m, EMBENG_REG_REGIONS);
	return result == TWIN_WAITS ? twin_fail(m, "the boot does not end") : result;
}

static bool is_reset_over(struct twin *m)
{
	return *twin_register(m, EMBENG_REG_CONTROL_DONE) ==
	       *twin_register(m, EMBENG_REG_CONTROL_SEQUENCE);
}

enum twin_result twin_reset(struct twin *m)
{
	enum twin_result result;

	if (!m->engine)
		return twin_fail(m, "a device that is off is reset");
	*twin_register(m, EMBENG_REG_CONTROL) = EMBENG_CONTROL_RESET;
	++*twin_register(m, EMBENG_REG_CONTROL_SEQUENCE);
	result = twin_until(m, ENGINE_RUN_ALL, is_reset_over, PATIENCE_MS);
	if (result == TWIN_WAITS)
		return twin_fail(m, "the reset does not end");
	if (!result)
		place_free_all(m);
	return result;
}

static bool is_run_over(struct twin *m)
{
	return *m->run_done;
}

enum twin_result twin_run(struct twin *m, uint32_t queue, uint32_t index, const bool *done,
			  uint32_t patience_ms)
{
	enum twin_result result;

	if (!m->engine)
		return twin_fail(m, "a device that is off runs a command");
	m->run_queue = queue;
	m->run_index = index;
	m->run_done = done;
	m->may_run = true;
	result = twin_until(m, ENGINE_RUN_ALL, is_run_over, patience_ms);
	m->may_run = false;
	return result;
}

enum twin_result twin_arm(struct twin *m, const struct embeng_recording_fault *fault)
{
	if (m->armed_count == ARMED_MOST)
		return twin_fail(m, "more than %u faults are to strike at a time", ARMED_MOST);
	m->armed[m->armed_count++] = *fault;
	return TWIN_OK;
}
