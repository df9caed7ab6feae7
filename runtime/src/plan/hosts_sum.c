// SPDX-License-Identifier: MIT
/*
 * Adds up what each host of a plan sends, gets and keeps, from the bytes that each owner serves to one
 * replica. No pair of hosts is looked at by itself: hosts differ by what they own, and by at most one
 * replica, so that thousands of hosts take no longer than their number.
 *
 * All memory is the plan's; no lock is needed.
 */
#include <inttypes.h>

#include "base/error.h"
#include "group/wire.h"
#include "hosts_cost.h"

#define PIECE_BYTES ((uint64_t)1 << 30) /* that a group cuts messages into by default */

int hosts_refuse_sum(const struct host_sums *s)
{
	return fail(-ERANGE,
		    "all tables together: a step over %" PRIu32 " hosts, or the memory of "
		    "these, has more bytes than 64 bits count",
		    s->costs.options.hosts);
}

/* Messages that a body takes: the first has its header and the beginning, the rest is cut. */
static uint64_t messages_of(uint64_t body)
{
	const uint64_t rest = body > WIRE_INLINE_BYTES ? body - WIRE_INLINE_BYTES : 0;

	return 1 + rest / PIECE_BYTES + (rest % PIECE_BYTES != 0);
}

/* The traffic between a host that has so many replicas and all owners, in one phase. */
struct passing {
	uint64_t bytes, messages;
};

static bool sum_passing(const struct host_sums *s, int phase, uint64_t replicas,
			struct passing *sum)
{
	bool over = false;

	*sum = (struct passing){0};
	for (uint32_t o = 0; o < s->plan->hosts; o++) {
		uint64_t body = 0;

		over |= add_product(&body, replicas, s->own[o].phase[phase]);
		over |= add_product(&sum->bytes, body, 1);
		sum->messages += messages_of(body);
	}
	return over;
}

/* Askers send in a phase, and owners in the forward one. Bodies only; headers come later. */
static bool add_phase(struct host_sums *s, int phase, uint64_t *busiest)
{
	const uint32_t hosts = s->plan->hosts, few = s->plan->replicas / hosts;
	struct passing with[2]; /* hosts with @few replicas, and with one more */
	uint64_t many = s->plan->replicas % hosts;
	bool over = sum_passing(s, phase, few, &with[0]) ||
		    (many && sum_passing(s, phase, (uint64_t)few + 1, &with[1]));

	*busiest = 0;
	for (uint32_t h = 0; !over && h < hosts; h++) {
		struct embeng_hosts_host *host = &s->plan->each[h];
		const uint64_t own = s->own[h].phase[phase], more = host->replicas - few;
		const struct passing *p = &with[more];
		/* With itself a host exchanges nothing. */
		const uint64_t asks = p->bytes - host->replicas * own;
		const uint64_t ask_messages = p->messages - messages_of(host->replicas * own);
		const uint64_t serve_messages = (hosts - many - !more) * messages_of(few * own) +
						(many - more) *
							messages_of(((uint64_t)few + 1) * own);
		const bool forward = phase == PHASE_FORWARD;
		uint64_t serves = 0;

		over |= add_product(&serves, s->plan->replicas - host->replicas, own);
		over |= add_product(&host->sent, forward ? serves : asks, 1);
		over |= add_product(&host->received, forward ? asks : serves, 1);
		host->messages += forward ? serve_messages : ask_messages;
		*busiest = asks > *busiest ? asks : *busiest;
		*busiest = serves > *busiest ? serves : *busiest;
	}
	return over;
}

/* Each message of an exchange has a header; those of a body that was cut have none. */
static bool add_headers(struct host_sums *s, int phases)
{
	const uint64_t bytes = (uint64_t)phases * (s->plan->hosts - 1) * sizeof(struct wire_header);
	bool over = false;

	for (uint32_t h = 0; h < s->plan->hosts; h++) {
		struct embeng_hosts_host *host = &s->plan->each[h];

		over |= add_product(&host->sent, bytes, 1);
		over |= add_product(&host->received, bytes, 1);
	}
	return over;
}

static bool add_memory(struct host_sums *s, struct embeng_hosts_host *host, uint32_t h,
		       uint64_t *bytes)
{
	const uint64_t flight = (uint64_t)s->costs.batches.step_depth + 1;
	uint64_t batch = 0;
	bool over = add_product(&batch, s->plan->replicas, s->served[h]);

	if (s->plan->hosts > 1)
		over |= add_product(&batch, host->replicas, s->home);
	over |= add_product(&host->batch_bytes, flight, batch);
	over |= add_product(&host->row_bytes, host->replicas, s->home_rows);
	if (s->costs.model->engine.pipelining) /* those of the next step come meanwhile */
		over |= add_product(&host->row_bytes, host->replicas, s->home_rows);
	over |= add_product(&host->message_bytes, host->sent, 1);
	over |= add_product(&host->message_bytes, host->received, 1);
	*bytes = host->table_bytes;
	over |= add_product(bytes, host->batch_bytes, 1);
	over |= add_product(bytes, host->row_bytes, 1);
	return over | add_product(bytes, host->message_bytes, 1);
}

static bool sum_hosts(struct host_sums *s)
{
	struct embeng_hosts_plan *plan = s->plan;
	uint64_t all = 0, most = 0, moved = 0;
	bool over = false;

	for (uint32_t h = 0; h < plan->hosts; h++) {
		struct embeng_hosts_host *host = &plan->each[h];
		const uint64_t link = host->sent > host->received ? host->sent : host->received;
		uint64_t bytes;

		over |= add_memory(s, host, h, &bytes);
		over |= add_product(&all, bytes, 1);
		over |= add_product(&plan->sent, host->sent, 1);
		plan->messages += host->messages;
		moved = link > moved ? link : moved;
		if (bytes > plan->most_bytes) {
			plan->most_bytes = bytes;
			plan->fullest = h;
		}
		most = host->messages > most ? host->messages : most;
	}
	plan->mean_bytes = all / plan->hosts;
	plan->balance = plan->sent ? (double)moved * plan->hosts / (double)plan->sent : 1.0;
	plan->seconds += (double)most * plan->message_seconds;
	return over;
}

int hosts_sum(struct host_sums *s)
{
	struct embeng_hosts_plan *plan = s->plan;
	const int phases = s->trains ? PHASES : PHASES - 1;
	bool over = false;

	for (int phase = 0; !over && plan->hosts > 1 && phase < phases; phase++) {
		uint64_t busiest;

		over = add_phase(s, phase, &busiest);
		plan->seconds += 8.0 * (double)busiest / (plan->link_bits * plan->link_share) +
				 plan->exchange_seconds;
	}
	over = over || add_headers(s, phases) || sum_hosts(s);
	return over ? hosts_refuse_sum(s) : 0;
}
