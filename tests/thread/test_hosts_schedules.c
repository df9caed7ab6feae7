// SPDX-License-Identifier: MIT
/*
 * Learning rates that follow a schedule are those of one process. Steps that all replicas give up do not count, which
 * a host learns from the others after it has handed in the gradients of later steps.
 */
#include "compare_help.h"
#include "suite.h"

#define REPLICAS 4
#define STEPS 12
#define ROWS 64
#define DIM 4

static struct embeng_model *make_model(int pipelining)
{
	const struct embeng_schedule schedule = embeng_schedule_exponential(0.5f, 1, 0.5f);
	struct embeng_optimizer optimizer = embeng_sgd(0);
	struct embeng_model *model = embeng_model_new();

	optimizer.rate_name = "rate";
	for (int t = 0; t < 2; t++) {
		ck_assert_int_eq(
			embeng_model_add_table(model, &EMBENG_INIT(embeng_table_config, .dim = DIM,
								   .vocabulary_size = ROWS,
								   .optimizer = optimizer)),
			t);
		ck_assert_int_eq(embeng_model_add_feature(
					 model, &EMBENG_INIT(embeng_feature_config, .table = t)),
				 t);
	}
	ck_assert_int_eq(embeng_model_set_schedule(model, "rate", &schedule), 0);
	ck_assert_int_eq(embeng_model_set_engine(model, &EMBENG_INIT(embeng_engine_config,
								     .replicas = REPLICAS,
								     .pipelining = pipelining)),
			 0);
	return model;
}

static void set_inputs(struct embeng_batch *b, int64_t *id)
{
	const int64_t one = 1;

	embeng_batch_reset(b, EMBENG_TRAIN);
	for (int f = 0; f < 2; f++)
		embeng_batch_dense(b, f, EMBENG_I64, id, 1, &one, 1);
}

/* Each step has a row of its own, so that its rate can be told from that row. All replicas give two steps of three up. */
static int make_step(struct embeng *e, struct embeng_batch **batches,
		     const struct embeng_device_info *info, int64_t step)
{
	static const float ones[DIM] = {1, 1, 1, 1};
	static const float *const features[] = {ones, ones};
	struct embeng_activations a = EMBENG_INIT(embeng_activations);
	const int update = step % 3 == 0;
	int64_t id = step;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < info->replica_count; i++) {
		const struct embeng_gradients g = EMBENG_INIT(embeng_gradients,
							      .replica = info->first_replica + i,
							      .count = 2, .features = features);

		set_inputs(batches[i], &id);
		ret = update ? embeng_update(e, batches[i], &g, -1)
			     : embeng_enqueue(e, batches[i], -1);
	}
	for (uint32_t i = 0; !ret && !update && i < info->replica_count; i++) {
		ret = embeng_dequeue(e, info->first_replica + i, -1, &a);
		ret = ret ? ret : embeng_discard(e, info->first_replica + i, -1);
	}
	return ret;
}

static int train_by_schedule(struct embeng *e, float rows[2][ROWS][DIM])
{
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	struct embeng_batch *batches[REPLICAS];
	int ret = embeng_info(e, &info);

	for (uint32_t i = 0; i < info.replica_count; i++)
		batches[i] = embeng_batch_new(e, EMBENG_TRAIN, info.first_replica + i);
	for (int64_t step = 1; !ret && step <= STEPS; step++) {
		ret = make_step(e, batches, &info, step);
		if (!ret && step == STEPS / 2)
			ret = embeng_set_step(e, 1);
	}
	for (uint32_t i = 0; i < info.replica_count; i++)
		embeng_batch_free(batches[i]);
	for (int t = 0; !ret && t < 2; t++)
		ret = embeng_rows_read(e, t, NULL, NULL, ROWS, rows[t][0]);
	return ret;
}

struct scheduled {
	struct embeng_transport transport;
	const char *device;
	int pipelining, code;
	char text[EMBENG_ERROR_TEXT];
	float rows[2][ROWS][DIM];
};

static int train_one_host(struct scheduled *s)
{
	struct embeng_model *model = make_model(s->pipelining);
	struct embeng_group *group = NULL;
	struct embeng *e = NULL;
	int ret = embeng_group_open(&s->transport, NULL, &group, NULL);

	ret = ret ? ret : embeng_open_group(s->device, model, group, &e, NULL);
	ret = ret ? ret : train_by_schedule(e, s->rows);
	if (ret) {
		struct embeng_error error = EMBENG_INIT(embeng_error);

		embeng_last_error(&error);
		snprintf(s->text, sizeof(s->text), "%s", error.text);
	}
	embeng_close(e);
	embeng_group_close(group);
	embeng_model_free(model);
	return ret;
}

static void *run_scheduled(void *arg)
{
	struct scheduled *s = arg;

	s->code = train_one_host(s);
	return NULL;
}

static void train_group(uint32_t count, const char *device, int pipelining,
			float expected[2][ROWS][DIM])
{
	struct embeng_transport transports[RUN_HOSTS_MOST];
	struct scheduled *hosts = calloc(count, sizeof(*hosts));
	pthread_t threads[RUN_HOSTS_MOST];

	ck_assert_int_eq(embeng_group_threads(count, transports), 0);
	for (uint32_t i = 0; i < count; i++) {
		hosts[i].transport = transports[i];
		hosts[i].device = device;
		hosts[i].pipelining = pipelining;
		ck_assert_int_eq(pthread_create(&threads[i], NULL, run_scheduled, &hosts[i]), 0);
	}
	for (uint32_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < count; i++) {
		ck_assert_msg(!hosts[i].code, "host %u of %u: %s", i, count, hosts[i].text);
		ck_assert_mem_eq(hosts[i].rows, expected, sizeof(hosts[i].rows));
	}
	free(hosts);
}

static const char *const devices[] = {RUN_DEVICE, RUN_ROWS, RUN_GRADS};
#define DEVICES 3

START_TEST(rates_of_schedules_are_those_of_one_process)
{
	static float expected[2][ROWS][DIM], start[DIM];
	const char *device = devices[_i / RUN_HOST_COUNTS];

	for (int pipelining = 0; pipelining < 2; pipelining++) {
		struct embeng_model *model = make_model(pipelining);
		struct embeng *e;

		ck_assert_int_eq(embeng_open(RUN_DEVICE, model, &e, NULL), 0);
		ck_assert_int_eq(embeng_rows_read(e, 0, NULL, (const int64_t[]){6}, 1, start), 0);
		ck_assert_int_eq(train_by_schedule(e, expected), 0);
		embeng_close(e);
		embeng_model_free(model);
		/* The sixth step is the second that counts. */
		ck_assert_float_eq_tol(expected[0][6][0], start[0] - REPLICAS * 0.25f, 1e-5f);
		for (int i = 0; i < 4; i++)
			train_group(run_host_count(_i), device, pipelining, expected);
	}
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, rates_of_schedules_are_those_of_one_process, 0,
			    DEVICES * RUN_HOST_COUNTS);
}

int main(void)
{
	return suite_main("hosts_schedules", add_tests);
}
