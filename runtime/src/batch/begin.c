// SPDX-License-Identifier: MIT
/*
 * Begins the input of a feature. A batch that was made before tables were added to its handle has
 * fewer inputs than the model has features: it grows here, when it is used next.
 *
 * Inputs belong to their batch, which is one thread's at a time; no lock is taken.
 */
#include "base/list.h"
#include "input.h"
#include "session/session.h"

/* No samples. */
static int make_empty_input(struct input *input, const struct feature *f)
{
	const struct ids none = {.type = EMBENG_I64};
	int ret = input_ids(input, f, &none);

	ret = ret ? ret : input_offsets(input, f, 0);
	if (ret)
		return ret;
	input->own_offsets[0] = 0;
	input_rows(input, f, input->own_offsets, 0);
	return 0;
}

int batch_grow(struct embeng_batch *b, bool empty)
{
	const struct embeng_model *model = embeng_get_model(b->e);
	int ret;

	if (b->count == model->feature_count)
		return 0;
	if (b->partitioned)
		return fail(-EINVAL, "the batch was partitioned before tables were added to its "
				     "handle; reset it, and partition it again");
	ret = list_grow(&b->inputs, b->count + 1, model->feature_count + 1, sizeof(*b->inputs));
	for (; !ret && b->count < model->feature_count; b->count += !ret)
		if (empty)
			ret = make_empty_input(&b->inputs[b->count], &model->features[b->count]);
	return ret;
}

struct input *input_begin(struct embeng_batch *b, int feature, const struct feature **f, int *code)
{
	if (!b) {
		*code = fail(-EINVAL, "an input needs a batch; NULL was given");
		return NULL;
	}
	*code = session_check(b->e, "embeng_batch");
	if (!*code)
		*code = input_feature(embeng_get_model(b->e), feature, f);
	if (!*code)
		*code = batch_grow(b, true);
	if (*code)
		return NULL;
	input_clear(&b->inputs[feature]);
	return &b->inputs[feature];
}
