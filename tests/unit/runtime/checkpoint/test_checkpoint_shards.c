// SPDX-License-Identifier: MIT
/*
 * A checkpoint of many shards, as many hosts write one: opening it maps none, and each is mapped, and its
 * header looked at, when one of its rows is used first.
 */
#include "checkpoint_edit.h"
#include "runtime/src/checkpoint/open.h"
#include "suite.h"

#define SHARDS 1100 /* beyond those that are opened with the index */
#define THREADS 4

static struct {
	struct file_ops ops;
	atomic_uint count;
} maps;

static int count_map(int fd, uint64_t bytes, const void **map)
{
	atomic_fetch_add(&maps.count, 1);
	return file_ops_system.map(fd, bytes, map);
}

static int give_row(void *arg, int table, const char *slot, const struct embeng_shard_rows *rows,
		    float *data)
{
	const float factor = *(const float *)arg;

	(void)slot;
	for (int64_t i = 0; i < rows->count; i++)
		data[i] = factor * (float)(rows->first + i * rows->stride) + (float)table;
	return 0;
}

/* Each row is a shard of its own. */
static void write_rows(const char *folder, int64_t rows, float factor)
{
	struct embeng_write_options o = EMBENG_INIT(embeng_write_options);
	struct embeng_model *m = embeng_model_new();

	o.save = EMBENG_INIT(embeng_save_options, .shard_bytes = 1, .keep = 1);
	help_expect_ok(embeng_model_add_table(m, &EMBENG_INIT(embeng_table_config, .name = "t",
							      .vocabulary_size = rows, .dim = 1,
							      .optimizer = embeng_sgd(0.1f))));
	help_never_sync();
	help_expect_ok(embeng_checkpoint_write(folder, m, give_row, &factor, &o, NULL));
	embeng_model_free(m);
	maps.ops = *file_ops;
	maps.ops.map = count_map;
	maps.count = 0;
	file_ops = &maps.ops;
}

static float read_row(const struct embeng_checkpoint *c, int64_t row)
{
	float value = -1;

	help_expect_ok(embeng_checkpoint_read(c, 0, NULL, row, 1, &value));
	return value;
}

START_TEST(shards_are_opened_when_they_are_used)
{
	const struct checkpoint_piece *pieces;
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];

	folder_new(folder);
	write_rows(folder, SHARDS, 3);
	c = help_checkpoint(folder);
	ck_assert_uint_eq(c->index.file_count, SHARDS);
	ck_assert_uint_eq(maps.count, 0);
	ck_assert_float_eq(read_row(c, 700), 2100);
	ck_assert_float_eq(read_row(c, 700), 2100);
	ck_assert_uint_eq(maps.count, 1);
	ck_assert_int_eq(checkpoint_pieces(c, 0, 0, &pieces), SHARDS);
	ck_assert_uint_eq(maps.count, SHARDS);
	for (int64_t row = 0; row < SHARDS; row++)
		ck_assert_float_eq(pieces[row].rows[0], (float)(3 * row));
	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	ck_assert_uint_eq(maps.count, SHARDS);
	embeng_checkpoint_close(c);
	folder_remove(folder);
}
END_TEST

/* A checkpoint of fewer shards has all of them from its opening on. */
START_TEST(few_shards_are_opened_at_once)
{
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];

	folder_new(folder);
	write_rows(folder, 20, 3);
	c = help_checkpoint(folder);
	ck_assert_uint_eq(maps.count, 20);
	write_rows(folder, 20, 5);
	for (int64_t row = 0; row < 20; row++)
		ck_assert_float_eq(read_row(c, row), (float)(3 * row));
	embeng_checkpoint_close(c);
	folder_remove(folder);
}
END_TEST

/* Rows of shards that were used before stay; the others are gone with the save that replaced them. */
START_TEST(a_save_takes_shards_that_were_not_used)
{
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];
	float value = -1;

	folder_new(folder);
	write_rows(folder, SHARDS, 3);
	c = help_checkpoint(folder);
	ck_assert_float_eq(read_row(c, 1), 3);
	write_rows(folder, SHARDS, 5);
	ck_assert_float_eq(read_row(c, 1), 3);
	help_expect(embeng_checkpoint_read(c, 0, NULL, 2, 1, &value), -ESTALE,
		    "open the checkpoint again");
	help_expect(embeng_checkpoint_read(c, 0, NULL, 2, 1, &value), -ESTALE,
		    c->index.files[2].name);
	ck_assert_float_eq(value, -1);
	embeng_checkpoint_close(c);
	c = help_checkpoint(folder);
	ck_assert_float_eq(read_row(c, 2), 10);
	embeng_checkpoint_close(c);
	folder_remove(folder);
}
END_TEST

/* Damage of a header, or a shard that was cut, is found by whoever uses the shard. */
START_TEST(a_broken_shard_is_found_when_it_is_used)
{
	struct embeng_checkpoint *c;
	char folder[HELP_PATH], *path;
	float value = -1;
	FILE *f;

	folder_new(folder);
	write_rows(folder, SHARDS, 3);
	c = help_checkpoint(folder);
	path = file_path(folder, c->index.files[9].name);
	f = fopen(path, "r+b");
	ck_assert_ptr_nonnull(f);
	if (_i)
		ck_assert_int_eq(ftruncate(fileno(f), 20), 0);
	else
		ck_assert_int_ge(fputs("\x7f\x7f", f), 0);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_float_eq(read_row(c, 8), 24);
	for (int i = 0; i < 2; i++)
		help_expect(embeng_checkpoint_read(c, 0, NULL, 9, 1, &value), -EBADMSG,
			    c->index.files[9].name);
	ck_assert_float_eq(read_row(c, 10), 30);
	embeng_checkpoint_close(c);
	free(path);
	folder_remove(folder);
}
END_TEST

static void *read_all_rows(void *arg)
{
	float *values = malloc(SHARDS * sizeof(*values));

	if (values && embeng_checkpoint_read(arg, 0, NULL, 0, SHARDS, values)) {
		free(values);
		values = NULL;
	}
	return values;
}

/* Threads that need the same shard at once open it once. */
START_TEST(threads_open_a_shard_once)
{
	struct embeng_checkpoint *c;
	pthread_t threads[THREADS];
	char folder[HELP_PATH];

	folder_new(folder);
	write_rows(folder, SHARDS, 3);
	c = help_checkpoint(folder);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, read_all_rows, c), 0);
	for (int i = 0; i < THREADS; i++) {
		void *values = NULL;

		ck_assert_int_eq(pthread_join(threads[i], &values), 0);
		ck_assert_ptr_nonnull(values);
		for (int k = 0; k < SHARDS; k++)
			ck_assert_float_eq(((const float *)values)[k], (float)(3 * k));
		free(values);
	}
	ck_assert_uint_eq(maps.count, SHARDS);
	embeng_checkpoint_close(c);
	folder_remove(folder);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, shards_are_opened_when_they_are_used);
	tcase_add_test(tcase, few_shards_are_opened_at_once);
	tcase_add_test(tcase, a_save_takes_shards_that_were_not_used);
	tcase_add_loop_test(tcase, a_broken_shard_is_found_when_it_is_used, 0, 2);
	tcase_add_test(tcase, threads_open_a_shard_once);
}

int main(void)
{
	return suite_main("shards", add);
}
