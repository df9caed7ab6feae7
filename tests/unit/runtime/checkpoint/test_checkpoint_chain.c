// SPDX-License-Identifier: MIT
/*
 * Uses of a chain of deltas: a restore in place, a training that goes on, lookups, and the earlier
 * checkpoints of a folder. A link that is missing, cut, or another file of its name is named.
 */
#include "checkpoint_edit.h"
#include "serving_help.h"
#include "suite.h"

#define ROOMY "soft:cores=1,memory=64M"
/* Room for the tables, 4.2 MB with their slots, and not for a copy of each. */
#define TIGHT "soft:cores=2,memory=5M"
#define LARGE_ROWS 4000
#define LARGE_DIM 130

static struct embeng_save_report report;

static void save_link(struct embeng *e, const char *folder, uint32_t keep, const char *state,
		      uint32_t delta)
{
	struct embeng_save_options o = {.size = sizeof(o),
					.flags = EMBENG_SAVE_DELTA,
					.keep = keep,
					.program_state = state,
					.report = &report};

	report = (struct embeng_save_report){.size = sizeof(report)};
	help_expect_ok(embeng_save(e, folder, &o));
	ck_assert_uint_eq(report.delta, delta);
}

/* Gives rows @first, @first + @apart and so on of all arrays of table 0 the values of @salt. */
static void change_rows(struct embeng *e, int64_t first, int64_t apart, uint32_t salt)
{
	const struct embeng_model *m = embeng_get_model(e);
	int64_t rows = (int64_t)help_rows(m, 0);
	size_t dim = help_elements(m, 0) / (size_t)rows;
	float data[LARGE_DIM];

	for (int64_t row = first; row < rows; row += apart) {
		for (size_t a = 0; a <= embeng_model_slot_count(m, 0); a++) {
			for (size_t i = 0; i < dim; i++)
				data[i] = help_value(0, a, (uint64_t)row * dim + i, salt);
			help_expect_ok(embeng_rows_write(e, 0, help_slot(m, 0, a), &row, 1, data));
		}
	}
}

/* The name of a shard of the folder's checkpoint, the first or the last one. */
static void find_shard(const char *folder, bool last, char name[SHARD_NAME_SIZE])
{
	static const char key[] = "\"name\": \"embeng-";
	static char text[EDIT_BYTES];
	char *at, *next;

	edit_read(folder, INDEX_NAME, text);
	at = strstr(strstr(text, "\"files\""), key);
	while (last && (next = strstr(at + 1, key)))
		at = next;
	at += strlen("\"name\": \"");
	snprintf(name, SHARD_NAME_SIZE, "%.*s", (int)strcspn(at, "\""), at);
}

/* -- restores -------------------------------------------------------------- */

static struct embeng *open_large(const char *device)
{
	const struct help_table t = {"t", LARGE_ROWS, LARGE_DIM, embeng_adagrad(0.1f)};

	return help_open(device, &t, 1);
}

/* A base of salt 1, a delta of every tenth row, and one of every fifth of those. */
static void save_large(const char *folder)
{
	struct embeng *e = open_large(ROOMY);

	help_fill(e, 1);
	save_link(e, folder, 1, NULL, 0);
	change_rows(e, 0, 10, 2);
	save_link(e, folder, 1, NULL, 1);
	ck_assert_uint_eq(report.rows, LARGE_ROWS / 10);
	change_rows(e, 0, 50, 3);
	save_link(e, folder, 1, NULL, 2);
	ck_assert_uint_eq(report.rows, LARGE_ROWS / 50);
	embeng_close(e);
}

static uint32_t salt_of_row(int64_t row)
{
	return row % 50 == 0 ? 3 : row % 10 == 0 ? 2 : 1;
}

static void expect_large(struct embeng *e)
{
	static float data[LARGE_ROWS * LARGE_DIM];
	const struct embeng_model *m = embeng_get_model(e);

	for (size_t a = 0; a <= 1; a++) {
		help_expect_ok(embeng_rows_read(e, 0, help_slot(m, 0, a), NULL, LARGE_ROWS, data));
		for (int64_t row = 0; row < LARGE_ROWS; row++) {
			uint64_t at = (uint64_t)row * LARGE_DIM + LARGE_DIM - 1;

			ck_assert_float_eq(data[at], help_value(0, a, at, salt_of_row(row)));
		}
	}
}

static int restore_passes(struct embeng *e, const char *folder, uint64_t *passes)
{
	struct help_watch w = {.what = "restore"};
	struct embeng_restore_options o = {
		.size = sizeof(o), .progress = help_watch, .progress_arg = &w};
	int ret = embeng_restore(e, folder, &o);

	*passes = w.total / (2ull * LARGE_ROWS * LARGE_DIM * 4);
	return ret;
}

START_TEST(a_chain_is_restored_in_place)
{
	struct embeng *e = open_large(_i ? TIGHT : ROOMY);
	char folder[HELP_PATH];
	uint64_t passes;

	folder_new(folder);
	save_large(folder);
	help_fill(e, 9);
	help_expect_ok(restore_passes(e, folder, &passes));
	ck_assert_uint_eq(passes, 1 + (uint64_t)_i);
	expect_large(e);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

static void flip_at_end(const char *folder, const char *name)
{
	char *path = file_path(folder, name);
	FILE *file = fopen(path, "r+b");
	int byte;

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fseek(file, -LARGE_DIM * 4 * 2, SEEK_END), 0);
	byte = fgetc(file);
	ck_assert_int_eq(fseek(file, -1, SEEK_CUR), 0);
	ck_assert_int_eq(fputc(byte ^ 1, file), byte ^ 1);
	ck_assert_int_eq(fclose(file), 0);
	free(path);
}

/* Every link is checked before the first row is replaced: the base, and the last delta. */
START_TEST(a_broken_link_leaves_the_tables)
{
	struct embeng *e = open_large(_i / 2 ? TIGHT : ROOMY);
	char folder[HELP_PATH], name[SHARD_NAME_SIZE];

	folder_new(folder);
	save_large(folder);
	find_shard(folder, _i % 2, name);
	flip_at_end(folder, name);
	help_fill(e, 9);
	help_expect(embeng_restore(e, folder, NULL), -EBADMSG, name);
	help_expect_tables(e, 9);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* -- a training that goes on ------------------------------------------------ */

#define BAGS 16

static struct embeng *open_trained(void)
{
	const struct help_table tables[] = {{"corrected", 400, 4, embeng_adam_corrected(0.01f)},
					    {"adam", 300, 3, embeng_adam(0.01f)}};

	return help_open(ROOMY, tables, 2);
}

/* Ids and gradients follow from the step and from the activations. */
static void train(struct embeng *e, uint64_t step)
{
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng_gradients g = {.size = sizeof(g), .count = 2};
	const float *features[2];
	const int64_t shape[] = {BAGS};
	int64_t ids[2][BAGS];

	for (size_t f = 0; f < 2; f++) {
		for (size_t i = 0; i < BAGS; i++)
			ids[f][i] = (int64_t)((step * 13 + i * 7 + f) % 300);
		help_expect_ok(embeng_batch_dense(b, (int)f, EMBENG_I64, ids[f], BAGS, shape, 1));
	}
	help_expect_ok(embeng_enqueue(e, b, -1));
	help_expect_ok(embeng_dequeue(e, 0, -1, &a));
	for (int f = 0; f < 2; f++) {
		float *to = embeng_gradient_buffer(e, 0, f);

		for (int64_t i = 0; i < a.features[f].shape[0] * a.features[f].shape[1]; i++)
			to[i] = a.features[f].data[i] -
				help_value((size_t)f, 0, (uint64_t)i, (uint32_t)step);
		features[f] = to;
	}
	g.features = features;
	help_expect_ok(embeng_apply_gradients(e, &g, -1));
	embeng_batch_free(b);
}

/* Table 1 is frozen for some of the steps, so that its count is another one. */
static void train_from(struct embeng *e, uint64_t from, uint64_t to)
{
	for (uint64_t step = from + 1; step <= to; step++) {
		help_expect_ok(embeng_table_freeze(e, 1, step % 3 == 0));
		train(e, step);
	}
}

static void expect_same_tables(struct embeng *got, struct embeng *want)
{
	const struct embeng_model *m = embeng_get_model(want);
	static float a[400 * 4], b[400 * 4];

	for (size_t t = 0; t < 2; t++) {
		for (size_t k = 0; k <= embeng_model_slot_count(m, t); k++) {
			const char *slot = help_slot(m, t, k);
			size_t rows = help_rows(m, t);

			help_expect_ok(embeng_rows_read(got, (int)t, slot, NULL, rows, a));
			help_expect_ok(embeng_rows_read(want, (int)t, slot, NULL, rows, b));
			ck_assert_mem_eq(a, b, help_elements(m, t) * sizeof(float));
		}
	}
}

static void expect_info(const char *folder, size_t back, uint64_t step, const char *state,
			uint32_t deltas)
{
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	struct embeng_checkpoint *c = NULL;

	help_expect_ok(embeng_checkpoint_open_earlier(folder, back, &c, NULL));
	help_expect_ok(embeng_checkpoint_info(c, &info));
	ck_assert_uint_eq(info.step, step);
	ck_assert_str_eq(info.program_state, state);
	ck_assert_uint_eq(info.deltas, deltas);
	embeng_checkpoint_close(c);
}

/*
 * Counts of steps, of each table, and the program's text are those of the newest link, or of the one that
 * is asked for: a training that goes on from either has the bits of one that never stopped.
 */
START_TEST(a_training_goes_on_from_each_link)
{
	struct embeng *whole = open_trained();
	char folder[HELP_PATH];

	folder_new(folder);
	help_fill(whole, 1);
	train_from(whole, 0, 4);
	save_link(whole, folder, 3, "four", 0);
	train_from(whole, 4, 9);
	save_link(whole, folder, 3, "nine", 1);
	train_from(whole, 9, 11);
	save_link(whole, folder, 3, "eleven", 2);
	train_from(whole, 11, 17);
	expect_info(folder, 0, 11, "eleven", 2);
	expect_info(folder, 1, 9, "nine", 1);
	expect_info(folder, 2, 4, "four", 0);
	for (size_t back = 0; back < 3; back++) {
		const uint64_t steps[] = {11, 9, 4};
		struct embeng_restore_options o = {
			.size = sizeof(o), .flags = EMBENG_RESTORE_STEP, .step = steps[back]};
		struct embeng *e = open_trained();

		help_expect_ok(embeng_restore(e, folder, &o));
		train_from(e, steps[back], 17);
		expect_same_tables(e, whole);
		embeng_close(e);
	}
	embeng_close(whole);
	folder_remove(folder);
}
END_TEST

/* -- links that are broken ---------------------------------------------------- */

static struct embeng *open_one(void)
{
	const struct help_table t = {"t", 100, 4, embeng_adagrad(0.1f)};

	return help_open(ROOMY, &t, 1);
}

/* A base and two deltas, of rows 0, 10, ... and of rows 0, 50. */
static void save_chain(const char *folder, uint32_t salt)
{
	struct embeng *e = open_one();

	help_fill(e, salt);
	save_link(e, folder, 1, NULL, 0);
	change_rows(e, 0, 10, salt + 1);
	save_link(e, folder, 1, NULL, 1);
	change_rows(e, 0, 50, salt + 2);
	save_link(e, folder, 1, NULL, 2);
	embeng_close(e);
}

enum damage { GONE, EMPTY, CUT, LONGER, OTHER_OF_ITS_NAME, OTHER_HEADER, DAMAGES };

/* The link of another folder under this one's name: as large, and whole in itself. */
static void replace_by_other(const char *folder, const char *name, bool last)
{
	static char data[EDIT_BYTES];
	char other[HELP_PATH], its[SHARD_NAME_SIZE];
	size_t length;

	folder_new(other);
	save_chain(other, 7);
	find_shard(other, last, its);
	length = edit_read(other, its, data);
	edit_write(folder, name, data, length);
	folder_remove(other);
}

static void damage_link(const char *folder, const char *name, bool last, enum damage damage)
{
	static char data[EDIT_BYTES];
	size_t length = edit_read(folder, name, data);
	char *path = file_path(folder, name);

	if (damage == GONE)
		ck_assert_int_eq(unlink(path), 0);
	else if (damage == EMPTY)
		edit_write(folder, name, data, 0);
	else if (damage == CUT)
		edit_write(folder, name, data, length - 1);
	else if (damage == LONGER)
		edit_write(folder, name, data, length + 1);
	else if (damage == OTHER_OF_ITS_NAME)
		replace_by_other(folder, name, last);
	else
		data[20] ^= 1, edit_write(folder, name, data, length);
	free(path);
}

/* The base or the last delta. */
START_TEST(verify_names_the_broken_link)
{
	const bool last = _i / DAMAGES;
	struct embeng_checkpoint *c = NULL;
	char folder[HELP_PATH], name[SHARD_NAME_SIZE];
	int ret;

	folder_new(folder);
	save_chain(folder, 1);
	find_shard(folder, last, name);
	damage_link(folder, name, last, (enum damage)(_i % DAMAGES));
	ret = embeng_checkpoint_open(folder, &c, NULL);
	if (!ret) {
		ret = embeng_checkpoint_verify(c, NULL, NULL);
		embeng_checkpoint_close(c);
	}
	help_expect(ret, -EBADMSG, name);
	folder_remove(folder);
}
END_TEST

/* -- lookups ---------------------------------------------------------------- */

static int look_up(struct embeng_serving *s, int64_t id, float out[4])
{
	const int64_t splits[] = {0, 1};
	struct embeng_serving_input in = ragged_input(0, &id, splits, 2);

	in.out = out;
	in.out_elements = 4;
	return embeng_serving_lookup(s, &in, 1);
}

/* Rows of the base and of either delta, with and without checks. */
START_TEST(a_chain_is_served)
{
	static const uint32_t flags[] = {0, EMBENG_SERVING_VERIFY, EMBENG_SERVING_TRUST,
					 EMBENG_SERVING_COPY};
	struct embeng_serving *s = NULL;
	char folder[HELP_PATH];
	float out[4];

	folder_new(folder);
	save_chain(folder, 1);
	help_expect_ok(embeng_serving_open(folder, NULL, flags[_i], &s, NULL));
	for (int64_t id = 0; id < 100; id++) {
		help_expect_ok(look_up(s, id, out));
		for (uint64_t i = 0; i < 4; i++)
			ck_assert_float_eq(out[i],
					   help_value(0, 0, (uint64_t)id * 4 + i, salt_of_row(id)));
	}
	embeng_serving_close(s);
	folder_remove(folder);
}
END_TEST

/* -- what stays in a folder ---------------------------------------------------- */

/* Whether row 0 has @salt in the checkpoint @back saves ago, which is whole. */
static bool is_earlier(const char *folder, size_t back, uint32_t salt)
{
	float row[4];

	help_read_earlier(folder, back, 0, row);
	for (uint64_t i = 0; i < 4; i++) {
		if (row[i] != help_value(0, 0, i, salt))
			return false;
	}
	return true;
}

static size_t count_shards(const char *folder)
{
	static char names[HELP_FILES][256];
	size_t files = folder_files(folder, names, HELP_FILES), count = 0;

	for (size_t i = 0; i < files; i++)
		count += is_shard_name(names[i]);
	return count;
}

/*
 * The index is lost or damaged; kept deltas are found by their names, and so is what they need. Those of
 * one step are in no order then.
 */
START_TEST(a_kept_delta_outlives_the_index)
{
	struct embeng *e = open_one();
	struct embeng_save_options full = {.size = sizeof(full), .keep = 3};
	char folder[HELP_PATH];

	folder_new(folder);
	help_fill(e, 1);
	save_link(e, folder, 3, NULL, 0);
	change_rows(e, 0, 10, 2);
	save_link(e, folder, 3, NULL, 1);
	change_rows(e, 0, 10, 3);
	save_link(e, folder, 3, NULL, 2);
	if (_i) {
		char *path = file_path(folder, INDEX_NAME);

		ck_assert_int_eq(unlink(path), 0);
		free(path);
	} else {
		static char text[EDIT_BYTES];
		size_t length = edit_read(folder, INDEX_NAME, text);

		text[length - 6] = text[length - 6] == '0' ? '1' : '0';
		edit_write(folder, INDEX_NAME, text, length);
	}
	change_rows(e, 0, 10, 4);
	help_expect_ok(embeng_save(e, folder, &full));
	ck_assert(is_earlier(folder, 0, 4));
	for (uint32_t salt = 1; salt <= 2; salt++)
		ck_assert_int_eq(is_earlier(folder, 1, salt) + is_earlier(folder, 2, salt), 1);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* Where the index of a kept one cannot be read, nobody knows what it needs, and nothing goes. */
START_TEST(nothing_goes_that_an_unreadable_index_may_need)
{
	static char text[EDIT_BYTES];
	struct embeng *e = open_one();
	struct embeng_save_options full = {.size = sizeof(full), .keep = 2};
	static char names[HELP_FILES][256];
	char folder[HELP_PATH];
	size_t files, length, before;

	folder_new(folder);
	help_fill(e, 1);
	save_link(e, folder, 2, NULL, 0);
	change_rows(e, 0, 10, 2);
	save_link(e, folder, 2, NULL, 1);
	change_rows(e, 0, 10, 3);
	save_link(e, folder, 2, NULL, 2);
	files = folder_files(folder, names, HELP_FILES);
	for (size_t i = 0; i < files; i++) {
		if (!is_kept_name(names[i]))
			continue;
		length = edit_read(folder, names[i], text);
		text[length / 2] ^= 1;
		edit_write(folder, names[i], text, length);
	}
	before = count_shards(folder);
	ck_assert_uint_eq(before, 3);
	full.keep = 3;
	help_expect_ok(embeng_save(e, folder, &full));
	ck_assert_uint_eq(count_shards(folder), before + 1);
	ck_assert(is_earlier(folder, 1, 3));
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

static void add(TCase *tcase)
{
	help_never_sync();
	tcase_add_loop_test(tcase, a_chain_is_restored_in_place, 0, 2);
	tcase_add_loop_test(tcase, a_broken_link_leaves_the_tables, 0, 4);
	tcase_add_test(tcase, a_training_goes_on_from_each_link);
	tcase_add_loop_test(tcase, verify_names_the_broken_link, 0, 2 * DAMAGES);
	tcase_add_loop_test(tcase, a_chain_is_served, 0, 4);
	tcase_add_loop_test(tcase, a_kept_delta_outlives_the_index, 0, 2);
	tcase_add_test(tcase, nothing_goes_that_an_unreadable_index_may_need);
}

int main(void)
{
	return suite_main("chain", add);
}
