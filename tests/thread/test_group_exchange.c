// SPDX-License-Identifier: MIT
/* Exchanges between the threads of a group: every byte arrives, whatever its length and cut. */
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "embeng.h"
#include "group_help.h"
#include "suite.h"

#define ROUNDS 6
#define BYTES_MOST 300000

/* Bytes from one host to another in a round: none, few, around the first message's limit, many. */
static uint64_t length_of(uint32_t round, uint32_t from, uint32_t to)
{
	static const uint64_t lengths[] = {0,	 1,	      3967,	   3968,
					   3969, 3968 + 4096, 3968 + 4097, BYTES_MOST};

	return lengths[(round * 5 + from * 3 + to) % 8];
}

static unsigned char byte_of(uint32_t round, uint32_t from, uint32_t to, uint64_t i)
{
	return (unsigned char)(round * 31 + from * 7 + to * 3 + i * 13 + i / 251);
}

static void fill_bytes(const struct host *h, uint32_t round, unsigned char *room,
		       struct embeng_bytes *send)
{
	for (uint32_t to = 0; to < h->ranks; to++) {
		send[to] = (struct embeng_bytes){room, length_of(round, h->rank, to)};
		for (uint64_t i = 0; i < send[to].bytes; i++)
			room[i] = byte_of(round, h->rank, to, i);
		room += send[to].bytes;
	}
}

static int count_wrong(const struct host *h, uint32_t round, const struct embeng_bytes *received)
{
	int wrong = 0;

	for (uint32_t from = 0; from < h->ranks; from++) {
		const unsigned char *bytes = received[from].data;

		wrong += received[from].bytes != length_of(round, from, h->rank);
		for (uint64_t i = 0; !wrong && i < received[from].bytes; i++)
			wrong += bytes[i] != byte_of(round, from, h->rank, i);
	}
	return wrong;
}

static void exchange_rounds(struct host *h)
{
	unsigned char *room = malloc((size_t)GROUP_RANKS_MOST * BYTES_MOST);
	struct embeng_bytes send[GROUP_RANKS_MOST], received[GROUP_RANKS_MOST];

	for (uint32_t round = 0; room && round < ROUNDS; round++) {
		const struct embeng_exchange x = EMBENG_INIT(embeng_exchange, .phase = "rows",
							     .step = round, .send = send);

		fill_bytes(h, round, room, send);
		if (host_exchange(h, &x, received))
			break;
		if (count_wrong(h, round, received)) {
			h->code = 1;
			snprintf(h->text, sizeof(h->text), "round %u has wrong bytes", round);
		}
	}
	free(room);
}

START_TEST(bytes_arrive)
{
	static const uint32_t ranks[] = {1, 2, 3, 4, 8};
	struct host hosts[GROUP_RANKS_MOST];

	hosts_run(hosts, ranks[_i], exchange_rounds, NULL, 0, NOBODY);
	for (uint32_t rank = 0; rank < ranks[_i]; rank++)
		ck_assert_msg(hosts[rank].code == 0, "rank %u: %s", rank, hosts[rank].text);
}
END_TEST

/* Two channels are in flight; the second is ended first, and what came stays until the next begin. */
static void overlap_channels(struct host *h)
{
	struct embeng_bytes send[GROUP_RANKS_MOST], first[GROUP_RANKS_MOST],
		second[GROUP_RANKS_MOST];
	struct embeng_error error = EMBENG_INIT(embeng_error);
	int ret = 0;

	for (uint32_t step = 0; step < 20 && !ret; step++) {
		uint32_t values[2] = {step * 100 + h->rank, step * 1000 + h->rank};
		struct embeng_exchange x = EMBENG_INIT(embeng_exchange, .phase = "ids",
						       .step = step, .send = send);

		for (uint32_t to = 0; to < h->ranks; to++)
			send[to] = (struct embeng_bytes){&values[0], 4};
		ret = embeng_group_begin(h->group, &x, &error);
		x.channel = 2;
		for (uint32_t to = 0; to < h->ranks; to++)
			send[to] = (struct embeng_bytes){&values[1], 4};
		ret = ret ? ret : embeng_group_begin(h->group, &x, &error);
		values[0] = values[1] = 0; /* they were copied */
		ret = ret ? ret : embeng_group_end(h->group, 2, second, &error);
		ret = ret ? ret : embeng_group_end(h->group, 0, first, &error);
		for (uint32_t from = 0; from < h->ranks && !ret; from++) {
			memcpy(&values[0], first[from].data, 4);
			memcpy(&values[1], second[from].data, 4);
			if (values[0] != step * 100 + from || values[1] != step * 1000 + from)
				h->code = 1;
		}
	}
	host_note(h, ret, &error, now_ns());
}

START_TEST(channels_overlap)
{
	struct host hosts[3];

	hosts_run(hosts, 3, overlap_channels, NULL, 0, NOBODY);
	for (uint32_t rank = 0; rank < 3; rank++)
		ck_assert_msg(hosts[rank].code == 0, "rank %u: %s", rank, hosts[rank].text);
}
END_TEST

/* Hosts 1 and 2 cannot take part in step 1: all hear of host 1, and step 2 works. */
static void say_status(struct host *h)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);
	struct embeng_exchange x = EMBENG_INIT(embeng_exchange, .phase = "ids", .step = 1);
	struct embeng_bytes received[GROUP_RANKS_MOST];
	int ret;

	if (h->rank == 1 || h->rank == 2) {
		x.status = h->rank == 1 ? -ERANGE : -EINVAL;
		x.text = h->rank == 1 ? "sample 12, id 99 is outside its table" : "another";
	}
	ret = embeng_group_exchange(h->group, &x, received, &error);
	h->code = ret == -ERANGE ? 0 : 1;
	if (error.code != -ERANGE ||
	    strcmp(error.text, "host 1 (thread1) says: sample 12, id 99 is outside its table"))
		h->code = 2;
	x.status = 0;
	x.step = 2;
	if (!h->code)
		host_exchange(h, &x, received);
}

START_TEST(status_is_everybodys)
{
	struct host hosts[4];

	hosts_run(hosts, 4, say_status, NULL, 0, NOBODY);
	for (uint32_t rank = 0; rank < 4; rank++)
		ck_assert_msg(hosts[rank].code == 0, "rank %u: %d %s", rank, hosts[rank].code,
			      hosts[rank].text);
}
END_TEST

static void expect_refusal(struct host *h, int ret, int code, const struct embeng_error *error,
			   const char *words)
{
	if (ret == code && strstr(error->text, words))
		return;
	h->code = 1;
	snprintf(h->text, sizeof(h->text), "%d, %.400s", ret, error->text);
}

static void misuse_group(struct host *h)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);
	struct embeng_exchange x = EMBENG_INIT(embeng_exchange, .phase = "", .step = 1);

	expect_refusal(h, embeng_group_begin(h->group, &x, &error), -EINVAL, &error, "phase");
	x.phase = "a phase of 24 bytes, ha!";
	expect_refusal(h, embeng_group_begin(h->group, &x, &error), -EINVAL, &error, "1 to 23");
	x.phase = "rows";
	x.channel = EMBENG_GROUP_CHANNELS;
	expect_refusal(h, embeng_group_begin(h->group, &x, &error), -ERANGE, &error, "channel 4");
	x.channel = 1;
	x.status = -EIO;
	expect_refusal(h, embeng_group_begin(h->group, &x, &error), -EINVAL, &error, "with a text");
	x.status = 0;
	expect_refusal(h, embeng_group_end(h->group, 1, NULL, &error), -EINVAL, &error,
		       "channel 1 has no exchange");
	if (embeng_group_begin(h->group, &x, NULL))
		h->code = 2;
	expect_refusal(h, embeng_group_begin(h->group, &x, &error), -EBUSY, &error,
		       "rows of step 1");
	if (embeng_group_end(h->group, 1, NULL, NULL))
		h->code = 3;
	if (embeng_group_rank(h->group) != h->rank || embeng_group_ranks(h->group) != 2 ||
	    strcmp(embeng_group_host(h->group, 1), "thread1") || *embeng_group_host(h->group, 2))
		h->code = 4;
}

START_TEST(misuse_is_refused)
{
	struct host hosts[2];

	hosts_run(hosts, 2, misuse_group, NULL, 0, NOBODY);
	for (uint32_t rank = 0; rank < 2; rank++)
		ck_assert_msg(hosts[rank].code == 0, "rank %u: %d %s", rank, hosts[rank].code,
			      hosts[rank].text);
}
END_TEST

/* Rank 0 looks, waits a little, and waits to the end, while rank 1 comes late. */
static void wait_for_late_host(struct host *h)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);
	struct embeng_exchange x = EMBENG_INIT(embeng_exchange, .phase = "rows", .step = 6,
					       .channel = 3);
	const struct timespec late = {.tv_nsec = 100 * GROUP_MS};
	uint64_t began;

	expect_refusal(h, embeng_group_wait(h->group, 3, 0, &error), -EINVAL, &error,
		       "channel 3 has no exchange");
	expect_refusal(h, embeng_group_wait(h->group, 4, 0, &error), -EINVAL, &error, "below 4");
	if (h->rank) {
		nanosleep(&late, NULL);
		host_exchange(h, &x, NULL);
		return;
	}
	began = now_ns();
	host_note(h, embeng_group_begin(h->group, &x, &error), &error, began);
	expect_refusal(h, embeng_group_wait(h->group, 3, 0, &error), -ETIME, &error,
		       "rows of step 6 goes on");
	expect_refusal(h, embeng_group_wait(h->group, 3, 20 * GROUP_MS, &error), -ETIME, &error,
		       "goes on");
	if (now_ns() - began < 20 * GROUP_MS)
		h->code = 2;
	host_note(h, embeng_group_wait(h->group, 3, -1, &error), &error, began);
	host_note(h, embeng_group_wait(h->group, 3, 0, &error), &error, began);
	host_note(h, embeng_group_end(h->group, 3, NULL, &error), &error, began);
}

START_TEST(waits_end_before_exchanges)
{
	struct host hosts[2];

	hosts_run(hosts, 2, wait_for_late_host, NULL, 0, NOBODY);
	for (uint32_t rank = 0; rank < 2; rank++)
		ck_assert_msg(hosts[rank].code == 0, "rank %u: %d %s", rank, hosts[rank].code,
			      hosts[rank].text);
}
END_TEST

static int open_alone(const struct embeng_transport *t, const struct embeng_group_options *o,
		      struct embeng_error *error)
{
	struct embeng_group *g = NULL;
	int ret = embeng_group_open(t, o, &g, error);

	embeng_group_close(g);
	return ret;
}

START_TEST(opening_is_refused)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);
	struct embeng_group_options o = EMBENG_INIT(embeng_group_options, .piece_bytes = 4095);
	struct embeng_transport t, bad;

	ck_assert_int_eq(embeng_group_threads(0, &t), -ERANGE);
	ck_assert_int_eq(embeng_group_threads(4097, &t), -ERANGE);
	ck_assert_int_eq(embeng_group_threads(1, &t), 0);
	bad = t;
	bad.rank = 1;
	ck_assert_int_eq(open_alone(&bad, NULL, &error), -ERANGE);
	ck_assert_ptr_nonnull(strstr(error.text, "rank 1 of 1"));
	bad = t;
	bad.wake = NULL;
	ck_assert_int_eq(open_alone(&bad, NULL, &error), -EINVAL);
	ck_assert_int_eq(open_alone(&t, &o, &error), -ERANGE); /* and closes the transport */
	ck_assert_ptr_nonnull(strstr(error.text, "4096 to 1073741824"));
}
END_TEST

static int say_yes(void *arg)
{
	++*(int *)arg;
	return 1;
}

/* The other rank never comes, and the deadline is five minutes away. */
START_TEST(program_ends_opening)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);
	struct embeng_transport transports[2];
	int asked = 0;

	ck_assert_int_eq(embeng_group_threads(2, transports), 0);
	embeng_ask(say_yes, &asked);
	ck_assert_int_eq(open_alone(&transports[0], NULL, &error), -EINTR);
	embeng_ask(NULL, NULL);
	ck_assert_int_eq(asked, 1);
	ck_assert_ptr_nonnull(strstr(error.text, "embeng_group_open: the program ended the call"));
	transports[1].close(transports[1].self);
}
END_TEST

/* One rank is a legal group, and a child has no part in it. */
START_TEST(child_has_no_group)
{
	struct embeng_exchange x = EMBENG_INIT(embeng_exchange, .phase = "ids");
	struct embeng_transport t;
	struct embeng_group *g;
	int status;
	pid_t child;

	ck_assert_int_eq(embeng_group_threads(1, &t), 0);
	ck_assert_int_eq(embeng_group_open(&t, NULL, &g, NULL), 0);
	child = fork();
	if (!child) {
		const int ret = embeng_group_begin(g, &x, NULL);

		embeng_group_close(g);
		_exit(ret == -ENOTSUP ? 7 : 1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	ck_assert_int_eq(embeng_group_exchange(g, &x, NULL, NULL), 0);
	embeng_group_close(g);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_loop_test(tcase, bytes_arrive, 0, 5);
	tcase_add_test(tcase, channels_overlap);
	tcase_add_test(tcase, status_is_everybodys);
	tcase_add_test(tcase, misuse_is_refused);
	tcase_add_test(tcase, waits_end_before_exchanges);
	tcase_add_test(tcase, opening_is_refused);
	tcase_add_test(tcase, program_ends_opening);
	tcase_add_test(tcase, child_has_no_group);
}

int main(void)
{
	return suite_main("group_exchange", add_tests);
}
