/* SPDX-License-Identifier: MIT */
/*
 * One training run, on one handle or on a handle over several hosts: the same data by step, replica and
 * feature, so that all numbers can be compared.
 */
#ifndef EMBENG_TESTS_HOSTS_HELP_H
#define EMBENG_TESTS_HOSTS_HELP_H

#include <math.h>
#include <stdlib.h>

#include "group_help.h"
#undef fail /* hosts.h defines one, and so does Check */
#include "hosts/hosts.h"

#define RUN_DEVICE "soft:cores=1"
#define RUN_ROWS RUN_DEVICE ",exchange=rows"
#define RUN_GRADS RUN_DEVICE ",exchange=rows+grads"
#define RUN_HOSTS_MOST 8
#define RUN_REPLICAS_MOST 8
#define RUN_STEPS_MOST 8
#define RUN_TABLES 5
#define RUN_FEATURES 7
#define RUN_SAMPLES 9
#define RUN_BAG 5
#define RUN_SLOTS_MOST 4

/**
 * struct run - a training run
 * @device: NULL: RUN_DEVICE; what follows the name there chooses an exchange
 * @policy: for ids outside their table; there are some unless they are errors
 * @buckets: levels of the table of sequences, if it is quantized
 * @mixed: each second table takes every gradient by itself, so that no sums of them can be sent
 * @alone: all tables do
 * @limits: the model tells how large batches are, so that exchanges are chosen by bytes
 * @parts: each table is a part of a larger one, and slots of one name begin at random, too
 * @tiny: rows begin at -0 and gradients are denormal, so that zeros have signs
 * @ahead: steps that are enqueued before the gradients of the first are handed in
 * @period: 0, or after so many steps the data are those of the first step again
 * @before: steps of a checkpoint that the handle began with, which it does not count
 * @seen: out: digests of activations
 * @rows: out: rows of each table and slot, 0 for parameters
 */
struct run {
	const char *device;
	enum embeng_policy policy;
	int64_t buckets;
	int tiny, mixed, alone, limits, parts;
	struct embeng_optimizer optimizer;
	enum embeng_combiner_name combiner;
	int weights, pipelining, reversed;
	enum embeng_non_finite non_finite;
	uint32_t replicas, steps, ahead, period, before;
	uint64_t seen[RUN_STEPS_MOST][RUN_REPLICAS_MOST];
	float *rows[RUN_TABLES][RUN_SLOTS_MOST];
};

static const int64_t run_rows[RUN_TABLES] = {40, 300, 7, 500, 64};
static const int64_t run_dims[RUN_TABLES] = {8, 96, 20, 4, 1};
/* Tables of features: two share one, and one is a sequence. */
static const int run_tables[RUN_FEATURES] = {0, 1, 1, 2, 3, 4, 2};
#define RUN_SEQUENCE 6
#define RUN_DENSE 5

static inline uint64_t run_mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static inline uint64_t run_digest(uint64_t hash, const void *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
	return run_mix(hash);
}

static inline struct embeng_initializer run_initializer(const struct run *run)
{
	if (!run->tiny)
		return (struct embeng_initializer){0};
	return (struct embeng_initializer){.kind = EMBENG_INIT_CONSTANT, .a = -0.0f};
}

static inline struct embeng_quantization run_quantization(const struct run *run, int t)
{
	return (struct embeng_quantization){
		.num_buckets = t == run_tables[RUN_SEQUENCE] ? run->buckets : 0,
		.lower = -0.125f,
		.upper = 0.25f};
}

/* Every third row of the whole table from its second on, and columns that no cut begins at. */
static inline struct embeng_table_part run_part(const struct run *run, int t)
{
	if (!run->parts)
		return (struct embeng_table_part){0};
	return (struct embeng_table_part){.rows = 3 * run_rows[t] + 1,
					  .first_row = 1,
					  .row_step = 3,
					  .dim = run_dims[t] + 10,
					  .first_column = 3};
}

static inline struct embeng_model *run_model(const struct run *run)
{
	static const struct embeng_slot_start start = {
		"accumulators", {.kind = EMBENG_INIT_UNIFORM, .a = 0.5f, .b = 1.5f, .seed = 9}};
	struct embeng_model *model = embeng_model_new();
	char name[16];

	for (int t = 0; t < RUN_TABLES; t++) {
		struct embeng_optimizer optimizer = run->optimizer;

		if (run->alone || (run->mixed && t % 2 == 0))
			optimizer.use_gradient_accumulation = EMBENG_OFF;
		snprintf(name, sizeof(name), "t%d", t);
		ck_assert_int_eq(
			embeng_model_add_table(
				model,
				&EMBENG_INIT(embeng_table_config, .name = name,
					     .vocabulary_size = run_rows[t], .dim = run_dims[t],
					     .combiner = t == 1 ? run->combiner : EMBENG_SUM,
					     .initializer = run_initializer(run),
					     .out_of_range = run->policy,
					     .quantization = run_quantization(run, t),
					     .slot_starts = &start, .slot_start_count = run->parts,
					     .part = run_part(run, t), .optimizer = optimizer)),
			t);
	}
	for (int f = 0; f < RUN_FEATURES; f++) {
		snprintf(name, sizeof(name), "f%d", f);
		ck_assert_int_eq(
			embeng_model_add_feature(
				model,
				&EMBENG_INIT(embeng_feature_config, .name = name,
					     .table = run_tables[f],
					     .max_samples = run->limits ? RUN_SAMPLES : 0,
					     .max_ids = run->limits ? RUN_SAMPLES * RUN_BAG : 0,
					     .max_sequence_length = f == RUN_SEQUENCE ? 3 : 0)),
			f);
	}
	ck_assert_int_eq(
		embeng_model_set_engine(model, &EMBENG_INIT(embeng_engine_config,
							    .replicas = run->replicas,
							    .pipelining = run->pipelining,
							    .non_finite = run->non_finite)),
		0);
	return model;
}

/* The step whose data a step has. */
static inline uint64_t run_data(const struct run *run, uint64_t step)
{
	return run->period ? (step - 1) % run->period + 1 : step;
}

/* The input of one feature. */
struct run_bags {
	int64_t lengths[RUN_SAMPLES], ids[RUN_SAMPLES * RUN_BAG];
	int32_t narrow[RUN_SAMPLES];
	float weights[RUN_SAMPLES * RUN_BAG];
};

/* Low ids are frequent, many bags are empty, and sometimes there are no samples at all. */
static inline void run_input(const struct run *run, struct embeng_batch *b, uint64_t step,
			     uint32_t replica, int f, struct run_bags *bags)
{
	uint64_t state = run_data(run, step) * 1000 + replica * 100 + (uint64_t)f;
	const size_t samples = run_mix(state) % 11 ? RUN_SAMPLES : 0;
	const int64_t rows = run_rows[run_tables[f]], shape[] = {(int64_t)samples};
	const int weighted = run->weights && f != RUN_SEQUENCE;
	size_t count = 0;

	for (size_t s = 0; s < samples; s++) {
		bags->lengths[s] = (int64_t)(run_mix(++state) % (RUN_BAG + 1));
		bags->narrow[s] = (int32_t)(run_mix(++state) % (uint64_t)rows);
		for (int64_t i = 0; i < bags->lengths[s]; i++) {
			const uint64_t most = run_mix(++state) % (uint64_t)rows + 1;

			bags->ids[count] = (int64_t)(run_mix(++state) % most);
			if (run->policy && i)
				bags->ids[count] += i % 2 ? rows - 3 : -2;
			bags->weights[count++] = (float)(run_mix(++state) % 1000) / 500;
		}
	}
	if (f == RUN_DENSE)
		ck_assert_int_eq(
			embeng_batch_dense(b, f, EMBENG_I32, bags->narrow, samples, shape, 1), 0);
	else
		ck_assert_int_eq(embeng_batch_ragged(
					 b, f, EMBENG_I64, bags->ids, count, bags->lengths, samples,
					 weighted ? bags->weights : NULL, weighted ? count : 0),
				 0);
}

/* The replica that a batch of place @r is given to. */
static inline uint32_t run_replica(const struct run *run, uint32_t r)
{
	return run->reversed ? run->replicas - 1 - r : r;
}

static inline int run_enqueue(const struct run *run, struct embeng *e, struct embeng_batch *b,
			      uint64_t step, uint32_t r)
{
	static _Thread_local struct run_bags bags[RUN_FEATURES];

	embeng_batch_reset(b, EMBENG_TRAIN);
	for (int f = 0; f < RUN_FEATURES; f++)
		run_input(run, b, step, run_replica(run, r), f, &bags[f]);
	return embeng_enqueue(e, b, -1);
}

static inline size_t run_floats(const struct embeng_view *v)
{
	size_t n = 1;

	for (size_t i = 0; i < v->rank; i++)
		n *= (size_t)v->shape[i];
	return n;
}

/* Gradients depend on the activations, so that a difference in a row spreads. */
static inline int run_apply_times(struct run *run, struct embeng *e, uint64_t step, uint32_t r,
				  float multiplier)
{
	static _Thread_local float room[RUN_FEATURES][RUN_SAMPLES * 96];
	const uint64_t data = run_data(run, step);
	const float *features[RUN_FEATURES];
	struct embeng_activations act = EMBENG_INIT(embeng_activations);
	uint64_t seen = 1;
	int ret = embeng_dequeue(e, r, -1, &act);

	if (ret)
		return ret;
	ck_assert_uint_eq(act.step + run->before, step);
	for (int f = 0; f < RUN_FEATURES; f++) {
		const struct embeng_view *v = &act.features[f];
		const size_t n = run_floats(v);
		float *to = f % 2 ? embeng_gradient_buffer(e, r, f) : room[f];

		/* There is none if the group has failed meanwhile. */
		if (!to) {
			ret = embeng_flush(e, -1);
			ck_assert_int_lt(ret, 0);
			return ret;
		}
		seen = run_digest(seen, v->data, n * sizeof(*v->data));
		if (v->lengths)
			seen = run_digest(seen, v->lengths, v->lengths_count * sizeof(*v->lengths));
		for (size_t i = 0; i < n; i++)
			to[i] = run->tiny
					? -0x1p-149f
					: 0.3f * (v->data[i] -
						  (float)(run_mix(i + run_replica(run, r) + data) %
							  97) /
							  97);
		features[f] = f == 3 && data == 2 ? NULL : to;
	}
	run->seen[step - 1][run_replica(run, r)] = seen;
	return embeng_apply_gradients(e,
				      &EMBENG_INIT(embeng_gradients, .replica = r,
						   .count = RUN_FEATURES, .features = features,
						   .multiplier = multiplier),
				      -1);
}

static inline int run_apply(struct run *run, struct embeng *e, uint64_t step, uint32_t r)
{
	return run_apply_times(run, e, step, r, 1.0f);
}

/* Trains on the replicas of this process, some steps ahead of the gradients. */
static inline int run_train(struct run *run, struct embeng *e, uint64_t first_step)
{
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	struct embeng_batch *batches[RUN_REPLICAS_MOST];
	int ret = embeng_info(e, &info);

	for (uint32_t i = 0; i < info.replica_count; i++)
		batches[i] = embeng_batch_new(e, EMBENG_TRAIN, info.first_replica + i);
	for (uint64_t step = first_step, given = first_step; !ret && given <= run->steps; step++) {
		for (uint32_t i = 0; !ret && step <= run->steps && i < info.replica_count; i++)
			ret = run_enqueue(run, e, batches[i], step, info.first_replica + i);
		if (step < first_step + run->ahead)
			continue;
		for (uint32_t i = 0; !ret && i < info.replica_count; i++)
			ret = run_apply(run, e, given, info.first_replica + i);
		given++;
	}
	for (uint32_t i = 0; i < info.replica_count; i++)
		embeng_batch_free(batches[i]);
	return ret;
}

static inline size_t run_slot_floats(const struct embeng *e, int t, size_t s)
{
	return (size_t)(run_rows[t] *
			embeng_model_slot_width(
				embeng_get_model(e), t,
				s ? embeng_model_slot_name(embeng_get_model(e), (size_t)t, s - 1)
				  : NULL));
}

/* Puts rows of this host's part of a table where they are in the whole one. */
static inline void run_keep_part(struct run *run, struct embeng *e, const struct place_part *part,
				 size_t s)
{
	const int t = part->table;
	const char *slot = s ? embeng_model_slot_name(e->model, (size_t)t, s - 1) : NULL;
	const size_t width = run_slot_floats(e, t, s) / (size_t)run_rows[t];
	const size_t columns = width == 1 ? 1 : part->columns;
	const size_t count = (size_t)part->rows.count;
	float *own = malloc(count * columns * sizeof(*own));

	ck_assert_int_eq(
		embeng_rows_read(e->hosts->owner, e->hosts->tables[t], slot, NULL, count, own), 0);
	for (size_t i = 0; i < count; i++) {
		const int64_t row = part->rows.first + (int64_t)i * part->rows.stride;

		memcpy(run->rows[t][s] + (size_t)row * width + part->first_column,
		       own + i * columns, columns * sizeof(*own));
	}
	free(own);
}

/* Reads what this process has of all tables and slots into @rows, which all hosts share. */
static inline void run_keep_rows(struct run *run, struct embeng *e)
{
	for (int t = 0; t < RUN_TABLES; t++) {
		const size_t slots = embeng_model_slot_count(e->model, (size_t)t);
		const struct place_part *part = e->hosts ? hosts_part(e->hosts, t, e->hosts->rank)
							 : NULL;

		for (size_t s = 0; s <= slots; s++) {
			if (part)
				run_keep_part(run, e, part, s);
			else if (!e->hosts)
				ck_assert_int_eq(
					embeng_rows_read(e, t,
							 s ? embeng_model_slot_name(
								     e->model, (size_t)t, s - 1)
							   : NULL,
							 NULL, (size_t)run_rows[t],
							 run->rows[t][s]),
					0);
		}
	}
}

static inline void run_make_rows(struct run *run)
{
	for (int t = 0; t < RUN_TABLES; t++)
		for (size_t s = 0; s < RUN_SLOTS_MOST; s++) {
			const size_t n = (size_t)(run_rows[t] * run_dims[t]);

			run->rows[t][s] = malloc(n * sizeof(float));
			for (size_t i = 0; i < n; i++)
				run->rows[t][s][i] = 12345.0f;
		}
}

static inline void run_free_rows(struct run *run)
{
	for (int t = 0; t < RUN_TABLES; t++)
		for (size_t s = 0; s < RUN_SLOTS_MOST; s++)
			free(run->rows[t][s]);
}

/* How many numbers of two runs differ, in their bits. */
static inline size_t run_differences(const struct run *a, const struct run *b)
{
	size_t count = 0;

	for (int t = 0; t < RUN_TABLES; t++)
		for (size_t s = 0; s < RUN_SLOTS_MOST; s++)
			for (size_t i = 0; i < (size_t)(run_rows[t] * run_dims[t]); i++)
				count += memcmp(&a->rows[t][s][i], &b->rows[t][s][i],
						sizeof(float)) != 0;
	for (uint32_t step = 0; step < a->steps; step++)
		for (uint32_t r = 0; r < a->replicas; r++)
			count += a->seen[step][r] != b->seen[step][r];
	return count;
}

/* A run in this process alone. */
static inline void run_alone(struct run *run)
{
	struct embeng_model *model = run_model(run);
	struct embeng *e;

	run_make_rows(run);
	ck_assert_int_eq(embeng_open(RUN_DEVICE, model, &e, NULL), 0);
	ck_assert_int_eq(run_train(run, e, 1), 0);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	run_keep_rows(run, e);
	embeng_close(e);
	embeng_model_free(model);
}

/* One host of a run. */
struct run_host {
	struct run *run;
	struct embeng_transport transport;
	struct embeng_group_options options;
	struct embeng *e;
	struct embeng_group *group;
	uint32_t rank;
	int code; /* the first failure's */
	char text[EMBENG_ERROR_TEXT];
	uint64_t took;
	void (*body)(struct run_host *h);
};

static inline int run_note(struct run_host *h, int ret)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);

	embeng_last_error(&error);
	if (ret && !h->code) {
		h->code = ret;
		snprintf(h->text, sizeof(h->text), "%s", error.text);
	}
	return ret;
}

static inline void *run_host_thread(void *arg)
{
	struct run_host *h = arg;
	struct embeng_model *model = run_model(h->run);

	if (!run_note(h, embeng_group_open(&h->transport, &h->options, &h->group, NULL))) {
		if (!run_note(h, embeng_open_group(h->run->device ? h->run->device : RUN_DEVICE,
						   model, h->group, &h->e, NULL))) {
			h->body(h);
			embeng_close(h->e);
		}
		embeng_group_close(h->group);
	}
	embeng_model_free(model);
	return NULL;
}

/* Runs @body in each host, a thread. @hosts: [count] out */
static inline void run_hosts(struct run *run, uint32_t count, void (*body)(struct run_host *h),
			     const struct thread_fault *faults, size_t fault_count,
			     uint64_t deadline_ns, struct run_host *hosts)
{
	struct embeng_transport transports[RUN_HOSTS_MOST];
	pthread_t threads[RUN_HOSTS_MOST];

	/* A run of a test that is to join replicas; the process that it compares with has them in queues. */
	if (getenv("EMBENG_TEST_JOINS"))
		place_replicas_most = 2;
	run_make_rows(run);
	ck_assert_int_eq(threads_make(count, faults, fault_count, transports), 0);
	for (uint32_t i = 0; i < count; i++) {
		hosts[i] = (struct run_host){
			.run = run,
			.transport = transports[i],
			.options = EMBENG_INIT(embeng_group_options, .deadline_ns = deadline_ns),
			.rank = i,
			.body = body,
		};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, run_host_thread, &hosts[i]), 0);
	}
	for (uint32_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

#endif
