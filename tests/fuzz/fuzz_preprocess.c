// SPDX-License-Identifier: MIT
/*
 * Partitioned CSR of a batch, changed in any place, as the input of a batch: refused with a
 * sentence, or ids of tables that there are. The handle works on.
 */
#include <errno.h>

#include "../unit/support/failing_alloc.h"
#include "arrays.h"
#include "embeng/preprocess.h"

#define TABLES 3
#define FEATURES 4
#define SPARSE_CORES 4u
#define CORES 2u /* cores of a device */
#define BAGS 8	 /* most bags of a feature */

struct target {
	struct embeng *e;
	struct embeng_model *model; /* with all shapes */
	struct embeng_stacking *stacking;
	struct embeng_batch *batch;
	struct embeng_preprocessed *made;
	struct arrays arrays;
	volatile float sum;
};

static void add_table(struct fuzz *f, struct embeng_model *m)
{
	struct embeng_table_config t = {
		.size = sizeof(t),
		.vocabulary_size = 1 + fuzz_below(f, 4 * BATCH_ROWS),
		.dim = 1 + fuzz_below(f, 12),
		.combiner = (enum embeng_combiner_name)fuzz_below(f, 3),
	};

	t.optimizer = fuzz_rarely(f, 4) ? embeng_adagrad(0.5f) : embeng_sgd(0.5f);
	embeng_model_add_table(m, &t);
}

static void add_feature(struct fuzz *f, struct embeng_model *m, int table)
{
	struct embeng_feature_config c = {
		.size = sizeof(c), .table = table, .output_rank = 1, .check_weights = table & 1};

	c.output_shape[0] = (int64_t)fuzz_near(f, CORES * fuzz_below(f, BAGS / CORES + 1));
	embeng_model_add_feature(m, &c);
}

/* False when memory ran out, or the bytes made no model. */
static bool start(struct target *t, struct fuzz *f)
{
	struct embeng_stacking_options o = {
		.size = sizeof(o),
		.flavour = (enum embeng_partition_flavour)fuzz_below(f, 2),
		.sparse_cores = (uint32_t)fuzz_near(f, SPARSE_CORES),
		.cores_per_device = (uint32_t)fuzz_near(f, CORES),
		.no_stacking = fuzz_rarely(f, 8),
	};

	t->model = embeng_model_new();
	if (!t->model)
		return false;
	for (int i = 0; i < TABLES; i++)
		add_table(f, t->model);
	for (int i = 0; i < FEATURES; i++)
		add_feature(f, t->model, i % TABLES);
	if (embeng_open("soft:cores=1,memory=16M", t->model, &t->e, NULL))
		return false;
	return !said(embeng_stacking_make(t->model, &o, &t->stacking));
}

/* Bags of ids that the table has, when the bytes will. */
static void add_input(struct target *t, struct fuzz *f, int feature)
{
	int64_t samples = t->stacking->features[feature].samples, *lengths;
	uint64_t rows = 1 + fuzz_below(f, 4 * BATCH_ROWS);
	size_t count = 0, weight_count;
	int32_t *values;

	if (samples > BAGS)
		samples = BAGS;
	lengths = array(&t->arrays, f, (size_t)samples * sizeof(*lengths));
	for (int64_t i = 0; lengths && i < samples; i++)
		count += (size_t)(lengths[i] = fuzz_below(f, 6));
	values = array(&t->arrays, f, count * sizeof(*values));
	for (size_t i = 0; values && i < count; i++)
		values[i] = (int32_t)fuzz_near(f, fuzz_take(f, 1) % rows);
	said(embeng_batch_ragged(t->batch, feature, EMBENG_I32, values, count, lengths,
				 (size_t)samples, weights(&t->arrays, f, count, &weight_count),
				 weight_count));
}

static void new_batch(struct target *t, struct fuzz *f)
{
	embeng_batch_free(t->batch);
	forget(&t->arrays);
	t->batch = embeng_batch_new(t->e, (enum embeng_mode)fuzz_below(f, 2), 0);
	if (!t->batch)
		return;
	for (size_t i = 0; i < t->stacking->feature_count && !fuzz_rarely(f, 32); i++)
		add_input(t, f, (int)i);
}

static void preprocess(struct target *t, struct fuzz *f)
{
	struct embeng_stack_limits limits[TABLES] = {0};
	struct embeng_preprocess_options o = {
		.size = sizeof(o),
		.device = (uint32_t)fuzz_near(f, fuzz_below(f, SPARSE_CORES / CORES)),
		.limits = fuzz_rarely(f, 2) ? limits : NULL,
		.max_ids_per_sample = fuzz_rarely(f, 8) ? fuzz_below(f, 16) : 0,
		.minibatching = fuzz_rarely(f, 2),
		.allow_id_dropping = fuzz_rarely(f, 2),
		.bucket = (enum embeng_partition_bucket)fuzz_below(f, 3),
	};

	for (int i = 0; i < TABLES; i++)
		limits[i] = (struct embeng_stack_limits){fuzz_near(f, fuzz_below(f, 12)),
							 fuzz_near(f, fuzz_below(f, 12)),
							 fuzz_near(f, 8 * fuzz_below(f, 16))};
	embeng_preprocessed_free(t->made);
	t->made = NULL;
	if (t->batch)
		said(embeng_preprocess(t->e, t->batch, t->stacking, &o, &t->made));
}

/* One of the items, mostly of those that are read. */
static void change_item(const struct target *t, struct fuzz *f, struct embeng_partitioned *p,
			void *items, uint64_t usual)
{
	uint64_t end = p->core_end[t->stacking->cores_per_device - 1];
	uint32_t value = (uint32_t)fuzz_near(f, usual);

	end = end && end <= p->capacity ? end : p->capacity;
	if (end)
		memcpy((char *)items + 4 * (fuzz_take(f, 2) % end), &value, 4);
}

static void change_bound(const struct target *t, struct fuzz *f, uint64_t *bounds)
{
	uint64_t *bound = &bounds[fuzz_below(f, t->stacking->cores_per_device)];

	*bound = fuzz_near(f, fuzz_rarely(f, 2) ? *bound + 8 : 4 * fuzz_below(f, 16));
}

/* Numbers in the arrays may be any; how large the arrays are stays true. */
static void change(struct target *t, struct fuzz *f)
{
	struct embeng_partitioned *p;

	if (!t->made || !t->made->stack_count)
		return;
	p = &t->made->stacks[fuzz_below(f, 4) % t->made->stack_count];
	if (!p->row_pointers) /* the stack has no features */
		return;
	switch (fuzz_below(f, 8)) {
	case 0:
	case 1:
		return fuzz_edit(f, p->row_pointers, 4 * p->row_pointer_capacity, 2);
	case 2:
		return change_item(t, f, p, fuzz_rarely(f, 4) ? (void *)p->gains : p->token_ids,
				   fuzz_below(f, 64));
	case 3:
		return change_item(t, f, p, fuzz_rarely(f, 4) ? (void *)p->gains : p->sample_ids,
				   fuzz_rarely(f, 2) ? 0x7fc00000 : fuzz_below(f, 8));
	case 4:
		return change_bound(t, f, p->core_first);
	case 5:
		return change_bound(t, f, p->core_end);
	case 6:
		p->minibatches = (uint32_t)fuzz_near(f, p->minibatches);
		p->row_stride = fuzz_near(f, p->row_stride);
		p->row_pointer_count = fuzz_near(f, p->row_pointer_count);
		break;
	case 7:
		p->size = fuzz_near(f, p->size);
		break;
	}
}

static void read_back(struct target *t)
{
	struct embeng_activations a = {.size = sizeof(a)};

	if (said(embeng_dequeue(t->e, 0, 0, &a)))
		return;
	for (size_t i = 0; i < a.count; i++) {
		size_t elements = 1;

		for (size_t d = 0; d < a.features[i].rank; d++)
			elements *= (size_t)a.features[i].shape[d];
		for (size_t k = 0; k < elements; k++) /* ASan sees whether they are there */
			t->sum += a.features[i].data[k];
	}
	said(embeng_release(t->e, &a));
}

static void decode(struct target *t, struct fuzz *f)
{
	size_t stacks;

	if (!t->batch || !t->made)
		return;
	stacks = t->made->stack_count;
	t->made->stack_count = fuzz_near(f, stacks);
	said(embeng_batch_partitioned(t->batch, t->stacking, t->made));
	t->made->stack_count = stacks;
	if (!said(embeng_enqueue(t->e, t->batch, 0)) && !fuzz_rarely(f, 4))
		read_back(t);
}

static void act(struct target *t, struct fuzz *f)
{
	switch (fuzz_below(f, 4)) {
	case 0:
		new_batch(t, f);
		return preprocess(t, f);
	case 1:
		return change(t, f);
	case 2:
		return decode(t, f);
	case 3:
		return preprocess(t, f);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = {data, size};
	uint32_t scarce = fuzz_below(&f, 255);
	struct target t = {0};

	scarce_begin(scarce);
	scarce_limit(ARRAYS_LIMIT);
	if (start(&t, &f)) {
		new_batch(&t, &f);
		preprocess(&t, &f);
		for (int i = 0; i < 24 && f.left; i++)
			act(&t, &f);
	}
	embeng_batch_free(t.batch);
	embeng_preprocessed_free(t.made);
	embeng_stacking_free(t.stacking);
	embeng_close(t.e);
	embeng_model_free(t.model);
	scarce_end();
	forget(&t.arrays);
	return 0;
}
