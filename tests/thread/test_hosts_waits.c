// SPDX-License-Identifier: MIT
/* Waits on a handle over all hosts: deadlines, steps ahead, interrupts, the descriptor, threads that are told. */
#include <poll.h>
#include <unistd.h>

#include "hosts_help.h"
#include "suite.h"

#define DEADLINE (20 * 1000 * GROUP_MS)
#define HOSTS 2

static struct run make_run(void)
{
	return (struct run){.optimizer = embeng_adagrad(0.1f), .replicas = 2, .steps = 6};
}

static void run_well(struct run *run, uint32_t count, void (*body)(struct run_host *h))
{
	struct run_host hosts[RUN_HOSTS_MOST];

	run_hosts(run, count, body, NULL, 0, DEADLINE, hosts);
	for (uint32_t i = 0; i < count; i++)
		ck_assert_msg(!hosts[i].code, "host %u: %d, %s", i, hosts[i].code, hosts[i].text);
}

static void run_two(void (*body)(struct run_host *h))
{
	struct run run = make_run();

	run_well(&run, HOSTS, body);
	run_free_rows(&run);
}

/* Hosts that train by @body have the bits of one process. */
static void compare_rows(struct run *alone, struct run *group, uint32_t count,
			 void (*body)(struct run_host *h))
{
	run_alone(alone);
	run_well(group, count, body);
	ck_assert_uint_eq(run_differences(alone, group), 0);
	run_free_rows(alone);
	run_free_rows(group);
}

static void expect_last(int ret, int code, const char *words)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);

	embeng_last_error(&error);
	ck_assert_msg(ret == code, "%d, %s", ret, error.text);
	ck_assert_msg(strstr(error.text, words) != NULL, "%s", error.text);
}

/* @ret: return value of the last call of the training */
static void keep_rows(struct run_host *h, int ret)
{
	if (run_note(h, ret) || run_note(h, hosts_enter(h->e)))
		return;
	run_keep_rows(h->run, h->e);
	hosts_leave(h->e);
}

/* Host 0 enqueues long before host 1 does, is interrupted meanwhile, and calls again. */
static void interrupt_enqueue(struct run_host *h)
{
	struct embeng_batch *b = embeng_batch_new(h->e, EMBENG_TRAIN, h->rank);

	if (h->rank) {
		usleep(300000);
		ck_assert_int_eq(run_enqueue(h->run, h->e, b, 1, 1), 0);
	} else {
		embeng_interrupt(h->e, 1);
		for (int i = 0; i < 3; i++)
			expect_last(run_enqueue(h->run, h->e, b, 1, 0), -EINTR,
				    "embeng_interrupt()");
		embeng_interrupt(h->e, 0);
		ck_assert_int_eq(run_enqueue(h->run, h->e, b, 1, 0), 0);
	}
	ck_assert_int_eq(run_apply(h->run, h->e, 1, h->rank), 0);
	embeng_batch_free(b);
	keep_rows(h, embeng_flush(h->e, -1));
}

START_TEST(interrupted_enqueue_goes_on)
{
	struct run alone = make_run(), group;

	alone.steps = 1;
	group = alone;
	compare_rows(&alone, &group, HOSTS, interrupt_enqueue);
}
END_TEST

/* Each host has replica @rank. The second step is enqueued before the first has gradients. */
static void wait_for_gradients(struct run_host *h)
{
	struct embeng_activations act = EMBENG_INIT(embeng_activations);
	struct embeng_batch *b = embeng_batch_new(h->e, EMBENG_TRAIN, h->rank);
	const uint32_t r = h->rank;
	char words[64];

	snprintf(words, sizeof(words), "missing is step 1: gradients of replica %u", r);
	expect_last(embeng_dequeue(h->e, r, 0, &act), -EPROTO, "nothing is enqueued");
	ck_assert_int_eq(run_enqueue(h->run, h->e, b, 1, r), 0);
	ck_assert_int_eq(run_enqueue(h->run, h->e, b, 2, r), 0);
	ck_assert_int_eq(embeng_dequeue(h->e, r, 0, &act), 0);
	ck_assert_uint_eq(act.step, 1);
	expect_last(embeng_dequeue(h->e, r, 0, &act), -ETIME, words);
	expect_last(embeng_dequeue(h->e, r, 50 * 1000000, &act), -ETIME, words);
	expect_last(embeng_dequeue(h->e, r, -1, &act), -EDEADLK, words);
	embeng_interrupt(h->e, 1);
	expect_last(embeng_dequeue(h->e, r, -1, &act), -EINTR, "embeng_interrupt()");
	embeng_interrupt(h->e, 0);
	ck_assert_int_eq(embeng_discard(h->e, r, -1), 0);
	ck_assert_int_eq(embeng_dequeue(h->e, r, -1, &act), 0);
	ck_assert_uint_eq(act.step, 2);
	ck_assert_int_eq(embeng_discard(h->e, r, -1), 0);
	expect_last(embeng_discard(h->e, r, -1), -EPROTO, "step 3");
	ck_assert_int_eq(embeng_flush(h->e, 0), 0);
	embeng_batch_free(b);
}

START_TEST(waits_name_what_is_missing)
{
	run_two(wait_for_gradients);
}
END_TEST

/* Enqueues up to the step depth; one more does not fit until a step has gradients. */
static void fill_the_depth(struct run_host *h)
{
	struct embeng_batch *b = embeng_batch_new(h->e, EMBENG_TRAIN, h->rank);
	const uint32_t depth = h->e->depth;
	struct embeng_activations act = EMBENG_INIT(embeng_activations);

	for (uint32_t step = 1; step <= depth; step++)
		ck_assert_int_eq(run_enqueue(h->run, h->e, b, step, h->rank), 0);
	expect_last(embeng_enqueue(h->e, b, 0), -ETIME, "steps ahead; missing is step 1");
	for (uint32_t step = 1; step <= depth; step++) {
		ck_assert_int_eq(embeng_dequeue(h->e, h->rank, -1, &act), 0);
		ck_assert_int_eq(embeng_discard(h->e, h->rank, -1), 0);
	}
	ck_assert_int_eq(run_enqueue(h->run, h->e, b, depth + 1, h->rank), 0);
	embeng_batch_free(b);
}

START_TEST(depth_is_that_of_one_device)
{
	run_two(fill_the_depth);
}
END_TEST

static void poll_descriptor(struct run_host *h)
{
	struct embeng_batch *b = embeng_batch_new(h->e, EMBENG_TRAIN, h->rank);
	struct embeng_activations act = EMBENG_INIT(embeng_activations);
	struct pollfd fd = {.fd = embeng_fd(h->e), .events = POLLIN};

	ck_assert_int_ge(fd.fd, 0);
	ck_assert_int_eq(embeng_fd(h->e), fd.fd);
	ck_assert_int_eq(poll(&fd, 1, 0), 0);
	ck_assert_int_eq(run_enqueue(h->run, h->e, b, 1, h->rank), 0);
	ck_assert_int_eq(poll(&fd, 1, 10000), 1);
	ck_assert_int_eq(embeng_dequeue(h->e, h->rank, 0, &act), 0);
	ck_assert_int_eq(poll(&fd, 1, 0), 0);
	ck_assert_int_eq(embeng_discard(h->e, h->rank, -1), 0);
	ck_assert_int_eq(poll(&fd, 1, 10000), 1);
	embeng_batch_free(b);
}

START_TEST(descriptor_is_readable_over_hosts)
{
	run_two(poll_descriptor);
}
END_TEST

/* -- one of two threads of a host learns that the other's batch was refused -- */

struct told {
	struct run_host *h;
	uint32_t replica;
	pthread_barrier_t *turn;
	int enqueued, dequeued;
	char text[EMBENG_ERROR_TEXT];
};

/* The replicas of host 0 are fed by two threads; replica 1 asks for what is outside its table. */
static void *feed_and_hear(void *arg)
{
	static const int64_t outside[] = {9999}, length[] = {1};
	struct told *t = arg;
	struct embeng_activations act = EMBENG_INIT(embeng_activations);
	struct embeng_error error = EMBENG_INIT(embeng_error);
	struct embeng_batch *b = embeng_batch_new(t->h->e, EMBENG_TRAIN, t->replica);

	if (t->replica == 1) {
		pthread_barrier_wait(t->turn);
		for (int f = 0; f < RUN_FEATURES; f++)
			embeng_batch_ragged(b, f, EMBENG_I64, outside, 1, length, 1, NULL, 0);
		t->enqueued = embeng_enqueue(t->h->e, b, -1);
	} else {
		t->enqueued = run_enqueue(t->h->run, t->h->e, b, 1, t->replica);
		pthread_barrier_wait(t->turn);
		t->dequeued = embeng_dequeue(t->h->e, t->replica, -1, &act);
	}
	embeng_last_error(&error);
	snprintf(t->text, sizeof(t->text), "%s", error.text);
	pthread_barrier_wait(t->turn);
	/* Both try again, and are in step. */
	if (!run_enqueue(t->h->run, t->h->e, b, 1, t->replica))
		run_apply(t->h->run, t->h->e, 1, t->replica);
	embeng_batch_free(b);
	return NULL;
}

static void feed_two_threads(struct run_host *h)
{
	struct told told[2];
	pthread_t threads[2];
	pthread_barrier_t turn;

	pthread_barrier_init(&turn, NULL, 2);
	for (uint32_t i = 0; i < 2 && !h->rank; i++) {
		told[i] = (struct told){.h = h, .replica = i, .turn = &turn};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, feed_and_hear, &told[i]), 0);
	}
	for (uint32_t i = 0; i < 2 && !h->rank; i++)
		pthread_join(threads[i], NULL);
	if (h->rank) {
		struct embeng_batch *b = embeng_batch_new(h->e, EMBENG_TRAIN, 2);
		struct embeng_batch *c = embeng_batch_new(h->e, EMBENG_TRAIN, 3);

		ck_assert_int_eq(run_enqueue(h->run, h->e, b, 1, 2), 0);
		expect_last(run_enqueue(h->run, h->e, c, 1, 3), -ERANGE, "host 0 (thread0) says");
		ck_assert_int_eq(run_enqueue(h->run, h->e, b, 1, 2), 0);
		ck_assert_int_eq(run_enqueue(h->run, h->e, c, 1, 3), 0);
		ck_assert_int_eq(run_apply(h->run, h->e, 1, 2), 0);
		ck_assert_int_eq(run_apply(h->run, h->e, 1, 3), 0);
		embeng_batch_free(b);
		embeng_batch_free(c);
	} else {
		ck_assert_int_eq(told[0].enqueued, 0);
		ck_assert_int_eq(told[0].dequeued, -ERANGE);
		ck_assert_int_eq(told[1].enqueued, -ERANGE);
		ck_assert_str_eq(told[0].text, told[1].text);
	}
	pthread_barrier_destroy(&turn);
	keep_rows(h, embeng_flush(h->e, -1));
}

START_TEST(other_thread_is_told)
{
	struct run alone = make_run(), group;

	alone.replicas = 4;
	alone.steps = 1;
	group = alone;
	compare_rows(&alone, &group, HOSTS, feed_two_threads);
}
END_TEST

/* Steps ahead of the gradients, with pipelining and without, have the bits of one process. */
static void train_ahead(struct run_host *h)
{
	keep_rows(h, run_train(h->run, h->e, 1));
}

START_TEST(steps_ahead)
{
	struct run alone = make_run(), group;

	alone.replicas = 4;
	alone.steps = 8;
	alone.pipelining = _i & 1;
	alone.ahead = alone.pipelining ? 1 : 0;
	group = alone;
	group.ahead = 1 + (_i >> 1 & 1);
	if (alone.pipelining)
		group.ahead = 1;
	compare_rows(&alone, &group, 3, train_ahead);
}
END_TEST

/* -- lookups that other hosts make later -- */

static _Thread_local float looked[RUN_FEATURES][RUN_SAMPLES * 96];

static int look_up(struct run_host *h, uint64_t step, int64_t timeout_ns)
{
	static _Thread_local struct run_bags bags[RUN_FEATURES];
	struct embeng_batch *b = embeng_batch_new(h->e, EMBENG_INFERENCE, h->rank);
	struct embeng_output outputs[RUN_FEATURES];
	int ret;

	memset(looked, 0, sizeof(looked));
	for (int f = 0; f < RUN_FEATURES; f++) {
		const uint64_t rows = f == RUN_SEQUENCE ? 3 : 1;

		run_input(h->run, b, step, h->rank, f, &bags[f]);
		outputs[f] = (struct embeng_output){.data = looked[f],
						    .elements = b->inputs[f].samples * rows *
								(uint64_t)run_dims[run_tables[f]]};
	}
	ret = embeng_lookup(h->e, b, outputs, RUN_FEATURES, timeout_ns);
	embeng_batch_free(b);
	return ret;
}

/* All hosts look a batch up at once; expects the activations that @seen has. */
static void expect_seen(struct run_host *h, uint64_t step, const void *seen)
{
	ck_assert_int_eq(look_up(h, step, -1), 0);
	ck_assert_int_eq(memcmp(seen, looked, sizeof(looked)), 0);
}

static int end_call(void *count)
{
	return ++*(int *)count > 0;
}

/* Host 0 gives up in each way and goes on with the same lookup; or with another one; or with another call. */
static void give_up_lookups(struct run_host *h)
{
	static _Thread_local float seen[RUN_FEATURES][RUN_SAMPLES * 96];
	uint64_t step;
	int asked = 0;

	if (h->rank) {
		usleep(300000);
	} else {
		expect_last(look_up(h, 1, 0), -ETIME, "not all hosts have made the call");
		expect_last(look_up(h, 1, 20000000), -ETIME, "call again");
		embeng_ask(end_call, &asked);
		expect_last(look_up(h, 1, -1), -EINTR, "embeng_ask()");
		embeng_ask(NULL, NULL);
		ck_assert_int_eq(asked, 1);
		embeng_interrupt(h->e, 1);
		expect_last(look_up(h, 1, -1), -EINTR, "embeng_interrupt()");
		embeng_interrupt(h->e, 0);
	}
	ck_assert_int_eq(look_up(h, 1, -1), 0);
	memcpy(seen, looked, sizeof(seen));
	expect_seen(h, 1, seen);

	/* Host 1 makes both lookups, of which host 0 has given the first up. */
	if (h->rank) {
		usleep(100000);
		ck_assert_int_eq(look_up(h, 1, -1), 0);
	} else {
		expect_last(look_up(h, 1, 1000000), -ETIME, "call again");
	}
	ck_assert_int_eq(look_up(h, 2, -1), 0);
	ck_assert_int_ne(memcmp(seen, looked, sizeof(seen)), 0);
	memcpy(seen, looked, sizeof(seen));
	expect_seen(h, 2, seen);

	if (h->rank)
		ck_assert_int_eq(look_up(h, 1, -1), 0);
	else if (look_up(h, 1, 0))
		expect_last(-ETIME, -ETIME, "call again");
	ck_assert_int_eq(embeng_step(h->e, &step), 0);
	ck_assert_uint_eq(step, 0);
	expect_seen(h, 2, seen);
}

START_TEST(lookups_end_in_time)
{
	run_two(give_up_lookups);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, waits_name_what_is_missing);
	tcase_add_test(tcase, interrupted_enqueue_goes_on);
	tcase_add_test(tcase, depth_is_that_of_one_device);
	tcase_add_test(tcase, descriptor_is_readable_over_hosts);
	tcase_add_test(tcase, other_thread_is_told);
	tcase_add_loop_test(tcase, steps_ahead, 0, 4);
	tcase_add_test(tcase, lookups_end_in_time);
}

int main(void)
{
	return suite_main("hosts_waits", add_tests);
}
