// SPDX-License-Identifier: MIT
/*
 * Opens the validated device with one table for a check, and looks up and trains there.
 *
 * The table is the check's own, in a context of its own, and ends with bed_close(): no table of
 * another program is touched.
 */
#include "bed.h"

#include <errno.h>
#include <string.h>

static int make_bed_model(const struct bed_config *config, struct embeng_model *model)
{
	struct embeng_engine_config engine = EMBENG_INIT(embeng_engine_config,
							 .non_finite = EMBENG_NON_FINITE_ALLOW);
	struct embeng_table_config table = EMBENG_INIT(
		embeng_table_config, .vocabulary_size = config->rows, .dim = config->dim,
		.combiner = config->combiner, .optimizer = config->optimizer);
	struct embeng_feature_config feature = EMBENG_INIT(embeng_feature_config, .table = 0);
	int err = embeng_model_add_table(model, &table);

	err = err < 0 ? err : embeng_model_add_feature(model, &feature);
	return err < 0 ? err : embeng_model_set_engine(model, &engine);
}

bool bed_open(const struct subject *s, const struct bed_config *config, struct bed *out,
	      struct finding *f)
{
	struct embeng_model *model = embeng_model_new();
	int err = model ? make_bed_model(config, model) : -ENOMEM;

	*out = (struct bed){.rows = config->rows, .dim = config->dim};
	err = err < 0 ? err
		      : embeng_open(config->device ? config->device : s->device, model, &out->e,
				    NULL);
	embeng_model_free(model);
	if (finding_library(f, err, "a table cannot be made"))
		return false;
	out->batch = embeng_batch_new(out->e, EMBENG_INFERENCE, 0);
	if (!out->batch) {
		finding_fail(f, "out of memory");
		bed_close(out);
		return false;
	}
	return true;
}

void bed_close(struct bed *bed)
{
	embeng_batch_free(bed->batch);
	embeng_close(bed->e);
	*bed = (struct bed){0};
}

static int fill_bed_batch(const struct bed *bed, const struct bed_bags *bags, enum embeng_mode mode)
{
	size_t ids = (size_t)bags->bounds[bags->samples];

	embeng_batch_reset(bed->batch, mode);
	return embeng_batch_ragged_splits(bed->batch, 0, EMBENG_I64, bags->ids, ids, bags->bounds,
					  bags->samples + 1, bags->weights,
					  bags->weights ? ids : 0);
}

bool bed_lookup(const struct bed *bed, const struct bed_bags *bags, float *out, struct finding *f)
{
	const struct embeng_output output = {.data = out,
					     .elements = bags->samples * (size_t)bed->dim};
	int err = fill_bed_batch(bed, bags, EMBENG_INFERENCE);

	err = err ? err : embeng_lookup(bed->e, bed->batch, &output, 1, -1);
	return !finding_library(f, err, "a lookup");
}

static int train_on_batch(const struct bed *bed, size_t samples, const float *gradients, float *out)
{
	struct embeng_activations act = EMBENG_INIT(embeng_activations);
	struct embeng_gradients given = EMBENG_INIT(embeng_gradients, .count = 1,
						    .features = &gradients);
	int err = embeng_enqueue(bed->e, bed->batch, -1);

	err = err ? err : embeng_dequeue(bed->e, 0, -1, &act);
	if (err)
		return err;
	memcpy(out, act.features[0].data, samples * (size_t)bed->dim * sizeof(*out));
	return embeng_apply_gradients(bed->e, &given, -1);
}

bool bed_train(const struct bed *bed, const struct bed_bags *bags, const float *gradients,
	       float *out, struct finding *f)
{
	int err = fill_bed_batch(bed, bags, EMBENG_TRAIN);

	err = err ? err : train_on_batch(bed, bags->samples, gradients, out);
	return !finding_library(f, err, "a training step");
}
