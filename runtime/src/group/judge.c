// SPDX-License-Identifier: MIT
/*
 * Finds the sentence for a failed exchange from what each host that is left knows about it. It is
 * a file because it is a function of these states alone: whichever host judges, the sentence is
 * the same.
 *
 * Only arguments are touched; no lock is needed.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "group.h"

#define HOSTS_TEXT 160

/* Returns the state whose exchange is earlier; a tie goes to the lower rank, which is @a. */
static const struct wire_state *pick_earlier(const struct wire_state *a, const struct wire_state *b)
{
	if (!a || b->step < a->step || (b->step == a->step && b->serial < a->serial))
		return b;
	return a;
}

struct silence {
	const struct wire_state *accuser;
	uint32_t accuser_rank;
	uint64_t blamed[WIRE_RANK_WORDS], others[WIRE_RANK_WORDS];
	bool alive;  /* those blamed answered */
	bool came;   /* they had begun the same exchange */
	bool silent; /* nothing came of any of them */
};

/* Blames hosts that do not answer now; if there is none, all that the accuser waits for. */
static void blame_hosts(const struct embeng_group *g, const struct wire_state *const *states,
			struct silence *s)
{
	uint64_t gone[WIRE_RANK_WORDS] = {0}, waited[WIRE_RANK_WORDS];
	bool any = false;

	for (uint32_t word = 0; word < WIRE_RANK_WORDS; word++)
		waited[word] = s->accuser->silent[word] | s->accuser->stuck[word];
	for (uint32_t rank = 0; rank < g->ranks; rank++) {
		if (rank_in(waited, rank) && !states[rank]) {
			rank_add(gone, rank);
			any = true;
		}
	}
	s->alive = !any;
	s->came = s->silent = true;
	for (uint32_t rank = 0; rank < g->ranks; rank++) {
		const struct wire_state *state = states[rank];

		if (!rank_in(any ? gone : waited, rank)) {
			rank_add(s->others, rank);
			continue;
		}
		rank_add(s->blamed, rank);
		s->silent &= rank_in(s->accuser->silent, rank);
		s->came &= state && state->busy && state->channel == s->accuser->channel &&
			   state->serial >= s->accuser->serial;
	}
}

static int tell_silence(const struct embeng_group *g, const struct silence *s, char *text)
{
	const double seconds = (double)s->accuser->waited_ns / 1e9;
	char blamed[HOSTS_TEXT], others[HOSTS_TEXT], accuser[GROUP_HOST_WORDS];
	char at[64];

	hosts_words(g, s->blamed, blamed, sizeof(blamed));
	hosts_words(g, s->others, others, sizeof(others));
	snprintf(at, sizeof(at), "step %" PRIu64 ", %.*s", s->accuser->step, EMBENG_PHASE_TEXT - 1,
		 s->accuser->phase);
	if (s->alive && s->came)
		snprintf(text, EMBENG_ERROR_TEXT,
			 "%s: in %.1f s not all messages passed between %s and %s, which all are "
			 "alive",
			 at, seconds, blamed, host_words(g, s->accuser_rank, accuser));
	else if (!s->silent)
		snprintf(text, EMBENG_ERROR_TEXT, "%s: %s did not finish within %.1f s; %s did", at,
			 blamed, seconds, others);
	else
		snprintf(text, EMBENG_ERROR_TEXT, "%s: %s sent nothing for %.1f s; %s did%s", at,
			 blamed, seconds, others,
			 s->alive ? ". The process is alive, but has not begun this exchange" : "");
	return -ETIME;
}

int judge_states(const struct embeng_group *g, const struct wire_state *const *states, char *text)
{
	const struct wire_state *cause = NULL;
	struct silence s = {0};

	for (uint32_t rank = 0; rank < g->ranks; rank++) {
		if (states[rank] && states[rank]->code && states[rank]->code != -ETIME)
			cause = pick_earlier(cause, states[rank]);
	}
	if (cause) {
		snprintf(text, EMBENG_ERROR_TEXT, "%.*s", EMBENG_ERROR_TEXT - 1, cause->text);
		return cause->code;
	}
	for (uint32_t rank = 0; rank < g->ranks; rank++) {
		if (states[rank] && states[rank]->code)
			s.accuser = pick_earlier(s.accuser, states[rank]);
	}
	if (!s.accuser) {
		snprintf(text, EMBENG_ERROR_TEXT,
			 "a host reported a failure and then did not say which");
		return -EHOSTDOWN;
	}
	while (states[s.accuser_rank] != s.accuser)
		s.accuser_rank++;
	blame_hosts(g, states, &s);
	return tell_silence(g, &s, text);
}
