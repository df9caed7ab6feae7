// SPDX-License-Identifier: MIT
/* Saves of values that are not finite: refused by name, or saved and said so. */
#include <float.h>
#include <math.h>

#include "checkpoint_edit.h"
#include "suite.h"

#define ROWS 70
#define DIM 3

static struct embeng *open_pair(void)
{
	const struct help_table tables[] = {{"good", 5, 2, embeng_adagrad(0.1f)},
					    {"bad", ROWS, DIM, embeng_adam(0.1f)}};
	/* Otherwise such a value could not be written to begin with. */
	const struct embeng_engine_config engine = {.size = sizeof(engine),
						    .non_finite = EMBENG_NON_FINITE_ALLOW};
	struct embeng_model *m = help_model(tables, 2);
	struct embeng *e = NULL;

	ck_assert_int_eq(embeng_model_set_engine(m, &engine), 0);
	help_expect_ok(embeng_open(SMALL, m, &e, NULL));
	embeng_model_free(m);
	help_fill(e, 1);
	return e;
}

static int save_flags(struct embeng *e, const char *folder, uint32_t flags)
{
	struct embeng_save_options o = {.size = sizeof(o), .flags = flags, .shard_bytes = 1000};

	return embeng_save(e, folder, &o);
}

static void put_value(struct embeng *e, size_t array, int64_t row, size_t element, float value)
{
	const char *slot = help_slot(embeng_get_model(e), 1, array);
	float data[DIM];

	help_expect_ok(embeng_rows_read(e, 1, slot, &row, 1, data));
	data[element] = value;
	help_expect_ok(embeng_rows_write(e, 1, slot, &row, 1, data));
}

static void expect_finite(const char *folder, int good, int bad)
{
	struct embeng_checkpoint *c = help_checkpoint(folder);

	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	ck_assert_int_eq(embeng_checkpoint_finite(c, 0), good);
	ck_assert_int_eq(embeng_checkpoint_finite(c, 1), bad);
	help_expect(embeng_checkpoint_finite(c, 2), -ENOENT, "no table 2, it has 2");
	help_expect(embeng_checkpoint_finite(c, -1), -ENOENT, "no table -1");
	embeng_checkpoint_close(c);
}

static const struct {
	size_t array;
	int64_t row;
	size_t element;
	float value;
	const char *text;
} bad[] = {
	{0, 0, 0, NAN, "table bad, parameters: row 0, element 0 is nan"},
	{0, ROWS - 1, DIM - 1, INFINITY, "table bad, parameters: row 69, element 2 is inf"},
	{0, 31, 1, -INFINITY, "table bad, parameters: row 31, element 1 is -inf"},
	{1, 0, 1, INFINITY, "table bad, slot momenta: row 0, element 1 is inf"},
	{2, ROWS - 1, 0, NAN, "table bad, slot velocities: row 69, element 0 is nan"},
	{2, 1, DIM - 1, -NAN, "table bad, slot velocities: row 1, element 2 is "},
};

#define BAD_COUNT (sizeof(bad) / sizeof(*bad))

START_TEST(a_value_that_is_not_finite)
{
	static char names[HELP_FILES][256];
	struct embeng *e = open_pair();
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];
	size_t files;

	folder_new(folder);
	help_expect_ok(save_flags(e, folder, 0));
	expect_finite(folder, 1, 1);
	files = folder_files(folder, names, HELP_FILES);
	put_value(e, bad[_i].array, bad[_i].row, bad[_i].element, bad[_i].value);
	help_expect(save_flags(e, folder, 0), -ERANGE, bad[_i].text);
	expect_text("is as it was, EMBENG_SAVE_NOT_FINITE saves it");
	ck_assert_uint_eq(folder_files(folder, names, HELP_FILES), files);
	c = help_checkpoint(folder);
	help_expect_checkpoint(c, 1);
	embeng_checkpoint_close(c);
	help_expect_ok(save_flags(e, folder, EMBENG_SAVE_NOT_FINITE));
	expect_finite(folder, 1, 0);
	/* The row is right again, and so is the next checkpoint. */
	help_fill(e, 2);
	help_expect_ok(save_flags(e, folder, EMBENG_SAVE_NOT_FINITE));
	expect_finite(folder, 1, 1);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

START_TEST(the_largest_and_the_smallest_are_finite)
{
	static const float values[] = {FLT_MAX, -FLT_MAX, FLT_MIN, 1e-45f, 0.0f, -0.0f};
	struct embeng *e = open_pair();
	char folder[HELP_PATH];

	folder_new(folder);
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		put_value(e, 0, (int64_t)i, i % DIM, values[i]);
	help_expect_ok(save_flags(e, folder, 0));
	expect_finite(folder, 1, 1);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* Each copy is looked at anew, and is allowed to be what the first one was. */
START_TEST(a_copy_over_hosts_says_so_too)
{
	const struct embeng_reshard_options o = {
		.size = sizeof(o), .hosts = 3, .sharding = EMBENG_SHARDING_MOD};
	struct embeng *e = open_pair();
	char folder[HELP_PATH];

	folder_new(folder);
	put_value(e, 0, 5, 0, NAN);
	help_expect_ok(save_flags(e, folder, EMBENG_SAVE_NOT_FINITE));
	help_expect_ok(embeng_checkpoint_reshard(folder, folder, &o, NULL));
	expect_finite(folder, 1, 0);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* A checkpoint of a library that did not look can be read, and says nothing. */
START_TEST(an_index_without_the_note)
{
	static char text[EDIT_BYTES];
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];

	folder_new(folder);
	edit_save(folder);
	edit_read(folder, INDEX_NAME, text);
	edit_replace(text, "\"finite\": true", "\"infinite\": 1");
	edit_seal(text);
	edit_write(folder, INDEX_NAME, text, strlen(text));
	c = help_checkpoint(folder);
	help_expect(embeng_checkpoint_finite(c, 0), -ENODATA, "does not say whether table t");
	ck_assert_int_eq(embeng_checkpoint_finite(c, 1), 1);
	embeng_checkpoint_close(c);
	edit_replace(text, "\"infinite\": 1", "\"finite\": 1");
	edit_seal(text);
	edit_write(folder, INDEX_NAME, text, strlen(text));
	help_expect(edit_open(folder), -EBADMSG, "finite");
	folder_remove(folder);
}
END_TEST

START_TEST(other_flags_are_refused)
{
	struct embeng *e = open_pair();
	char folder[HELP_PATH];

	folder_new(folder);
	help_expect(save_flags(e, folder, 4), -EINVAL, "flags 0x4, known are 0x3");
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, a_value_that_is_not_finite, 0, BAD_COUNT);
	tcase_add_test(tcase, the_largest_and_the_smallest_are_finite);
	tcase_add_test(tcase, a_copy_over_hosts_says_so_too);
	tcase_add_test(tcase, an_index_without_the_note);
	tcase_add_test(tcase, other_flags_are_refused);
}

int main(void)
{
	return suite_main("finite", add);
}
