// SPDX-License-Identifier: MIT
/*
 * Configurations of TPU embeddings are read and written: those of another encoder, and models made
 * by hand.
 */
#define _GNU_SOURCE
#include "suite.h"
#include "tpu_help.h"
#include "embeng/tpu.h"

static struct embeng_tpu *import(const char *name, struct bytes b)
{
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng_tpu *tpu = NULL;
	int code = embeng_tpu_import(b.data, b.length, NULL, &tpu);

	embeng_last_error(&error);
	ck_assert_msg(!code, "%s: %s", name, code ? error.text : "");
	return tpu;
}

static void assert_gives(const char *name, struct bytes from, struct bytes want)
{
	struct embeng_tpu_settings settings = {.size = sizeof(settings)};
	struct embeng_tpu *tpu = import(name, from);
	void *bytes;
	size_t length;

	ck_assert_int_eq(embeng_tpu_get_settings(tpu, &settings), 0);
	ck_assert_int_eq(embeng_tpu_export(embeng_tpu_model(tpu), &settings, &bytes, &length), 0);
	assert_bytes(name, bytes, length, want);
	free(bytes);
	embeng_tpu_free(tpu);
}

START_TEST(test_exact)
{
	struct golden g;
	size_t count = 0;

	for (golden_open(&g); golden_next(&g, "exact"); count++) {
		struct bytes b = golden_bytes(g.words[2]);

		assert_gives(g.words[1], b, b);
		free(b.data);
	}
	ck_assert_uint_ge(count, 25);
}
END_TEST

START_TEST(test_other)
{
	struct golden g;
	size_t count = 0;

	for (golden_open(&g); golden_next(&g, "other"); count++) {
		struct bytes from = golden_bytes(g.words[2]), want = golden_bytes(g.words[3]);

		assert_gives(g.words[1], from, want);
		free(from.data);
		free(want.data);
	}
	ck_assert_uint_ge(count, 15);
}
END_TEST

START_TEST(test_optimizers_exact)
{
	struct golden g;
	size_t count = 0;

	for (golden_open(&g); golden_next(&g, "optimizer-exact"); count++) {
		struct bytes b = golden_bytes(g.words[2]);
		struct embeng_optimizer o;
		int32_t tag = -7;
		void *bytes;
		size_t length;

		ck_assert_int_eq(embeng_tpu_import_optimizer(b.data, b.length, &o, &tag), 0);
		ck_assert_ptr_null(o.rate_name);
		ck_assert_int_eq(tag, strstr(g.words[1], "dynamic") ? 0 : -1);
		o.rate_name = tag < 0 ? NULL : "any";
		ck_assert_int_eq(embeng_tpu_export_optimizer(&o, tag, &bytes, &length), 0);
		assert_bytes(g.words[1], bytes, length, b);
		free(bytes);
		free(b.data);
	}
	ck_assert_uint_ge(count, 15);
}
END_TEST

static struct bytes golden_named(const char *verb, const char *name)
{
	struct bytes found = {NULL, 0};
	struct golden g;

	for (golden_open(&g); golden_next(&g, verb);) {
		if (!strcmp(g.words[1], name))
			found = golden_bytes(g.words[2]);
	}
	ck_assert_msg(found.data, "%s", name);
	return found;
}

static void add_feature(struct embeng_model *m, const char *name, int table, size_t rank, int64_t a,
			int64_t b)
{
	struct embeng_feature_config f = {.size = sizeof(f),
					  .name = name,
					  .table = table,
					  .output_rank = rank,
					  .output_shape = {a, b}};

	ck_assert_int_ge(embeng_model_add_feature(m, &f), 0);
}

/* The model of the vector file's "newer form". */
static struct embeng_model *model_by_hand(void)
{
	struct embeng_table_config t = {.size = sizeof(t),
					.name = "users",
					.vocabulary_size = 1000,
					.dim = 16,
					.optimizer = embeng_adagrad(0.0f)};
	struct embeng_engine_config e = {.size = sizeof(e), .replicas = 8, .pipelining = 1};
	struct embeng_model *m = embeng_model_new();

	t.optimizer.rate_name = "slow";
	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	t.name = "items";
	t.vocabulary_size = INT64_C(1) << 40;
	t.dim = 4;
	t.optimizer = embeng_sgd(0.25f);
	t.optimizer.has_clip_weight_min = t.optimizer.has_clip_weight_max = 1;
	t.optimizer.clip_weight_min = -1.0f;
	t.optimizer.clip_weight_max = 1.0f;
	t.optimizer.has_clip_max = 1;
	t.optimizer.clip_max = 0.5f;
	ck_assert_int_eq(embeng_model_add_table(m, &t), 1);
	add_feature(m, "watched", 1, 2, 4, 3);
	add_feature(m, "user", 0, 1, 6, 0);
	add_feature(m, "liked", 1, 1, 6, 0);
	ck_assert_int_eq(embeng_model_set_engine(m, &e), 0);
	return m;
}

START_TEST(test_model_by_hand)
{
	static const struct {
		const char *name;
		enum embeng_tpu_form form;
	} forms[] = {{"newer form", EMBENG_TPU_FEATURES},
		     {"older form", EMBENG_TPU_COUNTS},
		     {"both forms", EMBENG_TPU_BOTH}};
	struct embeng_model *m = model_by_hand();

	for (size_t i = 0; i < COUNT(forms); i++) {
		struct embeng_tpu_settings s = {
			.size = sizeof(s), .form = forms[i].form, .hosts = 2};
		struct embeng_engine_config e = {
			.size = sizeof(e), .replicas = 8, .pipelining = !forms[i].form};
		struct bytes want = golden_named("exact", forms[i].name);
		void *bytes;
		size_t length;

		ck_assert_int_eq(embeng_model_set_engine(m, &e), 0);
		ck_assert_int_eq(embeng_tpu_export(m, &s, &bytes, &length), 0);
		assert_bytes(forms[i].name, bytes, length, want);
		free(bytes);
		free(want.data);
	}
	embeng_model_free(m);
}
END_TEST

/* A rate's name is not in the protobuf: what would else be equal is made so. */
static int name_rate(void *arg, size_t index, struct embeng_table_config *config)
{
	ck_assert_str_eq(arg, "hook");
	ck_assert_uint_le(index, 1);
	if (config->optimizer.rate_name) {
		ck_assert_str_eq(config->optimizer.rate_name, "rate_0");
		config->optimizer.rate_name = "slow";
	}
	return 0;
}

START_TEST(test_model_to_bytes_to_model)
{
	struct embeng_tpu_hooks hooks = {.size = sizeof(hooks), .arg = "hook", .table = name_rate};
	struct embeng_model *m = model_by_hand();
	struct embeng_tpu *tpu;
	void *bytes;
	size_t length;

	ck_assert_int_eq(embeng_tpu_export(m, NULL, &bytes, &length), 0);
	ck_assert_int_eq(embeng_tpu_import(bytes, length, &hooks, &tpu), 0);
	free(bytes);
	ck_assert_uint_eq(embeng_model_hash(embeng_tpu_model(tpu)), embeng_model_hash(m));
	embeng_tpu_free(tpu);
	embeng_model_free(m);
}
END_TEST

START_TEST(test_what_is_read)
{
	struct bytes b = golden_named("exact", "newer form");
	struct embeng_tpu *tpu = import("newer form", b);
	const struct embeng_model *m = embeng_tpu_model(tpu);
	struct embeng_table_config t = {.size = sizeof(t)};
	struct embeng_feature_config f = {.size = sizeof(f)};
	struct embeng_tpu_settings s = {.size = sizeof(s)};

	memset(b.data, 0xff, b.length); /* nothing of it is kept */
	free(b.data);
	ck_assert_int_eq(embeng_model_get_table(m, 0, &t), 0);
	ck_assert_str_eq(t.name, "users");
	ck_assert_int_eq(t.vocabulary_size, 1000);
	ck_assert_int_eq(t.optimizer.kind, EMBENG_ADAGRAD);
	ck_assert_str_eq(t.optimizer.rate_name, "rate_0");
	ck_assert(t.optimizer.initial_accumulator_value == 0.1f);
	ck_assert_int_eq(t.combiner, EMBENG_MEAN);
	ck_assert_int_eq(embeng_model_get_table(m, 1, &t), 0);
	ck_assert_int_eq(t.vocabulary_size, INT64_C(1) << 40);
	ck_assert(t.optimizer.learning_rate == 0.25f);
	ck_assert(t.optimizer.has_clip_weight_min && t.optimizer.clip_weight_min == -1.0f);
	ck_assert(!t.optimizer.has_clip_min && t.optimizer.clip_max == 0.5f);
	ck_assert_int_eq(embeng_model_get_feature(m, 0, &f), 0);
	ck_assert_str_eq(f.name, "watched");
	ck_assert_int_eq(f.table, 1);
	ck_assert_uint_eq(f.output_rank, 2);
	ck_assert_int_eq(f.output_shape[1], 3);
	ck_assert_uint_eq(m->engine.replicas, 8);
	ck_assert_int_eq(m->engine.pipelining, 1);
	ck_assert_int_eq(embeng_tpu_get_settings(tpu, &s), 0);
	ck_assert_int_eq(s.mode, EMBENG_TPU_TRAINING);
	ck_assert_int_eq(s.form, EMBENG_TPU_FEATURES);
	ck_assert_int_eq(s.hosts, 2);
	ck_assert_str_eq(s.profile_directory, "");
	ck_assert_uint_eq(s.hot_id_count, 2);
	embeng_tpu_free(tpu);
}
END_TEST

START_TEST(test_unknown_fields_are_told)
{
	static const struct {
		uint32_t number, type;
		uint64_t length;
	} want[] = {{100, 0, 1}, {101, 1, 8}, {102, 2, 3}, {103, 5, 4}, {8, 2, 2}};
	struct bytes b = golden_named("other", "unknown fields of all types");
	struct embeng_tpu *tpu = import("unknown", b);
	struct embeng_tpu_unknown u = {.size = sizeof(u)};

	ck_assert_uint_eq(embeng_tpu_unknown_count(tpu), COUNT(want));
	for (size_t i = 0; i < COUNT(want); i++) {
		ck_assert_int_eq(embeng_tpu_get_unknown(tpu, i, &u), 0);
		ck_assert_str_eq(u.message, "");
		ck_assert_uint_eq(u.number, want[i].number);
		ck_assert_uint_eq(u.wire_type, want[i].type);
		ck_assert_uint_eq(u.length, want[i].length);
	}
	ck_assert_uint_eq(u.offset, b.length - 2);
	ck_assert_int_eq(b.data[u.offset], 1);
	ASSERT_REFUSED(embeng_tpu_get_unknown(tpu, 5, &u), ENOENT, "unknown field 5", "5");
	u.size = 1;
	ASSERT_REFUSED(embeng_tpu_get_unknown(tpu, 0, &u), EINVAL, "size");
	free(b.data);
	embeng_tpu_free(tpu);
	b = golden_named("other", "accumulator of old");
	tpu = import("old", b);
	u.size = sizeof(u);
	ck_assert_int_eq(embeng_tpu_get_unknown(tpu, 0, &u), 0);
	ck_assert_str_eq(u.message, "table_descriptor[0].optimization_parameters.adagrad");
	free(b.data);
	embeng_tpu_free(tpu);
}
END_TEST

START_TEST(test_empty_bytes_are_an_empty_model)
{
	struct embeng_tpu *tpu;

	ck_assert_int_eq(embeng_tpu_import(NULL, 0, NULL, &tpu), 0);
	ck_assert_uint_eq(embeng_model_table_count(embeng_tpu_model(tpu)), 0);
	ck_assert_uint_eq(embeng_tpu_unknown_count(tpu), 0);
	embeng_tpu_free(tpu);
	embeng_tpu_free(NULL);
	ck_assert_ptr_null(embeng_tpu_model(NULL));
	ck_assert_uint_eq(embeng_tpu_unknown_count(NULL), 0);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, test_exact);
	tcase_add_test(tcase, test_other);
	tcase_add_test(tcase, test_optimizers_exact);
	tcase_add_test(tcase, test_model_by_hand);
	tcase_add_test(tcase, test_model_to_bytes_to_model);
	tcase_add_test(tcase, test_what_is_read);
	tcase_add_test(tcase, test_unknown_fields_are_told);
	tcase_add_test(tcase, test_empty_bytes_are_an_empty_model);
}

int main(void)
{
	return suite_main("tpu", add);
}
