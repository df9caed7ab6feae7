/* SPDX-License-Identifier: MIT */
/*
 * Segments: the form in which one replica's ids, activations and gradients travel between the host of the
 * replica and the owner of tables. A message is the segments of one or several replicas. All integers are the
 * host's; a group has one byte order. Parts begin at multiples of 8 bytes.
 */
#ifndef EMBENG_HOSTS_SEGMENT_H
#define EMBENG_HOSTS_SEGMENT_H

#include "hosts.h"

#define SEGMENT_IDS_ONLY 1u /* no activations are wanted: embeng_update() */
#define SEGMENT_DISCARD 2u  /* no gradients come: embeng_discard() */
#define SEGMENT_SUMS 4u	    /* gradients are sums */

/**
 * struct segment_head - begins a segment
 * @bytes: length of the segment with its head
 * @flags: SEGMENT_*
 * @multiplier: bits of the f32 by which gradients are multiplied
 * @rates: numbers behind the head, each the bits of an f32: the model's rates
 */
struct segment_head {
	uint64_t bytes;
	uint32_t replica, flags, multiplier, rates;
};

/**
 * struct segment_input - one feature's ids; offsets, ids and weights follow
 * @form: enum input_form
 * @width: bytes of an id
 */
struct segment_input {
	uint64_t samples, ids;
	uint32_t form, width, pooled, weighted;
};

static inline uint64_t segment_pad(uint64_t bytes)
{
	return (bytes + 7) & ~7ull;
}

/* The rest of a message that is read. */
struct reading {
	const char *at;
	uint64_t left;
};

/* The next @bytes, or NULL if there are not so many. */
static inline const void *read_next(struct reading *r, uint64_t bytes)
{
	const char *at = r->at;

	if (segment_pad(bytes) < bytes || segment_pad(bytes) > r->left)
		return NULL;
	r->at += segment_pad(bytes);
	r->left -= segment_pad(bytes);
	return at;
}

/* The head of the next segment, and the reading of the rest of it; NULL: the message ends. */
const struct segment_head *segment_next(struct reading *message, struct reading *segment);
/* The sentence for a message that has another form. Return: -EBADMSG. */
int segment_bad(const struct hosts *h, uint32_t host, const char *what);

/* Room for @bytes; what was there may be lost. Return: 0, -ENOMEM. */
int memory_need(struct hosts_memory *memory, uint64_t bytes);

/* The part of a feature's table that a host has, or NULL: it does not look the feature up. */
static inline const struct place_part *feature_part(const struct hosts *h, size_t feature,
						    uint32_t host)
{
	return hosts_part(h, h->e->model->features[feature].table, host);
}

/* ids.c: whether a batch can be looked up, but for its ids. Sets @resolved of its slot. */
int ids_resolve(const struct embeng *e, struct slot *slot, const struct embeng_batch *b);
/*
 * ids.c: packs and checks the ids of a batch for all hosts. Return: 0, a refusal as of embeng_enqueue(),
 * -ENOMEM.
 */
int ids_pack(struct hosts *h, const struct slot *slot, const struct embeng_batch *b);
/* Enqueues what came from all hosts with the owner handle. */
int ids_serve(struct hosts *h, uint64_t step, const struct embeng_bytes *received);
/* Makes an input of the owner handle's batch @b of a segment. Return: 0, -EBADMSG. */
int ids_unpack(const struct hosts *h, struct reading *segment, uint32_t host,
	       struct embeng_batch *b);

/* answers.c: dequeues from the owner handle, for each host; copies what came to slots of this host. */
int answers_pack(struct hosts *h, uint64_t step, struct hosts_memory *memory,
		 struct embeng_bytes *send);
int answers_take(struct hosts *h, uint64_t step, const struct embeng_bytes *received);
/* One feature's floats from a host to their place among the activations. Return: 0, -EBADMSG. */
int answers_place(const struct hosts *h, const struct place_part *part, struct reading *segment,
		  float *to, uint64_t elements);

/* gradients.c: packs and checks one replica's gradients for all hosts, or that none come. */
int gradients_pack(struct hosts *h, struct slot *slot, const struct embeng_gradients *g);
int gradients_pack_discard(struct hosts *h, struct slot *slot);
/*
 * Gives what came from all hosts to the owner handle. @discards: out: replicas without gradients. @alike:
 * out: all hosts find the same failure.
 */
int gradients_serve(struct hosts *h, uint64_t step, const struct embeng_bytes *received,
		    uint32_t *discards, bool *alike);

#endif
