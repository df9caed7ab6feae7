// SPDX-License-Identifier: MIT
/*
 * Trains by skip-gram with negative sampling over baskets (Mikolov et al. 2013, with contexts as
 * means). The tables are in the engine, and the dense side, the logistic loss, is computed here.
 *
 * A trainer owns the engine, its batch and its buffers until trainer_close().
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "trainer.h"

/* An epoch of few examples has smaller batches, so that it still takes this many steps or so. */
#define LEAST_STEPS 16

uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int add_training_table(struct embeng_model *model, const struct settings *settings,
			      const char *name, const char *feature, size_t rows)
{
	float rate = (float)settings->learning_rate;
	struct embeng_table_config table = EMBENG_INIT(
		embeng_table_config, .name = name, .vocabulary_size = (int64_t)rows,
		.dim = settings->dim, .combiner = EMBENG_MEAN);
	struct embeng_feature_config config = EMBENG_INIT(embeng_feature_config, .name = feature);

	embeng_optimizer_by_name(embeng_optimizer_text(settings->optimizer), rate,
				 &table.optimizer);
	table.initializer.seed = (uint64_t)settings->seed * 2 + embeng_model_table_count(model) + 1;
	config.table = embeng_model_add_table(model, &table);
	if (config.table < 0)
		return config.table;
	return embeng_model_add_feature(model, &config);
}

static int open_model(struct trainer *t, size_t items)
{
	struct embeng_model *model = embeng_model_new();
	int rc = -ENOMEM;

	if (model) {
		rc = add_training_table(model, t->settings, "items_in", "basket", items);
		if (rc >= 0)
			rc = add_training_table(model, t->settings, "items_out", "target", items);
		if (rc >= 0)
			rc = embeng_open(t->settings->device, model, &t->e, NULL);
	}
	embeng_model_free(model);
	return rc < 0 ? rc : 0;
}

static int open_buffers(struct trainer *t)
{
	struct samples *s = &t->samples;

	s->negatives = (size_t)t->settings->negatives;
	s->count = (size_t)t->settings->batch;
	if (s->count > t->sampler.count / LEAST_STEPS)
		s->count = t->sampler.count / LEAST_STEPS + 1;
	t->batch = embeng_batch_new(t->e, EMBENG_TRAIN, 0);
	s->context = embeng_buffer_alloc(t->e, s->count * CONTEXT_MAX * sizeof(*s->context));
	s->splits = embeng_buffer_alloc(t->e, (s->count + 1) * sizeof(*s->splits));
	s->targets = embeng_buffer_alloc(t->e, s->count * (1 + s->negatives) * sizeof(*s->targets));
	return t->batch && s->context && s->splits && s->targets ? 0 : -ENOMEM;
}

/* The training feeds one replica, which only one host would have. */
static int check_alone(struct trainer *t)
{
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	int rc = embeng_info(t->e, &info);

	return rc ? rc : info.hosts > 1 ? -EXDEV : 0;
}

int trainer_open(struct trainer *t, const struct dataset *data, const struct split *split,
		 const struct settings *settings)
{
	int rc;

	*t = (struct trainer){.settings = settings};
	rc = sampler_init(&t->sampler, data, split, (uint64_t)settings->seed);
	if (!rc)
		rc = open_model(t, data->items.count);
	if (!rc)
		rc = check_alone(t);
	if (!rc)
		rc = open_buffers(t);
	if (rc)
		trainer_close(t);
	return rc;
}

static int look_up_samples(struct trainer *t, struct embeng_activations *act)
{
	const struct samples *s = &t->samples;
	size_t targets = s->count * (1 + s->negatives);
	const int64_t shape[] = {(int64_t)targets};
	int rc;

	embeng_batch_reset(t->batch, EMBENG_TRAIN);
	rc = embeng_batch_ragged_splits(t->batch, TABLE_IN, EMBENG_I32, s->context,
					(size_t)s->splits[s->count], s->splits, s->count + 1, NULL,
					0);
	if (!rc)
		rc = embeng_batch_dense(t->batch, TABLE_OUT, EMBENG_I32, s->targets, targets, shape,
					1);
	if (!rc)
		rc = embeng_enqueue(t->e, t->batch, -1);
	return rc ? rc : embeng_dequeue(t->e, 0, -1, act);
}

/* -log(sigmoid(x)), without overflow. */
static float softplus_minus(float x)
{
	return x > 0 ? log1pf(expf(-x)) : log1pf(expf(x)) - x;
}

/*
 * One pair: the loss falls when an item of the basket scores high (@sign 1) or a
 * stranger low (@sign -1). Writes @g_out, adds to @g_in. The loss is NaN when the score is not
 * finite, as it is when a row is not: a loss of 0 would hide a score of infinity.
 */
static float learn_pair(const float *in, const float *out, float sign, float *g_in, float *g_out,
			size_t dim)
{
	float score = 0, slope;

	for (size_t d = 0; d < dim; d++)
		score += in[d] * out[d];
	score *= sign;
	slope = -sign / (1.0f + expf(score));
	for (size_t d = 0; d < dim; d++) {
		g_in[d] += slope * out[d];
		g_out[d] = slope * in[d];
	}
	return isfinite(score) ? softplus_minus(score) : NAN;
}

/* Whether a sum of gradients has not overflowed. */
static bool is_row_finite(const float *row, size_t dim)
{
	for (size_t d = 0; d < dim; d++) {
		if (!isfinite(row[d]))
			return false;
	}
	return true;
}

/*
 * Loss of the batch, and its gradients in the engine's own buffers, which are finite if the loss
 * is.
 */
static double dense_side(const struct trainer *t, const struct embeng_activations *act, float *g_in,
			 float *g_out)
{
	size_t dim = (size_t)t->settings->dim, pairs = 1 + t->samples.negatives;
	const float *in = act->features[TABLE_IN].data, *out = act->features[TABLE_OUT].data;
	double loss = 0;

	for (size_t k = 0; k < t->samples.count; k++, in += dim, g_in += dim) {
		for (size_t d = 0; d < dim; d++)
			g_in[d] = 0;
		for (size_t n = 0; n < pairs; n++, out += dim, g_out += dim)
			loss += (double)learn_pair(in, out, n ? -1.0f : 1.0f, g_in, g_out, dim);
		if (!is_row_finite(g_in, dim))
			loss = NAN;
	}
	return loss;
}

static int train_one_step(struct trainer *t, double *loss)
{
	struct embeng_activations act = EMBENG_INIT(embeng_activations);
	const float *gradients[2];
	struct embeng_gradients given = EMBENG_INIT(embeng_gradients, .count = 2,
						    .features = gradients);
	uint64_t began;
	float *g_in, *g_out;
	double step_loss;
	int rc;

	began = clock_ns();
	sampler_fill(&t->sampler, &t->samples);
	t->dense_ns += clock_ns() - began;
	rc = look_up_samples(t, &act);
	if (rc)
		return rc;
	g_in = embeng_gradient_buffer(t->e, 0, TABLE_IN);
	g_out = embeng_gradient_buffer(t->e, 0, TABLE_OUT);
	if (!g_in || !g_out)
		return -ENOMEM;
	began = clock_ns();
	step_loss = dense_side(t, &act, g_in, g_out);
	t->dense_ns += clock_ns() - began;
	if (!isfinite(step_loss))
		return -EDOM;
	*loss += step_loss;
	gradients[TABLE_IN] = g_in;
	gradients[TABLE_OUT] = g_out;
	return embeng_apply_gradients(t->e, &given, -1);
}

size_t trainer_steps(const struct trainer *t)
{
	return t->sampler.count / t->samples.count;
}

int trainer_step(struct trainer *t)
{
	struct place *at = &t->at;
	int rc;

	if (!at->step) {
		sampler_epoch(&t->sampler, at->epoch);
		at->loss_sum = 0;
	}
	rc = train_one_step(t, &at->loss_sum);
	if (rc)
		return rc;
	at->step++;
	if (at->step == trainer_steps(t)) {
		at->loss = at->loss_sum / (double)(at->step * t->samples.count);
		at->step = 0;
		at->epoch++;
	}
	return 0;
}

struct place trainer_place(const struct trainer *t)
{
	struct place at = t->at;

	at.random = t->sampler.random.state;
	return at;
}

int trainer_go_to(struct trainer *t, const struct place *place)
{
	if (place->epoch < 0 || place->step >= trainer_steps(t))
		return -ERANGE;
	t->at = *place;
	if (place->step) {
		sampler_epoch(&t->sampler, place->epoch);
		t->sampler.next = place->step * t->samples.count;
	}
	t->sampler.random.state = place->random;
	return 0;
}

/* Rows that are looked at together. */
#define PIECE_ROWS 4096

static int check_array(struct trainer *t, int table, const char *slot)
{
	size_t dim = (size_t)t->settings->dim, items = t->sampler.data->items.count, count;
	float *rows = reallocarray(NULL, PIECE_ROWS * dim, sizeof(*rows));
	int64_t *ids = reallocarray(NULL, PIECE_ROWS, sizeof(*ids));
	int rc = rows && ids ? 0 : -ENOMEM;

	for (size_t first = 0; !rc && first < items; first += count) {
		count = items - first < PIECE_ROWS ? items - first : PIECE_ROWS;
		for (size_t k = 0; k < count; k++)
			ids[k] = (int64_t)(first + k);
		rc = embeng_rows_read(t->e, table, slot, ids, count, rows);
		if (!rc && !is_row_finite(rows, count * dim))
			rc = -EDOM;
	}
	free(rows);
	free(ids);
	return rc;
}

int trainer_check(struct trainer *t)
{
	const struct embeng_model *model = embeng_get_model(t->e);
	int rc = 0;

	for (size_t table = 0; !rc && table < embeng_model_table_count(model); table++) {
		rc = check_array(t, (int)table, NULL);
		for (size_t k = 0; !rc && k < embeng_model_slot_count(model, table); k++)
			rc = check_array(t, (int)table, embeng_model_slot_name(model, table, k));
	}
	return rc;
}

float *trainer_rows(struct trainer *t, enum trainer_table table)
{
	size_t items = t->sampler.data->items.count;
	float *rows = reallocarray(NULL, items * (size_t)t->settings->dim, sizeof(*rows));

	if (rows && embeng_rows_read(t->e, (int)table, NULL, NULL, items, rows) < 0) {
		free(rows);
		rows = NULL;
	}
	return rows;
}

void trainer_close(struct trainer *t)
{
	embeng_batch_free(t->batch);
	embeng_close(t->e);
	sampler_free(&t->sampler);
	*t = (struct trainer){0};
}

/* About the same work for little data as for much, within limits. */
int64_t trainer_epochs(const struct trainer *t)
{
	size_t more = 20000 / t->sampler.count;

	if (t->settings->epochs)
		return t->settings->epochs;
	return 6 + (int64_t)(more < 34 ? more : 34);
}
