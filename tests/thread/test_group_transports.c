// SPDX-License-Identifier: MIT
/* Transports of a program that break their rules: no call waits for ever, and errors name the host and are below 0. */
#include "counted_transport.h"
#include "group_help.h"
#include "suite.h"

#define RANKS 3
#define BROKEN 1
#define DEADLINE_MS 400u

/*
 * The ways in which the transport of one host is broken, from its @from-th operation on. Those that a transport begins
 * before that are whole.
 */
enum broken {
	POST_FAILS,
	POST_IS_NO_ERRNO,
	TEST_FAILS,
	TEST_IS_NO_ERRNO,
	MESSAGE_FAILS,
	MESSAGE_IS_NO_ERRNO,
	NEVER_DONE,
	DONE_AT_ONCE,
	MOVED_NOTHING,
	MOVED_TOO_MUCH,
	BROKEN_KINDS,
};

struct broken_transport {
	struct counted below;
	enum broken kind;
	unsigned int from, begun;
};

struct operation {
	struct embeng_message *messages;
	size_t count;
	void *below;
	bool whole;
};

static int post_broken(void *self, struct embeng_message *messages, size_t count, void **op)
{
	struct broken_transport *t = self;
	struct operation *o = calloc(1, sizeof(*o));
	int ret = 0;

	*o = (struct operation){messages, count, NULL, ++t->begun < t->from};
	if (!o->whole && t->kind <= POST_IS_NO_ERRNO)
		ret = t->kind == POST_FAILS ? -EIO : 7;
	ret = ret ? ret : counted_post(&t->below, messages, count, &o->below);
	*op = o;
	if (ret)
		free(o);
	return ret;
}

static void spoil_message(enum broken kind, struct embeng_message *m)
{
	if (kind == MESSAGE_FAILS || kind == MESSAGE_IS_NO_ERRNO)
		m->error = kind == MESSAGE_FAILS ? -EIO : 5;
	else if (m->receive && kind == MOVED_NOTHING)
		m->moved = 0;
	else if (m->receive && kind == MOVED_TOO_MUCH)
		m->moved = UINT64_MAX;
}

/* Nothing has come, and all receives are said to be done. */
static int end_at_once(struct operation *o)
{
	for (size_t i = 0; i < o->count; i++) {
		struct embeng_message *m = &o->messages[i];

		if (m->receive && !m->done)
			memset(m->data, 0x5a, m->bytes);
		m->moved = m->bytes;
		m->done = 1;
	}
	return 0;
}

static int test_broken(void *self, void *op)
{
	struct broken_transport *t = self;
	struct operation *o = op;
	int ret;

	if (!o->whole && t->kind == DONE_AT_ONCE)
		return end_at_once(o);
	if (!o->whole && t->kind == NEVER_DONE)
		return 0;
	if (!o->whole && (t->kind == TEST_FAILS || t->kind == TEST_IS_NO_ERRNO))
		return t->kind == TEST_FAILS ? -EIO : 7;
	ret = counted_test(&t->below, o->below);
	for (size_t i = 0; !o->whole && i < o->count; i++)
		if (o->messages[i].done)
			spoil_message(t->kind, &o->messages[i]);
	return ret;
}

static int drop_broken(void *self, void *op)
{
	struct broken_transport *t = self;
	struct operation *o = op;
	int ret = counted_drop(&t->below, o->below);

	free(o);
	return ret;
}

static void run_exchanges(struct host *h)
{
	for (uint64_t step = 1; step <= 4; step++) {
		const struct embeng_exchange x = EMBENG_INIT(embeng_exchange, .phase = "rows",
							     .step = step);

		if (host_exchange(h, &x, NULL))
			break;
	}
}

static void open_broken(struct broken_transport *t, struct embeng_transport *transport)
{
	count_transport(transport, &t->below);
	transport->self = t;
	transport->post = post_broken;
	transport->test = test_broken;
	transport->drop = drop_broken;
}

START_TEST(broken_transport_ends_the_group)
{
	static const unsigned int from[] = {1, 3, 4, 5};
	struct broken_transport broken = {.kind = (enum broken)(_i % BROKEN_KINDS),
					  .from = from[_i / BROKEN_KINDS]};
	struct embeng_transport transports[RANKS];
	struct host hosts[RANKS];

	/* The thread transport moves all messages on, whichever of them is looked at. */
	if (broken.kind == NEVER_DONE)
		broken.from = 1;
	ck_assert_int_eq(embeng_group_threads(RANKS, transports), 0);
	open_broken(&broken, &transports[BROKEN]);
	hosts_run_over(hosts, transports, RANKS, run_exchanges,
		       &EMBENG_INIT(embeng_group_options, .deadline_ns = DEADLINE_MS * GROUP_MS));
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		ck_assert_int_lt(hosts[rank].code, 0);
		/* The broken one cannot tell the others what it knows, and waits for what they do not send. */
		if (rank != BROKEN)
			ck_assert_msg(strstr(hosts[rank].text, "host 1") != NULL, "%s",
				      hosts[rank].text);
	}
}
END_TEST

/* Times that the clock does not reach are no limit, and not over at once. */
START_TEST(longest_times_are_no_limit)
{
	struct embeng_transport transports[2];
	struct host hosts[2];

	ck_assert_int_eq(embeng_group_threads(2, transports), 0);
	hosts_run_over(hosts, transports, 2, run_exchanges,
		       &EMBENG_INIT(embeng_group_options, .deadline_ns = UINT64_MAX));
	for (uint32_t rank = 0; rank < 2; rank++) {
		ck_assert_msg(!hosts[rank].code, "%s", hosts[rank].text);
	}
}
END_TEST

START_TEST(longest_timeout_of_an_exchange)
{
	const struct embeng_exchange x = EMBENG_INIT(embeng_exchange, .phase = "rows", .step = 1,
						     .timeout_ns = UINT64_MAX);
	struct embeng_transport transport;
	struct embeng_group *g;

	ck_assert_int_eq(embeng_group_threads(1, &transport), 0);
	ck_assert_int_eq(embeng_group_open(&transport, NULL, &g, NULL), 0);
	ck_assert_int_eq(embeng_group_exchange(g, &x, NULL, NULL), 0);
	embeng_group_close(g);
	ck_assert_uint_eq(embeng_group_ranks(NULL), 0);
	ck_assert_uint_eq(embeng_group_rank(NULL), 0);
	ck_assert_str_eq(embeng_group_host(NULL, 0), "");
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 30);
	tcase_add_loop_test(tcase, broken_transport_ends_the_group, 0, 4 * BROKEN_KINDS);
	tcase_add_test(tcase, longest_times_are_no_limit);
	tcase_add_test(tcase, longest_timeout_of_an_exchange);
}

int main(void)
{
	return suite_main("group_transports", add_tests);
}
