/* SPDX-License-Identifier: MIT */
/*
 * UPDATE commands: each rule is broken once; rates, multiplier and missing gradients are applied.
 */
#include <float.h>
#include <math.h>

#include "direct_main.h"
#include "direct.h"

#define SAMPLES 3u
#define OTHER 2u /* a region of the same memory that the engine may only write */

/* Two tables with a feature each: the first takes its rate from the update. */
struct two_model {
	struct embeng_record_engine engine;
	struct embeng_record_table table[2];
	struct embeng_record_feature feature[2];
};

struct given {
	struct command *command;
	struct embeng_update *header;
	struct embeng_update_feature *feature;
};

struct expected {
	u16 status;
	u32 field, feature;
	u64 element, value, limit;
};

static const s64 ids[SAMPLES] = {1, 3, 1};
static const u32 dims[2] = {2, 3};

static u32 bits_of(float x)
{
	u32 bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static struct two_model two_model(u32 replicas)
{
	struct two_model m = {.engine = {.replicas = replicas,
					 .table_count = 2,
					 .feature_count = 2,
					 .rate_count = 1}};

	for (u32 t = 0; t < 2; t++) {
		m.table[t] = (struct embeng_record_table){
			.rows = 4,
			.dim = dims[t],
			.optimizer = EMBENG_OPTIMIZER_SGD,
			.flags = EMBENG_TABLE_ACCUMULATE | (t ? 0 : EMBENG_TABLE_RATE_DYNAMIC),
			.rate = t ? bits_of(0.5f) : 0,
			.clip_gradient_min = bits_of(-INFINITY),
			.clip_gradient_max = bits_of(INFINITY),
			.clip_weight_min = bits_of(-INFINITY),
			.clip_weight_max = bits_of(INFINITY),
		};
		m.feature[t].table = t;
	}
	return m;
}

static struct direct *two_open(const struct two_model *m)
{
	struct direct *d = direct_new(2, NULL);
	struct direct_blob *b = calloc(1, sizeof(*b));
	struct embeng_record rate = {0};

	blob_record(b, EMBENG_RECORD_ENGINE, &m->engine, sizeof(m->engine));
	for (u32 t = 0; t < 2; t++)
		blob_record(b, EMBENG_RECORD_TABLE, &m->table[t], sizeof(m->table[t]));
	for (u32 f = 0; f < 2; f++)
		blob_record(b, EMBENG_RECORD_FEATURE, &m->feature[f], sizeof(m->feature[f]));
	blob_record(b, EMBENG_RECORD_RATE, &rate, sizeof(rate));
	blob_seal(b);
	ck_assert_uint_eq(direct_load(d, b), 0);
	free(b);
	d->table[OTHER].generation = 7;
	d->regions[OTHER] = d->regions[1];
	d->regions[OTHER].rights = EMBENG_REGION_DEVICE_WRITE;
	return d;
}

static void look(struct direct *d, u32 replica, u64 step)
{
	struct command *command = direct_command(&d->input[replica], EMBENG_OP_LOOKUP);
	struct embeng_lookup_feature *f;
	struct embeng_lookup *header;

	command->cmd.step = step;
	header = direct_memory(d, sizeof(*header) + 2 * sizeof(*f), &command->cmd.desc);
	f = (struct embeng_lookup_feature *)(header + 1);
	*header = (struct embeng_lookup){.feature_count = 2,
					 .feature_stride = sizeof(*f),
					 .model_hash = d->context.model->blob.hash};
	for (u32 i = 0; i < 2; i++) {
		f[i] = (struct embeng_lookup_feature){.feature = i,
						      .form = EMBENG_FORM_DENSE,
						      .id_width = 8,
						      .sample_count = SAMPLES,
						      .id_count = SAMPLES};
		memcpy(direct_memory(d, sizeof(ids), &f[i].ids), ids, sizeof(ids));
		direct_memory(d, SAMPLES * dims[i] * 4, &f[i].activations);
	}
	ck_assert_uint_eq(direct_do(d, command), 0);
}

/* A valid update: all gradients 1. */
static struct given give(struct direct *d, u32 replica, u64 step, float rate)
{
	struct given g = {.command = direct_command(&d->gradient[replica], EMBENG_OP_UPDATE)};

	g.command->cmd.step = step;
	g.header = direct_memory(d, sizeof(*g.header) + 2 * sizeof(*g.feature),
				 &g.command->cmd.desc);
	g.feature = (struct embeng_update_feature *)(g.header + 1);
	*g.header = (struct embeng_update){.feature_count = 2,
					   .rate_count = 1,
					   .feature_stride = sizeof(*g.feature),
					   .model_hash = d->context.model->blob.hash};
	*(float *)direct_memory(d, 4, &g.header->rates) = rate;
	for (u32 f = 0; f < 2; f++) {
		float *to = direct_memory(d, SAMPLES * dims[f] * 4, &g.feature[f].gradients);

		g.feature[f].feature = f;
		for (u32 i = 0; i < SAMPLES * dims[f]; i++)
			to[i] = 1;
	}
	return g;
}

/* A refused update says why, and leaves its place to the next one. */
static void refused(struct direct *d, struct given g, struct expected e)
{
	const struct fault *fault = &g.command->fault;
	struct model *model = d->context.model;
	u64 replica = g.command->queue->replica, step = g.command->cmd.step;
	u32 rates_given = model_step(model, step)->rates_given;

	ck_assert_int_eq(direct_submit(d, g.command), VERDICT_FAILED);
	ck_assert_uint_eq(fault->status, e.status);
	ck_assert_uint_eq(fault->field, e.field);
	ck_assert_uint_eq(fault->feature, e.feature);
	ck_assert_uint_eq(fault->element, e.element);
	ck_assert_uint_eq(fault->value, e.value);
	ck_assert_uint_eq(fault->limit, e.limit);
	ck_assert_uint_eq(model->replicas[replica].updated, step - 1);
	ck_assert_uint_eq(model_step(model, step)->rates_given, rates_given);
	ck_assert_int_eq(d->regions[1].users, 0);
	free(g.command);
}

/* Expects @twice in the rows that two samples ask for, and @once in those that one asks for. */
static void expect_rows(struct direct *d, u32 table, float twice, float once)
{
	const float *w = (const float *)d->context.model->tables[table].data;

	for (u32 c = 0; c < dims[table]; c++) {
		ck_assert(w[0 * dims[table] + c] == 0.0f);
		ck_assert_msg(w[1 * dims[table] + c] == twice, "%a", w[dims[table] + c]);
		ck_assert(w[2 * dims[table] + c] == 0.0f);
		ck_assert_msg(w[3 * dims[table] + c] == once, "%a", w[3 * dims[table] + c]);
	}
}

static void multiply(struct given g, float by)
{
	g.header->flags = EMBENG_UPDATE_MULTIPLIER;
	g.header->multiplier = bits_of(by);
}

#define NONE EMBENG_NO_INDEX
#define REFUSE(set, ...) \
	do { \
		struct given g = give(d, 0, 1, 0.5f); \
		u64 was = g.command->cmd.desc.offset; \
		set; \
		(void)was; \
		refused(d, g, (struct expected){__VA_ARGS__}); \
	} while (0)

START_TEST(test_header)
{
	struct two_model m = two_model(2);
	struct direct *d = two_open(&m);
	u64 hash = d->context.model->blob.hash, all = sizeof(struct embeng_update) + 64;

	look(d, 0, 1);
	REFUSE(g.header->flags = 4, EMBENG_STATUS_RESERVED, EMBENG_FIELD_RESERVED, NONE, 0, 4, 0);
	for (u32 i = 0; i < 3; i++)
		REFUSE(g.header->reserved1[i] = 8, EMBENG_STATUS_RESERVED, EMBENG_FIELD_RESERVED,
		       NONE, 0, 8, 0);
	REFUSE(g.header->model_hash ^= 1, EMBENG_STATUS_MODEL_HASH, EMBENG_FIELD_MODEL_HASH, NONE,
	       0, hash ^ 1, hash);
	REFUSE(g.header->feature_count = 3, EMBENG_STATUS_FEATURE, EMBENG_FIELD_FEATURE_COUNT, NONE,
	       0, 3, 2);
	REFUSE(g.header->rate_count = 2, EMBENG_STATUS_RATE, EMBENG_FIELD_RATES, NONE, 0, 2, 1);
	REFUSE(g.header->feature_stride = 24, EMBENG_STATUS_STRIDE, EMBENG_FIELD_FEATURE_STRIDE,
	       NONE, 0, 24, 32);
	REFUSE(g.header->feature_stride = 36, EMBENG_STATUS_STRIDE, EMBENG_FIELD_FEATURE_STRIDE,
	       NONE, 0, 36, 32);
	REFUSE(g.command->cmd.desc.length += 8, EMBENG_STATUS_LENGTH, EMBENG_FIELD_DESC, NONE, 0,
	       all + 8, all);
	REFUSE(g.command->cmd.desc.length = 40, EMBENG_STATUS_LENGTH, EMBENG_FIELD_DESC, NONE, 0,
	       40, sizeof(struct embeng_update));
	REFUSE(g.command->cmd.desc.generation = 6, EMBENG_STATUS_KEY, EMBENG_FIELD_DESC, NONE, 0, 6,
	       0);
	REFUSE(g.command->cmd.desc.index = OTHER, EMBENG_STATUS_RIGHTS, EMBENG_FIELD_DESC, NONE, 0,
	       EMBENG_REGION_DEVICE_READ, EMBENG_REGION_DEVICE_WRITE);
	REFUSE(g.command->cmd.desc.offset += 4, EMBENG_STATUS_ALIGNMENT, EMBENG_FIELD_DESC, NONE, 0,
	       was + 4, 8);
	ck_assert_uint_eq(direct_do(d, direct_command(&d->gradient[3], EMBENG_OP_UPDATE)),
			  EMBENG_STATUS_QUEUE_KIND);
	direct_free(d);
}
END_TEST

START_TEST(test_memory_of_rates)
{
	struct two_model m = two_model(1);
	struct direct *d = two_open(&m);

	look(d, 0, 1);
	REFUSE(g.header->rates.length = 8, EMBENG_STATUS_LENGTH, EMBENG_FIELD_RATES, NONE, 0, 8, 4);
	REFUSE(memset(&g.header->rates, 0, sizeof(g.header->rates)), EMBENG_STATUS_LENGTH,
	       EMBENG_FIELD_RATES, NONE, 0, 0, 4);
	REFUSE(g.header->rates.generation = 9, EMBENG_STATUS_KEY, EMBENG_FIELD_RATES, NONE, 0, 9,
	       0);
	REFUSE(g.header->rates.index = 4, EMBENG_STATUS_KEY, EMBENG_FIELD_RATES, NONE, 0, 4, 4);
	REFUSE(g.header->rates.index = OTHER, EMBENG_STATUS_RIGHTS, EMBENG_FIELD_RATES, NONE, 0,
	       EMBENG_REGION_DEVICE_READ, EMBENG_REGION_DEVICE_WRITE);
	REFUSE(g.header->rates.offset = DIRECT_ARENA - 2, EMBENG_STATUS_BOUNDS, EMBENG_FIELD_RATES,
	       NONE, 0, DIRECT_ARENA + 2, DIRECT_ARENA);
	REFUSE(g.header->rates.offset = 2, EMBENG_STATUS_ALIGNMENT, EMBENG_FIELD_RATES, NONE, 0, 2,
	       4);
	ck_assert_uint_eq(direct_do(d, give(d, 0, 1, 0.5f).command), 0);
	direct_free(d);
}
END_TEST

START_TEST(test_features)
{
	struct two_model m = two_model(1);
	struct direct *d = two_open(&m);

#define GRADIENTS g.feature[1].gradients
	look(d, 0, 1);
	REFUSE(g.feature[1].feature = 0, EMBENG_STATUS_FEATURE, EMBENG_FIELD_FEATURE_INDEX, 1, 0, 0,
	       1);
	REFUSE(g.feature[0].flags = 5, EMBENG_STATUS_RESERVED, EMBENG_FIELD_RESERVED, 0, 0, 5,
	       EMBENG_UPDATE_CHECKED | EMBENG_UPDATE_SUMS);
	REFUSE(GRADIENTS.length += 4, EMBENG_STATUS_LENGTH, EMBENG_FIELD_GRADIENTS, 1, 0, 40, 36);
	REFUSE(GRADIENTS.length = 0, EMBENG_STATUS_LENGTH, EMBENG_FIELD_GRADIENTS, 1, 0, 0, 36);
	REFUSE(GRADIENTS.generation = 0, EMBENG_STATUS_KEY, EMBENG_FIELD_GRADIENTS, 1, 0, 0, 0);
	REFUSE(GRADIENTS.index = 77, EMBENG_STATUS_KEY, EMBENG_FIELD_GRADIENTS, 1, 0, 77, 4);
	REFUSE(GRADIENTS.index = OTHER, EMBENG_STATUS_RIGHTS, EMBENG_FIELD_GRADIENTS, 1, 0,
	       EMBENG_REGION_DEVICE_READ, EMBENG_REGION_DEVICE_WRITE);
	REFUSE(GRADIENTS.offset = DIRECT_ARENA - 32, EMBENG_STATUS_BOUNDS, EMBENG_FIELD_GRADIENTS,
	       1, 0, DIRECT_ARENA + 4, DIRECT_ARENA);
	REFUSE(GRADIENTS.offset = U64_MAX - 3, EMBENG_STATUS_BOUNDS, EMBENG_FIELD_GRADIENTS, 1, 0,
	       U64_MAX, DIRECT_ARENA);
	REFUSE(GRADIENTS.offset = 6, EMBENG_STATUS_ALIGNMENT, EMBENG_FIELD_GRADIENTS, 1, 0, 6, 4);
	ck_assert_uint_eq(direct_do(d, give(d, 0, 1, 0.5f).command), 0);
	expect_rows(d, 0, -1.0f, -0.5f);
	direct_free(d);
}
END_TEST

/* Rates and multiplier are compared as bits: so -0 is not 0. */
START_TEST(test_replicas_give_the_same_bits)
{
	static const struct {
		float first, second;
	} differ[] = {{0.5f, 0.25f}, {0.0f, -0.0f}, {-0x1p-149f, 0x1p-149f}};

	for (u32 i = 0; i < 3; i++) {
		struct two_model m = two_model(2);
		struct direct *d = two_open(&m);
		struct given first, g;

		look(d, 0, 1);
		look(d, 1, 1);
		first = give(d, 0, 1, differ[i].first);
		ck_assert_int_eq(direct_submit(d, first.command), VERDICT_READY);
		refused(d, give(d, 1, 1, differ[i].second),
			(struct expected){EMBENG_STATUS_RATE, EMBENG_FIELD_RATES, NONE, 0,
					  bits_of(differ[i].second), bits_of(differ[i].first)});
		g = give(d, 1, 1, differ[i].first);
		multiply(g, 2);
		refused(d, g,
			(struct expected){EMBENG_STATUS_RATE, EMBENG_FIELD_RATES, NONE, 1,
					  bits_of(2), bits_of(1)});
		ck_assert_uint_eq(direct_do(d, give(d, 1, 1, differ[i].first).command), 0);
		ck_assert_int_eq(direct_try(d, first.command), VERDICT_READY);
		if (i < 2)
			expect_rows(d, 0, 0.0f - 4 * differ[i].first, 0.0f - 2 * differ[i].first);
		expect_rows(d, 1, -2.0f, -1.0f);
		free(first.command);
		direct_free(d);
	}
}
END_TEST

START_TEST(test_a_withdrawn_update_takes_its_rates_along)
{
	struct two_model m = two_model(1);
	struct direct *d = two_open(&m);
	struct given first;

	look(d, 0, 1);
	first = give(d, 0, 1, 0.5f);
	ck_assert_int_eq(direct_submit(d, first.command), VERDICT_READY);
	d->table[1].generation = 8;
	ck_assert_int_eq(direct_try(d, first.command), VERDICT_FAILED);
	ck_assert_uint_eq(first.command->fault.status, EMBENG_STATUS_KEY);
	d->table[1].generation = 7;
	expect_rows(d, 0, 0, 0);
	expect_rows(d, 1, 0, 0);
	ck_assert_uint_eq(direct_do(d, give(d, 0, 1, 0.25f).command), 0);
	expect_rows(d, 0, -0.5f, -0.25f);
	free(first.command);
	direct_free(d);
}
END_TEST

START_TEST(test_each_step_has_its_own_rate)
{
	struct two_model m = two_model(1);
	struct direct *d = two_open(&m);
	float sum = -9.0f;

	look(d, 0, 1);
	ck_assert_uint_eq(direct_do(d, give(d, 0, 1, 0.5f).command), 0);
	expect_rows(d, 0, -1.0f, -0.5f);
	expect_rows(d, 1, -1.0f, -0.5f);
	look(d, 0, 2);
	ck_assert_uint_eq(direct_do(d, give(d, 0, 2, 4.0f).command), 0);
	expect_rows(d, 0, -9.0f, -4.5f);
	expect_rows(d, 1, -2.0f, -1.0f);
	/* Also those that stand where an applied step stood. */
	for (u32 step = 3; step <= 8; step++) {
		float rate = step % 2 ? 0.25f : 0.5f;

		sum -= 2 * rate;
		look(d, 0, step);
		ck_assert_uint_eq(direct_do(d, give(d, 0, step, rate).command), 0);
		expect_rows(d, 0, sum, sum / 2);
		expect_rows(d, 1, -(float)step, -(float)step / 2);
	}
	direct_free(d);
}
END_TEST

START_TEST(test_multiplier_comes_before_the_clip)
{
	struct two_model m = two_model(1);
	struct direct *d;
	struct given g;

	m.table[1].clip_gradient_max = bits_of(3);
	d = two_open(&m);
	look(d, 0, 1);
	g = give(d, 0, 1, 1.0f);
	multiply(g, 2);
	ck_assert_uint_eq(direct_do(d, g.command), 0);
	expect_rows(d, 0, -4.0f, -2.0f);
	expect_rows(d, 1, -1.5f, -1.0f);
	direct_free(d);
}
END_TEST

/* 0 is a factor like others, and is not taken for one that was not given. */
START_TEST(test_a_multiplier_of_zero)
{
	struct two_model m = two_model(1);
	struct direct *d = two_open(&m);
	struct given g;

	look(d, 0, 1);
	g = give(d, 0, 1, 1.0f);
	multiply(g, 0);
	ck_assert_uint_eq(direct_do(d, g.command), 0);
	expect_rows(d, 0, 0, 0);
	expect_rows(d, 1, 0, 0);
	direct_free(d);
}
END_TEST

START_TEST(test_numbers_that_are_not_finite)
{
	static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
	struct two_model m = two_model(1);
	struct direct *d = two_open(&m);

	look(d, 0, 1);
	REFUSE(g.header->multiplier = 1, EMBENG_STATUS_NUMBER, EMBENG_FIELD_MULTIPLIER, NONE, 0, 1,
	       0);
	for (u32 i = 0; i < 4; i++) {
		REFUSE(multiply(g, bad[i]), EMBENG_STATUS_NUMBER, EMBENG_FIELD_MULTIPLIER, NONE, 0,
		       bits_of(bad[i]), bits_of(FLT_MAX));
		refused(d, give(d, 0, 1, bad[i]),
			(struct expected){EMBENG_STATUS_NUMBER, EMBENG_FIELD_RATES, NONE, 0,
					  bits_of(bad[i]), bits_of(FLT_MAX)});
	}
	ck_assert_uint_eq(direct_do(d, give(d, 0, 1, 0.5f).command), 0);
	expect_rows(d, 0, -1.0f, -0.5f);
	direct_free(d);
}
END_TEST

START_TEST(test_missing_gradients_touch_their_rows)
{
	struct two_model m = two_model(1);
	struct given g;
	struct direct *d;
	float *w;

	m.table[1].weight_decay = bits_of(0.5f);
	d = two_open(&m);
	w = (float *)d->context.model->tables[1].data;
	for (u32 i = 0; i < 12; i++)
		w[i] = 8;
	look(d, 0, 1);
	g = give(d, 0, 1, 0.5f);
	memset(&g.feature[1].gradients, 0, sizeof(g.feature[1].gradients));
	ck_assert_int_eq(direct_submit(d, g.command), VERDICT_READY);
	ck_assert_int_eq(direct_try(d, g.command), VERDICT_READY);
	ck_assert_uint_eq(g.command->result, 4);
	expect_rows(d, 0, -1.0f, -0.5f);
	for (u32 i = 0; i < 12; i++)
		ck_assert(w[i] == (i / 3 % 2 ? 4 : 8));
	free(g.command);
	direct_free(d);
}
END_TEST

/* A sum keeps its bits, also where one sum of zeros after the other has a sign, and where each is applied alone. */
static void keep_bits_of_sums(u32 flags)
{
	struct two_model m = two_model(1);
	struct direct *d;
	float *w;

	m.table[1].flags = flags;
	d = two_open(&m);
	w = (float *)d->context.model->tables[1].data;
	for (u32 sums = 0; sums < 2; sums++) {
		struct given g;
		float *to;

		for (u32 i = 0; i < 12; i++)
			w[i] = -0.0f;
		look(d, 0, sums + 1);
		g = give(d, 0, sums + 1, 0.5f);
		to = (float *)(void *)(d->arena + g.feature[1].gradients.offset);
		for (u32 i = 0; i < 9; i++)
			to[i] = -0.0f;
		g.feature[1].flags = sums ? EMBENG_UPDATE_SUMS : 0;
		ck_assert_uint_eq(direct_do(d, g.command), 0);
		/* w - lr * g: -0 - +0 is -0, and -0 - -0 is +0. */
		for (u32 i = 0; i < 12; i++)
			ck_assert_uint_eq(bits_of(w[i]) >> 31, !(sums && i / 3 % 2));
	}
	direct_free(d);
}

START_TEST(test_sums_keep_their_bits)
{
	keep_bits_of_sums(EMBENG_TABLE_ACCUMULATE);
	keep_bits_of_sums(0);
}
END_TEST

static void expect_sums_refused(u32 flags, bool known, struct expected e)
{
	struct two_model m = two_model(1);
	struct direct *d;
	struct given g;

	m.table[1].flags = flags;
	d = two_open(&m);
	if (!known)
		d->engine.caps.features &= ~EMBENG_CAP_SUMS;
	look(d, 0, 1);
	g = give(d, 0, 1, 0.5f);
	g.feature[1].flags = EMBENG_UPDATE_SUMS;
	refused(d, g, e);
	ck_assert_uint_eq(direct_do(d, give(d, 0, 1, 0.5f).command), 0);
	direct_free(d);
}

START_TEST(test_sums_refused)
{
	const u32 by_frequency = EMBENG_TABLE_ACCUMULATE | EMBENG_TABLE_BY_FREQUENCY;

	expect_sums_refused(EMBENG_TABLE_ACCUMULATE, false,
			    (struct expected){EMBENG_STATUS_RESERVED, EMBENG_FIELD_RESERVED, 1, 0,
					      EMBENG_UPDATE_SUMS, EMBENG_UPDATE_CHECKED});
	expect_sums_refused(by_frequency, true,
			    (struct expected){EMBENG_STATUS_FORM, EMBENG_FIELD_TABLE, 1, 0,
					      EMBENG_TABLE_BY_FREQUENCY, 0});
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {test_sums_keep_their_bits,
				      test_sums_refused,
				      test_header,
				      test_memory_of_rates,
				      test_features,
				      test_replicas_give_the_same_bits,
				      test_a_withdrawn_update_takes_its_rates_along,
				      test_each_step_has_its_own_rate,
				      test_multiplier_comes_before_the_clip,
				      test_a_multiplier_of_zero,
				      test_numbers_that_are_not_finite,
				      test_missing_gradients_touch_their_rows,
				      NULL};

	return direct_main("update", tests);
}
