/* SPDX-License-Identifier: MIT */
/*
 * Random models through raw commands, bit for bit against tests/unit/engine/reference.h:
 * activations, tables and slots, for core counts, kernel variants, replicas,
 * optimizers with all their options, policies and pipelining.
 */
#include <stdio.h>
#include <string.h>

#include "direct.h"
#include "random_table.h"
#include "suite.h"
#include "variants.h"

#define MODELS 100 /* for each variant */
#define TABLES 4
#define FEATURES 5
#define REPLICAS 3
#define PARTS (FEATURES * REPLICAS)

struct random_model {
	struct direct *d;
	struct drawing draw;
	int tables, features, replicas, steps;
	bool pipelining, same_bits;
	struct ref_table table[TABLES];
	u32 table_of[FEATURES], length[FEATURES];
	struct ref_batch batch[2][PARTS]; /* those of this step and of the one before */
	float *gradients[PARTS];
	float *activations[FEATURES];
	u64 hash;
};

static u32 draw(struct random_model *m, u32 below)
{
	return draw_below(&m->draw, below);
}

static float draw_float(struct random_model *m)
{
	return draw_gradient(&m->draw);
}

/* One table in three or so is quantized, with limits that some weights exceed. */
static void draw_quantization(struct random_model *m, int t, struct direct_blob *b)
{
	struct embeng_record_quantization r = {.table = (u32)t};
	struct ref_table *table = &m->table[t];

	table->buckets = draw(m, 3) ? 0 : draw(m, 4) ? 2 + draw(m, 300) : 1u << 30;
	if (!table->buckets)
		return;
	table->lower = draw_float(m);
	table->upper = table->lower + 0.001f + fabsf(draw_float(m));
	r.num_buckets = (u32)table->buckets;
	r.lower = bits_of(table->lower);
	r.upper = bits_of(table->upper);
	blob_record(b, EMBENG_RECORD_QUANTIZATION, &r, sizeof(r));
}

static void draw_model(struct random_model *m)
{
	struct direct_blob *b = calloc(1, sizeof(*b));
	struct embeng_record_engine e = {.rate_count = 1};
	struct embeng_record_table records[TABLES];
	struct embeng_record rate = {0};

	e.table_count = m->tables = 1 + draw(m, TABLES);
	e.feature_count = m->features = 1 + draw(m, FEATURES);
	e.replicas = m->replicas = 1 + draw(m, REPLICAS);
	m->pipelining = draw(m, 2);
	e.flags = m->pipelining ? EMBENG_ENGINE_PIPELINING : 0;
	blob_record(b, EMBENG_RECORD_ENGINE, &e, sizeof(e));
	for (int t = 0; t < m->tables; t++) {
		draw_table(&m->draw, &m->table[t], &records[t]);
		blob_record(b, EMBENG_RECORD_TABLE, &records[t], sizeof(records[t]));
	}
	for (int t = 0; t < m->tables; t++)
		draw_quantization(m, t, b);
	for (int f = 0; f < m->features; f++) {
		struct embeng_record_feature r = {.table = draw(m, m->tables)};

		r.max_sequence_length = draw(m, 4) ? 0 : 1 + draw(m, 4);
		m->table_of[f] = r.table;
		m->length[f] = r.max_sequence_length;
		blob_record(b, EMBENG_RECORD_FEATURE, &r, sizeof(r));
	}
	blob_record(b, EMBENG_RECORD_RATE, &rate, sizeof(rate));
	blob_seal(b);
	m->hash = b->header.hash;
	ck_assert_uint_eq(direct_load(m->d, b), 0);
	free(b);
}

static void fill_tables(struct random_model *m)
{
	for (int t = 0; t < m->tables; t++) {
		struct command *command = direct_command(&m->d->transfer, EMBENG_OP_ROWS_WRITE);
		struct embeng_rows *rows = direct_memory(m->d, sizeof(*rows), &command->cmd.desc);
		struct ref_table *table = &m->table[t];
		u64 count = table->rows * table->dim;

		rows->table = t;
		rows->count = table->rows;
		for (u64 i = 0; i < count; i++)
			table->weights[i] = draw_float(m);
		memcpy(direct_memory(m->d, count * 4, &rows->data), table->weights, count * 4);
		ck_assert_uint_eq(direct_do(m->d, command), 0);
	}
}

static s64 draw_id(struct random_model *m, const struct ref_table *t)
{
	if (t->policy && !draw(m, 10))
		return draw(m, 2) ? -1 - (s64)draw(m, 5) : t->rows + (s64)draw(m, 5);
	return draw(m, 3) ? draw(m, (u32)t->rows) : 0;
}

static void put_number(void *to, u64 at, u32 width, s64 value)
{
	s32 narrow = (s32)value;

	memcpy((u8 *)to + at * width, width == 8 ? (void *)&value : (void *)&narrow, width);
}

/* Writes one feature's input where the engine reads it, and resolves it here. */
static void draw_input(struct random_model *m, int f, struct embeng_lookup_feature *g,
		       struct ref_batch *batch)
{
	const struct ref_table *t = &m->table[m->table_of[f]];
	bool dense = !draw(m, 5), hot = !draw(m, 40), pooled = !dense && !draw(m, 4);
	int length = dense || pooled ? 0 : m->length[f];
	u32 samples = draw(m, 12), most = hot ? 900 : 5;
	int64_t *offsets = calloc(samples + 1, 8), *ids;
	float *weights = NULL;
	void *to;

	for (u32 s = 0; s < samples; s++)
		offsets[s + 1] = offsets[s] + (dense ? 1 : draw(m, 4) ? (s64)draw(m, most + 1) : 0);
	ids = calloc(offsets[samples] + 1, 8);
	*g = (struct embeng_lookup_feature){.feature = f,
					    .form = dense    ? EMBENG_FORM_DENSE
						    : pooled ? EMBENG_FORM_POOLED
							     : EMBENG_FORM_CSR,
					    .id_count = offsets[samples],
					    .sample_count = samples,
					    .id_width = draw(m, 2) ? 4 : 8,
					    .offset_width = dense	 ? 0
							    : draw(m, 2) ? 4
									 : 8};
	to = direct_memory(m->d, g->id_count * g->id_width, &g->ids);
	for (u64 i = 0; i < g->id_count; i++) {
		ids[i] = draw_id(m, t);
		put_number(to, i, g->id_width, ids[i]);
	}
	if (!dense) {
		to = direct_memory(m->d, (samples + 1) * g->offset_width, &g->offsets);
		for (u32 s = 0; s <= samples; s++)
			put_number(to, s, g->offset_width, offsets[s]);
	}
	if (!dense && !length && draw(m, 2)) {
		weights = direct_memory(m->d, g->id_count * 4, &g->weights);
		for (u64 i = 0; i < g->id_count; i++)
			weights[i] = draw(m, 6) ? draw_float(m) : 0.0f;
	}
	batch->table = m->table_of[f];
	batch->length = length;
	ref_resolve(batch, t, samples, offsets, ids, weights);
	m->activations[f] = direct_memory(m->d, (u64)batch->outputs * t->dim * 4, &g->activations);
	memset(m->activations[f], 0xff, (u64)batch->outputs * t->dim * 4);
	free(offsets);
	free(ids);
}

static void same(const float *got, const float *expected, u64 count, const char *what, int which)
{
	for (u64 i = 0; i < count; i++) {
		if (isnan(got[i]) && isnan(expected[i]))
			continue;
		ck_assert_msg(bits_of(got[i]) == bits_of(expected[i]),
			      "%s %d, element %llu: %a instead of %a", what, which,
			      (unsigned long long)i, got[i], expected[i]);
	}
}

static void lookup(struct random_model *m, int replica, u64 step, struct ref_batch *batches)
{
	struct command *command = direct_command(&m->d->input[replica], EMBENG_OP_LOOKUP);
	u64 bytes = sizeof(struct embeng_lookup) +
		    m->features * sizeof(struct embeng_lookup_feature);
	struct embeng_lookup *header = direct_memory(m->d, bytes, &command->cmd.desc);
	struct embeng_lookup_feature *given = (struct embeng_lookup_feature *)(header + 1);

	command->cmd.step = step;
	header->feature_count = m->features;
	header->feature_stride = sizeof(*given);
	header->model_hash = m->hash;
	for (int f = 0; f < m->features; f++)
		draw_input(m, f, &given[f], &batches[replica * m->features + f]);
	ck_assert_uint_eq(direct_do(m->d, command), 0);
	for (int f = 0; f < m->features; f++) {
		const struct ref_batch *batch = &batches[replica * m->features + f];
		const struct ref_table *t = &m->table[batch->table];
		float *expected = malloc((u64)(batch->outputs + 1) * t->dim * 4);

		ref_lookup(batch, t, expected);
		same(m->activations[f], expected, (u64)batch->outputs * t->dim, "activations of",
		     f);
		free(expected);
	}
}

static struct command *update(struct random_model *m, int replica, u64 step, float rate,
			      float multiplier)
{
	struct command *command = direct_command(&m->d->gradient[replica], EMBENG_OP_UPDATE);
	u64 bytes = sizeof(struct embeng_update) +
		    m->features * sizeof(struct embeng_update_feature);
	struct embeng_update *header = direct_memory(m->d, bytes, &command->cmd.desc);
	struct embeng_update_feature *given = (struct embeng_update_feature *)(header + 1);

	command->cmd.step = step;
	header->feature_count = m->features;
	header->feature_stride = sizeof(*given);
	header->rate_count = 1;
	header->model_hash = m->hash;
	header->flags = EMBENG_UPDATE_MULTIPLIER;
	header->multiplier = bits_of(multiplier);
	*(float *)direct_memory(m->d, 4, &header->rates) = rate;
	for (int f = 0; f < m->features; f++) {
		int part = replica * m->features + f;
		const struct ref_batch *batch = &m->batch[step % 2][part];
		u64 count = (u64)batch->outputs * m->table[batch->table].dim;

		given[f].feature = f;
		m->gradients[part] = NULL;
		if (!draw(m, 6))
			continue;
		m->gradients[part] = direct_memory(m->d, count * 4, &given[f].gradients);
		for (u64 i = 0; i < count; i++)
			m->gradients[part][i] = draw_float(m);
	}
	ck_assert_int_eq(direct_submit(m->d, command), VERDICT_READY);
	return command;
}

static void reference_update(struct random_model *m, u64 step, float rate, float multiplier)
{
	for (int t = 0; t < m->tables; t++) {
		struct ref_table *table = &m->table[t];

		for (int64_t row = 0; row < table->rows; row++) {
			for (int c = 0; c < table->dim; c++)
				ref_update_float(table, t, row, c, m->batch[step % 2], m->gradients,
						 m->replicas, m->features,
						 table->dynamic ? rate : table->rate, multiplier,
						 step);
		}
	}
	for (int i = 0; i < m->replicas * m->features; i++)
		ref_release(&m->batch[step % 2][i]);
}

static void compare_tables(const struct random_model *m)
{
	for (int t = 0; t < m->tables; t++) {
		const struct ref_table *table = &m->table[t];
		const struct table *got = &m->d->context.model->tables[t];

		same((float *)got->data, table->weights, table->rows * table->dim, "table", t);
		for (u32 s = 0; s < got->record.slot_count; s++)
			same((float *)got->slots[s], table->slot[s], table->rows * table->dim,
			     "slot of", t);
	}
}

/* Updates wait for the next lookup with pipelining, and the last one for a drain. */
static void train(struct random_model *m)
{
	struct command *pending[REPLICAS] = {NULL};
	float rate = 0, multiplier = 0;

	for (u64 step = 1; step <= (u64)m->steps + 1; step++) {
		bool last = step == (u64)m->steps + 1;

		for (int r = 0; r < m->replicas && !last; r++)
			lookup(m, r, step, m->batch[step % 2]);
		if (last && m->pipelining) {
			struct command *drain = direct_command(&m->d->transfer, EMBENG_OP_DRAIN);

			drain->cmd.step = m->steps;
			ck_assert_uint_eq(direct_do(m->d, drain), 0);
		}
		for (int r = 0; r < m->replicas && pending[r]; r++)
			ck_assert_int_eq(direct_try(m->d, pending[r]), VERDICT_READY);
		if (pending[0])
			reference_update(m, step - 1, rate, multiplier);
		compare_tables(m);
		for (int r = 0; r < m->replicas; r++) {
			free(pending[r]);
			pending[r] = NULL;
		}
		if (last)
			return;
		rate = 0.02f + draw(m, 50) / 97.0f;
		multiplier = draw(m, 2) ? 1.0f : 0.75f;
		for (int r = 0; r < m->replicas; r++) {
			if (r)
				ck_assert_int_eq(direct_try(m->d, pending[r - 1]), VERDICT_WAIT);
			pending[r] = update(m, r, step, rate, multiplier);
		}
		if (m->pipelining) {
			ck_assert_int_eq(direct_try(m->d, pending[0]), VERDICT_WAIT);
			ck_assert_uint_eq(m->d->wait.what, EMBENG_WAIT_LOOKUP);
			ck_assert_uint_eq(m->d->wait.step, step + 1);
			continue;
		}
		for (int r = 0; r < m->replicas; r++) {
			ck_assert_int_eq(direct_try(m->d, pending[r]), VERDICT_READY);
			free(pending[r]);
			pending[r] = NULL;
		}
		reference_update(m, step, rate, multiplier);
		compare_tables(m);
	}
}

START_TEST(test_random_model)
{
	static const u32 cores[] = {1, 2, 3, 4, 7};
	const char *variant = kernel_variant(_i / MODELS);
	struct random_model m = {.draw = {1000 + _i}};

	printf("seed %d, %s\n", 1000 + _i, variant);
	m.d = direct_new(cores[_i % 5], variant);
	m.steps = 1 + draw(&m, 4);
	draw_model(&m);
	fill_tables(&m);
	train(&m);
	for (int t = 0; t < m.tables; t++)
		free_table(&m.table[t]);
	direct_free(m.d);
}
END_TEST

static void add(TCase *tcase)
{
	add_variant_tests(tcase, test_random_model, MODELS);
}

int main(void)
{
	return suite_main("differential", add);
}
