// SPDX-License-Identifier: MIT
/* Calls beside the plain step on a handle over all hosts: updates, discards, inference, threads, refusals. */
#include "embeng/partition.h"
#include "embeng/preprocess.h"
#include "embeng/shard.h"
#include "embeng/spread.h"
#include "hosts_help.h"
#include "suite.h"

#define DEADLINE (20 * 1000 * GROUP_MS)

/* Tables are whole or cut, and all are spread by rows. */
static const char *const devices[] = {RUN_DEVICE, RUN_ROWS, RUN_GRADS};

static struct run make_run(uint32_t steps)
{
	return (struct run){.optimizer = embeng_adam(0.01f), .replicas = 4, .steps = steps};
}

/* Runs @body on 1, 2, 3, 4 and 8 hosts, and compares each with the run of one process. */
static void compare_bodies(const struct run *kind, void (*body)(struct run *run, struct embeng *e),
			   void (*host_body)(struct run_host *h))
{
	static const uint32_t counts[] = {2, 3, 4, 8};
	struct run_host hosts[RUN_HOSTS_MOST];
	struct run alone = *kind;
	struct embeng_model *model = run_model(kind);
	struct embeng *e;

	run_make_rows(&alone);
	ck_assert_int_eq(embeng_open("soft:cores=1", model, &e, NULL), 0);
	body(&alone, e);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	run_keep_rows(&alone, e);
	embeng_close(e);
	embeng_model_free(model);
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		struct run group = *kind;

		run_hosts(&group, counts[i], host_body, NULL, 0, DEADLINE, hosts);
		for (uint32_t k = 0; k < counts[i]; k++)
			ck_assert_msg(!hosts[k].code, "host %u: %d, %s", k, hosts[k].code,
				      hosts[k].text);
		ck_assert_uint_eq(run_differences(&alone, &group), 0);
		run_free_rows(&group);
	}
	run_free_rows(&alone);
}

static void keep_host_rows(struct run_host *h)
{
	ck_assert_int_eq(embeng_flush(h->e, -1), 0);
	if (run_note(h, hosts_enter(h->e)))
		return;
	run_keep_rows(h->run, h->e);
	hosts_leave(h->e);
}

static struct embeng_device_info info_of(struct embeng *e)
{
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);

	ck_assert_int_eq(embeng_info(e, &info), 0);
	return info;
}

/* -- updates and discards -- */

/* A gradient for an update, which has seen no activations. */
static int update_replica(struct run *run, struct embeng *e, struct embeng_batch *b, uint64_t step,
			  uint32_t r)
{
	static _Thread_local struct run_bags bags[RUN_FEATURES];
	static _Thread_local float room[RUN_FEATURES][RUN_SAMPLES * 96];
	const float *features[RUN_FEATURES];

	embeng_batch_reset(b, EMBENG_TRAIN);
	for (int f = 0; f < RUN_FEATURES; f++) {
		run_input(run, b, step, r, f, &bags[f]);
		for (size_t i = 0; i < RUN_SAMPLES * 96; i++)
			room[f][i] = (float)(run_mix(i + step + r) % 97) / 97;
		features[f] = room[f];
	}
	return embeng_update(e, b,
			     &EMBENG_INIT(embeng_gradients, .replica = r, .count = RUN_FEATURES,
					  .features = features, .multiplier = 0.5f),
			     -1);
}

/* In each step a replica looks up and trains, looks up and gives up, or updates. All discard step 4. */
static int mixed_step(struct run *run, struct embeng *e, struct embeng_batch *const *b,
		      const struct embeng_device_info *info, uint64_t step)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < info->replica_count; i++) {
		const uint32_t r = info->first_replica + i;

		ret = (step + r) % 3 == 0 && step != 4 ? update_replica(run, e, b[i], step, r)
						       : run_enqueue(run, e, b[i], step, r);
	}
	for (uint32_t i = 0; !ret && i < info->replica_count; i++) {
		const uint32_t r = info->first_replica + i;
		struct embeng_activations act = EMBENG_INIT(embeng_activations);

		if (step == 4 || (step + r) % 3 == 1) {
			ret = embeng_dequeue(e, r, -1, &act);
			ret = ret ? ret : embeng_discard(e, r, -1);
		} else if ((step + r) % 3 == 2) {
			ret = run_apply_times(run, e, step, r, 0.5f);
		}
	}
	return ret;
}

static void mixed_steps(struct run *run, struct embeng *e)
{
	const struct embeng_device_info info = info_of(e);
	struct embeng_batch *b[RUN_REPLICAS_MOST];

	for (uint32_t i = 0; i < info.replica_count; i++)
		b[i] = embeng_batch_new(e, EMBENG_TRAIN, info.first_replica + i);
	for (uint64_t step = 1; step <= run->steps; step++)
		ck_assert_int_eq(mixed_step(run, e, b, &info, step), 0);
	for (uint32_t i = 0; i < info.replica_count; i++)
		embeng_batch_free(b[i]);
}

static void mixed_steps_of_host(struct run_host *h)
{
	mixed_steps(h->run, h->e);
	keep_host_rows(h);
}

START_TEST(updates_and_discards)
{
	struct run kind = make_run(7);

	kind.device = devices[_i];
	compare_bodies(&kind, mixed_steps, mixed_steps_of_host);
}
END_TEST

/* -- sums of gradients, one for each sample -- */

/* Rows repeat in a batch, within a feature and over two of one table. */
static int train_sums(struct run *run, struct embeng *e, uint64_t step, uint32_t r)
{
	static _Thread_local int64_t ids[RUN_FEATURES][RUN_SAMPLES];
	static _Thread_local float room[RUN_FEATURES][RUN_SAMPLES * 96];
	const int64_t shape[] = {RUN_SAMPLES};
	const float *features[RUN_FEATURES];
	struct embeng_activations act = EMBENG_INIT(embeng_activations);
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, r);
	int ret = 0;

	for (int f = 0; !ret && f < RUN_FEATURES; f++) {
		const uint64_t rows = (uint64_t)run_rows[run_tables[f]];

		for (size_t i = 0; i < RUN_SAMPLES * 96; i++)
			room[f][i] = (float)(run_mix(i + 31 * step + r) % 97) / 97 - 0.5f;
		for (uint64_t i = 0; i < RUN_SAMPLES; i++)
			ids[f][i] = (int64_t)(run_mix(step + r + i) % (rows < 6 ? rows : 6));
		features[f] = f == 4 ? NULL : room[f];
		ret = embeng_batch_dense(b, f, EMBENG_I64, ids[f], RUN_SAMPLES, shape, 1);
	}
	ret = ret ? ret : embeng_enqueue(e, b, -1);
	embeng_batch_free(b);
	ret = ret ? ret : embeng_dequeue(e, r, -1, &act);
	for (int f = 0; !ret && f < RUN_FEATURES; f++)
		run->seen[step - 1][r] = run_digest(run->seen[step - 1][r], act.features[f].data,
						    4 * run_floats(&act.features[f]));
	return ret ? ret
		   : embeng_apply_gradients(e,
					    &EMBENG_INIT(embeng_gradients, .replica = r, .sums = 1,
							 .count = RUN_FEATURES,
							 .features = features),
					    -1);
}

static void train_by_sums(struct run *run, struct embeng *e)
{
	const struct embeng_device_info info = info_of(e);

	for (uint64_t step = 1; step <= run->steps; step++)
		for (uint32_t i = 0; i < info.replica_count; i++)
			ck_assert_int_eq(train_sums(run, e, step, info.first_replica + i), 0);
}

static void train_sums_of_host(struct run_host *h)
{
	train_by_sums(h->run, h->e);
	keep_host_rows(h);
}

START_TEST(sums_that_are_given)
{
	struct run_host hosts[RUN_HOSTS_MOST];
	struct run kind = make_run(4), alone;
	struct embeng_model *model;
	struct embeng *e;

	kind.device = devices[_i];
	alone = kind;
	model = run_model(&kind);
	run_make_rows(&alone);
	ck_assert_int_eq(embeng_open(RUN_DEVICE, model, &e, NULL), 0);
	train_by_sums(&alone, e);
	run_keep_rows(&alone, e);
	embeng_close(e);
	run_hosts(&kind, 4, train_sums_of_host, NULL, 0, DEADLINE, hosts);
	for (uint32_t i = 0; i < 4; i++)
		ck_assert_msg(!hosts[i].code, "host %u: %d, %s", i, hosts[i].code, hosts[i].text);
	ck_assert_uint_eq(run_differences(&alone, &kind), 0);
	embeng_model_free(model);
	run_free_rows(&alone);
	run_free_rows(&kind);
}
END_TEST

/* -- a thread for each replica -- */

struct feeder {
	struct run *run;
	struct embeng *e;
	uint32_t replica;
	int ret;
};

static void *feed_replica(void *arg)
{
	struct feeder *f = arg;
	struct embeng_batch *b = embeng_batch_new(f->e, EMBENG_TRAIN, f->replica);

	for (uint64_t step = 1; !f->ret && step <= f->run->steps; step++) {
		f->ret = run_enqueue(f->run, f->e, b, step, f->replica);
		f->ret = f->ret ? f->ret : run_apply(f->run, f->e, step, f->replica);
	}
	embeng_batch_free(b);
	return NULL;
}

static void feed_by_threads(struct run *run, struct embeng *e)
{
	const struct embeng_device_info info = info_of(e);
	struct feeder feeders[RUN_REPLICAS_MOST];
	pthread_t threads[RUN_REPLICAS_MOST];

	for (uint32_t i = 0; i < info.replica_count; i++) {
		feeders[i] = (struct feeder){run, e, info.first_replica + i, 0};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, feed_replica, &feeders[i]), 0);
	}
	for (uint32_t i = 0; i < info.replica_count; i++) {
		pthread_join(threads[i], NULL);
		ck_assert_int_eq(feeders[i].ret, 0);
	}
}

static void feed_host_by_threads(struct run_host *h)
{
	feed_by_threads(h->run, h->e);
	keep_host_rows(h);
}

START_TEST(thread_for_each_replica)
{
	struct run kind = make_run(8);

	kind.device = devices[_i];
	kind.replicas = 8;
	compare_bodies(&kind, feed_by_threads, feed_host_by_threads);
}
END_TEST

/* -- inference -- */

/* Looks up after each step, by both calls; what was read is kept where the digests of another replica are. */
static void infer_step(struct run *run, struct embeng *e, uint64_t step, uint32_t r)
{
	static _Thread_local struct run_bags bags[RUN_FEATURES];
	static _Thread_local float room[RUN_FEATURES][RUN_SAMPLES * 96];
	struct embeng_output out[RUN_FEATURES];
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, r);
	uint64_t seen = 3;

	memset(room, 0, sizeof(room));
	for (int f = 0; f < RUN_FEATURES; f++) {
		run_input(run, b, step + 50, r, f, &bags[f]);
		out[f] = (struct embeng_output){.data = room[f],
						.elements = sizeof(room[f]) / sizeof(float)};
	}
	ck_assert_int_eq(embeng_lookup(e, b, out, RUN_FEATURES, -1), 0);
	for (int f = 0; f < RUN_FEATURES; f++)
		seen = run_digest(seen, room[f], sizeof(room[f]));
	embeng_batch_free(b);
	run->seen[step - 1][r] += seen;
}

static void infer_queued(struct run *run, struct embeng *e, uint64_t step, uint32_t r)
{
	static _Thread_local struct run_bags bags[RUN_FEATURES];
	struct embeng_activations act = EMBENG_INIT(embeng_activations);
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, r);

	for (int f = 0; f < RUN_FEATURES; f++)
		run_input(run, b, step + 90, r, f, &bags[f]);
	ck_assert_int_eq(embeng_enqueue(e, b, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, r, -1, &act), 0);
	for (int f = 0; f < RUN_FEATURES; f++)
		run->seen[step - 1][r] += run_digest(7, act.features[f].data,
						     run_floats(&act.features[f]) * sizeof(float));
	ck_assert_int_eq(embeng_release(e, &act), 0);
	embeng_batch_free(b);
}

/* Every host makes as many collective calls: one for each replica of its own, and as many as there are. */
static void train_and_infer(struct run *run, struct embeng *e)
{
	const struct embeng_device_info info = info_of(e);
	struct embeng_batch *b[RUN_REPLICAS_MOST];

	for (uint32_t i = 0; i < info.replica_count; i++)
		b[i] = embeng_batch_new(e, EMBENG_TRAIN, info.first_replica + i);
	for (uint64_t step = 1; step <= run->steps; step++) {
		for (uint32_t i = 0; i < info.replica_count; i++)
			ck_assert_int_eq(run_enqueue(run, e, b[i], step, info.first_replica + i),
					 0);
		for (uint32_t i = 0; i < info.replica_count; i++)
			ck_assert_int_eq(run_apply(run, e, step, info.first_replica + i), 0);
		for (uint32_t i = 0; i < info.replica_count; i++) {
			infer_step(run, e, step, info.first_replica + i);
			infer_queued(run, e, step, info.first_replica + i);
		}
	}
	for (uint32_t i = 0; i < info.replica_count; i++)
		embeng_batch_free(b[i]);
}

static void train_and_infer_host(struct run_host *h)
{
	train_and_infer(h->run, h->e);
	keep_host_rows(h);
}

/* With 2 and 4 hosts, so that each makes the same number of calls. */
START_TEST(inference_sees_updates)
{
	struct run kind = make_run(4), alone = kind;
	struct run_host hosts[RUN_HOSTS_MOST];
	struct embeng_model *model = run_model(&kind);
	struct embeng *e;

	kind.device = devices[_i];
	run_make_rows(&alone);
	ck_assert_int_eq(embeng_open("soft:cores=1", model, &e, NULL), 0);
	train_and_infer(&alone, e);
	run_keep_rows(&alone, e);
	embeng_close(e);
	embeng_model_free(model);
	for (uint32_t count = 2; count <= 4; count += 2) {
		struct run group = kind;

		run_hosts(&group, count, train_and_infer_host, NULL, 0, DEADLINE, hosts);
		ck_assert_uint_eq(run_differences(&alone, &group), 0);
		run_free_rows(&group);
	}
	run_free_rows(&alone);
}
END_TEST

/* -- calls that are refused -- */

static void expect_refusal(struct run_host *h, int ret, const char *call)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);

	embeng_last_error(&error);
	ck_assert_msg(ret == -ENOTSUP, "%s: %d, %s", call, ret, error.text);
	ck_assert_msg(!strncmp(error.text, call, strlen(call)), "%s: %s", call, error.text);
	ck_assert_ptr_nonnull(strstr(error.text, "hosts of a group"));
	(void)h;
}

static void call_refused(struct run_host *h)
{
	struct embeng_activations act = EMBENG_INIT(embeng_activations);
	struct embeng_serving *serving;
	struct embeng *e = h->e;
	int64_t stride;
	float *rows;
	int fence;

	expect_refusal(h, embeng_dequeue_fence(e, 0, -1, &act, &fence), "embeng_dequeue_fence");
	expect_refusal(h, embeng_export(e), "embeng_export");
	expect_refusal(h, embeng_add_tables(e, embeng_get_model(e)), "embeng_add_tables");
	expect_refusal(h, embeng_table_map(e, 0, NULL, &rows, &stride), "embeng_table_map");
	expect_refusal(h, embeng_table_unmap(e, 0, NULL), "embeng_table_unmap");
	expect_refusal(h, embeng_partition(e, NULL, NULL, NULL), "embeng_partition");
	expect_refusal(h, embeng_preprocess(e, NULL, NULL, NULL, NULL), "embeng_preprocess");
	expect_refusal(h, embeng_spread_unique(e, NULL), "embeng_spread_unique");
	expect_refusal(h, embeng_spread_pool(e, NULL), "embeng_spread_pool");
	expect_refusal(h, embeng_spread_sum(e, NULL), "embeng_spread_sum");
	expect_refusal(h, embeng_serving_live(e, embeng_get_model(e), &serving, NULL),
		       "embeng_serving_live");
}

/* Rows, what belongs to them, and checkpoints. */
static void call_refused_rows(struct run_host *h)
{
	const struct embeng_shard shard = EMBENG_INIT(embeng_shard, .hosts = 1);
	struct embeng *e = h->e;
	float row[96];

	expect_refusal(h, embeng_shard_read(e, 0, NULL, &shard, 0, 1, row), "embeng_shard_read");
	expect_refusal(h, embeng_shard_write(e, 0, NULL, &shard, 0, 1, row), "embeng_shard_write");
	expect_refusal(h, embeng_shard_initialize(e, 0, NULL, NULL, NULL),
		       "embeng_shard_initialize");
	expect_refusal(h, embeng_save_stream(e, NULL, NULL), "embeng_save_stream");
	expect_refusal(h, embeng_restore_stream(e, NULL, NULL), "embeng_restore");
}

/* Memory of the program is its own, whether or not the owner's device reaches it. */
static void use_memory(struct run_host *h)
{
	struct embeng_counter_values counters = EMBENG_INIT(embeng_counter_values);
	struct embeng_usage usage = EMBENG_INIT(embeng_usage);
	struct embeng *e = h->e;
	int64_t *ids = embeng_buffer_alloc(e, 4096);
	static _Thread_local int64_t own[64];
	struct embeng_batch *b;
	const int64_t shape[] = {2};
	struct embeng_activations act = EMBENG_INIT(embeng_activations);

	ck_assert_ptr_nonnull(ids);
	ck_assert_int_eq(embeng_memory_register(e, own, sizeof(own)), 0);
	for (uint32_t i = 0; i < 2; i++) {
		b = embeng_batch_new(e, EMBENG_TRAIN, 2 * h->rank + i);
		for (int f = 0; f < RUN_FEATURES; f++)
			ck_assert_int_eq(embeng_batch_dense(b, f, EMBENG_I64, f % 2 ? own : ids, 2,
							    shape, 1),
					 0);
		ck_assert_int_eq(embeng_enqueue(e, b, -1), 0);
		embeng_batch_free(b);
	}
	/* Ids were copied, so that nothing holds the buffer. */
	ck_assert_int_eq(embeng_buffer_free(e, ids), 0);
	ck_assert_int_eq(embeng_memory_unregister(e, own), 0);
	for (uint32_t i = 0; i < 2; i++) {
		ck_assert_int_eq(embeng_dequeue(e, 2 * h->rank + i, -1, &act), 0);
		ck_assert_int_eq(embeng_discard(e, 2 * h->rank + i, -1), 0);
	}
	ck_assert_int_eq(embeng_counters(e, &counters), 0);
	ck_assert_uint_eq(counters.lookups, 2);
	ck_assert_int_eq(embeng_usage(e, &usage), 0);
	ck_assert_uint_gt(usage.table_bytes, 0);
	ck_assert_int_eq(embeng_memory_export(e, own, NULL), -EINVAL);
	ck_assert_ptr_null(embeng_buffer_import(e, -1, NULL));
	embeng_log(e, NULL, NULL, EMBENG_LOG_ERROR);
}

START_TEST(memory_and_counts)
{
	struct run_host hosts[RUN_HOSTS_MOST];
	struct run run = make_run(1);

	run_hosts(&run, 2, use_memory, NULL, 0, DEADLINE, hosts);
	ck_assert_int_eq(hosts[0].code | hosts[1].code, 0);
	run_free_rows(&run);
}
END_TEST

START_TEST(refused_calls)
{
	static void (*const bodies[])(struct run_host *h) = {call_refused, call_refused_rows};
	struct run_host hosts[RUN_HOSTS_MOST];
	struct run run = make_run(1);

	run_hosts(&run, 2, bodies[_i], NULL, 0, DEADLINE, hosts);
	ck_assert_int_eq(hosts[0].code, 0);
	ck_assert_int_eq(hosts[1].code, 0);
	run_free_rows(&run);
}
END_TEST

/* A replica of another host is named as such. */
static void feed_foreign_replica(struct run_host *h)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);
	const struct embeng_device_info info = info_of(h->e);
	const uint32_t foreign = h->rank ? 0 : 3;

	ck_assert_uint_eq(info.host, h->rank);
	ck_assert_uint_eq(info.hosts, 2);
	ck_assert_uint_eq(info.first_replica, 2 * h->rank);
	ck_assert_uint_eq(info.replica_count, 2);
	ck_assert_ptr_null(embeng_batch_new(h->e, EMBENG_TRAIN, foreign));
	embeng_last_error(&error);
	ck_assert_str_eq(error.text,
			 h->rank ? "embeng_batch_new: replica 0 is another host's; this host has "
				   "replicas 2 to 3 (embeng_info())"
				 : "embeng_batch_new: replica 3 is another host's; this host has "
				   "replicas 0 to 1 (embeng_info())");
}

START_TEST(foreign_replicas)
{
	struct run_host hosts[RUN_HOSTS_MOST];
	struct run run = make_run(1);

	run_hosts(&run, 2, feed_foreign_replica, NULL, 0, DEADLINE, hosts);
	ck_assert_int_eq(hosts[0].code | hosts[1].code, 0);
	run_free_rows(&run);
}
END_TEST

/* -- what is refused, so that the step can be given otherwise -- */

/* Sums for bags, and then gradients for them. */
static void give_sums_for_bags(struct run_host *h)
{
	static _Thread_local float room[RUN_SAMPLES * 96];
	struct embeng_error error = EMBENG_INIT(embeng_error);
	const struct embeng_device_info info = info_of(h->e);
	struct embeng_activations act = EMBENG_INIT(embeng_activations);
	const float *features[RUN_FEATURES];

	for (int f = 0; f < RUN_FEATURES; f++)
		features[f] = room;
	for (uint32_t r = info.first_replica; r < info.first_replica + info.replica_count; r++) {
		struct embeng_batch *b = embeng_batch_new(h->e, EMBENG_TRAIN, r);

		ck_assert_int_eq(run_enqueue(h->run, h->e, b, 1, r), 0);
		embeng_batch_free(b);
	}
	for (uint32_t r = info.first_replica; r < info.first_replica + info.replica_count; r++) {
		struct embeng_gradients g = EMBENG_INIT(embeng_gradients, .replica = r, .sums = 1,
							.count = RUN_FEATURES,
							.features = features);

		ck_assert_int_eq(embeng_dequeue(h->e, r, -1, &act), 0);
		ck_assert_int_eq(embeng_apply_gradients(h->e, &g, -1), -EINVAL);
		embeng_last_error(&error);
		ck_assert_str_eq(error.text,
				 "step 1: feature f0: a sum belongs to one row, so the batch names "
				 "rows with embeng_batch_dense(), one in each sample");
		g.sums = 0;
		ck_assert_int_eq(embeng_apply_gradients(h->e, &g, -1), 0);
	}
	run_note(h, embeng_flush(h->e, -1));
}

START_TEST(bags_take_no_sums)
{
	struct run_host hosts[RUN_HOSTS_MOST];
	struct run run = make_run(4);

	run.device = _i ? RUN_ROWS : RUN_DEVICE;
	run_hosts(&run, 2, give_sums_for_bags, NULL, 0, DEADLINE, hosts);
	for (int i = 0; i < 2; i++)
		ck_assert_msg(!hosts[i].code, "host %d: %s", i, hosts[i].text);
	run_free_rows(&run);
}
END_TEST

/* The table t1 has the combiner max, and the model is pipelined. */
static void update_unlooked_max(struct run_host *h)
{
	static _Thread_local struct run_bags bags[RUN_FEATURES];
	const float *features[RUN_FEATURES] = {NULL};
	const struct embeng_device_info info = info_of(h->e);
	struct embeng_batch *b = embeng_batch_new(h->e, EMBENG_TRAIN, info.first_replica);

	for (int f = 0; f < RUN_FEATURES; f++)
		run_input(h->run, b, 1, info.first_replica, f, &bags[f]);
	run_note(h, embeng_update(h->e, b,
				  &EMBENG_INIT(embeng_gradients, .replica = info.first_replica,
					       .count = RUN_FEATURES, .features = features),
				  -1));
	ck_assert_int_eq(run_enqueue(h->run, h->e, b, 1, info.first_replica), 0);
	ck_assert_int_eq(run_apply(h->run, h->e, 1, info.first_replica), 0);
	ck_assert_int_eq(embeng_flush(h->e, -1), 0);
	embeng_batch_free(b);
}

START_TEST(pipelined_max_is_looked_up)
{
	struct run_host hosts[RUN_HOSTS_MOST];
	struct run run = make_run(2);

	run.combiner = EMBENG_MAX;
	run.weights = 0;
	run.pipelining = 1;
	run.replicas = 2;
	run_hosts(&run, 2, update_unlooked_max, NULL, 0, DEADLINE, hosts);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(hosts[i].code, -ENOTSUP);
		ck_assert_msg(strstr(hosts[i].text, "the combiner of table t1 is max"), "%s",
			      hosts[i].text);
	}
	run_free_rows(&run);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, updates_and_discards, 0, 3);
	tcase_add_loop_test(tcase, sums_that_are_given, 0, 3);
	tcase_add_loop_test(tcase, thread_for_each_replica, 0, 3);
	tcase_add_loop_test(tcase, inference_sees_updates, 0, 3);
	tcase_add_test(tcase, memory_and_counts);
	tcase_add_loop_test(tcase, refused_calls, 0, 2);
	tcase_add_test(tcase, foreign_replicas);
	tcase_add_loop_test(tcase, bags_take_no_sums, 0, 2);
	tcase_add_test(tcase, pipelined_max_is_looked_up);
}

int main(void)
{
	return suite_main("hosts_calls", add_tests);
}
