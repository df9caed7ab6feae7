/* SPDX-License-Identifier: MIT */
/*
 * LOOKUP: each rule of its descriptor and offsets is broken once, and small batches are
 * recognized.
 */
#include "engine/lookup/batch.h"
#include "direct_main.h"
#include "direct_model.h"

static const s64 ids[] = {1, 9, 2};

struct expected {
	u16 status;
	u32 field;
	u64 element, value, limit;
};

/* A refused lookup says why, and the same step may be given again. */
static void refused(struct direct *d, struct small_lookup l, struct expected e)
{
	ck_assert_int_eq(direct_submit(d, l.command), VERDICT_FAILED);
	ck_assert_uint_eq(l.command->fault.status, e.status);
	ck_assert_uint_eq(l.command->fault.field, e.field);
	ck_assert_uint_eq(l.command->fault.element, e.element);
	ck_assert_uint_eq(l.command->fault.value, e.value);
	ck_assert_uint_eq(l.command->fault.limit, e.limit);
	ck_assert_uint_eq(d->context.model->replicas[0].accepted, 0);
	free(l.command);
}

START_TEST(test_rows_of_activations_do_not_overlap)
{
	struct small_model m = small_model(10, 2);
	struct direct *d = small_open(&m, 1);
	struct small_lookup l = small_lookup(d, &d->input[0], 1, ids, 3);

	l.feature->activation_stride = 4;
	l.feature->activations.length = 16;
	refused(d, l, (struct expected){EMBENG_STATUS_STRIDE, EMBENG_FIELD_ACTIVATIONS, 0, 4, 8});
	direct_free(d);
}
END_TEST

START_TEST(test_every_rule_of_a_batch)
{
	struct small_model m = small_model(10, 1);
	struct direct *d = small_open(&m, 1);
	s64 outside[] = {1, 10, -3};
	struct small_lookup l;

#define NEW() (l = small_lookup(d, &d->input[0], 1, ids, 3))
	refused(d, small_lookup(d, &d->input[0], 1, outside, 3),
		(struct expected){EMBENG_STATUS_ID, EMBENG_FIELD_IDS, 1, 10, 10});
	refused(d, small_lookup(d, &d->input[0], 1, outside + 2, 1),
		(struct expected){EMBENG_STATUS_ID, EMBENG_FIELD_IDS, 0, (u64)-3, 10});
	NEW().header->model_hash ^= 1;
	refused(d, l,
		(struct expected){EMBENG_STATUS_MODEL_HASH, EMBENG_FIELD_MODEL_HASH, 0,
				  l.header->model_hash, l.header->model_hash ^ 1});
	NEW().header->feature_count = 2;
	refused(d, l,
		(struct expected){EMBENG_STATUS_FEATURE, EMBENG_FIELD_FEATURE_COUNT, 0, 2, 1});
	NEW().header->feature_stride = 120;
	refused(d, l,
		(struct expected){EMBENG_STATUS_STRIDE, EMBENG_FIELD_FEATURE_STRIDE, 0, 120, 128});
	NEW().feature->feature = 1;
	refused(d, l,
		(struct expected){EMBENG_STATUS_FEATURE, EMBENG_FIELD_FEATURE_INDEX, 0, 1, 0});
	NEW().feature->form = 3;
	refused(d, l, (struct expected){EMBENG_STATUS_FORM, EMBENG_FIELD_NONE, 0, 3, 5});
	NEW().feature->form = 6;
	refused(d, l, (struct expected){EMBENG_STATUS_FORM, EMBENG_FIELD_NONE, 0, 6, 5});
	NEW().feature->form = EMBENG_FORM_ROWS;
	d->engine.caps.features &= ~EMBENG_CAP_EXCHANGE;
	refused(d, l, (struct expected){EMBENG_STATUS_FORM, EMBENG_FIELD_NONE, 0, 5, 4});
	d->engine.caps.features |= EMBENG_CAP_EXCHANGE;
	NEW().feature->activation_stride = 6;
	refused(d, l, (struct expected){EMBENG_STATUS_STRIDE, EMBENG_FIELD_ACTIVATIONS, 0, 6, 4});
	NEW().feature->activation_stride = 2;
	refused(d, l, (struct expected){EMBENG_STATUS_STRIDE, EMBENG_FIELD_ACTIVATIONS, 0, 2, 4});
	NEW().feature->activation_stride = 8;
	refused(d, l, (struct expected){EMBENG_STATUS_LENGTH, EMBENG_FIELD_ACTIVATIONS, 0, 12, 20});
	NEW().feature->activation_stride = ~3ull;
	refused(d, l,
		(struct expected){EMBENG_STATUS_LENGTH, EMBENG_FIELD_ACTIVATIONS, 0, 12, ~0ull});
	NEW().feature->id_width = 2;
	refused(d, l, (struct expected){EMBENG_STATUS_WIDTH, EMBENG_FIELD_IDS, 0, 2, 8});
	NEW().feature->id_width = 4;
	refused(d, l, (struct expected){EMBENG_STATUS_LENGTH, EMBENG_FIELD_IDS, 0, 24, 12});
	NEW().feature->sample_count = 4;
	refused(d, l, (struct expected){EMBENG_STATUS_COUNT, EMBENG_FIELD_IDS, 0, 3, 4});
	NEW().feature->activations.length = 8;
	refused(d, l, (struct expected){EMBENG_STATUS_LENGTH, EMBENG_FIELD_ACTIVATIONS, 0, 8, 12});
	NEW();
	l.feature->weights = l.feature->ids;
	refused(d, l, (struct expected){EMBENG_STATUS_FORM, EMBENG_FIELD_WEIGHTS, 0, 0, 0});
	NEW().feature->reserved = 5;
	refused(d, l, (struct expected){EMBENG_STATUS_RESERVED, EMBENG_FIELD_RESERVED, 0, 5, 0});
	ck_assert_uint_eq(direct_do(d, NEW().command), 0);
	direct_free(d);
}
END_TEST

/* Neither weights nor the gains of stacks have a meaning for the largest number of rows. */
START_TEST(test_max_takes_no_weights)
{
	static const u64 offsets[] = {0, 2, 3};
	struct small_model m = small_model(10, 1);
	struct small_lookup l;
	struct direct *d;

	m.table.combiner = EMBENG_COMBINER_MAX;
	d = small_open(&m, 1);
	for (int form = EMBENG_FORM_CSR; form <= EMBENG_FORM_POOLED; form += EMBENG_FORM_POOLED) {
		NEW();
		l.feature->form = (u8)form;
		l.feature->offset_width = 8;
		l.feature->sample_count = 2;
		memcpy(direct_memory(d, sizeof(offsets), &l.feature->offsets), offsets,
		       sizeof(offsets));
		l.feature->activations.length = 8;
		direct_memory(d, 12, &l.feature->weights);
		refused(d, l, (struct expected){EMBENG_STATUS_FORM, EMBENG_FIELD_WEIGHTS, 0, 0, 0});
	}
	NEW();
	*l.feature = (struct embeng_lookup_feature){.form = EMBENG_FORM_PARTITIONED,
						    .sample_count = 3,
						    .activations = l.feature->activations};
	refused(d, l,
		(struct expected){EMBENG_STATUS_FORM, EMBENG_FIELD_GAINS, 0,
				  EMBENG_FORM_PARTITIONED, EMBENG_FORM_POOLED});
	ck_assert_uint_eq(direct_do(d, NEW().command), 0);
	direct_free(d);
}
END_TEST

START_TEST(test_offsets_run_from_zero_to_the_count)
{
	static const s64 bad[][3] = {{1, 2, 3}, {0, 2, 2}, {0, 4, 3}, {0, -1, 3}};
	static const struct expected expected[] = {
		{EMBENG_STATUS_OFFSETS, EMBENG_FIELD_ROW_OFFSETS, 0, 1, 0},
		{EMBENG_STATUS_OFFSETS, EMBENG_FIELD_ROW_OFFSETS, 2, 2, 3},
		{EMBENG_STATUS_OFFSETS, EMBENG_FIELD_ROW_OFFSETS, 1, 4, 3},
		{EMBENG_STATUS_OFFSETS, EMBENG_FIELD_ROW_OFFSETS, 1, (u64)-1, 3},
	};
	struct small_model m = small_model(10, 1);
	struct direct *d = small_open(&m, 1);

	for (u32 i = 0; i < 4; i++) {
		struct small_lookup l = small_lookup(d, &d->input[0], 1, ids, 3);

		l.feature->form = EMBENG_FORM_CSR;
		l.feature->offset_width = 8;
		l.feature->sample_count = 2;
		l.feature->activations.length = 8;
		memcpy(direct_memory(d, 24, &l.feature->offsets), bad[i], 24);
		refused(d, l, expected[i]);
	}
	direct_free(d);
}
END_TEST

/* An update that other replicas take part in does the work of all of them. */
START_TEST(test_bytes_of_commands)
{
	for (u32 replicas = 1; replicas <= 2; replicas++) {
		struct small_model m = small_model(10, 4);
		struct command *update, *state;
		struct small_lookup l;
		struct direct *d;
		u64 bytes;

		m.engine.replicas = replicas;
		d = small_open(&m, 1);
		l = small_lookup(d, &d->input[0], 1, ids, 3);
		ck_assert_int_eq(direct_submit(d, l.command), VERDICT_READY);
		bytes = model_part(d->context.model, 1, 0)->batch->bytes;
		ck_assert_uint_eq(bytes, (3 + 3) * 16);
		ck_assert_uint_eq(model_touched(l.command), bytes);
		ck_assert_int_eq(direct_try(d, l.command), VERDICT_READY);
		update = small_update(d, 0, 1, 3, 1.0f);
		ck_assert_int_eq(direct_submit(d, update), VERDICT_READY);
		ck_assert_uint_eq(model_touched(update), replicas == 1 ? bytes : U64_MAX);
		state = direct_command(&d->transfer, EMBENG_OP_STATE_READ);
		ck_assert_uint_eq(model_touched(state), U64_MAX);
		if (replicas == 1)
			ck_assert_int_eq(direct_try(d, update), VERDICT_READY);
		free(l.command);
		free(state);
		direct_free(d);
		free(update);
	}
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {test_rows_of_activations_do_not_overlap,
				      test_every_rule_of_a_batch,
				      test_max_takes_no_weights,
				      test_offsets_run_from_zero_to_the_count,
				      test_bytes_of_commands,
				      NULL};

	return direct_main("batch", tests);
}
