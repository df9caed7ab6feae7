// SPDX-License-Identifier: MIT
/*
 * The program's side of a queue: submits commands, takes completions and hands them to their
 * requests. Completions are data of the device and are checked before they are used.
 *
 * A ring belongs to the session (or to the soft device for its admin queue), whose lock the caller
 * holds. Requests belong to their callers until they are done or abandoned.
 */
#include "ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define ENTRY_BYTES 64

/* Stands in the table for a command that nobody waits for. */
static struct request nobody;

static struct embeng_ring_header *header_of_ring(const struct ring *ring)
{
	return (struct embeng_ring_header *)(ring->queue.ring + ring->queue.layout.header);
}

int ring_open(struct ring *ring, const struct device_queue *queue)
{
	struct request **requests = calloc(queue->layout.sq_entries, sizeof(*requests));

	if (!requests)
		return -ENOMEM;
	*ring = (struct ring){.queue = *queue, .requests = requests};
	return 0;
}

void ring_close(struct ring *ring)
{
	free(ring->requests);
	*ring = (struct ring){0};
}

static int free_cookie(const struct ring *ring, uint64_t *cookie)
{
	uint32_t entries = ring->queue.layout.sq_entries;
	uint32_t used = ring->sq_tail - embeng_observe_sq_head(&header_of_ring(ring)->sq_head);

	if (used >= entries || ring->in_flight >= entries)
		return -EAGAIN;
	for (uint32_t i = 0; i < entries; i++) {
		if (!ring->requests[i]) {
			*cookie = i;
			return 0;
		}
	}
	return -EAGAIN;
}

static void note_request(struct ring *ring, uint64_t cookie, struct request *request)
{
	request->accepted = false;
	request->done = false;
	request->status = 0;
	ring->requests[cookie] = request;
	ring->in_flight++;
	ring->sq_tail++;
}

static void push_entry(struct ring *ring, const void *entry, uint64_t cookie,
		       struct request *request)
{
	const struct embeng_queue_layout *layout = &ring->queue.layout;
	uint32_t at = ring->sq_tail & (layout->sq_entries - 1);

	memcpy(ring->queue.ring + layout->sq + (uint64_t)at * ENTRY_BYTES, entry, ENTRY_BYTES);
	note_request(ring, cookie, request);
	embeng_doorbell_tail(&ring->queue.doorbell->sq_tail, ring->sq_tail);
}

/* A command is in the ring since @begun, and is the newest there. */
static void trace_command(const struct ring *ring, const struct embeng_cmd *entry, uint64_t begun)
{
	const struct tracer_queue queue = {ring->queue.number, ring->kind};

	if (ring->tracer)
		tracer_note_command(ring->tracer, &queue, ring->sq_tail - 1, entry, begun);
}

int ring_submit(struct ring *ring, struct embeng_cmd *entry, struct request *request)
{
	struct device *validator = ring->queue.validator;
	uint64_t cookie, begun = ring->tracer ? now_ns() : 0;
	int ret = free_cookie(ring, &cookie);

	if (ret)
		return ret;
	entry->cookie = cookie;
	if (!validator) {
		push_entry(ring, entry, cookie, request);
	} else {
		ret = validator->ops->queue_submit(validator, ring->queue.number, entry,
						   ring->cq_head, request->fences);
		if (ret)
			return ret;
		note_request(ring, cookie, request);
	}
	trace_command(ring, entry, begun);
	return 0;
}

int ring_load(struct ring *ring, const struct model_blob *blob, struct request *request)
{
	struct device *validator = ring->queue.validator;
	struct embeng_cmd entry = {.opcode = EMBENG_OP_MODEL_LOAD, .flags = blob->flags};
	uint64_t cookie;
	uint64_t begun = ring->tracer ? now_ns() : 0;
	int ret = free_cookie(ring, &cookie);

	if (ret)
		return ret;
	ret = validator->ops->queue_load(validator, ring->queue.number, blob, cookie);
	if (ret)
		return ret;
	entry.cookie = cookie;
	note_request(ring, cookie, request);
	trace_command(ring, &entry, begun);
	return 0;
}

int ring_submit_admin(struct ring *ring, struct embeng_admin_cmd *entry, struct request *request)
{
	uint64_t cookie;
	int ret = free_cookie(ring, &cookie);

	if (ret)
		return ret;
	entry->cookie = cookie;
	push_entry(ring, entry, cookie, request);
	return 0;
}

static void note_stray(struct ring *ring, uint64_t cookie)
{
	if (!ring->strayed)
		ring->stray = cookie;
	ring->strayed = true;
}

static void take_completion(struct ring *ring, const struct embeng_cqe *cqe)
{
	struct request *request;

	if (cqe->cookie >= ring->queue.layout.sq_entries || !ring->requests[cqe->cookie]) {
		note_stray(ring, cqe->cookie);
		return;
	}
	request = ring->requests[cqe->cookie];
	if (cqe->flags & EMBENG_CQE_DONE) {
		ring->requests[cqe->cookie] = NULL;
		ring->in_flight--;
	}
	if (request == &nobody)
		return;
	request->answer = *cqe;
	request->status = cqe->status;
	if (cqe->flags & EMBENG_CQE_ACCEPTED)
		request->accepted = true;
	if (!(cqe->flags & EMBENG_CQE_DONE))
		return;
	request->done = true;
	if (request->complete)
		request->complete(request, request->arg);
}

static void trace_completion(const struct ring *ring, const struct embeng_cqe *cqe)
{
	const struct tracer_queue queue = {ring->queue.number, ring->kind};

	tracer_note_completion(ring->tracer, &queue, cqe);
}

bool ring_reap(struct ring *ring)
{
	const struct embeng_queue_layout *layout = &ring->queue.layout;
	uint32_t tail = embeng_observe_cq_tail(&header_of_ring(ring)->cq_tail);
	bool any = tail != ring->cq_head;

	/* Once the device is gone another page stands here, whose tail means nothing. */
	if (tail - ring->cq_head > layout->cq_entries)
		return false;
	while (ring->cq_head != tail) {
		uint32_t at = ring->cq_head & (layout->cq_entries - 1);
		struct embeng_cqe cqe;

		memcpy(&cqe, ring->queue.ring + layout->cq + (uint64_t)at * ENTRY_BYTES,
		       sizeof(cqe));
		ring->cq_head++;
		if (ring->tracer)
			trace_completion(ring, &cqe);
		take_completion(ring, &cqe);
	}
	if (any && ring->queue.doorbell)
		embeng_doorbell_cq_head(&ring->queue.doorbell->cq_head, ring->cq_head);
	return any;
}

void ring_abandon(struct ring *ring, struct request *request)
{
	for (uint32_t i = 0; i < ring->queue.layout.sq_entries; i++)
		if (ring->requests[i] == request)
			ring->requests[i] = &nobody;
}

void ring_arm(struct ring *ring)
{
	struct embeng_doorbell *doorbell = ring->queue.doorbell;

	if (!doorbell)
		return;
	__atomic_store_n(&doorbell->arm, ring->cq_head, __ATOMIC_RELAXED);
	EMBENG_STORE_RELEASE(&doorbell->armed, doorbell->armed + 1);
}

bool ring_dead(const struct ring *ring)
{
	return EMBENG_LOAD_ACQUIRE(&header_of_ring(ring)->dead) != 0;
}

#define COPY(to, from) __atomic_load(&(from), &(to), __ATOMIC_RELAXED)

bool ring_report(const struct ring *ring, struct embeng_queue_report *out)
{
	struct embeng_queue_report *report = &header_of_ring(ring)->report;
	uint32_t begun = embeng_report_read_begin(&report->epoch);

	if (!begun)
		return false;
	out->epoch = begun;
	COPY(out->state, report->state);
	COPY(out->wait, report->wait);
	COPY(out->replica, report->replica);
	COPY(out->step, report->step);
	COPY(out->tail, report->tail);
	COPY(out->cq_head, report->cq_head);
	return !embeng_report_read_retry(&report->epoch, begun);
}
