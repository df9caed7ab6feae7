/* SPDX-License-Identifier: MIT */
/* Every value of a model blob outside its limits, in a blob that is otherwise good. */
#include "blob_refused.h"
#include "direct_main.h"

#define ENGINE_AT sizeof(struct embeng_blob_header)
#define TABLE_AT (ENGINE_AT + sizeof(struct embeng_record_engine))
#define FEATURE_AT (TABLE_AT + sizeof(struct embeng_record_table))

#define F32_ONE 0x3f800000u
#define F32_HALF 0x3f000000u
#define F32_TINY 0x00000001u
#define F32_MINUS 0x80000000u
#define F32_MAX 0x7f7fffffu
#define F32_INF 0x7f800000u
#define F32_NAN 0x7fc00000u

static struct direct_blob blob;

/* One with a slot, a hyperparameter of each sort, and both switches of a table. */
static struct small_model adam(void)
{
	struct small_model m = small_model(10, 4);

	m.table.optimizer = EMBENG_OPTIMIZER_ADAM;
	m.table.slot_count = 2;
	m.table.hyperparameter[0] = m.table.hyperparameter[1] = F32_HALF;
	m.table.hyperparameter[2] = F32_TINY;
	m.table.flags |= EMBENG_TABLE_NON_LAZY;
	return m;
}

static void refused(const struct small_model *m, u64 at, u64 value, u64 limit)
{
	struct embeng_caps caps = blob_caps();

	small_blob(m, &blob);
	blob_refused(&blob, &caps, (struct refusal){EMBENG_STATUS_BLOB_VALUE, at, value, limit});
}

static void taken(const struct small_model *m)
{
	small_blob(m, &blob);
	blob_taken(&blob);
}

#define REFUSE(record, start, member, number, limit) \
	do { \
		struct small_model m = adam(); \
		m.record.member = number; \
		refused(&m, start + offsetof(struct embeng_record_##record, member), number, \
			limit); \
	} while (0)
#define REFUSE_ENGINE(member, number, limit) REFUSE(engine, ENGINE_AT, member, number, limit)
#define REFUSE_TABLE(member, number, limit) REFUSE(table, TABLE_AT, member, number, limit)
#define REFUSE_FEATURE(member, number, limit) REFUSE(feature, FEATURE_AT, member, number, limit)

START_TEST(test_engine)
{
	struct embeng_caps caps = blob_caps();
	struct small_model m = adam();

	REFUSE_ENGINE(replicas, 0, 1);
	REFUSE_ENGINE(replicas, caps.replicas + 1, caps.replicas);
	REFUSE_ENGINE(flags, 8,
		      EMBENG_ENGINE_PIPELINING | EMBENG_ENGINE_GRADIENTS_DROP |
			      EMBENG_ENGINE_GRADIENTS_ALLOW);
	REFUSE_ENGINE(flags, EMBENG_ENGINE_GRADIENTS_DROP | EMBENG_ENGINE_GRADIENTS_ALLOW,
		      EMBENG_ENGINE_PIPELINING | EMBENG_ENGINE_GRADIENTS_DROP);
	m.engine.flags = EMBENG_ENGINE_GRADIENTS_DROP;
	taken(&m);
	m.engine.flags = EMBENG_ENGINE_GRADIENTS_ALLOW | EMBENG_ENGINE_PIPELINING;
	taken(&m);
	m.engine.flags = 0;
	REFUSE_ENGINE(table_count, caps.tables + 1, caps.tables);
	REFUSE_ENGINE(feature_count, caps.model_features + 1, caps.model_features);
	REFUSE_ENGINE(step_depth, caps.step_depth + 1, caps.step_depth);
	caps.features = 0;
	m.engine.flags = EMBENG_ENGINE_PIPELINING;
	taken(&m);
	blob_refused(
		&blob, &caps,
		(struct refusal){EMBENG_STATUS_BLOB_VALUE,
				 ENGINE_AT + offsetof(struct embeng_record_engine, flags),
				 EMBENG_ENGINE_PIPELINING,
				 EMBENG_ENGINE_GRADIENTS_DROP | EMBENG_ENGINE_GRADIENTS_ALLOW});
}
END_TEST

START_TEST(test_table)
{
	struct embeng_caps caps = blob_caps();
	struct small_model m = adam();

	taken(&m);
	REFUSE_TABLE(rows, 0, 1);
	REFUSE_TABLE(rows, 1ull << 63, U64_MAX >> 1);
	REFUSE_TABLE(dim, 0, 1);
	REFUSE_TABLE(dim, caps.dim + 1, caps.dim);
	REFUSE_TABLE(combiner, 4, caps.combiners);
	REFUSE_TABLE(combiner, 33, caps.combiners);
	REFUSE_TABLE(out_of_range, 4, EMBENG_OUT_OF_RANGE_ZERO);
	REFUSE_TABLE(max_norm, 0x7f800000, 0x7f7fffff);
	REFUSE_TABLE(max_norm, 0xbf800000, 0);
	REFUSE_TABLE(step_rate, 1, 0);
}
END_TEST

/* Only Adam and Lion that accumulate can run over all rows. */
START_TEST(test_flags)
{
	u32 flags = EMBENG_TABLE_ACCUMULATE | EMBENG_TABLE_DECAY_BY_RATE |
		    EMBENG_TABLE_RATE_DYNAMIC | EMBENG_TABLE_DECAY_GRADIENT |
		    EMBENG_TABLE_WEIGHT_DECAY_DYNAMIC | EMBENG_TABLE_CLIP_GRADIENT_MIN_DYNAMIC |
		    EMBENG_TABLE_CLIP_GRADIENT_MAX_DYNAMIC | EMBENG_TABLE_CLIP_WEIGHT_MIN_DYNAMIC |
		    EMBENG_TABLE_CLIP_WEIGHT_MAX_DYNAMIC | EMBENG_TABLE_MAX_NORM_DYNAMIC;
	u32 adams = flags | 0x3fu << 16, sums = flags | EMBENG_TABLE_BY_FREQUENCY;
	struct small_model m = small_model(10, 4);

	REFUSE_TABLE(flags, 16, adams);
	REFUSE_TABLE(flags, 1u << 13, adams);
	REFUSE_TABLE(flags, 1u << 22, adams);
	REFUSE_TABLE(flags, EMBENG_TABLE_BY_FREQUENCY, adams);
	REFUSE_TABLE(flags, EMBENG_TABLE_DECAY_GRADIENT | EMBENG_TABLE_DECAY_BY_RATE,
		     adams & ~EMBENG_TABLE_DECAY_GRADIENT);
	REFUSE_TABLE(flags, EMBENG_TABLE_NON_LAZY, adams);
	REFUSE_TABLE(flags, 16 | EMBENG_TABLE_ACCUMULATE,
		     adams | EMBENG_TABLE_BY_FREQUENCY | EMBENG_TABLE_NON_LAZY);
	m.table.flags |= EMBENG_TABLE_NON_LAZY;
	refused(&m, TABLE_AT + offsetof(struct embeng_record_table, flags), m.table.flags, sums);
	m.table.optimizer = EMBENG_OPTIMIZER_LION;
	m.table.slot_count = 1;
	taken(&m);
	m.table.flags &= ~EMBENG_TABLE_ACCUMULATE;
	refused(&m, TABLE_AT + offsetof(struct embeng_record_table, flags), m.table.flags,
		flags | EMBENG_TABLE_HYPERPARAMETER_DYNAMIC(0) |
			EMBENG_TABLE_HYPERPARAMETER_DYNAMIC(1));
}
END_TEST

START_TEST(test_optimizer)
{
	struct embeng_caps caps = blob_caps();
	struct small_model m = small_model(10, 4);

	m.table.optimizer = 31;
	refused(&m, TABLE_AT + offsetof(struct embeng_record_table, optimizer), 31,
		caps.optimizers);
	m.table.optimizer = 32 + EMBENG_OPTIMIZER_SGD;
	refused(&m, TABLE_AT + offsetof(struct embeng_record_table, optimizer), 33,
		caps.optimizers);
	m.table.optimizer = 31;
	small_blob(&m, &blob);
	caps.optimizers |= 1u << 31;
	blob_refused(&blob, &caps,
		     (struct refusal){EMBENG_STATUS_BLOB_VALUE,
				      TABLE_AT + offsetof(struct embeng_record_table, optimizer),
				      31, caps.optimizers});
	m.table.optimizer = EMBENG_OPTIMIZER_FREQUENCY_ESTIMATOR;
	refused(&m, TABLE_AT + offsetof(struct embeng_record_table, dim), 4, 1);
	m.table.optimizer = EMBENG_OPTIMIZER_NONE;
	taken(&m);
	m.table.slot_count = 1;
	refused(&m, TABLE_AT + offsetof(struct embeng_record_table, slot_count), 1, 0);
	REFUSE_TABLE(slot_count, 1, 2);
	REFUSE_TABLE(slot_count, 3, 2);
}
END_TEST

START_TEST(test_numbers_of_a_table)
{
	struct small_model m = adam();

	REFUSE_TABLE(rate, F32_NAN, F32_MAX);
	REFUSE_TABLE(rate, F32_INF, F32_MAX);
	REFUSE_TABLE(rate, F32_INF | F32_MINUS, F32_MAX);
	REFUSE_TABLE(weight_decay, F32_NAN, F32_MAX);
	REFUSE_TABLE(weight_decay, F32_INF, F32_MAX);
	REFUSE_TABLE(weight_decay, F32_TINY | F32_MINUS, 0);
	REFUSE_TABLE(clip_gradient_min, F32_NAN, 0);
	REFUSE_TABLE(clip_gradient_max, F32_NAN, 0);
	REFUSE_TABLE(clip_weight_min, F32_NAN | F32_MINUS, 0);
	REFUSE_TABLE(clip_weight_max, F32_NAN, 0);
	for (u32 i = 0; i < EMBENG_SLOTS_MAX; i++)
		REFUSE_TABLE(slot_start[i], F32_INF + 1, i < 2 ? F32_MAX : 0);
	/* Momenta have any sign, velocities do not, and a slot that is not there has no start. */
	REFUSE_TABLE(slot_start[0], F32_INF | F32_MINUS, F32_MAX | F32_MINUS);
	REFUSE_TABLE(slot_start[1], F32_TINY | F32_MINUS, 0);
	REFUSE_TABLE(slot_start[2], F32_ONE, 0);
	m.table.slot_start[0] = F32_ONE | F32_MINUS;
	m.table.slot_start[1] = F32_MINUS;
	taken(&m);
	m.table.clip_gradient_min = m.table.clip_gradient_max = F32_INF;
	refused(&m, TABLE_AT + offsetof(struct embeng_record_table, clip_gradient_min), F32_INF,
		F32_MAX);
	m.table.clip_gradient_min = m.table.clip_gradient_max = F32_INF | F32_MINUS;
	refused(&m, TABLE_AT + offsetof(struct embeng_record_table, clip_gradient_max),
		F32_INF | F32_MINUS, F32_MAX | F32_MINUS);
	m.table.clip_gradient_min = F32_TINY;
	m.table.clip_gradient_max = F32_MINUS;
	refused(&m, TABLE_AT + offsetof(struct embeng_record_table, clip_gradient_min), F32_TINY,
		F32_MINUS);
	m.table.clip_gradient_min = 0;
	m.table.clip_weight_min = F32_HALF | F32_MINUS;
	m.table.clip_weight_max = F32_ONE | F32_MINUS;
	refused(&m, TABLE_AT + offsetof(struct embeng_record_table, clip_weight_min),
		F32_HALF | F32_MINUS, F32_ONE | F32_MINUS);
	m.table.clip_weight_max = F32_HALF | F32_MINUS;
	taken(&m);
}
END_TEST

START_TEST(test_dynamic_rate)
{
	struct small_model m = adam();

	m.table.flags |= EMBENG_TABLE_RATE_DYNAMIC;
	m.table.rate = 1;
	m.engine.rate_count = 1;
	refused(&m, TABLE_AT + offsetof(struct embeng_record_table, rate), 1, 1);
	m.table.rate = 0;
	m.engine.rate_count = 0;
	refused(&m, TABLE_AT + offsetof(struct embeng_record_table, rate), 0, 0);
}
END_TEST

#define LEVELS {.num_buckets = 4, .lower = F32_ONE | F32_MINUS, .upper = F32_ONE}

/* Makes a blob of two tables with these records, which stand where the second table ends. */
static void with_levels(const struct embeng_record_quantization *records, u32 count)
{
	struct small_model m = adam();

	m.engine.table_count = 2;
	memset(&blob, 0, sizeof(blob));
	blob_record(&blob, EMBENG_RECORD_ENGINE, &m.engine, sizeof(m.engine));
	blob_record(&blob, EMBENG_RECORD_TABLE, &m.table, sizeof(m.table));
	blob_record(&blob, EMBENG_RECORD_TABLE, &m.table, sizeof(m.table));
	for (u32 i = 0; i < count; i++)
		blob_record(&blob, EMBENG_RECORD_QUANTIZATION, &records[i], sizeof(records[i]));
	blob_record(&blob, EMBENG_RECORD_FEATURE, &m.feature, sizeof(m.feature));
	blob_seal(&blob);
}

#define LEVELS_AT (FEATURE_AT + sizeof(struct embeng_record_table))
#define REFUSE_LEVELS(member, number, limit) \
	do { \
		struct embeng_record_quantization q = LEVELS; \
		struct embeng_caps caps = blob_caps(); \
		q.member = number; \
		with_levels(&q, 1); \
		blob_refused( \
			&blob, &caps, \
			(struct refusal){ \
				EMBENG_STATUS_BLOB_VALUE, \
				LEVELS_AT + offsetof(struct embeng_record_quantization, member), \
				number, limit}); \
	} while (0)

START_TEST(test_quantization)
{
	struct embeng_record_quantization two[2] = {LEVELS, LEVELS};
	u64 second = LEVELS_AT + sizeof(two[0]) +
		     offsetof(struct embeng_record_quantization, table);
	struct embeng_caps caps = blob_caps();

	two[1].table = 1;
	with_levels(two, 2);
	blob_taken(&blob);
	REFUSE_LEVELS(table, 2, 2);
	REFUSE_LEVELS(num_buckets, 0, 2);
	REFUSE_LEVELS(num_buckets, 1, 2);
	REFUSE_LEVELS(lower, F32_INF | F32_MINUS, F32_MAX);
	REFUSE_LEVELS(lower, F32_NAN, F32_MAX);
	REFUSE_LEVELS(upper, F32_INF, F32_MAX);
	REFUSE_LEVELS(lower, F32_ONE, F32_ONE);
	REFUSE_LEVELS(lower, F32_ONE + 1, F32_ONE);
	two[1].table = 0;
	with_levels(two, 2);
	blob_refused(&blob, &caps, (struct refusal){EMBENG_STATUS_BLOB_VALUE, second, 0, 1});
	caps.features &= ~EMBENG_CAP_QUANTIZATION;
	blob_refused(&blob, &caps,
		     (struct refusal){EMBENG_STATUS_BLOB_RECORD, LEVELS_AT,
				      EMBENG_RECORD_QUANTIZATION, 0});
}
END_TEST

/* Rows 2, 5, ... 29 of 30 and columns 3 to 6 of 7: none of the numbers can grow. */
#define PART {.whole_rows = 30, .first_row = 2, .row_step = 3, .first_column = 3, .whole_dim = 7}

/* Makes a blob of two tables, and where the second ends these records. */
static void with_shards(const struct embeng_record_shard *records, u32 count, u64 rows)
{
	struct small_model m = adam();

	m.engine.table_count = 2;
	m.table.rows = rows;
	memset(&blob, 0, sizeof(blob));
	blob_record(&blob, EMBENG_RECORD_ENGINE, &m.engine, sizeof(m.engine));
	blob_record(&blob, EMBENG_RECORD_TABLE, &m.table, sizeof(m.table));
	blob_record(&blob, EMBENG_RECORD_TABLE, &m.table, sizeof(m.table));
	for (u32 i = 0; i < count; i++)
		blob_record(&blob, EMBENG_RECORD_SHARD, &records[i], sizeof(records[i]));
	blob_record(&blob, EMBENG_RECORD_FEATURE, &m.feature, sizeof(m.feature));
	blob_seal(&blob);
}

#define REFUSE_SHARD_OF(rows, member, number, limit) \
	do { \
		struct embeng_record_shard s = PART; \
		struct embeng_caps caps = blob_caps(); \
		s.member = number; \
		with_shards(&s, 1, rows); \
		blob_refused( \
			&blob, &caps, \
			(struct refusal){EMBENG_STATUS_BLOB_VALUE, \
					 LEVELS_AT + offsetof(struct embeng_record_shard, member), \
					 number, limit}); \
	} while (0)
#define REFUSE_SHARD(member, number, limit) REFUSE_SHARD_OF(10, member, number, limit)

START_TEST(test_shard)
{
	struct embeng_record_shard two[2] = {PART, PART};
	u64 second = LEVELS_AT + sizeof(two[0]) + offsetof(struct embeng_record_shard, table);
	struct embeng_caps caps = blob_caps();

	two[1].table = 1;
	with_shards(two, 2, 10);
	blob_taken(&blob);
	REFUSE_SHARD(table, 2, 2);
	REFUSE_SHARD(whole_rows, 9, 10);
	REFUSE_SHARD(whole_rows, 1ull << 63, U64_MAX >> 1);
	REFUSE_SHARD(first_row, 21, 20);
	REFUSE_SHARD(first_row, U64_MAX, 20);
	REFUSE_SHARD(row_step, 0, 1);
	REFUSE_SHARD(row_step, 4, 3);
	REFUSE_SHARD(row_step, U64_MAX, 3);
	/* The last row would come to be one that is there, but for the overflow. */
	REFUSE_SHARD(row_step, (1ull << 63) + 3, 3);
	REFUSE_SHARD(whole_dim, 3, 4);
	REFUSE_SHARD(first_column, 4, 3);
	REFUSE_SHARD(first_column, ~0u, 3);
	REFUSE_SHARD(reserved, 1, 0);
	/* A step from the only row leads nowhere. */
	REFUSE_SHARD_OF(1, row_step, 0, 1);
	two[0].row_step = U64_MAX;
	two[0].first_row = 29;
	/* Rows and columns that no device has the whole of. */
	two[1].whole_rows = two[1].first_row = U64_MAX >> 1;
	two[1].first_row--;
	two[1].whole_dim = ~0u;
	two[1].first_column = ~0u - 4;
	with_shards(two, 2, 1);
	blob_taken(&blob);
	two[1].table = 0;
	with_shards(two, 2, 1);
	blob_refused(&blob, &caps, (struct refusal){EMBENG_STATUS_BLOB_VALUE, second, 0, 1});
	caps.features &= ~EMBENG_CAP_SHARDS;
	blob_refused(
		&blob, &caps,
		(struct refusal){EMBENG_STATUS_BLOB_RECORD, LEVELS_AT, EMBENG_RECORD_SHARD, 0});
}
END_TEST

struct range {
	u32 low, high;	  /* bits of the ends, which are taken */
	u32 below, above; /* bits that are not */
};

#define ANY {F32_MAX | F32_MINUS, F32_MAX, F32_INF | F32_MINUS, F32_INF}
#define SWITCH {0, F32_ONE, F32_MINUS | F32_TINY, F32_ONE + 1}
#define ABOVE_ZERO {F32_TINY, F32_MAX, 0, F32_NAN}
#define FROM_ZERO {0, F32_MAX, F32_MINUS | F32_TINY, F32_INF}
#define UP_TO_ZERO {F32_MAX | F32_MINUS, 0, F32_INF | F32_MINUS, F32_TINY}
#define UP_TO_ONE {0, F32_ONE, F32_MINUS | F32_TINY, F32_ONE + 1}
#define BELOW_ONE {0, F32_ONE - 1, F32_MINUS | F32_TINY, F32_ONE}

/* clang-format off */
static const struct kind {
	u32 optimizer, slots, count;
	struct range range[12];
} kinds[] = {
	{ EMBENG_OPTIMIZER_NONE, 0, 0, { ANY } },
	{ EMBENG_OPTIMIZER_SGD, 0, 0, { ANY } },
	{ EMBENG_OPTIMIZER_ADAGRAD, 1, 1, { FROM_ZERO } },
	{ EMBENG_OPTIMIZER_ADAGRAD_MOMENTUM, 2, 5,
	  { ANY, SWITCH, ABOVE_ZERO, UP_TO_ONE, ABOVE_ZERO } },
	{ EMBENG_OPTIMIZER_FTRL, 2, 5, { UP_TO_ZERO, FROM_ZERO, FROM_ZERO, FROM_ZERO, SWITCH } },
	{ EMBENG_OPTIMIZER_ADAM, 2, 6,
	  { BELOW_ONE, BELOW_ONE, ABOVE_ZERO, SWITCH, SWITCH, SWITCH } },
	{ EMBENG_OPTIMIZER_MOMENTUM, 1, 2, { ANY, SWITCH } },
	{ EMBENG_OPTIMIZER_LION, 1, 2, { BELOW_ONE, BELOW_ONE } },
	{ EMBENG_OPTIMIZER_RMS_PROP, 2, 3, { UP_TO_ONE, ANY, ABOVE_ZERO } },
	{ EMBENG_OPTIMIZER_CENTERED_RMS_PROP, 3, 3, { UP_TO_ONE, ANY, ABOVE_ZERO } },
	{ EMBENG_OPTIMIZER_ADADELTA, 2, 2, { UP_TO_ONE, ABOVE_ZERO } },
	{ EMBENG_OPTIMIZER_PROXIMAL_ADAGRAD, 1, 2, { FROM_ZERO, FROM_ZERO } },
	{ EMBENG_OPTIMIZER_ASSIGN, 0, 0, { ANY } },
	{ EMBENG_OPTIMIZER_LAPROP, 2, 3, { BELOW_ONE, BELOW_ONE, ABOVE_ZERO } },
	{ EMBENG_OPTIMIZER_PROXIMAL_YOGI, 2, 5,
	  { FROM_ZERO, FROM_ZERO, BELOW_ONE, BELOW_ONE, ABOVE_ZERO } },
	{ EMBENG_OPTIMIZER_BOUNDED_ADAGRAD, 1, 3, { SWITCH, FROM_ZERO, FROM_ZERO } },
	{ EMBENG_OPTIMIZER_ONLINE_YOGI, 2, 3, { FROM_ZERO, FROM_ZERO, BELOW_ONE } },
	{ EMBENG_OPTIMIZER_FREQUENCY_ESTIMATOR, 1, 4, { UP_TO_ONE, ABOVE_ZERO, FROM_ZERO, ANY } },
	{ EMBENG_OPTIMIZER_FREQUENCY_AWARE_ADAGRAD, 2, 6,
	  { FROM_ZERO, FROM_ZERO, ABOVE_ZERO, ANY, UP_TO_ONE, ABOVE_ZERO } },
	{ EMBENG_OPTIMIZER_MDL_ADAGRAD_LIGHT, 3, 12,
	  { FROM_ZERO, UP_TO_ZERO, ANY, FROM_ZERO, FROM_ZERO, UP_TO_ONE, UP_TO_ONE, FROM_ZERO,
	    FROM_ZERO, FROM_ZERO, SWITCH, SWITCH } },
	{ EMBENG_OPTIMIZER_ROWWISE_ADAGRAD, 1, 2, { ABOVE_ZERO, SWITCH } },
	{ EMBENG_OPTIMIZER_PARTIAL_ROWWISE_ADAM, 2, 3, { BELOW_ONE, BELOW_ONE, ABOVE_ZERO } },
};
/* clang-format on */

static struct small_model of_kind(const struct kind *kind)
{
	bool one = kind->optimizer == EMBENG_OPTIMIZER_FREQUENCY_ESTIMATOR;
	struct small_model m = small_model(10, one ? 1 : 4);

	m.table.optimizer = kind->optimizer;
	m.table.slot_count = kind->slots;
	for (u32 i = 0; i < kind->count; i++)
		m.table.hyperparameter[i] = kind->range[i].low;
	return m;
}

START_TEST(test_hyperparameters)
{
	for (u32 k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		for (u32 i = 0; i < kinds[k].count; i++) {
			u64 at = TABLE_AT + offsetof(struct embeng_record_table, hyperparameter[i]);
			const struct range *r = &kinds[k].range[i];
			struct small_model m = of_kind(&kinds[k]);

			taken(&m);
			m.table.hyperparameter[i] = r->high;
			taken(&m);
			m.table.hyperparameter[i] = r->below;
			refused(&m, at, r->below, r->low);
			m.table.hyperparameter[i] = r->above;
			refused(&m, at, r->above, r->high);
		}
	}
}
END_TEST

/* Neither between the two, nor the other zero. */
START_TEST(test_switches)
{
	u64 at = TABLE_AT + offsetof(struct embeng_record_table, hyperparameter[3]);
	struct small_model m = adam();

	m.table.hyperparameter[3] = F32_HALF;
	refused(&m, at, F32_HALF, F32_ONE);
	m.table.hyperparameter[3] = F32_MINUS;
	refused(&m, at, F32_MINUS, F32_ONE);
}
END_TEST

START_TEST(test_unused_hyperparameters)
{
	for (u32 k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		for (u32 i = kinds[k].count; i < EMBENG_HYPERPARAMETERS_MAX; i++) {
			struct small_model m = of_kind(&kinds[k]);

			m.table.hyperparameter[i] = F32_MINUS;
			refused(&m,
				TABLE_AT + offsetof(struct embeng_record_table, hyperparameter[i]),
				F32_MINUS, 0);
		}
	}
}
END_TEST

/* The step rate that frequency-aware Adagrad, alone of all kinds, has. */
START_TEST(test_step_rate)
{
	struct small_model m = of_kind(&kinds[EMBENG_OPTIMIZER_FREQUENCY_AWARE_ADAGRAD]);

	ck_assert_uint_eq(m.table.optimizer, EMBENG_OPTIMIZER_FREQUENCY_AWARE_ADAGRAD);
	m.engine.rate_count = 2;
	m.table.step_rate = 1;
	refused(&m, TABLE_AT + offsetof(struct embeng_record_table, step_rate), 1, 0);
	m.table.flags |= EMBENG_TABLE_STEP_DYNAMIC;
	m.table.step_rate = 2;
	refused(&m, TABLE_AT + offsetof(struct embeng_record_table, step_rate), 2, 2);
}
END_TEST

START_TEST(test_feature)
{
	struct embeng_caps caps = blob_caps();

	REFUSE_FEATURE(table, 1, 1);
	REFUSE_FEATURE(flags, 2, EMBENG_FEATURE_FINITE_WEIGHTS);
	REFUSE_FEATURE(max_sequence_length, caps.samples + 1, caps.samples);
	REFUSE_FEATURE(reserved, 5, 0);
	REFUSE_FEATURE(max_samples, caps.samples + 1, caps.samples);
	REFUSE_FEATURE(max_ids, caps.ids + 1, caps.ids);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {test_engine,
				      test_table,
				      test_flags,
				      test_optimizer,
				      test_numbers_of_a_table,
				      test_dynamic_rate,
				      test_hyperparameters,
				      test_switches,
				      test_unused_hyperparameters,
				      test_step_rate,
				      test_quantization,
				      test_shard,
				      test_feature,
				      NULL};

	return direct_main("blob_values", tests);
}
