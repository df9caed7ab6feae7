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

/*
 * Room for activations or gradients of a slot. A device reaches them, for embeng_memory_export(), but not where there are
 * more replicas than it has: its regions might not be enough. Return: as region_grow().
 */
int memory_of_slot(struct hosts *h, struct region *region, uint64_t bytes);
/* Room for @bytes; what was there may be lost. Return: 0, -ENOMEM. */
int memory_need(struct hosts_memory *memory, uint64_t bytes);
/*
 * Makes room as memory_need() does, in memory that commands of the owner handle read and write in place if its
 * device has room. With more replicas than the device has there is no such memory. memory_free() is for both.
 */
int memory_need_shared(struct hosts *h, struct hosts_memory *memory, uint64_t bytes);
void memory_free(struct hosts *h, struct hosts_memory *memory);

/* The part of a feature's table that a host looks up in, or NULL: it does not look the feature up. */
static inline const struct place_part *feature_part(const struct hosts *h, size_t feature,
						    uint32_t host)
{
	const struct place_part *part = hosts_part(h, h->e->model->features[feature].table, host);

	return part && part->kind != PLACE_ROWS ? part : NULL;
}

/* The copy of an input: its offsets, ids and weights. */
struct input_copy {
	const char *offsets, *ids, *weights;
};

static inline uint64_t width_of_ids(const struct input *in)
{
	return in->type == EMBENG_I32 ? 4 : 8;
}

/* ids_check.c: the refusals of a batch that depend on what its copy says. */
int ids_check(const struct embeng *e, const struct embeng_batch *b, size_t f,
	      const struct input_copy *copy);

/* Copies @bytes to *@to, which moves behind them. Return: where they are. */
char *put_padded(char **to, const void *from, uint64_t bytes);

/* ids.c: whether a batch can be looked up, but for its ids. Sets @resolved of its slot. */
int ids_resolve(const struct embeng *e, struct slot *slot, const struct embeng_batch *b);
/*
 * ids.c: packs and checks the ids of a batch for all hosts. Return: 0, a refusal as of embeng_enqueue(),
 * -ENOMEM.
 */
int ids_pack(struct hosts *h, const struct slot *slot, const struct embeng_batch *b);
/*
 * Waits until the owner handle has room for a step: steps that were handed in may not be applied yet, and then it has
 * no buffers. Return: 0, or how the handle has failed.
 */
int ids_await_owner(struct embeng *owner, uint64_t step);
/* The input of a feature that only the owner handle has. It is no bag, so that it is none among sums of rows either. */
void ids_empty_input(struct input *in);
/**
 * struct ids_taker - a reader of the ids of a step
 * @batch: the batch of the owner handle that is filled for each replica, or NULL: h->batches[replica]
 * @take: takes the batch of a replica. Return: 0, or a negative errno, which ends the reading
 */
struct ids_taker {
	struct embeng_batch *batch;
	int (*take)(struct hosts *h, uint64_t step, uint32_t replica, struct embeng_batch *b);
};

/* Reads the ids of all replicas, in their order, from the messages of all hosts. Return: 0, -EBADMSG, that of @take. */
int ids_read(struct hosts *h, uint64_t step, const struct embeng_bytes *received,
	     const struct ids_taker *taker);
/* Enqueues the ids of all hosts with the owner handle. */
int ids_serve(struct hosts *h, uint64_t step, const struct embeng_bytes *received);
/*
 * Makes inputs of the owner handle's batch @b of a segment. @firsts: NULL, or out: [lists]: rows that go back.
 * Return: 0, -EBADMSG.
 */
int ids_unpack(const struct hosts *h, struct reading *segment, uint32_t host,
	       struct embeng_batch *b, uint64_t *firsts);

/*
 * lists.c: the lists of rows that a batch reads, for tables that are spread by rows. Lists are made before
 * a parcel is measured, and stand in it behind the inputs of features. Return: as ids_pack().
 */
int lists_make(struct hosts *h, const struct slot *slot, const struct embeng_batch *b);
uint64_t lists_bytes(const struct hosts *h, const struct cargo *cargo, uint32_t host);
char *lists_put(const struct hosts *h, const struct cargo *cargo, uint32_t host, char *to);
/* The owner's side: inputs of @b, from its feature @next on. Return: 0, -EBADMSG. */
int lists_unpack(const struct hosts *h, struct reading *segment, uint32_t host,
		 struct embeng_batch *b, size_t next, uint64_t *firsts);
/* The input of @count rows. */
void lists_input(const struct row_list *list, const void *rows, uint64_t count, struct input *in);
int lists_new(const struct hosts *h, struct cargo *cargo);
void lists_free(struct hosts *h, struct cargo *cargo);

/* list_rows.c: keeps the rows that came from a host. Return: 0, -EBADMSG. */
int list_rows_take(struct hosts *h, struct cargo *cargo, uint32_t host, struct reading *segment);
/* Makes activations of a slot, whose features stand at @at, once all rows have come. */
int list_rows_pool(struct hosts *h, const struct slot *slot);
/*
 * Makes the sums of @g, which stand in a parcel behind the gradients of features; gradients of samples follow
 * (samples.h), but for a program's own sums.
 */
int list_rows_sum(struct hosts *h, const struct slot *slot, const struct embeng_gradients *g);
uint64_t list_sums_bytes(const struct hosts *h, const struct slot *slot, uint32_t host);
char *list_sums_put(const struct hosts *h, const struct slot *slot, uint32_t host, char *to);

/* answers.c: dequeues from the owner handle, for each host; copies what came to slots of this host. */
int answers_pack(struct hosts *h, uint64_t step, struct hosts_memory *memory,
		 struct embeng_bytes *send);
int answers_take(struct hosts *h, uint64_t step, const struct embeng_bytes *received);
/* One segment to a slot: features to their places, rows to the lists. Return: 0, -EBADMSG. */
int answers_take_segment(struct hosts *h, const struct slot *slot, uint32_t host,
			 struct reading *segment);

/* gradients.c: packs and checks one replica's gradients for all hosts, or that none come. */
int gradients_pack(struct hosts *h, struct slot *slot, const struct embeng_gradients *g);
int gradients_pack_discard(struct hosts *h, struct slot *slot);
/*
 * gradients_find.c: finds what a replica's segment has for the owner handle. @features: out: its gradients, or
 * sums of them, valid until the next call. @elements: floats of each. Return: 0, -EBADMSG.
 */
int gradients_find(struct hosts *h, const struct segment_head *head, struct reading *segment,
		   const float **features, size_t *elements);
/* Each rate of the owner handle's model, by its name. */
void gradients_name_rates(const struct hosts *h, const struct segment_head *head,
			  struct embeng_rate *rates);
/*
 * Gives what came from all hosts to the owner handle. @discards: out: replicas without gradients. @alike:
 * out: all hosts find the same failure.
 */
int gradients_serve(struct hosts *h, uint64_t step, const struct embeng_bytes *received,
		    uint32_t *discards, bool *alike);

#endif
