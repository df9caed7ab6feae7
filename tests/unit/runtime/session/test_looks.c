// SPDX-License-Identifier: MIT
/*
 * Looking never changes what is learned. Random programs of steps run twice, once with looks of
 * every kind between the steps. All activations, and all rows and slots at the end, must have the
 * same bits: with one core and with four, pipelined or not, with one replica or two.
 */
#include <stdio.h>

#include "checkpoint_help.h"
#include "session_help.h"

#define STEPS 12
#define TABLES 5
#define ROWS 4096
#define DIM 7
#define SAMPLES 700
#define AHEAD 2

struct program {
	unsigned int seed;
	const char *device;
	int pipelining;
	uint32_t replicas;
};

/* The floats that a run has made: all activations, then the tables. */
struct made {
	float *floats;
	size_t count, room;
};

struct run {
	const struct program *program;
	struct embeng *e;
	struct embeng_model *model;
	const char *folder;
	unsigned int steps_seed, looks_seed; /* two sequences: looks must not shift the steps */
	struct made made;
	uint32_t enqueued[2];
	size_t seen; /* looks that were made, by kind */
};

static void keep(struct run *r, const float *floats, size_t count)
{
	struct made *made = &r->made;

	if (made->count + count > made->room) {
		made->room = 2 * (made->count + count);
		made->floats = realloc(made->floats, made->room * sizeof(float));
		ck_assert_ptr_nonnull(made->floats);
	}
	memcpy(made->floats + made->count, floats, count * sizeof(float));
	made->count += count;
}

static struct embeng_model *make_model(const struct program *p)
{
	struct embeng_optimizer optimizers[TABLES] = {embeng_sgd(0.1f), embeng_adagrad(0.1f),
						      embeng_adam(0.1f),
						      embeng_adam_corrected(0.1f)};
	struct embeng_engine_config c = {.size = sizeof(c),
					 .replicas = p->replicas,
					 .pipelining = p->pipelining,
					 .step_depth = AHEAD + 1};
	struct embeng_model *m = embeng_model_new();

	optimizers[2].lazy_adam = EMBENG_OFF;
	optimizers[1].weight_decay_factor = 0.01f;
	for (int t = 0; t < TABLES; t++) {
		struct embeng_table_config table = {.size = sizeof(table),
						    .vocabulary_size = t == 2 ? 97 : ROWS,
						    .dim = t == 2 ? 3 : DIM,
						    .combiner = EMBENG_SUM,
						    .optimizer = optimizers[t]};
		struct embeng_feature_config feature = {.size = sizeof(feature), .table = t};

		ck_assert_int_eq(embeng_model_add_table(m, &table), t);
		ck_assert_int_eq(embeng_model_add_feature(m, &feature), t);
	}
	ck_assert_int_eq(embeng_model_set_engine(m, &c), 0);
	return m;
}

static int64_t rows_of(int table)
{
	return table == 2 ? 97 : ROWS;
}

/* Few rows of some steps and many of others, so that steps touch the same ones now and then. */
static void enqueue_step(struct run *r, uint32_t replica)
{
	struct embeng_batch *b = embeng_batch_new(r->e, EMBENG_TRAIN, replica);
	int64_t ids[TABLES][SAMPLES], shape = SAMPLES;

	for (int t = 0; t < TABLES; t++) {
		int64_t most = rand_r(&r->steps_seed) % 2 ? 5 : rows_of(t);

		for (int k = 0; k < SAMPLES; k++)
			ids[t][k] = rand_r(&r->steps_seed) % most;
		ck_assert_int_eq(embeng_batch_dense(b, t, EMBENG_I64, ids[t], SAMPLES, &shape, 1),
				 0);
	}
	ck_assert_int_eq(embeng_enqueue(r->e, b, -1), 0);
	embeng_batch_free(b);
	r->enqueued[replica]++;
}

/* Gradients are made of the activations, so that one wrong bit goes on. */
static void dequeue_step(struct run *r, uint32_t replica, float *gradients[TABLES])
{
	struct embeng_activations a = {.size = sizeof(a)};

	ck_assert_int_eq(embeng_dequeue(r->e, replica, -1, &a), 0);
	for (int t = 0; t < TABLES; t++) {
		size_t count = SAMPLES * (size_t)(t == 2 ? 3 : DIM);

		keep(r, a.features[t].data, count);
		for (size_t i = 0; i < count; i++)
			gradients[t][i] = a.features[t].data[i] * 0.5f +
					  (float)(rand_r(&r->steps_seed) % 17 - 8) / 64;
	}
}

static void apply_step(struct run *r, uint32_t replica, float *gradients[TABLES])
{
	struct embeng_gradients g = {.size = sizeof(g),
				     .replica = replica,
				     .count = TABLES,
				     .features = (const float *const *)gradients};

	ck_assert_int_eq(embeng_apply_gradients(r->e, &g, -1), 0);
}

static int look_at_stats(struct run *r, int clear)
{
	struct embeng_table_stats stats = {.size = sizeof(stats)};

	return embeng_stats(r->e, rand_r(&r->looks_seed) % TABLES, clear, &stats);
}

static int look_at_rows(struct run *r)
{
	int table = rand_r(&r->looks_seed) % TABLES;
	size_t slots = embeng_model_slot_count(r->model, (size_t)table);
	size_t slot = (size_t)rand_r(&r->looks_seed) % (slots + 1);
	const int64_t ids[] = {3, 0, rows_of(table) - 1, 3};
	float rows[4 * DIM];

	return embeng_rows_read(r->e, table,
				slot ? embeng_model_slot_name(r->model, (size_t)table, slot - 1)
				     : NULL,
				ids, 4, rows);
}

/* Nothing is ahead, so that the replica's oldest batch is the one for inference. */
static int infer(struct run *r)
{
	uint32_t replica = (uint32_t)rand_r(&r->looks_seed) % r->program->replicas;
	struct embeng_batch *b = embeng_batch_new(r->e, EMBENG_INFERENCE, replica);
	struct embeng_activations a = {.size = sizeof(a)};
	int64_t ids[SAMPLES] = {0}, shape = SAMPLES;
	int ret;

	ids[7] = 3;
	for (int t = 0; t < TABLES; t++)
		embeng_batch_dense(b, t, EMBENG_I64, ids, SAMPLES, &shape, 1);
	ret = embeng_enqueue(r->e, b, 0);
	embeng_batch_free(b);
	if (ret)
		return ret;
	ck_assert_int_eq(embeng_dequeue(r->e, replica, -1, &a), 0);
	ck_assert_int_eq(a.mode, EMBENG_INFERENCE);
	return embeng_release(r->e, &a);
}

static int ask_frozen(struct embeng *e)
{
	int frozen = embeng_table_frozen(e, TABLES - 1);

	if (frozen >= 0)
		ck_assert_int_eq(frozen, 1);
	return frozen < 0 ? frozen : 0;
}

static int look_by_kind(struct run *r, int kind, int nothing_ahead)
{
	struct embeng_counter_values counters = {.size = sizeof(counters)};
	struct embeng_usage usage = {.size = sizeof(usage)};

	switch (kind) {
	case 0:
		return look_at_stats(r, 0);
	case 1:
		return look_at_stats(r, 1);
	case 2:
		return look_at_rows(r);
	case 3:
		return embeng_save(r->e, r->folder, NULL);
	case 4:
		return embeng_flush(r->e, 0);
	case 5:
		return nothing_ahead ? infer(r) : 0;
	case 6:
		return ask_frozen(r->e);
	case 7:
		return embeng_table_freeze(r->e, rand_r(&r->looks_seed) % (TABLES - 1), 0);
	default:
		return embeng_counters(r->e, &counters) ? -EIO : embeng_usage(r->e, &usage);
	}
}

/* Where only some replicas have looked a pipelined step up, a look says so and changes nothing. */
static void look(struct run *r, int nothing_ahead)
{
	for (int n = rand_r(&r->looks_seed) % 3; n; n--) {
		int kind = rand_r(&r->looks_seed) % 9;
		int ret = look_by_kind(r, kind, nothing_ahead);
		int partly = r->program->pipelining && r->enqueued[0] != r->enqueued[1];

		ck_assert_msg(!ret || (ret == -ETIME && partly && r->program->replicas > 1),
			      "seed %u: look %d gave %d", r->program->seed, kind, ret);
		r->seen |= ret ? 0 : (size_t)1 << kind;
	}
}

static void run_steps(struct run *r, int looks)
{
	float *gradients[2][TABLES];
	uint32_t replicas = r->program->replicas;

	for (uint32_t n = 0; n < 2; n++)
		for (int t = 0; t < TABLES; t++)
			gradients[n][t] = malloc(SAMPLES * DIM * sizeof(float));
	for (uint32_t step = 1; step <= STEPS; step++) {
		uint32_t ahead = (uint32_t)rand_r(&r->steps_seed) % AHEAD;

		for (uint32_t n = 0; n < replicas; n++)
			while (r->enqueued[n] < step + ahead && r->enqueued[n] < STEPS) {
				enqueue_step(r, n);
				if (looks)
					look(r, 0);
			}
		for (uint32_t n = 0; n < replicas; n++)
			dequeue_step(r, n, gradients[n]);
		for (uint32_t n = 0; n < replicas; n++) {
			if (looks)
				look(r, r->enqueued[0] == step);
			apply_step(r, n, gradients[n]);
		}
		if (looks)
			look(r, r->enqueued[0] == step);
	}
	for (uint32_t n = 0; n < 2; n++)
		for (int t = 0; t < TABLES; t++)
			free(gradients[n][t]);
}

static void keep_table(struct run *r, int table)
{
	size_t dim = table == 2 ? 3 : DIM, count = (size_t)rows_of(table);
	float *rows = malloc(count * dim * sizeof(float));
	size_t slots = embeng_model_slot_count(r->model, (size_t)table);

	for (size_t s = 0; s <= slots; s++) {
		const char *slot = s ? embeng_model_slot_name(r->model, (size_t)table, s - 1)
				     : NULL;

		ck_assert_int_eq(embeng_rows_read(r->e, table, slot, NULL, count, rows), 0);
		keep(r, rows, count * dim);
	}
	free(rows);
}

static struct made run_program(const struct program *p, int looks, const char *folder, size_t *seen)
{
	struct run r = {.program = p,
			.folder = folder,
			.steps_seed = p->seed,
			.looks_seed = p->seed + 1000};
	struct embeng_error error = {.size = sizeof(error)};

	r.model = make_model(p);
	ck_assert_msg(!embeng_open(p->device, r.model, &r.e, &error), "%s", error.text);
	run_steps(&r, looks);
	for (int t = 0; t < TABLES; t++)
		keep_table(&r, t);
	embeng_close(r.e);
	embeng_model_free(r.model);
	*seen |= r.seen;
	return r.made;
}

static void compare_runs(const struct program *p, const char *folder, size_t *seen)
{
	struct made without = run_program(p, 0, folder, seen);
	struct made with = run_program(p, 1, folder, seen);

	ck_assert_uint_eq(without.count, with.count);
	for (size_t i = 0; i < with.count; i++)
		ck_assert_msg(
			!memcmp(&without.floats[i], &with.floats[i], sizeof(float)),
			"seed %u, %s, pipelining %d, %u replicas: float %zu of %zu is %a with "
			"looks and %a without",
			p->seed, p->device, p->pipelining, p->replicas, i, with.count,
			(double)with.floats[i], (double)without.floats[i]);
	free(without.floats);
	free(with.floats);
}

START_TEST(looks_change_no_bit)
{
	static const char *const soft[] = {"soft:cores=1,memory=64M", "soft:cores=4,memory=64M"};
	char folder[HELP_PATH];
	size_t seen = 0;

	help_never_sync();
	folder_new(folder);
	for (unsigned int seed = 1; seed <= 24; seed++) {
		const struct program p = {.seed = seed,
					  .device = test_device(soft[seed % 2]),
					  .pipelining = seed / 2 % 2,
					  .replicas = 1 + seed / 4 % 2};

		compare_runs(&p, folder, &seen);
	}
	ck_assert_uint_eq(seen, (1 << 9) - 1);
	folder_remove(folder);
}
END_TEST

RUN_SUITE("looks", looks_change_no_bit)
