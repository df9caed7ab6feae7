// SPDX-License-Identifier: MIT
/*
 * Looks the same batches up in an engine and by serving, and compares the results to the bit.
 *
 * A struct comparison owns its engine and its serving handle until comparison_close(). The inputs
 * live for one batch.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "compare_lookups.h"

static int add_slotless_table(struct embeng_model *to, const struct embeng_model *from,
			      size_t index)
{
	struct embeng_table_config t = EMBENG_INIT(embeng_table_config);
	int err = embeng_model_get_table(from, index, &t);

	t.optimizer = (struct embeng_optimizer){0};
	t.slot_starts = NULL;
	t.slot_start_count = 0;
	err = err ? err : embeng_model_add_table(to, &t);
	return err < 0 ? err : 0;
}

static int add_served_feature(struct embeng_model *to, const struct embeng_model *from,
			      size_t index)
{
	struct embeng_feature_config f = EMBENG_INIT(embeng_feature_config);
	int err = embeng_model_get_feature(from, index, &f);

	err = err ? err : embeng_model_add_feature(to, &f);
	return err < 0 ? err : 0;
}

/* The served model without slots: their memory has no part in a lookup. */
static int make_slotless_model(const struct embeng_model *from, struct embeng_model *to)
{
	int err = to ? 0 : -ENOMEM;

	for (size_t t = 0; !err && t < embeng_model_table_count(from); t++)
		err = add_slotless_table(to, from, t);
	for (size_t f = 0; !err && f < embeng_model_feature_count(from); f++)
		err = add_served_feature(to, from, f);
	return err;
}

static int open_engine(struct comparison *c, const char *dir, const char *device)
{
	struct embeng_model *model = embeng_model_new();
	int err = make_slotless_model(embeng_serving_model(c->serving), model);

	err = err ? err : embeng_open(device, model, &c->e, NULL);
	embeng_model_free(model);
	return err ? err : embeng_restore(c->e, dir, NULL);
}

int comparison_open(struct comparison *c, const char *dir, const char *device)
{
	int err = embeng_serving_open(dir, NULL, 0, &c->serving, NULL);

	err = err ? err : open_engine(c, dir, device);
	if (err)
		return err;
	c->features = calloc(embeng_model_feature_count(embeng_get_model(c->e)) + 1,
			     sizeof(*c->features));
	return c->features ? 0 : -ENOMEM;
}

void comparison_close(struct comparison *c)
{
	embeng_close(c->e);
	embeng_serving_close(c->serving);
	free(c->features);
}

static bool floats_agree(float a, float b)
{
	return !memcmp(&a, &b, sizeof(a)) || (isnan(a) && isnan(b));
}

static void note_floats(struct difference *d, uint64_t batch, uint64_t at, float engine,
			float serving)
{
	double apart = fabs((double)engine - (double)serving);

	d->floats++;
	if (floats_agree(engine, serving))
		return;
	if (!d->differing++) {
		d->batch = batch;
		d->at = at;
		d->engine = engine;
		d->serving = serving;
	}
	if (apart > d->largest)
		d->largest = apart;
}

static struct embeng_serving_input serving_input(const struct compare_input *in, size_t feature)
{
	return EMBENG_INIT(embeng_serving_input, .feature = (int)feature, .form = EMBENG_SPARSE,
			   .type = EMBENG_I64, .ids = in->ids, .id_count = in->count,
			   .indices = in->indices, .shape = in->shape, .rank = in->rank,
			   .weights = in->weights, .weight_count = in->weights ? in->count : 0);
}

static size_t count_elements(const int64_t *shape, size_t rank)
{
	size_t n = 1;

	for (size_t i = 0; i < rank; i++)
		n *= (size_t)shape[i];
	return n;
}

static int compare_feature(struct comparison *c, const struct compare_input *in,
			   const struct embeng_view *view, size_t feature)
{
	struct embeng_serving_input input = serving_input(in, feature);
	int64_t shape[EMBENG_MAX_RANK + 1];
	size_t rank, count = count_elements(view->shape, view->rank);
	int err = embeng_serving_shape(c->serving, &input, shape, &rank);

	if (err)
		return err;
	/* Other shapes are other numbers; so many are compared as both have. */
	input.out_elements = count_elements(shape, rank);
	input.out = malloc((input.out_elements + 1) * sizeof(*input.out));
	if (!input.out)
		return -ENOMEM;
	err = embeng_serving_lookup(c->serving, &input, 1);
	for (size_t i = 0; !err && i < count && i < input.out_elements; i++)
		note_floats(&c->features[feature], c->batches, i, view->data[i], input.out[i]);
	for (size_t i = input.out_elements; !err && i < count; i++)
		note_floats(&c->features[feature], c->batches, i, view->data[i], NAN);
	free(input.out);
	return err;
}

static int compare_all(struct comparison *c, const struct compare_input *inputs, size_t count)
{
	struct embeng_activations a = EMBENG_INIT(embeng_activations);
	int err = embeng_dequeue(c->e, 0, -1, &a);

	if (err)
		return err;
	for (size_t f = 0; !err && f < count; f++)
		err = compare_feature(c, &inputs[f], &a.features[f], f);
	embeng_release(c->e, &a);
	return err;
}

static int draw_input(struct comparison *c, struct compare_input *in, size_t feature)
{
	const struct embeng_model *model = embeng_get_model(c->e);
	struct embeng_feature_config f = EMBENG_INIT(embeng_feature_config);
	struct embeng_table_config t = EMBENG_INIT(embeng_table_config);
	int err = embeng_model_get_feature(model, feature, &f);

	err = err ? err : embeng_model_get_table(model, (size_t)f.table, &t);
	return err ? err : compare_input_make(in, &f, t.vocabulary_size, c->samples, &c->random);
}

static int look_up_batch(struct comparison *c, struct embeng_batch *b, struct compare_input *inputs,
			 size_t count)
{
	int err = b ? 0 : -ENOMEM;

	for (size_t f = 0; !err && f < count; f++) {
		const struct compare_input *in = &inputs[f];

		err = draw_input(c, &inputs[f], f);
		err = err ? err
			  : embeng_batch_sparse(b, (int)f, EMBENG_I64, in->indices, in->ids,
						in->count, in->shape, in->rank, in->weights,
						in->weights ? in->count : 0);
	}
	err = err ? err : embeng_enqueue(c->e, b, -1);
	return err ? err : compare_all(c, inputs, count);
}

int comparison_batch(struct comparison *c)
{
	size_t count = embeng_model_feature_count(embeng_get_model(c->e));
	struct embeng_batch *b = embeng_batch_new(c->e, EMBENG_INFERENCE, 0);
	struct compare_input *inputs = calloc(count + 1, sizeof(*inputs));
	int err = inputs ? look_up_batch(c, b, inputs, count) : -ENOMEM;

	for (size_t f = 0; inputs && f < count; f++)
		compare_input_free(&inputs[f]);
	free(inputs);
	embeng_batch_free(b);
	c->batches += !err;
	return err;
}
