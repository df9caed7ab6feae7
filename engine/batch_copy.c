/* SPDX-License-Identifier: MIT */
/* What the features of a LOOKUP are copied from, and their copies: made by all cores, one each. */
#include "batch.h"

/*
 * Ids of all features: no second cache keeps their copies until they are looked up. A third one
 * does, if a table leaves it the room.
 */
#define STREAM_IDS (256u << 10)

struct copying {
	const struct model *model;
	struct batch *batch;
	bool training, stream;
};

u16 batch_open(struct command *command, struct batch_feature *f, u32 index)
{
	const struct embeng_lookup_feature *g = &f->given;
	struct batch_views *views = &f->views;
	u16 status;

	memset(views, 0, sizeof(*views));
	status = mem_get(command, &g->offsets, EMBENG_REGION_DEVICE_READ, g->offset_width,
			 EMBENG_FIELD_ROW_OFFSETS, index, &views->offsets);
	if (!status)
		status = mem_get(command, &g->ids, EMBENG_REGION_DEVICE_READ, g->id_width,
				 EMBENG_FIELD_IDS, index, &views->ids);
	if (!status)
		status = mem_get(command, &g->weights, EMBENG_REGION_DEVICE_READ, 4,
				 EMBENG_FIELD_WEIGHTS, index, &views->weights);
	if (!status)
		status = mem_get(command, &g->activations, EMBENG_REGION_DEVICE_WRITE, 4,
				 EMBENG_FIELD_ACTIVATIONS, index, &views->activations);
	return status;
}

void batch_close(struct context *context, struct batch_feature *f)
{
	region_put(context, &f->views.activations);
	region_put(context, &f->views.weights);
	region_put(context, &f->views.ids);
	region_put(context, &f->views.offsets);
}

static void copy_task(void *arg, u64 number, u32 worker)
{
	const struct copying *copying = arg;
	struct batch_feature *f = &copying->batch->features[number];
	const struct model *model = copying->model;
	const struct table *table = &model->tables[model->blob.features[number].table];
	const struct batch_input in = {
		.ids = f->views.ids.data,
		.offsets = f->views.offsets.data,
		.weights = f->views.weights.data,
		/* A sequence reads them again at once. */
		.stream = copying->stream && table->bytes > PREFETCH_CACHED_BYTES &&
			  !batch_sequence(model, (u32)number, f),
	};

	(void)worker;
	f->status = 0;
	/* What a stack has of a feature comes later. */
	if (f->given.form == EMBENG_FORM_PARTITIONED)
		return;
	f->status = ids_copy(model, (u32)number, f, &in, &f->fault);
	if (!f->status)
		scales_make(model, (u32)number, f, copying->training);
}

u16 batch_copy(struct command *command, struct batch *batch, u32 count, bool training)
{
	const struct model *model = command->context->model;
	struct copying copying = { model, batch, training, false };
	u64 bytes = 0, ids = 0;

	for (u32 i = 0; i < count; i++) {
		bytes += batch->features[i].views.ids.length;
		ids += batch->features[i].given.id_count;
	}
	copying.stream = ids >= STREAM_IDS;
	workers_run(model->engine->workers, copy_task, &copying, count, bytes);
	for (u32 i = 0; i < count; i++) {
		const struct batch_feature *f = &batch->features[i];

		if (f->status) {
			command->fault = f->fault;
			return f->status;
		}
	}
	return 0;
}
