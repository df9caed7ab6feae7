/* SPDX-License-Identifier: MIT */
/*
 * More replicas than a device has. All tables of such a model are spread by rows, and the owner handle has one
 * replica. Its batch of a step is the lists of all replicas, one behind another, and its gradients are their sums
 * in the same order. Each sum is a run of its own, so a row's sums are added left to right, as those of
 * replicas are: the bits are those of a device that has them all.
 */
#ifndef EMBENG_HOSTS_JOINED_H
#define EMBENG_HOSTS_JOINED_H

#include "segment.h"

/**
 * struct joined - steps whose replicas are joined
 * @rows: [depth]: numbers of the rows that the replicas ask for, list by list
 * @counts: [depth][replicas * lists]: how many each replica asks for, those that it asks for again included
 * @from: [replicas * lists]: where they are in messages; the ids thread's, as @read is
 * @views: [replicas * features of the owner handle]: each replica's part of a view; the answers thread's
 * @sums, @left: sums of a step, and the rows of replicas that did not give it up; the gradients thread's
 * @read: a batch for the lists of one replica
 * @update: the batch of a step that some replicas gave up
 * @steps: training steps that the owner handle was given; the answers thread's, but for steps that some
 *	replicas gave up, which no lookup overtakes
 */
struct joined {
	struct hosts_memory *rows;
	uint64_t **counts;
	const char **from;
	struct embeng_view *views;
	struct hosts_memory sums, left;
	struct embeng_batch *read, *update;
	uint64_t steps;
};

/* Whether the replicas of a model are joined. */
static inline bool hosts_joins(const struct hosts *h)
{
	return place_must_spread(h->e->model);
}

int joined_new(struct hosts *h);
void joined_free(struct hosts *h);
/* Keeps what all hosts ask for in a step. The owner handle is given it by joined_look_up(). */
int joined_keep(struct hosts *h, uint64_t step, const struct embeng_bytes *received);
/* Looks up for all replicas, once the updates are there that a lookup of the step sees. Fills h->views. */
int joined_look_up(struct hosts *h, uint64_t step);
/* As apply_all() of gradients.c. @discards: replicas that gave the step up. */
int joined_apply(struct hosts *h, uint64_t step, const struct segment_head *const *heads,
		 const struct reading *segments, uint32_t discards);

#endif
