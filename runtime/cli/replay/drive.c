// SPDX-License-Identifier: MIT
/*
 * Runs the engine of a replay until something has come, and takes completions out of its rings. It is
 * below twin.c and place.c, which both wait like this.
 *
 * Only the thread that plays the recording calls it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "embeng_barrier.h"

#include "../frame/interrupt.h"
#include "place.h"

#define PAUSE_NS 200000

enum twin_result twin_fail(struct twin *m, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(m->problem, sizeof(m->problem), format, args);
	va_end(args);
	return TWIN_IMPOSSIBLE;
}

struct embeng_ring_header *drive_header(const struct place_queue *q)
{
	return (struct embeng_ring_header *)(q->ring + q->layout.header);
}

static void reap_queues(struct twin *m)
{
	for (uint32_t i = 0; i < m->queue_count; i++) {
		const struct place_queue *q = &m->queues[i];

		if (q->alive)
			EMBENG_STORE_RELEASE(&q->doorbell->cq_head,
					     EMBENG_LOAD_ACQUIRE(&drive_header(q)->cq_tail));
	}
}

static uint64_t milliseconds_now(void)
{
	return port_now_ns() / 1000000;
}

/* Runs the engine until @is_over says so. Waits only while nothing moves. */
enum twin_result twin_until(struct twin *m, enum engine_run_mode mode,
			    bool (*is_over)(struct twin *m), uint32_t patience_ms)
{
	uint64_t moved = milliseconds_now();

	for (;;) {
		bool goes_on = engine_run(m->engine, mode);

		reap_queues(m);
		if (is_over(m))
			return TWIN_OK;
		if (interrupted())
			return twin_fail(m, "the replay was interrupted");
		if (goes_on)
			moved = milliseconds_now();
		else if (milliseconds_now() - moved > patience_ms)
			return TWIN_WAITS;
		else
			nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
	}
}

uint32_t *twin_register(struct twin *m, uint32_t reg)
{
	return (uint32_t *)(m->registers + reg);
}
