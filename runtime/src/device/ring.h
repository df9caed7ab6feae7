/* SPDX-License-Identifier: MIT */
/*
 * The program's side of a queue: commands in, completions out. The caller keeps
 * two threads from being in one ring at a time.
 */
#ifndef EMBENG_RING_H
#define EMBENG_RING_H

#include "device.h"

/* A command from submission to its last completion. */
struct request {
	bool accepted; /* LOOKUP: its ids may be reused */
	bool done;     /* its last completion came */
	uint16_t status;
	struct embeng_cqe answer; /* the newest completion */
	void (*complete)(struct request *request, void *arg); /* NULL, or called when done */
	void *arg;
	struct device_fences *fences; /* NULL, or of a validated queue; used while submitting */
};

struct ring {
	struct device_queue queue;
	uint32_t sq_tail, cq_head;
	uint32_t in_flight;
	struct request **requests; /* [sq_entries], by cookie */
	bool strayed;		   /* a completion came for no command under way */
	uint64_t stray;		   /* cookie of the first */
};

int ring_open(struct ring *ring, const struct device_queue *queue);
void ring_close(struct ring *ring);

/*
 * ring_submit() - put a 64-byte command in and ring the doorbell
 * @entry: its cookie is set here
 *
 * Return: 0, -EAGAIN when the ring is full, -EBUSY when it can have no fence yet, or with a
 * sentence what the driver of a validated queue said.
 */
int ring_submit(struct ring *ring, struct embeng_cmd *entry, struct request *request);
int ring_submit_admin(struct ring *ring, struct embeng_admin_cmd *entry, struct request *request);

/* ring_submit() of a MODEL_LOAD on a validated queue; the device takes the blob itself. */
int ring_load(struct ring *ring, const void *blob, uint64_t length, struct request *request);

/* Takes all completions that are there. True when there was one. */
bool ring_reap(struct ring *ring);

/* The caller no longer waits: the completion is dropped when it comes. */
void ring_abandon(struct ring *ring, struct request *request);

/*
 * Interrupt at the next completion. embeng_arm_then_recheck() must follow. Validated queues
 * are armed by who waits for them.
 */
void ring_arm(struct ring *ring);

bool ring_dead(const struct ring *ring);

/*
 * ring_report() - copy the queue's report
 *
 * Return: false while there is none, or one is being written.
 */
bool ring_report(const struct ring *ring, struct embeng_queue_report *out);

#endif
