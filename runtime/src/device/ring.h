/* SPDX-License-Identifier: MIT */
/*
 * The program's side of a queue: commands in, completions out. The caller keeps
 * two threads from being in one ring at a time.
 */
#ifndef EMBENG_RING_H
#define EMBENG_RING_H

#include "device.h"
#include "tracer.h"

/* A command from submission to its last completion. */
struct request {
	bool accepted; /* LOOKUP: the ids' memory may be reused */
	bool done;     /* the last completion has come */
	uint16_t status;
	struct embeng_cqe answer;			      /* the newest completion */
	void (*complete)(struct request *request, void *arg); /* NULL, or called when done */
	void *arg;
	struct device_fences *fences; /* or NULL; only used while submitting */
};

struct ring {
	struct device_queue queue;
	uint32_t sq_tail, cq_head;
	uint32_t in_flight;
	struct request **requests; /* [sq_entries], by cookie */
	bool strayed;		   /* a completion came that belongs to no command */
	uint64_t stray;		   /* cookie of the first such completion */
	struct tracer *tracer;	   /* notes commands and completions, or NULL */
	enum embeng_queue_kind kind;
};

int ring_open(struct ring *ring, const struct device_queue *queue);
void ring_close(struct ring *ring);

/*
 * ring_submit() - put a 64-byte command into the ring and ring the doorbell
 * @entry: command; its cookie is set here
 *
 * Return: 0, -EAGAIN when the ring is full, -EBUSY when it can have no fence yet, or a negative
 * errno with a sentence if the driver of a validated queue refused it.
 */
int ring_submit(struct ring *ring, struct embeng_cmd *entry, struct request *request);
int ring_submit_admin(struct ring *ring, struct embeng_admin_cmd *entry, struct request *request);

/* Submits a MODEL_LOAD on a validated queue, whose driver copies the blob itself. */
int ring_load(struct ring *ring, const struct model_blob *blob, struct request *request);

/* Takes all completions that have come. Return: true if there was at least one. */
bool ring_reap(struct ring *ring);

/* Gives up waiting for a request. Its completion is dropped when it comes. */
void ring_abandon(struct ring *ring, struct request *request);

/*
 * Asks for an interrupt at the next completion. embeng_arm_then_recheck() must follow. The driver
 * arms validated queues when a program waits for them.
 */
void ring_arm(struct ring *ring);

bool ring_dead(const struct ring *ring);

/*
 * ring_report() - copy the queue's report
 *
 * Return: false while there is no report, or one is being written.
 */
bool ring_report(const struct ring *ring, struct embeng_queue_report *out);

#endif
