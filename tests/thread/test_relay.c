// SPDX-License-Identifier: MIT
/*
 * Groups over relays, whose frames threads of this program carry as those of Python do: every byte
 * arrives, and a peer that is lost is named at once.
 */
#include <stdlib.h>

#include "../../runtime/python/core/relay.h"
#include "group_help.h"
#include "suite.h"

#define RANKS 3
#define BYTES_MOST 700000

static pthread_barrier_t all_hosts;

/* Carries the frames of one relay to another, until the last one. One that breaks is lost at both ends. */
struct wire {
	struct relay *from, *to;
	uint32_t rank, peer;
	pthread_t thread;
};

static void *carry_frames(void *arg)
{
	struct wire *wire = arg;
	unsigned char *frame = malloc(RELAY_FRAME_BYTES);
	size_t bytes = frame ? relay_take(wire->from, wire->peer, frame) : 0;
	int given = 1;

	while (bytes && given == 1) {
		given = relay_give(wire->to, wire->rank, frame, RELAY_FRAME_BYTES);
		if (given == 1)
			bytes = relay_take(wire->from, wire->peer, frame);
	}
	if (given < 0)
		relay_lose(wire->from, wire->peer);
	free(frame);
	return NULL;
}

static unsigned char relayed_byte(uint32_t step, uint32_t from, uint32_t to, uint64_t i)
{
	return (unsigned char)(step * 17 + from * 5 + to * 3 + i + i / 255);
}

/* Lengths from none to more than a frame, with short and long messages beside each other. */
static uint64_t relayed_length(uint32_t step, uint32_t from, uint32_t to)
{
	static const uint64_t lengths[] = {0,	      1, 3968, 4000, 65536 + 3968, 66000 + 3968,
					   BYTES_MOST};

	return lengths[(step + 3 * from + to) % 7];
}

static void exchange_over_relays(struct host *h)
{
	unsigned char *room = malloc((size_t)RANKS * BYTES_MOST);
	struct embeng_bytes send[RANKS], received[RANKS];

	for (uint32_t step = 0; room && step < 14 && !h->code; step++) {
		const struct embeng_exchange x = EMBENG_INIT(embeng_exchange, .phase = "rows",
							     .step = step, .send = send,
							     .timeout_ns = 30000 * GROUP_MS);
		unsigned char *at = room;

		for (uint32_t to = 0; to < RANKS; to++) {
			send[to] = (struct embeng_bytes){at, relayed_length(step, h->rank, to)};
			for (uint64_t i = 0; i < send[to].bytes; i++)
				*at++ = relayed_byte(step, h->rank, to, i);
		}
		if (host_exchange(h, &x, received))
			break;
		for (uint32_t from = 0; from < RANKS; from++) {
			const unsigned char *bytes = received[from].data;

			if (received[from].bytes != relayed_length(step, from, h->rank))
				h->code = 1;
			for (uint64_t i = 0; !h->code && i < received[from].bytes; i++)
				h->code = bytes[i] != relayed_byte(step, from, h->rank, i);
		}
	}
	free(room);
}

/* Rank 1 is lost to the others, once all have opened the group and before anybody sends in it. */
static void lose_a_peer(struct host *h)
{
	const struct embeng_exchange x = EMBENG_INIT(embeng_exchange, .phase = "ids", .step = 9,
						     .timeout_ns = 30000 * GROUP_MS);
	struct relay *relay = h->transport.self;

	pthread_barrier_wait(&all_hosts);
	if (h->rank != 1)
		relay_lose(relay, 1);
	else
		relay_give(relay, 0, "no frame", 8);
	pthread_barrier_wait(&all_hosts);
	host_exchange(h, &x, NULL);
}

static void run_over_relays(struct host *hosts, void (*run)(struct host *h))
{
	struct relay *relays[RANKS];
	struct wire wires[RANKS * RANKS];
	pthread_t threads[RANKS];

	for (uint32_t rank = 0; rank < RANKS; rank++) {
		relays[rank] = relay_new(rank, RANKS);
		ck_assert_ptr_nonnull(relays[rank]);
		hosts[rank] = (struct host){
			.options = EMBENG_INIT(embeng_group_options,
					       .deadline_ns = 30000 * GROUP_MS,
					       .piece_bytes = 100000),
			.run = run,
			.rank = rank,
			.ranks = RANKS,
		};
		relay_fill(relays[rank], "relay", &hosts[rank].transport);
	}
	for (uint32_t i = 0; i < RANKS * RANKS; i++) {
		wires[i] = (struct wire){.from = relays[i / RANKS],
					 .to = relays[i % RANKS],
					 .rank = i / RANKS,
					 .peer = i % RANKS};
		if (wires[i].rank != wires[i].peer)
			pthread_create(&wires[i].thread, NULL, carry_frames, &wires[i]);
	}
	for (uint32_t rank = 0; rank < RANKS; rank++)
		pthread_create(&threads[rank], NULL, host_thread, &hosts[rank]);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		pthread_join(threads[rank], NULL);
	for (uint32_t i = 0; i < RANKS * RANKS; i++) {
		if (wires[i].rank != wires[i].peer)
			pthread_join(wires[i].thread, NULL);
	}
	for (uint32_t rank = 0; rank < RANKS; rank++)
		relay_put(relays[rank]);
}

START_TEST(relayed_bytes_arrive)
{
	struct host hosts[RANKS];

	run_over_relays(hosts, exchange_over_relays);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		ck_assert_msg(hosts[rank].code == 0, "rank %u: %d %s", rank, hosts[rank].code,
			      hosts[rank].text);
}
END_TEST

START_TEST(lost_peer_is_named)
{
	struct host hosts[RANKS];

	pthread_barrier_init(&all_hosts, NULL, RANKS);
	run_over_relays(hosts, lose_a_peer);
	pthread_barrier_destroy(&all_hosts);
	for (uint32_t rank = 0; rank < RANKS; rank += 2) {
		ck_assert_msg(hosts[rank].code == -EHOSTDOWN, "rank %u: %d %s", rank,
			      hosts[rank].code, hosts[rank].text);
		ck_assert_ptr_nonnull(strstr(hosts[rank].text, "step 9, ids: "));
		ck_assert_ptr_nonnull(strstr(hosts[rank].text, "host 1 (relay)"));
		ck_assert_uint_lt(hosts[rank].took, 5000 * GROUP_MS);
	}
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_test(tcase, relayed_bytes_arrive);
	tcase_add_test(tcase, lost_peer_is_named);
}

int main(void)
{
	return suite_main("relay", add_tests);
}
