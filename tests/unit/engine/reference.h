/* SPDX-License-Identifier: MIT */
/*
 * The computations of a model, written as plainly as possible: one loop for each rule, in
 * the order that the numbers are defined in. It shares with the engine only powers
 * that are no roots, which test_kernels_fma.c compares with libm.
 */
#ifndef EMBENG_TESTS_REFERENCE_H
#define EMBENG_TESTS_REFERENCE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "rules_proto.h"

enum ref_optimizer {
	REF_SGD,
	REF_ADAGRAD,
	REF_ADAGRAD_MOMENTUM,
	REF_FTRL,
	REF_ADAM,
	REF_MOMENTUM,
	REF_LION,
	REF_RMS_PROP,
	REF_CENTERED_RMS_PROP,
	REF_ADADELTA,
	REF_PROXIMAL_ADAGRAD,
	REF_ASSIGN,
	REF_LAPROP,
	REF_PROXIMAL_YOGI,
	REF_BOUNDED_ADAGRAD,
	REF_ONLINE_YOGI,
	REF_FREQUENCY_ESTIMATOR,
	REF_FREQUENCY_AWARE_ADAGRAD,
	REF_MDL_ADAGRAD_LIGHT,
};

struct ref_table {
	int64_t rows;
	int dim;
	int combiner; /* 0 sum, 1 mean, 2 sqrtn */
	int policy;   /* 0 error, 1 clamp, 2 drop, 3 zero */
	enum ref_optimizer optimizer;
	bool accumulate, decay_by_rate, dynamic, non_lazy;
	float rate, decay, gradient_min, gradient_max, weight_min, weight_max;
	float hyper[12]; /* as embeng_engine.h lists them */
	int64_t buckets; /* 0: not quantized */
	float lower, upper;
	float *weights, *slot[3]; /* [rows][dim] */
};

struct ref_occurrence {
	int64_t row; /* -1: reads zeros */
	float weight;
	int output;
};

/* One feature of one replica, ids resolved. */
struct ref_batch {
	int table, outputs, count, length;
	bool weighted;
	struct ref_occurrence *occurrences;
	float *scales; /* [outputs] */
};

static inline void ref_add(struct ref_batch *b, const struct ref_table *t, int64_t id, float weight,
			   int output, int *position)
{
	int64_t row = id;

	if (b->length && *position >= b->length)
		return;
	if (id < 0 || id >= t->rows) {
		if (t->policy == 2)
			return;
		row = t->policy == 3 ? -1 : id < 0 ? 0 : t->rows - 1;
	}
	b->occurrences[b->count++] = (struct ref_occurrence){
		row, weight, b->length ? output * b->length + *position : output};
	++*position;
}

static inline float ref_scale(const struct ref_batch *b, const struct ref_table *t, int output)
{
	double d = 0.0;

	if (t->combiner == 0 || b->length)
		return 1.0f;
	for (int k = 0; k < b->count; k++) {
		double w = b->occurrences[k].weight;

		if (b->occurrences[k].output == output)
			d += t->combiner == 1 ? w : w * w;
	}
	if (t->combiner == 2)
		d = sqrt(d);
	return d == 0.0 ? 0.0f : (float)(1.0 / d);
}

static inline void ref_resolve(struct ref_batch *b, const struct ref_table *t, int samples,
			       const int64_t *offsets, const int64_t *ids, const float *weights)
{
	b->outputs = samples * (b->length ? b->length : 1);
	b->count = 0;
	b->weighted = weights;
	b->occurrences = malloc((offsets[samples] + 1) * sizeof(*b->occurrences));
	b->scales = malloc((b->outputs + 1) * sizeof(float));
	for (int s = 0; s < samples; s++) {
		int position = 0;

		for (int64_t i = offsets[s]; i < offsets[s + 1]; i++)
			ref_add(b, t, ids[i], weights ? weights[i] : 1.0f, s, &position);
	}
	for (int o = 0; o < b->outputs; o++)
		b->scales[o] = ref_scale(b, t, o);
}

static inline void ref_release(struct ref_batch *b)
{
	free(b->occurrences);
	free(b->scales);
}

static inline float ref_read(const struct ref_table *t, int64_t row, int column)
{
	float x, step;

	if (row < 0)
		return 0.0f;
	x = t->weights[row * t->dim + column];
	if (!t->buckets)
		return x;
	step = (t->upper - t->lower) / (float)(t->buckets - 1);
	x = x < t->lower ? t->lower : x;
	x = x > t->upper ? t->upper : x;
	return t->lower + step * floorf((x - t->lower) / step + 0.5f);
}

static inline void ref_lookup(const struct ref_batch *b, const struct ref_table *t, float *out)
{
	for (int o = 0; o < b->outputs; o++) {
		for (int c = 0; c < t->dim; c++) {
			float acc = 0.0f;

			for (int k = 0; k < b->count; k++) {
				const struct ref_occurrence *occ = &b->occurrences[k];

				if (occ->output == o)
					acc = fmaf(occ->weight, ref_read(t, occ->row, c), acc);
			}
			out[o * t->dim + c] = acc * b->scales[o];
		}
	}
}

static inline float ref_clip(float x, float low, float high)
{
	x = x < low ? low : x;
	return x > high ? high : x;
}

static inline void ref_adagrad_momentum(const struct ref_table *t, float *w, float *a, float *m,
					float g, float rate)
{
	float momentum = t->hyper[0], beta2 = t->hyper[3], s;

	*a = beta2 == 1.0f ? *a + g * g : beta2 * *a + (1.0f - beta2) * (g * g);
	s = g * rule_power(*a + t->hyper[4], -1.0 / t->hyper[2]);
	*m = momentum * *m + s;
	*w = *w - rate * (t->hyper[1] != 0.0f ? momentum * *m + s : *m);
}

static inline void ref_ftrl(const struct ref_table *t, float *w, float *a, float *l, float g,
			    float rate)
{
	float l1 = t->hyper[1], l2 = t->hyper[2], beta = t->hyper[3];
	float was = rule_power(*a, -t->hyper[0]), is, below;

	*a = *a + g * g;
	is = rule_power(*a, -t->hyper[0]);
	if (t->hyper[4] == 0.0f) {
		*l = *l + g - (is - was) * *w / rate;
		below = (is + beta) / rate + 2.0f * l2;
	} else {
		*l = *l + rate * g - (is - was) * *w;
		below = is + beta + 2.0f * rate * l2;
		l1 = rate * l1;
	}
	*w = (t->hyper[1] == 0.0f ? -*l : ref_clip(*l, -l1, l1) - *l) / below;
}

static inline void ref_adam(const struct ref_table *t, float *w, float *m, float *v, float g,
			    float rate, int64_t step)
{
	float beta_1 = t->hyper[0], beta_2 = t->hyper[1], epsilon = t->hyper[2];

	*m = beta_1 * *m + (1.0f - beta_1) * g;
	*v = beta_2 * *v + (1.0f - beta_2) * (g * g);
	if (t->hyper[4] != 0.0f) {
		double root = sqrt(1.0 - (double)powl(beta_2, step));

		rate = (float)(rate * root / (1.0 - (double)powl(beta_1, step)));
		epsilon = t->hyper[5] != 0.0f ? epsilon : (float)(epsilon * root);
	} else if (t->hyper[3] != 0.0f) {
		*w = *w - rate * *m / sqrtf(*v + epsilon * epsilon);
		return;
	}
	*w = *w - rate * *m / (sqrtf(*v) + epsilon);
}

static inline void ref_other(const struct ref_table *t, int64_t at, float g, float rate,
			     int64_t step)
{
	static const rule rules[] = {
		[REF_MOMENTUM] = rule_momentum,
		[REF_LION] = rule_lion,
		[REF_RMS_PROP] = rule_rms_prop,
		[REF_CENTERED_RMS_PROP] = rule_centered_rms_prop,
		[REF_ADADELTA] = rule_adadelta,
		[REF_PROXIMAL_ADAGRAD] = rule_proximal_adagrad,
		[REF_ASSIGN] = rule_assign,
		[REF_LAPROP] = rule_laprop,
		[REF_PROXIMAL_YOGI] = rule_proximal_yogi,
		[REF_BOUNDED_ADAGRAD] = rule_bounded_adagrad,
		[REF_ONLINE_YOGI] = rule_online_yogi,
		[REF_FREQUENCY_ESTIMATOR] = rule_frequency_estimator,
		[REF_FREQUENCY_AWARE_ADAGRAD] = rule_frequency_aware_adagrad,
		[REF_MDL_ADAGRAD_LIGHT] = rule_mdl_adagrad_light,
	};
	float s[3] = {t->slot[0][at], t->slot[1][at], t->slot[2][at]};

	t->weights[at] = rules[t->optimizer](t->hyper, rate, (uint64_t)step, t->weights[at], g, s);
	for (int i = 0; i < 3; i++)
		t->slot[i][at] = s[i];
}

/* One application of the optimizer to one float. @step: its step, from 1. */
static inline void ref_optimize(struct ref_table *t, int64_t at, float g, float rate,
				float multiplier, int64_t step)
{
	float *w = &t->weights[at], *first = &t->slot[0][at], *second = &t->slot[1][at];

	g = ref_clip(g * multiplier, t->gradient_min, t->gradient_max);
	if (t->decay != 0.0f)
		*w = *w - (t->decay_by_rate ? t->decay * rate : t->decay) * *w;
	switch (t->optimizer) {
	case REF_SGD:
		*w = *w - rate * g;
		break;
	case REF_ADAGRAD:
		*first = *first + g * g;
		*w = *w - rate * g / (sqrtf(*first) + t->hyper[0]);
		break;
	case REF_ADAGRAD_MOMENTUM:
		ref_adagrad_momentum(t, w, first, second, g, rate);
		break;
	case REF_FTRL:
		ref_ftrl(t, w, first, second, g, rate);
		break;
	case REF_ADAM:
		ref_adam(t, w, first, second, g, rate, step);
		break;
	default:
		ref_other(t, at, g, rate, step);
		break;
	}
	*w = ref_clip(*w, t->weight_min, t->weight_max);
}

struct ref_sum {
	float total, replica, run;
	int in_run;
	bool any, runs, touched;
};

static inline void ref_end_run(struct ref_sum *s)
{
	if (s->in_run)
		s->replica = s->runs ? s->replica + s->run : s->run;
	s->runs |= s->in_run > 0;
	s->in_run = 0;
	s->run = 0.0f;
}

static inline void ref_end_replica(struct ref_sum *s)
{
	ref_end_run(s);
	if (s->runs)
		s->total = s->any ? s->total + s->replica : s->replica;
	s->any |= s->runs;
	s->runs = false;
}

/* @batches, @gradients: [replicas * features], replica by replica. NULL: zeros. */
static inline void ref_update_float(struct ref_table *t, int table, int64_t row, int column,
				    const struct ref_batch *batches, float *const *gradients,
				    int replicas, int features, float rate, float multiplier,
				    int64_t step)
{
	struct ref_sum sum = {0};

	for (int i = 0; i < replicas * features; i++) {
		const struct ref_batch *b = &batches[i];

		if (i % features == 0)
			ref_end_replica(&sum);
		for (int k = 0; b->table == table && k < b->count; k++) {
			const struct ref_occurrence *occ = &b->occurrences[k];
			float c = b->scales[occ->output] * occ->weight, g = 0.0f;

			if (occ->row != row)
				continue;
			if (gradients[i])
				g = gradients[i][(int64_t)occ->output * t->dim + column];
			sum.touched = true;
			sum.run = fmaf(c, g, sum.run);
			if (!t->accumulate) {
				ref_optimize(t, row * t->dim + column, sum.run, rate, multiplier,
					     step);
				sum.run = 0.0f;
			} else if (++sum.in_run == 256) {
				ref_end_run(&sum);
			}
		}
	}
	ref_end_replica(&sum);
	if ((sum.touched && t->accumulate) || t->non_lazy)
		ref_optimize(t, row * t->dim + column, sum.total, rate, multiplier, step);
}

#endif
