// SPDX-License-Identifier: MIT
/*
 * The arguments of batches and steps, as a program may get them wrong: arrays of any content
 * in memory of its own. A call fails with a sentence, and the handle works on.
 */
#include <errno.h>

#include "../unit/support/failing_alloc.h"
#include "../../runtime/src/model/model.h"
#include "arrays.h"

#define ACTIONS 24

struct target {
	struct embeng *e;
	struct embeng_batch *batch;
	struct embeng_activations views[2];
	struct arrays arrays;
	volatile float sum;
};

static int add_dense(struct target *t, struct fuzz *f, int feature)
{
	enum embeng_id_type type = type_of(f);
	size_t rank = fuzz_near(f, 1 + fuzz_below(f, 3)) % (EMBENG_MAX_RANK + 3), count = 1;
	int64_t *shape = array(&t->arrays, f, rank * sizeof(*shape));

	for (size_t i = 0; i < rank; i++) {
		uint64_t length = fuzz_near(f, i && i + 1 == rank ? 1 : fuzz_below(f, 4));

		if (shape)
			shape[i] = (int64_t)length;
		count = count * length % 64;
	}
	count = fuzz_near(f, count) % 64;
	return embeng_batch_dense(t->batch, feature, type, ids(&t->arrays, f, type, count), count,
				  shape, rank);
}

static int add_sparse(struct target *t, struct fuzz *f, int feature)
{
	enum embeng_id_type type = type_of(f);
	size_t rank = fuzz_near(f, 2 + fuzz_below(f, 2)) % (EMBENG_MAX_RANK + 3);
	size_t count = fuzz_below(f, 8), weight_count;
	int64_t *shape = array(&t->arrays, f, rank * sizeof(*shape));
	int64_t *indices = array(&t->arrays, f, count * rank * sizeof(*indices));
	const float *w = weights(&t->arrays, f, count, &weight_count);

	for (size_t i = 0; shape && i < rank; i++)
		shape[i] = (int64_t)fuzz_near(f, 1 + fuzz_below(f, 4));
	for (size_t i = 0; indices && i < count * rank; i++)
		indices[i] = (int64_t)fuzz_near(
			f, i < rank ? 0 : (uint64_t)indices[i - rank] + fuzz_rarely(f, 3));
	return embeng_batch_sparse(t->batch, feature, type, indices,
				   ids(&t->arrays, f, type, count), count, shape, rank, w,
				   weight_count);
}

/* Bounds of any form: of @rows bags, most of them right. */
static const void *make_bounds(struct target *t, struct fuzz *f, struct embeng_bags *bags,
			       size_t rows)
{
	size_t width = bags->bound_type == EMBENG_I32 ? 4 : 8, end = 0;
	char *bounds = array(&t->arrays, f, (rows + 1) * width);

	bags->bound_count = fuzz_near(f, rows + (bags->form == EMBENG_BAGS_SPLITS)) % 8;
	if (bags->bound_count > rows + 1)
		bags->bound_count = rows + 1;
	for (size_t i = 0; bounds && i < bags->bound_count; i++) {
		uint64_t length = fuzz_near(f, fuzz_below(f, 3));
		uint64_t bound = bags->form == EMBENG_BAGS_LENGTHS ? length : end;

		memcpy(bounds + i * width, &bound, width);
		end = (end + length) % 64;
	}
	bags->id_count = fuzz_near(f, bags->form == EMBENG_BAGS_EVEN
					      ? rows * (uint64_t)(bags->length & 3)
					      : end) %
			 64;
	return bounds;
}

static int add_bags(struct target *t, struct fuzz *f, int feature, size_t rows)
{
	int features[3] = {feature, (int)fuzz_near(f, (uint64_t)feature + 1),
			   (int)fuzz_below(f, 3)};
	size_t samples[3] = {fuzz_below(f, 4), fuzz_below(f, 4), fuzz_below(f, 4)};
	struct embeng_bags bags = {
		.size = fuzz_rarely(f, 8) ? 8 : sizeof(bags),
		.type = type_of(f),
		.form = (enum embeng_bags_form)(fuzz_below(f, 8) * 5 / 8),
		.bound_type = type_of(f),
		.length = (int64_t)fuzz_near(f, fuzz_below(f, 4)),
		.has_padding = fuzz_rarely(f, 2),
		.padding = fuzz_below(f, 4),
	};

	bags.bounds = make_bounds(t, f, &bags, rows);
	bags.weights = weights(&t->arrays, f, bags.id_count, &bags.weight_count);
	bags.ids = ids(&t->arrays, f, bags.type, bags.id_count);
	if (fuzz_rarely(f, 2))
		return embeng_batch_bags(t->batch, feature, &bags);
	return embeng_batch_keyed(t->batch, features, fuzz_rarely(f, 2) ? samples : NULL,
				  fuzz_below(f, 4), &bags);
}

static int add_ragged(struct target *t, struct fuzz *f, int feature)
{
	enum embeng_id_type type = type_of(f);
	size_t rows = fuzz_below(f, 6), count = 0, weight_count;
	int64_t *lengths = array(&t->arrays, f, rows * sizeof(*lengths));
	const float *w;

	for (size_t i = 0; i < rows; i++) {
		uint64_t length = fuzz_near(f, fuzz_below(f, 4));

		if (lengths)
			lengths[i] = (int64_t)length;
		count = (count + length) % 64;
	}
	count = fuzz_near(f, count) % 64;
	w = weights(&t->arrays, f, count, &weight_count);
	return embeng_batch_ragged(t->batch, feature, type, ids(&t->arrays, f, type, count), count,
				   lengths, rows, w, weight_count);
}

static int add_splits(struct target *t, struct fuzz *f, int feature)
{
	enum embeng_id_type type = type_of(f);
	size_t rows = fuzz_below(f, 6), weight_count;
	int64_t *splits = array(&t->arrays, f, rows * sizeof(*splits));
	uint64_t at = fuzz_near(f, 0), count;
	const float *w;

	for (size_t i = 0; splits && i < rows; i++) {
		splits[i] = (int64_t)at;
		if (i + 1 < rows)
			at += fuzz_near(f, fuzz_below(f, 4));
	}
	count = fuzz_near(f, at) % 64;
	w = weights(&t->arrays, f, count, &weight_count);
	return embeng_batch_ragged_splits(t->batch, feature, type, ids(&t->arrays, f, type, count),
					  count, splits, rows, w, weight_count);
}

static void add_input(struct target *t, struct fuzz *f, int feature)
{
	int (*const forms[])(struct target *t, struct fuzz *f,
			     int feature) = {add_dense, add_sparse, add_ragged, add_splits};

	feature = (int)fuzz_near(f, (uint64_t)feature);
	said(forms[fuzz_below(f, 4)](t, f, feature));
}

/*
 * Bags of a batch of their own, out of the bytes that come next, which the batch proper is made of, too:
 * so inputs that were found before there were bags reach them as well.
 */
static void try_bags(const struct target *t, struct fuzz f)
{
	struct target own = {.e = t->e, .batch = embeng_batch_new(t->e, EMBENG_INFERENCE, 0)};

	for (int i = 0; own.batch && i < 3; i++) {
		said(add_bags(&own, &f, (int)fuzz_near(&f, (uint64_t)i), fuzz_below(&f, 6)));
		forget(&own.arrays);
	}
	embeng_batch_free(own.batch);
}

static void make_batch(struct target *t, struct fuzz *f)
{
	enum embeng_mode mode = (enum embeng_mode)(fuzz_near(f, fuzz_below(f, 2)) & 3);
	uint32_t replica = (uint32_t)fuzz_near(f, fuzz_below(f, BATCH_REPLICAS));
	size_t features = embeng_model_feature_count(embeng_get_model(t->e));

	try_bags(t, *f);
	if (t->batch && fuzz_rarely(f, 2))
		embeng_batch_reset(t->batch, mode);
	else {
		embeng_batch_free(t->batch);
		t->batch = embeng_batch_new(t->e, mode, replica);
		if (!t->batch)
			said(-errno_of_last());
	}
	forget(&t->arrays);
	for (size_t i = 0; i < features && !fuzz_rarely(f, 16); i++)
		add_input(t, f, (int)i);
	if (t->batch)
		said(embeng_enqueue(t->e, t->batch, 0));
}

static void dequeue(struct target *t, struct fuzz *f)
{
	uint32_t replica = (uint32_t)fuzz_near(f, fuzz_below(f, BATCH_REPLICAS));
	struct embeng_activations a = {.size = sizeof(a)};

	if (said(embeng_dequeue(t->e, replica, 0, &a)))
		return;
	for (size_t i = 0; i < a.count; i++) {
		size_t elements = 1;

		for (size_t d = 0; d < a.features[i].rank; d++)
			elements *= (size_t)a.features[i].shape[d];
		for (size_t k = 0; k < elements; k++) /* ASan sees whether they are there */
			t->sum += a.features[i].data[k];
	}
	if (a.mode == EMBENG_INFERENCE && !fuzz_rarely(f, 4))
		said(embeng_release(t->e, &a));
	else
		t->views[fuzz_below(f, 2)] = a;
}

static void release(struct target *t, struct fuzz *f)
{
	struct embeng_activations *a = &t->views[fuzz_below(f, 2)];

	if (a->size)
		said(embeng_release(t->e, a));
}

static void apply(struct target *t, struct fuzz *f)
{
	const struct embeng_rate rates[] = {{"rate", 0.5f}, {"other", 1}};
	const float *features[BATCH_FEATURES] = {0};
	size_t elements[BATCH_FEATURES] = {0};
	struct embeng_gradients g = {
		.size = sizeof(g),
		.replica = (uint32_t)fuzz_near(f, fuzz_below(f, BATCH_REPLICAS)),
		.count = fuzz_near(f, embeng_model_feature_count(embeng_get_model(t->e))) %
			 (BATCH_FEATURES + 1),
		.features = features,
		.elements = elements,
		.rates = rates,
		.rate_count = fuzz_near(f, 1) % 3,
		.multiplier = fuzz_rarely(f, 4) ? 2 : 0};

	for (size_t i = 0; i < g.count; i++) {
		elements[i] = fuzz_take(f, 1);
		if (!fuzz_rarely(f, 4))
			features[i] = array(&t->arrays, f, elements[i] * sizeof(float));
	}
	said(embeng_apply_gradients(t->e, &g, 0));
}

static void rows(struct target *t, struct fuzz *f)
{
	static const char *const slots[] = {NULL, "parameters", "accumulators", "none"};
	const char *slot = slots[fuzz_below(f, 4)];
	int table = (int)fuzz_near(f, fuzz_below(f, 2));
	size_t count = fuzz_below(f, BATCH_ROWS + 1);
	const int64_t *which = fuzz_rarely(f, 2) ? NULL : ids(&t->arrays, f, EMBENG_I64, count);
	float *data = array(&t->arrays, f, count * BATCH_DIM * sizeof(float));
	const struct embeng_initializer fill = {.kind = EMBENG_INIT_UNIFORM, .b = 1};

	switch (fuzz_below(f, 3)) {
	case 0:
		said(embeng_rows_read(t->e, table, slot, which, count, data));
		break;
	case 1:
		said(embeng_rows_write(t->e, table, slot, which, count, data));
		break;
	case 2:
		said(embeng_rows_fill(t->e, table, slot, (int64_t)fuzz_near(f, 0), count, &fill));
		break;
	}
}

static void act(struct target *t, struct fuzz *f)
{
	switch (fuzz_below(f, 8)) {
	case 0:
	case 1:
	case 2:
		return make_batch(t, f);
	case 3:
	case 4:
		return dequeue(t, f);
	case 5:
		return apply(t, f);
	case 6:
		return release(t, f);
	case 7:
		return rows(t, f);
	}
}

/* Steps that only the program keeps open. */
static void end_steps(struct target *t)
{
	for (size_t i = 0; i < 2; i++)
		if (t->views[i].size)
			embeng_release(t->e, &t->views[i]);
	for (uint32_t r = 0; r < BATCH_REPLICAS; r++) {
		struct embeng_activations a = {.size = sizeof(a)};

		while (!embeng_discard(t->e, r, 0))
			;
		while (!embeng_dequeue(t->e, r, 0, &a)) {
			if (a.mode == EMBENG_INFERENCE)
				embeng_release(t->e, &a);
			else
				embeng_discard(t->e, r, 0);
		}
	}
}

/* Batches of before have a feature less, and are used all the same. */
static void add_feature(struct target *t)
{
	struct embeng_batch *second = embeng_batch_new(t->e, EMBENG_INFERENCE, 0);
	struct embeng_model *m = model_copy(embeng_get_model(t->e));
	const struct embeng_feature_config f = {.size = sizeof(f), .name = "added"};

	end_steps(t);
	if (m && embeng_model_add_feature(m, &f) >= 0)
		said(embeng_add_tables(t->e, m));
	embeng_model_free(m);
	if (t->batch)
		said(embeng_enqueue(t->e, t->batch, 0));
	if (second) {
		embeng_batch_reset(second, EMBENG_INFERENCE);
		said(embeng_enqueue(t->e, second, 0));
	}
	embeng_batch_free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = {data, size};
	uint32_t scarce = fuzz_below(&f, 160);
	struct target t = {0};

	scarce_begin(scarce);
	scarce_limit(ARRAYS_LIMIT);
	t.e = batch_open(&f);
	for (int i = 0; t.e && i < ACTIONS && f.left; i++)
		act(&t, &f);
	if (t.e)
		add_feature(&t);
	embeng_batch_free(t.batch);
	embeng_close(t.e);
	scarce_end();
	forget(&t.arrays);
	return 0;
}
