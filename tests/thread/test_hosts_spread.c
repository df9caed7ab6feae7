// SPDX-License-Identifier: MIT
/* Tables that are spread by rows: what is refused, and a model of which some tables cannot be. */
#include "hosts_help.h"
#include "suite.h"

#define DEADLINE (20 * 1000 * GROUP_MS)
#define HOSTS 2

static struct run make_run(void)
{
	return (struct run){.device = RUN_ROWS,
			    .optimizer = embeng_adagrad(0.1f),
			    .combiner = EMBENG_MAX,
			    .replicas = 2,
			    .steps = 4};
}

static void expect_last(int ret, int code, const char *words)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);

	embeng_last_error(&error);
	ck_assert_msg(ret == code, "%d, %s", ret, error.text);
	ck_assert_msg(strstr(error.text, words) != NULL, "%s", error.text);
}

static void run_two(const struct run *kind, void (*body)(struct run_host *h))
{
	struct run_host hosts[RUN_HOSTS_MOST];
	struct run run = *kind;

	run_hosts(&run, HOSTS, body, NULL, 0, DEADLINE, hosts);
	for (uint32_t i = 0; i < HOSTS; i++)
		ck_assert_msg(!hosts[i].code, "host %u: %d, %s", i, hosts[i].code, hosts[i].text);
	run_free_rows(&run);
}

/* -- gradients -- */

static float room[HOSTS][RUN_SAMPLES * 96];

static struct embeng_gradients gradients_of(const struct run_host *h, const float **features)
{
	for (int f = 0; f < RUN_FEATURES; f++)
		features[f] = room[h->rank];
	return EMBENG_INIT(embeng_gradients, .replica = h->rank, .count = RUN_FEATURES,
			   .features = features);
}

/* A refusal leaves the step as it was, so that it can be trained. */
static void give_what_is_refused(struct run_host *h)
{
	const float *features[RUN_FEATURES];
	struct embeng_gradients g = gradients_of(h, features);
	struct embeng_activations act = EMBENG_INIT(embeng_activations);
	struct embeng_batch *b = embeng_batch_new(h->e, EMBENG_TRAIN, h->rank);

	ck_assert_int_eq(run_enqueue(h->run, h->e, b, 1, h->rank), 0);
	ck_assert_int_eq(embeng_dequeue(h->e, h->rank, -1, &act), 0);
	g.sums = 1;
	expect_last(embeng_apply_gradients(h->e, &g, -1), -EINVAL,
		    "step 1: feature f0: a sum belongs to one row");
	g.sums = 0;
	room[h->rank][0] = NAN;
	expect_last(embeng_apply_gradients(h->e, &g, -1), -ERANGE, "column 0 (element 0)");
	room[h->rank][0] = 0;
	ck_assert_int_eq(embeng_apply_gradients(h->e, &g, -1), 0);
	ck_assert_int_eq(embeng_flush(h->e, -1), 0);
	embeng_batch_free(b);
}

START_TEST(gradients_that_are_refused)
{
	const struct run kind = make_run();

	run_two(&kind, give_what_is_refused);
}
END_TEST

/* The place of a largest number is known once rows have come, and an update gets none. */
static void update_by_max(struct run_host *h)
{
	static _Thread_local struct run_bags bags[RUN_FEATURES];
	const float *features[RUN_FEATURES];
	const struct embeng_gradients g = gradients_of(h, features);
	struct embeng_batch *b = embeng_batch_new(h->e, EMBENG_TRAIN, h->rank);

	for (int f = 0; f < RUN_FEATURES; f++)
		run_input(h->run, b, 1, h->rank, f, &bags[f]);
	expect_last(embeng_update(h->e, b, &g, -1), -ENOTSUP,
		    "the rows of table t1, whose combiner is max, are spread over hosts");
	ck_assert_int_eq(run_enqueue(h->run, h->e, b, 1, h->rank), 0);
	ck_assert_int_eq(run_apply(h->run, h->e, 1, h->rank), 0);
	ck_assert_int_eq(embeng_flush(h->e, -1), 0);
	embeng_batch_free(b);
}

START_TEST(updates_by_max_are_refused)
{
	const struct run kind = make_run();

	run_two(&kind, update_by_max);
}
END_TEST

/* -- opening -- */

static void *open_host(void *arg)
{
	struct run_host *h = arg;
	struct embeng_model *model = run_model(h->run);

	ck_assert_int_eq(embeng_group_open(&h->transport, &h->options, &h->group, NULL), 0);
	run_note(h, embeng_open_group(h->rank ? h->run->device : RUN_ROWS, model, h->group, &h->e,
				      NULL));
	embeng_group_close(h->group);
	embeng_model_free(model);
	return NULL;
}

/* Host 0 spreads rows; the others have the run's device. */
static void open_two(struct run *run, int code, const char *words)
{
	struct embeng_transport transports[HOSTS];
	struct run_host hosts[HOSTS];
	pthread_t threads[HOSTS];

	ck_assert_int_eq(embeng_group_threads(HOSTS, transports), 0);
	for (uint32_t i = 0; i < HOSTS; i++) {
		hosts[i] = (struct run_host){.run = run,
					     .transport = transports[i],
					     .options = EMBENG_INIT(embeng_group_options),
					     .rank = i};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, open_host, &hosts[i]), 0);
	}
	for (uint32_t i = 0; i < HOSTS; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < HOSTS; i++) {
		ck_assert_int_eq(hosts[i].code, code);
		ck_assert_msg(strstr(hosts[i].text, words) != NULL, "%s", hosts[i].text);
	}
}

START_TEST(other_exchanges_are_named)
{
	static const char *const others[] = {RUN_DEVICE, RUN_ROWS ",sharding=div",
					     RUN_DEVICE ",exchange=table"};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		struct run run = make_run();

		run.device = others[i];
		open_two(&run, -EPROTO,
			 "host 1 (thread1) names its device with another exchange= or sharding= "
			 "than host 0 (thread0)");
	}
}
END_TEST

START_TEST(what_no_table_allows_is_refused)
{
	struct run run = make_run();

	run.optimizer.use_gradient_accumulation = EMBENG_OFF;
	open_two(&run, -EINVAL,
		 "table t0: not allowed: its optimizer takes each gradient by itself");
}
END_TEST

START_TEST(an_exchange_needs_a_group)
{
	const struct run run = make_run();
	struct embeng_model *model = run_model(&run);
	struct embeng *e;

	expect_last(embeng_open(RUN_ROWS, model, &e, NULL), -EINVAL,
		    "exchange= is for tables on several hosts");
	embeng_model_free(model);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, gradients_that_are_refused);
	tcase_add_test(tcase, updates_by_max_are_refused);
	tcase_add_test(tcase, other_exchanges_are_named);
	tcase_add_test(tcase, what_no_table_allows_is_refused);
	tcase_add_test(tcase, an_exchange_needs_a_group);
}

int main(void)
{
	return suite_main("hosts_spread", add_tests);
}
