// SPDX-License-Identifier: MIT
/*
 * Trials: after a failure, the hosts that are left agree on one sentence. A host that finds a
 * failure sends what it knows to all; each host that hears of it answers with what it knows. Then
 * the lowest rank that is left judges and tells the others. A host that hears no verdict in time
 * judges for itself, so that no step of this has to succeed.
 *
 * Hosts that an exchange waits for longer than the deadline are asked whether they are alive, since one that has died
 * would be waited for in vain; pulse_advance() begins a trial then.
 *
 * It is a file because it works beside the exchanges, in messages of its own tag. The service
 * thread calls, with the group's lock.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../engine/hash/crc32c.h"
#include "base/clock.h"
#include "base/error.h"
#include "group.h"

#define MS 1000000ull
#define COLLECT_NS (350 * MS)
#define VERDICT_NS (700 * MS)
/* So many control messages that are damaged, one after another: the transport brings nothing else. */
#define DAMAGED_MOST 64
#define BYE_GRACE_NS (200 * MS) /* messages that were sent before the farewell may still come */

void group_die(struct embeng_group *g, int code, const char *text)
{
	if (g->dead)
		return;
	g->dead = code;
	g->trial.on = false;
	g->moved = true;
	snprintf(g->cause, sizeof(g->cause), "%s", text);
	for (uint32_t i = 0; i < EMBENG_GROUP_CHANNELS; i++) {
		struct flight *f = &g->flights[i];

		if (f->state != FLIGHT_QUEUED && f->state != FLIGHT_RUNS)
			continue;
		f->state = FLIGHT_DONE;
		f->code = code;
		snprintf(f->text, sizeof(f->text), "%s", text);
	}
	if (g->transport.abort)
		g->transport.abort(g->transport.self);
	pthread_cond_broadcast(&g->changed);
}

static int listen_to(struct embeng_group *g, uint32_t rank)
{
	struct control *c = &g->controls[rank];
	void *room;

	parcel_drop(g, &c->receive);
	c->receive = parcel_new(1, WIRE_FIRST_BYTES, &room);
	if (!c->receive)
		return -ENOMEM;
	c->receive->messages[0] = (struct embeng_message){
		.data = room,
		.bytes = WIRE_FIRST_BYTES,
		.peer = rank,
		.tag = WIRE_CONTROL_TAG,
		.receive = 1,
	};
	return parcel_post(g, c->receive);
}

int trial_listen(struct embeng_group *g)
{
	int ret = 0;

	for (uint32_t rank = 0; rank < g->ranks && !ret; rank++)
		ret = rank == g->rank ? 0 : listen_to(g, rank);
	return ret;
}

/* A host that leaves waits for farewells for FAREWELL_NS; half of that is sure to be left. */
static bool is_listening(const struct control *c)
{
	return !c->gone && (!c->bye_ns || now_ns() - c->bye_ns < FAREWELL_NS / 2);
}

/* Sends a control message to the others of @to that are left. Without memory they hear nothing, and judge for themselves. */
static void send_notice_to(struct embeng_group *g, const uint64_t *to, enum wire_kind kind,
			   int status, const void *body, size_t bytes)
{
	struct wire_header header = {
		.magic = WIRE_MAGIC,
		.version = WIRE_VERSION,
		.kind = kind,
		.rank = g->rank,
		.ranks = g->ranks,
		.status = status,
		.bytes = bytes,
		.body_crc = crc32c(0, body, bytes),
	};
	unsigned char *room;
	struct parcel *p;

	p = parcel_new(g->ranks - 1, sizeof(header) + bytes, (void **)&room);
	if (!p)
		return;
	wire_seal(&header);
	memcpy(room, &header, sizeof(header));
	if (bytes)
		memcpy(room + sizeof(header), body, bytes);
	p->count = 0;
	for (uint32_t rank = 0; rank < g->ranks; rank++) {
		if (rank == g->rank || !rank_in(to, rank) || !is_listening(&g->controls[rank]))
			continue;
		p->messages[p->count++] = (struct embeng_message){
			.data = room,
			.bytes = sizeof(header) + bytes,
			.peer = rank,
			.tag = WIRE_CONTROL_TAG,
		};
	}
	p->next = g->notices;
	g->notices = p;
	parcel_post(g, p);
}

static void send_notice(struct embeng_group *g, enum wire_kind kind, int status, const void *body,
			size_t bytes)
{
	uint64_t all[WIRE_RANK_WORDS];

	memset(all, 0xff, sizeof(all));
	send_notice_to(g, all, kind, status, body, bytes);
}

static void send_question(struct embeng_group *g, const uint64_t *to, enum wire_kind kind)
{
	send_notice_to(g, to, kind, 0, NULL, 0);
}

/* Two questions fit into the deadline, so that a host is found within it. */
static uint64_t pause_of(const struct embeng_group *g)
{
	return g->deadline_ns / 2;
}

/* The exchange may wait longer than the group's deadline, and does so for somebody. */
static bool is_patient(const struct embeng_group *g, const struct flight *f)
{
	return f->state == FLIGHT_RUNS && f->deadline - f->began > g->deadline_ns;
}

/* Since when it has waited, or since when none of those it waits for has been silent. */
static uint64_t last_pulse(const struct embeng_group *g, const struct flight *f)
{
	uint64_t waited[WIRE_RANK_WORDS] = {0}, last = UINT64_MAX;

	if (!is_patient(g, f))
		return f->began;
	flight_waiting(g, f, waited, waited);
	for (uint32_t rank = 0; rank < g->ranks; rank++)
		if (rank_in(waited, rank) && g->controls[rank].heard_ns < last)
			last = g->controls[rank].heard_ns;
	return last != UINT64_MAX && last > f->began ? last : f->began;
}

/* A host is alive. @asked: it asks the same of this one. */
static void hear_pulse(struct embeng_group *g, uint32_t rank, bool asked)
{
	uint64_t asker[WIRE_RANK_WORDS] = {0};

	g->controls[rank].heard_ns = now_ns();
	if (!asked)
		return;
	rank_add(asker, rank);
	send_question(g, asker, WIRE_ALIVE);
}

/* The exchange that a state is about: the one that failed here, or any that is on its way. */
static const struct flight *pick_flight(const struct embeng_group *g)
{
	if (g->trial.of)
		return g->trial.of;
	for (uint32_t i = 0; i < EMBENG_GROUP_CHANNELS; i++) {
		if (g->flights[i].state == FLIGHT_RUNS)
			return &g->flights[i];
	}
	return &g->flights[0];
}

static void fill_state(const struct embeng_group *g, struct wire_state *state)
{
	const struct flight *f = pick_flight(g);

	*state = (struct wire_state){
		.code = g->trial.code,
		.busy = f->state == FLIGHT_RUNS,
		.channel = f->header.channel,
		.step = f->header.step,
		.serial = f->serial,
	};
	memcpy(state->phase, f->header.phase, sizeof(state->phase));
	memcpy(state->text, g->trial.text, sizeof(state->text));
	if (!state->busy)
		return;
	state->waited_ns = g->trial.began - last_pulse(g, f);
	flight_waiting(g, f, state->silent, state->stuck);
}

/* A message may be damaged on either side of its way, so the sentence names the host that got it, too. */
static void tell_finder(const struct embeng_group *g, char text[static EMBENG_ERROR_TEXT])
{
	const size_t length = strlen(text);
	char own[GROUP_HOST_WORDS];

	snprintf(text + length, EMBENG_ERROR_TEXT - length, "; %s got it",
		 host_words(g, g->rank, own));
}

void trial_begin(struct embeng_group *g, int code, const struct flight *of)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);
	struct wire_state *state;

	if (g->trial.on || g->dead)
		return;
	g->trial = (struct trial){.on = true, .began = now_ns(), .of = of, .code = code};
	g->moved = true;
	embeng_last_error(&error);
	if (code && of)
		snprintf(g->trial.text, sizeof(g->trial.text), "step %" PRIu64 ", %s: %.400s",
			 of->header.step, of->header.phase, error.text);
	else if (code)
		snprintf(g->trial.text, sizeof(g->trial.text), "%s", error.text);
	if (code == -EBADMSG && of)
		tell_finder(g, g->trial.text);
	state = calloc(1, sizeof(*state));
	if (!state)
		return;
	fill_state(g, state);
	free(g->controls[g->rank].state);
	g->controls[g->rank].state = state;
	send_notice(g, WIRE_STATE, 0, state, sizeof(*state));
}

static void take_state(struct embeng_group *g, uint32_t rank, const void *body, uint64_t bytes)
{
	struct control *c = &g->controls[rank];

	if (bytes != sizeof(*c->state))
		return;
	trial_begin(g, 0, NULL);
	c->state = c->state ? c->state : malloc(sizeof(*c->state));
	if (c->state) {
		memcpy(c->state, body, sizeof(*c->state));
		c->state->text[sizeof(c->state->text) - 1] = '\0';
	}
}

static void take_group_verdict(struct embeng_group *g, int code, const char *body, uint64_t bytes)
{
	char text[EMBENG_ERROR_TEXT];

	snprintf(text, sizeof(text), "%.*s", (int)(bytes < sizeof(text) ? bytes : sizeof(text) - 1),
		 body);
	group_die(g, code < 0 ? code : -EPROTO, text);
}

/* A control message came from @rank. One that is damaged counts as none. */
static void take_notice(struct embeng_group *g, uint32_t rank, const struct embeng_message *m)
{
	const unsigned char *body = (const unsigned char *)m->data + sizeof(struct wire_header);
	struct wire_header header;

	g->moved = true;
	g->controls[rank].damaged++;
	if (m->moved > m->bytes || wire_check(m->data, m->moved, rank, g->ranks, "a host"))
		return;
	memcpy(&header, m->data, sizeof(header));
	if (m->moved - sizeof(header) != header.bytes ||
	    crc32c(0, body, header.bytes) != header.body_crc)
		return;
	g->controls[rank].damaged = 0;
	if (header.kind == WIRE_STATE)
		take_state(g, rank, body, header.bytes);
	else if (header.kind == WIRE_VERDICT)
		take_group_verdict(g, header.status, (const char *)body, header.bytes);
	else if (header.kind == WIRE_BYE)
		g->controls[rank].bye_ns = now_ns();
	else if (header.kind == WIRE_ASK || header.kind == WIRE_ALIVE)
		hear_pulse(g, rank, header.kind == WIRE_ASK);
}

static void hear_peer(struct embeng_group *g, uint32_t rank)
{
	struct control *c = &g->controls[rank];

	if (c->gone || !c->receive)
		return;
	if (parcel_test(g, c->receive)) {
		c->gone = true;
		return;
	}
	if (!parcel_done(c->receive))
		return;
	take_notice(g, rank, &c->receive->messages[0]);
	if (c->damaged > DAMAGED_MOST || listen_to(g, rank))
		c->gone = true;
}

/* An exchange that waits for a host which has left will never end. */
static void check_farewells(struct embeng_group *g, const struct flight *f)
{
	const uint64_t now = now_ns();
	char who[GROUP_HOST_WORDS];

	for (uint32_t rank = 0; f->state == FLIGHT_RUNS && rank < g->ranks; rank++) {
		const struct control *c = &g->controls[rank];

		if (rank == g->rank || f->peers[rank].whole)
			continue;
		if (c->bye_ns && now - c->bye_ns > BYE_GRACE_NS)
			trial_begin(g,
				    fail(-EHOSTDOWN, "%s has left: it closed its group",
					 host_words(g, rank, who)),
				    f);
		else if (c->gone)
			trial_begin(g,
				    fail(-EHOSTDOWN, "the transport says that %s is gone",
					 host_words(g, rank, who)),
				    f);
	}
}

static void forget_notices(struct embeng_group *g)
{
	for (struct parcel **at = &g->notices; *at;) {
		struct parcel *p = *at;

		if (!parcel_test(g, p) && !parcel_done(p)) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		parcel_drop(g, &p);
	}
}

static void give_verdict(struct embeng_group *g)
{
	const struct wire_state **states = calloc(g->ranks, sizeof(*states));
	char text[EMBENG_ERROR_TEXT] = "there is no memory to say what failed";
	int code = -ENOMEM;

	for (uint32_t rank = 0; states && rank < g->ranks; rank++)
		states[rank] = g->controls[rank].state;
	if (states)
		code = judge_states(g, states, text);
	free(states);
	send_notice(g, WIRE_VERDICT, code, text, strlen(text));
	group_die(g, code, text);
}

/* Judges once all have answered, or enough time has passed. */
static void judge_trial(struct embeng_group *g)
{
	const uint64_t age = now_ns() - g->trial.began;
	uint32_t lowest = g->rank;
	bool all = true;

	for (uint32_t rank = g->ranks; rank-- > 0;) {
		const struct control *c = &g->controls[rank];

		if (rank == g->rank)
			continue;
		all &= c->state || c->gone || c->bye_ns;
		if (c->state && rank < lowest)
			lowest = rank;
	}
	if (age > VERDICT_NS || ((all || age > COLLECT_NS) && lowest == g->rank))
		give_verdict(g);
}

void trial_advance(struct embeng_group *g)
{
	for (uint32_t rank = 0; rank < g->ranks; rank++) {
		if (rank != g->rank)
			hear_peer(g, rank);
	}
	forget_notices(g);
	if (g->dead)
		return;
	for (uint32_t i = 0; i < EMBENG_GROUP_CHANNELS && !g->trial.on; i++)
		check_farewells(g, &g->flights[i]);
	if (g->trial.on)
		judge_trial(g);
}

bool trial_all_left(const struct embeng_group *g)
{
	bool all = true;

	for (uint32_t rank = 0; rank < g->ranks; rank++)
		all &= rank == g->rank || g->controls[rank].bye_ns || g->controls[rank].gone;
	return all;
}

void trial_say_bye(struct embeng_group *g)
{
	send_notice(g, WIRE_BYE, 0, NULL, 0);
}

void trial_clear(struct embeng_group *g)
{
	while (g->notices) {
		struct parcel *p = g->notices;

		g->notices = p->next;
		parcel_drop(g, &p);
	}
	for (uint32_t rank = 0; rank < g->ranks; rank++) {
		parcel_drop(g, &g->controls[rank].receive);
		free(g->controls[rank].state);
	}
}

static void ask_hosts(struct embeng_group *g, struct flight *f, uint64_t now)
{
	uint64_t waited[WIRE_RANK_WORDS] = {0};

	f->asked = now;
	flight_waiting(g, f, waited, waited);
	send_question(g, waited, WIRE_ASK);
}

void pulse_advance(struct embeng_group *g)
{
	const uint64_t now = now_ns();

	for (uint32_t i = 0; i < EMBENG_GROUP_CHANNELS && !g->trial.on && !g->dead; i++) {
		struct flight *f = &g->flights[i];

		if (!is_patient(g, f))
			continue;
		if (now - last_pulse(g, f) >= g->deadline_ns)
			trial_begin(g, fail(-ETIME, "a host is silent"), f);
		else if (now - (f->asked > f->began ? f->asked : f->began) >= pause_of(g))
			ask_hosts(g, f, now);
	}
}
