// SPDX-License-Identifier: MIT
/*
 * Loads an exchange: the bytes that this host brings are copied into parcels, cut into messages
 * and sealed. It is a file because this happens in the program's thread, and what happens to
 * messages on their way does not.
 *
 * The caller holds the group's lock. The parcels live until the channel's next exchange.
 */
#include <stdlib.h>
#include <string.h>

#include "../../../engine/hash/crc32c.h"
#include "base/clock.h"
#include "base/error.h"
#include "group.h"

static struct embeng_bytes bytes_for(const struct embeng_exchange *x, uint32_t rank)
{
	if (x->status)
		return (struct embeng_bytes){x->text, strlen(x->text)};
	return x->send ? x->send[rank] : (struct embeng_bytes){0};
}

static uint64_t inline_bytes(uint64_t bytes)
{
	return bytes < WIRE_INLINE_BYTES ? bytes : WIRE_INLINE_BYTES;
}

static void set_header(const struct embeng_group *g, struct flight *f,
		       const struct embeng_exchange *x)
{
	f->header = (struct wire_header){
		.magic = WIRE_MAGIC,
		.version = WIRE_VERSION,
		.kind = WIRE_EXCHANGE,
		.rank = g->rank,
		.ranks = g->ranks,
		.replicas = x->replicas,
		.status = x->status,
		.channel = x->channel,
		.step = x->step,
		.model = x->model,
		.rates = x->rates,
		.serial = f->serial,
	};
	memcpy(f->header.phase, x->phase, strlen(x->phase));
}

/* Sends and receives of first messages, with the headers and what fits behind them. */
static int load_first(struct embeng_group *g, struct flight *f, const struct embeng_exchange *x)
{
	const uint32_t peers = g->ranks - 1;
	unsigned char *room;

	f->first = parcel_new(2 * (size_t)peers, 2 * (size_t)peers * WIRE_FIRST_BYTES,
			      (void **)&room);
	if (!f->first)
		return -ENOMEM;
	for (uint32_t rank = 0; rank < g->ranks; rank++) {
		const struct embeng_bytes send = bytes_for(x, rank);
		const size_t at = peer_place(g, rank);
		unsigned char *out = room + at * WIRE_FIRST_BYTES;
		struct wire_header header = f->header;

		if (rank == g->rank)
			continue;
		header.bytes = send.bytes;
		header.body_crc = crc32c(0, send.data, send.bytes);
		wire_seal(&header);
		memcpy(out, &header, sizeof(header));
		if (send.bytes)
			memcpy(out + sizeof(header), send.data, inline_bytes(send.bytes));
		f->first->messages[at] = (struct embeng_message){
			.data = out,
			.bytes = sizeof(header) + inline_bytes(send.bytes),
			.peer = rank,
			.tag = x->channel,
		};
		f->first->messages[peers + at] = (struct embeng_message){
			.data = out + (size_t)peers * WIRE_FIRST_BYTES,
			.bytes = WIRE_FIRST_BYTES,
			.peer = rank,
			.tag = x->channel,
			.receive = 1,
		};
	}
	return 0;
}

/* Copies the end of what @rank gets to @to, and makes messages of it. */
static size_t load_rest(const struct embeng_group *g, struct parcel *p, size_t at, uint32_t rank,
			const struct embeng_bytes *send, unsigned char *to)
{
	const uint64_t first = inline_bytes(send->bytes);

	if (send->bytes == first)
		return at;
	memcpy(to, (const unsigned char *)send->data + first, send->bytes - first);
	for (uint64_t done = 0, piece; done < send->bytes - first; done += piece) {
		piece = send->bytes - first - done;
		piece = piece < g->piece_bytes ? piece : g->piece_bytes;
		p->messages[at++] = (struct embeng_message){
			.data = to + done,
			.bytes = piece,
			.peer = rank,
			.tag = p->tag,
		};
	}
	return at;
}

static int load_pieces(struct embeng_group *g, struct flight *f, const struct embeng_exchange *x)
{
	const struct embeng_bytes own = bytes_for(x, g->rank);
	uint64_t bytes = own.bytes;
	size_t count = 0, at = 0;
	unsigned char *room;

	for (uint32_t rank = 0; rank < g->ranks; rank++) {
		const uint64_t all = bytes_for(x, rank).bytes, rest = all - inline_bytes(all);

		if (rank == g->rank)
			continue;
		bytes += rest;
		count += (rest + g->piece_bytes - 1) / g->piece_bytes;
	}
	f->pieces = parcel_new(count, bytes, (void **)&room);
	if (!f->pieces)
		return -ENOMEM;
	f->pieces->tag = x->channel;
	f->own = (struct embeng_bytes){room, own.bytes};
	if (own.bytes)
		memcpy(room, own.data, own.bytes);
	room += own.bytes;
	for (uint32_t rank = 0; rank < g->ranks; rank++) {
		const struct embeng_bytes send = bytes_for(x, rank);

		if (rank == g->rank)
			continue;
		at = load_rest(g, f->pieces, at, rank, &send, room);
		room += send.bytes - inline_bytes(send.bytes);
	}
	return 0;
}

int flight_load(struct embeng_group *g, struct flight *f, const struct embeng_exchange *x)
{
	int ret;

	flight_clear(g, f);
	set_header(g, f, x);
	ret = load_first(g, f, x);
	ret = ret ? ret : load_pieces(g, f, x);
	f->peers = ret ? NULL : calloc(g->ranks, sizeof(*f->peers));
	if (!ret && !f->peers)
		ret = fail(-ENOMEM, "there is no memory for an exchange of %u hosts", g->ranks);
	if (ret) {
		flight_clear(g, f);
		return ret;
	}
	f->began = now_ns();
	f->deadline = f->began + (x->timeout_ns ? x->timeout_ns : g->deadline_ns);
	f->state = FLIGHT_QUEUED;
	return 0;
}

void flight_clear(struct embeng_group *g, struct flight *f)
{
	parcel_drop(g, &f->first);
	parcel_drop(g, &f->pieces);
	for (uint32_t rank = 0; f->peers && rank < g->ranks; rank++)
		parcel_drop(g, &f->peers[rank].rest);
	free(f->peers);
	f->peers = NULL;
	f->own = (struct embeng_bytes){0};
	f->code = 0;
	f->state = FLIGHT_IDLE;
}
