// SPDX-License-Identifier: MIT
/*
 * Tables whose rows are spread, and whose owners make the sums of gradients (exchange=rows+grads), have the bits of
 * one process, also if each gradient is taken by itself.
 */
#include "compare_help.h"
#include "embeng/hosts.h"
#include "sample.h"
#include "suite.h"

#define DEADLINE (20 * 1000 * GROUP_MS)

static void train_all(struct run_host *h)
{
	for (int t = 0; h->e->hosts && !h->run->mixed && t < RUN_TABLES; t++) {
		const bool max = t == 1 && h->run->combiner == EMBENG_MAX;

		ck_assert_int_eq(embeng_table_exchange(h->e, t) == EMBENG_EXCHANGE_ROWS_GRADIENTS,
				 !max);
	}
	run_train_all(h);
}

/* Optimizers and combiners, with weights and without; pipelining, distribution and accumulation by turns. */
START_TEST(bits_of_one_process)
{
	const int optimizer = _i / RUN_HOST_COUNTS;
	const uint32_t count = run_host_count(_i);

	for (int form = 0; form < 6; form++) {
		const struct run kind = {
			.device = form & 1 ? RUN_GRADS : RUN_GRADS ",sharding=div",
			.optimizer = run_optimizer(optimizer),
			.combiner = (enum embeng_combiner_name)(form % 3),
			.weights = form >= 3,
			.pipelining = (form + optimizer) % 2,
			.ahead = (form + optimizer) % 2,
			.alone = (form / 2 + optimizer) % 2,
			.replicas = 4,
			.steps = 5,
		};

		ck_assert_uint_eq(run_compare(&kind, count, false, train_all), 0);
	}
}
END_TEST

/* Each gradient by itself, with all combiners, weighted and not. */
START_TEST(bits_without_accumulation)
{
	for (int form = 0; form < 6; form++) {
		const struct run kind = {
			.device = RUN_GRADS,
			.alone = 1,
			.optimizer = embeng_adagrad(0.1f),
			.combiner = (enum embeng_combiner_name)(form % 3),
			.weights = form >= 3,
			.pipelining = form & 1,
			.ahead = form & 1,
			.replicas = 5,
			.steps = 5,
		};

		ck_assert_uint_eq(run_compare(&kind, run_host_count(_i), false, train_all), 0);
	}
}
END_TEST

/* Ids outside their tables, and a table that is quantized. */
START_TEST(bits_of_policies)
{
	for (int form = 0; form < 4; form++) {
		const struct run kind = {
			.device = RUN_GRADS,
			.policy = (enum embeng_policy)_i,
			.buckets = 9,
			.alone = form & 1,
			.optimizer = embeng_adagrad(0.1f),
			.combiner = form & 1 ? EMBENG_MEAN : EMBENG_SQRTN,
			.weights = form >> 1,
			.replicas = 5,
			.steps = 4,
		};

		ck_assert_uint_eq(run_compare(&kind, 3, false, train_all), 0);
	}
}
END_TEST

/* Sums, gradients and whole tables in one model; tables with max are whole. */
START_TEST(bits_of_mixed_exchanges)
{
	static const char *const devices[] = {
		RUN_DEVICE ",exchange=rows,exchange:t0=rows+grads,exchange:t2=rows+grads,"
			   "exchange:t4=rows+grads",
		RUN_DEVICE ",exchange:t0=rows+grads,exchange:t1=rows,exchange:t3=rows+grads"};

	for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); i++) {
		const struct run kind = {
			.device = devices[i],
			.mixed = 1,
			.optimizer = embeng_adam(0.01f),
			.combiner = EMBENG_MAX,
			.pipelining = 1,
			.ahead = 1,
			.replicas = 4,
			.steps = 6,
		};

		ck_assert_uint_eq(run_compare(&kind, run_host_count(_i), false, train_all), 0);
	}
}
END_TEST

/* Sums of gradients that are -0 stay so, and so do single ones. */
START_TEST(zeros_keep_their_sign)
{
	const struct run kind = {.device = RUN_GRADS,
				 .tiny = 1,
				 .alone = _i,
				 .optimizer = embeng_sgd(0.5f),
				 .combiner = EMBENG_MEAN,
				 .replicas = 4,
				 .steps = 4};

	ck_assert_uint_eq(run_compare(&kind, 3, false, train_all), 0);
}
END_TEST

START_TEST(another_order_differs)
{
	const struct run kind = {.device = RUN_GRADS,
				 .alone = _i,
				 .optimizer = embeng_adagrad(0.1f),
				 .replicas = 4,
				 .steps = 6};

	ck_assert_uint_gt(run_compare(&kind, 2, true, train_all), 0);
}
END_TEST

/* -- rows of many occurrences -- */

enum { HOT_BAGS = 40, HOT_EACH = 50, HOT_ROWS = 3, HOT_DIM = 20, HOT_STEPS = 3 };

static struct embeng_model *hot_model(const struct run *run)
{
	struct embeng_model *model = embeng_model_new();
	struct embeng_optimizer optimizer = run->optimizer;

	optimizer.use_gradient_accumulation = run->alone ? EMBENG_OFF : EMBENG_ON;
	ck_assert_int_eq(
		embeng_model_add_table(
			model, &EMBENG_INIT(embeng_table_config, .name = "hot",
					    .vocabulary_size = HOT_ROWS, .dim = HOT_DIM,
					    .combiner = run->combiner, .optimizer = optimizer)),
		0);
	for (int f = 0; f < 2; f++)
		ck_assert_int_eq(
			embeng_model_add_feature(model, &EMBENG_INIT(embeng_feature_config,
								     .name = f ? "second" : "first",
								     .table = 0)),
			f);
	ck_assert_int_eq(embeng_model_set_engine(model, &EMBENG_INIT(embeng_engine_config,
								     .replicas = run->replicas)),
			 0);
	return model;
}

static int train_hot(struct embeng *e, uint32_t replica, uint64_t step)
{
	static _Thread_local int64_t ids[2][HOT_BAGS * HOT_EACH], lengths[HOT_BAGS];
	static _Thread_local float weights[2][HOT_BAGS * HOT_EACH], given[2][HOT_BAGS * HOT_DIM];
	const float *features[2] = {given[0], given[1]};
	struct embeng_activations act = EMBENG_INIT(embeng_activations);
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, replica);
	int ret = 0;

	for (int f = 0; f < 2; f++) {
		for (size_t i = 0; i < HOT_BAGS * HOT_EACH; i++) {
			const uint64_t x = run_mix(i + 9000 * step + 90000 * replica + (size_t)f);

			ids[f][i] = x % 10 ? 1 : (int64_t)(x / 10 % HOT_ROWS);
			weights[f][i] = (float)(x % 1000) / 300;
		}
		for (size_t s = 0; s < HOT_BAGS; s++)
			lengths[s] = HOT_EACH;
		ret = ret ? ret
			  : embeng_batch_ragged(b, f, EMBENG_I64, ids[f], HOT_BAGS * HOT_EACH,
						lengths, HOT_BAGS, f ? weights[f] : NULL,
						f ? HOT_BAGS * HOT_EACH : 0);
	}
	ret = ret ? ret : embeng_enqueue(e, b, -1);
	ret = ret ? ret : embeng_dequeue(e, replica, -1, &act);
	for (int f = 0; !ret && f < 2; f++)
		for (size_t i = 0; i < HOT_BAGS * HOT_DIM; i++)
			given[f][i] = act.features[f].data[i] * 0.1f -
				      (float)(run_mix(i + replica + step) % 97) / 97;
	ret = ret ? ret
		  : embeng_apply_gradients(e,
					   &EMBENG_INIT(embeng_gradients, .replica = replica,
							.count = 2, .features = features),
					   -1);
	embeng_batch_free(b);
	return ret;
}

struct hot_host {
	const struct run *run;
	struct embeng_transport transport;
	float rows[HOT_ROWS * HOT_DIM]; /* those of this host are filled in */
	bool has[HOT_ROWS];
};

static void *run_hot_host(void *arg)
{
	struct hot_host *host = arg;
	struct embeng_model *model = hot_model(host->run);
	struct embeng_group *group;
	struct embeng *e;

	ck_assert_int_eq(
		embeng_group_open(&host->transport,
				  &EMBENG_INIT(embeng_group_options, .deadline_ns = DEADLINE),
				  &group, NULL),
		0);
	ck_assert_int_eq(embeng_open_group(RUN_GRADS, model, group, &e, NULL), 0);
	for (uint64_t step = 1; step <= HOT_STEPS; step++)
		ck_assert_int_eq(train_hot(e, e->hosts->rank, step), 0);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	ck_assert_int_eq(hosts_enter(e), 0);
	for (int64_t row = 0, local; row < HOT_ROWS; row++) {
		uint32_t owner;

		ck_assert_int_eq(hosts_locate(e->hosts, 0, row, &owner, &local), 0);
		host->has[row] = owner == e->hosts->rank;
		if (host->has[row])
			ck_assert_int_eq(embeng_rows_read(e->hosts->owner, 0, NULL, &local, 1,
							  &host->rows[row * HOT_DIM]),
					 0);
	}
	hosts_leave(e);
	embeng_close(e);
	embeng_group_close(group);
	embeng_model_free(model);
	return NULL;
}

/* A row has thousands of occurrences in a replica, which are summed in runs. */
START_TEST(bits_of_hot_rows)
{
	const struct run run = {.optimizer = embeng_adagrad(0.1f),
				.combiner = (enum embeng_combiner_name)(_i % 3),
				.alone = _i / 3,
				.replicas = 2};
	struct embeng_transport transports[2];
	struct embeng_model *model = hot_model(&run);
	float want[HOT_ROWS * HOT_DIM];
	struct hot_host hosts[2];
	pthread_t threads[2];
	struct embeng *e;

	ck_assert_int_eq(embeng_open(RUN_DEVICE, model, &e, NULL), 0);
	for (uint64_t step = 1; step <= HOT_STEPS; step++)
		for (uint32_t r = 0; r < 2; r++)
			ck_assert_int_eq(train_hot(e, r, step), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, HOT_ROWS, want), 0);
	embeng_close(e);
	embeng_model_free(model);
	ck_assert_int_eq(embeng_group_threads(2, transports), 0);
	for (uint32_t h = 0; h < 2; h++) {
		hosts[h] = (struct hot_host){.run = &run, .transport = transports[h]};
		ck_assert_int_eq(pthread_create(&threads[h], NULL, run_hot_host, &hosts[h]), 0);
	}
	for (uint32_t h = 0; h < 2; h++)
		pthread_join(threads[h], NULL);
	for (size_t row = 0; row < HOT_ROWS; row++) {
		const float *got = &hosts[hosts[1].has[row]].rows[row * HOT_DIM];

		ck_assert_mem_eq(got, &want[row * HOT_DIM], HOT_DIM * sizeof(float));
	}
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 120);
	add_sampled_loop(tcase, bits_of_one_process, 0, RUN_OPTIMIZERS * RUN_HOST_COUNTS);
	tcase_add_loop_test(tcase, bits_without_accumulation, 0, RUN_HOST_COUNTS);
	tcase_add_loop_test(tcase, bits_of_policies, EMBENG_POLICY_ERROR, EMBENG_POLICY_ZERO + 1);
	tcase_add_loop_test(tcase, bits_of_mixed_exchanges, 0, RUN_HOST_COUNTS);
	tcase_add_loop_test(tcase, zeros_keep_their_sign, 0, 2);
	tcase_add_loop_test(tcase, another_order_differs, 0, 2);
	tcase_add_loop_test(tcase, bits_of_hot_rows, 0, 6);
}

int main(void)
{
	return suite_main("hosts_grads", add_tests);
}
