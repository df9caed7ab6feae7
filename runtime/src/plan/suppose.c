// SPDX-License-Identifier: MIT
/*
 * Supposes the largest batch of each feature, from the model and from the options of a plan. It is a
 * file because the plan of one process and the plan of many hosts suppose the same batches.
 *
 * Only arguments are touched; no lock is needed.
 */
#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "base/error.h"
#include "device/soft/soft.h"
#include "suppose.h"

#define BATCH_DEFAULT 1024

int suppose_options(const struct embeng_model *model, const struct embeng_plan_options *options,
		    struct embeng_plan_options *o)
{
	int ret;

	*o = (struct embeng_plan_options){.size = sizeof(*o)};
	ret = options ? config_take(o, options, sizeof(*o), "embeng_plan_options") : 0;
	if (ret)
		return ret;
	if (o->batch_size < 0 || o->ids_per_sample < 0)
		return fail(-ERANGE,
			    "plan: a batch of %" PRId64 " samples with %" PRId64
			    " ids each; none is below 0",
			    o->batch_size, o->ids_per_sample);
	o->id_type = options ? o->id_type : EMBENG_I64;
	if (o->id_type != EMBENG_I32 && o->id_type != EMBENG_I64)
		return fail(-EINVAL, "plan: id type %d is neither EMBENG_I32 nor EMBENG_I64",
			    o->id_type);
	o->batch_size = o->batch_size ? o->batch_size : BATCH_DEFAULT;
	o->ids_per_sample = o->ids_per_sample ? o->ids_per_sample : 1;
	o->cores = o->cores ? o->cores : 1;
	if (model->engine.step_depth)
		o->step_depth = model->engine.step_depth;
	else if (!o->step_depth)
		o->step_depth = soft_step_depth();
	return 0;
}

/* The output's shape and the samples that it is of. 0, or -1 when 64 bits do not count them. */
static int suppose_shape(const struct feature *f, int64_t batch_size, struct output *output,
			 struct plan_input *input)
{
	struct embeng_shape known = shape_known(f);
	int64_t open = batch_size, positions;

	if (!known.rank) {
		known.rank = f->max_sequence_length ? 2 : 1;
		known.dims[0] = f->max_samples ? (int64_t)f->max_samples : open;
		known.dims[1] = f->max_sequence_length;
	}
	for (size_t i = 0; i < known.rank; i++) {
		if (known.dims[i])
			continue;
		known.dims[i] = open;
		open = 1;
	}
	positions = shape_product(known.dims, known.rank, false);
	if (positions < 0)
		return -1;
	output->rank = known.rank;
	memcpy(output->shape, known.dims, sizeof(output->shape));
	input->samples = (uint64_t)positions;
	if (f->max_sequence_length && known.rank == 2 && known.dims[1] == f->max_sequence_length) {
		input->samples = (uint64_t)known.dims[0];
		input->length = (uint64_t)f->max_sequence_length;
	}
	return 0;
}

int suppose_feature(const struct embeng_model *model, const struct embeng_plan_options *options,
		    size_t feature, struct output *output, struct plan_input *in)
{
	const struct feature *f = &model->features[feature];
	uint64_t each, positions;
	int ret = suppose_shape(f, options->batch_size, output, in);

	each = in->length		? in->length
	       : f->max_sequence_length ? 1
					: (uint64_t)options->ids_per_sample;
	in->weighted = options->weights && !f->max_sequence_length && !f->largest;
	in->ids = f->max_ids;
	if (!ret && !in->ids && __builtin_mul_overflow(in->samples, each, &in->ids))
		ret = -1;
	if (!ret && __builtin_mul_overflow(in->samples, in->length ? in->length : 1, &positions))
		ret = -1;
	if (ret || in->ids > UINT32_MAX || positions > UINT32_MAX)
		return fail(
			-ERANGE,
			"feature %s: a batch has at most %u ids and %u positions, this asks for "
			"more; plan a smaller batch",
			f->name, UINT32_MAX, UINT32_MAX);
	return 0;
}
