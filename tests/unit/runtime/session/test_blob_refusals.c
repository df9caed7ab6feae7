// SPDX-License-Identifier: MIT
/*
 * Walks the records of a model blob word by word, and holds that each sentence about a value that a
 * device refuses names the table or feature that it is about. A check that the engine gets later is
 * in the walk.
 */
#include <stdio.h>

#include "engine/blob/blob.h"
#include "engine/hash/crc32c.h"
#include "runtime/src/session/blob_error.h"
#include "session_help.h"

#define KINDS 20

static const struct embeng_caps caps = {
	.features = EMBENG_CAP_PIPELINING | EMBENG_CAP_QUANTIZATION | EMBENG_CAP_SHARDS,
	.dim = 4096,
	.tables = 64,
	.model_features = 64,
	.replicas = 4,
	.step_depth = 4,
	.ids = 1u << 20,
	.samples = 1u << 20,
	.combiners = 7,
	.optimizers = (1u << KINDS) - 1,
};

/* A part of a table of each kind of optimizer, quantized, with a feature. Its name tells the kind. */
static struct embeng_model *every_kind(void)
{
	struct embeng_model *m = embeng_model_new();

	for (int kind = 0; kind < KINDS; kind++) {
		char name[32], feature[32];
		struct embeng_table_config t = {.size = sizeof(t),
						.name = name,
						.vocabulary_size = 10,
						.dim = 1,
						.quantization = {4, -1, 1},
						.part = {20, 1, 2, 2, 1}};
		struct embeng_feature_config f = {
			.size = sizeof(f), .name = feature, .table = kind};

		snprintf(name, sizeof(name), "table-of-%d-", kind);
		snprintf(feature, sizeof(feature), "feature-of-%d-", kind);
		t.optimizer = embeng_sgd(0.5f);
		t.optimizer.kind = (enum embeng_optimizer_name)kind;
		t.optimizer.beta_1 = t.optimizer.beta1 = 0.5f;
		t.optimizer.epsilon = t.optimizer.exponent = t.optimizer.eps = 1;
		t.optimizer.max_delta = t.optimizer.max_lr_multiplier = 1;
		t.optimizer.initial_accumulator_value = 1;
		ck_assert_msg(embeng_model_add_table(m, &t) == kind, "%d", kind);
		ck_assert_int_eq(embeng_model_add_feature(m, &f), kind);
	}
	return m;
}

struct walk {
	struct embeng_model *model;
	unsigned char *blob;
	size_t length;
	uint32_t refused;
};

/* Parses the blob as it is now. A refusal must tell @name, and no number of a byte. */
static void parse_changed(struct walk *w, const char *name)
{
	struct embeng_blob_header header;
	struct fault fault = {0};
	struct embeng_cqe c = {0};
	struct embeng_error error = {.size = sizeof(error)};
	struct blob parsed;
	uint16_t status;

	memcpy(&header, w->blob, sizeof(header));
	header.crc32c = 0;
	memcpy(w->blob, &header, sizeof(header));
	header.crc32c = crc32c(0, w->blob, w->length);
	memcpy(w->blob, &header, sizeof(header));
	status = blob_parse(w->blob, w->length, &caps, &parsed, &fault);
	blob_free(&parsed);
	/* A value that may be there changes the hash alone. */
	if (!status || fault.element < sizeof(header))
		return;
	c.status = fault.status;
	c.field = fault.field;
	c.feature = fault.feature;
	c.element = fault.element;
	c.value = fault.value;
	c.limit = fault.limit;
	ck_assert_int_lt(blob_error(w->model, w->blob, w->length, &c), 0);
	embeng_last_error(&error);
	ck_assert_msg(strstr(error.text, name) != NULL, "\"%s\" lacks %s", error.text, name);
	ck_assert_msg(!strstr(error.text, "model blob"), "%s", error.text);
	w->refused++;
}

static void change_record(struct walk *w, size_t at, size_t length, const char *name)
{
	static const uint32_t values[] = {0,	      1,	  2,	      5,
					  0x80000001, 0xbf800000, 0x3f000001, 0x40000000,
					  0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000,
					  0xffc00000, 0xffffffff, 1u << 25};

	for (size_t byte = sizeof(struct embeng_record); byte < length; byte++) {
		size_t width = byte % 4 ? 1 : 4;
		unsigned char was[4];

		memcpy(was, w->blob + at + byte, width);
		for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
			memcpy(w->blob + at + byte, &values[v], width);
			parse_changed(w, name);
		}
		memcpy(w->blob + at + byte, was, width);
	}
}

/* Each value of each record of tables, features, quantizations and shards. */
START_TEST(test_blobs_are_refused_by_name)
{
	struct walk w = {.model = every_kind()};
	size_t counts[EMBENG_RECORD_SHARD + 1] = {0};
	struct embeng_record head;
	void *blob;

	ck_assert_int_eq(embeng_model_blob(w.model, &blob, &w.length), 0);
	w.blob = blob;
	for (size_t at = sizeof(struct embeng_blob_header); at < w.length; at += head.length) {
		char name[32];

		memcpy(&head, w.blob + at, sizeof(head));
		snprintf(name, sizeof(name), "%s %s-of-%zu-",
			 head.type == EMBENG_RECORD_FEATURE ? "feature" : "table",
			 head.type == EMBENG_RECORD_FEATURE ? "feature" : "table",
			 counts[head.type]++);
		if (head.type == EMBENG_RECORD_TABLE || head.type == EMBENG_RECORD_FEATURE)
			change_record(&w, at, head.length, name);
		else if (head.type == EMBENG_RECORD_QUANTIZATION ||
			 head.type == EMBENG_RECORD_SHARD)
			/* Behind the index of its table, which says whose it is. */
			change_record(&w, at + 4, head.length - 4, name);
	}
	/* Each table alone has dozens of them. */
	ck_assert_uint_gt(w.refused, KINDS * 100);
	free(blob);
	embeng_model_free(w.model);
}
END_TEST

/* The largest table is what to begin with, whoever has no room for it. */
START_TEST(test_no_room_names_a_table)
{
	static const uint16_t statuses[] = {EMBENG_STATUS_NO_SPACE, EMBENG_STATUS_NO_MEMORY};
	struct embeng_model *m = embeng_model_new(), *none = embeng_model_new();
	struct embeng_table_config t = {
		.size = sizeof(t), .name = "small", .vocabulary_size = 1000, .dim = 4};
	struct embeng_error error = {.size = sizeof(error)};

	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	t.name = "large";
	t.vocabulary_size = 500;
	t.optimizer = embeng_adam(0.1f); /* two slots */
	ck_assert_int_eq(embeng_model_add_table(m, &t), 1);
	for (size_t i = 0; i < 2; i++) {
		struct embeng_cqe c = {.status = statuses[i]};

		ck_assert_int_eq(blob_error(m, NULL, 0, &c), i ? -ENOMEM : -ENOSPC);
		embeng_last_error(&error);
		ck_assert_ptr_nonnull(strstr(error.text, "table large: vocabulary_size 500, dim 4, "
							 "2 slots, 24000 bytes"));
		ck_assert_int_eq(blob_error(none, NULL, 0, &c), i ? -ENOMEM : -ENOSPC);
	}
	/* 40000 bytes in all; page tables need some more. */
	ck_assert_int_eq(tables_limit_check(m, 40000, 40157, "x"), 0);
	ck_assert_int_eq(tables_limit_check(m, 40000, 40156, "/some/memory.max"), -ENOMEM);
	embeng_last_error(&error);
	ck_assert_ptr_nonnull(strstr(error.text, "may have 40156 more (/some/memory.max)"));
	ck_assert_ptr_nonnull(strstr(error.text, "table large"));
	ck_assert_int_eq(tables_limit_check(m, 39999, 1, "x"), 0);
	ck_assert_int_eq(tables_limit_check(none, 0, 0, "x"), 0);
	embeng_model_free(none);
	embeng_model_free(m);
}
END_TEST

RUN_SUITE("blob refusals", test_blobs_are_refused_by_name, test_no_room_names_a_table)
