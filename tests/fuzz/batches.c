// SPDX-License-Identifier: MIT
/*
 * Makes a context with a model, its queues and memory, and descriptors of batches from a fuzzer's
 * bytes.
 */
#include <math.h>

#include "../../engine/lookup/batch.h"
#include "batches.h"

#define SAMPLES 6u
#define IDS 12u

struct embeng_mem session_put(struct session *s, struct fuzz *f, const void *data, u64 bytes)
{
	struct arena *arenas[] = {&s->in, &s->both, &s->out, &s->small};
	u32 which = fuzz_below(f, 32);

	return arena_put(arenas[which < 29 ? 0 : which - 28], data, bytes);
}

static struct embeng_mem out(struct session *s, struct fuzz *f, u64 bytes)
{
	struct arena *arenas[] = {&s->out, &s->both, &s->in, &s->small};
	u32 which = fuzz_below(f, 32);
	struct embeng_mem mem;

	arena_take(arenas[which < 29 ? 0 : which - 28], bytes, &mem);
	return s->ids_only ? (struct embeng_mem){0} : mem;
}

/* Ids near a table's rows, some outside. */
static struct embeng_mem ids(struct session *s, struct fuzz *f, u64 count, u32 width, u64 rows)
{
	u8 data[IDS * 8] = {0};

	for (u64 i = 0; i < count; i++) {
		u64 id = fuzz_near(f, fuzz_below(f, (u32)rows));

		memcpy(data + i * width, &id, width);
	}
	return session_put(s, f, data, count * width);
}

/* @count ids spread over @samples. */
static struct embeng_mem offsets(struct session *s, struct fuzz *f, u64 samples, u64 count,
				 u32 width)
{
	u8 data[(SAMPLES + 1) * 8] = {0};
	u64 at = 0;

	for (u64 i = 1; i <= samples; i++) {
		u64 given;

		at = i == samples ? count : at + fuzz_take(f, 1) % (count - at + 1);
		given = fuzz_near(f, at);
		memcpy(data + i * width, &given, width);
	}
	if (fuzz_rarely(f, 32))
		data[0] = 1;
	return session_put(s, f, data, (samples + 1) * width);
}

static struct embeng_mem floats(struct session *s, struct fuzz *f, u64 count)
{
	static const u32 odd[] = {0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 1, 0x7f7fffff};
	u32 data[SAMPLES * MODEL_SEQUENCE * MODEL_DIM];

	for (u64 i = 0; i < count; i++) {
		u32 byte = fuzz_below(f, 256);

		data[i] = byte > 248 ? odd[byte - 249] : model_bits((float)byte / 64 - 1);
	}
	return session_put(s, f, data, count * 4);
}

/* It has no arrays of its own. */
static void make_partitioned(struct session *s, struct fuzz *f,
			     const struct embeng_record_table *table,
			     struct embeng_lookup_feature *g)
{
	g->form = EMBENG_FORM_PARTITIONED;
	g->id_width = 0;
	g->sample_count = fuzz_below(f, SAMPLES + 1);
	g->activations = out(s, f, g->sample_count * table->dim * 4);
	fuzz_edit(f, g, sizeof(*g), 1);
}

static void make_feature(struct session *s, struct fuzz *f, u32 index, bool stacked,
			 struct embeng_lookup_feature *g)
{
	const struct embeng_record_feature *feature = &s->model.features[index];
	const struct embeng_record_table *table = &s->model.tables[feature->table];
	u64 length = feature->max_sequence_length, outputs;

	*g = (struct embeng_lookup_feature){.feature = index,
					    .form = stacked ? EMBENG_FORM_COO
							    : (u8)fuzz_below(f, 4),
					    .id_width = fuzz_rarely(f, 2) ? 4 : 8};
	if (g->form == EMBENG_FORM_COO) {
		make_partitioned(s, f, table, g);
		return;
	}
	g->sample_count = fuzz_below(f, SAMPLES + 1);
	g->id_count = fuzz_below(f, IDS + 1);
	if (!g->sample_count || g->form == EMBENG_FORM_DENSE)
		g->id_count = g->sample_count;
	g->ids = ids(s, f, g->id_count, g->id_width, table->rows);
	if (g->form != EMBENG_FORM_DENSE) {
		g->offset_width = fuzz_rarely(f, 2) ? 4 : 8;
		g->offsets = offsets(s, f, g->sample_count, g->id_count, g->offset_width);
		if (fuzz_rarely(f, 2))
			g->weights = floats(s, f, g->id_count);
	}
	outputs = g->sample_count * (length && g->form == EMBENG_FORM_CSR ? length : 1);
	g->activations = out(s, f, outputs * table->dim * 4);
	/* No byte says it, so that a corpus of before stays one. */
	if (g->form == EMBENG_FORM_DENSE && g->sample_count % 2)
		g->form = EMBENG_FORM_ROWS;
	if (g->sample_count == 3 && !length && !s->ids_only) {
		g->activation_stride = 4 * (table->dim + (g->id_count & 3));
		g->activations = out(s, f, (outputs - 1) * g->activation_stride + 4 * table->dim);
	}
	fuzz_edit(f, g, sizeof(*g), 1);
}

/* One record behind the other, as many as there are. */
static u64 append(u8 *desc, u64 at, const void *records, u64 bytes)
{
	memcpy(desc + at, records, bytes);
	return at + bytes;
}

struct embeng_mem session_lookup(struct session *s, struct fuzz *f)
{
	struct embeng_lookup_feature features[MODEL_FEATURES] = {0};
	struct session_stacks stacks = {0};
	struct embeng_lookup header = {.feature_count = s->model.engine.feature_count,
				       .feature_stride = sizeof(features[0]),
				       .model_hash = s->hash};
	u8 desc[sizeof(header) + sizeof(features) + sizeof(stacks)];
	bool stacked = s->stacked ? !fuzz_rarely(f, 4) : fuzz_rarely(f, 8);
	u64 at = sizeof(header);

	for (u32 i = 0; i < header.feature_count; i++)
		make_feature(s, f, i, stacked, &features[i]);
	session_stacks(s, f, features, &stacks);
	if (stacks.stack_count) {
		header.stack_count = stacks.stack_count;
		header.stack_stride = sizeof(stacks.stacks[0]);
		header.member_count = stacks.member_count;
		header.member_stride = sizeof(stacks.members[0]);
	}
	fuzz_edit(f, &header, sizeof(header), 1);
	fuzz_edit(f, stacks.stacks, stacks.stack_count * sizeof(stacks.stacks[0]), 1);
	append(desc, 0, &header, sizeof(header));
	at = append(desc, at, features, s->model.engine.feature_count * sizeof(features[0]));
	at = append(desc, at, stacks.stacks, stacks.stack_count * sizeof(stacks.stacks[0]));
	at = append(desc, at, stacks.members, stacks.member_count * sizeof(stacks.members[0]));
	return session_put(s, f, desc, at);
}

/* Gradients as long as the lookup of that step wants them. */
static u64 outputs_of(const struct session *s, u32 replica, u64 step, u32 feature)
{
	struct model *model = s->rig->engine->contexts[0]->model;
	const struct batch *batch;

	if (!model || !model->trains || model->state != MODEL_READY ||
	    replica >= model_replicas(model) || feature >= model->blob.engine.feature_count)
		return 1;
	batch = model_part(model, step, replica)->batch;
	return batch->features[feature].outputs % (SAMPLES * MODEL_SEQUENCE + 1);
}

/* Half of the rates that are not the usual one are no numbers that a model may have. */
static u32 draw_rate(struct fuzz *f)
{
	static const float rare[] = {1, 1, 1, 1, NAN, INFINITY, -INFINITY, -1};
	u64 drawn = fuzz_take(f, 1);

	return model_bits(drawn % 8 == 7 ? rare[drawn / 8 % 8] : 0.5f);
}

struct embeng_mem session_update(struct session *s, struct fuzz *f, u32 replica, u64 step)
{
	u32 features = s->model.engine.feature_count, rates = s->model.engine.rate_count;
	struct {
		struct embeng_update header;
		struct embeng_update_feature features[MODEL_FEATURES];
	} d = {.header = {.feature_count = features,
			  .feature_stride = sizeof(d.features[0]),
			  .rate_count = rates,
			  .model_hash = s->hash}};
	const u32 rate[] = {draw_rate(f), model_bits(0.25f)};

	if (rates)
		d.header.rates = session_put(s, f, rate, rates * sizeof(rate[0]));
	if (fuzz_rarely(f, 8))
		d.header.multiplier = model_bits(2);
	d.header.flags = (u32)fuzz_near(f, d.header.multiplier ? EMBENG_UPDATE_MULTIPLIER : 0);
	for (u32 i = 0; i < features; i++) {
		u32 dim = s->model.tables[s->model.features[i].table].dim;

		d.features[i].feature = (u32)fuzz_near(f, i);
		d.features[i].flags = (u32)fuzz_near(f,
						     fuzz_rarely(f, 4) ? EMBENG_UPDATE_CHECKED : 0);
		if (fuzz_rarely(f, 16))
			d.features[i].flags |= EMBENG_UPDATE_SUMS;
		if (!fuzz_rarely(f, 8))
			d.features[i].gradients = floats(s, f,
							 outputs_of(s, replica, step, i) * dim);
	}
	fuzz_edit(f, &d, sizeof(d.header) + features * sizeof(d.features[0]), 2);
	return session_put(s, f, &d, sizeof(d.header) + features * sizeof(d.features[0]));
}

static void rows_data(struct session *s, struct fuzz *f, u16 opcode, u64 floats_count,
		      struct embeng_rows *rows)
{
	switch (opcode) {
	case EMBENG_OP_ROWS_WRITE:
		rows->data = floats(s, f, floats_count);
		break;
	case EMBENG_OP_ROWS_READ:
		rows->data = out(s, f, floats_count * 4);
		break;
	default:
		rows->fill = fuzz_below(f, 3);
		rows->a = model_bits(0.5f);
		rows->b = model_bits(1.5f);
		rows->seed = fuzz_take(f, 1);
	}
}

struct embeng_mem session_rows(struct session *s, struct fuzz *f, u16 opcode)
{
	u32 index = fuzz_below(f, s->model.engine.table_count);
	const struct embeng_record_table *table = &s->model.tables[index];
	struct embeng_rows rows = {.table = index, .slot = fuzz_below(f, 1u + table->slot_count)};

	rows.count = 1 + fuzz_below(f, (u32)(table->rows < IDS ? table->rows : IDS));
	if (fuzz_rarely(f, 2))
		rows.ids = ids(s, f, rows.count, 8, table->rows);
	else
		rows.first = fuzz_near(f, table->rows - rows.count);
	rows_data(s, f, opcode, rows.count * table->dim, &rows);
	fuzz_edit(f, &rows, sizeof(rows), 1);
	return session_put(s, f, &rows, sizeof(rows));
}
