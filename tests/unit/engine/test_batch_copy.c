// SPDX-License-Identifier: MIT
/*
 * Features that several cores copy at once: the first one with a mistake is reported, and no
 * region stays in use.
 */
#include "engine/lookup/batch.h"
#include "direct_main.h"
#include "direct_model.h"

#define CORES 4
#define FEATURES 6
#define ROWS 10
#define COUNT 700

struct wide_lookup {
	struct command *command;
	struct embeng_lookup_feature *features;
	s64 *ids[FEATURES];
};

static struct direct *open_features(void)
{
	struct small_model m = small_model(ROWS, 1);
	struct direct *d;

	m.engine.feature_count = FEATURES;
	d = small_open(&m, CORES);
	d->engine.inline_bytes = 0;
	return d;
}

static struct wide_lookup wide_lookup(struct direct *d)
{
	struct wide_lookup l = {.command = direct_command(&d->input[0], EMBENG_OP_LOOKUP)};
	struct embeng_lookup *header;

	l.command->cmd.step = 1;
	header = direct_memory(d, sizeof(*header) + FEATURES * sizeof(*l.features),
			       &l.command->cmd.desc);
	l.features = (struct embeng_lookup_feature *)(header + 1);
	*header = (struct embeng_lookup){.feature_count = FEATURES,
					 .feature_stride = sizeof(*l.features),
					 .model_hash = d->context.model->blob.hash};
	for (u32 f = 0; f < FEATURES; f++) {
		struct embeng_lookup_feature *feature = &l.features[f];

		*feature = (struct embeng_lookup_feature){.feature = f,
							  .form = EMBENG_FORM_DENSE,
							  .id_width = 8,
							  .sample_count = COUNT,
							  .id_count = COUNT};
		l.ids[f] = direct_memory(d, COUNT * 8, &feature->ids);
		direct_memory(d, COUNT * 4, &feature->activations);
		for (u32 i = 0; i < COUNT; i++)
			l.ids[f][i] = (s64)(f + i) % ROWS;
	}
	return l;
}

static void refused(struct direct *d, struct wide_lookup l, u32 feature, u64 element, u64 value)
{
	const struct fault *fault = &l.command->fault;

	ck_assert_int_eq(direct_submit(d, l.command), VERDICT_FAILED);
	ck_assert_uint_eq(fault->status, EMBENG_STATUS_ID);
	ck_assert_uint_eq(fault->field, EMBENG_FIELD_IDS);
	ck_assert_uint_eq(fault->feature, feature);
	ck_assert_uint_eq(fault->element, element);
	ck_assert_uint_eq(fault->value, value);
	ck_assert_uint_eq(fault->limit, ROWS);
	ck_assert_int_eq(d->regions[1].users, 0);
	ck_assert_uint_eq(d->context.model->replicas[0].accepted, 0);
	free(l.command);
}

/* The later mistake is one of ids, which a core may find first, or one that is found before. */
START_TEST(test_first_mistake_is_told)
{
	struct direct *d = open_features();
	const u64 used = d->used;

	for (u32 first = 0; first + 1 < FEATURES; first++) {
		for (u32 second = first + 1; second < FEATURES; second++) {
			struct wide_lookup l = wide_lookup(d);

			l.ids[first][COUNT - 1 - second] = ROWS + first;
			l.ids[second][first] = -1;
			refused(d, l, first, COUNT - 1 - second, ROWS + first);
			l = wide_lookup(d);
			l.ids[first][second] = ROWS + first;
			l.features[second].reserved = 5;
			refused(d, l, first, second, ROWS + first);
			d->used = used;
		}
	}
	direct_free(d);
}
END_TEST

START_TEST(test_mistake_before_the_copies_is_told)
{
	struct direct *d = open_features();
	struct wide_lookup l = wide_lookup(d);

	l.features[2].activations.generation++;
	l.ids[3][0] = -1;
	ck_assert_int_eq(direct_submit(d, l.command), VERDICT_FAILED);
	ck_assert_uint_eq(l.command->fault.status, EMBENG_STATUS_KEY);
	ck_assert_uint_eq(l.command->fault.field, EMBENG_FIELD_ACTIVATIONS);
	ck_assert_uint_eq(l.command->fault.feature, 2);
	ck_assert_int_eq(d->regions[1].users, 0);
	free(l.command);
	direct_free(d);
}
END_TEST

START_TEST(test_all_features_are_copied)
{
	struct direct *d = open_features();
	struct wide_lookup l = wide_lookup(d);
	const struct batch *batch;

	ck_assert_int_eq(direct_submit(d, l.command), VERDICT_READY);
	batch = model_part(d->context.model, 1, 0)->batch;
	ck_assert_uint_eq(batch->occurrences, FEATURES * COUNT);
	for (u32 f = 0; f < FEATURES; f++) {
		ck_assert_uint_eq(batch->features[f].occurrences, COUNT);
		for (u32 i = 0; i < COUNT; i++)
			ck_assert_uint_eq(batch_row(&batch->features[f], i), (f + i) % ROWS);
	}
	ck_assert_int_eq(d->regions[1].users, 0);
	ck_assert_int_eq(direct_try(d, l.command), VERDICT_READY);
	free(l.command);
	direct_free(d);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {test_first_mistake_is_told,
				      test_mistake_before_the_copies_is_told,
				      test_all_features_are_copied, NULL};

	return direct_main("batch_copy", tests);
}
