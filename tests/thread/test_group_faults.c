// SPDX-License-Identifier: MIT
/* Faults in a group: every host that is left says the same, names the culprit, and is in time. */
#include <unistd.h>

#include "counted_transport.h"
#include "group_help.h"
#include "suite.h"

#define RANKS 4
#define CULPRIT 2
#define HELLO_MESSAGES (RANKS - 1) /* that a rank sends before its first exchange */

static unsigned char payload[9000];

/* Four exchanges of short bodies, or of bodies with pieces; the first failure ends them. */
static void run_steps(struct host *h, uint64_t bytes)
{
	struct embeng_bytes send[RANKS], received[RANKS];

	for (uint32_t rank = 0; rank < h->ranks; rank++)
		send[rank] = (struct embeng_bytes){payload, bytes};
	for (uint64_t step = 1; step <= 4; step++) {
		const struct embeng_exchange x = EMBENG_INIT(embeng_exchange, .phase = "rows",
							     .step = step, .send = send);

		if (host_exchange(h, &x, received))
			break;
		for (uint32_t from = 0; from < h->ranks; from++) {
			if (received[from].bytes == bytes &&
			    !memcmp(received[from].data, payload, bytes))
				continue;
			h->code = 1;
			snprintf(h->text, sizeof(h->text), "wrong bytes of %u", from);
		}
	}
	if (h->code < 0) {
		const struct embeng_exchange x = EMBENG_INIT(embeng_exchange, .phase = "rows",
							     .step = 9);
		struct embeng_error error = EMBENG_INIT(embeng_error);
		const int ret = embeng_group_exchange(h->group, &x, received, &error);

		if (ret != -ESHUTDOWN || !strstr(error.text, h->text))
			h->code = 2;
	}
}

static void run_short(struct host *h)
{
	run_steps(h, 100);
}

static void run_long(struct host *h)
{
	run_steps(h, sizeof(payload));
}

static const struct {
	enum thread_fault_kind kind;
	int code;
	const char *words;
} effects[] = {
	{THREAD_DROP, -EBADMSG, "host 2 (thread2) sent message 2 of the channel where 1"},
	{THREAD_DELAY, -ETIME, "not all messages passed between host 2 (thread2) and host "},
	{THREAD_REORDER, -EBADMSG, "host 2 (thread2) sent message 2"},
	{THREAD_TRUNCATE, -EBADMSG, "host 2 (thread2) sent a message of 114 bytes"},
	{THREAD_DUPLICATE, -EBADMSG, "host 2 (thread2) sent message "},
	{THREAD_CORRUPT_HEAD, -EBADMSG, "host 2 (thread2) sent a header that was damaged"},
	{THREAD_CORRUPT_TAIL, -EBADMSG, "the 100 bytes of host 2 (thread2) were damaged"},
	{THREAD_STOP, -ETIME, "host 2 (thread2) sent nothing for 0.4 s; hosts 0, 1, 3 did"},
	{THREAD_DIE, -EHOSTDOWN, "host 2 (thread2)"},
};

/* Each fault, at each message of the first step. */
START_TEST(faults_name_the_host)
{
	const bool silent = effects[_i].kind == THREAD_STOP || effects[_i].kind == THREAD_DIE;

	for (uint32_t m = 0; m < RANKS - 1; m++) {
		const struct thread_fault fault = {.kind = effects[_i].kind,
						   .rank = CULPRIT,
						   .message = HELLO_MESSAGES + m,
						   .ns = 10 * GROUP_DEADLINE};
		struct host hosts[RANKS];

		hosts_run(hosts, RANKS, run_short, &fault, 1, NOBODY);
		hosts_agree(hosts, RANKS, silent ? CULPRIT : NOBODY, effects[_i].code,
			    effects[_i].words);
		ck_assert_int_lt(hosts[CULPRIT].code, 0);
	}
}
END_TEST

/* A delay below the deadline costs time alone. */
START_TEST(delay_is_no_failure)
{
	const struct thread_fault fault = {.kind = THREAD_DELAY,
					   .rank = CULPRIT,
					   .message = HELLO_MESSAGES + 1,
					   .ns = 200 * GROUP_MS};
	struct host hosts[RANKS];
	const uint64_t began = now_ns();

	hosts_run(hosts, RANKS, run_short, &fault, 1, NOBODY);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		ck_assert_msg(hosts[rank].code == 0, "%s", hosts[rank].text);
	ck_assert_uint_ge(now_ns() - began, 200 * GROUP_MS);
}
END_TEST

/* A host that stops among the pieces of a long body, at each of its messages. */
START_TEST(stop_in_the_middle)
{
	const struct thread_fault fault = {
		.kind = THREAD_STOP, .rank = CULPRIT, .message = HELLO_MESSAGES + (uint32_t)_i};
	struct host hosts[RANKS];

	hosts_run(hosts, RANKS, run_long, &fault, 1, NOBODY);
	hosts_agree(hosts, RANKS, CULPRIT, -ETIME, "step 1, rows: host 2 (thread2) ");
	ck_assert_int_eq(hosts[CULPRIT].code, -ETIME);
	ck_assert_ptr_nonnull(strstr(hosts[CULPRIT].text, "hosts 0, 1, 3"));
}
END_TEST

/* The same for a host that dies. */
START_TEST(death_in_the_middle)
{
	const struct thread_fault fault = {
		.kind = THREAD_DIE, .rank = CULPRIT, .message = HELLO_MESSAGES + (uint32_t)_i};
	struct host hosts[RANKS];

	hosts_run(hosts, RANKS, run_long, &fault, 1, NOBODY);
	hosts_agree(hosts, RANKS, CULPRIT, -EHOSTDOWN, "host 2 (thread2)");
	ck_assert_int_eq(hosts[CULPRIT].code, -EHOSTDOWN);
}
END_TEST

/*
 * A transport that looks at all operations when it is asked about one. The peer's death comes to light when
 * it is asked about the pieces, after the first messages were looked at. @below is the transport's self.
 */
struct late_news {
	struct counted below;
	struct embeng_message *first; /* the latest send and receive of first messages */
	void *pieces;
};

static int post_and_note(void *self, struct embeng_message *messages, size_t count, void **op)
{
	struct late_news *news = self;
	const int ret = counted_post(&news->below, messages, count, op);

	if (count == 2 && messages[1].receive)
		news->first = messages;
	else if (!messages[0].receive && messages[0].bytes == 4096)
		news->pieces = *op;
	return ret;
}

static int test_and_kill(void *self, void *op)
{
	struct late_news *news = self;
	const int ret = counted_test(&news->below, op);

	if (op == news->pieces && !news->first[1].done) {
		news->first[1].error = -EHOSTDOWN;
		news->first[1].done = 1;
	}
	return ret;
}

START_TEST(death_comes_to_light_late)
{
	/* The other rank's first message of the step is its last. */
	const struct thread_fault fault = {.kind = THREAD_STOP, .rank = 1, .message = 1};
	struct embeng_transport transports[2];
	struct late_news news = {0};
	struct host hosts[2];

	ck_assert_int_eq(threads_make(2, &fault, 1, transports), 0);
	count_transport(&transports[0], &news.below);
	transports[0].post = post_and_note;
	transports[0].test = test_and_kill;
	hosts_run_over(hosts, transports, 2, run_long,
		       &EMBENG_INIT(embeng_group_options, .deadline_ns = GROUP_DEADLINE,
				    .piece_bytes = 4096));
	ck_assert_int_eq(hosts[0].code, -EHOSTDOWN);
	ck_assert_str_eq(hosts[0].text,
			 "step 1, rows: the transport of host 0 (thread0) got no message "
			 "from host 1 (thread1)");
}
END_TEST

/* Notices are lost, too: then a host judges for itself, and still names the right one. */
START_TEST(lost_notices)
{
	const struct thread_fault faults[] = {
		{.kind = THREAD_STOP, .rank = CULPRIT, .message = HELLO_MESSAGES},
		{.kind = THREAD_DROP, .rank = 0, .message = (uint64_t)HELLO_MESSAGES * 2},
		{.kind = THREAD_CORRUPT_TAIL,
		 .rank = 0,
		 .message = (uint64_t)HELLO_MESSAGES * 2 + 2},
		{.kind = THREAD_DROP, .rank = 1, .message = (uint64_t)HELLO_MESSAGES * 2 + 2},
	};
	struct host hosts[RANKS];

	hosts_run(hosts, RANKS, run_short, faults, 4, NOBODY);
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		if (rank == CULPRIT)
			continue;
		ck_assert_int_eq(hosts[rank].code, -ETIME);
		ck_assert_ptr_nonnull(strstr(hosts[rank].text, "step 1, rows: host"));
		ck_assert_ptr_nonnull(strstr(hosts[rank].text, "2"));
		ck_assert_uint_lt(hosts[rank].took, GROUP_DEADLINE + GROUP_SLACK);
	}
}
END_TEST

/* One host is different: in its step, phase, model, rates or replicas. */
static int difference;

static void run_different(struct host *h)
{
	struct embeng_exchange x = EMBENG_INIT(embeng_exchange, .phase = "counts", .step = 3,
					       .model = 5, .rates = 6, .replicas = 7);

	if (h->rank == CULPRIT) {
		x.step += difference == 0;
		x.phase = difference == 1 ? "sums" : x.phase;
		x.model += difference == 2;
		x.rates += difference == 3;
		x.replicas += difference == 4;
	}
	host_exchange(h, &x, NULL);
}

START_TEST(difference_is_named)
{
	/* These words are in the sentence, whichever of the two hosts found it. */
	static const char *const words[][2] = {
		{"is at step 4, counts", "is at step 3, counts"},
		{"is at step 3, sums", "is at step 3, counts"},
		{"0000000000000006", "0000000000000005"},
		{"0000000000000007", "0000000000000006"},
		{"8", "7"},
	};
	static const char *const what[] = {"is at step", "is at step", "the model",
					   "the learning rates", "replicas"};
	struct host hosts[RANKS];

	difference = _i;
	hosts_run(hosts, RANKS, run_different, NULL, 0, NOBODY);
	hosts_agree(hosts, RANKS, NOBODY, -EPROTO, "host 2");
	ck_assert_msg(strstr(hosts[0].text, what[_i]) != NULL, "%s", hosts[0].text);
	ck_assert_msg(strstr(hosts[0].text, words[_i][0]) != NULL, "%s", hosts[0].text);
	ck_assert_msg(strstr(hosts[0].text, words[_i][1]) != NULL, "%s", hosts[0].text);
}
END_TEST

START_TEST(absent_at_the_hello)
{
	struct host hosts[RANKS];

	hosts_run(hosts, RANKS, run_short, NULL, 0, 3);
	hosts_agree(hosts, RANKS, 3, -ETIME,
		    "step 0, hello: host 3 sent nothing for 0.4 s; hosts 0, 1, 2 did");
}
END_TEST

/* The program of one host comes too late. Its process answers, which the sentence says. */
static void run_late(struct host *h)
{
	const struct embeng_exchange x = EMBENG_INIT(embeng_exchange, .phase = "sums", .step = 2);

	if (h->rank == CULPRIT)
		usleep((GROUP_DEADLINE + 300 * GROUP_MS) / 1000);
	host_exchange(h, &x, NULL);
}

START_TEST(late_program)
{
	struct host hosts[RANKS];

	hosts_run(hosts, RANKS, run_late, NULL, 0, NOBODY);
	hosts_agree(hosts, RANKS, NOBODY, -ETIME,
		    "step 2, sums: host 2 (thread2) sent nothing for 0.4 s; hosts 0, 1, 3 did. The "
		    "process is alive");
	ck_assert_int_eq(hosts[CULPRIT].code, -ETIME);
}
END_TEST

/* All begin an exchange that may take long, and one host does so after three deadlines. */
static void run_patient(struct host *h)
{
	const struct embeng_exchange x = EMBENG_INIT(embeng_exchange, .phase = "ids", .step = 3,
						     .timeout_ns = 100 * GROUP_DEADLINE);

	if (h->rank == CULPRIT)
		usleep(3 * GROUP_DEADLINE / 1000);
	host_exchange(h, &x, NULL);
}

START_TEST(living_hosts_are_waited_for)
{
	struct host hosts[RANKS];

	hosts_run(hosts, RANKS, run_patient, NULL, 0, NOBODY);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		ck_assert_msg(hosts[rank].code == 0, "%s", hosts[rank].text);
}
END_TEST

/* It stops when it is asked for the first time, or later: it answers three hosts each time. */
START_TEST(silent_host_is_not_waited_for)
{
	const struct thread_fault fault = {.kind = THREAD_STOP,
					   .rank = CULPRIT,
					   .message = HELLO_MESSAGES + (uint32_t)_i * (RANKS - 1)};
	struct host hosts[RANKS];

	hosts_run(hosts, RANKS, run_patient, &fault, 1, NOBODY);
	hosts_agree(hosts, RANKS, CULPRIT, -ETIME,
		    "step 3, ids: host 2 (thread2) sent nothing for 0.4 s; hosts 0, 1, 3 did");
	ck_assert_int_lt(hosts[CULPRIT].code, 0);
}
END_TEST

static void run_leaving(struct host *h)
{
	const struct embeng_exchange x = EMBENG_INIT(embeng_exchange, .phase = "ids", .step = 5);

	if (h->rank != CULPRIT)
		host_exchange(h, &x, NULL);
}

START_TEST(host_leaves)
{
	struct host hosts[RANKS];

	hosts_run(hosts, RANKS, run_leaving, NULL, 0, NOBODY);
	hosts_agree(hosts, RANKS, CULPRIT, -EHOSTDOWN,
		    "step 5, ids: host 2 (thread2) has left: it closed its group");
}
END_TEST

static void add_tests(TCase *tcase)
{
	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (unsigned char)(i * 7 + i / 256);
	tcase_add_loop_test(tcase, faults_name_the_host, 0, sizeof(effects) / sizeof(*effects));
	tcase_add_test(tcase, delay_is_no_failure);
	tcase_add_loop_test(tcase, stop_in_the_middle, 0, 3 * (RANKS - 1));
	tcase_add_loop_test(tcase, death_in_the_middle, 0, 3 * (RANKS - 1));
	tcase_add_test(tcase, death_comes_to_light_late);
	tcase_add_test(tcase, lost_notices);
	tcase_add_loop_test(tcase, difference_is_named, 0, 5);
	tcase_add_test(tcase, absent_at_the_hello);
	tcase_add_test(tcase, late_program);
	tcase_add_test(tcase, living_hosts_are_waited_for);
	tcase_add_loop_test(tcase, silent_host_is_not_waited_for, 0, 3);
	tcase_add_test(tcase, host_leaves);
}

int main(void)
{
	return suite_main("group_faults", add_tests);
}
