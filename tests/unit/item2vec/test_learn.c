// SPDX-License-Identifier: MIT
/* Learning from end to end, and each way in which it is refused. */
#include <errno.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/cli/frame/exit.h"
#include "runtime/cli/lookup/served.h"
#include "runtime/examples/item2vec/learn_steps.h"
#include "cli_baskets.h"
#include "cli_capture.h"
#include "scratch_help.h"
#include "suite.h"

static const struct output text = {.verb = "train"};
static struct learn learn;
static char *folder, *dir, words[8192];

/* Four groups of eight items; a basket is four of one group. */
static void setup(void)
{
	words[0] = '\0';
	for (int b = 0; b < 120; b++) {
		for (int k = 0; k < 4; k++)
			sprintf(words + strlen(words), "g%d-%d ", b % 4,
				(b / 4 + k * (1 + b % 3)) % 8);
		strcat(words, "\n");
	}
	learn = (struct learn){.settings = settings_default};
	learn.settings.device = "soft:cores=1";
	learn.settings.dim = 8;
	ck_assert_int_eq(scratch_make(&folder), 0);
	dir = inside(folder, "ckpt");
}

static void teardown(void)
{
	free(dir);
	scratch_remove(folder);
}

static int run(const char *content)
{
	struct collector c;
	struct source s;

	ck_assert_int_eq(read_bytes(basket_read, content, strlen(content), &s, &c), 0);
	return learn_run(&text, &learn, &c, "orders.txt", NULL, clock_ns());
}

START_TEST(learns_and_answers)
{
	struct capture c;

	learn.queries[learn.query_count++] = "g2-3";
	capture_start(&c);
	ck_assert_int_eq(run(words), CLI_OK);
	capture_expect_in(&c, "g2-3 goes with: g2-", "");
}
END_TEST

START_TEST(usual_queries_that_are_there)
{
	static const char *const usual[] = {"nothing", "g1-1", NULL};
	struct capture c;

	learn.usual = usual;
	capture_start(&c);
	ck_assert_int_eq(run(words), CLI_OK);
	capture_expect_in(&c, "\n\ng1-1 goes with: g1-", "");
}
END_TEST

START_TEST(refusals)
{
	struct capture c;

	capture_start(&c);
	ck_assert_int_eq(run("a b\n"), CLI_CHECK);
	capture_expect_in(&c, "", "no basket has 3 items that are each in 5 baskets or more");
	learn.settings.by_time = true;
	capture_start(&c);
	ck_assert_int_eq(run(words), CLI_USAGE);
	capture_expect_in(&c, "", "--split time needs a timestamp");
	learn.settings.by_time = false;
	learn.queries[learn.query_count++] = "g9-9";
	capture_start(&c);
	ck_assert_int_eq(run(words), CLI_USAGE);
	capture_expect_in(&c, "", "'g9-9' is not among the 32 items that are in 5 baskets or more");
	learn.query_count = 0;
	learn.settings.device = "nowhere";
	capture_start(&c);
	ck_assert_int_eq(run(words), CLI_NO_DEVICE);
	capture_expect_in(&c, "", "nowhere");
}
END_TEST

START_TEST(saves_at_every_end)
{
	struct capture c;

	learn.save = dir;
	learn.max_steps = 5;
	capture_start(&c);
	ck_assert_int_eq(run(words), CLI_OK);
	capture_expect_in(&c, "Stopped by --max-steps after epoch 1 of ", "");
	learn.resume = dir;
	learn.max_steps = 0;
	ck_assert_int_eq(resume_read(&text, &learn), CLI_OK);
	row_names_free(&learn.known);
	ck_assert_uint_eq(learn.from.place.step, 5);
	capture_start(&c);
	ck_assert_int_eq(run(words), CLI_OK);
	capture_expect_in(&c, "Resumed after epoch 1 of ", "");
	ck_assert_int_eq(resume_read(&text, &learn), CLI_OK);
	row_names_free(&learn.known);
	ck_assert_uint_eq(learn.from.place.step, 0);
	ck_assert_int_gt(learn.from.place.epoch, 6);
}
END_TEST

/* The rows of a checkpoint that was saved in time, which are all finite. */
static void expect_finite(void)
{
	struct embeng_checkpoint *c;
	float rows[32 * 8];

	ck_assert_int_eq(embeng_checkpoint_open(dir, &c, NULL), 0);
	for (int table = 0; table < 2; table++) {
		ck_assert_int_eq(embeng_checkpoint_read(c, table, NULL, 0, 32, rows), 0);
		for (size_t k = 0; k < 32 * 8; k++)
			ck_assert(isfinite(rows[k]));
	}
	embeng_checkpoint_close(c);
}

START_TEST(a_diverged_training_is_not_saved)
{
	struct capture c;

	learn.settings.optimizer = EMBENG_SGD;
	learn.settings.learning_rate = 1000;
	capture_start(&c);
	ck_assert_int_eq(run(words), CLI_CHECK);
	capture_expect_in(&c, "", "the training diverged: the loss is not finite in epoch 1 of ");
	capture_start(&c);
	ck_assert_int_eq(run(words), CLI_CHECK);
	capture_expect_in(&c, "",
			  "Nothing is saved. Train again with a lower --learning-rate "
			  "than 1000, or with another --optimizer");
	learn.save = dir;
	learn.save_every = 1;
	capture_start(&c);
	ck_assert_int_eq(run(words), CLI_CHECK);
	capture_expect_in(&c, "", "holds the training as it was after epoch 1, step ");
	expect_finite();
	/* It diverges again, and what was saved stays. */
	learn.resume = dir;
	ck_assert_int_eq(resume_read(&text, &learn), CLI_OK);
	ck_assert_uint_gt(learn.from.place.step, 0);
	capture_start(&c);
	ck_assert_int_eq(run(words), CLI_CHECK);
	capture_expect_in(&c, "Resumed after epoch 1 of ", "is as it was. Train again");
	expect_finite();
}
END_TEST

/* A checkpoint in @dir of one table, with this program state. */
static void save_foreign(const char *state)
{
	struct embeng_table_config table = {
		.size = sizeof(table), .name = "t", .vocabulary_size = 3, .dim = 2};
	struct embeng_save_options options = {.size = sizeof(options), .program_state = state};
	struct embeng_model *model = embeng_model_new();
	struct embeng *e;

	ck_assert_int_eq(embeng_model_add_table(model, &table), 0);
	ck_assert_int_eq(embeng_open("soft:cores=1", model, &e, NULL), 0);
	ck_assert_int_eq(embeng_save(e, dir, &options), 0);
	embeng_close(e);
	embeng_model_free(model);
}

static void expect_not_resumed(int code, const char *sentence)
{
	struct capture c;

	learn.resume = dir;
	capture_start(&c);
	ck_assert_int_eq(resume_read(&text, &learn), code);
	capture_expect_in(&c, "", sentence);
}

START_TEST(checkpoints_of_others)
{
	expect_not_resumed(CLI_USAGE, "No such file");
	save_foreign(NULL);
	expect_not_resumed(CLI_USAGE, "cannot be resumed: embeng train did not write it");
	save_foreign("step 12");
	expect_not_resumed(CLI_USAGE, "cannot be resumed: embeng train did not write it");
	save_foreign("{\"schema\":\"embeng.training/1\"}");
	expect_not_resumed(CLI_USAGE, "cannot be resumed: its \"data\" is not 16 hexadecimal");
}
END_TEST

static int resume_with(const struct place *place, uint64_t data)
{
	learn.from = (struct training){.settings = learn.settings, .data = data, .place = *place};
	learn.resume = dir;
	learn.save = NULL;
	return run(words);
}

START_TEST(states_that_do_not_fit)
{
	struct dataset data = baskets(basket_read, words, 5, 3);
	uint64_t hash = dataset_hash(&data);
	struct place beyond = {.step = 1000}, start = {0}, late = {.epoch = 9};
	struct capture c;

	dataset_free(&data);
	capture_start(&c);
	ck_assert_int_eq(resume_with(&start, hash ^ 1), CLI_USAGE);
	capture_expect_in(&c, "", "it was trained on other data than orders.txt");
	capture_start(&c);
	ck_assert_int_eq(resume_with(&beyond, hash), CLI_USAGE);
	capture_expect_in(&c, "", "its place is beyond the last step of an epoch");
	learn.settings.epochs = 8;
	capture_start(&c);
	ck_assert_int_eq(resume_with(&late, hash), CLI_USAGE);
	capture_expect_in(&c, "", "the training is in epoch 9 already, --epochs 8 lies before it");
	/* All fits, but there are other tables. */
	save_foreign(NULL);
	capture_start(&c);
	ck_assert_int_eq(resume_with(&start, hash), CLI_USAGE);
	capture_expect_in(&c, "", "items_in");
}
END_TEST

/* Reads what @learn.save holds after a run that resumed @dir on other data. */
static struct training go_on(const char *content, int code)
{
	struct capture c;

	row_names_free(&learn.known);
	ck_assert_int_eq(resume_read(&text, &learn), CLI_OK);
	capture_start(&c);
	ck_assert_int_eq(run(content), code);
	capture_stop(&c);
	free(c.out_text);
	free(c.err_text);
	row_names_free(&learn.known);
	ck_assert_int_eq(resume_read(&text, &learn), CLI_OK);
	return learn.from;
}

static void save_two_epochs(void)
{
	char error[SETTING_ERROR];
	struct capture c;

	row_names_free(&learn.known);
	learn.resume = NULL;
	learn.save = dir;
	learn.settings = settings_default;
	learn.settings.device = "soft:cores=1";
	ck_assert_int_eq(setting_read(&learn.settings, "dim", "8", error), 0);
	ck_assert_int_eq(setting_read(&learn.settings, "epochs", "2", error), 0);
	capture_start(&c);
	ck_assert_int_eq(run(words), CLI_OK);
	capture_expect_in(&c, "", "");
	/* The next one is another run of the command. */
	learn.settings = settings_default;
	learn.settings.device = "soft:cores=1";
	learn.resume = dir;
}

/* As many epochs more, stopped in between or not; new items are behind the known ones. */
START_TEST(other_data)
{
	struct training whole, part;
	char more[9000];

	snprintf(more, sizeof(more), "%s", words + strlen("g0-0 "));
	for (int b = 0; b < 12; b++)
		strcat(more, "new-1 new-2 g1-1 g1-2\n");
	save_two_epochs();
	whole = go_on(more, CLI_OK);
	ck_assert_int_eq(whole.place.epoch, 4);
	ck_assert_int_eq(whole.last_epoch, 4);
	ck_assert_uint_eq(learn.known.count, 34);
	ck_assert_str_eq(learn.known.text[32], "new-1");
	row_names_free(&learn.known);
	scratch_remove(folder);
	ck_assert_int_eq(scratch_make(&folder), 0);
	free(dir);
	dir = inside(folder, "ckpt");
	save_two_epochs();
	learn.max_steps = 3;
	part = go_on(more, CLI_OK);
	ck_assert_int_eq(part.place.epoch, 2);
	ck_assert_uint_eq(part.place.step, 3);
	learn.max_steps = 0;
	part = go_on(more, CLI_OK);
	ck_assert_int_eq(part.place.epoch, 4);
	ck_assert(part.place.loss == whole.place.loss);
	ck_assert_uint_eq(part.data, whole.data);
	row_names_free(&learn.known);
}
END_TEST

START_TEST(other_data_refused)
{
	char error[SETTING_ERROR], *file = inside(dir, ROW_NAMES_FILE);
	struct capture c;

	save_two_epochs();
	ck_assert_int_eq(setting_read(&learn.settings, "epochs", "2", error), 0);
	ck_assert_int_eq(resume_read(&text, &learn), CLI_OK);
	capture_start(&c);
	ck_assert_int_eq(run(words + strlen("g0-0 ")), CLI_USAGE);
	capture_expect_in(&c, "", "2 epochs are trained already, so that --epochs 2 leaves none");
	row_names_free(&learn.known);
	ck_assert_int_eq(unlink(file), 0);
	free(file);
	expect_not_resumed(CLI_CORRUPT, "/embeng-items.names: No such file");
}
END_TEST

START_TEST(folders_to_save_in)
{
	char *file = inside(folder, "file"), *below = inside(dir, "below");
	struct capture c;

	fclose(fopen(file, "w"));
	learn.save = file;
	capture_start(&c);
	ck_assert_int_eq(save_prepare(&text, &learn), CLI_USAGE);
	capture_expect_in(&c, "", "Not a directory");
	learn.save = below;
	capture_start(&c);
	ck_assert_int_eq(save_prepare(&text, &learn), CLI_USAGE);
	capture_expect_in(&c, "", "No such file");
	learn.save = dir;
	ck_assert_int_eq(save_prepare(&text, &learn), CLI_OK);
	ck_assert_int_eq(save_prepare(&text, &learn), CLI_OK);
	save_foreign(NULL);
	capture_start(&c);
	ck_assert_int_eq(save_prepare(&text, &learn), CLI_USAGE);
	capture_expect_in(&c, "", "it holds a checkpoint, which is not replaced");
	/* By another name it is still the one that goes on. */
	free(below);
	below = inside(dir, ".");
	learn.resume = below;
	ck_assert_int_eq(save_prepare(&text, &learn), CLI_OK);
	free(file);
	free(below);
}
END_TEST

START_TEST(served_rows_are_the_tables)
{
	struct dataset data = baskets(basket_read, words, 5, 3);
	struct vectors v = {0};
	struct split split;
	struct trainer t;
	size_t bytes;
	float *in, *out;

	ck_assert_int_eq(split_baskets(&split, &data, SPLIT_SEED, 1), 0);
	ck_assert_int_eq(trainer_open(&t, &data, &split, &learn.settings), 0);
	for (int k = 0; k < 10; k++)
		ck_assert_int_eq(trainer_step(&t), 0);
	ck_assert_int_eq(embeng_save(t.e, dir, NULL), 0);
	in = trainer_rows(&t, TABLE_IN);
	out = trainer_rows(&t, TABLE_OUT);
	trainer_close(&t);
	ck_assert_int_eq(served_vectors(dir, data.items.count, &v), 0);
	bytes = data.items.count * v.dim * sizeof(float);
	ck_assert_uint_eq(v.dim, 8);
	ck_assert_mem_eq(v.in, in, bytes);
	ck_assert_mem_eq(v.out, out, bytes);
	free(v.in);
	free(v.out);
	/* One item more than there are. */
	ck_assert_int_eq(served_vectors(dir, data.items.count + 1, &v), -ERANGE);
	free(v.in);
	free(v.out);
	ck_assert_int_eq(served_vectors(folder, 1, &v), -ENOENT);
	free(in);
	free(out);
	split_free(&split);
	dataset_free(&data);
}
END_TEST

START_TEST(serving_leaves_nothing_behind)
{
	struct capture c;

	setenv("TMPDIR", folder, 1);
	learn.serve = true;
	capture_start(&c);
	ck_assert_int_eq(run(words), CLI_OK);
	capture_expect_in(&c, "Saved in a temporary folder", "");
	ck_assert_uint_eq(entries(folder), 0);
	learn.settings.device = "nowhere";
	capture_start(&c);
	ck_assert_int_eq(run(words), CLI_NO_DEVICE);
	capture_expect_in(&c, "", "nowhere");
	ck_assert_uint_eq(entries(folder), 0);
	setenv("TMPDIR", dir, 1);
	capture_start(&c);
	ck_assert_int_eq(run(words), CLI_USAGE);
	capture_expect_in(&c, "", "there is no temporary folder: No such file");
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, learns_and_answers);
	tcase_add_test(tcase, usual_queries_that_are_there);
	tcase_add_test(tcase, refusals);
	tcase_add_test(tcase, saves_at_every_end);
	tcase_add_test(tcase, a_diverged_training_is_not_saved);
	tcase_add_test(tcase, checkpoints_of_others);
	tcase_add_test(tcase, states_that_do_not_fit);
	tcase_add_test(tcase, other_data);
	tcase_add_test(tcase, other_data_refused);
	tcase_add_test(tcase, folders_to_save_in);
	tcase_add_test(tcase, served_rows_are_the_tables);
	tcase_add_test(tcase, serving_leaves_nothing_behind);
}

int main(void)
{
	return suite_main("learn", add);
}
