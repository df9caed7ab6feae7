/* SPDX-License-Identifier: MIT */
/* Training by validated queues through the device node, with fences. */
#ifndef EMBENG_TESTS_TRAIN_H
#define EMBENG_TESTS_TRAIN_H

#include "accel.h"

#define TRAIN_DIM 2u
#define TRAIN_REPLICAS 2u

/* A context with a model of one table, loaded, and the queues of up to two replicas. */
struct train {
	int fd;
	struct ring transfer, input[TRAIN_REPLICAS], gradient[TRAIN_REPLICAS];
	struct embeng_mem key;
	char *data;
	uint64_t hash;
};

struct train train_open(uint32_t replicas, uint32_t flags);
void train_close(struct train *t);

/* Loads the model; 0 or -errno. The completion is not awaited. */
int train_load(struct train *t, uint32_t replicas, uint32_t flags);

/* Row @replica, and gradients of 1 for it. */
struct embeng_cmd train_lookup(struct train *t, uint32_t replica, uint64_t step);
struct embeng_cmd train_update(struct train *t, uint32_t replica, uint64_t step);
/* Reads the first column of that lookup's activations. */
float train_output(const struct train *t, uint32_t replica, uint64_t step);
/* All rows as they are after a step. */
struct embeng_cmd train_read(struct train *t, uint64_t after);

/* Submits; 0 or -errno. @in and @out may be NULL. */
int train_submit(int fd, struct ring *ring, const struct embeng_cmd *cmds, uint32_t count,
		 const struct embeng_accel_sync *in, const struct embeng_accel_sync *out);
int train_give(struct train *t, struct ring *ring, struct embeng_cmd cmd,
	       const struct embeng_accel_sync *in, const struct embeng_accel_sync *out);
struct embeng_cmd train_nop(uint32_t delay_us);

/* Syncobjs: a new one; 0 or -errno within 10 s; what a sync_file of it says: 1, 0, -errno. */
struct embeng_accel_sync train_sync(int fd, uint64_t point);
int train_await(int fd, struct embeng_accel_sync sync);
int train_status(int fd, struct embeng_accel_sync sync);
/* Closes the file. */
int train_file_status(int file);
int train_sync_file(int fd, struct embeng_accel_sync sync);

#endif
