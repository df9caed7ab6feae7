// SPDX-License-Identifier: MIT
/*
 * Dense inputs: one id for each position of a shape. For features of the v1 interface zeros are
 * left out, so that a row of ids becomes a bag.
 *
 * The ids without zeros lie in memory of the batch. One thread uses a batch at a time.
 */
#include <string.h>

#include "input.h"

int input_check_dense(const struct feature *f, size_t id_count, const int64_t *shape, size_t rank)
{
	char text[SHAPE_TEXT];
	int64_t positions;

	shape_text(text, shape, rank, false);
	positions = shape_product(shape, rank, false);
	if (positions < 0)
		return fail(-EINVAL,
			    "feature %s: the dense shape %s has a negative length or more "
			    "positions than 64 bits count",
			    f->name, text);
	if ((uint64_t)positions != id_count)
		return fail(-EINVAL, "feature %s: %zu ids for the dense shape %s of %lld positions",
			    f->name, id_count, text, (long long)positions);
	return 0;
}

/* Ranks a shape may have, when its last dimension goes away from rank 2 on. */
static int check_rank(const struct feature *f, const int64_t *shape, size_t rank)
{
	char text[SHAPE_TEXT];

	if (!shape || !rank || rank > EMBENG_MAX_RANK + 1)
		return fail(-EINVAL,
			    "feature %s: a dense input needs a shape of rank 1 to %d; rank "
			    "%zu was given",
			    f->name, EMBENG_MAX_RANK + 1, shape ? rank : 0);
	if (rank == 1 || shape[rank - 1] == 1)
		return 0;
	shape_text(text, shape, rank, false);
	return fail(-EINVAL,
		    "feature %s: the dense shape %s must end in 1; bags of several ids "
		    "are sparse or ragged",
		    f->name, text);
}

static int take_padded(struct input *input, const struct feature *f, const struct ids *ids,
		       const int64_t *shape, size_t rank)
{
	struct embeng_bags bags = {
		.type = ids->type,
		.ids = ids->ids,
		.id_count = ids->id_count,
		.form = EMBENG_BAGS_EVEN,
		.has_padding = true,
	};
	uint64_t left = ids->id_count;
	char text[SHAPE_TEXT];
	int code;

	if (!shape || !rank || rank > 2) {
		shape_text(text, shape, shape && rank <= EMBENG_MAX_RANK ? rank : 0, false);
		return fail(-EINVAL,
			    "feature %s: zeros of a dense input are left out, so its shape is "
			    "[samples] or [samples, n]; rank %zu was given, %s",
			    f->name, shape ? rank : 0, text);
	}
	code = input_check_dense(f, ids->id_count, shape, rank);
	if (code)
		return code;
	bags.bound_count = (size_t)shape[0];
	bags.length = rank == 2 ? shape[1] : 1;
	return input_bags(input, f, &bags, 0, bags.bound_count, &left);
}

static int take_dense(struct input *input, const struct feature *f, const struct ids *ids,
		      const int64_t *shape, size_t rank)
{
	int code = input_ids(input, f, ids);

	if (!code && f->zero_is_padding)
		return take_padded(input, f, ids, shape, rank);
	if (!code)
		code = check_rank(f, shape, rank);
	if (!code)
		code = input_check_dense(f, ids->id_count, shape, rank);
	if (code)
		return code;
	input->form = INPUT_DENSE;
	input->samples = ids->id_count;
	input->rank = rank > 1 ? rank - 1 : 1;
	memcpy(input->shape, shape, input->rank * sizeof(*shape));
	return 0;
}

int embeng_batch_dense(struct embeng_batch *b, int feature, enum embeng_id_type type,
		       const void *ids, size_t id_count, const int64_t *shape, size_t rank)
{
	struct ids in = {.type = type, .ids = ids, .id_count = id_count};
	const struct feature *f;
	int code;
	struct input *input = input_begin(b, feature, &f, &code);

	return input ? input_end(input, take_dense(input, f, &in, shape, rank)) : code;
}
