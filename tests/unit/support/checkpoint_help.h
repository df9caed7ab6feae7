/* SPDX-License-Identifier: MIT */
/* Folders for tests, and models whose tables have a number for each place. */
#ifndef EMBENG_TESTS_CHECKPOINT_HELP_H
#define EMBENG_TESTS_CHECKPOINT_HELP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/src/base/file.h"
#include "session_help.h"

#define HELP_PATH 512

static int help_no_sync(int fd)
{
	(void)fd;
	return 0;
}

/* Turns syncing off, which takes most of a small save's time, for tests that do not need it. */
static inline void help_never_sync(void)
{
	static struct file_ops ops;

	ops = file_ops_system;
	ops.sync = help_no_sync;
	file_ops = &ops;
}

/* A new folder; @path has HELP_PATH bytes. */
static inline void folder_new(char *path)
{
	const char *where = getenv("TMPDIR");

	snprintf(path, HELP_PATH, "%s/embeng-test-XXXXXX", where ? where : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(path));
}

static inline size_t folder_files(const char *path, char names[][256], size_t most)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	size_t count = 0;

	ck_assert_ptr_nonnull(folder);
	while ((entry = readdir(folder))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		ck_assert_uint_lt(count, most);
		strcpy(names[count++], entry->d_name);
	}
	closedir(folder);
	return count;
}

#define HELP_FILES 2048

static inline void folder_remove(const char *path)
{
	static char names[HELP_FILES][256];
	char file[2 * HELP_PATH];
	size_t count = folder_files(path, names, HELP_FILES);

	for (size_t i = 0; i < count; i++) {
		snprintf(file, sizeof(file), "%s/%s", path, names[i]);
		ck_assert_int_eq(unlink(file), 0);
	}
	ck_assert_int_eq(rmdir(path), 0);
}

struct help_table {
	const char *name;
	int64_t rows, dim;
	struct embeng_optimizer optimizer;
};

static inline struct embeng_model *help_model(const struct help_table *tables, size_t count)
{
	struct embeng_model *m = embeng_model_new();

	for (size_t i = 0; i < count; i++) {
		struct embeng_table_config t = {.size = sizeof(t),
						.name = tables[i].name,
						.vocabulary_size = tables[i].rows,
						.dim = tables[i].dim,
						.combiner = EMBENG_SUM,
						.optimizer = tables[i].optimizer};
		struct embeng_feature_config f = {.size = sizeof(f), .table = (int)i};

		ck_assert_int_eq(embeng_model_add_table(m, &t), (int)i);
		ck_assert_int_eq(embeng_model_add_feature(m, &f), (int)i);
	}
	return m;
}

static inline struct embeng *help_open(const char *device, const struct help_table *tables,
				       size_t count)
{
	struct embeng_model *m = help_model(tables, count);
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng *e = NULL;

	ck_assert_msg(!embeng_open(device, m, &e, &error), "%s", error.text);
	embeng_model_free(m);
	return e;
}

/* A table of each optimizer, of shapes that divide by nothing. */
static inline const struct help_table *all_optimizers(size_t *count)
{
	static struct help_table tables[7];

	tables[0] = (struct help_table){"none", 5, 1, {0}};
	tables[1] = (struct help_table){"sgd", 1, 17, embeng_sgd(0.5f)};
	tables[2] = (struct help_table){"adagrad", 400, 130, embeng_adagrad(0.1f)};
	tables[3] = (struct help_table){"momentum", 9, 3, embeng_adagrad_momentum(0.1f)};
	tables[4] = (struct help_table){"ftrl/with \"slash\" \xc3\xa9", 7, 2, embeng_ftrl(0.1f)};
	tables[5] = (struct help_table){"adam", 300, 4, embeng_adam(0.1f)};
	tables[6] = (struct help_table){"corrected", 33, 16, embeng_adam_corrected(0.1f)};
	*count = 7;
	return tables;
}

static inline struct embeng *open_all(const char *device)
{
	size_t count;
	const struct help_table *tables = all_optimizers(&count);

	return help_open(device, tables, count);
}

/* Element @at of an array: its bits tell table, array, place and @salt. */
static inline float help_value(size_t table, size_t array, uint64_t at, uint32_t salt)
{
	uint64_t x = (at + 1) * 0x9e3779b97f4a7c15u + table * 7919 + array * 104729 + salt * 31;

	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9u;
	return (float)((double)(x >> 40) / (1 << 23) + 0.25);
}

static inline const char *help_slot(const struct embeng_model *m, size_t table, size_t array)
{
	return array ? embeng_model_slot_name(m, table, array - 1) : "parameters";
}

static inline size_t help_elements(const struct embeng_model *m, size_t table)
{
	struct embeng_table_config c = {.size = sizeof(c)};

	ck_assert_int_eq(embeng_model_get_table(m, table, &c), 0);
	return (size_t)(c.vocabulary_size * c.dim);
}

/* Numbers of the parameters or of a slot. */
static inline size_t help_numbers(const struct embeng_model *m, size_t table, size_t array)
{
	struct embeng_table_config c = {.size = sizeof(c)};

	ck_assert_int_eq(embeng_model_get_table(m, table, &c), 0);
	return (size_t)(c.vocabulary_size *
			embeng_model_slot_width(m, (int)table, help_slot(m, table, array)));
}

static inline size_t help_rows(const struct embeng_model *m, size_t table)
{
	struct embeng_table_config c = {.size = sizeof(c)};

	ck_assert_int_eq(embeng_model_get_table(m, table, &c), 0);
	return (size_t)c.vocabulary_size;
}

static inline void help_expect_ok(int ret)
{
	struct embeng_error error = {.size = sizeof(error)};

	embeng_last_error(&error);
	ck_assert_msg(!ret, "%d: %s", ret, error.text);
}

static inline void help_expect(int ret, int want, const char *text)
{
	ck_assert_int_eq(ret, want);
	expect_text(text);
}

/* Writes all tables and slots. */
static inline void help_fill(struct embeng *e, uint32_t salt)
{
	const struct embeng_model *m = embeng_get_model(e);

	for (size_t t = 0; t < embeng_model_table_count(m); t++) {
		size_t elements = help_elements(m, t);
		float *data = malloc(elements * sizeof(*data));

		for (size_t a = 0; a <= embeng_model_slot_count(m, t); a++) {
			for (size_t i = 0; i < help_numbers(m, t, a); i++)
				data[i] = help_value(t, a, i, salt);
			help_expect_ok(embeng_rows_write(e, (int)t, help_slot(m, t, a), NULL,
							 help_rows(m, t), data));
		}
		free(data);
	}
}

static inline void help_compare(const float *got, size_t elements, size_t table, size_t array,
				uint32_t salt)
{
	for (size_t i = 0; i < elements; i++) {
		float want = help_value(table, array, i, salt);

		if (memcmp(&got[i], &want, sizeof(want)))
			ck_abort_msg("table %zu array %zu element %zu: %a, expected %a", table,
				     array, i, (double)got[i], (double)want);
	}
}

static inline void help_expect_array(struct embeng *e, size_t table, size_t array, uint32_t salt)
{
	const struct embeng_model *m = embeng_get_model(e);
	size_t elements = help_numbers(m, table, array);
	float *data = malloc(elements * sizeof(*data));

	help_expect_ok(embeng_rows_read(e, (int)table, help_slot(m, table, array), NULL,
					help_rows(m, table), data));
	help_compare(data, elements, table, array, salt);
	free(data);
}

/* Checks that all tables and slots have the values that help_fill() writes. */
static inline void help_expect_tables(struct embeng *e, uint32_t salt)
{
	const struct embeng_model *m = embeng_get_model(e);

	for (size_t t = 0; t < embeng_model_table_count(m); t++)
		for (size_t a = 0; a <= embeng_model_slot_count(m, t); a++)
			help_expect_array(e, t, a, salt);
}

/* Checks the values of help_fill() in an open checkpoint. */
static inline void help_expect_checkpoint(const struct embeng_checkpoint *c, uint32_t salt)
{
	const struct embeng_model *m = embeng_checkpoint_model(c);

	for (size_t t = 0; t < embeng_model_table_count(m); t++) {
		size_t elements = help_elements(m, t);
		float *data = malloc(elements * sizeof(*data));

		for (size_t a = 0; a <= embeng_model_slot_count(m, t); a++) {
			help_expect_ok(embeng_checkpoint_read(c, (int)t, help_slot(m, t, a), 0,
							      help_rows(m, t), data));
			help_compare(data, help_numbers(m, t, a), t, a, salt);
		}
		free(data);
	}
}

/* A progress function that looks at what it is told, and cancels when it was told to. */
struct help_watch {
	unsigned int calls, cancel_at; /* 0: never */
	uint64_t done, total;
	const char *what;
};

static inline int help_watch(void *arg, const struct embeng_progress *p)
{
	struct help_watch *w = arg;

	ck_assert_str_eq(p->what, w->what);
	ck_assert(!w->calls || (p->done >= w->done && p->total == w->total));
	w->done = p->done;
	w->total = p->total;
	return ++w->calls == w->cancel_at;
}

static inline struct embeng_checkpoint *help_checkpoint(const char *folder)
{
	struct embeng_checkpoint *c = NULL;
	struct embeng_error error = {.size = sizeof(error)};

	ck_assert_msg(!embeng_checkpoint_open(folder, &c, &error), "%s", error.text);
	return c;
}

/* Reads a row of the first table in the checkpoint of @back saves ago, which is whole. */
static inline void help_read_earlier(const char *folder, size_t back, int64_t row, float *data)
{
	struct embeng_checkpoint *c = NULL;

	help_expect_ok(embeng_checkpoint_open_earlier(folder, back, &c, NULL));
	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	help_expect_ok(embeng_checkpoint_read(c, 0, NULL, row, 1, data));
	embeng_checkpoint_close(c);
}

#endif
