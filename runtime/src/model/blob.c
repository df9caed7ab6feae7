// SPDX-License-Identifier: MIT
/*
 * Writes a model as the blob that the engine loads, and computes its hash. Values that mean the
 * same are written the same, so that models that behave alike have one hash.
 *
 * The blob belongs to the caller. The model is only read; no lock is needed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../../engine/blob/blob.h"
#include "../../../engine/hash/crc32c.h"
#include "base/bits.h"
#include "base/error.h"
#include "initializer.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are written as they lie");

/* Where records go. Without @bytes they are counted and hashed alone. */
struct sink {
	unsigned char *bytes;
	size_t length;
	uint32_t records;
	uint64_t hash;
};

static void put_record(struct sink *sink, struct embeng_record *record, uint16_t type,
		       size_t length)
{
	record->type = type;
	record->flags = type == EMBENG_RECORD_NAME ? 0 : EMBENG_RECORD_MANDATORY;
	record->length = (uint32_t)length;
	if (record->flags & EMBENG_RECORD_MANDATORY)
		sink->hash = fnv1a(sink->hash, record, length);
	if (sink->bytes)
		memcpy(sink->bytes + sink->length, record, length);
	sink->length += length;
	sink->records++;
}

const char *const model_combiner_words[] = {[EMBENG_MEAN] = "mean",
					    [EMBENG_SUM] = "sum",
					    [EMBENG_SQRTN] = "sqrtn",
					    [EMBENG_MAX] = "max"};

uint8_t model_combiner(enum embeng_combiner_name name)
{
	switch (name) {
	case EMBENG_MEAN:
		return EMBENG_COMBINER_MEAN;
	case EMBENG_SUM:
		return EMBENG_COMBINER_SUM;
	case EMBENG_SQRTN:
		return EMBENG_COMBINER_SQRTN;
	case EMBENG_MAX:
		break;
	}
	return EMBENG_COMBINER_MAX;
}

uint8_t model_policy(enum embeng_policy policy)
{
	switch (policy) {
	case EMBENG_POLICY_ERROR:
		return EMBENG_OUT_OF_RANGE_ERROR;
	case EMBENG_POLICY_CLAMP:
		return EMBENG_OUT_OF_RANGE_CLAMP;
	case EMBENG_POLICY_DROP:
		return EMBENG_OUT_OF_RANGE_DROP;
	case EMBENG_POLICY_ZERO:
		break;
	}
	return EMBENG_OUT_OF_RANGE_ZERO;
}

/* A slot that starts with anything but a number is filled once the model is there. */
static void put_slots(struct embeng_record_table *r, const struct table *t)
{
	r->slot_count = (uint8_t)t->slot_count;
	for (size_t s = 0; s < t->slot_count; s++) {
		struct embeng_initializer start = slot_start(t, s);

		r->slot_start[s] = start.kind == EMBENG_INIT_CONSTANT ? bits(start.a) : 0;
	}
}

static void put_dynamic(struct embeng_record_table *r, const struct table *t)
{
	const struct {
		uint32_t flag, *value;
	} numbers[] = {
		[NUMBER_DECAY] = {EMBENG_TABLE_WEIGHT_DECAY_DYNAMIC, &r->weight_decay},
		[NUMBER_CLIP_MIN] = {EMBENG_TABLE_CLIP_GRADIENT_MIN_DYNAMIC, &r->clip_gradient_min},
		[NUMBER_CLIP_MAX] = {EMBENG_TABLE_CLIP_GRADIENT_MAX_DYNAMIC, &r->clip_gradient_max},
		[NUMBER_CLIP_WEIGHT_MIN] = {EMBENG_TABLE_CLIP_WEIGHT_MIN_DYNAMIC,
					    &r->clip_weight_min},
		[NUMBER_CLIP_WEIGHT_MAX] = {EMBENG_TABLE_CLIP_WEIGHT_MAX_DYNAMIC,
					    &r->clip_weight_max},
		[NUMBER_MAX_NORM] = {EMBENG_TABLE_MAX_NORM_DYNAMIC, &r->max_norm},
	};

	for (size_t i = 0; i < NUMBER_FIRST_KEY; i++) {
		if (t->dynamic[i] < 0)
			continue;
		r->flags |= numbers[i].flag;
		*numbers[i].value = (uint32_t)t->dynamic[i];
	}
}

static void put_hyperparameters(struct embeng_record_table *r, const struct table *t)
{
	const struct embeng_optimizer *o = &t->optimizer;
	const struct optimizer_info *info = optimizer_info(o->kind);
	size_t n = 0;

	for (size_t i = 0; i < info->key_count; i++) {
		/* + 0: both zeros mean the same */
		if (info->keys[i].hyper)
			r->hyperparameter[n++] = bits(optimizer_value(o, &info->keys[i]) + 0.0f);
	}
	for (size_t i = 0; i < n; i++) {
		if (t->dynamic[NUMBER_FIRST_KEY + i] < 0)
			continue;
		r->flags |= EMBENG_TABLE_HYPERPARAMETER_DYNAMIC(i);
		r->hyperparameter[i] = (uint32_t)t->dynamic[NUMBER_FIRST_KEY + i];
	}
	if ((o->kind == EMBENG_ADAM && o->lazy_adam == EMBENG_OFF) ||
	    (o->kind == EMBENG_LION && o->use_non_lazy))
		r->flags |= EMBENG_TABLE_NON_LAZY;
}

/* Settings that mean the same are written the same, for the hash: decay 0 has no mode. */
static void put_optimizer(struct embeng_record_table *r, const struct table *t)
{
	const struct embeng_optimizer *o = &t->optimizer;

	r->optimizer = optimizer_info(o->kind)->engine_kind;
	r->clip_gradient_min = bits(o->has_clip_min ? o->clip_min : -INFINITY);
	r->clip_gradient_max = bits(o->has_clip_max ? o->clip_max : INFINITY);
	r->clip_weight_min = bits(o->has_clip_weight_min ? o->clip_weight_min : -INFINITY);
	r->clip_weight_max = bits(o->has_clip_weight_max ? o->clip_weight_max : INFINITY);
	if (o->use_gradient_accumulation == EMBENG_ON)
		r->flags |= EMBENG_TABLE_ACCUMULATE;
	if (t->rate >= 0)
		r->flags |= EMBENG_TABLE_RATE_DYNAMIC;
	if (t->step_rate >= 0) {
		r->flags |= EMBENG_TABLE_STEP_DYNAMIC;
		r->step_rate = (uint32_t)t->step_rate;
	}
	r->rate = t->rate >= 0 ? (uint32_t)t->rate : bits(o->learning_rate);
	if (o->weight_decay_factor > 0.0f || t->dynamic[NUMBER_DECAY] >= 0) {
		r->weight_decay = bits(o->weight_decay_factor);
		if (o->multiply_weight_decay_by_rate)
			r->flags |= EMBENG_TABLE_DECAY_BY_RATE;
		if (o->weight_decay_in_gradient)
			r->flags |= EMBENG_TABLE_DECAY_GRADIENT;
	}
	if (o->scale_by_frequency)
		r->flags |= EMBENG_TABLE_BY_FREQUENCY;
	r->max_norm = bits(o->max_norm + 0.0f);
	put_dynamic(r, t);
	put_slots(r, t);
	put_hyperparameters(r, t);
}

static void put_table(struct sink *sink, const struct table *t)
{
	struct embeng_record_table r = {
		.rows = (uint64_t)t->rows,
		.dim = (uint32_t)t->dim,
		.combiner = model_combiner(t->combiner),
		.out_of_range = model_policy(t->policy),
	};

	put_optimizer(&r, t);
	put_record(sink, &r.head, EMBENG_RECORD_TABLE, sizeof(r));
}

/* Both zeros mean the same here, too. */
static void put_quantization(struct sink *sink, size_t index, const struct embeng_quantization *q)
{
	struct embeng_record_quantization r = {
		.table = (uint32_t)index,
		.num_buckets = (uint32_t)q->num_buckets,
		.lower = bits(q->lower + 0.0f),
		.upper = bits(q->upper + 0.0f),
	};

	if (q->num_buckets)
		put_record(sink, &r.head, EMBENG_RECORD_QUANTIZATION, sizeof(r));
}

static void put_shard(struct sink *sink, size_t index, const struct embeng_table_part *p)
{
	struct embeng_record_shard r = {
		.table = (uint32_t)index,
		.first_column = (uint32_t)p->first_column,
		.whole_rows = (uint64_t)p->rows,
		.first_row = (uint64_t)p->first_row,
		.row_step = (uint64_t)p->row_step,
		.whole_dim = (uint32_t)p->dim,
	};

	if (p->rows)
		put_record(sink, &r.head, EMBENG_RECORD_SHARD, sizeof(r));
}

static void put_feature(struct sink *sink, const struct feature *f)
{
	struct embeng_record_feature r = {
		.table = (uint32_t)f->table,
		.flags = f->check_weights ? EMBENG_FEATURE_FINITE_WEIGHTS : 0,
		.max_sequence_length = (uint32_t)f->max_sequence_length,
		.max_samples = f->max_samples,
		.max_ids = f->max_ids,
	};

	put_record(sink, &r.head, EMBENG_RECORD_FEATURE, sizeof(r));
}

static uint32_t engine_flags(const struct embeng_engine_config *c)
{
	uint32_t flags = c->pipelining ? EMBENG_ENGINE_PIPELINING : 0;

	if (c->non_finite == EMBENG_NON_FINITE_DROP)
		flags |= EMBENG_ENGINE_GRADIENTS_DROP;
	if (c->non_finite == EMBENG_NON_FINITE_ALLOW)
		flags |= EMBENG_ENGINE_GRADIENTS_ALLOW;
	return flags;
}

static void put_engine(struct sink *sink, const struct embeng_model *model)
{
	struct embeng_record_engine r = {
		.replicas = model->engine.replicas,
		.flags = engine_flags(&model->engine),
		.table_count = (uint32_t)model->table_count,
		.feature_count = (uint32_t)model->feature_count,
		.rate_count = (uint32_t)model->rate_count,
		.step_depth = model->engine.step_depth,
	};

	put_record(sink, &r.head, EMBENG_RECORD_ENGINE, sizeof(r));
}

static void put_name(struct sink *sink, uint32_t of, size_t index, const char *name)
{
	struct embeng_record_name r = {.of = of, .index = (uint32_t)index};

	memcpy(r.name, name, strlen(name));
	put_record(sink, &r.head, EMBENG_RECORD_NAME, sizeof(r));
}

static void put_model(struct sink *sink, const struct embeng_model *model)
{
	put_engine(sink, model);
	for (size_t i = 0; i < model->table_count; i++)
		put_table(sink, &model->tables[i]);
	for (size_t i = 0; i < model->table_count; i++)
		put_quantization(sink, i, &model->tables[i].quantization);
	for (size_t i = 0; i < model->table_count; i++)
		put_shard(sink, i, &model->tables[i].part);
	for (size_t i = 0; i < model->feature_count; i++)
		put_feature(sink, &model->features[i]);
	for (size_t i = 0; i < model->rate_count; i++) {
		struct embeng_record r = {0};

		put_record(sink, &r, EMBENG_RECORD_RATE, sizeof(r));
	}
	for (size_t i = 0; i < model->table_count; i++)
		put_name(sink, EMBENG_RECORD_TABLE, i, model->tables[i].name);
	for (size_t i = 0; i < model->feature_count; i++)
		put_name(sink, EMBENG_RECORD_FEATURE, i, model->features[i].name);
	for (size_t i = 0; i < model->rate_count; i++)
		put_name(sink, EMBENG_RECORD_RATE, i, model->rates[i]);
}

static struct sink sink_at(unsigned char *bytes)
{
	return (struct sink){
		.bytes = bytes, .length = sizeof(struct embeng_blob_header), .hash = FNV1A_START};
}

uint64_t embeng_model_hash(const struct embeng_model *model)
{
	struct sink sink = sink_at(NULL);

	if (!model)
		return 0;
	put_model(&sink, model);
	return sink.hash;
}

int embeng_model_blob(const struct embeng_model *model, void **bytes, size_t *length)
{
	struct embeng_blob_header header = {.magic = EMBENG_BLOB_MAGIC,
					    .version = EMBENG_BLOB_VERSION};
	struct sink sink = sink_at(NULL);
	unsigned char *blob;

	if (!model || !bytes || !length)
		return fail(-EINVAL,
			    "embeng_model_blob: the model, bytes and length must be given");
	put_model(&sink, model);
	blob = malloc(sink.length);
	if (!blob)
		return fail(-ENOMEM, "no memory for a model blob of %zu bytes", sink.length);
	sink = sink_at(blob);
	put_model(&sink, model);
	header.length = sink.length;
	header.record_count = sink.records;
	header.hash = sink.hash;
	memcpy(blob, &header, sizeof(header));
	header.crc32c = crc32c(0, blob, sink.length);
	memcpy(blob, &header, sizeof(header));
	*bytes = blob;
	*length = sink.length;
	return 0;
}
