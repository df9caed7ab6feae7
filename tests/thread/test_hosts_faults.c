// SPDX-License-Identifier: MIT
/*
 * Batches that a host refuses, and hosts that fail, on a handle over all hosts: all hosts say the same, in
 * time, and after a refusal training goes on with the bits of a run that had none.
 */
#include <unistd.h>

#include "hosts_help.h"
#include "suite.h"

#define DEADLINE (20 * 1000 * GROUP_MS)
#define CULPRIT 1
#define BAD_STEP 3

static const struct run small = {
	.optimizer = {.kind = EMBENG_ADAGRAD}, /* set in make_run() */
	.replicas = 4,
	.steps = 6,
};

static struct run make_run(void)
{
	struct run run = small;

	run.optimizer = embeng_adagrad(0.1f);
	return run;
}

/* Tables are whole or cut, and all are spread by rows. */
static const char *const devices[] = {RUN_DEVICE, RUN_ROWS};
#define FAULTS 24 /* messages that a host fails at */

/* -- refusals -- */

/* Enqueues the step with an id outside its table, which all hosts refuse. */
static void refuse_step_once(struct run_host *h, struct embeng_batch *const *batches,
			     const struct embeng_device_info *info)
{
	static const int64_t outside[] = {5, 40}, length[] = {2};
	struct embeng_error error = EMBENG_INIT(embeng_error);
	int ret = 0;

	for (uint32_t i = 0; !ret && i < info->replica_count; i++) {
		if (info->host != CULPRIT) {
			ret = run_enqueue(h->run, h->e, batches[i], BAD_STEP,
					  info->first_replica + i);
			continue;
		}
		for (int f = 0; f < RUN_FEATURES; f++)
			ck_assert_int_eq(embeng_batch_ragged(batches[i], f, EMBENG_I64, outside, 2,
							     length, 1, NULL, 0),
					 0);
		ret = embeng_enqueue(h->e, batches[i], -1);
	}
	embeng_last_error(&error);
	h->code = ret;
	snprintf(h->text, sizeof(h->text), "%s", error.text);
}

static void train_with_refusal(struct run_host *h)
{
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	struct embeng_batch *batches[RUN_REPLICAS_MOST];
	int ret = embeng_info(h->e, &info);

	for (uint32_t i = 0; i < info.replica_count; i++)
		batches[i] = embeng_batch_new(h->e, EMBENG_TRAIN, info.first_replica + i);
	for (uint64_t step = 1; !ret && step <= h->run->steps; step++) {
		if (step == BAD_STEP && info.replica_count)
			refuse_step_once(h, batches, &info);
		for (uint32_t i = 0; !ret && i < info.replica_count; i++)
			ret = run_enqueue(h->run, h->e, batches[i], step, info.first_replica + i);
		for (uint32_t i = 0; !ret && i < info.replica_count; i++)
			ret = run_apply(h->run, h->e, step, info.first_replica + i);
	}
	ck_assert_msg(!ret, "host %u: %d, %s", h->rank, ret, h->text);
	ck_assert_int_eq(hosts_enter(h->e), 0);
	run_keep_rows(h->run, h->e);
	hosts_leave(h->e);
	for (uint32_t i = 0; i < info.replica_count; i++)
		embeng_batch_free(batches[i]);
}

/* With 2 hosts there are two replicas on each, with 4 one. */
START_TEST(refused_alike)
{
	const uint32_t count = 2 + (uint32_t)_i % 3;
	struct run_host hosts[RUN_HOSTS_MOST];
	struct run alone = make_run(), group = make_run();

	group.device = devices[_i / 3];
	run_alone(&alone);
	run_hosts(&group, count, train_with_refusal, NULL, 0, DEADLINE, hosts);
	for (uint32_t i = 0; i < count; i++) {
		ck_assert_int_eq(hosts[i].code, -ERANGE);
		ck_assert_str_eq(hosts[i].text, hosts[0].text);
	}
	ck_assert_str_eq(hosts[0].text,
			 "host 1 (thread1) says: feature f0, sample 0: id 40 is outside table t0, "
			 "which has rows 0 to 39; correct the id, or give the table an "
			 "out_of_range policy");
	ck_assert_uint_eq(run_differences(&alone, &group), 0);
	run_free_rows(&alone);
	run_free_rows(&group);
}
END_TEST

/* -- failures -- */

static uint64_t train_and_time(struct run_host *h)
{
	uint64_t began;
	int ret;

	ret = run_train(h->run, h->e, 1);
	began = now_ns();
	ret = ret ? ret : embeng_flush(h->e, -1);
	run_note(h, ret);
	return began;
}

static void train_until_failure(struct run_host *h)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);

	train_and_time(h);
	if (!h->code)
		return;
	/* Later calls say so, with the first cause. */
	if (embeng_flush(h->e, -1) != -ESHUTDOWN)
		h->code = 1;
	embeng_last_error(&error);
	if (!strstr(error.text, h->text))
		h->code = 2;
}

static void check_agreement(const struct run_host *hosts, uint32_t count, uint32_t but, int code,
			    const char *words)
{
	const struct run_host *first = &hosts[but == 0];
	char sentence[EMBENG_ERROR_TEXT];

	for (uint32_t i = 0; i < count; i++) {
		if (i == but)
			continue;
		ck_assert_msg(hosts[i].code == code, "host %u: %d, %s", i, hosts[i].code,
			      hosts[i].text);
		ck_assert_str_eq(hosts[i].text, first->text);
		ck_assert_msg(strstr(host_sentence(hosts[i].text, sentence), words) != NULL,
			      "host %u: %s", i, hosts[i].text);
	}
}

/* A host that stops or dies at any of its messages from the first step on. */
START_TEST(host_fails_at_any_message)
{
	const uint32_t messages = (uint32_t)_i % FAULTS, ranks = 4;
	const bool dies = messages % 2;
	const struct thread_fault fault = {.kind = dies ? THREAD_DIE : THREAD_STOP,
					   .rank = CULPRIT,
					   .message = (ranks - 1) * 2 + messages};
	struct run_host hosts[RUN_HOSTS_MOST];
	struct run group = make_run();
	const uint64_t began = now_ns();

	group.device = devices[_i / FAULTS];
	run_hosts(&group, ranks, train_until_failure, &fault, 1, GROUP_DEADLINE, hosts);
	ck_assert_uint_lt(now_ns() - began, GROUP_DEADLINE + 2 * GROUP_SLACK);
	check_agreement(hosts, ranks, CULPRIT, dies ? -EHOSTDOWN : -ETIME, "host 1 (thread1)");
	ck_assert_int_lt(hosts[CULPRIT].code, 0);
	run_free_rows(&group);
}
END_TEST

/* The last of three hosts has the only replica. The others wait for it, however long it computes. */
static void serve_or_feed(struct run_host *h)
{
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	uint64_t step;

	ck_assert_int_eq(embeng_info(h->e, &info), 0);
	if (info.replica_count)
		train_until_failure(h);
	else
		run_note(h, embeng_step(h->e, &step));
}

START_TEST(feeder_that_stops_is_named)
{
	const uint32_t ranks = 3, feeder = 2;
	const struct thread_fault fault = {
		.kind = THREAD_STOP, .rank = feeder, .message = (ranks - 1) * 2 + (uint32_t)_i};
	struct run_host hosts[RUN_HOSTS_MOST];
	struct run group = make_run();
	const uint64_t began = now_ns();

	group.replicas = 1;
	run_hosts(&group, ranks, serve_or_feed, &fault, 1, GROUP_DEADLINE, hosts);
	ck_assert_uint_lt(now_ns() - began, GROUP_DEADLINE + 2 * GROUP_SLACK);
	check_agreement(hosts, ranks, feeder, -ETIME, "host 2 (thread2)");
	ck_assert_int_lt(hosts[feeder].code, 0);
	run_free_rows(&group);
}
END_TEST

static void leave_early(struct run_host *h)
{
	struct run run = *h->run;

	if (h->rank == CULPRIT)
		run.steps = 2;
	run_note(h, run_train(&run, h->e, 1));
}

START_TEST(host_leaves_early)
{
	struct run_host hosts[RUN_HOSTS_MOST];
	struct run group = make_run();

	run_hosts(&group, 4, leave_early, NULL, 0, DEADLINE, hosts);
	check_agreement(hosts, 4, CULPRIT, -EHOSTDOWN,
			"step 3, ids: host 1 (thread1) has left: it closed its group");
	ck_assert_int_eq(hosts[CULPRIT].code, 0);
	run_free_rows(&group);
}
END_TEST

static void be_late(struct run_host *h)
{
	struct run first = *h->run;

	first.steps = h->rank == CULPRIT ? 2 : first.steps;
	run_note(h, run_train(&first, h->e, 1));
	if (h->rank != CULPRIT)
		return;
	usleep(900000);
	first.steps = h->run->steps;
	run_note(h, run_train(&first, h->e, 3));
}

START_TEST(late_program_is_named)
{
	struct run_host hosts[RUN_HOSTS_MOST];
	struct run group = make_run();

	run_hosts(&group, 4, be_late, NULL, 0, GROUP_DEADLINE, hosts);
	check_agreement(
		hosts, 4, CULPRIT, -ETIME,
		"step 3, ids: host 1 (thread1) sent nothing for 0.4 s; hosts 0, 2, 3 did. The "
		"process is alive, but has not begun this exchange");
	check_agreement(hosts, 4, 99, -ETIME, "step 3, ids");
	run_free_rows(&group);
}
END_TEST

/* A step in which one host gives another learning rate. */
static void give_own_rate(struct run_host *h)
{
	const struct embeng_rate rate = {"lr", h->rank == CULPRIT ? 0.2f : 0.1f};
	static _Thread_local float room[RUN_SAMPLES * 96];
	const float *features[RUN_FEATURES];
	struct embeng_activations act = EMBENG_INIT(embeng_activations);
	struct embeng_batch *b = embeng_batch_new(h->e, EMBENG_TRAIN, h->rank);

	for (int f = 0; f < RUN_FEATURES; f++)
		features[f] = room;
	ck_assert_int_eq(run_enqueue(h->run, h->e, b, 1, h->rank), 0);
	ck_assert_int_eq(embeng_dequeue(h->e, h->rank, -1, &act), 0);
	ck_assert_int_eq(
		embeng_apply_gradients(h->e,
				       &EMBENG_INIT(embeng_gradients, .replica = h->rank,
						    .count = RUN_FEATURES, .features = features,
						    .rates = &rate, .rate_count = 1),
				       -1),
		0);
	run_note(h, embeng_flush(h->e, -1));
	embeng_batch_free(b);
}

START_TEST(other_rates_are_named)
{
	struct run_host hosts[RUN_HOSTS_MOST];
	struct run group = make_run();

	group.optimizer.rate_name = "lr";
	run_hosts(&group, 4, give_own_rate, NULL, 0, DEADLINE, hosts);
	check_agreement(
		hosts, 4, 99, -EPROTO,
		"step 1, gradients: host 1 (thread1) gives learning rates or a multiplier other "
		"than those of host 0 (thread0); they must be equal to the bit");
	run_free_rows(&group);
}
END_TEST

/* Four hosts, each in a thread of its own. */
static void open_hosts(struct run_host *hosts, void *(*body)(void *arg))
{
	struct embeng_transport transports[4];
	pthread_t threads[4];

	ck_assert_int_eq(embeng_group_threads(4, transports), 0);
	for (uint32_t i = 0; i < 4; i++) {
		hosts[i] = (struct run_host){.transport = transports[i],
					     .options = EMBENG_INIT(embeng_group_options),
					     .rank = i};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, body, &hosts[i]), 0);
	}
	for (uint32_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

/* One host's model has another optimizer. */
static void *open_other_model(void *arg)
{
	struct run_host *h = arg;
	struct run run = make_run();
	struct embeng_model *model;

	if (h->rank == CULPRIT)
		run.optimizer = embeng_sgd(0.1f);
	model = run_model(&run);
	ck_assert_int_eq(embeng_group_open(&h->transport, &h->options, &h->group, NULL), 0);
	run_note(h, embeng_open_group("soft:cores=1", model, h->group, &h->e, NULL));
	embeng_group_close(h->group);
	embeng_model_free(model);
	return NULL;
}

START_TEST(other_model_is_named)
{
	struct run_host hosts[4];

	open_hosts(hosts, open_other_model);
	/* Host 1 may be the one that finds it, and then names the other host first. */
	check_agreement(hosts, 4, 99, -EPROTO, " has the model ");
	check_agreement(hosts, 4, 99, -EPROTO, "host 1 ");
}
END_TEST

/* One host names a device that there is not: all hosts say so, and none waits. */
static void *open_no_device(void *arg)
{
	struct run_host *h = arg;
	struct run run = make_run();
	struct embeng_model *model = run_model(&run);

	ck_assert_int_eq(embeng_group_open(&h->transport, &h->options, &h->group, NULL), 0);
	run_note(h, embeng_open_group(h->rank == CULPRIT ? "hard" : "soft:cores=1", model, h->group,
				      &h->e, NULL));
	embeng_group_close(h->group);
	embeng_model_free(model);
	return NULL;
}

START_TEST(device_that_fails_is_named)
{
	struct run_host hosts[4];

	open_hosts(hosts, open_no_device);
	check_agreement(hosts, 4, 99, -ENODEV,
			"host 1 (thread1) says: device name: \"hard\" is not known");
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, refused_alike, 0, 6);
	tcase_add_loop_test(tcase, host_fails_at_any_message, 0, 2 * FAULTS);
	tcase_add_loop_test(tcase, feeder_that_stops_is_named, 0, FAULTS / 2);
	tcase_add_test(tcase, host_leaves_early);
	tcase_add_test(tcase, late_program_is_named);
	tcase_add_test(tcase, other_rates_are_named);
	tcase_add_test(tcase, other_model_is_named);
	tcase_add_test(tcase, device_that_fails_is_named);
}

int main(void)
{
	return suite_main("hosts_faults", add_tests);
}
