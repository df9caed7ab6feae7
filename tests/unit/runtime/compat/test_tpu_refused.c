// SPDX-License-Identifier: MIT
/* Configurations, models and calls that are refused, each for one reason. */
#define _GNU_SOURCE
#include "runtime/src/compat/tpu/wire.h"
#include "suite.h"
#include "tpu_help.h"

START_TEST(test_imports)
{
	struct golden g;
	size_t count = 0;

	for (golden_open(&g); golden_next(&g, "refused"); count++) {
		struct bytes b = golden_bytes(g.words[2]);
		struct embeng_tpu *tpu = (struct embeng_tpu *)&g;

		assert_words(&g, embeng_tpu_import(b.data, b.length, NULL, &tpu));
		ck_assert_ptr_eq(tpu, &g);
		free(b.data);
	}
	ck_assert_uint_ge(count, 60);
}
END_TEST

START_TEST(test_optimizer_imports)
{
	struct golden g;
	size_t count = 0;

	for (golden_open(&g); golden_next(&g, "optimizer-refused"); count++) {
		struct embeng_optimizer o = {.learning_rate = 3.0f};
		struct bytes b = golden_bytes(g.words[2]);
		int32_t tag = 77;

		assert_words(&g, embeng_tpu_import_optimizer(b.data, b.length, &o, &tag));
		ck_assert(o.learning_rate == 3.0f && tag == 77);
		free(b.data);
	}
	ck_assert_uint_ge(count, 7);
}
END_TEST

START_TEST(test_too_many_bytes)
{
	uint8_t *bytes = calloc(1, TPU_MOST_BYTES + 1);
	struct embeng_tpu *tpu = NULL;

	ASSERT_REFUSED(embeng_tpu_import(bytes, TPU_MOST_BYTES + 1, NULL, &tpu), ERANGE,
		       "16777217 bytes", "16777216");
	ASSERT_REFUSED(embeng_tpu_import(bytes, TPU_MOST_BYTES, NULL, &tpu), EBADMSG, "byte 0");
	free(bytes);
}
END_TEST

static int refuse_table(void *arg, size_t index, struct embeng_table_config *config)
{
	(void)arg;
	(void)config;
	return index == 1 ? -ENOENT : 0;
}

static int refuse_feature(void *arg, size_t index, struct embeng_feature_config *config)
{
	(void)arg;
	config->max_samples = 1;
	return index == 2 ? -EBUSY : 0;
}

static struct bytes newer_form(void)
{
	struct bytes b = {NULL, 0};
	struct golden g;

	for (golden_open(&g); golden_next(&g, "exact");) {
		if (!strcmp(g.words[1], "newer form"))
			b = golden_bytes(g.words[2]);
	}
	ck_assert_ptr_nonnull(b.data);
	return b;
}

START_TEST(test_hooks)
{
	struct embeng_tpu_hooks hooks = {.size = sizeof(hooks), .table = refuse_table};
	struct embeng_tpu *tpu = NULL;
	struct bytes b = newer_form();

	ASSERT_REFUSED(embeng_tpu_import(b.data, b.length, &hooks, &tpu), ENOENT,
		       "table_descriptor[1]", "hook");
	hooks.table = NULL;
	hooks.feature = refuse_feature;
	ASSERT_REFUSED(embeng_tpu_import(b.data, b.length, &hooks, &tpu), EBUSY,
		       "feature_descriptor[2]", "hook");
	hooks.size = 1;
	ASSERT_REFUSED(embeng_tpu_import(b.data, b.length, &hooks, &tpu), EINVAL,
		       "embeng_tpu_hooks", "size 1");
	free(b.data);
}
END_TEST

START_TEST(test_missing_arguments)
{
	struct embeng_tpu_settings s = {.size = sizeof(s)};
	struct embeng_optimizer o = embeng_sgd(1.0f);
	struct embeng_model *m = embeng_model_new();
	struct embeng_tpu *tpu = NULL;
	int32_t tag;
	void *bytes;
	size_t length;

	ASSERT_REFUSED(embeng_tpu_import(NULL, 1, NULL, &tpu), EINVAL, "bytes");
	ASSERT_REFUSED(embeng_tpu_import("", 0, NULL, NULL), EINVAL, "out");
	ASSERT_REFUSED(embeng_tpu_import_optimizer(NULL, 1, &o, &tag), EINVAL, "bytes");
	ASSERT_REFUSED(embeng_tpu_import_optimizer("", 0, NULL, &tag), EINVAL, "optimizer");
	ASSERT_REFUSED(embeng_tpu_import_optimizer("", 0, &o, NULL), EINVAL, "tag");
	ASSERT_REFUSED(embeng_tpu_export(NULL, NULL, &bytes, &length), EINVAL, "model");
	ASSERT_REFUSED(embeng_tpu_export(m, NULL, NULL, &length), EINVAL, "bytes");
	ASSERT_REFUSED(embeng_tpu_export(m, NULL, &bytes, NULL), EINVAL, "length");
	ASSERT_REFUSED(embeng_tpu_export_optimizer(NULL, 0, &bytes, &length), EINVAL, "optimizer");
	ASSERT_REFUSED(embeng_tpu_export_optimizer(&o, 0, NULL, &length), EINVAL, "bytes");
	ASSERT_REFUSED(embeng_tpu_export_optimizer(&o, 0, &bytes, NULL), EINVAL, "length");
	ASSERT_REFUSED(embeng_tpu_get_settings(NULL, &s), EINVAL, "tpu");
	ck_assert_int_eq(embeng_tpu_import(NULL, 0, NULL, &tpu), 0);
	ASSERT_REFUSED(embeng_tpu_get_settings(tpu, NULL), EINVAL, "settings");
	s.size = 8;
	ASSERT_REFUSED(embeng_tpu_get_settings(tpu, &s), EINVAL, "size");
	ASSERT_REFUSED(embeng_tpu_get_unknown(NULL, 0, NULL), EINVAL, "unknown");
	embeng_tpu_free(tpu);
	embeng_model_free(m);
}
END_TEST

START_TEST(test_optimizer_exports)
{
	struct embeng_optimizer o = {.size = sizeof(o)};
	void *bytes = NULL;
	size_t length = 5;

	ASSERT_REFUSED(embeng_tpu_export_optimizer(&o, 0, &bytes, &length), EINVAL, "OPTIMIZER_NO");
	o = embeng_adam_corrected(0.5f);
	ASSERT_REFUSED(embeng_tpu_export_optimizer(&o, 0, &bytes, &length), ENOTSUP, "adam",
		       "bias_correction");
	o = embeng_laprop(0.5f);
	ASSERT_REFUSED(embeng_tpu_export_optimizer(&o, 0, &bytes, &length), ENOTSUP, "laprop");
	o = embeng_rowwise_adagrad(0.5f);
	ASSERT_REFUSED(embeng_tpu_export_optimizer(&o, 0, &bytes, &length), ENOTSUP,
		       "rowwise_adagrad");
	o = embeng_adagrad_epsilon(0.5f);
	ASSERT_REFUSED(embeng_tpu_export_optimizer(&o, 0, &bytes, &length), ENOTSUP,
		       "adagrad with epsilon above 0");
	o = embeng_sgd(0.5f);
	o.weight_decay_in_gradient = 1;
	o.weight_decay_factor = 0.5f;
	ASSERT_REFUSED(embeng_tpu_export_optimizer(&o, 0, &bytes, &length), ENOTSUP,
		       "sgd with weight_decay_in_gradient");
	o = embeng_sgd(0.5f);
	o.scale_by_frequency = 1;
	ASSERT_REFUSED(embeng_tpu_export_optimizer(&o, 0, &bytes, &length), ENOTSUP,
		       "sgd with scale_by_frequency");
	o = embeng_sgd(0.5f);
	o.max_norm = 0.5f;
	ASSERT_REFUSED(embeng_tpu_export_optimizer(&o, 0, &bytes, &length), ENOTSUP,
		       "sgd with max_norm above 0");
	o = embeng_sgd(0.5f);
	o.dynamic = &(const struct embeng_dynamic){"max_norm", "long"};
	o.dynamic_count = 1;
	ASSERT_REFUSED(embeng_tpu_export_optimizer(&o, 0, &bytes, &length), ENOTSUP,
		       "sgd with dynamic hyperparameters");
	o = embeng_adam(0.5f);
	o.epsilon = 0.0f;
	ASSERT_REFUSED(embeng_tpu_export_optimizer(&o, 0, &bytes, &length), ERANGE, "epsilon");
	o = embeng_sgd(0.5f);
	o.rate_name = "slow";
	ASSERT_REFUSED(embeng_tpu_export_optimizer(&o, -1, &bytes, &length), ERANGE, "tag -1",
		       "slow");
	ck_assert_ptr_null(bytes);
	ck_assert_uint_eq(length, 5);
}
END_TEST

/* Refuses one change of settings that are fine otherwise, of a model of one table. */
#define ASSERT_SETTINGS_REFUSED(change, errno_, ...) \
	do { \
		enum embeng_tpu_hot_ids ids[] = {0, 0}; \
		struct embeng_tpu_settings s = { \
			.size = sizeof(s), .hot_ids = ids, .hot_id_count = 1}; \
		struct embeng_model *m_ = embeng_model_new(); \
		struct embeng_table_config t_ = table_config("users"); \
		void *bytes_ = NULL; \
		size_t length_; \
\
		ck_assert_int_eq(embeng_model_add_table(m_, &t_), 0); \
		ck_assert_int_eq(embeng_tpu_export(m_, &s, &bytes_, &length_), 0); \
		free(bytes_); \
		bytes_ = NULL; \
		change; \
		ASSERT_REFUSED(embeng_tpu_export(m_, &s, &bytes_, &length_), errno_, __VA_ARGS__); \
		ck_assert_ptr_null(bytes_); \
		embeng_model_free(m_); \
	} while (0)

START_TEST(test_settings)
{
	ASSERT_SETTINGS_REFUSED(s.size = 4, EINVAL, "embeng_tpu_settings", "size 4");
	ASSERT_SETTINGS_REFUSED(s.mode = 4, EINVAL, "mode 4", "3");
	ASSERT_SETTINGS_REFUSED(s.form = 3, EINVAL, "form 3", "2");
	ASSERT_SETTINGS_REFUSED(s.sharding = 2, EINVAL, "sharding 2", "1");
	ASSERT_SETTINGS_REFUSED(s.hosts = -1, ERANGE, "hosts -1");
	ASSERT_SETTINGS_REFUSED(s.spmd_cores_per_replica = -1, ERANGE, "spmd_cores_per_replica -1");
	ASSERT_SETTINGS_REFUSED(s.profile_directory = "a\xc0", EINVAL, "profile_directory",
				"byte 1");
	ASSERT_SETTINGS_REFUSED(s.hot_id_count = 2, EINVAL, "hot_ids", "2 tables", "has 1");
	ASSERT_SETTINGS_REFUSED(s.hot_ids = NULL, EINVAL, "hot_ids", "0 tables");
	ASSERT_SETTINGS_REFUSED(ids[0] = 4, EINVAL, "hot_ids 4", "3");
}
END_TEST

/* Refuses a model of one table and one feature, either changed. */
#define ASSERT_MODEL_REFUSED(change, errno_, ...) \
	do { \
		struct embeng_tpu_settings s = {.size = sizeof(s), .form = EMBENG_TPU_BOTH}; \
		struct embeng_model *m = embeng_model_new(); \
		struct embeng_table_config t = table_config("users"); \
		struct embeng_feature_config f = feature_config("clicks"); \
		struct embeng_engine_config e = {.size = sizeof(e)}; \
		void *bytes_ = NULL; \
		size_t length_; \
\
		ck_assert_int_eq(embeng_model_add_table(m, &t), 0); \
		t.name = "items"; \
		f.output_rank = 1; \
		f.output_shape[0] = 4; \
		change; \
		ck_assert_int_ge(embeng_model_add_table(m, &t), 0); \
		ck_assert_int_ge(embeng_model_add_feature(m, &f), 0); \
		ck_assert_int_eq(embeng_model_set_engine(m, &e), 0); \
		ASSERT_REFUSED(embeng_tpu_export(m, &s, &bytes_, &length_), errno_, __VA_ARGS__); \
		ck_assert_ptr_null(bytes_); \
		embeng_model_free(m); \
	} while (0)

/* With it features have but one position in common. */
static void add_one(struct embeng_model *m)
{
	struct embeng_feature_config f = feature_config("one");

	f.output_rank = 1;
	f.output_shape[0] = 1;
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
}

START_TEST(test_models)
{
	ASSERT_MODEL_REFUSED(t.dim = INT64_C(1) << 31, ERANGE, "table items", "dim 2147483648");
	ASSERT_MODEL_REFUSED(t.optimizer.kind = EMBENG_OPTIMIZER_NO, EINVAL, "table items",
			     "no optimizer", "INFERENCE");
	ASSERT_MODEL_REFUSED(t.optimizer = embeng_adam_corrected(0.5f), ENOTSUP, "table items",
			     "adam", "bias_correction");
	ASSERT_MODEL_REFUSED(t.name = "\xff", EINVAL, "table", "byte 0", "UTF-8");
	ASSERT_MODEL_REFUSED(f.name = "a\x80", EINVAL, "feature", "byte 1", "UTF-8");
	ASSERT_MODEL_REFUSED(f.output_rank = 0, EINVAL, "feature clicks", "open",
			     "embeng_model_build()");
	ASSERT_MODEL_REFUSED(f.output_shape[0] = 0, EINVAL, "feature clicks", "[?]", "open");
	ASSERT_MODEL_REFUSED(f.output_shape[0] = INT64_C(1) << 31, ERANGE, "feature clicks",
			     "2147483648");
	ASSERT_MODEL_REFUSED(f.output_rank = 2; f.output_shape[0] = f.output_shape[1] = 1 << 20,
						ERANGE, "batch_size_per_tensor_core",
						"1099511627776");
	ASSERT_MODEL_REFUSED(f.output_rank = 2; f.output_shape[0] = f.output_shape[1] = 1 << 20;
			     add_one(m), ERANGE, "table users", "num_features");
	ASSERT_MODEL_REFUSED(e.replicas = UINT32_MAX, ERANGE, "replicas", "4294967295");
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, test_imports);
	tcase_add_test(tcase, test_optimizer_imports);
	tcase_add_test(tcase, test_too_many_bytes);
	tcase_add_test(tcase, test_hooks);
	tcase_add_test(tcase, test_missing_arguments);
	tcase_add_test(tcase, test_optimizer_exports);
	tcase_add_test(tcase, test_settings);
	tcase_add_test(tcase, test_models);
}

int main(void)
{
	return suite_main("tpu refused", add);
}
