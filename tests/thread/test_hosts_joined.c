// SPDX-License-Identifier: MIT
/*
 * Models of more replicas than a device has: all tables are spread by rows, and the replicas are joined in one
 * batch of a host's device. The bits are those of a device that has them all. Most tests say that a
 * device has two replicas, so that one process can be compared.
 */
#include "compare_help.h"
#include "hosts/joined.h"
#include "sample.h"
#include "suite.h"

static void train_joined(struct run_host *h)
{
	ck_assert(hosts_joins(h->e->hosts));
	ck_assert_uint_eq(h->e->hosts->owner->replica_count, 1);
	for (int t = 0; t < RUN_TABLES; t++)
		ck_assert(hosts_is_spread(h->e->hosts, t));
	run_train_all(h);
}

/* Optimizers, combiners, weights, both exchanges and pipelining by turns. */
START_TEST(bits_of_one_process)
{
	static const char *const devices[] = {RUN_DEVICE, RUN_ROWS, RUN_GRADS, RUN_DEVICE};
	const int optimizer = _i / RUN_HOST_COUNTS;

	place_replicas_most = 2;
	for (int form = 0; form < 4; form++) {
		const struct run kind = {
			.device = devices[form],
			.optimizer = run_optimizer(optimizer),
			.combiner = (enum embeng_combiner_name)((optimizer + form) % 4),
			.weights = (optimizer + form) % 4 != EMBENG_MAX,
			.limits = form == 3,
			.pipelining = form & 1,
			.ahead = form & 1,
			.replicas = 4 + (uint32_t)form % 2,
			.steps = 6,
		};

		ck_assert_uint_eq(run_compare(&kind, run_host_count(_i), false, train_joined), 0);
	}
}
END_TEST

/* Tables that take each gradient by itself have gradients of samples sent, though nobody asks for it. */
START_TEST(bits_without_accumulation)
{
	place_replicas_most = 2;
	for (int form = 0; form < 2; form++) {
		const struct run kind = {
			.mixed = !form,
			.alone = form,
			.optimizer = embeng_adagrad(0.1f),
			.combiner = EMBENG_MEAN,
			.weights = 1,
			.replicas = 5,
			.steps = 4,
		};

		ck_assert_uint_eq(run_compare(&kind, run_host_count(_i), false, train_joined), 0);
	}
}
END_TEST

/* Ids outside their tables; and sums that are -0 stay so. */
START_TEST(bits_of_policies_and_zeros)
{
	const struct run kind = {
		.policy = (enum embeng_policy)_i,
		.tiny = !_i,
		.optimizer = _i ? embeng_adagrad(0.1f) : embeng_sgd(0.5f),
		.combiner = EMBENG_MEAN,
		.weights = _i != 0,
		.replicas = 5,
		.steps = 4,
	};

	place_replicas_most = 2;
	ck_assert_uint_eq(run_compare(&kind, 3, false, train_joined), 0);
}
END_TEST

START_TEST(another_order_differs)
{
	const struct run kind = {.optimizer = embeng_adagrad(0.1f), .replicas = 4, .steps = 6};

	place_replicas_most = 2;
	ck_assert_uint_gt(run_compare(&kind, 2, true, train_joined), 0);
}
END_TEST

/* -- steps that replicas give up -- */

/* Whether a replica gives a step up: some do, all do, nobody does. */
static bool gives_up(uint64_t step, uint32_t replica)
{
	return step % 4 == 3 || (step % 4 && (step + replica) % 3 == 0);
}

/* Hands the gradients of a step in, or gives it up. */
static void end_step(struct run_host *h, uint64_t step, uint32_t replica, bool up)
{
	struct embeng_activations act = EMBENG_INIT(embeng_activations);

	if (!up) {
		run_note(h, run_apply(h->run, h->e, step, replica));
		return;
	}
	run_note(h, embeng_dequeue(h->e, replica, -1, &act));
	run_note(h, embeng_discard(h->e, replica, -1));
}

/* Each step is enqueued before the one before it is ended. @between: NULL, or what follows each end */
static void train_ahead(struct run_host *h, bool up,
			void (*between)(struct run_host *h, uint64_t step))
{
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	struct embeng_batch *batches[RUN_REPLICAS_MOST];
	struct run *run = h->run;

	run_note(h, embeng_info(h->e, &info));
	for (uint32_t i = 0; i < info.replica_count; i++)
		batches[i] = embeng_batch_new(h->e, EMBENG_TRAIN, info.first_replica + i);
	for (uint64_t step = 1; !h->code && step <= run->steps + 1; step++) {
		for (uint32_t i = 0; step <= run->steps && i < info.replica_count; i++)
			run_note(h,
				 run_enqueue(run, h->e, batches[i], step, info.first_replica + i));
		for (uint32_t i = 0; !h->code && step > 1 && i < info.replica_count; i++)
			end_step(h, step - 1, info.first_replica + i,
				 up && gives_up(step - 1, info.first_replica + i));
		if (!h->code && step > 1 && between)
			between(h, step);
	}
	for (uint32_t i = 0; i < info.replica_count; i++)
		embeng_batch_free(batches[i]);
	run_note(h, embeng_flush(h->e, -1));
	if (h->e->hosts && !run_note(h, hosts_enter(h->e)))
		hosts_leave(h->e);
	run_keep_rows(run, h->e);
}

static void train_and_give_up(struct run_host *h)
{
	train_ahead(h, true, NULL);
}

static void train_alone(struct run *run, void (*body)(struct run_host *h))
{
	struct embeng_model *model = run_model(run);
	struct run_host one = {.run = run};

	run_make_rows(run);
	ck_assert_int_eq(embeng_open(RUN_DEVICE, model, &one.e, NULL), 0);
	body(&one);
	ck_assert_msg(!one.code, "%s", one.text);
	embeng_close(one.e);
	embeng_model_free(model);
}

static void compare_bodies(const struct run *kind, uint32_t count, void (*body)(struct run_host *h))
{
	struct run alone = *kind, group = *kind;
	struct run_host hosts[RUN_HOSTS_MOST];

	train_alone(&alone, body);
	run_hosts(&group, count, body, NULL, 0, RUN_DEADLINE, hosts);
	for (uint32_t i = 0; i < count; i++)
		ck_assert_msg(!hosts[i].code, "host %u: %s", i, hosts[i].text);
	ck_assert_uint_eq(run_differences(&alone, &group), 0);
	run_free_rows(&alone);
	run_free_rows(&group);
}

/* Adam counts steps: one that some replicas give up is one, and one that all give up is none. */
START_TEST(steps_are_given_up)
{
	const struct run kind = {
		.device = _i & 1 ? RUN_GRADS : RUN_ROWS,
		.optimizer = embeng_adam(0.01f),
		.combiner = EMBENG_MEAN,
		.replicas = 5,
		.steps = RUN_STEPS_MOST,
	};

	place_replicas_most = 2;
	compare_bodies(&kind, run_host_count(_i), train_and_give_up);
}
END_TEST

/* All hosts are told, with the numbers; nothing waits. */
START_TEST(some_cannot_give_up_a_pipelined_step)
{
	struct run run = {.optimizer = embeng_sgd(0.1f),
			  .replicas = 4,
			  .steps = RUN_STEPS_MOST,
			  .pipelining = 1};
	struct run_host hosts[RUN_HOSTS_MOST];

	place_replicas_most = 2;
	run_hosts(&run, 2, train_and_give_up, NULL, 0, RUN_DEADLINE, hosts);
	for (uint32_t i = 0; i < 2; i++) {
		ck_assert_int_ne(hosts[i].code, 0);
		ck_assert_msg(strstr(hosts[i].text, "replicas give the step up") != NULL, "%s",
			      hosts[i].text);
	}
	run_free_rows(&run);
}
END_TEST

/* -- calls of all hosts between lookups -- */

/* At once, so that a lookup which does not come first comes later. */
static void write_between(struct run_host *h, uint64_t step)
{
	float *rows = malloc(sizeof(*rows) * (size_t)(run_rows[1] * run_dims[1]));

	for (int64_t i = 0; i < run_rows[1] * run_dims[1]; i++)
		rows[i] = (float)(i % 97) / 97 + (float)step;
	run_note(h, embeng_rows_write(h->e, 1, NULL, NULL, (size_t)run_rows[1], rows));
	free(rows);
}

/* Rows are written after a step whose next one is enqueued: the next lookup comes first. */
static void train_and_write(struct run_host *h)
{
	train_ahead(h, false, write_between);
}

START_TEST(rows_are_written_between_steps)
{
	const struct run kind = {
		.optimizer = embeng_adagrad(0.1f),
		.pipelining = _i & 1,
		.replicas = 4,
		.steps = RUN_STEPS_MOST,
	};

	place_replicas_most = 2;
	compare_bodies(&kind, 1 + (uint32_t)_i % 3, train_and_write);
}
END_TEST

/* -- many replicas -- */

#define MANY_ROWS 501
#define MANY_DIM 12
#define MANY_SAMPLES 3
#define MANY_STEPS 3

static uint32_t many_replicas;
static float many_rows[2][MANY_ROWS * MANY_DIM];

struct many_host {
	struct embeng_transport transport;
	int code;
	char text[EMBENG_ERROR_TEXT];
	float *rows;
};

static struct embeng_model *many_model(void)
{
	struct embeng_model *model = embeng_model_new();

	ck_assert_int_eq(
		embeng_model_add_table(model, &EMBENG_INIT(embeng_table_config, .name = "items",
							   .vocabulary_size = MANY_ROWS,
							   .dim = MANY_DIM, .combiner = EMBENG_SUM,
							   .optimizer = embeng_adagrad(0.1f))),
		0);
	ck_assert_int_eq(embeng_model_add_feature(
				 model, &EMBENG_INIT(embeng_feature_config, .name = "item")),
			 0);
	ck_assert_int_eq(embeng_model_set_engine(model, &EMBENG_INIT(embeng_engine_config,
								     .replicas = many_replicas)),
			 0);
	return model;
}

static int many_enqueue(struct embeng *e, struct embeng_batch *b, uint64_t step, uint32_t r)
{
	const int64_t shape[] = {MANY_SAMPLES};
	int64_t ids[MANY_SAMPLES];

	for (uint64_t i = 0; i < MANY_SAMPLES; i++)
		ids[i] = (int64_t)(run_mix(step << 40 | (uint64_t)r << 8 | i) % MANY_ROWS);
	embeng_batch_reset(b, EMBENG_TRAIN);
	ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I64, ids, MANY_SAMPLES, shape, 1), 0);
	return embeng_enqueue(e, b, -1);
}

static int many_apply(struct embeng *e, uint32_t r)
{
	struct embeng_activations act = EMBENG_INIT(embeng_activations);
	float gradients[MANY_SAMPLES * MANY_DIM];
	const float *features[] = {gradients};
	int ret = embeng_dequeue(e, r, -1, &act);

	for (size_t i = 0; !ret && i < MANY_SAMPLES * MANY_DIM; i++)
		gradients[i] = act.features[0].data[i] - (float)((r + i) % 13) / 13;
	return ret ? ret
		   : embeng_apply_gradients(e,
					    &EMBENG_INIT(embeng_gradients, .replica = r, .count = 1,
							 .features = features, .multiplier = 1.0f),
					    -1);
}

static int many_train(struct embeng *e, float *rows)
{
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	int ret = embeng_info(e, &info);
	struct embeng_batch **batches = calloc(info.replica_count + 1,
					       sizeof(struct embeng_batch *));

	for (uint32_t i = 0; i < info.replica_count; i++)
		batches[i] = embeng_batch_new(e, EMBENG_TRAIN, info.first_replica + i);
	for (uint64_t step = 1; step <= MANY_STEPS; step++) {
		for (uint32_t i = 0; !ret && i < info.replica_count; i++)
			ret = many_enqueue(e, batches[i], step, info.first_replica + i);
		for (uint32_t i = 0; !ret && i < info.replica_count; i++)
			ret = many_apply(e, info.first_replica + i);
	}
	ret = ret ? ret : embeng_rows_read(e, 0, NULL, NULL, MANY_ROWS, rows);
	for (uint32_t i = 0; i < info.replica_count; i++)
		embeng_batch_free(batches[i]);
	free(batches);
	return ret;
}

static void *many_thread(void *arg)
{
	const struct embeng_group_options o = EMBENG_INIT(embeng_group_options,
							  .deadline_ns = RUN_DEADLINE);
	struct embeng_error error = EMBENG_INIT(embeng_error);
	struct embeng_model *model = many_model();
	struct embeng_group *group = NULL;
	struct many_host *h = arg;
	struct embeng *e = NULL;

	h->code = embeng_group_open(&h->transport, &o, &group, &error);
	h->code = h->code ? h->code : embeng_open_group(RUN_DEVICE, model, group, &e, &error);
	if (!h->code) {
		h->code = many_train(e, h->rows);
		embeng_last_error(&error);
		embeng_close(e);
	}
	snprintf(h->text, sizeof(h->text), "%s", error.text);
	embeng_group_close(group);
	embeng_model_free(model);
	return NULL;
}

/* @rows: out: the table, as host 0 reads it */
static void train_many(uint32_t count, float *rows)
{
	struct embeng_transport transports[RUN_HOSTS_MOST];
	struct many_host hosts[RUN_HOSTS_MOST];
	pthread_t threads[RUN_HOSTS_MOST];

	ck_assert_int_eq(threads_make(count, NULL, 0, transports), 0);
	for (uint32_t i = 0; i < count; i++) {
		hosts[i] = (struct many_host){.transport = transports[i]};
		hosts[i].rows = i ? malloc(sizeof(many_rows[0])) : rows;
		ck_assert_int_eq(pthread_create(&threads[i], NULL, many_thread, &hosts[i]), 0);
	}
	for (uint32_t i = 0; i < count; i++) {
		pthread_join(threads[i], NULL);
		ck_assert_msg(!hosts[i].code, "host %u: %d, %s", i, hosts[i].code, hosts[i].text);
		if (i)
			free(hosts[i].rows);
	}
}

/* All replicas that a device has, in its own queues and joined. */
START_TEST(bits_of_a_whole_device)
{
	struct embeng_model *model;
	struct embeng *e;

	many_replicas = 64;
	model = many_model();
	ck_assert_int_eq(embeng_open(RUN_DEVICE, model, &e, NULL), 0);
	ck_assert_int_eq(many_train(e, many_rows[0]), 0);
	embeng_close(e);
	embeng_model_free(model);
	place_replicas_most = 63;
	train_many(1 + 2 * (uint32_t)_i, many_rows[1]);
	ck_assert_mem_eq(many_rows[0], many_rows[1], sizeof(many_rows[0]));
}
END_TEST

/* More than a device has: any number of hosts gives the same, and one replica less does not. */
START_TEST(more_than_a_device)
{
	many_replicas = 1000;
	train_many(1, many_rows[0]);
	train_many(3, many_rows[1]);
	ck_assert_mem_eq(many_rows[0], many_rows[1], sizeof(many_rows[0]));
	train_many(8, many_rows[1]);
	ck_assert_mem_eq(many_rows[0], many_rows[1], sizeof(many_rows[0]));
	many_replicas = 999;
	train_many(3, many_rows[1]);
	ck_assert_int_ne(memcmp(many_rows[0], many_rows[1], sizeof(many_rows[0])), 0);
}
END_TEST

/* -- what is refused -- */

static void refuse_open(struct run *run, int code, const char *words)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);
	struct embeng_model *model = run_model(run);
	struct embeng_transport transport;
	struct embeng_group *group;
	struct embeng *e;

	ck_assert_int_eq(threads_make(1, NULL, 0, &transport), 0);
	ck_assert_int_eq(embeng_group_open(&transport, NULL, &group, NULL), 0);
	ck_assert_int_eq(
		embeng_open_group(run->device ? run->device : RUN_DEVICE, model, group, &e, &error),
		code);
	ck_assert_msg(strstr(error.text, words) != NULL, "%s", error.text);
	embeng_group_close(group);
	embeng_model_free(model);
}

START_TEST(refusals)
{
	struct run run = {.optimizer = embeng_sgd(0.1f), .replicas = 65};

	run.device = RUN_DEVICE ",exchange:t3=table";
	refuse_open(&run, -EINVAL, "table t3: the option exchange:t3=table");
	run.device = RUN_DEVICE ",exchange:t1=columns";
	refuse_open(&run, -EINVAL, "the model has more replicas than a device");
	run.device = NULL;
	run.non_finite = EMBENG_NON_FINITE_DROP;
	refuse_open(&run, -EINVAL, "a model of more than 64 replicas");
	run.non_finite = EMBENG_NON_FINITE_ERROR;
	run.replicas = EMBENG_GROUP_REPLICAS_MOST + 1;
	refuse_open(&run, -ERANGE, "65537 replicas; allowed are 1 to 65536");
}
END_TEST

static void add_tests(TCase *tcase)
{
	add_sampled_loop(tcase, bits_of_one_process, 0, RUN_OPTIMIZERS * RUN_HOST_COUNTS);
	tcase_add_loop_test(tcase, bits_without_accumulation, 0, RUN_HOST_COUNTS);
	tcase_add_loop_test(tcase, bits_of_policies_and_zeros, 0, EMBENG_POLICY_ZERO + 1);
	tcase_add_test(tcase, another_order_differs);
	tcase_add_loop_test(tcase, steps_are_given_up, 0, RUN_HOST_COUNTS);
	tcase_add_test(tcase, some_cannot_give_up_a_pipelined_step);
	tcase_add_loop_test(tcase, rows_are_written_between_steps, 0, 6);
	tcase_add_loop_test(tcase, bits_of_a_whole_device, 0, 2);
	tcase_add_test(tcase, more_than_a_device);
	tcase_add_test(tcase, refusals);
}

int main(void)
{
	return suite_main("hosts_joined", add_tests);
}
