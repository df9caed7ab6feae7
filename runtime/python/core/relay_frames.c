// SPDX-License-Identifier: MIT
/*
 * The program's side of a relay: frames that go out, and frames that came. It is a file because the form of
 * a frame is known here alone.
 *
 * relay.c says how messages wait, and whose memory is touched; the relay's lock holds for all of it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "relay_inside.h"

enum frame_kind {
	FRAME_PART,  /* a part of a message */
	FRAME_READY, /* @number receives of the tag are posted */
	FRAME_LAST,
};

/*
 * struct frame - the beginning of a frame, which stays on machines of one byte order
 * @number: a message's place among those of its tag, from 0
 * @length, @offset: bytes of the whole message, and where this part of it begins
 * @bytes: length of this part, which follows
 */
struct frame {
	uint32_t kind, tag;
	uint64_t number, length, offset, bytes;
};

#define PART_BYTES (RELAY_FRAME_BYTES - sizeof(struct frame))

/* -- sending ----------------------------------------------------- */

/* The message of a lane that may go out next, or NULL. */
static struct item *next_message(const struct lane *lane)
{
	struct item *item = lane->out.first;

	return item && (item->copy || item->number < lane->ready) ? item : NULL;
}

static size_t write_part(struct relay *relay, struct lane *lane, uint32_t tag, unsigned char *to)
{
	struct item *item = next_message(lane);
	const uint64_t left = item->bytes - item->moved;
	const struct frame frame = {.kind = FRAME_PART,
				    .tag = tag,
				    .number = item->number,
				    .length = item->bytes,
				    .offset = item->moved,
				    .bytes = left < PART_BYTES ? left : PART_BYTES};
	const unsigned char *from = item->copy ? item->copy : item->message->data;

	memcpy(to, &frame, sizeof(frame));
	if (frame.bytes)
		memcpy(to + sizeof(frame), from + frame.offset, frame.bytes);
	item->moved += frame.bytes;
	if (item->moved == item->bytes)
		item_finish(relay, &lane->out, item, 0);
	return sizeof(frame) + frame.bytes;
}

/* The lane whose message goes out next, or NULL. */
static struct lane *pick_lane(struct relay_peer *peer)
{
	struct lane *picked = NULL;

	for (uint32_t tag = 0; tag < RELAY_TAGS; tag++) {
		struct lane *lane = &peer->lanes[tag];
		const struct item *item = next_message(lane);
		const struct item *best = picked ? next_message(picked) : NULL;

		if (!item)
			continue;
		if (!best || (item->copy && !best->copy) ||
		    (!item->copy == !best->copy && item->order < best->order))
			picked = lane;
	}
	return picked;
}

/*
 * Short messages go before long ones, which would keep a group's word about a failure waiting. Among
 * themselves they keep their order, so that a farewell does not overtake what was sent before it.
 */
static size_t write_frame(struct relay *relay, struct relay_peer *peer, unsigned char *to)
{
	struct frame frame = {.kind = FRAME_READY};
	struct lane *next;

	for (uint32_t tag = 0; tag < RELAY_TAGS; tag++) {
		struct lane *lane = &peer->lanes[tag];

		if (!lane->tell)
			continue;
		lane->tell = false;
		frame.tag = tag;
		frame.number = lane->posted;
		memcpy(to, &frame, sizeof(frame));
		return sizeof(frame);
	}
	next = pick_lane(peer);
	return next ? write_part(relay, next, (uint32_t)(next - peer->lanes), to) : 0;
}

size_t relay_take(struct relay *relay, uint32_t rank, void *to)
{
	struct relay_peer *peer = &relay->peers[rank];
	size_t bytes = 0;

	pthread_mutex_lock(&relay->lock);
	while (!peer->lost && !peer->last_sent) {
		bytes = write_frame(relay, peer, to);
		if (bytes)
			break;
		if (relay->closed) {
			const struct frame last = {.kind = FRAME_LAST};

			memcpy(to, &last, sizeof(last));
			bytes = sizeof(last);
			peer->last_sent = true;
			break;
		}
		pthread_cond_wait(&peer->work, &relay->lock);
	}
	pthread_mutex_unlock(&relay->lock);
	return bytes;
}

/* -- receiving ------------------------------------------------------ */

/* A short message for which no room is posted yet. Return: 0, -ENOMEM. */
static int keep_early(struct lane *lane, const struct frame *frame, const unsigned char *body)
{
	struct item *item = calloc(1, sizeof(*item));

	if (item)
		item->copy = malloc(frame->bytes ? frame->bytes : 1);
	if (!item || !item->copy) {
		free(item);
		return -ENOMEM;
	}
	item->bytes = frame->bytes;
	item->number = frame->number;
	if (frame->bytes)
		memcpy(item->copy, body, frame->bytes);
	append_item(&lane->early, item);
	return 0;
}

/* Parts come one after another. A message whose room was dropped is thrown away. */
static int read_part(struct relay *relay, struct lane *lane, const struct frame *frame,
		     const unsigned char *body)
{
	struct item *item = lane->in.first;
	const bool whole = frame->bytes == frame->length - frame->offset;
	int ret = 0;

	if (frame->number != lane->arrived || frame->offset != lane->part)
		return -EBADMSG;
	lane->arrived += whole;
	lane->part = whole ? 0 : frame->offset + frame->bytes;
	if (frame->number >= lane->posted)
		return whole && frame->length <= RELAY_SHORT_BYTES ? keep_early(lane, frame, body)
								   : -EBADMSG;
	if (!item || item->number != frame->number)
		return 0;
	if (frame->length > item->bytes) {
		ret = -EMSGSIZE;
	} else if (frame->bytes) {
		memcpy((unsigned char *)item->message->data + frame->offset, body, frame->bytes);
		item->moved += frame->bytes;
	}
	if (whole || ret)
		item_finish(relay, &lane->in, item, ret);
	return 0;
}

static bool check_frame(const struct frame *frame, size_t room)
{
	return frame->tag < RELAY_TAGS && frame->bytes <= room - sizeof(*frame) &&
	       frame->offset <= frame->length && frame->bytes <= frame->length - frame->offset;
}

int relay_give(struct relay *relay, uint32_t rank, const void *from, size_t room)
{
	struct relay_peer *peer = &relay->peers[rank];
	struct frame frame = {.kind = FRAME_LAST + 1};
	int ret = 0;

	if (room >= sizeof(frame))
		memcpy(&frame, from, sizeof(frame));
	if (frame.kind > FRAME_LAST || !check_frame(&frame, room)) {
		relay_lose(relay, rank);
		return -EBADMSG;
	}
	pthread_mutex_lock(&relay->lock);
	if (peer->lost) {
		ret = -EBADMSG;
	} else if (frame.kind == FRAME_READY) {
		peer->lanes[frame.tag].ready = frame.number;
		pthread_cond_signal(&peer->work);
	} else if (frame.kind == FRAME_PART) {
		ret = read_part(relay, &peer->lanes[frame.tag], &frame,
				(const unsigned char *)from + sizeof(frame));
	}
	peer->last_came |= frame.kind == FRAME_LAST;
	pthread_mutex_unlock(&relay->lock);
	if (ret)
		relay_lose(relay, rank);
	return ret ? -EBADMSG : frame.kind != FRAME_LAST;
}

/* A peer that has said its last word was not lost: the group knows that it has left. */
void relay_lose(struct relay *relay, uint32_t rank)
{
	struct relay_peer *peer = &relay->peers[rank];

	pthread_mutex_lock(&relay->lock);
	peer->lost = true;
	for (uint32_t tag = 0; tag < RELAY_TAGS && !peer->last_came; tag++) {
		struct lane *lane = &peer->lanes[tag];

		while (lane->out.first)
			item_finish(relay, &lane->out, lane->out.first, -EHOSTDOWN);
		while (lane->in.first)
			item_finish(relay, &lane->in, lane->in.first, -EHOSTDOWN);
	}
	pthread_cond_broadcast(&peer->work);
	pthread_mutex_unlock(&relay->lock);
}
