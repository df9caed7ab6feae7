/* SPDX-License-Identifier: MIT */
/* Steps of a handle over all hosts: their threads, and the calls of a step. */
#ifndef EMBENG_HOSTS_STEPS_H
#define EMBENG_HOSTS_STEPS_H

#include "hosts.h"

/* steps.c: memory and threads. Stopping waits for the steps that the program has completed. */
int steps_start(struct hosts *h);
void steps_stop(struct hosts *h);
void steps_free(struct hosts *h);

/*
 * stages.c: moves the next step through a stage that can_move(); e->lock is held, but not meanwhile.
 * Return: 0, or a negative errno for what ends the handle, which is kept.
 */
int stage_move(struct hosts *h, uint32_t stage);

/* withdraw.c, e->lock held: no host takes a step, nor those behind it; the sentence is the thread's last. */
void steps_withdraw(struct hosts *h, uint64_t step, int code);
/* Tells once why a replica's batches were withdrawn while no call on it was under way; else 0. */
int steps_notice(struct hosts *h, uint32_t replica);

int hosts_enqueue(struct embeng *e, struct embeng_batch *b, int64_t timeout_ns);
int hosts_dequeue(struct embeng *e, uint32_t replica, int64_t timeout_ns,
		  struct embeng_activations *activations);
int hosts_update(struct embeng *e, struct embeng_batch *b, const struct embeng_gradients *g,
		 int64_t timeout_ns);
int hosts_apply(struct embeng *e, const struct embeng_gradients *g);
int hosts_discard(struct embeng *e, uint32_t replica);
float *hosts_gradient_buffer(struct embeng *e, struct slot *slot, size_t feature);
int hosts_flush(struct embeng *e, int64_t timeout_ns);
int hosts_fd(struct embeng *e);
/* infer.c: embeng_lookup(), and an inference batch into a slot, whose activations are there on return. */
int hosts_lookup(struct embeng *e, struct embeng_batch *b, const struct embeng_output *outputs,
		 int64_t timeout_ns);
int infer_slot(struct hosts *h, struct slot *slot, const struct embeng_batch *b,
	       struct deadline deadline);

#endif
