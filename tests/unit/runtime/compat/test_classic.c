// SPDX-License-Identifier: MIT
/* Specifications of the classic interface give the right models, and invalid ones are refused. */
#include <math.h>

#include "classic_help.h"

static struct embeng_classic_table table(const char *name, int64_t rows, int64_t dim)
{
	return (struct embeng_classic_table){.size = sizeof(struct embeng_classic_table),
					     .name = name,
					     .vocabulary_size = rows,
					     .dimension = dim,
					     .combiner = EMBENG_SUM};
}

static struct embeng_classic_feature feature(const char *name, const char *table, int64_t length)
{
	return (struct embeng_classic_feature){.size = sizeof(struct embeng_classic_feature),
					       .name = name,
					       .table = table,
					       .max_sequence_length = length};
}

/* Two tables, three features, none in the order of its name. */
struct dictionaries {
	struct embeng_classic_table tables[2];
	struct embeng_classic_feature features[3];
	struct embeng_classic_spec spec;
};

static void dictionaries(struct dictionaries *d)
{
	d->tables[0] = table("users", 9, 2);
	d->tables[1] = table("items", 7, 3);
	d->features[0] = feature("watched", "items", 2);
	d->features[1] = feature("user", "users", 0);
	d->features[2] = feature("liked", "items", 0);
	d->spec = (struct embeng_classic_spec){
		.size = sizeof(d->spec),
		.tables = d->tables,
		.table_count = 2,
		.features = d->features,
		.feature_count = 3,
		.optimizer = embeng_adagrad(0.5f),
		.batch_size = 4,
	};
}

START_TEST(tables_and_features_are_sorted)
{
	const char *const features[] = {"liked", "user", "watched"};
	struct embeng_classic_packing packing;
	struct embeng_classic *c;
	struct dictionaries d;
	int64_t first, count;

	dictionaries(&d);
	c = make(&d.spec);
	ck_assert_str_eq(embeng_model_table_name(embeng_classic_model(c), 0), "items");
	ck_assert_str_eq(embeng_model_table_name(embeng_classic_model(c), 1), "users");
	for (size_t i = 0; i < 3; i++)
		ck_assert_str_eq(embeng_model_feature_name(embeng_classic_model(c), i),
				 features[i]);
	ck_assert_int_eq(table_of(c, 0).vocabulary_size, 7);
	ck_assert_int_eq(table_of(c, 0).optimizer.kind, EMBENG_ADAGRAD);
	/* One place for what is combined, max_sequence_length for a sequence. */
	help_expect_ok(embeng_classic_packing(c, 0, &packing));
	ck_assert(packing.batch_size == 4 && packing.num_features == 3 && packing.dim == 3);
	help_expect_ok(embeng_classic_packing(c, 1, &packing));
	ck_assert(packing.batch_size == 4 && packing.num_features == 1 && packing.dim == 2);
	help_expect_ok(embeng_classic_place(c, 0, &first, &count));
	ck_assert(first == 0 && count == 1);
	help_expect_ok(embeng_classic_place(c, 1, &first, &count));
	ck_assert(first == 0 && count == 1);
	help_expect_ok(embeng_classic_place(c, 2, &first, &count));
	ck_assert(first == 1 && count == 2);
	embeng_classic_free(c);
}
END_TEST

START_TEST(tables_have_their_own_settings)
{
	const struct embeng_optimizer own = embeng_adam(0.25f);
	struct embeng_classic *c;
	struct dictionaries d;

	dictionaries(&d);
	d.tables[0].optimizer = &own;
	d.tables[0].initializer = (struct embeng_initializer){.kind = EMBENG_INIT_CONSTANT,
							      .a = 2.5f};
	d.tables[1].combiner = EMBENG_SQRTN;
	d.tables[0].rate_name = "slow";
	d.tables[1].has_learning_rate = 1;
	d.tables[1].learning_rate = 0.125f;
	d.spec.has_clipping_limit = 1;
	d.spec.clipping_limit = 3;
	d.features[0].weight_key = "watched_for";
	c = make(&d.spec);
	ck_assert_int_eq(table_of(c, 1).optimizer.kind, EMBENG_ADAM);
	ck_assert_int_eq(table_of(c, 1).initializer.kind, EMBENG_INIT_CONSTANT);
	ck_assert(table_of(c, 1).initializer.a == 2.5f);
	ck_assert_int_eq(table_of(c, 1).combiner, EMBENG_SUM);
	ck_assert_int_eq(table_of(c, 0).combiner, EMBENG_SQRTN);
	ck_assert_int_eq(table_of(c, 0).initializer.kind, EMBENG_INIT_TRUNCATED_NORMAL);
	ck_assert_str_eq(table_of(c, 1).optimizer.rate_name, "slow");
	ck_assert_int_eq(table_of(c, 0).optimizer.kind, EMBENG_ADAGRAD);
	ck_assert(table_of(c, 0).optimizer.learning_rate == 0.125f);
	for (size_t t = 0; t < 2; t++) {
		ck_assert(table_of(c, t).optimizer.has_clip_min &&
			  table_of(c, t).optimizer.has_clip_max);
		ck_assert(table_of(c, t).optimizer.clip_min == -3 &&
			  table_of(c, t).optimizer.clip_max == 3);
	}
	ck_assert_str_eq(embeng_classic_weight_key(c, 2), "watched_for");
	ck_assert_ptr_null(embeng_classic_weight_key(c, 1));
	ck_assert_ptr_null(embeng_classic_weight_key(c, 3));
	ck_assert_ptr_null(embeng_classic_weight_key(NULL, 0));
	embeng_classic_free(c);
}
END_TEST

START_TEST(options_of_the_whole)
{
	struct embeng_engine_config engine = {.size = sizeof(engine)};
	struct embeng_tpu_settings settings = {.size = sizeof(settings)};
	struct embeng_classic *c;
	struct dictionaries d;

	dictionaries(&d);
	d.spec.partition_strategy = "mod";
	d.spec.replicas = 2;
	d.spec.hosts = 3;
	d.spec.pipelining = 1;
	d.spec.profile_directory = "/profiles";
	d.spec.mode = EMBENG_CLASSIC_BACKWARD_PASS_ONLY;
	c = make(&d.spec);
	help_expect_ok(embeng_model_get_engine(embeng_classic_model(c), &engine));
	ck_assert(engine.replicas == 2 && engine.hosts == 3 && engine.pipelining &&
		  engine.sharding == EMBENG_SHARDING_MOD);
	help_expect_ok(embeng_classic_settings(c, &settings));
	ck_assert_int_eq(settings.mode, EMBENG_TPU_BACKWARD_PASS_ONLY);
	ck_assert_int_eq(settings.form, EMBENG_TPU_COUNTS);
	ck_assert_str_eq(settings.profile_directory, "/profiles");
	embeng_classic_free(c);
	d.spec.mode = EMBENG_CLASSIC_INFERENCE;
	d.spec.optimizer.kind = EMBENG_OPTIMIZER_NO;
	d.spec.partition_strategy = "div";
	c = make(&d.spec);
	help_expect_ok(embeng_classic_settings(c, &settings));
	ck_assert_int_eq(settings.mode, EMBENG_TPU_INFERENCE);
	ck_assert_int_eq(table_of(c, 0).optimizer.kind, EMBENG_OPTIMIZER_NO);
	help_expect_ok(embeng_model_get_engine(embeng_classic_model(c), &engine));
	ck_assert_int_eq(engine.sharding, EMBENG_SHARDING_DIV);
	settings.size = 1;
	help_expect(embeng_classic_settings(c, &settings), -EINVAL, "settings with their size");
	help_expect(embeng_classic_settings(c, NULL), -EINVAL, "must be given");
	embeng_classic_free(c);
}
END_TEST

/* The protobuf of both: hosts and sharding, batch size and num_features. */
START_TEST(as_a_protobuf)
{
	struct embeng_tpu_settings settings = {.size = sizeof(settings)}, read = settings;
	struct embeng_tpu *tpu = NULL;
	struct embeng_classic *c;
	struct dictionaries d;
	size_t length;
	void *bytes;

	dictionaries(&d);
	d.spec.hosts = 2;
	d.spec.partition_strategy = "mod";
	c = make(&d.spec);
	help_expect_ok(embeng_classic_settings(c, &settings));
	help_expect_ok(embeng_tpu_export(embeng_classic_model(c), &settings, &bytes, &length));
	help_expect_ok(embeng_tpu_import(bytes, length, NULL, &tpu));
	help_expect_ok(embeng_tpu_get_settings(tpu, &read));
	ck_assert_int_eq(read.hosts, 2);
	ck_assert_int_eq(read.sharding, EMBENG_TPU_MOD);
	ck_assert_int_eq(read.mode, EMBENG_TPU_TRAINING);
	ck_assert_int_eq(read.form, EMBENG_TPU_COUNTS);
	free(bytes);
	embeng_tpu_free(tpu);
	embeng_classic_free(c);
}
END_TEST

START_TEST(dictionaries_refused)
{
	struct dictionaries d;

#define REFUSE(change, code, text) \
	do { \
		dictionaries(&d); \
		change; \
		refuse(&d.spec, code, text); \
	} while (0)
	REFUSE(d.spec.table_count = 0, -EINVAL, "exactly one of feature columns and the pair");
	REFUSE(d.spec.feature_count = 0, -EINVAL, "exactly one of feature columns and the pair");
	REFUSE(d.spec.table_count = d.spec.feature_count = 0, -EINVAL, "exactly one of");
	REFUSE(d.spec.column_count = 1, -EINVAL, "there are 1 columns, 2 tables and 3 features");
	REFUSE((d.spec.column_count = 1, d.spec.table_count = 0), -EINVAL, "exactly one of");
	REFUSE(d.spec.tables = NULL, -EINVAL, "is NULL, its count is not 0");
	REFUSE(d.spec.features = NULL, -EINVAL, "is NULL, its count is not 0");
	REFUSE(d.spec.size = 8, -EINVAL, "size 8 is not possible");
	REFUSE(d.tables[0].size = 8, -EINVAL, "size 8 is not possible");
	REFUSE(d.tables[0].combiner = EMBENG_MAX, -EINVAL, "must be mean, sum or sqrtn");
	REFUSE(d.features[0].size = 8, -EINVAL, "size 8 is not possible");
	REFUSE(d.spec.partition_strategy = "hash", -EINVAL, "\"hash\" is neither \"div\" nor");
	REFUSE(d.spec.mode = (enum embeng_classic_mode)3, -EINVAL, "mode 3 is none of");
	REFUSE((d.spec.has_clipping_limit = 1, d.spec.clipping_limit = -1), -ERANGE,
	       "clipping_limit -1");
	REFUSE((d.spec.has_clipping_limit = 1, d.spec.clipping_limit = INFINITY), -ERANGE,
	       "clipping_limit inf");
	REFUSE(d.spec.batch_size = 0, -ERANGE, "batch_size 0 is not a multiple");
	REFUSE(d.spec.replicas = 3, -ERANGE, "batch_size 4 is not a multiple, from 1, of 3");
	REFUSE(d.spec.hosts = 0x80000000u, -ERANGE, "2147483648 hosts");
	REFUSE(d.spec.optimizer = embeng_lion(0.1f), -EINVAL, "not lion");
	REFUSE(d.spec.optimizer.kind = EMBENG_OPTIMIZER_NO, -EINVAL, "not none");
	REFUSE(d.tables[0].name = NULL, -EINVAL, "table 0 of the specification has no name");
	REFUSE(d.features[1].name = NULL, -EINVAL, "feature 1 of the specification has no name");
	REFUSE(d.features[1].table = NULL, -EINVAL, "or no table");
	REFUSE((d.tables[0].has_learning_rate = 1, d.tables[0].rate_name = "r"), -EINVAL,
	       "a learning rate and a learning rate function");
	REFUSE(d.tables[0].name = "items", -EEXIST, "table items is given twice");
	REFUSE(d.features[0].name = "user", -EEXIST, "feature user is given twice");
	REFUSE(d.features[0].table = "films", -ENOENT, "feature watched: there is no table films");
	REFUSE(d.features[1].table = "items", -EINVAL, "table users is used by no feature");
	REFUSE(d.features[0].max_sequence_length = -1, -ERANGE, "max_sequence_length -1");
	REFUSE((d.features[0].max_sequence_length = INT64_MAX,
		d.features[2].max_sequence_length = INT64_MAX),
	       -ERANGE, "table items: its features have more places");
	REFUSE(d.tables[1].dimension = 0, -ERANGE, "dim 0");
	REFUSE(d.tables[1].vocabulary_size = 0, -ERANGE, "vocabulary_size 0");
	help_expect(embeng_classic_new(NULL, &(struct embeng_classic *){NULL}, NULL), -EINVAL,
		    "NULL was given");
	dictionaries(&d);
	help_expect(embeng_classic_new(&d.spec, NULL, NULL), -EINVAL, "out must be given");
	ck_assert_ptr_null(embeng_classic_model(NULL));
	embeng_classic_free(NULL);
}
END_TEST

/* -- optimizers ---------------------------------------------------------- */

START_TEST(optimizers_have_their_old_defaults)
{
	struct embeng_optimizer o = {0};

	help_expect_ok(embeng_classic_optimizer(EMBENG_ADAM, 0.5f, &o));
	ck_assert(o.kind == EMBENG_ADAM && o.learning_rate == 0.5f && o.epsilon == 1e-8f);
	help_expect_ok(embeng_classic_optimizer(EMBENG_SGD, 0.25f, &o));
	ck_assert(o.kind == EMBENG_SGD && o.use_gradient_accumulation == EMBENG_OFF);
	help_expect_ok(embeng_classic_optimizer(EMBENG_FTRL, 0.25f, &o));
	ck_assert(o.learning_rate_power == -0.5f && o.initial_accumulator_value == 0.1f);
	help_expect(embeng_classic_optimizer(EMBENG_LAPROP, 0.5f, &o), -EINVAL, "had no optimizer");
	help_expect(embeng_classic_optimizer(EMBENG_OPTIMIZER_NO, 0.5f, &o), -EINVAL, "had no");
	help_expect(embeng_classic_optimizer(EMBENG_SGD, 0.5f, NULL), -EINVAL, "must be given");
	ck_assert(o.kind == EMBENG_FTRL);
}
END_TEST

/* sgd's accumulation is off there, and clipping switches it on; others are refused. */
START_TEST(clipping_switches_accumulation_on)
{
	struct embeng_classic *c;
	struct dictionaries d;

	dictionaries(&d);
	help_expect_ok(embeng_classic_optimizer(EMBENG_SGD, 0.5f, &d.spec.optimizer));
	c = make(&d.spec);
	ck_assert_int_eq(table_of(c, 0).optimizer.use_gradient_accumulation, EMBENG_OFF);
	embeng_classic_free(c);
	d.spec.has_clipping_limit = 1;
	d.spec.clipping_limit = 1;
	c = make(&d.spec);
	ck_assert_int_eq(table_of(c, 0).optimizer.use_gradient_accumulation, EMBENG_ON);
	embeng_classic_free(c);
	d.spec.optimizer = embeng_adagrad(0.5f);
	d.spec.optimizer.use_gradient_accumulation = EMBENG_OFF;
	refuse(&d.spec, -EINVAL, "accumulation");
}
END_TEST

START_TEST(slots_have_their_old_names)
{
	ck_assert_str_eq(embeng_classic_slot_suffix(EMBENG_ADAGRAD, 0), "/Adagrad");
	ck_assert_str_eq(embeng_classic_slot_suffix(EMBENG_PROXIMAL_ADAGRAD, 0),
			 "/ProximalAdagrad");
	ck_assert_str_eq(embeng_classic_slot_suffix(EMBENG_ADAM, 0), "/Adam/m");
	ck_assert_str_eq(embeng_classic_slot_suffix(EMBENG_ADAM, 1), "/Adam/v");
	ck_assert_str_eq(embeng_classic_slot_suffix(EMBENG_FTRL, 0), "/Ftrl");
	ck_assert_str_eq(embeng_classic_slot_suffix(EMBENG_FTRL, 1), "/Ftrl_1");
	ck_assert_str_eq(embeng_classic_slot_suffix(EMBENG_MOMENTUM, 0), "/Momentum");
	ck_assert_str_eq(embeng_classic_slot_suffix(EMBENG_RMS_PROP, 0), "/RMSProp/ms");
	ck_assert_str_eq(embeng_classic_slot_suffix(EMBENG_RMS_PROP, 1), "/RMSProp/mom");
	ck_assert_ptr_null(embeng_classic_slot_suffix(EMBENG_ADAGRAD, 1));
	ck_assert_ptr_null(embeng_classic_slot_suffix(EMBENG_ADAM, 2));
	ck_assert_ptr_null(embeng_classic_slot_suffix(EMBENG_SGD, 0));
	ck_assert_ptr_null(embeng_classic_slot_suffix(EMBENG_LION, 0));
}
END_TEST

RUN_SUITE("classic", tables_and_features_are_sorted, tables_have_their_own_settings,
	  options_of_the_whole, as_a_protobuf, dictionaries_refused,
	  optimizers_have_their_old_defaults, clipping_switches_accumulation_on,
	  slots_have_their_old_names)
