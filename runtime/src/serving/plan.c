// SPDX-License-Identifier: MIT
/*
 * Works out what a serving input asks for: its samples, the shape of its output, and what is wrong
 * with its sizes.
 *
 * A struct plan points into the input and the model, and lives for one call. No lock is needed.
 */
#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "serving.h"

const struct embeng_serving_input *input_at(const struct embeng_serving_input *inputs, size_t k)
{
	return (const void *)((const char *)inputs + k * inputs->size);
}

static int take_ids(struct plan *p)
{
	const struct ids ids = {
		.type = (enum embeng_id_type)p->in.type,
		.ids = p->in.ids,
		.id_count = p->in.id_count,
		.weights = p->in.weights,
		.weight_count = p->in.weight_count,
	};

	p->weights = p->in.weights;
	return input_check_ids(p->f, &ids);
}

static void set_shape(struct plan *p, const int64_t *shape, size_t rank)
{
	p->rank = rank;
	if (rank)
		memcpy(p->shape, shape, rank * sizeof(*shape));
}

/* As a gather: the output has the ids' shape, whatever it is. */
static int plan_dense(struct plan *p)
{
	if (p->in.weights)
		return fail(-EINVAL,
			    "feature %s: weights are given, but the input is dense, and dense "
			    "inputs take none; give sparse or ragged",
			    p->f->name);
	if (p->f->max_sequence_length)
		return fail(-EINVAL,
			    "feature %s: a sequence feature, but the input is dense; give "
			    "sparse or ragged",
			    p->f->name);
	if (p->in.rank > EMBENG_MAX_RANK || (!p->in.shape && p->in.rank))
		return fail(-EINVAL,
			    "feature %s: a dense input needs a shape of rank 0 to %d; rank %zu "
			    "was given%s",
			    p->f->name, EMBENG_MAX_RANK, p->in.rank,
			    p->in.shape ? "" : ", and NULL");
	p->samples = p->in.id_count;
	set_shape(p, p->in.shape, p->in.rank);
	return input_check_dense(p->f, p->in.id_count, p->in.shape, p->in.rank);
}

static int plan_sparse(struct plan *p)
{
	struct coo coo = plan_coo(p);
	int code = input_check_coo(p->f, &coo);

	if (code)
		return code;
	set_shape(p, coo.shape, coo.rank - 1);
	p->samples = (size_t)shape_product(coo.shape, coo.rank - 1, false);
	/* from rank 3 on ids are always looked at, and a sequence's bags combined */
	p->prune = !p->f->unchecked_serving || coo.rank > 2;
	if (coo.rank == 2)
		p->length = (size_t)p->f->max_sequence_length;
	return 0;
}

/* A batch that fills the output shape, or of which each row becomes a part of it. */
static int fill_output(struct plan *p)
{
	const struct feature *f = p->f;
	char text[SHAPE_TEXT];
	int64_t positions = shape_product(f->output_shape, f->output_rank, false);

	if (f->output_rank == 1 && !f->output_shape[0])
		return 0;
	set_shape(p, f->output_shape, f->output_rank);
	if ((size_t)positions == p->samples && positions)
		return 0;
	shape_text(text, f->output_shape, f->output_rank, true);
	if (!positions)
		return fail(-EINVAL,
			    "feature %s: output shape %s is not fully defined, and %zu samples "
			    "in one dimension do not define it; give the unknown lengths",
			    f->name, text, p->samples);
	if (!p->samples || (size_t)positions < p->samples || (size_t)positions % p->samples)
		return fail(-EINVAL,
			    "feature %s: the output shape set in the FeatureConfig should be the "
			    "factor of the batch, equal to it or a multiple of it: %zu samples, "
			    "%" PRId64 " positions of %s",
			    f->name, p->samples, positions, text);
	p->length = (size_t)positions / p->samples;
	p->weights = NULL;
	return 0;
}

static int plan_ragged(struct plan *p)
{
	int64_t samples;

	if (!p->in.row_splits || !p->in.split_count)
		return input_check_splits(p->f, p->in.id_count, NULL, 0);
	p->samples = p->in.split_count - 1;
	samples = (int64_t)p->samples;
	set_shape(p, &samples, 1);
	if (p->f->output_rank)
		return fill_output(p);
	p->length = (size_t)p->f->max_sequence_length;
	return 0;
}

/* The dimensions that follow from the feature and its table. */
static int end_shape(struct plan *p)
{
	char text[SHAPE_TEXT];
	int64_t elements;

	if (p->length && !p->f->output_rank)
		p->shape[p->rank++] = (int64_t)p->length;
	p->shape[p->rank++] = p->table->dim;
	elements = shape_product(p->shape, p->rank, false);
	if (elements < 0 || (uint64_t)elements > PTRDIFF_MAX / sizeof(float)) {
		shape_text(text, p->shape, p->rank, false);
		return fail(-EINVAL, "feature %s: an output of shape %s is more than memory holds",
			    p->f->name, text);
	}
	p->elements = (size_t)elements;
	return 0;
}

static int plan_form(struct plan *p)
{
	switch (p->in.form) {
	case EMBENG_DENSE:
		return plan_dense(p);
	case EMBENG_SPARSE:
		return plan_sparse(p);
	case EMBENG_RAGGED:
		return plan_ragged(p);
	}
	return fail(-EINVAL,
		    "feature %s: form %d is none of EMBENG_DENSE, EMBENG_SPARSE, EMBENG_RAGGED",
		    p->f->name, (int)p->in.form);
}

int plan_make(const struct embeng_model *model, const struct embeng_serving_input *given,
	      struct plan *plan)
{
	int code;

	memset(plan, 0, sizeof(*plan));
	code = config_take(&plan->in, given, sizeof(plan->in), "embeng_serving_input");
	if (!code)
		code = input_feature(model, plan->in.feature, &plan->f);
	if (code)
		return code;
	plan->table = &model->tables[plan->f->table];
	plan->finite = !plan->f->unchecked_serving && model_checks_weights_of(model, plan->f);
	code = take_ids(plan);
	if (!code)
		code = plan_form(plan);
	return code ? code : end_shape(plan);
}
