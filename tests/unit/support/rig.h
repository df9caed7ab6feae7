/* SPDX-License-Identifier: MIT */
/*
 * A device in this process, its driver played by the test: raw rings, raw commands.
 * An error in the rig itself fails the test that runs.
 */
#ifndef EMBENG_TESTS_RIG_H
#define EMBENG_TESTS_RIG_H

#include "engine/device/device.h"
#include "runtime/src/host/port.h"

#define RIG_REGIONS 64u
#define RIG_CONTEXTS 4u
#define RIG_QUEUES 32u
#define RIG_GRANTS 256u

struct rig_grant {
	u64 address, length;
};

struct rig_queue {
	struct rig *rig;
	struct embeng_queue_layout layout;
	u8 *ring;
	struct embeng_doorbell *doorbell;
	u32 tail, head; /* the program's own indices */
	u32 number;
};

struct rig_context {
	struct embeng_region *table;
	struct embeng_segment *segments;
	u32 used, count;
};

struct rig {
	struct port_host host;
	struct engine_config config;
	struct engine *engine;
	struct rig_queue admin;
	struct rig_context contexts[RIG_CONTEXTS];
	struct rig_queue *queues[RIG_QUEUES];
	struct rig_grant grants[RIG_GRANTS];
	u32 grant_count;
	u32 interrupts[8];
	void *fault_arg; /* argument for a test that sets host.fault */
};

/* The pieces of bringing a device up, for tests that stop half-way. */
struct rig *rig_power_on(u32 cores, u32 service);
void rig_grant(struct rig *rig, const void *data, u64 length);
/* Boots @image; returns BOOT_STATE. */
u32 rig_boot(struct rig *rig, const void *image, u64 length);
void rig_warm_reset(struct rig *rig);
void rig_free(struct rig *rig);

/* All at once: powered on, booted, context 0 made. */
struct rig *rig_new(u32 cores, u32 service);

void rig_admin_submit(struct rig *rig, const struct embeng_admin_cmd *cmd);
/* Submits and waits. */
struct embeng_cqe rig_admin(struct rig *rig, const struct embeng_admin_cmd *cmd);
void rig_context(struct rig *rig, u32 number);

/* Binds @data and returns a key of all of it. */
struct embeng_mem rig_bind(struct rig *rig, u32 context, void *data, u64 length, u32 rights);
/* Ends the key; the INVALIDATE is submitted and not waited for. */
void rig_unbind(struct rig *rig, u32 context, const struct embeng_mem *mem);

/* @cmd: all but its opcode, number, memory and vector; @start: where the free-running indices
 * begin
 */
struct rig_queue *rig_queue_of(struct rig *rig, struct embeng_admin_cmd cmd, u32 start);
struct rig_queue *rig_queue_at(struct rig *rig, u32 context, u32 kind, u32 replica, u32 sq_entries,
			       u32 cq_entries, u32 start);
struct rig_queue *rig_queue(struct rig *rig, u32 context, u32 kind, u32 replica);

u32 rig_submit(struct rig_queue *q, const void *cmd); /* returns its index */
bool rig_reap(struct rig_queue *q, struct embeng_cqe *cqe);
/* Runs the engine, or waits for its thread, until there is a completion. */
struct embeng_cqe rig_wait(struct rig_queue *q);
struct embeng_cqe rig_call(struct rig_queue *q, const struct embeng_cmd *cmd);
struct embeng_queue_report rig_report(struct rig_queue *q);
struct embeng_ring_header *rig_header(struct rig_queue *q);

void rig_run(struct rig *rig);
void rig_assert_cqe(const struct embeng_cqe *cqe, u64 cookie, u16 status, u32 field);

#endif
