// SPDX-License-Identifier: MIT
/*
 * Ragged inputs, given by row lengths or by row splits. Lengths become offsets in memory of the
 * batch; splits are offsets already, so they are checked and used where they are.
 *
 * One thread uses a batch at a time; no lock is taken.
 */
#include "input.h"

#include "../../../engine/memory/offsets.h"

static int add_lengths(struct input *input, const struct feature *f, const int64_t *row_lengths,
		       size_t row_count)
{
	uint64_t total = 0;

	input->own_offsets[0] = 0;
	for (size_t i = 0; i < row_count; i++) {
		if (row_lengths[i] < 0)
			return fail(-EINVAL,
				    "feature %s: row_lengths[%zu] is %lld; no length is "
				    "negative",
				    f->name, i, (long long)row_lengths[i]);
		/* compared so that the sum cannot overflow */
		if ((uint64_t)row_lengths[i] > input->id_count - total)
			return fail(-EINVAL,
				    "feature %s: row_lengths add up to more than the %zu ids, "
				    "at row_lengths[%zu] %lld",
				    f->name, input->id_count, i, (long long)row_lengths[i]);
		total += (uint64_t)row_lengths[i];
		input->own_offsets[i + 1] = (int64_t)total;
	}
	if (total != input->id_count)
		return fail(-EINVAL, "feature %s: row_lengths add up to %llu, not to the %zu ids",
			    f->name, (unsigned long long)total, input->id_count);
	return 0;
}

static int take_ragged(struct input *input, const struct feature *f, const struct ids *ids,
		       const int64_t *row_lengths, size_t row_count)
{
	int code = input_ids(input, f, ids);

	if (!code && !row_lengths && row_count)
		code = fail(-EINVAL, "feature %s: row_lengths are NULL, their count is %zu",
			    f->name, row_count);
	if (!code)
		code = input_offsets(input, f, row_count);
	if (!code)
		code = add_lengths(input, f, row_lengths, row_count);
	if (!code)
		input_rows(input, f, input->own_offsets, row_count);
	return code;
}

int embeng_batch_ragged(struct embeng_batch *b, int feature, enum embeng_id_type type,
			const void *ids, size_t id_count, const int64_t *row_lengths,
			size_t row_count, const float *weights, size_t weight_count)
{
	struct ids in = {type, ids, id_count, weights, weight_count};
	const struct feature *f;
	int code;
	struct input *input = input_begin(b, feature, &f, &code);

	return input ? input_end(input, take_ragged(input, f, &in, row_lengths, row_count)) : code;
}

static int falls_at(const struct feature *f, const int64_t *row_splits)
{
	size_t i = 1;

	while (row_splits[i] >= row_splits[i - 1])
		i++;
	return fail(-EINVAL,
		    "feature %s: row_splits[%zu] falls from %lld to %lld; row_splits never fall",
		    f->name, i, (long long)row_splits[i - 1], (long long)row_splits[i]);
}

int input_check_splits(const struct feature *f, size_t id_count, const int64_t *row_splits,
		       size_t split_count)
{
	if (!row_splits || !split_count)
		return fail(-EINVAL,
			    "feature %s: row_splits are missing; there is one more than "
			    "samples",
			    f->name);
	if (row_splits[0])
		return fail(-EINVAL, "feature %s: row_splits[0] is %lld; row_splits start at 0",
			    f->name, (long long)row_splits[0]);
	if (!offsets_ascend(row_splits, split_count - 1))
		return falls_at(f, row_splits);
	if ((uint64_t)row_splits[split_count - 1] != id_count)
		return fail(-EINVAL,
			    "feature %s: row_splits end at row_splits[%zu] %lld, not at the "
			    "%zu ids",
			    f->name, split_count - 1, (long long)row_splits[split_count - 1],
			    id_count);
	return 0;
}

static int take_splits(struct input *input, const struct feature *f, const struct ids *ids,
		       const int64_t *row_splits, size_t split_count)
{
	int code = input_ids(input, f, ids);

	if (!code)
		code = input_check_splits(f, ids->id_count, row_splits, split_count);
	if (!code)
		input_rows(input, f, row_splits, split_count - 1);
	return code;
}

int embeng_batch_ragged_splits(struct embeng_batch *b, int feature, enum embeng_id_type type,
			       const void *ids, size_t id_count, const int64_t *row_splits,
			       size_t split_count, const float *weights, size_t weight_count)
{
	struct ids in = {type, ids, id_count, weights, weight_count};
	const struct feature *f;
	int code;
	struct input *input = input_begin(b, feature, &f, &code);

	return input ? input_end(input, take_splits(input, f, &in, row_splits, split_count)) : code;
}
