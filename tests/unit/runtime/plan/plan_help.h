/* SPDX-License-Identifier: MIT */
/* Random models with a largest batch, run until every place in flight was taken. */
#ifndef TEST_PLAN_HELP_H
#define TEST_PLAN_HELP_H

#include "test_model.h"
#include "runtime/src/session/session.h"

#include <sched.h>
#include <stdio.h>

#define FEATURES 4

/* A model, and the size of its batches. */
struct load {
	struct embeng_model *model;
	struct embeng_plan_options options;
	uint32_t replicas;
	char device[64];
	uint32_t state; /* state of the random numbers */
};

static inline uint32_t draw(struct load *l, uint32_t below)
{
	l->state = l->state * 1664525u + 1013904223u;
	return (l->state >> 8) % below;
}

static inline struct embeng_optimizer draw_optimizer(struct load *l)
{
	switch (draw(l, 6)) {
	case 0:
		return embeng_sgd(0.1f);
	case 1:
		return embeng_adagrad(0.1f);
	case 2:
		return embeng_adagrad_momentum(0.1f);
	case 3:
		return embeng_ftrl(0.1f);
	case 4:
		return embeng_adam(0.1f);
	default:
		return embeng_adam_corrected(0.1f);
	}
}

static inline void load_tables(struct load *l, bool trains)
{
	for (uint32_t t = 1 + draw(l, 3); t; t--) {
		struct embeng_table_config c = table_config(NULL);

		c.vocabulary_size = 1 + draw(l, 2000);
		c.dim = 1 + draw(l, 40);
		c.combiner = (enum embeng_combiner_name)draw(l, 4);
		if (trains)
			c.optimizer = draw_optimizer(l);
		else
			c.optimizer = (struct embeng_optimizer){0};
		ck_assert_int_ge(embeng_model_add_table(l->model, &c), 0);
	}
}

static inline void load_features(struct load *l)
{
	for (uint32_t f = 1 + draw(l, FEATURES); f; f--) {
		struct embeng_feature_config c = feature_config(NULL);

		c.table = (int)draw(l, (uint32_t)embeng_model_table_count(l->model));
		c.max_sequence_length = draw(l, 2) ? 1 + draw(l, 5) : 0;
		if (draw(l, 3) == 0)
			c.max_samples = 50 + draw(l, 20); /* no less than a batch */
		ck_assert_int_ge(embeng_model_add_feature(l->model, &c), 0);
	}
}

static inline struct load load_new(uint32_t seed, bool trains)
{
	struct load l = {.model = embeng_model_new(), .state = seed};
	struct embeng_engine_config engine = {.size = sizeof(engine)};

	load_tables(&l, trains);
	load_features(&l);
	l.replicas = engine.replicas = 1 + draw(&l, 3);
	engine.step_depth = 1 + draw(&l, 4);
	ck_assert_int_eq(embeng_model_set_engine(l.model, &engine), 0);
	l.options = (struct embeng_plan_options){
		.size = sizeof(l.options),
		.batch_size = 1 + draw(&l, 50),
		.ids_per_sample = 1 + draw(&l, 6),
		.id_type = (int)draw(&l, 2),
		.weights = (int)draw(&l, 2),
		.buffers = (int)draw(&l, 2),
		.inference = (int)draw(&l, 2),
		.cores = 1 + draw(&l, 3),
		.splits = (int)draw(&l, 2),
	};
	snprintf(l.device, sizeof(l.device), "soft:cores=%u,memory=64M", l.options.cores);
	if (draw(&l, 2))
		ck_assert_int_eq(embeng_model_build(l.model, l.options.batch_size), 0);
	return l;
}

/* One batch of @each ids in a pooled sample, as large as the options say otherwise. */
struct made {
	struct embeng_batch *batch;
	void *ids[FEATURES];
	float *weights[FEATURES];
	int64_t *splits[FEATURES]; /* in a device buffer, where the options say so */
};

static inline void *memory(struct embeng *e, const struct load *l, size_t bytes)
{
	void *p = l->options.buffers ? embeng_buffer_alloc(e, bytes) : calloc(1, bytes);

	ck_assert_ptr_nonnull(p);
	return p;
}

static inline void memory_free(struct embeng *e, const struct load *l, void *p)
{
	if (!l->options.buffers)
		free(p);
	else
		ck_assert_int_eq(embeng_buffer_free(e, p), 0);
}

static inline size_t load_samples(const struct load *l, size_t f)
{
	const struct feature *feature = &l->model->features[f];

	if (feature->built.rank)
		return (size_t)feature->built.dims[0];
	return (size_t)(feature->max_samples ? (int64_t)feature->max_samples
					     : l->options.batch_size);
}

/* Bags of @each ids: by splits that stay where they are, or by lengths. */
static inline void add_bags(struct embeng *e, struct load *l, struct made *m, size_t f,
			    size_t samples, int64_t each, bool weighted)
{
	const enum embeng_id_type type = (enum embeng_id_type)l->options.id_type;
	size_t ids = samples * (size_t)each, weights = weighted ? ids : 0;
	const float *given = weighted ? m->weights[f] : NULL;
	int64_t *counts = l->options.splits ? embeng_buffer_alloc(e, (samples + 1) * 8)
					    : malloc((samples + 1) * 8);

	ck_assert_ptr_nonnull(counts);
	for (size_t i = 0; i <= samples; i++)
		counts[i] = l->options.splits ? (int64_t)i * each : each;
	if (!l->options.splits) {
		ck_assert_int_eq(embeng_batch_ragged(m->batch, (int)f, type, m->ids[f], ids, counts,
						     samples, given, weights),
				 0);
		free(counts);
		return;
	}
	ck_assert_int_eq(embeng_batch_ragged_splits(m->batch, (int)f, type, m->ids[f], ids, counts,
						    samples + 1, given, weights),
			 0);
	m->splits[f] = counts;
}

static inline void make_feature(struct embeng *e, struct load *l, struct made *m, size_t f,
				int64_t each)
{
	const struct feature *feature = &l->model->features[f];
	int64_t rows = l->model->tables[feature->table].rows;
	size_t samples = load_samples(l, f), ids;
	bool weighted = l->options.weights && !feature->max_sequence_length && !feature->largest;

	each = feature->max_sequence_length ? feature->max_sequence_length : each;
	ids = samples * (size_t)each;
	m->ids[f] = memory(e, l, ids * 8);
	m->weights[f] = memory(e, l, ids * 4);
	for (size_t i = 0; i < ids; i++) {
		int64_t id = draw(l, (uint32_t)rows);

		m->weights[f][i] = 1;
		if (l->options.id_type == EMBENG_I64)
			((int64_t *)m->ids[f])[i] = id;
		else
			((int32_t *)m->ids[f])[i] = (int32_t)id;
	}
	add_bags(e, l, m, f, samples, each, weighted);
}

static inline struct made make(struct embeng *e, struct load *l, enum embeng_mode mode,
			       uint32_t replica, int64_t each)
{
	struct made m = {.batch = embeng_batch_new(e, mode, replica)};

	for (size_t f = 0; f < l->model->feature_count; f++)
		make_feature(e, l, &m, f, each);
	return m;
}

static inline void unmake(struct embeng *e, struct load *l, struct made *m)
{
	for (size_t f = 0; f < l->model->feature_count; f++) {
		memory_free(e, l, m->ids[f]);
		memory_free(e, l, m->weights[f]);
		if (m->splits[f])
			ck_assert_int_eq(embeng_buffer_free(e, m->splits[f]), 0);
	}
	embeng_batch_free(m->batch);
}

static inline void enqueue(struct embeng *e, struct load *l, enum embeng_mode mode,
			   uint32_t replica, int64_t each)
{
	struct made m = make(e, l, mode, replica, each);

	ck_assert_int_eq(embeng_enqueue(e, m.batch, 0), 0);
	unmake(e, l, &m);
}

/* A step's gradients: all ones, from every replica. */
static inline void apply(struct embeng *e, struct load *l, uint32_t replica)
{
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng_gradients g = {.size = sizeof(g), .replica = replica};
	const float *features[FEATURES];

	ck_assert_int_eq(embeng_dequeue(e, replica, -1, &a), 0);
	for (size_t f = 0; f < a.count; f++) {
		size_t bytes = 4;

		for (size_t i = 0; i < a.features[f].rank; i++)
			bytes *= (size_t)a.features[f].shape[i];
		features[f] = memcpy(memory(e, l, bytes), a.features[f].data, bytes);
	}
	g.count = a.count;
	g.features = features;
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), 0);
	if (l->replicas == 1)
		ck_assert_int_eq(embeng_flush(e, -1), 0);
	for (size_t f = 0; f < a.count && !l->options.buffers; f++)
		free((void *)features[f]); /* buffers go with the handle */
}

struct ahead {
	struct embeng *e;
	struct embeng_batch *batch;
	pthread_t thread;
	int ret;
};

static inline void *enqueue_ahead(void *arg)
{
	struct ahead *a = arg;

	a->ret = embeng_enqueue(a->e, a->batch, -1);
	return NULL;
}

static inline bool waits(struct embeng *e, uint32_t replica)
{
	bool taken;

	pthread_mutex_lock(&e->lock);
	taken = e->replicas[replica].training[e->depth].state == SLOT_LOOKUP;
	pthread_mutex_unlock(&e->lock);
	return taken;
}

/*
 * As many steps ahead as there may be, and one more that waits for its place: it has the
 * last slot, since all others were in use when it came.
 */
static inline void train_all_slots(struct embeng *e, struct load *l)
{
	struct ahead ahead[3];
	struct made made[3];

	for (uint32_t step = 0; step < e->depth; step++)
		for (uint32_t r = 0; r < l->replicas; r++)
			enqueue(e, l, EMBENG_TRAIN, r, l->options.ids_per_sample);
	for (uint32_t r = 0; r < l->replicas; r++) {
		made[r] = make(e, l, EMBENG_TRAIN, r, l->options.ids_per_sample);
		ahead[r] = (struct ahead){.e = e, .batch = made[r].batch};
		ck_assert_int_eq(pthread_create(&ahead[r].thread, NULL, enqueue_ahead, &ahead[r]),
				 0);
		while (!waits(e, r))
			sched_yield();
	}
	for (uint32_t r = 0; r < l->replicas; r++)
		apply(e, l, r);
	for (uint32_t r = 0; r < l->replicas; r++) {
		pthread_join(ahead[r].thread, NULL);
		ck_assert_int_eq(ahead[r].ret, 0);
		unmake(e, l, &made[r]);
	}
	for (uint32_t step = 0; step < e->depth; step++)
		for (uint32_t r = 0; r < l->replicas; r++)
			apply(e, l, r);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
}

static inline void serve_all_slots(struct embeng *e, struct load *l)
{
	for (uint32_t i = 0; i <= e->depth; i++)
		for (uint32_t r = 0; r < l->replicas; r++)
			enqueue(e, l, EMBENG_INFERENCE, r, l->options.ids_per_sample);
}

#endif
