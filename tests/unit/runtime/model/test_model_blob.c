// SPDX-License-Identifier: MIT
/*
 * The blob that the library makes of a model: each record, byte by byte, and the hash of its
 * meaning.
 */
#include <math.h>

#include "engine/blob/blob.h"
#include "engine/hash/crc32c.h"
#include "test_model.h"

static float value_of(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* Three tables, two features, two rates, and all that a record can say. */
static struct embeng_model *golden(void)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng_table_config t = table_config("first");
	struct embeng_feature_config f = feature_config("seq");
	struct embeng_engine_config e = {
		.size = sizeof(e), .replicas = 2, .pipelining = 1, .step_depth = 3};

	t.combiner = EMBENG_SQRTN;
	t.out_of_range = EMBENG_POLICY_DROP;
	t.optimizer.has_clip_max = 1;
	t.optimizer.clip_max = 4.0f;
	t.optimizer.has_clip_weight_min = 1;
	t.optimizer.clip_weight_min = -2.0f;
	t.optimizer.weight_decay_factor = 0.75f;
	t.optimizer.multiply_weight_decay_by_rate = 1;
	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	t = table_config("second");
	t.vocabulary_size = (int64_t)1 << 40;
	t.combiner = EMBENG_SUM;
	t.out_of_range = EMBENG_POLICY_ZERO;
	t.optimizer = embeng_adagrad(0.0f);
	t.optimizer.rate_name = "slow";
	ck_assert_int_eq(embeng_model_add_table(m, &t), 1);
	t = table_config("third");
	t.optimizer.rate_name = "fast";
	t.optimizer.use_gradient_accumulation = EMBENG_OFF;
	ck_assert_int_eq(embeng_model_add_table(m, &t), 2);
	f.table = 1;
	f.max_sequence_length = 7;
	f.max_samples = 100;
	f.max_ids = 1000;
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	f = feature_config("shaped");
	f.max_sequence_length = 7;
	f.output_rank = 1;
	f.check_weights = 1;
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 1);
	ck_assert_int_eq(embeng_model_set_engine(m, &e), 0);
	return m;
}

static unsigned char *blob;
static size_t length;

static void *take(size_t at, uint16_t type, uint16_t flags, size_t bytes)
{
	struct embeng_record *head = (struct embeng_record *)(blob + at);

	ck_assert_uint_le(at + bytes, length);
	ck_assert_uint_eq(head->type, type);
	ck_assert_uint_eq(head->flags, flags);
	ck_assert_uint_eq(head->length, bytes);
	return head;
}

static void make(const struct embeng_model *m)
{
	void *bytes;

	ck_assert_int_eq(embeng_model_blob(m, &bytes, &length), 0);
	blob = bytes;
}

/* Where the records of the golden model begin. */
enum {
	AT_ENGINE = 32,
	AT_TABLE = AT_ENGINE + 32,
	AT_FEATURE = AT_TABLE + 3 * 152,
	AT_RATE = AT_FEATURE + 2 * 40,
	AT_NAME = AT_RATE + 2 * 8,
	AT_END = AT_NAME + 7 * 80,
};

START_TEST(test_header)
{
	struct embeng_model *m = golden();
	struct embeng_blob_header *h;
	uint32_t crc;

	make(m);
	h = (struct embeng_blob_header *)blob;
	ck_assert_uint_eq(length, AT_END);
	ck_assert_uint_eq(h->magic, 0x4d424d45);
	ck_assert_uint_eq(h->version, 1);
	ck_assert_uint_eq(h->length, AT_END);
	ck_assert_uint_eq(h->record_count, 1 + 3 + 2 + 2 + 7);
	ck_assert_uint_eq(h->hash, embeng_model_hash(m));
	ck_assert_uint_eq(h->hash, fnv1a(FNV1A_START, blob + AT_ENGINE, AT_NAME - AT_ENGINE));
	crc = h->crc32c;
	h->crc32c = 0;
	ck_assert_uint_eq(crc, crc32c(0, blob, length));
	free(blob);
	embeng_model_free(m);
}
END_TEST

START_TEST(test_engine_record)
{
	struct embeng_model *m = golden();
	struct embeng_record_engine *e;

	make(m);
	e = take(AT_ENGINE, EMBENG_RECORD_ENGINE, 1, sizeof(*e));
	ck_assert_uint_eq(e->replicas, 2);
	ck_assert_uint_eq(e->flags, EMBENG_ENGINE_PIPELINING);
	ck_assert_uint_eq(e->table_count, 3);
	ck_assert_uint_eq(e->feature_count, 2);
	ck_assert_uint_eq(e->rate_count, 2);
	ck_assert_uint_eq(e->step_depth, 3);
	free(blob);
	embeng_model_free(m);
}
END_TEST

START_TEST(test_table_with_all_options)
{
	struct embeng_model *m = golden();
	struct embeng_record_table *t;

	make(m);
	t = take(AT_TABLE, EMBENG_RECORD_TABLE, 1, sizeof(*t));
	ck_assert_uint_eq(t->rows, 8);
	ck_assert_uint_eq(t->dim, 3);
	ck_assert_uint_eq(t->flags, EMBENG_TABLE_ACCUMULATE | EMBENG_TABLE_DECAY_BY_RATE);
	ck_assert_uint_eq(t->combiner, EMBENG_COMBINER_SQRTN);
	ck_assert_uint_eq(t->out_of_range, EMBENG_OUT_OF_RANGE_DROP);
	ck_assert_uint_eq(t->optimizer, EMBENG_OPTIMIZER_SGD);
	ck_assert_uint_eq(t->slot_count, 0);
	ck_assert(value_of(t->rate) == 0.5f);
	ck_assert(value_of(t->weight_decay) == 0.75f);
	ck_assert(value_of(t->clip_gradient_min) == -INFINITY);
	ck_assert(value_of(t->clip_gradient_max) == 4.0f);
	ck_assert(value_of(t->clip_weight_min) == -2.0f);
	ck_assert(value_of(t->clip_weight_max) == INFINITY);
	for (int i = 0; i < EMBENG_SLOTS_MAX; i++)
		ck_assert_uint_eq(t->slot_start[i], 0);
	for (int i = 0; i < EMBENG_HYPERPARAMETERS_MAX; i++)
		ck_assert_uint_eq(t->hyperparameter[i], 0);
	ck_assert_uint_eq(t->step_rate | t->max_norm, 0);
	free(blob);
	embeng_model_free(m);
}
END_TEST

START_TEST(test_tables_with_rates_and_slots)
{
	struct embeng_model *m = golden();
	struct embeng_record_table *t;

	make(m);
	t = take(AT_TABLE + sizeof(*t), EMBENG_RECORD_TABLE, 1, sizeof(*t));
	ck_assert_uint_eq(t->rows, 1ull << 40);
	ck_assert_uint_eq(t->flags, EMBENG_TABLE_ACCUMULATE | EMBENG_TABLE_RATE_DYNAMIC);
	ck_assert_uint_eq(t->combiner, EMBENG_COMBINER_SUM);
	ck_assert_uint_eq(t->out_of_range, EMBENG_OUT_OF_RANGE_ZERO);
	ck_assert_uint_eq(t->optimizer, EMBENG_OPTIMIZER_ADAGRAD);
	ck_assert_uint_eq(t->slot_count, 1);
	ck_assert_uint_eq(t->rate, 0);
	ck_assert_uint_eq(t->weight_decay, 0);
	ck_assert(value_of(t->slot_start[0]) == 0.1f);
	ck_assert_uint_eq(t->slot_start[1], 0);
	t = take(AT_TABLE + 2 * sizeof(*t), EMBENG_RECORD_TABLE, 1, sizeof(*t));
	ck_assert_uint_eq(t->flags, EMBENG_TABLE_RATE_DYNAMIC);
	ck_assert_uint_eq(t->combiner, EMBENG_COMBINER_MEAN);
	ck_assert_uint_eq(t->out_of_range, EMBENG_OUT_OF_RANGE_ERROR);
	ck_assert_uint_eq(t->rate, 1);
	free(blob);
	embeng_model_free(m);
}
END_TEST

START_TEST(test_feature_records)
{
	struct embeng_model *m = golden();
	struct embeng_record_feature *f;

	make(m);
	f = take(AT_FEATURE, EMBENG_RECORD_FEATURE, 1, sizeof(*f));
	ck_assert_uint_eq(f->table, 1);
	ck_assert_uint_eq(f->flags, 0);
	ck_assert_uint_eq(f->max_sequence_length, 7);
	ck_assert_uint_eq(f->reserved, 0);
	ck_assert_uint_eq(f->max_samples, 100);
	ck_assert_uint_eq(f->max_ids, 1000);
	f = take(AT_FEATURE + sizeof(*f), EMBENG_RECORD_FEATURE, 1, sizeof(*f));
	ck_assert_uint_eq(f->table, 0);
	ck_assert_uint_eq(f->flags, EMBENG_FEATURE_FINITE_WEIGHTS);
	ck_assert_uint_eq(f->max_sequence_length, 0);
	free(blob);
	embeng_model_free(m);
}
END_TEST

START_TEST(test_rate_and_name_records)
{
	static const struct {
		uint32_t of, index;
		const char *name;
	} names[] = {
		{EMBENG_RECORD_TABLE, 0, "first"},    {EMBENG_RECORD_TABLE, 1, "second"},
		{EMBENG_RECORD_TABLE, 2, "third"},    {EMBENG_RECORD_FEATURE, 0, "seq"},
		{EMBENG_RECORD_FEATURE, 1, "shaped"}, {EMBENG_RECORD_RATE, 0, "slow"},
		{EMBENG_RECORD_RATE, 1, "fast"},
	};
	struct embeng_model *m = golden();

	make(m);
	take(AT_RATE, EMBENG_RECORD_RATE, 1, 8);
	take(AT_RATE + 8, EMBENG_RECORD_RATE, 1, 8);
	for (size_t i = 0; i < COUNT(names); i++) {
		struct embeng_record_name *n;

		n = take(AT_NAME + i * sizeof(*n), EMBENG_RECORD_NAME, 0, sizeof(*n));
		ck_assert_uint_eq(n->of, names[i].of);
		ck_assert_uint_eq(n->index, names[i].index);
		ck_assert_str_eq(n->name, names[i].name);
		ck_assert_uint_eq(n->name[63], 0);
	}
	free(blob);
	embeng_model_free(m);
}
END_TEST

START_TEST(test_engine_takes_it)
{
	struct embeng_caps caps = {.features = EMBENG_CAP_PIPELINING | EMBENG_CAP_QUANTIZATION,
				   .dim = 1024,
				   .tables = 16,
				   .model_features = 16,
				   .replicas = 8,
				   .step_depth = 4,
				   .ids = 1 << 20,
				   .samples = 1 << 20,
				   .combiners = 7,
				   .optimizers = 7};
	struct embeng_model *m = golden();
	struct fault fault = {0};
	struct blob parsed;

	make(m);
	ck_assert_uint_eq(blob_parse(blob, length, &caps, &parsed, &fault), 0);
	ck_assert_uint_eq(parsed.hash, embeng_model_hash(m));
	blob_free(&parsed);
	free(blob);
	embeng_model_free(m);
}
END_TEST

/* L2 in place of decay, frequencies and the limit of lengths; the two epsilons of torch. */
START_TEST(test_options_of_torch)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng_table_config t = table_config("first");
	struct embeng_record_table *r;

	t.optimizer = embeng_adagrad_epsilon(0.5f);
	t.optimizer.weight_decay_factor = 0.25f;
	t.optimizer.weight_decay_in_gradient = 1;
	t.optimizer.scale_by_frequency = 1;
	t.optimizer.max_norm = 1.5f;
	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	t = table_config("second");
	t.optimizer = embeng_adam_epsilon_hat(0.5f);
	t.optimizer.weight_decay_in_gradient = 1; /* without a factor: nothing */
	t.optimizer.max_norm = -0.0f;
	ck_assert_int_eq(embeng_model_add_table(m, &t), 1);
	make(m);
	r = take(AT_TABLE, EMBENG_RECORD_TABLE, 1, sizeof(*r));
	ck_assert_uint_eq(r->flags, EMBENG_TABLE_ACCUMULATE | EMBENG_TABLE_DECAY_GRADIENT |
					    EMBENG_TABLE_BY_FREQUENCY);
	ck_assert(value_of(r->weight_decay) == 0.25f && value_of(r->max_norm) == 1.5f);
	ck_assert(value_of(r->hyperparameter[0]) == 1e-10f && !r->slot_start[0]);
	r = take(AT_TABLE + 152, EMBENG_RECORD_TABLE, 1, sizeof(*r));
	ck_assert_uint_eq(r->flags, EMBENG_TABLE_ACCUMULATE);
	ck_assert_uint_eq(r->max_norm, 0);
	ck_assert(value_of(r->hyperparameter[5]) == 1.0f);
	free(blob);
	embeng_model_free(m);
}
END_TEST

static uint64_t hash_of(const char *name, float decay, int by_rate, float rate)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng_table_config t = table_config(name);
	uint64_t hash;

	t.optimizer.learning_rate = rate;
	t.optimizer.weight_decay_factor = decay;
	t.optimizer.multiply_weight_decay_by_rate = by_rate;
	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	hash = embeng_model_hash(m);
	embeng_model_free(m);
	return hash;
}

/* Behind the tables, before the features, for those tables that have one. */
START_TEST(test_quantization_records)
{
	const size_t at = AT_TABLE + 2 * 152;
	struct embeng_model *m = embeng_model_new();
	struct embeng_record_quantization *r;
	struct embeng_table_config t = table_config("plain");
	struct embeng_feature_config f = feature_config("f");

	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	t.name = "levels";
	t.quantization = (struct embeng_quantization){256, -0.0f, 2.5f};
	ck_assert_int_eq(embeng_model_add_table(m, &t), 1);
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	make(m);
	r = take(at, EMBENG_RECORD_QUANTIZATION, 1, sizeof(*r));
	ck_assert_uint_eq(r->table, 1);
	ck_assert_uint_eq(r->num_buckets, 256);
	ck_assert_uint_eq(r->lower, 0);
	ck_assert(value_of(r->upper) == 2.5f);
	take(at + sizeof(*r), EMBENG_RECORD_FEATURE, 1, sizeof(struct embeng_record_feature));
	free(blob);
	embeng_model_free(m);
}
END_TEST

START_TEST(test_hash_is_of_the_meaning)
{
	uint64_t hash = hash_of("a", 0.0f, 0, 0.5f);

	ck_assert_uint_eq(hash_of("b", 0.0f, 0, 0.5f), hash);
	ck_assert_uint_eq(hash_of("a", -0.0f, 1, 0.5f), hash);
	ck_assert_uint_ne(hash_of("a", 0.5f, 0, 0.5f), hash);
	ck_assert_uint_ne(hash_of("a", 0.0f, 0, 0.25f), hash);
	ck_assert_uint_eq(embeng_model_hash(NULL), 0);
}
END_TEST

START_TEST(test_table_for_inference_and_default_engine)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng_table_config t = table_config("t");
	struct embeng_engine_config options = {.size = sizeof(options)};
	struct embeng_record_engine *e;
	struct embeng_record_table *r;

	memset(&t.optimizer, 0, sizeof(t.optimizer));
	t.out_of_range = EMBENG_POLICY_CLAMP;
	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	ck_assert_int_eq(embeng_model_set_engine(m, &options), 0);
	make(m);
	e = take(AT_ENGINE, EMBENG_RECORD_ENGINE, 1, sizeof(*e));
	ck_assert_uint_eq(e->replicas, 1);
	ck_assert_uint_eq(e->flags, 0);
	r = take(AT_TABLE, EMBENG_RECORD_TABLE, 1, sizeof(*r));
	ck_assert_uint_eq(r->optimizer, EMBENG_OPTIMIZER_NONE);
	ck_assert_uint_eq(r->slot_count, 0);
	ck_assert_uint_eq(r->out_of_range, EMBENG_OUT_OF_RANGE_CLAMP);
	ck_assert_uint_eq(r->rate, 0);
	ck_assert(value_of(r->clip_weight_min) == -INFINITY);
	ck_assert(value_of(r->clip_gradient_max) == INFINITY);
	free(blob);
	embeng_model_free(m);
}
END_TEST

START_TEST(test_missing_arguments)
{
	struct embeng_model *m = golden();
	void *bytes = m;
	size_t bytes_length = 5;

	ASSERT_REFUSED(embeng_model_blob(NULL, &bytes, &bytes_length), EINVAL, "model");
	ASSERT_REFUSED(embeng_model_blob(m, NULL, &bytes_length), EINVAL, "bytes");
	ASSERT_REFUSED(embeng_model_blob(m, &bytes, NULL), EINVAL, "length");
	ck_assert_ptr_eq(bytes, m);
	ck_assert_uint_eq(bytes_length, 5);
	embeng_model_free(m);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_header,
		test_engine_record,
		test_table_with_all_options,
		test_tables_with_rates_and_slots,
		test_feature_records,
		test_rate_and_name_records,
		test_engine_takes_it,
		test_options_of_torch,
		test_quantization_records,
		test_hash_is_of_the_meaning,
		test_table_for_inference_and_default_engine,
		test_missing_arguments,
	};

	return run_tests("model_blob", tests, COUNT(tests));
}
