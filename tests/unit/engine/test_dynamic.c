/* SPDX-License-Identifier: MIT */
/*
 * Numbers of a table that each UPDATE gives: which a blob may make dynamic, and that a step refuses
 * exactly what a constant could not be, without a trace.
 */
#include "blob_refused.h"
#include "direct_main.h"
#include "engine/kernels/optimizers.h"

#define TABLE_AT (sizeof(struct embeng_blob_header) + sizeof(struct embeng_record_engine))
#define PLACE(member) offsetof(struct embeng_record_table, member)

#define ONE 0x3f800000u
#define HALF 0x3f000000u
#define TINY 0x00000001u
#define MINUS 0x80000000u
#define GREATEST 0x7f7fffffu
#define INF 0x7f800000u
#define QUIET_NAN 0x7fc00000u

#define RATES 4
#define HYPER(i) EMBENG_TABLE_HYPERPARAMETER_DYNAMIC(i)

static const struct {
	u32 flag;
	u64 place;
} settings[] = {
	{EMBENG_TABLE_WEIGHT_DECAY_DYNAMIC, PLACE(weight_decay)},
	{EMBENG_TABLE_CLIP_GRADIENT_MIN_DYNAMIC, PLACE(clip_gradient_min)},
	{EMBENG_TABLE_CLIP_GRADIENT_MAX_DYNAMIC, PLACE(clip_gradient_max)},
	{EMBENG_TABLE_CLIP_WEIGHT_MIN_DYNAMIC, PLACE(clip_weight_min)},
	{EMBENG_TABLE_CLIP_WEIGHT_MAX_DYNAMIC, PLACE(clip_weight_max)},
	{EMBENG_TABLE_MAX_NORM_DYNAMIC, PLACE(max_norm)},
};
#define COMMON 0x1f80u /* all six */

static struct direct_blob blob;

static struct small_model model_of(u8 optimizer)
{
	struct small_model m = small_model(10, 4);

	m.engine.rate_count = RATES;
	m.table.optimizer = optimizer;
	if (optimizer == EMBENG_OPTIMIZER_ADAM) {
		m.table.slot_count = 2;
		m.table.hyperparameter[0] = m.table.hyperparameter[1] = HALF;
		m.table.hyperparameter[2] = TINY;
	}
	return m;
}

static void write_blob(const struct small_model *m)
{
	const struct embeng_record rate = {0};

	memset(&blob, 0, sizeof(blob));
	blob_record(&blob, EMBENG_RECORD_ENGINE, &m->engine, sizeof(m->engine));
	blob_record(&blob, EMBENG_RECORD_TABLE, &m->table, sizeof(m->table));
	blob_record(&blob, EMBENG_RECORD_FEATURE, &m->feature, sizeof(m->feature));
	for (u32 i = 0; i < m->engine.rate_count; i++)
		blob_record(&blob, EMBENG_RECORD_RATE, &rate, sizeof(rate));
	blob_seal(&blob);
}

/* Makes a number dynamic, which the RATE @rate gives. */
static void make_dynamic(struct small_model *m, u32 flag, u64 place, u32 rate)
{
	m->table.flags |= flag;
	memcpy((u8 *)&m->table + place, &rate, sizeof(rate));
}

static u64 place_of_hyper(u32 i)
{
	return PLACE(hyperparameter) + i * 4;
}

static void refused_blob(const struct small_model *m, u64 place, u64 value, u64 limit)
{
	struct embeng_caps caps = blob_caps();

	write_blob(m);
	blob_refused(&blob, &caps,
		     (struct refusal){EMBENG_STATUS_BLOB_VALUE, TABLE_AT + place, value, limit});
}

static void taken_blob(const struct small_model *m)
{
	write_blob(m);
	blob_taken(&blob);
}

/* Checks the values of a step. Return: the status; *fault is set if it is not 0. */
static u16 check_step(const struct small_model *m, const u32 rates[RATES], struct fault *fault)
{
	struct embeng_caps caps = blob_caps();
	struct blob parsed;
	u16 status;

	write_blob(m);
	*fault = (struct fault){0};
	ck_assert_uint_eq(blob_parse(blob.data, blob.length, &caps, &parsed, fault), 0);
	status = blob_check_rates(&parsed, rates, fault);
	blob_free(&parsed);
	return status;
}

static void refused_step(const struct small_model *m, const u32 rates[RATES], u64 element,
			 u64 value, u64 limit)
{
	struct fault fault;

	ck_assert_uint_eq(check_step(m, rates, &fault), EMBENG_STATUS_NUMBER);
	ck_assert_uint_eq(fault.status, EMBENG_STATUS_NUMBER);
	ck_assert_uint_eq(fault.field, EMBENG_FIELD_RATES);
	ck_assert_uint_eq(fault.feature, EMBENG_NO_INDEX);
	ck_assert_uint_eq(fault.element, element);
	ck_assert_uint_eq(fault.value, value);
	ck_assert_uint_eq(fault.limit, limit);
}

static void taken_step(const struct small_model *m, const u32 rates[RATES])
{
	struct fault fault;

	ck_assert_uint_eq(check_step(m, rates, &fault), 0);
}

START_TEST(test_flags_follow_the_optimizer)
{
	u32 of_none = EMBENG_TABLE_ACCUMULATE | EMBENG_TABLE_DECAY_BY_RATE |
		      EMBENG_TABLE_RATE_DYNAMIC | EMBENG_TABLE_BY_FREQUENCY;
	u32 of_sgd = of_none | EMBENG_TABLE_DECAY_GRADIENT | COMMON;
	u32 of_adam = of_sgd | EMBENG_TABLE_NON_LAZY | 0x3fu << 16;
	struct small_model m = model_of(EMBENG_OPTIMIZER_SGD);

	m.table.flags |= COMMON;
	for (u32 i = 0; i < 6; i++)
		make_dynamic(&m, settings[i].flag, settings[i].place, i % RATES);
	taken_blob(&m);
	m.table.flags |= HYPER(0);
	refused_blob(&m, PLACE(flags), m.table.flags, of_sgd);
	m = model_of(EMBENG_OPTIMIZER_ADAM);
	for (u32 i = 0; i < 6; i++)
		make_dynamic(&m, HYPER(i), place_of_hyper(i), i % RATES);
	taken_blob(&m);
	m.table.flags |= HYPER(6);
	refused_blob(&m, PLACE(flags), m.table.flags, of_adam);
	m = model_of(EMBENG_OPTIMIZER_NONE);
	m.table.flags |= EMBENG_TABLE_MAX_NORM_DYNAMIC;
	refused_blob(&m, PLACE(flags), m.table.flags, of_none);
}
END_TEST

START_TEST(test_each_index_is_one_of_a_rate)
{
	for (u32 i = 0; i < 6; i++) {
		struct small_model m = model_of(EMBENG_OPTIMIZER_ADAM);

		make_dynamic(&m, settings[i].flag, settings[i].place, RATES);
		refused_blob(&m, settings[i].place, RATES, RATES);
		make_dynamic(&m, settings[i].flag, settings[i].place, RATES - 1);
		taken_blob(&m);
		make_dynamic(&m, HYPER(i), place_of_hyper(i), QUIET_NAN);
		refused_blob(&m, place_of_hyper(i), QUIET_NAN, RATES);
	}
}
END_TEST

/* As many as tables could have; the RATEs themselves are counted afterwards. */
START_TEST(test_count_of_rates)
{
	struct embeng_caps caps = blob_caps();
	struct small_model m = model_of(EMBENG_OPTIMIZER_SGD);

	caps.tables = 2;
	m.engine.rate_count = 2 * EMBENG_TABLE_RATES_MAX;
	write_blob(&m);
	{
		struct fault fault = {0};
		struct blob parsed;

		ck_assert_uint_eq(blob_parse(blob.data, blob.length, &caps, &parsed, &fault), 0);
		blob_free(&parsed);
	}
	m.engine.rate_count++;
	write_blob(&m);
	blob_refused(&blob, &caps,
		     (struct refusal){EMBENG_STATUS_BLOB_VALUE,
				      sizeof(struct embeng_blob_header) +
					      offsetof(struct embeng_record_engine, rate_count),
				      2 * EMBENG_TABLE_RATES_MAX + 1, 2 * EMBENG_TABLE_RATES_MAX});
}
END_TEST

/* Every kind, every hyperparameter: what the engine refuses in a blob it refuses in a step. */
START_TEST(test_values_are_those_of_constants)
{
	static const u32 values[] = {
		0,	  MINUS,   TINY,	MINUS | TINY, HALF,
		ONE,	  ONE - 1, TINY,	ONE + 1,      MINUS | ONE,
		GREATEST, INF,	   MINUS | INF, QUIET_NAN,    MINUS | GREATEST};
	struct embeng_caps caps = blob_caps();
	u32 refused = 0, taken = 0;

#define KIND_OF(name, value) value,
	static const u8 kinds[] = {EMBENG_OPTIMIZER_TABLE(KIND_OF)};

	for (size_t k = 0; k < sizeof(kinds); k++) {
		const struct kernel_optimizer *o = &kernel_optimizers[optimizer_kernel(kinds[k])];

		for (u32 i = 0; i < o->hyper_count * sizeof(values) / sizeof(values[0]); i++) {
			u32 h = i % o->hyper_count, value = values[i / o->hyper_count];
			struct small_model m = model_of(kinds[k]), dynamic;
			u32 rates[RATES] = {0, 0, value, 0};
			struct fault fault = {0};
			struct blob parsed;
			u16 status;

			m.table.slot_count = (u8)o->slot_count;
			m.table.dim = kinds[k] == EMBENG_OPTIMIZER_FREQUENCY_ESTIMATOR ? 1 : 4;
			for (u32 n = 0; n < o->hyper_count; n++)
				memcpy(&m.table.hyperparameter[n], &o->hyper[n].value, 4);
			dynamic = m;
			m.table.hyperparameter[h] = value;
			make_dynamic(&dynamic, HYPER(h), place_of_hyper(h), 2);
			write_blob(&m);
			status = blob_parse(blob.data, blob.length, &caps, &parsed, &fault);
			blob_free(&parsed);
			if (status) {
				/* not finite is said before the range is asked for */
				refused_step(&dynamic, rates, 2, value,
					     (value & INF) == INF ? GREATEST : fault.limit);
				refused++;
			} else {
				taken_step(&dynamic, rates);
				taken++;
			}
		}
	}
	ck_assert_uint_gt(refused, 100);
	ck_assert_uint_gt(taken, 100);
}
END_TEST

START_TEST(test_decay_and_norm_are_from_zero)
{
	for (u32 i = 0; i < 6; i += 5) {
		struct small_model m = model_of(EMBENG_OPTIMIZER_SGD);

		make_dynamic(&m, settings[i].flag, settings[i].place, 1);
		taken_step(&m, (const u32[RATES]){0, 0, 0, 0});
		taken_step(&m, (const u32[RATES]){0, GREATEST, 0, 0});
		refused_step(&m, (const u32[RATES]){0, MINUS | TINY, 0, 0}, 1, MINUS | TINY, 0);
		refused_step(&m, (const u32[RATES]){0, INF, 0, 0}, 1, INF, GREATEST);
		refused_step(&m, (const u32[RATES]){0, QUIET_NAN, 0, 0}, 1, QUIET_NAN, GREATEST);
		/* those that nothing uses are finite all the same */
		refused_step(&m, (const u32[RATES]){0, 0, 0, MINUS | INF}, 3, MINUS | INF,
			     GREATEST);
	}
}
END_TEST

static void check_clip(u32 low_index)
{
	const u32 low = settings[low_index].flag, high = settings[low_index + 1].flag;
	const u64 low_at = settings[low_index].place, high_at = settings[low_index + 1].place;
	struct small_model m = model_of(EMBENG_OPTIMIZER_SGD), one = m;

	make_dynamic(&m, low, low_at, 0);
	make_dynamic(&m, high, high_at, 3);
	taken_step(&m, (const u32[RATES]){MINUS | INF, 0, 0, INF});
	taken_step(&m, (const u32[RATES]){HALF, 0, 0, HALF});
	refused_step(&m, (const u32[RATES]){ONE, 0, 0, HALF}, 0, ONE, HALF);
	refused_step(&m, (const u32[RATES]){INF, 0, 0, INF}, 0, INF, GREATEST);
	refused_step(&m, (const u32[RATES]){MINUS | INF, 0, 0, MINUS | INF}, 3, MINUS | INF,
		     MINUS | GREATEST);
	refused_step(&m, (const u32[RATES]){QUIET_NAN, 0, 0, 0}, 0, QUIET_NAN, GREATEST);
	/* the other limit is constant */
	memcpy((u8 *)&one.table + low_at, &(u32){HALF}, 4);
	make_dynamic(&one, high, high_at, 2);
	taken_step(&one, (const u32[RATES]){0, 0, HALF, 0});
	taken_step(&one, (const u32[RATES]){0, 0, INF, 0});
	refused_step(&one, (const u32[RATES]){0, 0, HALF - 1, 0}, 2, HALF - 1, HALF);
	refused_step(&one, (const u32[RATES]){0, 0, MINUS | INF, 0}, 2, MINUS | INF, HALF);
	one = model_of(EMBENG_OPTIMIZER_SGD);
	memcpy((u8 *)&one.table + high_at, &(u32){HALF}, 4);
	make_dynamic(&one, low, low_at, 2);
	taken_step(&one, (const u32[RATES]){0, 0, HALF, 0});
	refused_step(&one, (const u32[RATES]){0, 0, ONE, 0}, 2, ONE, HALF);
}

START_TEST(test_limits_may_be_infinite_and_do_not_cross)
{
	check_clip(1);
	check_clip(3);
}
END_TEST

/* A constant limit is checked with its blob even if the other one is not known. */
START_TEST(test_constant_limits_beside_dynamic_ones)
{
	struct small_model m = model_of(EMBENG_OPTIMIZER_SGD);

	make_dynamic(&m, settings[1].flag, settings[1].place, 0);
	m.table.clip_gradient_max = MINUS | INF;
	refused_blob(&m, PLACE(clip_gradient_max), MINUS | INF, MINUS | GREATEST);
	m = model_of(EMBENG_OPTIMIZER_SGD);
	make_dynamic(&m, settings[2].flag, settings[2].place, 0);
	m.table.clip_gradient_min = QUIET_NAN;
	refused_blob(&m, PLACE(clip_gradient_min), QUIET_NAN, 0);
}
END_TEST

/* A RATE of several uses is within the range of each. */
START_TEST(test_shared_rates)
{
	struct small_model m = model_of(EMBENG_OPTIMIZER_SGD);

	m.table.flags |= EMBENG_TABLE_RATE_DYNAMIC;
	m.table.rate = 1;
	make_dynamic(&m, settings[2].flag, settings[2].place, 1);
	taken_step(&m, (const u32[RATES]){0, ONE, 0, 0});
	refused_step(&m, (const u32[RATES]){0, INF, 0, 0}, 1, INF, GREATEST);
	m = model_of(EMBENG_OPTIMIZER_FREQUENCY_AWARE_ADAGRAD);
	m.table.slot_count = 2;
	m.table.hyperparameter[2] = m.table.hyperparameter[5] = ONE;
	m.table.flags |= EMBENG_TABLE_STEP_DYNAMIC;
	m.table.step_rate = 2;
	make_dynamic(&m, settings[4].flag, settings[4].place, 2);
	taken_step(&m, (const u32[RATES]){0, 0, ONE, 0});
	refused_step(&m, (const u32[RATES]){0, 0, INF, 0}, 2, INF, GREATEST);
	m = model_of(EMBENG_OPTIMIZER_ADAM);
	make_dynamic(&m, HYPER(0), place_of_hyper(0), 1);
	make_dynamic(&m, HYPER(2), place_of_hyper(2), 1);
	taken_step(&m, (const u32[RATES]){0, HALF, 0, 0});
	refused_step(&m, (const u32[RATES]){0, ONE, 0, 0}, 1, ONE, ONE - 1);
	refused_step(&m, (const u32[RATES]){0, 0, 0, 0}, 1, 0, TINY);
}
END_TEST

static struct command *give(struct direct *d, u64 step, u32 decay)
{
	struct command *command = small_update(d, 0, step, 1, 1.0f);
	struct embeng_update *header = (struct embeng_update *)(d->arena +
								command->cmd.desc.offset);
	u32 rates[RATES] = {0, 0, 0, decay};

	header->rate_count = RATES;
	memcpy(direct_memory(d, sizeof(rates), &header->rates), rates, sizeof(rates));
	return command;
}

/* A refused step leaves row, step and rates as they are; the next one computes with its own. */
START_TEST(test_an_update_refuses_and_applies)
{
	static const s64 id = 3;
	struct small_model m = model_of(EMBENG_OPTIMIZER_SGD);
	struct direct *d = direct_new(1, NULL);
	struct command *bad;
	const float *row;

	make_dynamic(&m, settings[0].flag, settings[0].place, 3);
	write_blob(&m);
	ck_assert_uint_eq(direct_load(d, &blob), 0);
	row = (const float *)d->context.model->tables[0].data + 3 * 4;
	ck_assert_uint_eq(direct_do(d, small_lookup(d, &d->input[0], 1, &id, 1).command), 0);
	bad = give(d, 1, MINUS | ONE);
	ck_assert_int_eq(direct_submit(d, bad), VERDICT_FAILED);
	ck_assert_uint_eq(bad->fault.status, EMBENG_STATUS_NUMBER);
	ck_assert_uint_eq(bad->fault.field, EMBENG_FIELD_RATES);
	ck_assert_uint_eq(bad->fault.element, 3);
	ck_assert_uint_eq(bad->fault.value, MINUS | ONE);
	ck_assert_uint_eq(bad->fault.limit, 0);
	ck_assert_uint_eq(d->context.model->replicas[0].updated, 0);
	ck_assert(row[0] == 0.0f);
	free(bad);
	ck_assert_uint_eq(direct_do(d, give(d, 1, 0)), 0);
	ck_assert(row[0] == -1.0f);
	ck_assert_uint_eq(direct_do(d, small_lookup(d, &d->input[0], 2, &id, 1).command), 0);
	ck_assert_uint_eq(direct_do(d, give(d, 2, HALF)), 0);
	ck_assert(row[0] == -1.5f);
	ck_assert_uint_eq(direct_do(d, small_lookup(d, &d->input[0], 3, &id, 1).command), 0);
	ck_assert_uint_eq(direct_do(d, give(d, 3, ONE)), 0);
	ck_assert(row[0] == -1.0f);
	direct_free(d);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {test_flags_follow_the_optimizer,
				      test_each_index_is_one_of_a_rate,
				      test_count_of_rates,
				      test_values_are_those_of_constants,
				      test_decay_and_norm_are_from_zero,
				      test_limits_may_be_infinite_and_do_not_cross,
				      test_constant_limits_beside_dynamic_ones,
				      test_shared_rates,
				      test_an_update_refuses_and_applies,
				      NULL};

	return direct_main("dynamic", tests);
}
