// SPDX-License-Identifier: MIT
/*
 * A step of a handle over several hosts sends the bytes that a plan of hosts tells: to the byte for whole tables
 * and columns, and within 2 % for rows that are spread, whose different ones a plan expects and does not know.
 */
#include <math.h>

#include "counted_transport.h"
#include "embeng/hosts.h"
#include "group_help.h"
#include "test_model.h"

#define DEVICE "soft:cores=1,memory=64M"

enum { TABLES = 4, FEATURES = 5, SAMPLES = 128, BAG = 6, LENGTH = 5, STEPS = 4 };

static const struct {
	int64_t rows, dim;
} shapes[TABLES] = {{4000, 48}, {30000, 17}, {700, 64}, {9000, 24}};

/* Tables of features; the last feature is a sequence. */
static const int tables[FEATURES] = {0, 1, 0, 2, 3};

struct member {
	const struct embeng_model *model;
	const char *device;
	int steps;
	struct embeng_transport transport;
	struct counted counted;
	char text[EMBENG_ERROR_TEXT];
};

static struct embeng_model *make_model(uint32_t replicas, bool alone)
{
	struct embeng_model *m = embeng_model_new();

	for (int t = 0; t < TABLES; t++) {
		struct embeng_table_config c = table_config(NULL);

		c.vocabulary_size = shapes[t].rows;
		c.dim = shapes[t].dim;
		c.optimizer = t == 2 ? embeng_rowwise_adagrad(0.1f) : embeng_adagrad(0.1f);
		if (alone)
			c.optimizer.use_gradient_accumulation = EMBENG_OFF;
		c.optimizer.rate_name = t == 1 ? "rate" : NULL;
		ck_assert_int_eq(embeng_model_add_table(m, &c), t);
	}
	for (int i = 0; i < FEATURES; i++) {
		struct embeng_feature_config f = feature_config(NULL);

		f.table = tables[i];
		f.max_sequence_length = i == FEATURES - 1 ? LENGTH : 0;
		ck_assert_int_eq(embeng_model_add_feature(m, &f), i);
	}
	ck_assert_int_eq(embeng_model_set_engine(
				 m, &EMBENG_INIT(embeng_engine_config, .replicas = replicas)),
			 0);
	return m;
}

static int64_t draw_id(uint32_t replica, int feature, size_t i)
{
	uint64_t x = ((uint64_t)replica << 40) + ((uint64_t)feature << 32) + i + 1;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (int64_t)((x ^ x >> 31) % (uint64_t)shapes[tables[feature]].rows);
}

static int enqueue_replica(struct embeng *e, uint32_t replica)
{
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, replica);
	int64_t ids[FEATURES][SAMPLES * BAG], lengths[FEATURES][SAMPLES];
	float weights[SAMPLES * BAG]; /* the batch refers to all of these */
	int ret = b ? 0 : -ENOMEM;

	for (int f = 0; !ret && f < FEATURES; f++) {
		const bool pooled = f < FEATURES - 1;
		const size_t each = pooled ? BAG : LENGTH;

		for (size_t i = 0; i < SAMPLES * each; i++) {
			ids[f][i] = draw_id(replica, f, i);
			weights[i] = 1.0f;
		}
		for (size_t s = 0; s < SAMPLES; s++)
			lengths[f][s] = (int64_t)each;
		ret = embeng_batch_ragged(b, f, EMBENG_I64, ids[f], SAMPLES * each, lengths[f],
					  SAMPLES, pooled ? weights : NULL,
					  pooled ? SAMPLES * each : 0);
	}
	ret = ret ? ret : embeng_enqueue(e, b, -1);
	embeng_batch_free(b);
	return ret;
}

static int apply_replica(struct embeng *e, uint32_t replica)
{
	const struct embeng_rate rate = {"rate", 0.1f};
	struct embeng_activations a = EMBENG_INIT(embeng_activations);
	const float *features[FEATURES];
	int ret = embeng_dequeue(e, replica, -1, &a);

	for (int f = 0; !ret && f < FEATURES; f++)
		features[f] = a.features[f].data; /* as good as any other gradient */
	return ret ? ret
		   : embeng_apply_gradients(e,
					    &EMBENG_INIT(embeng_gradients, .replica = replica,
							 .count = FEATURES, .features = features,
							 .rates = &rate, .rate_count = 1),
					    -1);
}

static int train_step(struct embeng *e)
{
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	int ret = embeng_info(e, &info);

	for (uint32_t i = 0; !ret && i < info.replica_count; i++)
		ret = enqueue_replica(e, info.first_replica + i);
	for (uint32_t i = 0; !ret && i < info.replica_count; i++)
		ret = apply_replica(e, info.first_replica + i);
	return ret ? ret : embeng_flush(e, -1);
}

static int train_steps(struct embeng *e, int steps)
{
	int ret = 0;

	for (int step = 0; !ret && step < steps; step++)
		ret = train_step(e);
	return ret;
}

static void *run_member(void *arg)
{
	struct member *m = arg;
	struct embeng_error error = EMBENG_INIT(embeng_error);
	struct embeng_group *group = NULL;
	struct embeng *e = NULL;
	int ret = embeng_group_open(
		&m->transport, &EMBENG_INIT(embeng_group_options, .deadline_ns = 60000 * GROUP_MS),
		&group, NULL);

	ret = ret ? ret : embeng_open_group(m->device, m->model, group, &e, NULL);
	ret = ret ? ret : train_steps(e, m->steps);
	embeng_last_error(&error);
	if (ret)
		snprintf(m->text, sizeof(m->text), "%s", error.text);
	embeng_close(e);
	embeng_group_close(group);
	return NULL;
}

/* Bytes and messages of exchanges that all hosts send from the group's beginning to its end. */
struct totals {
	uint64_t sent, messages;
};

static struct totals run_members(const struct embeng_model *model, const char *device,
				 uint32_t hosts, int steps)
{
	struct member members[GROUP_RANKS_MOST];
	struct totals totals = {0};
	struct embeng_transport transports[GROUP_RANKS_MOST];
	pthread_t threads[GROUP_RANKS_MOST];

	ck_assert_int_eq(embeng_group_threads(hosts, transports), 0);
	for (uint32_t h = 0; h < hosts; h++) {
		members[h] = (struct member){.model = model, .device = device, .steps = steps};
		count_transport(&transports[h], &members[h].counted);
		members[h].transport = transports[h];
		ck_assert_int_eq(pthread_create(&threads[h], NULL, run_member, &members[h]), 0);
	}
	for (uint32_t h = 0; h < hosts; h++)
		pthread_join(threads[h], NULL);
	for (uint32_t h = 0; h < hosts; h++) {
		ck_assert_str_eq(members[h].text, "");
		totals.sent += members[h].counted.sent;
		totals.messages += members[h].counted.messages;
	}
	return totals;
}

static struct embeng_hosts_plan *make_plan(const struct embeng_model *m, uint32_t hosts,
					   enum embeng_exchange_kind exchange)
{
	const struct embeng_plan_options sizes = EMBENG_INIT(
		embeng_plan_options, .batch_size = SAMPLES, .ids_per_sample = BAG,
		.id_type = EMBENG_I64, .weights = 1);
	struct embeng_hosts_plan *plan = NULL;

	ck_assert_int_eq(embeng_model_plan_hosts(m,
						 &EMBENG_INIT(embeng_hosts_options, .hosts = hosts,
							      .plan = &sizes, .exchange = exchange),
						 &plan),
			 0);
	return plan;
}

static const struct {
	uint32_t hosts, replicas;
} groups[] = {{2, 2}, {3, 4}, {4, 2}, {8, 8}};

START_TEST(a_step_sends_what_is_planned)
{
	const uint32_t hosts = groups[_i].hosts, replicas = groups[_i].replicas;
	struct embeng_model *m = make_model(replicas, false);
	struct embeng_hosts_plan *plan = make_plan(m, hosts, EMBENG_EXCHANGE_TABLE);
	/* Opening and closing are in both. */
	const struct totals one = run_members(m, DEVICE, hosts, 1),
			    more = run_members(m, DEVICE, hosts, 1 + STEPS);

	ck_assert_uint_eq(more.sent - one.sent, STEPS * plan->sent);
	ck_assert_uint_eq(more.messages - one.messages, STEPS * plan->messages);
	embeng_hosts_plan_free(plan);
	embeng_model_free(m);
}
END_TEST

/* Rows with sums, with gradients, and with gradients that are taken one by one. */
static const struct {
	const char *device;
	enum embeng_exchange_kind exchange;
	bool alone;
} spreads[] = {{DEVICE ",exchange=rows", EMBENG_EXCHANGE_ROWS, false},
	       {DEVICE ",exchange=rows+grads", EMBENG_EXCHANGE_ROWS_GRADIENTS, false},
	       {DEVICE ",exchange=rows+grads", EMBENG_EXCHANGE_ROWS_GRADIENTS, true}};

START_TEST(a_step_sends_as_many_rows_as_planned)
{
	const size_t kind = (size_t)_i / COUNT(groups), group = (size_t)_i % COUNT(groups);
	const char *device = spreads[kind].device;
	const uint32_t hosts = groups[group].hosts, replicas = groups[group].replicas;
	struct embeng_model *m = make_model(replicas, spreads[kind].alone);
	struct embeng_hosts_plan *plan = make_plan(m, hosts, spreads[kind].exchange);
	const struct totals one = run_members(m, device, hosts, 1),
			    more = run_members(m, device, hosts, 1 + STEPS);
	const double planned = (double)(STEPS * plan->sent), sent = (double)(more.sent - one.sent);

	ck_assert_double_le(fabs(sent / planned - 1.0), 0.02);
	ck_assert_uint_eq(more.messages - one.messages, STEPS * plan->messages);
	embeng_hosts_plan_free(plan);
	embeng_model_free(m);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, a_step_sends_what_is_planned, 0, (int)COUNT(groups));
	tcase_add_loop_test(tcase, a_step_sends_as_many_rows_as_planned, 0,
			    (int)(COUNT(groups) * COUNT(spreads)));
}

int main(void)
{
	return suite_main("bytes_counted", add_tests);
}
