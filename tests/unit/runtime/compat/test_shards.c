// SPDX-License-Identifier: MIT
/*
 * Layouts of tables in protobufs that another encoder wrote, and rows that lie where the reference
 * has them.
 */
#define _GNU_SOURCE
#include <math.h>

#include "tpu_help.h"
#include "embeng/tpu.h"

#define FILE_NAME "layouts.txt"
#define PADDING -1.0f

static struct embeng_layouts *import(const char *name, struct bytes b)
{
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng_layouts *layouts = NULL;
	int code = embeng_tpu_import_layouts(b.data, b.length, &layouts);

	embeng_last_error(&error);
	ck_assert_msg(!code, "%s: %s", name, code ? error.text : "");
	return layouts;
}

static void assert_gives(const char *name, struct bytes from, struct bytes want)
{
	struct embeng_layouts *layouts = import(name, from);
	void *bytes;
	size_t length;

	ck_assert_int_eq(
		embeng_tpu_export_layouts(layouts->tables, layouts->table_count, &bytes, &length),
		0);
	assert_bytes(name, bytes, length, want);
	free(bytes);
	embeng_layouts_free(layouts);
}

START_TEST(test_exact)
{
	struct golden g;
	size_t count = 0;

	for (golden_open_file(&g, FILE_NAME); golden_next(&g, "exact"); count++) {
		struct bytes b = golden_bytes(g.words[2]);

		assert_gives(g.words[1], b, b);
		free(b.data);
	}
	ck_assert_uint_ge(count, 12);
}
END_TEST

START_TEST(test_other)
{
	struct golden g;
	size_t count = 0;

	for (golden_open_file(&g, FILE_NAME); golden_next(&g, "other"); count++) {
		struct bytes from = golden_bytes(g.words[2]), want = golden_bytes(g.words[3]);

		assert_gives(g.words[1], from, want);
		free(from.data);
		free(want.data);
	}
	ck_assert_uint_eq(count, 2);
}
END_TEST

START_TEST(test_refused)
{
	struct golden g;
	size_t count = 0;

	for (golden_open_file(&g, FILE_NAME); golden_next(&g, "refused"); count++) {
		struct bytes b = golden_bytes(g.words[2]);
		struct embeng_layouts *layouts = NULL;
		int code = embeng_tpu_import_layouts(b.data, b.length, &layouts);

		assert_words(&g, code);
		ck_assert_ptr_null(layouts);
		free(b.data);
	}
	ck_assert_uint_ge(count, 25);
}
END_TEST

START_TEST(test_unknown_fields)
{
	struct golden g;
	size_t count = 0;

	for (golden_open_file(&g, FILE_NAME); golden_next(&g, "other");) {
		struct bytes b = golden_bytes(g.words[2]);
		struct embeng_layouts *layouts = import(g.words[1], b);

		if (layouts->unknown_count) {
			ck_assert_uint_eq(layouts->unknown_count, 2);
			ck_assert_str_eq(layouts->unknowns[0].message, "tables[0]");
			ck_assert_uint_eq(layouts->unknowns[0].number, 12);
			ck_assert_str_eq(layouts->unknowns[1].message, "");
			ck_assert_uint_eq(layouts->unknowns[1].number, 2);
			ck_assert_uint_eq(layouts->unknowns[1].length, 3);
			ck_assert_uint_eq(layouts->unknowns[1].offset, b.length - 3);
			count++;
		}
		embeng_layouts_free(layouts);
		free(b.data);
	}
	ck_assert_uint_eq(count, 1);
}
END_TEST

/* Rows of table @index, each @stride floats apart. */
static float *rows_of(const struct embeng_table_layout *l, size_t index, int64_t stride)
{
	float *rows = malloc((size_t)(l->rows * stride) * sizeof(*rows));

	for (int64_t i = 0; i < l->rows * stride; i++)
		rows[i] = i % stride < l->dim ? 100.0f * (float)index + (float)(i / stride) +
							0.125f * (float)(i % stride)
					      : NAN;
	return rows;
}

static void assert_floats(const char *name, const float *got, const float *want, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		ck_assert_msg(got[i] == want[i] || (isnan(got[i]) && isnan(want[i])),
			      "%s: number %lld is %g, not %g", name, (long long)i, (double)got[i],
			      (double)want[i]);
}

/* A stack as numbers in text. */
static float *numbers_of(char *text, int64_t count)
{
	float *numbers = malloc((size_t)count * sizeof(*numbers));
	char *word;

	for (int64_t i = 0; i < count; i++) {
		word = strsep(&text, " ");
		ck_assert_ptr_nonnull(word);
		numbers[i] = strtof(word, NULL);
	}
	ck_assert_ptr_null(text);
	return numbers;
}

/* All tables into one memory of the given cores and strides; what lies between stays. */
static void shard_all(const struct embeng_layouts *layouts, const struct embeng_shards *shards,
		      int64_t extra)
{
	for (size_t i = 0; i < layouts->table_count; i++) {
		const struct embeng_table_layout *l = &layouts->tables[i];
		float *rows = rows_of(l, i, l->dim + extra);

		ck_assert_int_eq(
			embeng_table_shard(l, rows, extra ? l->dim + extra : 0, PADDING, shards),
			0);
		free(rows);
	}
}

static void unshard_all(const char *name, const struct embeng_layouts *layouts,
			const struct embeng_shards *shards, int64_t extra)
{
	for (size_t i = 0; i < layouts->table_count; i++) {
		const struct embeng_table_layout *l = &layouts->tables[i];
		int64_t stride = l->dim + extra;
		float *want = rows_of(l, i, stride);
		float *got = malloc((size_t)(l->rows * stride) * sizeof(*got));

		for (int64_t k = 0; k < l->rows * stride; k++)
			got[k] = NAN;
		ck_assert_int_eq(embeng_table_unshard(l, shards, got, extra ? stride : 0), 0);
		assert_floats(name, got, want, l->rows * stride);
		free(want);
		free(got);
	}
}

/* One partition after the other gives what all cores at once give. */
static void by_partitions(const char *name, const struct embeng_layouts *layouts, const float *want)
{
	const struct embeng_table_layout *l = &layouts->tables[0];
	int64_t each = l->sparse_cores / l->partitions,
		floats = each * l->rows_per_core * l->padded_dim;
	float *got = malloc((size_t)floats * sizeof(*got));

	for (int64_t p = 0; p < l->partitions; p++) {
		struct embeng_shards shards = {.size = sizeof(shards),
					       .data = got,
					       .first_core = p * each,
					       .core_count = each};

		shard_all(layouts, &shards, 0);
		assert_floats(name, got, want + p * floats, floats);
	}
	free(got);
}

/* Each row is where embeng_layout_place() says. */
static void by_places(const struct embeng_layouts *layouts, const float *want)
{
	for (size_t i = 0; i < layouts->table_count; i++) {
		const struct embeng_table_layout *l = &layouts->tables[i];
		int64_t each = l->sparse_cores / l->partitions;

		for (int64_t r = 0; r < l->rows; r++) {
			struct embeng_row_place at;

			ck_assert_int_eq(embeng_layout_place(l, r, &at), 0);
			ck_assert_int_eq(at.partition_row + at.partition * each * l->rows_per_core,
					 at.row + at.core * l->rows_per_core);
			ck_assert(want[(at.core * l->rows_per_core + at.row) * l->padded_dim] ==
				  100.0f * (float)i + (float)r);
		}
	}
}

/* Strides wider than need be: what lies between is not touched. */
static void with_strides(const char *name, const struct embeng_layouts *layouts, const float *want)
{
	const struct embeng_table_layout *l = &layouts->tables[0];
	int64_t row = l->padded_dim + 3, core = l->rows_per_core * row + 5,
		floats = l->sparse_cores * core;
	float *got = malloc((size_t)floats * sizeof(*got));
	struct embeng_shards shards = {.size = sizeof(shards),
				       .data = got,
				       .row_stride = row,
				       .core_stride = core,
				       .core_count = l->sparse_cores};

	for (int64_t i = 0; i < floats; i++)
		got[i] = NAN;
	shard_all(layouts, &shards, 2);
	for (int64_t i = 0; i < floats; i++) {
		int64_t in = i % core, r = in / row, c = in % row;
		bool used = r < l->rows_per_core && c < l->padded_dim;

		ck_assert(
			used ? got[i] == want[(i / core * l->rows_per_core + r) * l->padded_dim + c]
			     : isnan(got[i]));
	}
	unshard_all(name, layouts, &shards, 2);
	free(got);
}

START_TEST(test_shards)
{
	struct golden g;
	size_t count = 0;

	for (golden_open_file(&g, FILE_NAME); golden_next(&g, "shards"); count++) {
		struct bytes b = golden_bytes(g.words[2]);
		struct embeng_layouts *layouts = import(g.words[1], b);
		const struct embeng_table_layout *l = &layouts->tables[0];
		int64_t floats = l->sparse_cores * l->rows_per_core * l->padded_dim;
		float *want = numbers_of(g.words[3], floats);
		float *got = malloc((size_t)floats * sizeof(*got));
		struct embeng_shards shards = {
			.size = sizeof(shards), .data = got, .core_count = l->sparse_cores};

		shard_all(layouts, &shards, 0);
		assert_floats(g.words[1], got, want, floats);
		unshard_all(g.words[1], layouts, &shards, 0);
		by_partitions(g.words[1], layouts, want);
		by_places(layouts, want);
		with_strides(g.words[1], layouts, want);
		free(want);
		free(got);
		embeng_layouts_free(layouts);
		free(b.data);
	}
	ck_assert_uint_eq(count, 5);
}
END_TEST

static struct embeng_table_layout good_layout(void)
{
	return (struct embeng_table_layout){.size = sizeof(struct embeng_table_layout),
					    .table = "a",
					    .stack = "a",
					    .sparse_cores = 4,
					    .partitions = 2,
					    .rows_per_core = 4,
					    .rows = 10,
					    .dim = 3,
					    .padded_rows = 16,
					    .padded_dim = 8};
}

START_TEST(test_place_far)
{
	/* Row 2^40 + 5 of a table that begins at row 3 of each shard, rotated by 2^62. */
	struct embeng_table_layout l = good_layout();
	struct embeng_row_place at;

	l.rows = l.padded_rows = INT64_C(1) << 41;
	l.row_offset = 3;
	l.rows_per_core = (INT64_C(1) << 39) + 3;
	l.rotation = (INT64_C(1) << 62) + 1;
	ck_assert_int_eq(embeng_layout_place(&l, (INT64_C(1) << 40) + 5, &at), 0);
	ck_assert_int_eq(at.core, 2);
	ck_assert_int_eq(at.row, (INT64_C(1) << 38) + 1 + 3);
	ck_assert_int_eq(at.partition, 1);
	ck_assert_int_eq(at.partition_row, at.row);
	l.partitions = 1;
	ck_assert_int_eq(embeng_layout_place(&l, (INT64_C(1) << 40) + 5, &at), 0);
	ck_assert_int_eq(at.partition_row, at.row + 2 * l.rows_per_core);
}
END_TEST

START_TEST(test_place_refused)
{
	struct embeng_table_layout l = good_layout();
	struct embeng_row_place at = {.row = 77};

	ASSERT_REFUSED(embeng_layout_place(NULL, 0, &at), EINVAL, "embeng_layout_place", "layout");
	ASSERT_REFUSED(embeng_layout_place(&l, 0, NULL), EINVAL, "embeng_layout_place");
	ASSERT_REFUSED(embeng_layout_place(&l, 10, &at), ERANGE, "row 10", "0 to 9");
	ASSERT_REFUSED(embeng_layout_place(&l, -1, &at), ERANGE, "row -1");
	l.size--;
	ASSERT_REFUSED(embeng_layout_place(&l, 0, &at), EINVAL, "size");
	l = good_layout();
	l.partitions = 1;
	l.rows_per_core = INT64_MAX;
	ASSERT_REFUSED(embeng_layout_place(&l, 2, &at), ERANGE, "row 2", "64 bits");
	ck_assert_int_eq(at.row, 77);
}
END_TEST

#define ASSERT_SHARDS_REFUSED(change, errno_, ...) \
	do { \
		static float rows_[30], memory_[128]; \
		struct embeng_table_layout l = good_layout(); \
		struct embeng_shards s = {.size = sizeof(s), .data = memory_, .core_count = 4}; \
		int64_t stride = 0; \
		float *rows = rows_; \
\
		change; \
		ASSERT_REFUSED(embeng_table_shard(&l, rows, stride, 1.0f, &s), errno_, \
			       "embeng_table_shard", __VA_ARGS__); \
		ASSERT_REFUSED(embeng_table_unshard(&l, &s, rows, stride), errno_, \
			       "embeng_table_unshard", __VA_ARGS__); \
		ck_assert(memory_[0] == 0.0f); \
	} while (0)

START_TEST(test_shards_refused)
{
	ASSERT_SHARDS_REFUSED(l.sparse_cores = 0, EINVAL, "0 sparse_cores");
	ASSERT_SHARDS_REFUSED(rows = NULL, EINVAL, "no rows");
	ASSERT_SHARDS_REFUSED(s.size--, EINVAL, "no shards");
	ASSERT_SHARDS_REFUSED(s.data = NULL, EINVAL, "no shards");
	ASSERT_SHARDS_REFUSED(s.core_count = 0, ERANGE, "0 cores");
	ASSERT_SHARDS_REFUSED(s.core_count = 5, ERANGE, "5 cores", "has 4");
	ASSERT_SHARDS_REFUSED(s.first_core = 1, ERANGE, "core 1", "has 4");
	ASSERT_SHARDS_REFUSED(s.first_core = -1, ERANGE, "core -1");
	ASSERT_SHARDS_REFUSED(stride = 2, EINVAL, "row_stride 2", "3");
	ASSERT_SHARDS_REFUSED(stride = -3, EINVAL, "row_stride -3");
	ASSERT_SHARDS_REFUSED(s.row_stride = 7, EINVAL, "7 of the shards", "8");
	ASSERT_SHARDS_REFUSED(s.core_stride = 31, EINVAL, "core_stride 31", "32");
	ASSERT_SHARDS_REFUSED(stride = INT64_MAX / 2, ERANGE, "more floats");
	ASSERT_SHARDS_REFUSED(s.row_stride = INT64_MAX / 2, ERANGE, "more floats");
	ASSERT_SHARDS_REFUSED(s.core_stride = INT64_MAX / 2, ERANGE, "more floats");
}
END_TEST

START_TEST(test_null_arguments)
{
	struct embeng_table_layout l = good_layout();
	struct embeng_layouts *layouts = NULL;
	void *bytes;
	size_t length;

	ASSERT_REFUSED(embeng_tpu_export_layouts(NULL, 1, &bytes, &length), EINVAL, "tables");
	ASSERT_REFUSED(embeng_tpu_export_layouts(&l, 1, NULL, &length), EINVAL, "bytes");
	ASSERT_REFUSED(embeng_tpu_export_layouts(&l, 1, &bytes, NULL), EINVAL, "length");
	ASSERT_REFUSED(embeng_tpu_export_layouts(&l, 4097, &bytes, &length), EINVAL, "4097",
		       "4096");
	l.table = "t\xff";
	ASSERT_REFUSED(embeng_tpu_export_layouts(&l, 1, &bytes, &length), EINVAL,
		       "tables[0].table_name", "byte 1", "UTF-8");
	l.table = NULL;
	ASSERT_REFUSED(embeng_tpu_export_layouts(&l, 1, &bytes, &length), EINVAL,
		       "tables[0].table_name", "missing");
	ASSERT_REFUSED(embeng_tpu_import_layouts(NULL, 1, &layouts), EINVAL, "bytes");
	ASSERT_REFUSED(embeng_tpu_import_layouts("", 0, NULL), EINVAL, "out");
	embeng_layouts_free(NULL);
}
END_TEST

int main(void)
{
	const TTest *tests[] = {test_exact,	     test_other,	  test_refused,
				test_unknown_fields, test_shards,	  test_place_far,
				test_place_refused,  test_shards_refused, test_null_arguments};

	return run_tests("shards", tests, COUNT(tests));
}
