// SPDX-License-Identifier: MIT
/*
 * The inputs of serving lookups over a live engine, as a program may get them wrong. A lookup that
 * is refused leaves the outputs alone; one that is accepted writes all of them.
 */
#include "../unit/support/failing_alloc.h"
#include "arrays.h"
#include "embeng/serving.h"

#define INPUTS 3
#define OUT 512 /* floats of one input's output */
#define MARK 12345.0f

struct lookup {
	struct arrays arrays;
	struct embeng_serving_input inputs[INPUTS];
	size_t count;
};

static void set_indices(struct lookup *l, struct fuzz *f, struct embeng_serving_input *in)
{
	int64_t *indices = array(&l->arrays, f, in->id_count * in->rank * sizeof(*indices));

	for (size_t i = 0; indices && i < in->id_count * in->rank; i++)
		indices[i] = (int64_t)fuzz_near(
			f, i < in->rank ? 0 : (uint64_t)indices[i - in->rank] + fuzz_rarely(f, 3));
	in->indices = indices;
}

static void set_shape(struct lookup *l, struct fuzz *f, struct embeng_serving_input *in)
{
	int64_t *shape;

	in->rank = fuzz_near(f, fuzz_below(f, 4)) % (EMBENG_MAX_RANK + 3);
	shape = array(&l->arrays, f, in->rank * sizeof(*shape));
	for (size_t i = 0; shape && i < in->rank; i++)
		shape[i] = (int64_t)fuzz_near(f, 1 + fuzz_below(f, 4));
	in->shape = shape;
}

static void set_splits(struct lookup *l, struct fuzz *f, struct embeng_serving_input *in)
{
	uint64_t at = fuzz_near(f, 0);
	int64_t *splits;

	in->split_count = fuzz_below(f, 6);
	splits = array(&l->arrays, f, in->split_count * sizeof(*splits));
	for (size_t i = 0; splits && i < in->split_count; i++) {
		splits[i] = (int64_t)(i + 1 == in->split_count ? fuzz_near(f, in->id_count) : at);
		at += fuzz_near(f, fuzz_below(f, 4));
	}
	in->row_splits = splits;
}

static void set_input(struct lookup *l, struct fuzz *f, struct embeng_serving_input *in, size_t i)
{
	enum embeng_id_type type = type_of(f);

	*in = (struct embeng_serving_input){.size = sizeof(*in), .type = (int)type};
	in->feature = (int)fuzz_near(f, i);
	in->form = (enum embeng_input_form)(fuzz_near(f, fuzz_below(f, 3)) & 3);
	in->id_count = fuzz_below(f, 12);
	in->ids = ids(&l->arrays, f, type, in->id_count);
	if (in->form == EMBENG_RAGGED)
		set_splits(l, f, in);
	else
		set_shape(l, f, in);
	if (in->form == EMBENG_SPARSE)
		set_indices(l, f, in);
	if (in->form != EMBENG_DENSE || fuzz_rarely(f, 16))
		in->weights = weights(&l->arrays, f, in->id_count, &in->weight_count);
	in->out = array(&l->arrays, f, OUT * sizeof(float));
	for (size_t k = 0; in->out && k < OUT; k++)
		in->out[k] = MARK;
}

/* As many floats as there will be, now and then fewer. */
static void set_room(const struct embeng_serving *serving, struct fuzz *f,
		     struct embeng_serving_input *in)
{
	int64_t shape[EMBENG_MAX_RANK + 1];
	size_t rank, elements = 1;

	if (!said(embeng_serving_shape(serving, in, shape, &rank))) {
		fuzz_check(rank && rank <= EMBENG_MAX_RANK + 1, "rank %zu", rank);
		for (size_t i = 0; i < rank; i++)
			elements *= (size_t)shape[i];
	}
	in->out_elements = fuzz_near(f, elements);
	if (in->out_elements > OUT)
		in->out_elements = OUT;
}

static void check_outputs(const struct lookup *l, int result)
{
	for (size_t i = 0; result && i < l->count; i++) {
		for (size_t k = 0; l->inputs[i].out && k < OUT; k++)
			fuzz_check(l->inputs[i].out[k] == MARK, "output %zu of a refused lookup",
				   i);
	}
}

static void look_up(const struct embeng_serving *serving, struct fuzz *f)
{
	struct lookup l = {.count = fuzz_below(f, INPUTS + 1)};
	bool starved;
	int result;

	for (size_t i = 0; i < l.count; i++) {
		set_input(&l, f, &l.inputs[i], i);
		set_room(serving, f, &l.inputs[i]);
	}
	scarce_begin(fuzz_below(f, 16));
	scarce_limit(ARRAYS_LIMIT);
	result = said(embeng_serving_lookup(serving, l.inputs, l.count));
	starved = scarce_end();
	if (!starved)
		check_outputs(&l, result);
	forget(&l.arrays);
}

static void serve(struct embeng *e, struct fuzz *f)
{
	struct embeng_serving *serving;

	if (said(embeng_serving_live(e, NULL, &serving, NULL)))
		return;
	for (int i = 0; i < 4 && f->left; i++)
		look_up(serving, f);
	embeng_serving_close(serving);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = {data, size};
	struct embeng *e = batch_open(&f);

	if (e)
		serve(e, &f);
	embeng_close(e);
	return 0;
}
