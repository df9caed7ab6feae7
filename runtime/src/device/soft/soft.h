/* SPDX-License-Identifier: MIT */
/*
 * The soft device: the engine in this process. This code does the kernel driver's work (boot,
 * admin queue, region table, interrupts) and none of the engine's work.
 */
#ifndef EMBENG_SOFT_H
#define EMBENG_SOFT_H

#include <pthread.h>
#include <stdio.h>

#include "../../../../engine/kernels/fetch_plan.h"
#include "device/device.h"
#include "device/name.h"
#include "device/region.h"
#include "device/ring.h"
#include "host/port.h"

struct engine;
struct engine_recorder;
struct pool;

#define DOORBELL_STRIDE 4096u
#define SOFT_CONTEXT 0u /* there is one */

struct grant {
	uint64_t address, length;
};

/* It has a lock of its own, because the engine asks in the middle of an admin command. */
struct grants {
	pthread_mutex_t lock;
	struct grant *list;
	size_t count, capacity;
};

struct soft {
	struct device device;
	struct device_log log;
	struct engine *engine;
	struct pool *pool; /* shared by all soft devices of this process; pool.c counts them */
	struct fetch_plan fetch;
	struct port_host host; /* passed back by the engine in each call to its port */
	char *registers, *doorbells;
	uint64_t doorbell_bytes;
	struct port_event *event;
	int fd;
	FILE *record;	      /* recording of what happens, or NULL */
	uint64_t record_left; /* bytes of its current entry; UINT64_MAX: it has failed */
	struct grants grants;
	pthread_mutex_t lock; /* guards the members below */
	struct ring admin;
	void *admin_memory;
	struct embeng_region *regions; /* the context's region table */
	struct embeng_segment *segments;
	uint32_t *generations; /* generation that each entry used last */
	bool *taken;
	uint32_t region_count;
	void **ring_memory; /* [device.queues] */
	uint32_t next_queue;
};

/* Opens the soft device; see device_open(). */
int soft_open(const struct name *name, uint32_t replicas, const struct device_log *log,
	      struct device **out);

/* admin.c: the admin queue and its commands. */
int soft_admin_memory(struct soft *s); /* before boot */
int soft_context_create(struct soft *s);
void soft_admin_free(struct soft *s);
int soft_region_alloc(struct device *d, uint64_t bytes, struct region *out);
int soft_region_register(struct device *d, void *p, uint64_t bytes, struct region *out);
int soft_region_free(struct device *d, struct region *region);
int soft_queue_create(struct device *d, const struct queue_config *config,
		      struct device_queue *out);

/* memory.c: the memory that the device may reach. */
void *soft_map(uint64_t bytes); /* zeroed; pages that nobody touches cost nothing */
int soft_grant(struct soft *s, const void *data, uint64_t length);
void soft_revoke(struct soft *s, uint64_t address);
bool soft_dma_ok(void *arg, u64 address, u64 length);

/* pool.c: the threads of the process's soft devices. Each get has its put. */
int soft_pool_get(struct pool **out);
void soft_pool_put(void);

/*
 * record.c: the recording in a file. The file is @path, or where other handles have recorded into it
 * @path with a number.
 */
extern const struct engine_recorder soft_recorder;
int soft_record_open(struct soft *s, const char *path);
void soft_record_close(struct soft *s); /* after the engine */

/* registers.c */
uint32_t soft_read32(struct soft *s, enum embeng_register reg);
uint64_t soft_read64(struct soft *s, enum embeng_register reg);
void soft_write32(struct soft *s, enum embeng_register reg, uint32_t value);
void soft_write64(struct soft *s, enum embeng_register reg, uint64_t value);

/* boot.c: boots the built-in image through the registers. */
int soft_boot(struct soft *s);
uint32_t soft_step_depth(void); /* step depth of every soft device */

#endif
