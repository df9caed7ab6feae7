// SPDX-License-Identifier: MIT
/*
 * Bags in the forms in which frameworks hold them: splits, starts, lengths or bags of one length, of
 * 32 or 64 bits, with ids that only fill a bag up; of one feature, or of several one after another.
 * All forms become offsets, in one pass that checks them.
 *
 * Offsets, and ids and weights without padding, lie in memory of the batch. One thread uses a batch
 * at a time; no lock is taken.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "batch/batch.h"
#include "input.h"

static int64_t bound_at(const struct embeng_bags *bags, size_t i)
{
	return bags->bound_type == EMBENG_I32 ? ((const int32_t *)bags->bounds)[i]
					      : ((const int64_t *)bags->bounds)[i];
}

static size_t count_bags(const struct embeng_bags *bags)
{
	return bags->form == EMBENG_BAGS_SPLITS ? bags->bound_count - 1 : bags->bound_count;
}

/* Ids of a bag, as they are given: a number that may be wrong. */
static int64_t length_of_bag(const struct embeng_bags *bags, size_t i)
{
	int64_t end;

	switch (bags->form) {
	case EMBENG_BAGS_LENGTHS:
		return bound_at(bags, i);
	case EMBENG_BAGS_EVEN:
		return bags->length;
	default:
		end = i + 1 < bags->bound_count ? bound_at(bags, i + 1) : (int64_t)bags->id_count;
		/* A difference that does not fit is wrong anyhow. */
		return __builtin_sub_overflow(end, bound_at(bags, i), &end) ? -1 : end;
	}
}

static int check_bags(const struct feature *f, const struct embeng_bags *bags)
{
	if (bags->form > EMBENG_BAGS_EVEN)
		return fail(-EINVAL, "feature %s: there is no form of bags %d", f->name,
			    (int)bags->form);
	if (bags->form == EMBENG_BAGS_EVEN)
		return bags->length < 0 ? fail(-EINVAL, "feature %s: bags of %" PRId64 " ids",
					       f->name, bags->length)
					: 0;
	if (bags->bound_type != EMBENG_I32 && bags->bound_type != EMBENG_I64)
		return fail(-EINVAL,
			    "feature %s: bound type %d is neither EMBENG_I32 nor EMBENG_I64",
			    f->name, (int)bags->bound_type);
	if ((!bags->bounds && bags->bound_count) ||
	    (bags->form == EMBENG_BAGS_SPLITS && !bags->bound_count))
		return fail(-EINVAL, "feature %s: bounds are missing%s", f->name,
			    bags->form == EMBENG_BAGS_SPLITS ? "; there is one more than samples"
							     : "");
	if (bags->form != EMBENG_BAGS_LENGTHS && bags->bound_count && bound_at(bags, 0))
		return fail(-EINVAL, "feature %s: bounds[0] is %" PRId64 "; bags start at 0",
			    f->name, bound_at(bags, 0));
	return 0;
}

/* Bags [@first, @first + @samples) to offsets. @left: ids that no bag before these has; theirs go. */
static int take_lengths(struct input *input, const struct feature *f,
			const struct embeng_bags *bags, size_t first, size_t samples,
			uint64_t *left)
{
	int code = input_offsets(input, f, samples);
	uint64_t total = 0;

	if (code)
		return code;
	input->own_offsets[0] = 0;
	for (size_t s = 0; s < samples; s++) {
		int64_t length = length_of_bag(bags, first + s);

		/* A negative length is too large as an unsigned one. */
		if ((uint64_t)length > *left - total)
			return fail(-EINVAL,
				    "feature %s, sample %zu: its bag has %" PRId64
				    " ids, from none to %" PRIu64 " are left of the %zu",
				    f->name, s, length, *left - total, bags->id_count);
		total += (uint64_t)length;
		input->own_offsets[s + 1] = (int64_t)total;
	}
	*left -= total;
	return 0;
}

static int grow_own(void **own, size_t *have, size_t bytes, const struct feature *f)
{
	void *grown;

	if (bytes <= *have)
		return 0;
	grown = realloc(*own, bytes);
	if (!grown)
		return fail(-ENOMEM, "feature %s: no memory for the ids without padding", f->name);
	*own = grown;
	*have = bytes;
	return 0;
}

/* Moves what is no padding together; offsets are of own memory. */
static int leave_padding_out(struct input *input, const struct feature *f,
			     const struct embeng_bags *bags, size_t samples)
{
	size_t width = bags->type == EMBENG_I32 ? 4 : 8, kept = 0;
	size_t begin = 0, count = (size_t)input->own_offsets[samples];
	int code = grow_own(&input->own_ids, &input->own_id_bytes, width * count + 1, f);

	if (!code && input->weights)
		code = grow_own(&input->own_weights, &input->own_weight_bytes,
				sizeof(float) * count + 1, f);
	if (code)
		return code;
	input->given_ids = input->ids;
	input->given_count = count;
	input->padding = bags->padding;
	for (size_t s = 0; s < samples; s++) {
		size_t end = (size_t)input->own_offsets[s + 1];

		for (size_t k = begin; k < end; k++) {
			if (input_pads(input, k))
				continue;
			memcpy((char *)input->own_ids + kept * width,
			       (const char *)input->ids + k * width, width);
			if (input->weights)
				((float *)input->own_weights)[kept] = input->weights[k];
			kept++;
		}
		begin = end;
		input->own_offsets[s + 1] = (int64_t)kept;
	}
	input->ids = input->own_ids;
	input->weights = input->weights ? input->own_weights : NULL;
	input->id_count = kept;
	return 0;
}

int input_bags(struct input *input, const struct feature *f, const struct embeng_bags *bags,
	       size_t first, size_t samples, uint64_t *left)
{
	size_t at = bags->id_count - *left, width = bags->type == EMBENG_I32 ? 4 : 8;
	int code = take_lengths(input, f, bags, first, samples, left);
	struct ids ids = {.type = bags->type};

	if (code)
		return code;
	ids.id_count = (size_t)input->own_offsets[samples];
	ids.ids = bags->ids ? (const char *)bags->ids + at * width : NULL;
	ids.weights = bags->weights ? bags->weights + at : NULL;
	ids.weight_count = bags->weights ? ids.id_count : 0;
	code = input_ids(input, f, &ids);
	if (!code && bags->has_padding)
		code = leave_padding_out(input, f, bags, samples);
	if (!code)
		input_rows(input, f, input->own_offsets, samples);
	return code;
}

static int check_all_ids(const struct feature *f, const struct embeng_bags *bags)
{
	const struct ids ids = {bags->type, bags->ids, bags->id_count, bags->weights,
				bags->weight_count};
	int code = input_check_ids(f, &ids);

	return code ? code : check_bags(f, bags);
}

static int ids_left(const struct feature *f, const struct embeng_bags *bags, uint64_t left)
{
	return left ? fail(-EINVAL,
			   "feature %s: the bags end %" PRIu64 " ids before the %zu ids do",
			   f->name, left, bags->id_count)
		    : 0;
}

static int take_all_bags(struct input *input, const struct feature *f,
			 const struct embeng_bags *bags)
{
	uint64_t left = bags->id_count;
	int code = check_all_ids(f, bags);

	code = code ? code : input_bags(input, f, bags, 0, count_bags(bags), &left);
	return code ? code : ids_left(f, bags, left);
}

static int check_given(const struct embeng_bags *bags, const char *call)
{
	if (bags && bags->size >= sizeof(*bags))
		return 0;
	return fail(-EINVAL, "%s: bags must be given, with their size", call);
}

int embeng_batch_bags(struct embeng_batch *b, int feature, const struct embeng_bags *bags)
{
	const struct feature *f;
	struct input *input;
	int code = check_given(bags, "embeng_batch_bags");

	if (code)
		return code;
	/* Splits of 64 bits are offsets already. */
	if (bags->form == EMBENG_BAGS_SPLITS && bags->bound_type == EMBENG_I64 &&
	    !bags->has_padding)
		return embeng_batch_ragged_splits(b, feature, bags->type, bags->ids, bags->id_count,
						  bags->bounds, bags->bound_count, bags->weights,
						  bags->weight_count);
	input = input_begin(b, feature, &f, &code);
	return input ? input_end(input, take_all_bags(input, f, bags)) : code;
}

/* The samples of the k-th of @count features; SIZE_MAX: the bags cannot be shared out so. */
static size_t samples_of(const struct embeng_bags *bags, const size_t *samples, size_t count,
			 size_t k)
{
	size_t all = count_bags(bags);

	if (samples)
		return samples[k];
	return all % count ? SIZE_MAX : all / count;
}

static int take_key(struct embeng_batch *b, int feature, const struct embeng_bags *bags,
		    size_t samples, size_t *first, uint64_t *left)
{
	const struct feature *f;
	int code;
	struct input *input = input_begin(b, feature, &f, &code);

	if (!input)
		return code;
	code = *first ? 0 : check_all_ids(f, bags);
	if (!code && (samples == SIZE_MAX || samples > count_bags(bags) - *first))
		code = fail(-EINVAL,
			    "feature %s: %zu bags are left for it, of %zu, which are shared out "
			    "among all features of the call",
			    f->name, count_bags(bags) - *first, count_bags(bags));
	code = code ? code : input_bags(input, f, bags, *first, samples, left);
	*first += code ? 0 : samples;
	return input_end(input, code);
}

/* A feature that came twice would keep the last of its bags alone. */
static int check_once(const int *features, size_t count)
{
	for (size_t k = 1; k < count; k++)
		for (size_t i = 0; i < k; i++)
			if (features[i] == features[k])
				return fail(-EINVAL,
					    "embeng_batch_keyed: feature %d is there twice",
					    features[k]);
	return 0;
}

int embeng_batch_keyed(struct embeng_batch *b, const int *features, const size_t *samples,
		       size_t count, const struct embeng_bags *bags)
{
	int code = check_given(bags, "embeng_batch_keyed");
	uint64_t left = code ? 0 : bags->id_count;
	size_t first = 0, all;

	if (!code && (!features || !count))
		code = fail(-EINVAL, "embeng_batch_keyed: no features given");
	code = code ? code : check_once(features, count);
	for (size_t k = 0; !code && k < count; k++)
		code = take_key(b, features[k], bags, samples_of(bags, samples, count, k), &first,
				&left);
	if (code)
		return code;
	all = count_bags(bags);
	if (first != all || left)
		return fail(-EINVAL,
			    "embeng_batch_keyed: the %zu features have %zu bags with all but "
			    "%" PRIu64 " ids, %zu bags are given",
			    count, first, left, all);
	return 0;
}
