/* SPDX-License-Identifier: MIT */
/* Steps of a handle over all hosts: their threads, and the calls of a step. */
#ifndef EMBENG_HOSTS_STEPS_H
#define EMBENG_HOSTS_STEPS_H

#include "hosts.h"

/* The host that has a replica. */
uint32_t hosts_home(const struct hosts *h, uint32_t replica);

/* steps.c: memory and threads. Stopping waits for the steps that the program has completed. */
int steps_start(struct hosts *h);
void steps_stop(struct hosts *h);
void steps_free(struct hosts *h);

/* The last step that all replicas of this host have enqueued; e->lock is held. */
uint64_t steps_enqueued(const struct hosts *h);
/* Whether a thread that waits has something to do; e->lock is held. */
bool steps_can_move(const struct hosts *h);

int hosts_flush(struct embeng *e, int64_t timeout_ns);

#endif
