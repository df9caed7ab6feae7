/* SPDX-License-Identifier: MIT */
/*
 * A transport of a group whose messages threads of the program carry, in frames. The group's thread
 * never waits for an interpreter: it hands messages to the relay, and finds there what came.
 *
 * A program has two threads for each peer. One takes frames from the relay and sends them, the other
 * gives the relay what it received; both work in any order between peers, and in order for one of them.
 * Nothing here needs Python, and any thread may call.
 */
#ifndef EMBENG_PYTHON_RELAY_H
#define EMBENG_PYTHON_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "embeng/group.h"

#define RELAY_FRAME_BYTES ((size_t)256 * 1024) /* most of a frame, and the room for one */

struct relay;

/* The caller has a reference. Return: NULL without memory. */
struct relay *relay_new(uint32_t rank, uint32_t ranks);
void relay_put(struct relay *relay);
uint32_t relay_ranks(const struct relay *relay);
uint32_t relay_rank(const struct relay *relay);

/* The relay as a transport, which has a reference of its own until it is closed. */
void relay_fill(struct relay *relay, const char *name, struct embeng_transport *out);

/*
 * relay_take() - wait for a frame to a peer
 * @frame: has room for RELAY_FRAME_BYTES
 *
 * After the transport was closed, what is left comes, then a last frame that says so. Return: bytes; 0:
 * no frame comes any more.
 */
size_t relay_take(struct relay *relay, uint32_t peer, void *frame);

/*
 * relay_give() - hand in a frame that came from a peer
 * @room: bytes at @frame, of which the frame itself says how many it has
 *
 * Return: 1; 0: it was the last one; -EBADMSG: it is none, and the peer is lost.
 */
int relay_give(struct relay *relay, uint32_t peer, const void *frame, size_t room);

/* The peer cannot be reached any more: messages to it and from it end with -EHOSTDOWN. */
void relay_lose(struct relay *relay, uint32_t peer);

#endif
