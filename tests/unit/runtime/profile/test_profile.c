// SPDX-License-Identifier: MIT
/*
 * Profiles: which batches are looked at, what is counted, files that several models share, and
 * rotations that spread rows over cores.
 */
#include <math.h>

#include "checkpoint_edit.h"
#include "embeng/preprocess.h"
#include "embeng/profile.h"

static struct embeng_model *make_model(const char *second)
{
	struct embeng_model *m = embeng_model_new();
	const char *const names[] = {"t", second};

	for (int i = 0; i < 2; i++) {
		struct embeng_table_config t = {
			.size = sizeof(t), .name = names[i], .vocabulary_size = 1000, .dim = 1};
		struct embeng_feature_config f = {.size = sizeof(f), .table = i};

		ck_assert_int_eq(embeng_model_add_table(m, &t), i);
		ck_assert_int_eq(embeng_model_add_feature(m, &f), i);
	}
	return m;
}

struct scene {
	struct embeng_model *m;
	struct embeng *e;
	struct embeng_profile *p;
};

static struct scene start(const char *folder, const char *second, float rate)
{
	const struct embeng_profile_options o = {.size = sizeof(o), .rate = rate, .seed = 5};
	struct scene s = {.m = make_model(second)};

	help_expect_ok(embeng_open(SMALL, s.m, &s.e, NULL));
	help_expect_ok(embeng_profile_open(folder, s.m, &o, &s.p, NULL));
	return s;
}

static void end(struct scene *s)
{
	embeng_profile_close(s->p);
	embeng_close(s->e);
	embeng_model_free(s->m);
}

/* A batch of these ids for the first table, and of ids 1, 1 for the second. */
static int note(const struct scene *s, const int32_t *ids, size_t count)
{
	const int64_t of_first[] = {(int64_t)count}, of_second[] = {2};
	const int64_t ones[] = {1, 1};
	struct embeng_batch *b = embeng_batch_new(s->e, EMBENG_INFERENCE, 0);
	int ret;

	help_expect_ok(embeng_batch_dense(b, 0, EMBENG_I32, ids, count, of_first, 1));
	help_expect_ok(embeng_batch_dense(b, 1, EMBENG_I64, ones, 2, of_second, 1));
	ret = embeng_profile_note(s->p, b);
	embeng_batch_free(b);
	return ret;
}

static struct embeng_profile_counts counts_of(const struct embeng_profile *p, size_t table)
{
	struct embeng_profile_counts c = {.size = sizeof(c)};

	help_expect_ok(embeng_profile_counts(p, table, &c));
	return c;
}

START_TEST(rows_are_counted)
{
	const int32_t ids[] = {7, 999, 7, -1, 1000, 3, 7, 999};
	struct embeng_profile_counts c;
	char folder[HELP_PATH];
	struct scene s;

	folder_new(folder);
	s = start(folder, "u", 1);
	ck_assert_int_eq(note(&s, ids, 8), 1);
	ck_assert_int_eq(note(&s, ids, 1), 1);
	c = counts_of(s.p, 0);
	ck_assert(c.batches == 2 && c.ids == 7 && c.hot_count == 3);
	ck_assert(c.hot[0].row == 7 && c.hot[0].count == 4);
	ck_assert(c.hot[1].row == 999 && c.hot[1].count == 2);
	ck_assert(c.hot[2].row == 3 && c.hot[2].count == 1);
	c = counts_of(s.p, 1);
	ck_assert(c.batches == 2 && c.ids == 4 && c.hot_count == 1);
	ck_assert(c.hot[0].row == 1 && c.hot[0].count == 4);
	end(&s);
	folder_remove(folder);
}
END_TEST

/* At a rate of 3 %, 60 or so of 2000 batches are looked at, the same ones for the same seed. */
START_TEST(some_batches_are_looked_at)
{
	const int32_t ids[] = {1};
	char folder[HELP_PATH], chosen[2000];
	uint64_t looked_at = 0;
	struct scene s;

	folder_new(folder);
	for (int run = 0; run < 2; run++) {
		s = start(folder, "u", 0);
		for (int i = 0; i < 2000; i++) {
			int ret = note(&s, ids, 1);

			ck_assert(ret == 0 || ret == 1);
			ck_assert(!run || chosen[i] == ret);
			chosen[i] = (char)ret;
			looked_at += !run && ret;
		}
		ck_assert_uint_eq(counts_of(s.p, 0).batches, looked_at);
		end(&s);
	}
	ck_assert_uint_gt(looked_at, 30);
	ck_assert_uint_lt(looked_at, 90);
	folder_remove(folder);
}
END_TEST

START_TEST(the_hottest_rows_stay)
{
	char folder[HELP_PATH];
	struct embeng_profile_counts c;
	int32_t ids[2000];
	struct scene s;

	folder_new(folder);
	s = start(folder, "u", 1);
	/* Row r comes once, and once more from 600 on. */
	for (int i = 0; i < 1000; i++)
		ids[i] = i;
	for (int i = 0; i < 400; i++)
		ids[1000 + i] = 600 + i;
	ck_assert_int_eq(note(&s, ids, 1400), 1);
	c = counts_of(s.p, 0);
	ck_assert(c.ids == 1400 && c.hot_count == EMBENG_PROFILE_HOT);
	for (int i = 0; i < EMBENG_PROFILE_HOT; i++)
		ck_assert(c.hot[i].row == 600 + i && c.hot[i].count == 2);
	end(&s);
	folder_remove(folder);
}
END_TEST

/* Two profiles at once, then one of another model that has the first table, too. */
START_TEST(files_are_shared)
{
	static char names[HELP_FILES][256];
	const int32_t ids[] = {7, 7, 8};
	struct embeng_profile_counts c;
	char folder[HELP_PATH];
	struct scene a, b;

	folder_new(folder);
	a = start(folder, "u", 1);
	b = start(folder, "u", 1);
	ck_assert_int_eq(note(&a, ids, 3), 1);
	ck_assert_int_eq(note(&b, ids, 2), 1);
	help_expect_ok(embeng_profile_save(a.p));
	help_expect_ok(embeng_profile_save(b.p));
	help_expect_ok(embeng_profile_save(a.p));
	c = counts_of(b.p, 0);
	ck_assert(c.batches == 2 && c.ids == 5 && c.hot[0].row == 7 && c.hot[0].count == 4);
	end(&a);
	end(&b);
	ck_assert_uint_eq(folder_files(folder, names, HELP_FILES), 3);
	a = start(folder, "other", 1);
	c = counts_of(a.p, 0);
	ck_assert(c.batches == 2 && c.ids == 5 && c.hot_count == 2);
	ck_assert_uint_eq(counts_of(a.p, 1).batches, 0);
	ck_assert_int_eq(note(&a, ids, 1), 1);
	help_expect_ok(embeng_profile_save(a.p));
	ck_assert_uint_eq(counts_of(a.p, 0).ids, 6);
	end(&a);
	ck_assert_uint_eq(folder_files(folder, names, HELP_FILES), 4);
	folder_remove(folder);
}
END_TEST

/* The file of table "t", with one thing changed. */
static void refuse_file(const char *folder, const char *name, const char *old, const char *new,
			const char *text)
{
	static char was[EDIT_BYTES], now[EDIT_BYTES];
	size_t length = edit_read(folder, name, was);
	struct embeng_model *m = make_model("u");
	struct embeng_profile *p = NULL;

	memcpy(now, was, length + 1);
	edit_replace(now, old, new);
	edit_write(folder, name, now, strlen(now));
	help_expect(embeng_profile_open(folder, m, NULL, &p, NULL), -EBADMSG, text);
	ck_assert_ptr_null(p);
	edit_write(folder, name, was, length);
	embeng_model_free(m);
}

START_TEST(files_refused)
{
	static char names[HELP_FILES][256], text[EDIT_BYTES];
	const int32_t ids[] = {7, 7, 8};
	const char *name = NULL;
	char folder[HELP_PATH];
	struct scene s;
	size_t count;

	folder_new(folder);
	s = start(folder, "u", 1);
	ck_assert_int_eq(note(&s, ids, 3), 1);
	help_expect_ok(embeng_profile_save(s.p));
	end(&s);
	count = folder_files(folder, names, HELP_FILES);
	for (size_t i = 0; i < count; i++) {
		if (!strstr(names[i], ".json"))
			continue;
		edit_read(folder, names[i], text);
		name = strstr(text, "\"t\"") ? names[i] : name;
	}
	ck_assert_ptr_nonnull(name);
	refuse_file(folder, name, "profile/1", "profile/2", "\"schema\" is not");
	refuse_file(folder, name, "\"t\"", "\"x\"", "is of another table");
	refuse_file(folder, name, "\"t\"", "7", "\"table\" is not a text");
	refuse_file(folder, name, "1000", "1001", "is of another table");
	refuse_file(folder, name, "\"num_features\": 1", "\"num_features\": 2", "another table");
	refuse_file(folder, name, "\"hosts\": 1", "\"hosts\": 2", "is of another table");
	refuse_file(folder, name, "\"div\"", "\"mod\"", "is of another table");
	refuse_file(folder, name, "\"batches\": 1", "\"batches\": -1", "\"batches\" is not");
	refuse_file(folder, name, "\"ids\": 3", "\"ids\": 0.5", "\"ids\" is not");
	refuse_file(folder, name, "\"hot\": [", "\"hot\": 1, \"x\": [", "\"hot\" is not an array");
	refuse_file(folder, name, "\"hot\": [", "\"hot\": [1, ", "hot 0: is not a row");
	refuse_file(folder, name, "\"hot\": [", "\"hot\": [[1, 2, 3], ", "hot 0: is not a row");
	refuse_file(folder, name, "\"hot\": [", "\"hot\": [[1000, 2], ", "hot 0: is not a row");
	refuse_file(folder, name, "\"hot\": [", "\"hot\": [[1, -2], ", "hot 0: is not a row");
	refuse_file(folder, name, "{", "", "no JSON");
	folder_remove(folder);
}
END_TEST

START_TEST(refused)
{
	struct embeng_profile_options o = {.size = sizeof(o)};
	struct embeng_profile_counts c = {.size = sizeof(c)};
	struct embeng_model *m = make_model("u");
	struct embeng_profile *p = NULL;
	struct scene s, other;
	struct embeng_batch *b;
	char folder[HELP_PATH], nowhere[HELP_PATH + 8];
	uint32_t rotations[2];

	folder_new(folder);
	snprintf(nowhere, sizeof(nowhere), "%s/none", folder);
	help_expect(embeng_profile_open(NULL, m, NULL, &p, NULL), -EINVAL, "must be given");
	help_expect(embeng_profile_open(folder, NULL, NULL, &p, NULL), -EINVAL, "must be given");
	help_expect(embeng_profile_open(folder, m, NULL, NULL, NULL), -EINVAL, "must be given");
	help_expect(embeng_profile_open(nowhere, m, NULL, &p, NULL), -ENOENT, "none");
	o.rate = 1.5f;
	help_expect(embeng_profile_open(folder, m, &o, &p, NULL), -ERANGE, "rate 1.5");
	o.rate = -0.5f;
	help_expect(embeng_profile_open(folder, m, &o, &p, NULL), -ERANGE, "rate -0.5");
	o.rate = NAN;
	help_expect(embeng_profile_open(folder, m, &o, &p, NULL), -ERANGE, "rate nan");
	o.size = 4;
	help_expect(embeng_profile_open(folder, m, &o, &p, NULL), -EINVAL, "size 4");
	ck_assert_ptr_null(p);
	s = start(folder, "u", 1);
	help_expect(embeng_profile_counts(s.p, 2, &c), -ENOENT, "no table 2");
	help_expect(embeng_profile_counts(NULL, 0, &c), -EINVAL, "must be given");
	help_expect(embeng_profile_counts(s.p, 0, NULL), -EINVAL, "must be given");
	c.size = 8;
	help_expect(embeng_profile_counts(s.p, 0, &c), -EINVAL, "must be given");
	help_expect(embeng_profile_rotations(s.p, 0, rotations), -ERANGE, "0 cores");
	help_expect(embeng_profile_rotations(s.p, 4097, rotations), -ERANGE, "4097 cores");
	help_expect(embeng_profile_rotations(NULL, 1, rotations), -EINVAL, "must be given");
	help_expect(embeng_profile_rotations(s.p, 1, NULL), -EINVAL, "must be given");
	help_expect(embeng_profile_save(NULL), -EINVAL, "must be given");
	other = start(folder, "v", 1);
	b = embeng_batch_new(other.e, EMBENG_INFERENCE, 0);
	help_expect(embeng_profile_note(s.p, NULL), -EINVAL, "must be given");
	help_expect(embeng_profile_note(NULL, b), -EINVAL, "must be given");
	embeng_batch_free(b);
	end(&other);
	end(&s);
	embeng_model_free(m);
	embeng_profile_close(NULL);
	folder_remove(folder);
}
END_TEST

/* Row 0 of both is hot: beside each other on one core, they go to two. */
START_TEST(rotations_spread_hot_rows)
{
	const int32_t ids[] = {0, 0, 0, 0, 5, 5, 2};
	char folder[HELP_PATH];
	uint32_t rotations[2] = {9, 9};
	struct scene s;

	folder_new(folder);
	s = start(folder, "u", 1);
	help_expect_ok(embeng_profile_rotations(s.p, 4, rotations));
	ck_assert(rotations[0] == 0 && rotations[1] == 0);
	ck_assert_int_eq(note(&s, ids, 7), 1);
	/* The first table loads the four cores by 4, 2, 1, 0; row 1 of the other has 2. */
	help_expect_ok(embeng_profile_rotations(s.p, 4, rotations));
	ck_assert_uint_eq(rotations[0], 0);
	ck_assert_uint_eq(rotations[1], 0);
	ck_assert_int_eq(note(&s, ids + 6, 1), 1);
	ck_assert_int_eq(note(&s, ids + 6, 1), 1);
	/* 4, 2, 3, 0 and 6: the other table is placed first; then the first's 4 elsewhere. */
	help_expect_ok(embeng_profile_rotations(s.p, 4, rotations));
	ck_assert_uint_eq(rotations[1], 0);
	ck_assert_uint_eq(rotations[0], 2);
	help_expect_ok(embeng_profile_rotations(s.p, 1, rotations));
	ck_assert(rotations[0] == 0 && rotations[1] == 0);
	end(&s);
	folder_remove(folder);
}
END_TEST

/* The most ids of a core and partition, when row 5 of one table and row 1 of the other are hot. */
static uint32_t most_ids(const struct scene *s, const struct embeng_profile *profile)
{
	const struct embeng_stacking_options o = {
		.size = sizeof(o), .sparse_cores = 4, .profile = profile};
	const int32_t fives[] = {5, 5, 5, 5}, ones[] = {1, 1, 1, 1};
	const int64_t shape[] = {4};
	struct embeng_batch *b = embeng_batch_new(s->e, EMBENG_INFERENCE, 0);
	struct embeng_stacking *stacking = NULL;
	struct embeng_preprocessed *out = NULL;
	uint32_t most = 0;

	help_expect_ok(embeng_stacking_make(s->m, &o, &stacking));
	ck_assert_int_eq(stacking->tables[0].rotation, profile ? 2 : 0);
	ck_assert_int_eq(stacking->tables[1].rotation, 0);
	help_expect_ok(embeng_batch_dense(b, 0, EMBENG_I32, fives, 4, shape, 1));
	help_expect_ok(embeng_batch_dense(b, 1, EMBENG_I32, ones, 4, shape, 1));
	help_expect_ok(embeng_preprocess(s->e, b, stacking, NULL, &out));
	for (int core = 0; core < 4; core++)
		most = out->stacks[0].max_ids[core] > most ? out->stacks[0].max_ids[core] : most;
	embeng_preprocessed_free(out);
	embeng_stacking_free(stacking);
	embeng_batch_free(b);
	return most;
}

START_TEST(stacks_are_rotated)
{
	const int32_t ids[] = {0, 0, 0, 0, 5, 5, 2, 2, 2};
	struct embeng_stacking_options o = {
		.size = sizeof(o), .sparse_cores = 4, .rotation_given = 1};
	struct embeng_stacking *stacking = NULL;
	char folder[HELP_PATH];
	struct scene s, other;

	folder_new(folder);
	s = start(folder, "u", 1);
	help_expect_ok(embeng_model_build(s.m, 4));
	ck_assert_int_eq(note(&s, ids, 9), 1);
	ck_assert_int_eq(note(&s, ids, 0), 1);
	ck_assert_int_eq(note(&s, ids, 0), 1);
	ck_assert_uint_eq(most_ids(&s, NULL), 2);
	ck_assert_uint_eq(most_ids(&s, s.p), 1);
	o.profile = s.p;
	help_expect(embeng_stacking_make(s.m, &o, &stacking), -EINVAL, "rotation 0 is given");
	o.rotation_given = 0;
	other = start(folder, "v", 1);
	o.profile = other.p;
	help_expect(embeng_stacking_make(s.m, &o, &stacking), -EINVAL, "other tables");
	o.profile = s.p;
	o.sparse_cores = 2 * EMBENG_PROFILE_CORES;
	help_expect(embeng_stacking_make(s.m, &o, &stacking), -ERANGE, "8192 cores");
	ck_assert_ptr_null(stacking);
	end(&other);
	end(&s);
	folder_remove(folder);
}
END_TEST

RUN_SUITE("profile", rows_are_counted, some_batches_are_looked_at, the_hottest_rows_stay,
	  files_are_shared, files_refused, refused, rotations_spread_hot_rows, stacks_are_rotated)
