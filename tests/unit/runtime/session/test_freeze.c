// SPDX-License-Identifier: MIT
/* Frozen tables through the library: gradients that nobody reads, the switch, and checkpoints. */
#include <sys/mman.h>
#include <math.h>

#include "checkpoint_help.h"
#include "session_help.h"

/* Table "text" without an optimizer and table "user" with one, a feature of each. */
static struct embeng_model *make_model(struct embeng_optimizer optimizer, int frozen)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng_table_config t = {.size = sizeof(t),
					.name = "text",
					.vocabulary_size = 4,
					.dim = 2,
					.initializer = {EMBENG_INIT_CONSTANT, .a = 0.5f}};
	struct embeng_feature_config f = {.size = sizeof(f), .name = "word"};

	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	t.name = "user";
	t.optimizer = optimizer;
	t.frozen = frozen;
	ck_assert_int_eq(embeng_model_add_table(m, &t), 1);
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	f.name = "id";
	f.table = 1;
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 1);
	return m;
}

static struct embeng *open_model(struct embeng_optimizer optimizer, int frozen)
{
	struct embeng_model *m = make_model(optimizer, frozen);
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng *e = NULL;

	ck_assert_msg(!embeng_open(SMALL, m, &e, &error), "%s", error.text);
	embeng_model_free(m);
	return e;
}

/* Looks row 1 of both up, and hands these gradients in. */
static int step(struct embeng *e, const float *text, const float *user)
{
	struct embeng_activations a = {.size = sizeof(a)};
	const float *features[] = {text, user};
	struct embeng_gradients g = {.size = sizeof(g), .count = 2, .features = features};
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	int64_t id = 1, shape = 1;

	ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I64, &id, 1, &shape, 1), 0);
	ck_assert_int_eq(embeng_batch_dense(b, 1, EMBENG_I64, &id, 1, &shape, 1), 0);
	ck_assert_int_eq(embeng_enqueue(e, b, 0), 0);
	embeng_batch_free(b);
	ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a), 0);
	return embeng_apply_gradients(e, &g, 0);
}

static float row(struct embeng *e, int table, const char *slot)
{
	const int64_t id = 1;
	float data[2];

	ck_assert_int_eq(embeng_rows_read(e, table, slot, &id, 1, data), 0);
	return data[0];
}

/* Memory that faults when it is read. */
static float *unreadable(void)
{
	void *p = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(p, MAP_FAILED);
	return p;
}

static const float ones[2] = {1, 1};

START_TEST(gradients_of_frozen_tables_are_not_read)
{
	struct embeng *e = open_model(embeng_sgd(0.25f), 0);
	struct embeng_counter_values before = {.size = sizeof(before)}, after = before;
	float *nowhere = unreadable();

	ck_assert_int_eq(embeng_counters(e, &before), 0);
	ck_assert_int_eq(step(e, nowhere, ones), 0);
	ck_assert_int_eq(embeng_counters(e, &after), 0);
	/* Two ids, and the gradients of one table. */
	ck_assert_uint_eq(after.bytes_copied - before.bytes_copied, 2 * 8 + 2 * 4);
	ck_assert_int_eq(step(e, NULL, ones), 0);
	ck_assert(row(e, 0, NULL) == 0.5f && row(e, 1, NULL) == 0.0f);
	ck_assert_int_eq(embeng_table_freeze(e, 1, 1), 0);
	ck_assert_int_eq(step(e, nowhere, nowhere), 0);
	ck_assert_int_eq(step(e, NULL, NULL), 0);
	ck_assert(row(e, 0, NULL) == 0.5f && row(e, 1, NULL) == 0.0f);
	ck_assert_int_eq(embeng_table_freeze(e, 1, 0), 0);
	ck_assert_int_eq(step(e, nowhere, ones), 0);
	ck_assert(row(e, 1, NULL) == -0.25f);
	embeng_close(e);
	munmap(nowhere, 4096);
}
END_TEST

struct heard {
	int warnings;
};

static void hear(void *arg, enum embeng_log_level level, const char *text)
{
	struct heard *heard = arg;

	(void)text;
	heard->warnings += level == EMBENG_LOG_WARNING;
}

START_TEST(missing_gradients_of_frozen_tables_are_no_warning)
{
	struct embeng *e = open_model(embeng_sgd(0.25f), 0);
	struct heard heard = {0};

	embeng_log(e, hear, &heard, EMBENG_LOG_WARNING);
	ck_assert_int_eq(step(e, NULL, ones), 0);
	ck_assert_int_eq(embeng_table_freeze(e, 1, 1), 0);
	ck_assert_int_eq(step(e, NULL, NULL), 0);
	ck_assert_int_eq(heard.warnings, 0);
	ck_assert_int_eq(embeng_table_freeze(e, 1, 0), 0);
	ck_assert_int_eq(step(e, NULL, NULL), 0);
	ck_assert_int_eq(heard.warnings, 1);
	embeng_close(e);
}
END_TEST

START_TEST(the_switch)
{
	struct embeng *e = open_model(embeng_adagrad(0.5f), 0);

	ck_assert_int_eq(embeng_table_frozen(e, 0), 1);
	ck_assert_int_eq(embeng_table_frozen(e, 1), 0);
	ck_assert_int_eq(embeng_table_freeze(e, 0, 1), 0);
	ck_assert_int_eq(embeng_table_freeze(e, 0, 0), -EINVAL);
	expect_text("embeng_table_freeze: table text has no optimizer");
	for (int table = -1; table < 3; table += 3) {
		ck_assert_int_eq(embeng_table_freeze(e, table, 1), -ENOENT);
		ck_assert_int_eq(embeng_table_frozen(e, table), -ENOENT);
		expect_text("the model has 2");
	}
	ck_assert_int_eq(embeng_table_freeze(e, 1, -5), 0);
	ck_assert_int_eq(embeng_table_frozen(e, 1), 1);
	ck_assert_int_eq(embeng_table_freeze(e, 1, 0), 0);
	ck_assert_int_eq(embeng_table_frozen(e, 1), 0);
	embeng_close(e);
	ck_assert_int_eq(embeng_table_freeze(NULL, 0, 1), -EINVAL);
	ck_assert_int_eq(embeng_table_frozen(NULL, 0), -EINVAL);
}
END_TEST

START_TEST(a_model_may_say_so)
{
	struct embeng_model *m = make_model(embeng_adagrad(0.5f), 1);
	struct embeng_model *plain = make_model(embeng_adagrad(0.5f), 0);
	struct embeng_table_config t = {.size = sizeof(t)};
	struct embeng *e = open_model(embeng_adagrad(0.5f), 1);

	ck_assert_int_eq(embeng_model_get_table(m, 1, &t), 0);
	ck_assert_int_eq(t.frozen, 1);
	ck_assert_uint_eq(embeng_model_hash(m), embeng_model_hash(plain));
	ck_assert_int_eq(embeng_table_frozen(e, 1), 1);
	ck_assert_int_eq(step(e, NULL, unreadable()), 0);
	ck_assert(row(e, 1, NULL) == 0.5f && row(e, 1, "accumulators") == 0.1f);
	ck_assert_int_eq(embeng_table_freeze(e, 1, 0), 0);
	ck_assert_int_eq(step(e, NULL, ones), 0);
	ck_assert(row(e, 1, NULL) != 0.5f && row(e, 1, "accumulators") == 0.1f + 1);
	embeng_close(e);
	embeng_model_free(m);
	embeng_model_free(plain);
}
END_TEST

/* Steps 2 and 3 of four are no steps of the table; the bias correction shows its count. */
static struct embeng *train_with_pause(const char *folder)
{
	struct embeng *e = open_model(embeng_adam_corrected(0.5f), 0);

	ck_assert_int_eq(step(e, NULL, ones), 0);
	ck_assert_int_eq(embeng_table_freeze(e, 1, 1), 0);
	ck_assert_int_eq(step(e, NULL, NULL), 0);
	ck_assert_int_eq(step(e, NULL, NULL), 0);
	ck_assert_int_eq(embeng_save(e, folder, NULL), 0);
	ck_assert_int_eq(embeng_table_freeze(e, 1, 0), 0);
	ck_assert_int_eq(step(e, NULL, ones), 0);
	return e;
}

START_TEST(checkpoints_have_its_steps)
{
	struct embeng *two = open_model(embeng_adam_corrected(0.5f), 0);
	struct embeng *paused, *restored;
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];

	help_never_sync();
	folder_new(folder);
	ck_assert_int_eq(step(two, NULL, ones), 0);
	ck_assert_int_eq(step(two, NULL, ones), 0);
	paused = train_with_pause(folder);
	ck_assert(row(paused, 1, NULL) == row(two, 1, NULL));
	restored = open_model(embeng_adam_corrected(0.5f), 1);
	ck_assert_int_eq(embeng_restore(restored, folder, NULL), 0);
	ck_assert_int_eq(embeng_table_frozen(restored, 1), 1);
	ck_assert_int_eq(embeng_table_freeze(restored, 1, 0), 0);
	ck_assert_int_eq(step(restored, NULL, ones), 0);
	ck_assert(row(restored, 1, NULL) == row(two, 1, NULL));
	ck_assert(row(restored, 1, "velocities") == row(two, 1, "velocities"));
	ck_assert_int_eq(embeng_checkpoint_open(folder, &c, NULL), 0);
	ck_assert_uint_eq(embeng_model_slot_count(embeng_checkpoint_model(c), 0), 0);
	ck_assert_uint_eq(embeng_model_slot_count(embeng_checkpoint_model(c), 1), 2);
	embeng_checkpoint_close(c);
	embeng_close(two);
	embeng_close(paused);
	embeng_close(restored);
	folder_remove(folder);
}
END_TEST

/* A table of many ids and one that has ids in the last step alone, and is frozen until then. */
static float train_without_ids(const char *device, uint64_t *steps)
{
	static const float gradients[64 * 2] = {1, 1, 1, 1};
	struct embeng_table_stats stats = {.size = sizeof(stats)};
	struct embeng_model *m = make_model(embeng_adam_corrected(0.5f), 1);
	struct embeng_table_config many = {.size = sizeof(many), .vocabulary_size = 64};
	struct embeng_gradients g = {.size = sizeof(g), .count = 3};
	struct embeng *e;
	struct embeng_batch *b;
	float first;
	int64_t ids[64];

	many.dim = 2;
	many.optimizer = embeng_sgd(0.5f);
	ck_assert_int_eq(embeng_model_add_table(m, &many), 2);
	ck_assert_int_eq(embeng_model_add_feature(m, &EMBENG_INIT(embeng_feature_config,
								  .name = "many", .table = 2)),
			 2);
	ck_assert_int_eq(embeng_open(device, m, &e, NULL), 0);
	embeng_model_free(m);
	g.features = (const float *const[]){NULL, gradients, gradients};
	b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	for (int64_t i = 0; i < 64; i++)
		ids[i] = i;
	for (int step = 1; step <= 3; step++) {
		const int64_t none = 0, one = step == 3 ? 2 : 0, all = 64;

		ck_assert_int_eq(embeng_table_freeze(e, 1, step < 3), 0);
		embeng_batch_reset(b, EMBENG_TRAIN);
		embeng_batch_dense(b, 0, EMBENG_I64, ids, 0, &none, 1);
		embeng_batch_dense(b, 1, EMBENG_I64, ids, (size_t)one, &one, 1);
		embeng_batch_dense(b, 2, EMBENG_I64, ids, 64, &all, 1);
		ck_assert_int_eq(embeng_update(e, b, &g, -1), 0);
	}
	embeng_batch_free(b);
	ck_assert_int_eq(embeng_stats(e, 1, 0, &stats), 0);
	*steps = stats.steps;
	first = row(e, 1, NULL);
	embeng_close(e);
	return first;
}

/* It is the first step of the table, and the third that is counted, however tables are dealt to cores. */
START_TEST(steps_without_ids_are_left_out)
{
	struct embeng *e = open_model(embeng_adam_corrected(0.5f), 0);
	char device[32];
	uint64_t steps;
	float first;

	ck_assert_int_eq(step(e, NULL, ones), 0);
	first = row(e, 1, NULL);
	embeng_close(e);
	for (int cores = 1; cores <= 4; cores++) {
		snprintf(device, sizeof(device), "soft:cores=%d", cores);
		ck_assert_float_eq(train_without_ids(device, &steps), first);
		ck_assert_uint_eq(steps, 3);
	}
}
END_TEST

START_TEST(nothing_to_train)
{
	struct embeng *e = open_model((struct embeng_optimizer){0}, 0);
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	int64_t id = 1, shape = 1;

	embeng_batch_dense(b, 0, EMBENG_I64, &id, 1, &shape, 1);
	embeng_batch_dense(b, 1, EMBENG_I64, &id, 1, &shape, 1);
	ck_assert_int_eq(embeng_enqueue(e, b, 0), -EINVAL);
	expect_text("feature word: table text has no optimizer, and neither have the tables of the "
		    "others");
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

RUN_SUITE("freeze", gradients_of_frozen_tables_are_not_read,
	  missing_gradients_of_frozen_tables_are_no_warning, the_switch, a_model_may_say_so,
	  checkpoints_have_its_steps, steps_without_ids_are_left_out, nothing_to_train)
