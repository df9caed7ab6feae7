// SPDX-License-Identifier: MIT
/*
 * Forecasts the memory that a model will need: tables, the engine's working memory, and the buffers
 * of the session. The same functions compute the sizes as when the memory is allocated.
 *
 * A plan belongs to the caller until embeng_plan_free(). No device is opened and no lock is needed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/layout.h"
#include "suppose.h"

struct planner {
	const struct embeng_model *model;
	struct embeng_plan_options options;
	struct output *outputs;	    /* [features] */
	struct plan_input *inputs;  /* [features] */
	struct array *arrays;	    /* [3 * features] */
	uint64_t *at, *elements;    /* [features] */
	u64 *engine;		    /* [features] private copies */
	uint64_t training, serving; /* batches in flight, of all replicas */
	struct embeng_plan *plan;
};

/* A kind's total counts up where its item is added, so that they agree. */
static uint64_t *total_of(struct embeng_plan *plan, enum embeng_plan_kind kind)
{
	switch (kind) {
	case EMBENG_PLAN_TABLE:
	case EMBENG_PLAN_SLOT:
		return &plan->table_bytes;
	case EMBENG_PLAN_ENGINE:
		return &plan->engine_bytes;
	default:
		return &plan->buffer_bytes;
	}
}

/* @each: bytes of one of @copies. */
static int add_item(struct planner *p, struct embeng_plan_item item, uint64_t each, uint64_t copies)
{
	uint64_t *total = total_of(p->plan, item.kind);

	if (__builtin_mul_overflow(each, copies, &item.bytes) ||
	    __builtin_add_overflow(*total, item.bytes, total) ||
	    __builtin_add_overflow(p->plan->total_bytes, item.bytes, &p->plan->total_bytes))
		return fail(-ERANGE, "%s %s: more bytes than 64 bits count",
			    item.table >= 0	? "table"
			    : item.feature >= 0 ? "feature"
						: "the model:",
			    item.table >= 0	? p->model->tables[item.table].name
			    : item.feature >= 0 ? p->model->features[item.feature].name
						: "all of its buffers");
	p->plan->items[p->plan->item_count++] = item;
	return 0;
}

static int plan_table(struct planner *p, int index)
{
	const struct table *t = &p->model->tables[index];
	int ret = 0;

	for (size_t s = 0; !ret && s <= t->slot_count; s++) {
		struct embeng_plan_item item = {
			.kind = s ? EMBENG_PLAN_SLOT : EMBENG_PLAN_TABLE,
			.table = index,
			.feature = -1,
			.slot = model_slot_name(p->model, index, s),
		};

		ret = add_item(p, item, (uint64_t)t->rows, model_row_bytes(t, s));
	}
	return ret;
}

/* Only whether arrays are given counts; nothing is read. */
static void suppose_arrays(struct planner *p, size_t index)
{
	const struct plan_input *in = &p->inputs[index];
	struct array *a = &p->arrays[ARRAYS * index];

	layout_arrays(a, in->samples, in->ids, (enum embeng_id_type)p->options.id_type);
	a[OFFSETS].data = p;
	a[IDS].data = in->ids ? p : NULL;
	a[WEIGHTS].data = in->ids && in->weighted ? p : NULL;
	a[IDS].in_place = a[WEIGHTS].in_place = p->options.buffers;
	a[OFFSETS].in_place = p->options.splits;
}

/* Bytes of a feature's copies, without what lies between them. */
static uint64_t copied_bytes(const struct planner *p, size_t feature)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < ARRAYS; i++) {
		const struct array *a = &p->arrays[ARRAYS * feature + i];

		if (a->data && !a->in_place)
			sum += a->count * a->width;
	}
	return sum;
}

static uint64_t steps_in_flight(const struct planner *p)
{
	return p->training + p->serving;
}

static int plan_feature(struct planner *p, size_t f)
{
	struct embeng_plan_item item = {.kind = EMBENG_PLAN_ENGINE, .table = -1, .feature = (int)f};
	uint64_t bytes = 4 * p->elements[f];
	int ret = add_item(p, item, p->engine[f], 1);

	item.kind = EMBENG_PLAN_INPUT;
	ret = ret ? ret : add_item(p, item, copied_bytes(p, f), steps_in_flight(p));
	item.kind = EMBENG_PLAN_ACTIVATIONS;
	ret = ret ? ret : add_item(p, item, bytes, steps_in_flight(p));
	item.kind = EMBENG_PLAN_GRADIENTS;
	return ret ? ret : add_item(p, item, p->options.buffers ? 0 : bytes, p->training);
}

/* Adds the bytes that belong to no feature: descriptors, alignment, room to grow. */
static int plan_rest(struct planner *p, enum embeng_plan_kind kind, uint64_t need, uint64_t copies)
{
	struct embeng_plan_item item = {.kind = kind, .table = -1, .feature = -1};
	uint64_t bytes = layout_region(need);

	for (size_t f = 0; f < p->model->feature_count; f++)
		bytes -= kind == EMBENG_PLAN_INPUT			       ? copied_bytes(p, f)
			 : kind == EMBENG_PLAN_GRADIENTS && p->options.buffers ? 0
									       : 4 * p->elements[f];
	return add_item(p, item, bytes, copies);
}

static int plan_buffers(struct planner *p, uint64_t outputs)
{
	const struct embeng_plan_item rows = {.kind = EMBENG_PLAN_ROWS, .table = -1, .feature = -1};
	size_t features = p->model->feature_count;
	uint64_t staging = layout_staging_of(0, 0), update = layout_update_head(p->model);
	int ret;

	for (size_t t = 0; t < p->model->table_count; t++) {
		const struct table *table = &p->model->tables[t];
		uint64_t bytes = layout_staging_of(4 * (uint64_t)table->dim + STAGING_NUMBERS,
						   (uint64_t)table->rows);

		staging = bytes > staging ? bytes : staging;
	}
	ret = plan_rest(p, EMBENG_PLAN_INPUT, layout_input(p->arrays, features),
			steps_in_flight(p));
	ret = ret ? ret : plan_rest(p, EMBENG_PLAN_ACTIVATIONS, outputs, steps_in_flight(p));
	ret = ret ? ret
		  : plan_rest(p, EMBENG_PLAN_GRADIENTS,
			      p->options.buffers ? update : update + outputs, p->training);
	return ret ? ret : add_item(p, rows, layout_region(staging), 1);
}

static int ask_engine(struct planner *p, u64 *bytes)
{
	struct plan_engine question = {
		.inputs = p->inputs,
		.cores = p->options.cores,
		.step_depth = p->options.step_depth,
		.training = p->training,
		.inference = p->serving,
	};
	size_t length;
	void *blob;
	int ret = embeng_model_blob(p->model, &blob, &length);

	if (ret)
		return ret;
	question.blob = blob;
	question.length = length;
	if (plan_memory(&question, p->engine, bytes))
		ret = fail(-ENOTSUP, "the engine of this build does not take this model, or has no "
				     "memory to read it");
	free(blob);
	if (!ret && *bytes == UINT64_MAX)
		ret = fail(-ERANGE,
			   "a step has more ids than the engine sorts; plan a smaller batch");
	return ret;
}

/* The engine's own that is no feature's. */
static int plan_engine_rest(struct planner *p, uint64_t bytes)
{
	const struct embeng_plan_item item = {
		.kind = EMBENG_PLAN_ENGINE, .table = -1, .feature = -1};

	for (size_t f = 0; f < p->model->feature_count; f++)
		bytes -= p->engine[f];
	return add_item(p, item, bytes, 1);
}

static int plan_all(struct planner *p)
{
	uint64_t outputs;
	u64 engine;
	int ret = 0;

	for (size_t t = 0; !ret && t < p->model->table_count; t++)
		ret = plan_table(p, (int)t);
	for (size_t f = 0; !ret && f < p->model->feature_count; f++) {
		ret = suppose_feature(p->model, &p->options, f, &p->outputs[f], &p->inputs[f]);
		if (!ret)
			suppose_arrays(p, f);
	}
	ret = ret ? ret : layout_outputs(p->model, p->outputs, p->at, p->elements, &outputs);
	ret = ret ? ret : ask_engine(p, &engine);
	for (size_t f = 0; !ret && f < p->model->feature_count; f++)
		ret = plan_feature(p, f);
	ret = ret ? ret : plan_engine_rest(p, engine);
	return ret ? ret : plan_buffers(p, outputs);
}

static void suppose_flight(struct planner *p)
{
	const struct embeng_model *m = p->model;
	uint64_t slots = ((uint64_t)p->options.step_depth + 1) * m->engine.replicas;
	bool trains = model_trains(m);

	p->training = trains ? slots : 0;
	p->serving = p->options.inference || !trains ? slots : 0;
}

static int allocate_plan(struct planner *p)
{
	size_t n = p->model->feature_count + 1, items = 4 * n + 1;

	for (size_t t = 0; t < p->model->table_count; t++)
		items += 1 + p->model->tables[t].slot_count;
	p->outputs = calloc(n, sizeof(*p->outputs));
	p->inputs = calloc(n, sizeof(*p->inputs));
	p->arrays = calloc(ARRAYS * n, sizeof(*p->arrays));
	p->at = calloc(2 * n, sizeof(*p->at));
	p->engine = calloc(n, sizeof(*p->engine));
	p->plan = calloc(1, sizeof(*p->plan));
	if (p->plan)
		p->plan->items = calloc(items, sizeof(*p->plan->items));
	if (!p->outputs || !p->inputs || !p->arrays || !p->at || !p->engine || !p->plan ||
	    !p->plan->items)
		return fail(-ENOMEM, "no memory for a plan");
	p->elements = p->at + n;
	return 0;
}

int embeng_model_plan(const struct embeng_model *model, const struct embeng_plan_options *options,
		      struct embeng_plan **plan)
{
	struct planner p = {.model = model};
	int ret;

	if (!model || !plan)
		return fail(-EINVAL, "embeng_model_plan: the model and plan must be given");
	ret = suppose_options(model, options, &p.options);
	if (ret)
		return ret;
	suppose_flight(&p);
	ret = allocate_plan(&p);
	ret = ret ? ret : plan_all(&p);
	free(p.outputs);
	free(p.inputs);
	free(p.arrays);
	free(p.at);
	free(p.engine);
	if (ret)
		embeng_plan_free(p.plan);
	else
		*plan = p.plan;
	return ret;
}

void embeng_plan_free(struct embeng_plan *plan)
{
	if (!plan)
		return;
	free(plan->items);
	free(plan);
}
