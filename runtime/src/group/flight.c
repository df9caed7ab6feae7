// SPDX-License-Identifier: MIT
/*
 * Moves an exchange on: sends the messages that were loaded, receives the peers', checks that they
 * are about the same exchange, and ends it when all is there. It is a file because it is one
 * machine of states, run by the service thread, which never waits in it.
 *
 * The caller holds the group's lock. The parcels of the exchange have what came.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../../../engine/hash/crc32c.h"
#include "base/error.h"
#include "group.h"

int flight_start(struct embeng_group *g, struct flight *f)
{
	int ret = parcel_post(g, f->first);

	ret = ret ? ret : parcel_post(g, f->pieces);
	f->state = FLIGHT_RUNS;
	g->moved = true;
	return ret;
}

/* One number that all hosts must have alike. */
static int check_equal(const char *who, const char *what, uint64_t theirs, uint64_t ours,
		       uint32_t rank)
{
	return theirs == ours
		       ? 0
		       : fail(-EPROTO, "%s has %s %016" PRIx64 ", host %" PRIu32 " has %016" PRIx64,
			      who, what, theirs, rank, ours);
}

static int check_agreement(const struct flight *f, const struct wire_header *h, const char *who)
{
	const struct wire_header *own = &f->header;
	int ret;

	if (h->kind != WIRE_EXCHANGE || h->channel != own->channel)
		return fail(-EBADMSG, "%s sent a message of kind %" PRIu32 " in channel %" PRIu32,
			    who, h->kind, h->channel);
	if (h->serial != own->serial)
		return fail(
			-EBADMSG,
			"%s sent message %" PRIu64 " of the channel where %" PRIu64
			" was expected: the transport lost one, doubled it or changed the order",
			who, h->serial, own->serial);
	if (h->step != own->step || memcmp(h->phase, own->phase, sizeof(h->phase)))
		return fail(-EPROTO,
			    "%s is at step %" PRIu64 ", %.*s; host %" PRIu32 " is at step %" PRIu64
			    ", %s. All hosts must make the same steps",
			    who, h->step, EMBENG_PHASE_TEXT - 1, h->phase, own->rank, own->step,
			    own->phase);
	ret = check_equal(who, "the model", h->model, own->model, own->rank);
	ret = ret ? ret : check_equal(who, "the learning rates", h->rates, own->rates, own->rank);
	if (!ret && h->replicas != own->replicas)
		ret = fail(-EPROTO, "%s has %" PRIu32 " replicas, host %" PRIu32 " has %" PRIu32,
			   who, h->replicas, own->rank, own->replicas);
	return ret;
}

/* A body that is longer than its first message: its beginning is copied, its end received. */
static int receive_rest(struct embeng_group *g, struct flight *f, struct flight_peer *peer,
			const unsigned char *beginning)
{
	const uint64_t all = peer->header.bytes, rest = all - WIRE_INLINE_BYTES;
	const uint64_t count = (rest + g->piece_bytes - 1) / g->piece_bytes;
	unsigned char *to;

	peer->rest = all < SIZE_MAX / 2 ? parcel_new(count, all, (void **)&to) : NULL;
	if (!peer->rest)
		return fail(-ENOMEM,
			    "there is no memory for the %" PRIu64 " bytes of host %" PRIu32, all,
			    peer->header.rank);
	peer->body = to;
	memcpy(to, beginning, WIRE_INLINE_BYTES);
	to += WIRE_INLINE_BYTES;
	for (uint64_t i = 0; i < count; i++) {
		const uint64_t left = rest - i * g->piece_bytes;

		peer->rest->messages[i] = (struct embeng_message){
			.data = to + i * g->piece_bytes,
			.bytes = left < g->piece_bytes ? left : g->piece_bytes,
			.peer = peer->header.rank,
			.tag = f->header.channel,
			.receive = 1,
		};
	}
	return parcel_post(g, peer->rest);
}

static int open_first(struct embeng_group *g, struct flight *f, const struct embeng_message *m)
{
	struct flight_peer *peer = &f->peers[m->peer];
	unsigned char *data = m->data;
	char who[GROUP_HOST_WORDS];
	uint64_t inside;
	int ret;

	host_words(g, m->peer, who);
	ret = parcel_check(g, m);
	ret = ret ? ret : wire_check(data, m->moved, m->peer, g->ranks, who);
	if (ret)
		return ret;
	memcpy(&peer->header, data, sizeof(peer->header));
	ret = check_agreement(f, &peer->header, who);
	if (ret)
		return ret;
	peer->came = true;
	g->moved = true;
	inside = peer->header.bytes < WIRE_INLINE_BYTES ? peer->header.bytes : WIRE_INLINE_BYTES;
	if (m->moved != sizeof(peer->header) + inside)
		return fail(-EBADMSG,
			    "%s sent a message of %" PRIu64 " bytes, of which %" PRIu64 " came",
			    who, sizeof(peer->header) + inside, m->moved);
	peer->body = data + sizeof(peer->header);
	return inside < peer->header.bytes ? receive_rest(g, f, peer, peer->body) : 0;
}

/* Looks at a peer whose first message came. */
static int finish_peer(struct embeng_group *g, struct flight_peer *peer)
{
	char who[GROUP_HOST_WORDS];
	int ret = peer->rest ? parcel_test(g, peer->rest) : 0;

	if (ret || (peer->rest && !parcel_done(peer->rest)))
		return ret;
	host_words(g, peer->header.rank, who);
	for (size_t i = 0; peer->rest && i < peer->rest->count; i++) {
		const struct embeng_message *m = &peer->rest->messages[i];

		if (m->moved != m->bytes)
			return fail(-EBADMSG,
				    "%s sent a piece of %" PRIu64 " bytes, of which %" PRIu64
				    " came",
				    who, m->bytes, m->moved);
	}
	if (crc32c(0, peer->body, peer->header.bytes) != peer->header.body_crc)
		return fail(-EBADMSG, "the %" PRIu64 " bytes of %s were damaged on their way",
			    peer->header.bytes, who);
	peer->whole = true;
	g->moved = true;
	return 0;
}

/* A message that could not be sent is found to have failed at the next look. */
static void note_sent(struct flight *f, const struct embeng_message *m)
{
	f->peers[m->peer].sending |= !m->done || m->error;
}

static void note_sending(struct embeng_group *g, struct flight *f)
{
	for (uint32_t rank = 0; rank < g->ranks; rank++)
		f->peers[rank].sending = false;
	for (uint32_t i = 0; i < g->ranks - 1; i++)
		note_sent(f, &f->first->messages[i]);
	for (size_t i = 0; i < f->pieces->count; i++)
		note_sent(f, &f->pieces->messages[i]);
}

/* All is there. A status of any host is the exchange's, on all hosts alike. */
static void end_flight(struct embeng_group *g, struct flight *f)
{
	char who[GROUP_HOST_WORDS];

	f->state = FLIGHT_DONE;
	g->moved = true;
	pthread_cond_broadcast(&g->changed);
	parcel_finish(g, f->first);
	parcel_finish(g, f->pieces);
	for (uint32_t rank = 0; rank < g->ranks; rank++)
		parcel_finish(g, f->peers[rank].rest);
	for (uint32_t rank = 0; rank < g->ranks && !f->code; rank++) {
		const struct flight_peer *peer = &f->peers[rank];
		const bool own = rank == g->rank;
		const struct wire_header *h = own ? &f->header : &peer->header;

		if (!h->status)
			continue;
		f->code = h->status;
		snprintf(f->text, sizeof(f->text), "%s says: %.*s", host_words(g, rank, who),
			 (int)(own ? f->own.bytes : h->bytes),
			 own ? (const char *)f->own.data : (const char *)peer->body);
	}
}

int flight_advance(struct embeng_group *g, struct flight *f)
{
	const uint32_t peers = g->ranks - 1;
	uint32_t waiting = 0;
	int ret = parcel_test(g, f->first);

	ret = ret ? ret : parcel_test(g, f->pieces);
	for (uint32_t i = 0; i < peers && !ret; i++) {
		const struct embeng_message *m = &f->first->messages[peers + i];

		if (m->done && !f->peers[m->peer].came)
			ret = open_first(g, f, m);
		if (!ret && f->peers[m->peer].came && !f->peers[m->peer].whole)
			ret = finish_peer(g, &f->peers[m->peer]);
	}
	if (ret)
		return ret;
	note_sending(g, f);
	for (uint32_t rank = 0; rank < g->ranks; rank++)
		waiting += rank != g->rank && (!f->peers[rank].whole || f->peers[rank].sending);
	if (!waiting)
		end_flight(g, f);
	return 0;
}

void flight_waiting(const struct embeng_group *g, const struct flight *f, uint64_t *silent,
		    uint64_t *stuck)
{
	for (uint32_t rank = 0; rank < g->ranks; rank++) {
		const struct flight_peer *peer = &f->peers[rank];

		if (rank == g->rank)
			continue;
		if (!peer->came)
			rank_add(silent, rank);
		else if (!peer->whole || peer->sending)
			rank_add(stuck, rank);
	}
}
