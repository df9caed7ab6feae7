/* SPDX-License-Identifier: MIT */
/*
 * Maps the arrays of a LOOKUP's features and copies them into the batch. The copies are made by all
 * cores, one feature each, so the order in which faults are met does not matter: the fault of the
 * first feature is reported.
 *
 * The views of the arrays last from batch_open() to batch_close(). Called without engine->lock,
 * which mapping and releasing take inside.
 */
#include "batch.h"

/*
 * Ids of all features: no second cache keeps their copies until they are looked up. A third one
 * does, if a table leaves it the room.
 */
#define STREAM_IDS (256u << 10)

struct copying {
	struct command *command;
	const struct model *model;
	struct batch *batch;
	bool training, stream;
};

u16 batch_open(struct command *command, struct batch_feature *f, u32 index)
{
	const struct embeng_lookup_feature *g = &f->given;
	const u32 reads = EMBENG_REGION_DEVICE_READ, writes = EMBENG_REGION_DEVICE_WRITE;
	const struct mem_part parts[BATCH_VIEWS] = {
		[BATCH_VIEW_OFFSETS] = { &g->offsets, reads, g->offset_width,
					 EMBENG_FIELD_ROW_OFFSETS },
		[BATCH_VIEW_IDS] = { &g->ids, reads, g->id_width, EMBENG_FIELD_IDS },
		[BATCH_VIEW_WEIGHTS] = { &g->weights, reads, 4, EMBENG_FIELD_WEIGHTS },
		[BATCH_VIEW_ACTIVATIONS] = { &g->activations, writes, 4, EMBENG_FIELD_ACTIVATIONS },
	};

	return mem_get_all(command, parts, BATCH_VIEWS, index, f->views);
}

void batch_close(struct context *context, struct batch_feature *f)
{
	region_put_all(context, f->views, BATCH_VIEWS);
}

static void copy_feature_task(void *arg, u64 number, u32 worker)
{
	const struct copying *copying = arg;
	struct batch_feature *f = &copying->batch->features[number];
	const struct model *model = copying->model;
	const struct table *table = &model->tables[model->blob.features[number].table];
	const struct batch_input in = {
		.ids = f->views[BATCH_VIEW_IDS].data,
		.offsets = f->views[BATCH_VIEW_OFFSETS].data,
		.weights = f->views[BATCH_VIEW_WEIGHTS].data,
		/* A sequence reads them again at once. */
		.stream = copying->stream && table->bytes > model->engine->fetch.cached_bytes &&
			  !batch_sequence(model, (u32)number, f),
	};

	(void)worker;
	f->status = 0;
	/* The ids of a feature in a stack are copied later. */
	if (f->given.form == EMBENG_FORM_PARTITIONED)
		return;
	f->status = ids_copy(copying->command, (u32)number, f, &in, &f->fault);
	if (!f->status && !command_is_cut(copying->command))
		scales_make(copying->command, (u32)number, f, copying->training);
}

u16 batch_copy(struct command *command, struct batch *batch, u32 count, bool training)
{
	const struct model *model = command_model(command);
	struct copying copying = { command, model, batch, training, false };
	u64 bytes = 0, ids = 0;

	for (u32 i = 0; i < count; i++) {
		bytes += batch->features[i].views[BATCH_VIEW_IDS].length;
		ids += batch->features[i].given.id_count;
	}
	copying.stream = ids >= STREAM_IDS;
	if (!workers_run(command, copy_feature_task, &copying, count, bytes))
		return abort_command(command);
	for (u32 i = 0; i < count; i++) {
		const struct batch_feature *f = &batch->features[i];

		if (f->status) {
			command->fault = f->fault;
			return f->status;
		}
	}
	return 0;
}
