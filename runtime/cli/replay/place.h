/* SPDX-License-Identifier: MIT */
/* Between the parts of the device of a recording: the engine, and the memory that it works on. */
#ifndef CLI_REPLAY_PLACE_H
#define CLI_REPLAY_PLACE_H

#include "../../../engine/engine.h"
#include "../../src/host/port.h"
#include "twin.h"

#define QUEUES_MOST 1024u
#define ARMED_MOST 1024u
#define ENTRY_ROOM (1u << 20)

/* Memory of a region. It stays until its context has gone, since commands may still use it. */
struct place_map {
	struct place_map *next;
	unsigned char *data;
	uint64_t bytes;
};

struct place_region {
	unsigned char *data;
	uint64_t room, length;
	uint32_t generation;
};

struct place_context {
	struct place_context *next;
	uint32_t number, count;
	struct embeng_region *table;
	struct embeng_segment *segments;
	struct place_region *regions;
	struct place_map *maps;
};

struct place_queue {
	unsigned char *ring;
	struct embeng_queue_layout layout;
	struct embeng_doorbell *doorbell;
	uint32_t context, tail;
	bool alive;
};

/**
 * struct twin - the device
 * @entry: the entry that the engine is writing, of which @entry_left bytes are still to come
 * @armed: faults that are to strike
 * @may_run: the command @run_index of @run_queue may run
 * @queues: by number; 0 is the admin queue
 * @admin_done: the admin command that was submitted has completed
 */
struct twin {
	struct twin_setup setup;
	struct port_host host;
	struct engine_recorder recorder;
	struct engine *engine;
	unsigned char *registers, *doorbells;
	uint32_t queue_count, cores, region_limit;
	unsigned char *entry;
	uint64_t entry_room, entry_used, entry_left;
	struct embeng_recording_fault armed[ARMED_MOST];
	uint32_t armed_count;
	uint32_t run_queue, run_index;
	const bool *run_done;
	bool may_run;
	struct place_context *contexts;
	struct place_queue queues[QUEUES_MOST];
	const struct place_queue *submitted;
	char problem[TWIN_PROBLEM];
};

/* drive.c */
enum twin_result twin_fail(struct twin *m, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Runs the engine until @is_over says so. The patience is for the time in which nothing moves. */
enum twin_result twin_until(struct twin *m, enum engine_run_mode mode,
			    bool (*is_over)(struct twin *m), uint32_t patience_ms);
uint32_t *twin_register(struct twin *m, uint32_t reg);
struct embeng_ring_header *drive_header(const struct place_queue *q);

/* place.c */
bool place_admin_ring(struct twin *m); /* before a boot */
void place_free_all(struct twin *m);   /* the device has let go of everything */

#endif
