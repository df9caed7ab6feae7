// SPDX-License-Identifier: MIT
/* Restores: into any number of cores, other models, too little memory, busy handles. */
#include "runtime/src/base/file.h"
#include "runtime/src/session/session.h"
#include "checkpoint_edit.h"
#include "suite.h"

static struct embeng *open_cores(unsigned int cores)
{
	char device[64];

	snprintf(device, sizeof(device), "soft:cores=%u,memory=64M", cores);
	return open_all(device);
}

START_TEST(round_trips_over_core_counts)
{
	static const unsigned int cores[] = {1, 2, 3, 7};
	struct embeng *e = open_cores(cores[_i / 4]), *f;
	struct embeng_save_options o = {.size = sizeof(o), .shard_bytes = 100000};
	char folder[HELP_PATH];

	folder_new(folder);
	help_fill(e, 3);
	help_expect_ok(embeng_save(e, folder, &o));
	embeng_close(e);
	f = open_cores(cores[_i % 4]);
	help_fill(f, 4);
	help_expect_ok(embeng_restore(f, folder, NULL));
	help_expect_tables(f, 3);
	embeng_close(f);
	folder_remove(folder);
}
END_TEST

/* One table "t" of 64 x 4 and a saved checkpoint of it. */
static struct embeng *open_one(const char *device, const char *name, int64_t rows, int64_t dim,
			       struct embeng_optimizer optimizer)
{
	const struct help_table t = {name, rows, dim, optimizer};

	return help_open(device, &t, 1);
}

static void save_one(const char *folder, struct embeng_optimizer optimizer)
{
	struct embeng *e = open_one(SMALL, "t", 64, 4, optimizer);

	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, NULL));
	embeng_close(e);
}

static int restore_flags(struct embeng *e, const char *folder, uint32_t flags)
{
	struct embeng_restore_options o = {.size = sizeof(o), .flags = flags};

	return embeng_restore(e, folder, &o);
}

/* A model without optimizer takes the parameters, and other settings of a kind change nothing. */
START_TEST(the_same_kind_or_none)
{
	struct embeng_optimizer faster = embeng_adam(0.5f);
	const struct {
		struct embeng_optimizer saved, restored;
	} pairs[] = {
		{embeng_adam(0.1f), {0}}, {embeng_adam(0.1f), faster}, {{0}, embeng_sgd(0.1f)}};
	struct embeng *e = open_one(SMALL, "t", 64, 4, pairs[_i].restored);
	char folder[HELP_PATH];

	folder_new(folder);
	save_one(folder, pairs[_i].saved);
	help_fill(e, 2);
	help_expect_ok(embeng_restore(e, folder, NULL));
	help_expect_tables(e, 1);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* Slots of the same names, of some of the same names, and none: the kind decides. */
START_TEST(another_optimizer_is_named_or_parameters_alone)
{
	const struct {
		struct embeng_optimizer saved, restored;
		const char *text;
	} pairs[] = {
		{embeng_ftrl(0.1f), embeng_adagrad(0.1f), "is adagrad, in "},
		{embeng_adagrad(0.1f), embeng_ftrl(0.1f), "is ftrl, in "},
		{embeng_adagrad_momentum(0.1f), embeng_adam(0.1f), " it is adagrad_momentum,"},
		{embeng_sgd(0.1f), embeng_adagrad(0.1f), " it is sgd,"},
		{embeng_adam(0.1f), embeng_sgd(0.1f), "is sgd, in "},
	};
	struct embeng *e = open_one(SMALL, "t", 64, 4, pairs[_i].restored);
	size_t slots = embeng_model_slot_count(embeng_get_model(e), 0);
	struct embeng_restore_report report = {.size = sizeof(report)};
	struct embeng_restore_options o = {
		.size = sizeof(o), .flags = EMBENG_RESTORE_OTHER_OPTIMIZER, .report = &report};
	char folder[HELP_PATH];

	folder_new(folder);
	save_one(folder, pairs[_i].saved);
	help_fill(e, 2);
	help_expect(restore_flags(e, folder,
				  EMBENG_RESTORE_MISSING_SLOTS | EMBENG_RESTORE_OTHER_SHAPES),
		    -EINVAL, pairs[_i].text);
	expect_text("table t: its optimizer");
	expect_text("EMBENG_RESTORE_OTHER_OPTIMIZER");
	help_expect_tables(e, 2);
	help_expect_ok(embeng_restore(e, folder, &o));
	help_expect_array(e, 0, 0, 1);
	for (size_t k = 1; k <= slots; k++)
		help_expect_array(e, 0, k, 2);
	ck_assert_uint_eq(report.slots, 0);
	ck_assert_uint_eq(report.slots_left, slots);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

static void set_step(const char *folder, const char *old, const char *new)
{
	static char text[EDIT_BYTES];

	edit_read(folder, INDEX_NAME, text);
	edit_replace(text, old, new);
	edit_seal(text);
	edit_write(folder, INDEX_NAME, text, strlen(text));
}

/* Updates are counted in 64 bits, and begin again at no time. */
START_TEST(a_step_count_leaves_room)
{
	const struct help_table tables[] = {{"t", 6, 2, embeng_adagrad(0.1f)}, {"u", 3, 2, {0}}};
	struct embeng *e = help_open(SMALL, tables, 2);
	char folder[HELP_PATH];

	folder_new(folder);
	edit_save(folder);
	help_fill(e, 2);
	set_step(folder, "\"step\": 0,", "\"step\": 4611686018427387905,");
	help_expect(embeng_restore(e, folder, NULL), -ERANGE, "at most 4611686018427387904");
	help_expect_tables(e, 2);
	set_step(folder, "7905,", "7904,");
	help_expect_ok(embeng_restore(e, folder, NULL));
	help_expect_tables(e, 1);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

START_TEST(a_missing_slot_is_named_or_left)
{
	struct embeng *e = open_one(SMALL, "t", 64, 4, embeng_adam(0.1f));
	char folder[HELP_PATH];

	folder_new(folder);
	save_one(folder, (struct embeng_optimizer){0});
	help_fill(e, 2);
	help_expect(embeng_restore(e, folder, NULL), -ENOENT, "table t: slot momenta");
	help_expect_tables(e, 2);
	help_expect_ok(restore_flags(e, folder, EMBENG_RESTORE_MISSING_SLOTS));
	help_expect_array(e, 0, 0, 1);
	help_expect_array(e, 0, 1, 2);
	help_expect_array(e, 0, 2, 2);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

START_TEST(a_missing_table_is_named_or_left)
{
	const struct help_table two[] = {{"t", 64, 4, embeng_sgd(0.1f)},
					 {"u", 64, 4, embeng_sgd(0.1f)}};
	struct embeng *e = help_open(SMALL, two, 2);
	char folder[HELP_PATH];

	folder_new(folder);
	save_one(folder, embeng_sgd(0.1f));
	help_fill(e, 2);
	help_expect(restore_flags(e, folder,
				  EMBENG_RESTORE_MISSING_SLOTS | EMBENG_RESTORE_OTHER_SHAPES),
		    -ENOENT, "table u is not in");
	help_expect_tables(e, 2);
	help_expect_ok(restore_flags(e, folder, EMBENG_RESTORE_MISSING_TABLES));
	help_expect_array(e, 0, 0, 1);
	help_expect_array(e, 1, 0, 2);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

START_TEST(tables_that_the_model_lacks_are_left_out)
{
	size_t count;
	const struct help_table *tables = all_optimizers(&count);
	struct embeng *e = open_cores(2), *f = help_open(SMALL, &tables[5], 1);
	char folder[HELP_PATH];
	float *data = malloc(1200 * sizeof(*data));

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, NULL));
	help_expect_ok(embeng_restore(f, folder, NULL));
	help_expect_ok(embeng_rows_read(f, 0, "velocities", NULL, 300, data));
	help_compare(data, 1200, 5, 2, 1);
	free(data);
	embeng_close(e);
	embeng_close(f);
	folder_remove(folder);
}
END_TEST

START_TEST(a_model_without_tables)
{
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	struct embeng *e = help_open(SMALL, NULL, 0);
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];

	folder_new(folder);
	help_expect_ok(embeng_save(e, folder, NULL));
	help_expect_ok(embeng_restore(e, folder, NULL));
	c = help_checkpoint(folder);
	ck_assert_int_eq(embeng_checkpoint_info(c, &info), 0);
	ck_assert(!info.table_count && !info.file_count && !info.bytes && !info.chunk_count);
	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	embeng_checkpoint_close(c);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

START_TEST(says_what_is_wrong_with_the_call)
{
	struct embeng *e = open_one(SMALL, "t", 64, 4, embeng_sgd(0.1f));
	struct embeng_restore_options o = {.size = 4};
	char folder[HELP_PATH];

	folder_new(folder);
	help_expect(embeng_restore(NULL, folder, NULL), -EINVAL, "no handle");
	help_expect(embeng_restore(e, NULL, NULL), -EINVAL, "no folder");
	help_expect(embeng_restore(e, folder, &o), -EINVAL, "size 4");
	help_expect(restore_flags(e, folder, 32), -EINVAL, "flags 0x20");
	help_expect(embeng_restore(e, folder, NULL), -ENOENT, "index.json");
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* -- progress, cancel, memory -------------------------------------------- */

/* Room for the tables, 6 MB with their slots, and not for a copy of each. */
#define TIGHT "soft:cores=2,memory=5M"

static int restore_watched(struct embeng *e, const char *folder, struct help_watch *w)
{
	struct embeng_restore_options o = {
		.size = sizeof(o), .progress = help_watch, .progress_arg = w};

	return embeng_restore(e, folder, &o);
}

static void cancel_everywhere(const char *device, unsigned int passes)
{
	const struct help_table t = {"t", 4000, 130, embeng_adagrad(0.1f)};
	struct embeng *e = help_open("soft:cores=1,memory=64M", &t, 1);
	struct help_watch w = {.what = "restore"};
	char folder[HELP_PATH];
	unsigned int calls, taken;

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, NULL));
	embeng_close(e);
	e = help_open(device, &t, 1);
	help_expect_ok(restore_watched(e, folder, &w));
	ck_assert_uint_eq(w.done, w.total);
	ck_assert_uint_eq(w.total, passes * 2ull * 4000 * 130 * 4);
	calls = w.calls;
	taken = passes == 1 ? calls : 1 + (calls - 1) / 2;
	ck_assert_uint_gt(taken, 4);
	for (unsigned int at = 1; at <= taken; at++) {
		help_fill(e, 2);
		w = (struct help_watch){.what = "restore", .cancel_at = at};
		help_expect(restore_watched(e, folder, &w), -ECANCELED, "as they were");
		ck_assert_uint_eq(w.calls, at);
		help_expect_tables(e, 2);
	}
	/* In place, with rows overwritten already, there is no way back. */
	for (unsigned int at = taken + 1; at <= calls; at++) {
		w = (struct help_watch){.what = "restore", .cancel_at = at};
		help_fill(e, 2);
		help_expect_ok(restore_watched(e, folder, &w));
		help_expect_tables(e, 1);
	}
	embeng_close(e);
	folder_remove(folder);
}

/* Staged, or in the first of two passes. */
START_TEST(cancels_at_each_call)
{
	cancel_everywhere(_i == 1 ? "soft:cores=2,memory=64M" : TIGHT, (unsigned int)_i);
}
END_TEST

static uint64_t room_left;

static uint64_t tell_room(struct device *d)
{
	(void)d;
	return room_left;
}

/*
 * Whatever the device promised when it was opened: copies are made where they fit into 95 % of what
 * is really there, and no byte beyond it.
 */
START_TEST(copies_where_there_is_room)
{
	static const struct {
		uint64_t room;
		unsigned int passes;
	} cases[] = {{UINT64_MAX, 1}, {4378960, 1}, {4378959, 2}, {0, 2}};
	const struct help_table t = {"t", 4000, 130, embeng_adagrad(0.1f)};
	struct embeng *e = help_open("soft:cores=2,memory=64M", &t, 1);
	struct help_watch w = {.what = "restore"};
	const struct device_ops *ops = e->device->ops;
	struct device_ops tight = *ops;
	char folder[HELP_PATH];

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, NULL));
	help_fill(e, 2);
	room_left = cases[_i].room;
	tight.room = tell_room;
	e->device->ops = &tight;
	help_expect_ok(restore_watched(e, folder, &w));
	e->device->ops = ops;
	ck_assert_uint_eq(w.total, cases[_i].passes * 2ull * 4000 * 130 * 4);
	help_expect_tables(e, 1);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

START_TEST(moves_rows_in_pieces)
{
	const struct help_table t = {"t", 40000, 130, embeng_adagrad(0.1f)};
	struct embeng *e = help_open("soft:cores=2,memory=256M", &t, 1);
	char folder[HELP_PATH];

	folder_new(folder);
	help_expect_ok(embeng_save(e, folder, NULL));
	help_expect_ok(embeng_restore(e, folder, NULL));
	/* 41 MB went through it. */
	ck_assert_uint_le(e->staging.length, 2 << 20);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

static int copies_left;

static int copy_then_fail(void *to, const void *from, uint64_t bytes)
{
	return copies_left-- ? file_ops_system.copy(to, from, bytes) : -EFAULT;
}

/* Fails each copy out of the shard in turn; true when the restore needed fewer. */
static bool fail_copy(struct embeng *e, const char *folder, int number, int *ret)
{
	static struct file_ops ops;

	ops = file_ops_system;
	ops.copy = copy_then_fail;
	copies_left = number;
	file_ops = &ops;
	*ret = embeng_restore(e, folder, NULL);
	file_ops = &file_ops_system;
	return copies_left >= 0;
}

START_TEST(a_read_error_leaves_the_tables)
{
	const struct help_table t = {"t", 300, 130, embeng_adagrad(0.1f)};
	struct embeng *e = help_open("soft:cores=2,memory=64M", &t, 1);
	char folder[HELP_PATH];
	int ret, number = 0;

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, NULL));
	help_fill(e, 2);
	while (!fail_copy(e, folder, number, &ret)) {
		help_expect(ret, -EIO, ".safetensors");
		help_expect_tables(e, 2);
		number++;
	}
	ck_assert_int_gt(number, 10);
	help_expect_ok(ret);
	help_expect_tables(e, 1);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* Thousands of copies are for the checks, and are sampled; the last ones put rows in place. */
static int choose_next_copy(int number, int most)
{
	const int sampled = most - 40;

	if (number >= sampled)
		return number + 1;
	return number + most / 64 < sampled ? number + most / 64 : sampled;
}

START_TEST(a_read_error_in_place_says_so)
{
	const struct help_table t = {"t", 4000, 130, embeng_adagrad(0.1f)};
	struct embeng *e = help_open(TIGHT, &t, 1);
	char folder[HELP_PATH];
	int ret, number = 0, most;
	bool mixed = false;

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, NULL));
	ck_assert(fail_copy(e, folder, INT32_MAX, &ret));
	most = INT32_MAX - copies_left;
	help_fill(e, 2);
	for (; !fail_copy(e, folder, number, &ret); number = choose_next_copy(number, most)) {
		struct embeng_error error = {.size = sizeof(error)};

		ck_assert_int_eq(ret, -EIO);
		embeng_last_error(&error);
		mixed = strstr(error.text, "in place, the tables hold some old");
		if (!mixed)
			help_expect_tables(e, 2);
	}
	ck_assert(mixed);
	help_expect_ok(ret);
	help_expect_tables(e, 1);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, round_trips_over_core_counts, 0, 16);
	tcase_add_loop_test(tcase, the_same_kind_or_none, 0, 3);
	tcase_add_loop_test(tcase, another_optimizer_is_named_or_parameters_alone, 0, 5);
	tcase_add_test(tcase, a_step_count_leaves_room);
	tcase_add_test(tcase, a_missing_slot_is_named_or_left);
	tcase_add_test(tcase, a_missing_table_is_named_or_left);
	tcase_add_test(tcase, tables_that_the_model_lacks_are_left_out);
	tcase_add_test(tcase, a_model_without_tables);
	tcase_add_test(tcase, says_what_is_wrong_with_the_call);
	tcase_add_loop_test(tcase, cancels_at_each_call, 1, 3);
	tcase_add_loop_test(tcase, copies_where_there_is_room, 0, 4);
	tcase_add_test(tcase, moves_rows_in_pieces);
	tcase_add_test(tcase, a_read_error_leaves_the_tables);
	tcase_add_test(tcase, a_read_error_in_place_says_so);
}

int main(void)
{
	return suite_main("restore", add);
}
