// SPDX-License-Identifier: MIT
/*
 * Tables that are parts of larger ones: which numbers are taken, what a model tells and means by them,
 * programs of the time before there were any, and rows that are as in the whole table.
 */
#include <stddef.h>

#include "embeng/checkpoint.h"
#include "embeng/shard.h"
#include "embeng_engine.h"
#include "runtime/src/session/session.h"
#include "scratch_help.h"
#include "test_model.h"

#define WHOLE_ROWS 40
#define WHOLE_DIM 21

/* Rows 3, 7, ... 31 and columns 5 to 7. */
static const struct embeng_table_part middle = {WHOLE_ROWS, 3, 4, WHOLE_DIM, 5};

static struct embeng_table_config part_config(const char *name)
{
	struct embeng_table_config c = table_config(name);

	c.part = middle;
	return c;
}

static struct embeng_table_part told_part(const struct embeng_table_config *given)
{
	struct embeng_table_config c = EMBENG_INIT(embeng_table_config);
	struct embeng_model *m = embeng_model_new(), *copy;

	ck_assert_int_eq(embeng_model_add_table(m, given), 0);
	copy = model_copy(m);
	ck_assert_uint_eq(embeng_model_hash(copy), embeng_model_hash(m));
	embeng_model_free(m);
	ck_assert_int_eq(embeng_model_get_table(copy, 0, &c), 0);
	embeng_model_free(copy);
	return c.part;
}

static bool is_part(struct embeng_table_part p, struct embeng_table_part want)
{
	return p.rows == want.rows && p.first_row == want.first_row &&
	       p.row_step == want.row_step && p.dim == want.dim &&
	       p.first_column == want.first_column;
}

START_TEST(test_told_with_defaults)
{
	struct embeng_table_config c = part_config("t");

	ck_assert(is_part(told_part(&c), middle));
	c.part = (struct embeng_table_part){.rows = 9, .first_row = 1};
	ck_assert(is_part(told_part(&c), (struct embeng_table_part){9, 1, 1, 3, 0}));
	/* No rows: the rest is ignored. */
	c.part.rows = 0;
	c.part.first_row = -7;
	ck_assert(is_part(told_part(&c), (struct embeng_table_part){0}));
	/* All of a table is no part of it, nor does the only row have a next one. */
	c.part = (struct embeng_table_part){.rows = 8, .dim = 3, .row_step = 1};
	ck_assert(is_part(told_part(&c), (struct embeng_table_part){0}));
	c.vocabulary_size = 1;
	c.part = (struct embeng_table_part){.rows = 8, .first_row = 7, .row_step = INT64_MAX};
	ck_assert(is_part(told_part(&c), (struct embeng_table_part){8, 7, 1, 3, 0}));
	/* The largest that there is. */
	c.vocabulary_size = 2;
	c.part = (struct embeng_table_part){INT64_MAX, 0, INT64_MAX - 1, UINT32_MAX,
					    UINT32_MAX - 3};
	ck_assert(is_part(told_part(&c), c.part));
}
END_TEST

#define REFUSED_PART(change, ...) \
	ASSERT_TABLE_REFUSED(c.part = middle; \
			     c.part.change, ERANGE, "table users: part: ", __VA_ARGS__)

START_TEST(test_refused)
{
	REFUSED_PART(rows = 7, "has 7 rows", "8");
	REFUSED_PART(rows = -1, "has -1 rows");
	REFUSED_PART(first_row = -1, "first_row -1 must be 0 to 32");
	REFUSED_PART(first_row = 33, "first_row 33 must be 0 to 32");
	REFUSED_PART(row_step = -1, "row_step -1 must be 1 to 5", "last of its 8 rows from row 3",
		     "40 of the whole");
	REFUSED_PART(row_step = 6, "row_step 6 must be 1 to 5");
	REFUSED_PART(row_step = INT64_MAX, "must be 1 to 5");
	REFUSED_PART(first_row = 12, "row_step 4 must be 1 to 3");
	REFUSED_PART(dim = 2, "dim 2", "3", "4294967295");
	REFUSED_PART(dim = -1, "dim -1");
	REFUSED_PART(dim = (int64_t)UINT32_MAX + 1, "dim 4294967296");
	REFUSED_PART(dim = 0, "first_column 5 must be 0 to 0");
	REFUSED_PART(first_column = -1, "first_column -1 must be 0 to 18");
	REFUSED_PART(first_column = 19, "first_column 19 must be 0 to 18");
	REFUSED_PART(first_column = INT64_MAX, "must be 0 to 18");
	ASSERT_TABLE_REFUSED(c.part = middle; c.vocabulary_size = 1;
			     c.part.row_step = -1, ERANGE, "row_step -1 must be 1 to");
}
END_TEST

static uint64_t hash_of(const struct embeng_table_config *c)
{
	struct embeng_model *m = embeng_model_new();
	uint64_t hash;

	ck_assert_int_eq(embeng_model_add_table(m, c), 0);
	hash = embeng_model_hash(m);
	embeng_model_free(m);
	return hash;
}

START_TEST(test_hash)
{
	struct embeng_table_config c = table_config("t");
	const uint64_t whole = hash_of(&c);
	uint64_t part;

	c.part = (struct embeng_table_part){.rows = 8, .dim = 3};
	ck_assert_uint_eq(hash_of(&c), whole);
	c.part = middle;
	part = hash_of(&c);
	ck_assert_uint_ne(part, whole);
	ck_assert_uint_eq(hash_of(&c), part);
	c.part.first_row = 2;
	ck_assert_uint_ne(hash_of(&c), part);
	c.part = middle;
	c.part.first_column = 4;
	ck_assert_uint_ne(hash_of(&c), part);
}
END_TEST

/* Behind the tables, for those that are parts. */
START_TEST(test_record)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng_table_config c = table_config("plain");
	struct embeng_record_shard r;
	size_t length;
	void *blob;

	ck_assert_int_eq(embeng_model_add_table(m, &c), 0);
	c = part_config("t");
	ck_assert_int_eq(embeng_model_add_table(m, &c), 1);
	ck_assert_int_eq(embeng_model_blob(m, &blob, &length), 0);
	memcpy(&r,
	       (char *)blob + sizeof(struct embeng_blob_header) +
		       sizeof(struct embeng_record_engine) + 2 * sizeof(struct embeng_record_table),
	       sizeof(r));
	ck_assert_uint_eq(r.head.type, EMBENG_RECORD_SHARD);
	ck_assert_uint_eq(r.head.flags, EMBENG_RECORD_MANDATORY);
	ck_assert_uint_eq(r.head.length, sizeof(r));
	ck_assert_uint_eq(r.table, 1);
	ck_assert_uint_eq(r.whole_rows, WHOLE_ROWS);
	ck_assert_uint_eq(r.first_row, 3);
	ck_assert_uint_eq(r.row_step, 4);
	ck_assert_uint_eq(r.whole_dim, WHOLE_DIM);
	ck_assert_uint_eq(r.first_column, 5);
	ck_assert_uint_eq(r.reserved, 0);
	free(blob);
	embeng_model_free(m);
}
END_TEST

/* A program that was built before gives, and has room for, what there was then. */
START_TEST(test_programs_of_before)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng_table_config c = part_config("t"), got;

	c.size = offsetof(struct embeng_table_config, part);
	c.frozen = 1;
	ck_assert_int_eq(embeng_model_add_table(m, &c), 0);
	ck_assert_int_eq(embeng_model_get_table(m, 0, &EMBENG_INIT(embeng_table_config)), 0);
	memset(&got, 0x55, sizeof(got));
	got.size = c.size;
	ck_assert_int_eq(embeng_model_get_table(m, 0, &got), 0);
	ck_assert_uint_eq(got.size, c.size);
	ck_assert_int_eq(got.frozen, 1);
	ck_assert_int_eq(got.part.rows, 0x5555555555555555);
	got = (struct embeng_table_config){.size = sizeof(got)};
	ck_assert_int_eq(embeng_model_get_table(m, 0, &got), 0);
	ck_assert_uint_eq(got.size, sizeof(got));
	ck_assert(is_part(got.part, (struct embeng_table_part){0}));
	c.size++;
	ASSERT_REFUSED(embeng_model_add_table(m, &c), EINVAL, "embeng_table_config", "size");
	ASSERT_REFUSED(embeng_model_get_table(m, 0, &c), EINVAL, "its size");
	embeng_model_free(m);
}
END_TEST

/* -- rows ---------------------------------------------------------------- */

static const struct embeng_initializer starts[] = {
	{EMBENG_INIT_DEFAULT, 0, 0, 0},
	{EMBENG_INIT_UNIFORM, -1, 3, 5},
	{EMBENG_INIT_TRUNCATED_NORMAL, 2, 0.5f, 6},
	{EMBENG_INIT_CONSTANT, 0.75f, 0, 0},
};

static struct embeng_table_config random_config(const struct embeng_initializer *start,
						struct embeng_slot_start *slot)
{
	struct embeng_table_config c = table_config("t");

	*slot = (struct embeng_slot_start){"accumulators", {EMBENG_INIT_UNIFORM, 1, 2, 3}};
	c.vocabulary_size = WHOLE_ROWS;
	c.dim = WHOLE_DIM;
	c.optimizer = embeng_adagrad(0.5f);
	c.initializer = *start;
	c.slot_starts = slot;
	c.slot_start_count = 1;
	return c;
}

static struct embeng *open_table(const struct embeng_table_config *c)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);
	struct embeng_model *m = embeng_model_new();
	struct embeng *e = NULL;

	ck_assert_int_eq(embeng_model_add_table(m, c), 0);
	ck_assert_msg(!embeng_open("soft:cores=2,memory=64M", m, &e, &error), "%s", error.text);
	embeng_model_free(m);
	return e;
}

static const struct {
	int64_t rows, dim;
	struct embeng_table_part part;
} cuts[] = {
	{8, 3, {WHOLE_ROWS, 3, 4, WHOLE_DIM, 5}},
	{13, WHOLE_DIM, {WHOLE_ROWS, 1, 3, 0, 0}},
	{20, WHOLE_DIM, {WHOLE_ROWS, 20, 0, 0, 0}},
	{WHOLE_ROWS, 5, {WHOLE_ROWS, 0, 0, WHOLE_DIM, 16}},
	{1, 1, {WHOLE_ROWS, 39, 9, WHOLE_DIM, 20}},
};

static void expect_part(const float *got, const float *whole, int cut)
{
	const struct embeng_table_part *p = &cuts[cut].part;
	const int64_t step = p->row_step ? p->row_step : 1;

	for (int64_t i = 0; i < cuts[cut].rows; i++)
		ck_assert_mem_eq(got + i * cuts[cut].dim,
				 whole + (p->first_row + i * step) * WHOLE_DIM + p->first_column,
				 (size_t)cuts[cut].dim * sizeof(float));
}

/* Both arrays of a part, read from the device and computed without one. */
static void compare_tables(struct embeng *part, struct embeng *whole, int cut)
{
	const struct embeng_shard shard = EMBENG_INIT(embeng_shard, .hosts = 1);
	const size_t rows = (size_t)cuts[cut].rows;
	float got[WHOLE_ROWS * WHOLE_DIM], want[WHOLE_ROWS * WHOLE_DIM];

	for (int slot = 0; slot < 2; slot++) {
		const char *name = slot ? "accumulators" : NULL;

		ck_assert_int_eq(embeng_rows_read(whole, 0, name, NULL, WHOLE_ROWS, want), 0);
		ck_assert_int_eq(embeng_rows_read(part, 0, name, NULL, rows, got), 0);
		expect_part(got, want, cut);
		memset(got, 0, sizeof(got));
		ck_assert_int_eq(
			embeng_shard_start(embeng_get_model(part), 0, name, &shard, 0, rows, got),
			0);
		expect_part(got, want, cut);
	}
}

START_TEST(test_rows_begin_as_in_the_whole)
{
	struct embeng_slot_start slot;

	for (size_t i = 0; i < COUNT(starts); i++) {
		struct embeng_table_config c = random_config(&starts[i], &slot);
		struct embeng *whole = open_table(&c), *part;

		c.vocabulary_size = cuts[_i].rows;
		c.dim = cuts[_i].dim;
		c.part = cuts[_i].part;
		part = open_table(&c);
		compare_tables(part, whole, _i);
		embeng_close(part);
		embeng_close(whole);
	}
}
END_TEST

/* Filled anew, a range at a time. */
START_TEST(test_rows_are_filled_as_in_the_whole)
{
	struct embeng_slot_start slot;
	struct embeng_table_config c = random_config(&starts[3], &slot);
	struct embeng *whole = open_table(&c), *part;
	const size_t rows = (size_t)cuts[_i].rows, first = rows / 3;
	float got[WHOLE_ROWS * WHOLE_DIM], want[WHOLE_ROWS * WHOLE_DIM];

	c.vocabulary_size = cuts[_i].rows;
	c.dim = cuts[_i].dim;
	c.part = cuts[_i].part;
	part = open_table(&c);
	for (size_t i = 0; i < COUNT(starts); i++) {
		ck_assert_int_eq(embeng_rows_fill(whole, 0, NULL, 0, WHOLE_ROWS, &starts[i]), 0);
		ck_assert_int_eq(embeng_rows_read(whole, 0, NULL, NULL, WHOLE_ROWS, want), 0);
		ck_assert_int_eq(
			embeng_rows_fill(part, 0, NULL, (int64_t)first, rows - first, &starts[i]),
			0);
		ck_assert_int_eq(embeng_rows_fill(part, 0, NULL, 0, first, &starts[i]), 0);
		ck_assert_int_eq(embeng_rows_read(part, 0, NULL, NULL, rows, got), 0);
		expect_part(got, want, _i);
	}
	embeng_close(part);
	embeng_close(whole);
}
END_TEST

/* Hosts of a checkpoint's shards have rows of a part as they have those of a table. */
START_TEST(test_shards_of_a_part)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng_table_config c = part_config("t");
	struct embeng_shard all = EMBENG_INIT(embeng_shard, .hosts = 1);
	float rows[8 * 3], got[3 * 3];

	ck_assert_int_eq(embeng_model_add_table(m, &c), 0);
	ck_assert_int_eq(embeng_shard_start(m, 0, NULL, &all, 0, 8, rows), 0);
	for (uint32_t host = 0; host < 3; host++) {
		struct embeng_shard shard = EMBENG_INIT(embeng_shard, .hosts = 3, .host = host,
							.sharding = EMBENG_SHARDING_MOD);
		const size_t count = host < 2 ? 3 : 2;

		ck_assert_int_eq(embeng_shard_start(m, 0, NULL, &shard, 0, count, got), 0);
		for (size_t i = 0; i < count; i++)
			ck_assert_mem_eq(got + i * 3, rows + (host + 3 * i) * 3, 3 * sizeof(*got));
	}
	embeng_model_free(m);
}
END_TEST

/* The part is compared where tables are added, and a device that knows no parts is named. */
START_TEST(test_added)
{
	struct embeng_table_config c = part_config("t");
	struct embeng *e = open_table(&c);
	struct embeng_model *m = embeng_model_new(), *other = embeng_model_new();

	ck_assert_int_eq(embeng_model_add_table(m, &c), 0);
	c.part.first_row = 2;
	ck_assert_int_eq(embeng_model_add_table(other, &c), 0);
	ASSERT_REFUSED(embeng_add_tables(e, other), EINVAL, "table t ");
	embeng_model_free(other);
	other = embeng_model_new();
	c.part.rows = 0;
	ck_assert_int_eq(embeng_model_add_table(other, &c), 0);
	ASSERT_REFUSED(embeng_add_tables(e, other), EINVAL, "the part that is table t ");
	embeng_model_free(other);
	c = part_config("u");
	ck_assert_int_eq(embeng_model_add_table(m, &c), 1);
	e->device->info.features &= ~(uint64_t)EMBENG_CAP_SHARDS;
	ASSERT_REFUSED(embeng_add_tables(e, m), ENOTSUP, "table t is a part of a larger one",
		       "soft", "firmware");
	e->device->info.features |= EMBENG_CAP_SHARDS;
	ck_assert_int_eq(embeng_add_tables(e, m), 0);
	embeng_model_free(m);
	embeng_close(e);
}
END_TEST

/* A checkpoint's model is the one that was saved. */
START_TEST(test_saved)
{
	char folder[32];
	struct embeng_table_config c = part_config("t"), got = EMBENG_INIT(embeng_table_config);
	struct embeng_checkpoint *saved;
	struct embeng *e = open_table(&c);

	scratch_folder_make(folder);
	ck_assert_int_eq(embeng_save(e, folder, NULL), 0);
	ck_assert_int_eq(embeng_checkpoint_open(folder, &saved, NULL), 0);
	ck_assert_int_eq(embeng_model_get_table(embeng_checkpoint_model(saved), 0, &got), 0);
	ck_assert(is_part(got.part, middle));
	ck_assert_uint_eq(embeng_model_hash(embeng_checkpoint_model(saved)),
			  embeng_model_hash(embeng_get_model(e)));
	embeng_checkpoint_close(saved);
	embeng_close(e);
	scratch_folder_remove(folder);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("table_part");
	TCase *all = tcase_create("table_part");

	tcase_add_test(all, test_told_with_defaults);
	tcase_add_test(all, test_refused);
	tcase_add_test(all, test_hash);
	tcase_add_test(all, test_record);
	tcase_add_test(all, test_programs_of_before);
	tcase_add_loop_test(all, test_rows_begin_as_in_the_whole, 0, COUNT(cuts));
	tcase_add_loop_test(all, test_rows_are_filled_as_in_the_whole, 0, COUNT(cuts));
	tcase_add_test(all, test_shards_of_a_part);
	tcase_add_test(all, test_added);
	tcase_add_test(all, test_saved);
	suite_add_tcase(suite, all);
	return suite_run(suite);
}
