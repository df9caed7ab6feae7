// SPDX-License-Identifier: MIT
/*
 * A group in which each host has its rows in a handle of its own relies on three things: shards that
 * are restored from a checkpoint go on with the bits of one process, rows start as in the whole table,
 * and the second of two savers into one folder is refused. Each test has a control that must differ.
 */
#include <pthread.h>
#include <stdbool.h>

#include "checkpoint_help.h"
#include "embeng/shard.h"

#define ROWS 13
#define DIM 5
#define SAMPLES 40
#define STEPS 3 /* before the checkpoint, and behind it */
#define ARRAYS 8
#define HOSTS 5

/* The parameters and slots of a whole table. */
struct arrays {
	float numbers[ARRAYS][ROWS * DIM];
};

static int64_t id_at(int step, int sample)
{
	uint32_t x = (uint32_t)(step * 8191 + sample) * 2654435761u;

	return (x >> 16) % ROWS;
}

static float gradient_at(int step, int sample, int column)
{
	return help_value((size_t)step, (size_t)column, (uint64_t)sample, 5) - 1.25f;
}

static struct embeng *open_rows(const struct embeng_optimizer *optimizer, bool scheduled,
				int64_t rows)
{
	const struct embeng_schedule schedule = embeng_schedule_exponential(0.5f, 2, 0.5f);
	struct embeng_table_config t = {.size = sizeof(t),
					.name = "t",
					.vocabulary_size = rows,
					.dim = DIM,
					.combiner = EMBENG_SUM,
					.optimizer = *optimizer};
	struct embeng_feature_config f = {.size = sizeof(f)};
	struct embeng_model *m = embeng_model_new();
	struct embeng *e = NULL;

	if (scheduled)
		t.optimizer.rate_name = "rate";
	help_expect_ok(embeng_model_add_table(m, &t));
	help_expect_ok(embeng_model_add_feature(m, &f));
	if (scheduled)
		help_expect_ok(embeng_model_set_schedule(m, "rate", &schedule));
	help_expect_ok(embeng_open(SMALL, m, &e, NULL));
	embeng_model_free(m);
	return e;
}

/* The occurrences of a step whose rows are the shard's; NULL: all of them. */
static void train_step(struct embeng *e, int step, const struct embeng_shard *shard)
{
	int64_t ids[SAMPLES], place;
	float numbers[SAMPLES * DIM];
	const float *features[] = {numbers};
	struct embeng_gradients g = {.size = sizeof(g), .count = 1, .features = features};
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	size_t count = 0, elements;
	uint32_t host;

	for (int s = 0; s < SAMPLES; s++) {
		place = id_at(step, s);
		if (shard)
			help_expect_ok(embeng_shard_find(shard, ROWS, place, &host, &place));
		if (shard && host != shard->host)
			continue;
		for (int c = 0; c < DIM; c++)
			numbers[count * DIM + (size_t)c] = gradient_at(step, s, c);
		ids[count++] = place;
	}
	elements = count * DIM;
	g.elements = &elements;
	help_expect_ok(
		embeng_batch_dense(b, 0, EMBENG_I64, ids, count, (int64_t[]){(int64_t)count}, 1));
	help_expect_ok(embeng_update(e, b, &g, 0));
	embeng_batch_free(b);
}

static size_t arrays_of(const struct embeng *e)
{
	size_t count = 1 + embeng_model_slot_count(embeng_get_model(e), 0);

	ck_assert_uint_le(count, ARRAYS);
	return count;
}

/* Opens a host's rows as they are in a checkpoint, and counts on from its step if @counts. */
static struct embeng *restore_shard(const struct embeng_checkpoint *c,
				    const struct embeng_optimizer *optimizer, bool scheduled,
				    const struct embeng_shard *shard, bool counts)
{
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	struct embeng_shard_rows part;
	float numbers[ROWS * DIM];
	struct embeng *e;

	help_expect_ok(embeng_checkpoint_info(c, &info));
	ck_assert_uint_eq(info.step, STEPS);
	help_expect_ok(embeng_shard_rows(shard, ROWS, &part));
	e = open_rows(optimizer, scheduled, part.count);
	for (size_t a = 0; a < arrays_of(e); a++) {
		const char *slot = help_slot(embeng_get_model(e), 0, a);

		help_expect_ok(embeng_checkpoint_read_shard(c, 0, slot, shard, 0,
							    (size_t)part.count, numbers));
		help_expect_ok(embeng_rows_write(e, 0, slot, NULL, (size_t)part.count, numbers));
	}
	if (counts)
		help_expect_ok(embeng_set_step(e, info.step));
	return e;
}

/* Puts a host's rows where they are in the whole table. */
static void read_shard(struct embeng *e, const struct embeng_shard *shard, struct arrays *out)
{
	const struct embeng_model *m = embeng_get_model(e);
	struct embeng_shard_rows part;
	float numbers[ROWS * DIM];

	help_expect_ok(embeng_shard_rows(shard, ROWS, &part));
	for (size_t a = 0; a < arrays_of(e); a++) {
		size_t width = (size_t)embeng_model_slot_width(m, 0, help_slot(m, 0, a));

		help_expect_ok(embeng_rows_read(e, 0, help_slot(m, 0, a), NULL, (size_t)part.count,
						numbers));
		for (size_t i = 0; i < (size_t)part.count; i++)
			memcpy(out->numbers[a] +
				       (size_t)(part.first + (int64_t)i * part.stride) * width,
			       numbers + i * width, width * sizeof(float));
	}
}

static size_t count_differences(const struct arrays *a, const struct arrays *b)
{
	const uint32_t *x = (const void *)a, *y = (const void *)b;
	size_t count = 0;

	for (size_t i = 0; i < sizeof(*a) / sizeof(*x); i++)
		count += x[i] != y[i];
	return count;
}

/* Trains all shards of a checkpoint on. */
static void train_shards(const char *folder, const struct embeng_optimizer *optimizer,
			 bool scheduled, struct embeng_shard shard, bool counts, struct arrays *out)
{
	struct embeng_checkpoint *c = NULL;

	memset(out, 0, sizeof(*out));
	help_expect_ok(embeng_checkpoint_open(folder, &c, NULL));
	for (shard.host = 0; shard.host < shard.hosts; shard.host++) {
		struct embeng *e = restore_shard(c, optimizer, scheduled, &shard, counts);
		uint64_t step = 0;

		for (int step_at = STEPS; step_at < 2 * STEPS; step_at++)
			train_step(e, step_at, &shard);
		help_expect_ok(embeng_step(e, &step));
		ck_assert_uint_eq(step, counts ? 2 * STEPS : STEPS);
		read_shard(e, &shard, out);
		embeng_close(e);
	}
	embeng_checkpoint_close(c);
}

/* @counted: the optimizer or its rate goes by the step. */
static void compare_shards(const char *name, bool scheduled, bool counted)
{
	const struct embeng_shard one = {.size = sizeof(one), .hosts = 1};
	struct embeng_optimizer optimizer;
	struct arrays whole = {0}, shards;
	char folder[HELP_PATH];
	struct embeng *e;

	help_expect_ok(embeng_optimizer_by_name(name, 0.25f, &optimizer));
	if (optimizer.kind == EMBENG_ADAM)
		optimizer = embeng_adam_corrected(0.25f);
	e = open_rows(&optimizer, scheduled, ROWS);
	folder_new(folder);
	for (int step = 0; step < STEPS; step++)
		train_step(e, step, NULL);
	help_expect_ok(embeng_save(e, folder, NULL));
	for (int step = STEPS; step < 2 * STEPS; step++)
		train_step(e, step, NULL);
	read_shard(e, &one, &whole);
	embeng_close(e);
	for (uint32_t k = 0; k < 2 * HOSTS; k++) {
		const struct embeng_shard shard = {.size = sizeof(shard),
						   .hosts = k / 2 + 1,
						   .sharding = (enum embeng_sharding)(k % 2)};

		train_shards(folder, &optimizer, scheduled, shard, true, &shards);
		ck_assert_msg(!count_differences(&whole, &shards),
			      "%s: %zu numbers differ over %u hosts", name,
			      count_differences(&whole, &shards), shard.hosts);
		train_shards(folder, &optimizer, scheduled, shard, false, &shards);
		ck_assert_msg(counted == (count_differences(&whole, &shards) != 0),
			      "%s: without its step %zu numbers differ", name,
			      count_differences(&whole, &shards));
	}
	folder_remove(folder);
}

/* The step count of a shard can be set, and optimizers that go by it then have the bits of one. */
START_TEST(restored_shards_have_the_bits_of_one_process)
{
	compare_shards("adam", false, true);
	compare_shards("laprop", false, true);
	compare_shards("frequency_aware_adagrad", false, true);
	compare_shards("partial_rowwise_adam", false, true);
	compare_shards("adagrad", false, false);
	compare_shards("adagrad", true, true);
	compare_shards("ftrl", true, true);
}
END_TEST

/* Written by the numbers of the whole table, rows start as there; by the shard's own they do not. */
START_TEST(rows_start_as_in_the_whole_table)
{
	const struct embeng_optimizer optimizer = embeng_adagrad(0.1f);
	const struct embeng_shard one = {.size = sizeof(one), .hosts = 1};
	struct embeng_shard shard = {
		.size = sizeof(shard), .hosts = 3, .sharding = EMBENG_SHARDING_MOD};
	struct arrays whole = {0}, started = {0}, local = {0};
	struct embeng *e = open_rows(&optimizer, false, ROWS);
	struct embeng_shard_rows part;
	float numbers[ROWS * DIM];

	read_shard(e, &one, &whole);
	for (shard.host = 0; shard.host < shard.hosts; shard.host++) {
		struct embeng *s;

		help_expect_ok(embeng_shard_rows(&shard, ROWS, &part));
		help_expect_ok(embeng_shard_start(embeng_get_model(e), 0, NULL, &shard, 0,
						  (size_t)part.count, numbers));
		s = open_rows(&optimizer, false, part.count);
		read_shard(s, &shard, &local);
		help_expect_ok(embeng_rows_write(s, 0, NULL, NULL, (size_t)part.count, numbers));
		read_shard(s, &shard, &started);
		embeng_close(s);
	}
	embeng_close(e);
	ck_assert_uint_eq(count_differences(&whole, &started), 0);
	ck_assert_uint_gt(count_differences(&whole, &local), 0);
}
END_TEST

/* -- two savers ---------------------------------------------------------- */

/* A save that stands still in the middle until the other one has tried. */
struct saver {
	struct embeng *e;
	const char *folder;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	int stage; /* 1: in the middle, 2: may go on */
	int ret;
};

static void saver_wait(struct saver *s, int stage)
{
	pthread_mutex_lock(&s->lock);
	while (s->stage < stage)
		pthread_cond_wait(&s->moved, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

static void saver_move(struct saver *s, int stage)
{
	pthread_mutex_lock(&s->lock);
	if (s->stage < stage)
		s->stage = stage;
	pthread_cond_broadcast(&s->moved);
	pthread_mutex_unlock(&s->lock);
}

/* Once its first shard is written. */
static int stand_still(void *arg, const struct embeng_progress *p)
{
	if (p->done < p->total / 2)
		return 0;
	saver_move(arg, 1);
	saver_wait(arg, 2);
	return 0;
}

static void *save_slowly(void *arg)
{
	struct saver *s = arg;
	const struct embeng_save_options options = {.size = sizeof(options),
						    .progress = stand_still,
						    .progress_arg = s,
						    .shard_bytes = 64};

	s->ret = embeng_save(s->e, s->folder, &options);
	saver_move(s, 1);
	return NULL;
}

/* One saves while the other stands still in the middle. Return: what the second one got. */
static int save_both(struct embeng *first, struct embeng *second, const char *folder, int *ret)
{
	struct saver s = {.e = first,
			  .folder = folder,
			  .lock = PTHREAD_MUTEX_INITIALIZER,
			  .moved = PTHREAD_COND_INITIALIZER};
	pthread_t thread;
	int other;

	ck_assert_int_eq(pthread_create(&thread, NULL, save_slowly, &s), 0);
	saver_wait(&s, 1);
	other = embeng_save(second, folder, NULL);
	saver_move(&s, 2);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	*ret = s.ret;
	return other;
}

static int lock_nothing(int fd)
{
	(void)fd;
	return 0;
}

/* The second is refused, and the checkpoint of the first is whole. */
START_TEST(the_second_of_two_savers_is_refused)
{
	const struct help_table tables[] = {{"t", 64, 4, embeng_adagrad(0.1f)}};
	struct embeng *first = help_open(SMALL, tables, 1), *second = help_open(SMALL, tables, 1);
	struct embeng_checkpoint *c = NULL;
	struct file_ops unlocked;
	char folder[HELP_PATH];
	int ret = -1;

	folder_new(folder);
	help_fill(first, 1);
	help_fill(second, 2);
	help_expect(save_both(first, second, folder, &ret), -EBUSY, folder);
	ck_assert_int_eq(ret, 0);
	help_expect_ok(embeng_checkpoint_open(folder, &c, NULL));
	help_expect_checkpoint(c, 1);
	embeng_checkpoint_close(c);
	/* In turn both succeed, and the last one counts. */
	help_expect_ok(embeng_save(second, folder, NULL));
	help_expect_ok(embeng_checkpoint_open(folder, &c, NULL));
	help_expect_checkpoint(c, 2);
	embeng_checkpoint_close(c);
	/* The control: without the lock the second removes what the first has written. */
	unlocked = file_ops_system;
	unlocked.lock = lock_nothing;
	file_ops = &unlocked;
	ck_assert_int_eq(save_both(first, second, folder, &ret), 0);
	file_ops = &file_ops_system;
	ck_assert_int_ne(ret, 0);
	embeng_close(first);
	embeng_close(second);
	folder_remove(folder);
}
END_TEST

RUN_SUITE("shard training", restored_shards_have_the_bits_of_one_process,
	  rows_start_as_in_the_whole_table, the_second_of_two_savers_is_refused)
