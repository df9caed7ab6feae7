// SPDX-License-Identifier: MIT
/* Saves beside a training, readers beside saves, many threads on one open checkpoint. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "runtime/src/checkpoint/checkpoint.h"
#include "checkpoint_help.h"

#define SAVES 20
#define THREADS 4

struct scene {
	struct embeng *e;
	char folder[HELP_PATH];
	atomic_bool over;
	atomic_uint faults, saves, reads, steps;
};

/* Told from any thread: Check's own assertions are the main thread's. */
static void fault(struct scene *s, const char *what)
{
	struct embeng_error error = {.size = sizeof(error)};

	embeng_last_error(&error);
	fprintf(stderr, "%s: %s\n", what, error.text);
	s->faults++;
}

/* Each step takes half off the rows 1, 2 and 3. */
static void *train(void *arg)
{
	struct scene *s = arg;

	for (; s->saves < SAVES && !s->faults; s->steps++) {
		struct embeng_activations a = {.size = sizeof(a)};
		const int64_t ids[] = {1, 2, 3}, lengths[] = {2, 0, 1};
		const float ones[] = {1, 1, 1, 1, 1, 1}, *features[] = {ones};
		struct embeng_gradients g = {.size = sizeof(g), .count = 1, .features = features};
		struct embeng_batch *b = embeng_batch_new(s->e, EMBENG_TRAIN, 0);

		if (embeng_batch_ragged(b, 0, EMBENG_I64, ids, 3, lengths, 3, NULL, 0) ||
		    embeng_enqueue(s->e, b, -1) || embeng_dequeue(s->e, 0, -1, &a) ||
		    embeng_apply_gradients(s->e, &g, -1))
			fault(s, "train");
		embeng_batch_free(b);
	}
	s->over = true;
	return NULL;
}

static void *save(void *arg)
{
	struct scene *s = arg;

	while (!s->over) {
		if (embeng_save(s->e, s->folder, NULL))
			fault(s, "save");
		s->saves++;
	}
	return NULL;
}

/* Every checkpoint that is ever seen is of one step, whole. */
static void look(struct scene *s)
{
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	struct embeng_checkpoint *c = NULL;
	unsigned int before = s->saves;
	float rows[8];
	int ret = embeng_checkpoint_open(s->folder, &c, NULL);

	if (ret == -ENOENT && !before)
		return;
	if (ret || embeng_checkpoint_info(c, &info) ||
	    embeng_checkpoint_read(c, 0, NULL, 0, 4, rows) ||
	    rows[2] != 10 - 0.5f * (float)info.step || rows[5] != 21 - 0.5f * (float)info.step ||
	    rows[7] != 31 - 0.5f * (float)info.step)
		fault(s, "read");
	embeng_checkpoint_close(c);
	s->reads++;
}

static void *read_on(void *arg)
{
	struct scene *s = arg;

	while (!s->over)
		look(s);
	return NULL;
}

static void run(struct scene *s, void *(*const *bodies)(void *), size_t count)
{
	pthread_t threads[8];

	for (size_t i = 0; i < count; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, bodies[i], s), 0);
	for (size_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(s->faults, 0);
}

START_TEST(saves_and_readers_beside_a_training)
{
	static void *(*const bodies[])(void *) = {train, save, read_on, read_on};
	struct scene s = {0};

	folder_new(s.folder);
	help_never_sync();
	s.e = open_small(&(struct shape){.combiner = EMBENG_SUM, .optimizer = embeng_sgd(0.5f)});
	run(&s, bodies, 4);
	printf("%u saves, %u reads beside %u steps\n", s.saves, s.reads, s.steps);
	embeng_close(s.e);
	folder_remove(s.folder);
}
END_TEST

struct shared {
	const struct embeng_checkpoint *c;
	atomic_uint faults;
};

static void *check_all(void *arg)
{
	struct shared *s = arg;
	const struct checkpoint_piece *pieces;
	float row[64];

	if (checkpoint_pieces(s->c, 0, 0, &pieces) != 1 ||
	    checkpoint_check(s->c, pieces, 0, 40000ull * 64 * 4))
		s->faults++;
	for (int64_t r = 0; r < 40000; r += 997) {
		if (embeng_checkpoint_read(s->c, 0, NULL, r, 1, row) ||
		    row[63] != help_value(0, 0, (uint64_t)r * 64 + 63, 1))
			s->faults++;
	}
	return NULL;
}

START_TEST(threads_share_an_open_checkpoint)
{
	const struct help_table t = {"t", 40000, 64, {0}};
	struct embeng *e = help_open(SMALL, &t, 1);
	struct embeng_checkpoint *c;
	struct shared s = {0};
	pthread_t threads[THREADS];
	char folder[HELP_PATH];

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, NULL));
	embeng_close(e);
	s.c = c = help_checkpoint(folder);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, check_all, &s), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(s.faults, 0);
	embeng_checkpoint_close(c);
	folder_remove(folder);
}
END_TEST

RUN_SUITE("checkpoint threads", saves_and_readers_beside_a_training,
	  threads_share_an_open_checkpoint)
