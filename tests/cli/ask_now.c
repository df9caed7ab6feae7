// SPDX-License-Identifier: MIT
/*
 * Trains on the soft device while another thread asks for the statistics at whatever step the model
 * is, and checks every answer. record.sh records it and replays the recording.
 * usage: ask_now STEPS
 *
 * Exits with 0 if each answer is about whole steps, none is older than the one before it, and the row
 * has the bits of STEPS steps. In each step row 41 is asked for three times and row 5 once.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/src/session/rows.h"

enum { ROWS = 64, HOT_ROW = 41, MILD_ROW = 5, STEP_IDS = 4 };
#define GRADIENT (1.0f / 64)

struct asker {
	struct embeng *e;
	atomic_bool stop;
	atomic_uint answers;
};

static void check(int rc)
{
	struct embeng_error err = EMBENG_INIT(embeng_error);

	if (rc >= 0)
		return;
	embeng_last_error(&err);
	fprintf(stderr, "%s\n", err.text);
	exit(1);
}

static void expect(bool holds, const char *what, uint64_t value)
{
	if (holds)
		return;
	fprintf(stderr, "%s: %llu\n", what, (unsigned long long)value);
	exit(1);
}

static struct embeng *open_table(void)
{
	struct embeng_model *model = embeng_model_new();
	struct embeng_table_config table = EMBENG_INIT(embeng_table_config, .vocabulary_size = ROWS,
						       .dim = 1, .optimizer = embeng_sgd(1));
	struct embeng *e;

	check(embeng_model_add_table(model, &table));
	check(embeng_model_add_feature(model, &EMBENG_INIT(embeng_feature_config, .table = 0)));
	check(embeng_open("soft:cores=2,memory=64M", model, &e, NULL));
	embeng_model_free(model);
	return e;
}

static void train_step(struct embeng *e)
{
	static const int64_t ids[STEP_IDS] = {HOT_ROW, HOT_ROW, MILD_ROW, HOT_ROW},
			     shape[] = {STEP_IDS};
	static const float given[STEP_IDS] = {GRADIENT, GRADIENT, GRADIENT, GRADIENT};
	static const float *const features[] = {given};
	struct embeng_batch *batch = embeng_batch_new(e, EMBENG_TRAIN, 0);

	check(embeng_batch_dense(batch, 0, EMBENG_I64, ids, STEP_IDS, shape, 1));
	check(embeng_enqueue(e, batch, -1));
	embeng_batch_free(batch);
	check(embeng_dequeue(e, 0, -1, &EMBENG_INIT(embeng_activations)));
	check(embeng_apply_gradients(
		e, &EMBENG_INIT(embeng_gradients, .count = 1, .features = features), -1));
}

static struct embeng_stats ask_now(struct embeng *e)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_STATS, .arg = EMBENG_STATS_NOW};
	struct embeng_stats stats;
	struct embeng_cqe answer;

	pthread_mutex_lock(&e->rows);
	check(region_grow(e, &e->staging, layout_staging_of(0, 0)));
	cmd.desc = region_part(&e->staging, 0, sizeof(stats));
	pthread_mutex_lock(&e->lock);
	check(transfer(e, &cmd, "ask_now", &answer));
	pthread_mutex_unlock(&e->lock);
	memcpy(&stats, e->staging.data, sizeof(stats));
	pthread_mutex_unlock(&e->rows);
	expect(answer.value == 1, "tables", answer.value);
	return stats;
}

static void check_answer(const struct embeng_stats *s, uint64_t least)
{
	expect(s->steps >= least, "an older step", s->steps);
	expect(s->ids == STEP_IDS * s->steps, "ids", s->ids);
	expect(s->unique_ids == 2 * s->steps, "distinct rows", s->unique_ids);
	expect(s->hot_count == (s->steps ? 2 : 0), "hot rows", s->hot_count);
	expect(!s->steps || (s->hot[0].row == HOT_ROW && s->hot[0].count == 3 * s->steps),
	       "occurrences of the hottest row", s->hot[0].count);
}

static void *ask_often(void *arg)
{
	struct asker *asker = arg;
	uint64_t steps = 0;

	while (!atomic_load(&asker->stop)) {
		struct embeng_stats stats = ask_now(asker->e);

		check_answer(&stats, steps);
		steps = stats.steps;
		atomic_fetch_add(&asker->answers, 1);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t steps = argc == 2 ? strtoull(argv[1], NULL, 10) : 0;
	static const int64_t hot_row[] = {HOT_ROW};
	struct embeng_stats stats;
	struct asker asker = {0};
	float row = 0, expected;
	pthread_t thread;

	if (!steps || steps > 1000)
		return 2;
	asker.e = open_table();
	check(embeng_rows_write(asker.e, 0, NULL, hot_row, 1, &row));
	pthread_create(&thread, NULL, ask_often, &asker);
	for (uint64_t i = 0; i < steps; i++) {
		/* There is an answer for each step, before it or while it is on its way. */
		while (atomic_load(&asker.answers) < i)
			sched_yield();
		train_step(asker.e);
	}
	check(embeng_flush(asker.e, -1));
	atomic_store(&asker.stop, true);
	pthread_join(thread, NULL);
	stats = ask_now(asker.e);
	check_answer(&stats, steps);
	expect(stats.steps == steps, "steps", stats.steps);
	check(embeng_rows_read(asker.e, 0, NULL, hot_row, 1, &row));
	embeng_close(asker.e);
	expected = -3 * GRADIENT * (float)steps;
	printf("%u answers, row %d is %g, expected %g\n", atomic_load(&asker.answers), HOT_ROW,
	       (double)row, (double)expected);
	return row != expected;
}
