/* SPDX-License-Identifier: MIT */
/*
 * A row that is asked for so often that it is updated in pieces: its gradient is summed by
 * runs of 256 occurrences within each replica all the same.
 */
#include <stdio.h>
#include <string.h>

#include "direct.h"
#include "engine/update/lane.h"
#include "random_table.h"
#include "suite.h"
#include "variants.h"

#define ROWS 5
#define HOT 2
#define SAMPLES 300
#define BAG 70u	    /* ids of a sample, nearly all of them hot */
#define SINGLES 701 /* ids of the second feature, all hot */
#define FEATURES 2
#define REPLICAS 3

struct hot_case {
	int dim, replicas;
	bool accumulate;
	enum ref_optimizer optimizer;
};

/* The same for each variant and core count. */
struct inputs {
	struct hot_case is;
	struct drawing state;
	u64 counts[FEATURES * REPLICAS], samples[FEATURES * REPLICAS];
	int64_t *offsets[FEATURES * REPLICAS], *ids[FEATURES * REPLICAS];
	float *weights[FEATURES * REPLICAS], *gradients[FEATURES * REPLICAS];
	struct ref_batch batch[FEATURES * REPLICAS];
	struct ref_table table;
};

static u32 draw(struct inputs *in, u32 below)
{
	return draw_below(&in->state, below);
}

/* Part 0 of a replica: weighted bags; part 1: single ids. One gradient is not given. */
static void draw_part(struct inputs *in, int part)
{
	bool bags = part % FEATURES == 0;
	u64 samples = bags ? SAMPLES : SINGLES, floats = samples * in->is.dim, count = 0;
	int64_t *offsets = calloc(samples + 1, 8), *ids = calloc(samples * BAG, 8);
	float *weights = bags ? calloc(samples * BAG, 4) : NULL;

	for (u64 s = 0; s < samples; s++) {
		u64 end = count + (bags ? BAG + draw(in, 4) - 3 : 1);

		for (; count < end; count++) {
			ids[count] = !bags || draw(in, 90) ? HOT : draw(in, ROWS);
			if (bags)
				weights[count] = draw_gradient(&in->state);
		}
		offsets[s + 1] = count;
	}
	if (part != FEATURES + 1) {
		in->gradients[part] = malloc(floats * 4);
		for (u64 i = 0; i < floats; i++)
			in->gradients[part][i] = draw_gradient(&in->state);
	}
	in->counts[part] = count;
	in->samples[part] = samples;
	in->offsets[part] = offsets;
	in->ids[part] = ids;
	in->weights[part] = weights;
	ref_resolve(&in->batch[part], &in->table, samples, offsets, ids, weights);
}

static void draw_inputs(struct inputs *in)
{
	struct ref_table *t = &in->table;
	u64 floats = (u64)ROWS * in->is.dim;

	*t = (struct ref_table){.rows = ROWS,
				.dim = in->is.dim,
				.combiner = 1,
				.optimizer = in->is.optimizer,
				.accumulate = in->is.accumulate,
				.rate = 0.125f,
				.gradient_min = -INFINITY,
				.gradient_max = INFINITY,
				.weight_min = -INFINITY,
				.weight_max = INFINITY};
	for (int i = 0; i < 5; i++)
		t->hyper[i] = random_optimizers[t->optimizer].hyper[i][1];
	make_table(t);
	for (u64 i = 0; i < floats; i++)
		t->weights[i] = draw_gradient(&in->state);
	for (int part = 0; part < FEATURES * in->is.replicas; part++)
		draw_part(in, part);
}

static void free_inputs(struct inputs *in)
{
	for (int part = 0; part < FEATURES * in->is.replicas; part++) {
		ref_release(&in->batch[part]);
		free(in->offsets[part]);
		free(in->ids[part]);
		free(in->weights[part]);
		free(in->gradients[part]);
	}
	free_table(&in->table);
}

static struct direct *open_model(const struct inputs *in, u32 cores, const char *variant)
{
	struct embeng_record_engine e = {
		.replicas = in->is.replicas, .table_count = 1, .feature_count = FEATURES};
	struct embeng_record_table t = table_record(&in->table);
	struct embeng_record_feature f = {.table = 0};
	struct direct_blob *b = calloc(1, sizeof(*b));
	struct direct *d = direct_new(cores, variant);

	blob_record(b, EMBENG_RECORD_ENGINE, &e, sizeof(e));
	blob_record(b, EMBENG_RECORD_TABLE, &t, sizeof(t));
	for (int i = 0; i < FEATURES; i++)
		blob_record(b, EMBENG_RECORD_FEATURE, &f, sizeof(f));
	blob_seal(b);
	ck_assert_uint_eq(direct_load(d, b), 0);
	free(b);
	memcpy(d->context.model->tables[0].data, in->table.weights, (u64)ROWS * in->is.dim * 4);
	return d;
}

static void put(struct direct *d, const void *data, u64 bytes, struct embeng_mem *mem)
{
	memcpy(direct_memory(d, bytes, mem), data, bytes);
}

static void look(struct direct *d, const struct inputs *in, int replica)
{
	struct command *command = direct_command(&d->input[replica], EMBENG_OP_LOOKUP);
	struct embeng_lookup_feature *f;
	struct embeng_lookup *header;

	command->cmd.step = 1;
	header = direct_memory(d, sizeof(*header) + FEATURES * sizeof(*f), &command->cmd.desc);
	f = (struct embeng_lookup_feature *)(header + 1);
	*header = (struct embeng_lookup){.feature_count = FEATURES,
					 .feature_stride = sizeof(*f),
					 .model_hash = d->context.model->blob.hash};
	for (int i = 0; i < FEATURES; i++) {
		int part = replica * FEATURES + i;
		u64 samples = in->samples[part], count = in->counts[part];

		f[i] = (struct embeng_lookup_feature){.feature = i,
						      .id_width = 8,
						      .form = i ? EMBENG_FORM_DENSE
								: EMBENG_FORM_CSR,
						      .offset_width = i ? 0 : 8,
						      .sample_count = samples,
						      .id_count = count};
		put(d, in->ids[part], count * 8, &f[i].ids);
		if (!i) {
			put(d, in->offsets[part], (samples + 1) * 8, &f[i].offsets);
			put(d, in->weights[part], count * 4, &f[i].weights);
		}
		direct_memory(d, samples * in->is.dim * 4, &f[i].activations);
	}
	ck_assert_uint_eq(direct_do(d, command), 0);
}

static struct command *update(struct direct *d, const struct inputs *in, int replica)
{
	struct command *command = direct_command(&d->gradient[replica], EMBENG_OP_UPDATE);
	struct embeng_update_feature *f;
	struct embeng_update *header;

	command->cmd.step = 1;
	header = direct_memory(d, sizeof(*header) + FEATURES * sizeof(*f), &command->cmd.desc);
	f = (struct embeng_update_feature *)(header + 1);
	*header = (struct embeng_update){.feature_count = FEATURES,
					 .feature_stride = sizeof(*f),
					 .model_hash = d->context.model->blob.hash};
	for (int i = 0; i < FEATURES; i++) {
		int part = replica * FEATURES + i;

		f[i].feature = i;
		if (in->gradients[part])
			put(d, in->gradients[part], in->samples[part] * in->is.dim * 4,
			    &f[i].gradients);
	}
	ck_assert_int_eq(direct_submit(d, command), VERDICT_READY);
	return command;
}

static void reference(struct inputs *in)
{
	for (int row = 0; row < ROWS; row++) {
		for (int c = 0; c < in->is.dim; c++)
			ref_update_float(&in->table, 0, row, c, in->batch, in->gradients,
					 in->is.replicas, FEATURES, in->table.rate, 1.0f, 1);
	}
}

static void same(const u32 *got, const float *expected, u64 count, const char *what)
{
	for (u64 i = 0; i < count; i++)
		ck_assert_msg(got[i] == bits_of(expected[i]), "%s, element %llu: %#x, not %a", what,
			      (unsigned long long)i, got[i], (double)expected[i]);
}

/* The tables after one step of the engine are those of @after. */
static void train(const struct inputs *in, const struct ref_table *after, u32 cores,
		  const char *variant)
{
	struct direct *d = open_model(in, cores, variant);
	const struct table *table = &d->context.model->tables[0];
	struct command *updates[REPLICAS];
	u64 floats = (u64)ROWS * in->is.dim;

	for (int r = 0; r < in->is.replicas; r++)
		look(d, in, r);
	for (int r = 0; r < in->is.replicas; r++)
		updates[r] = update(d, in, r);
	for (int r = 0; r < in->is.replicas; r++)
		ck_assert_int_eq(direct_try(d, updates[r]), VERDICT_READY);
	ck_assert_uint_eq(d->context.model->lanes[0].partition.groups[HOT].row, HOT);
	ck_assert_uint_gt(d->context.model->lanes[0].partition.groups[HOT].count, 20000);
	same(table->data, after->weights, floats, "weights");
	for (u32 s = 0; s < table->record.slot_count; s++)
		same(table->slots[s], after->slot[s], floats, "slots");
	for (int r = 0; r < in->is.replicas; r++)
		free(updates[r]);
	direct_free(d);
}

static const struct hot_case cases[] = {
	{1, 1, true, REF_ADAGRAD},   {64, 1, true, REF_SGD},
	{70, 1, true, REF_ADAM},     {1, 3, true, REF_FTRL},
	{64, 3, true, REF_ADAGRAD},  {70, 3, true, REF_ADAGRAD_MOMENTUM},
	{1, 1, false, REF_ADAGRAD},  {64, 1, false, REF_ADAM},
	{70, 1, false, REF_SGD},     {1, 3, false, REF_ADAGRAD_MOMENTUM},
	{64, 3, false, REF_ADAGRAD}, {70, 3, false, REF_FTRL},
};

#define CASES ((int)(sizeof(cases) / sizeof(cases[0])))

START_TEST(test_a_hot_row_in_pieces)
{
	const int which = _i % CASES;
	const char *variant = kernel_variant(_i / CASES);
	struct inputs in = {.is = cases[which], .state = {400 + which}};
	struct ref_table before, after;

	printf("seed %d: dim %d, %d replicas, accumulation %d, optimizer %d\n", 400 + which,
	       in.is.dim, in.is.replicas, in.is.accumulate, in.is.optimizer);
	draw_inputs(&in);
	before = in.table;
	make_table(&in.table);
	memcpy(in.table.weights, before.weights, (u64)ROWS * in.is.dim * 4);
	reference(&in);
	after = in.table;
	in.table = before;
	train(&in, &after, 1, variant);
	train(&in, &after, 3, variant);
	in.table = after;
	free_table(&before);
	free_inputs(&in);
}
END_TEST

static void add(TCase *tcase)
{
	add_variant_tests(tcase, test_a_hot_row_in_pieces, CASES);
}

int main(void)
{
	return suite_main("hot_row", add);
}
