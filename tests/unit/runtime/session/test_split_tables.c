// SPDX-License-Identifier: MIT
/*
 * A model whose tables are split over hosts, all in one process: unique rows go to the replicas, which
 * look up and sum, and sums of rows come back to the hosts. Activations, parameters and slots have the
 * bits of the model in one handle, signs of zeros too.
 */
#include <math.h>
#include <stdbool.h>

#include "split_help.h"

#define TABLES 3
#define FEATURES 4
#define REPLICAS 3
#define STEPS 3
#define SAMPLES 150
#define BAG 4 /* most ids of a sample */
#define MOST_ROWS 13
#define MOST_DIM 16
#define HOSTS 4
#define ARRAYS 4

static const struct {
	const char *name;
	int64_t rows, dim;
	enum embeng_combiner_name combiner;
} tables[TABLES] = {
	{"mean", 13, 5, EMBENG_MEAN},
	{"sum", 9, 16, EMBENG_SUM},
	{"max", 11, 3, EMBENG_MAX},
};

static const int table_of[FEATURES] = {0, 0, 1, 2};

/* One feature of a replica in a step. */
struct bags {
	int64_t ids[SAMPLES * BAG], lengths[SAMPLES];
	float weights[SAMPLES * BAG], gradients[SAMPLES * MOST_DIM];
	size_t count;
};

typedef float array_of[MOST_ROWS * MOST_DIM];

struct state {
	array_of numbers[TABLES][ARRAYS];
};

/*
 * Half of all ids are one row, which so has several runs. Tiny gradients become zeros with a sign: each
 * mean is of two ids at least, of the same weight.
 */
static void make_bags(int step, uint32_t replica, int feature, bool tiny, struct bags *b)
{
	size_t dim = (size_t)tables[table_of[feature]].dim;

	b->count = 0;
	for (size_t s = 0; s < SAMPLES; s++) {
		b->lengths[s] = (int64_t)(help_draw(step, replica, feature, s) % (BAG + 1));
		if (tiny && b->lengths[s] < 2)
			b->lengths[s] = 2;
		for (int64_t k = 0; k < b->lengths[s]; k++) {
			uint32_t x = help_draw(step, replica, feature, 1000 + b->count);

			b->weights[b->count] = tiny ? 0.5f : (float)(x % 7) * 0.25f + 0.125f;
			b->ids[b->count++] = x & 64 ? 5
						    : (int64_t)(x >> 8) %
							      tables[table_of[feature]].rows;
		}
	}
	for (size_t i = 0; i < SAMPLES * dim; i++)
		b->gradients[i] = tiny ? -0x1p-149f
				       : (float)help_draw(step, replica, feature, 5000 + i) *
							  0x1p-30f -
						  1.0f;
}

/* @features: those of the model, or one of each table. */
static struct embeng *open_split(const struct embeng_optimizer *optimizer, uint32_t replicas,
				 bool features, const struct embeng_shard *shard)
{
	struct embeng_engine_config c = {.size = sizeof(c), .replicas = replicas};
	struct embeng_model *m = embeng_model_new();
	struct embeng *e = NULL;

	for (int i = 0; i < TABLES; i++) {
		struct embeng_table_config t = {.size = sizeof(t),
						.name = tables[i].name,
						.vocabulary_size = tables[i].rows,
						.dim = tables[i].dim,
						.combiner = tables[i].combiner,
						.optimizer = *optimizer};
		struct embeng_shard_rows part = {.count = t.vocabulary_size};

		if (shard)
			help_expect_ok(embeng_shard_rows(shard, t.vocabulary_size, &part));
		t.vocabulary_size = part.count;
		ck_assert_int_eq(embeng_model_add_table(m, &t), i);
	}
	for (int i = 0; i < (features ? FEATURES : TABLES); i++) {
		struct embeng_feature_config f = {.size = sizeof(f),
						  .table = features ? table_of[i] : i};

		ck_assert_int_eq(embeng_model_add_feature(m, &f), i);
	}
	help_expect_ok(embeng_model_set_engine(m, &c));
	help_expect_ok(embeng_open(SMALL, m, &e, NULL));
	embeng_model_free(m);
	return e;
}

/* All rows of a handle to or from the places that they have in the whole tables. */
static void move_state(struct embeng *e, const struct embeng_shard *shard, bool write,
		       struct state *state)
{
	for (int t = 0; t < TABLES; t++) {
		const struct whole_table whole = {.rows = tables[t].rows,
						  .dim = (size_t)tables[t].dim,
						  .arrays = help_array_count(e, t, ARRAYS),
						  .apart = MOST_ROWS * MOST_DIM,
						  .numbers = state->numbers[t][0]};

		help_move_rows(e, t, shard, write, &whole);
	}
}

/* -- the model in one handle ---------------------------------------------- */

static void add_bags(struct embeng_batch *b, int feature, const struct bags *bags,
		     const int64_t *ids)
{
	/* Only the second feature has weights. */
	help_expect_ok(embeng_batch_ragged(b, feature, EMBENG_I64, ids, bags->count, bags->lengths,
					   SAMPLES, feature == 1 ? bags->weights : NULL,
					   feature == 1 ? bags->count : 0));
}

/* Activations of a step: [replicas][features]. */
typedef float activations_of[REPLICAS][FEATURES][SAMPLES * MOST_DIM];

static void keep_activations(const struct embeng_activations *a, uint32_t replica,
			     activations_of out)
{
	for (int f = 0; f < FEATURES; f++)
		memcpy(out[replica][f], a->features[f].data,
		       SAMPLES * (size_t)tables[table_of[f]].dim * sizeof(float));
}

static void train_whole(struct embeng *e, int step, bool tiny, activations_of out)
{
	static struct bags bags[REPLICAS][FEATURES];

	for (uint32_t r = 0; r < REPLICAS; r++) {
		struct embeng_activations a = {.size = sizeof(a)};
		struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, r);

		for (int f = 0; f < FEATURES; f++) {
			make_bags(step, r, f, tiny, &bags[r][f]);
			add_bags(b, f, &bags[r][f], bags[r][f].ids);
		}
		help_look_up(e, r, b, &a);
		keep_activations(&a, r, out);
	}
	for (uint32_t r = 0; r < REPLICAS; r++) {
		const float *features[FEATURES];

		for (int f = 0; f < FEATURES; f++)
			features[f] = bags[r][f].gradients;
		help_give_gradients(e, r, FEATURES, features, 0);
	}
}

/* -- the same over hosts --------------------------------------------------- */

struct group {
	struct embeng_shard shard;
	struct embeng *owners[HOSTS]; /* a host's rows, all replicas */
	struct embeng *front; /* rows that came; its updates leave the sums in their place */
	int sums;
};

/* The rows that a replica asks a table for, in the order of their hosts. */
struct asked {
	int64_t rows[MOST_ROWS], places[MOST_ROWS], at[MOST_ROWS]; /* at: of a row */
	size_t count, ends[HOSTS];
};

static void find_asked(const struct group *g, int table, const struct bags *bags,
		       struct asked *asked)
{
	bool wanted[MOST_ROWS] = {false};

	for (int f = 0; f < FEATURES; f++)
		for (size_t i = 0; table_of[f] == table && i < bags[f].count; i++)
			wanted[bags[f].ids[i]] = true;
	asked->count = 0;
	for (uint32_t h = 0; h < g->shard.hosts; h++) {
		for (int64_t row = 0; row < tables[table].rows; row++) {
			int64_t place;
			uint32_t host;

			help_expect_ok(embeng_shard_find(&g->shard, tables[table].rows, row, &host,
							 &place));
			if (host != h || !wanted[row])
				continue;
			asked->rows[asked->count] = row;
			asked->places[asked->count] = place;
			asked->at[row] = (int64_t)asked->count++;
		}
		asked->ends[h] = asked->count;
	}
}

static size_t begin_of(const struct asked *asked, uint32_t host)
{
	return host ? asked->ends[host - 1] : 0;
}

/* The rows that a replica asked a host for come into their places in @rows. */
static void fetch_rows(struct group *g, uint32_t replica, uint32_t host, const struct asked *asked,
		       array_of *rows)
{
	struct embeng *owner = g->owners[host];
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng_batch *b = embeng_batch_new(owner, EMBENG_TRAIN, replica);

	for (int t = 0; t < TABLES; t++) {
		size_t first = begin_of(&asked[t], host), count = asked[t].ends[host] - first;

		help_expect_ok(embeng_batch_dense(b, t, EMBENG_I64, asked[t].places + first, count,
						  (int64_t[]){(int64_t)count}, 1));
	}
	help_look_up(owner, replica, b, &a);
	for (int t = 0; t < TABLES; t++) {
		size_t first = begin_of(&asked[t], host), dim = (size_t)tables[t].dim;

		memcpy(rows[t] + first * dim, a.features[t].data,
		       (asked[t].ends[host] - first) * dim * sizeof(float));
	}
}

/* A replica looks up in the rows that came, and sums its gradients of each. */
static void train_front(struct group *g, uint32_t replica, const struct bags *bags,
			const struct asked *asked, array_of *rows, activations_of out)
{
	struct embeng *front = g->front;
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng_batch *b = embeng_batch_new(front, EMBENG_TRAIN, 0);
	const float *features[FEATURES];
	int64_t ids[FEATURES][SAMPLES * BAG];

	for (int t = 0; t < TABLES; t++)
		help_expect_ok(embeng_rows_write(front, t, NULL, NULL, asked[t].count, rows[t]));
	for (int f = 0; f < FEATURES; f++) {
		for (size_t i = 0; i < bags[f].count; i++)
			ids[f][i] = asked[table_of[f]].at[bags[f].ids[i]];
		add_bags(b, f, &bags[f], ids[f]);
		features[f] = bags[f].gradients;
	}
	help_look_up(front, 0, b, &a);
	keep_activations(&a, replica, out);
	help_give_gradients(front, 0, FEATURES, features, 0);
	for (int t = 0; t < TABLES; t++)
		help_expect_ok(embeng_rows_read(front, t, NULL, NULL, asked[t].count, rows[t]));
}

static void train_group(struct group *g, int step, bool tiny, activations_of out)
{
	static struct bags bags[FEATURES];
	static struct asked asked[REPLICAS][TABLES];
	static array_of rows[REPLICAS][TABLES];

	for (uint32_t r = 0; r < REPLICAS; r++) {
		for (int f = 0; f < FEATURES; f++)
			make_bags(step, r, f, tiny, &bags[f]);
		for (int t = 0; t < TABLES; t++)
			find_asked(g, t, bags, &asked[r][t]);
		for (uint32_t h = 0; h < g->shard.hosts; h++)
			fetch_rows(g, r, h, asked[r], rows[r]);
		train_front(g, r, bags, asked[r], rows[r], out);
	}
	for (uint32_t h = 0; h < g->shard.hosts; h++) {
		for (uint32_t r = 0; r < REPLICAS; r++) {
			const float *features[TABLES];

			for (int t = 0; t < TABLES; t++)
				features[t] = rows[r][t] +
					      begin_of(&asked[r][t], h) * (size_t)tables[t].dim;
			help_give_gradients(g->owners[h], r, TABLES, features, g->sums);
		}
	}
}

static void open_group(struct group *g, const struct embeng_optimizer *optimizer,
		       struct state *state)
{
	struct embeng_optimizer assign;

	help_expect_ok(embeng_optimizer_by_name("assign", 0, &assign));
	g->front = open_split(&assign, 1, true, NULL);
	for (g->shard.host = 0; g->shard.host < g->shard.hosts; g->shard.host++) {
		struct embeng *e = open_split(optimizer, REPLICAS, false, &g->shard);

		move_state(e, &g->shard, true, state);
		g->owners[g->shard.host] = e;
	}
}

static void close_group(struct group *g, struct state *state)
{
	memset(state, 0, sizeof(*state));
	for (g->shard.host = 0; g->shard.host < g->shard.hosts; g->shard.host++) {
		move_state(g->owners[g->shard.host], &g->shard, false, state);
		embeng_close(g->owners[g->shard.host]);
	}
	embeng_close(g->front);
}

/* -- compared ---------------------------------------------------------------- */

static size_t count_differences(const void *a, const void *b, size_t bytes)
{
	const uint32_t *x = a, *y = b;
	size_t count = 0;

	for (size_t i = 0; i < bytes / 4; i++)
		count += x[i] != y[i];
	return count;
}

struct compared {
	struct state start, whole;
	activations_of activations[STEPS];
};

/* Return: how many numbers of the state differ; activations must not where @sums are given as such. */
static size_t compare_group(const struct embeng_optimizer *optimizer, struct embeng_shard shard,
			    bool tiny, int sums, struct compared *c)
{
	struct group g = {.shard = shard, .sums = sums};
	static activations_of got;
	static struct state state;

	open_group(&g, optimizer, &c->start);
	for (int step = 0; step < STEPS; step++) {
		size_t differ;

		memset(got, 0, sizeof(got));
		train_group(&g, step, tiny, got);
		differ = count_differences(got, c->activations[step], sizeof(got));
		ck_assert_msg(!sums || !differ, "step %d, %u hosts: %zu activations differ", step,
			      shard.hosts, differ);
	}
	close_group(&g, &state);
	return count_differences(&state, &c->whole, sizeof(state));
}

/* Rows start at zeros that have a sign if gradients are @tiny. */
static void train_compared(const struct embeng_optimizer *optimizer, bool tiny, struct compared *c)
{
	const struct embeng_shard one = {.size = sizeof(one), .hosts = 1};
	struct embeng *e = open_split(optimizer, REPLICAS, true, NULL);

	memset(c, 0, sizeof(*c));
	move_state(e, &one, false, &c->start);
	for (int t = 0; tiny && t < TABLES; t++)
		for (size_t i = 0; i < (size_t)(tables[t].rows * tables[t].dim); i++)
			c->start.numbers[t][0][i] = -0.0f;
	move_state(e, &one, true, &c->start);
	for (int step = 0; step < STEPS; step++)
		train_whole(e, step, tiny, c->activations[step]);
	move_state(e, &one, false, &c->whole);
	embeng_close(e);
}

static void compare_all(const struct embeng_optimizer *optimizer, bool tiny)
{
	static struct compared c;

	train_compared(optimizer, tiny, &c);
	for (uint32_t k = 0; k < 2 * HOSTS; k++) {
		const struct embeng_shard shard = {.size = sizeof(shard),
						   .hosts = k / 2 + 1,
						   .sharding = (enum embeng_sharding)(k % 2)};
		size_t differ = compare_group(optimizer, shard, tiny, 1, &c);

		ck_assert_msg(!differ, "%s: %zu numbers differ over %u hosts",
			      embeng_optimizer_text(optimizer->kind), differ, shard.hosts);
		if (tiny && k < 2)
			ck_assert_uint_gt(compare_group(optimizer, shard, tiny, 0, &c), 0);
	}
}

START_TEST(hosts_have_the_bits_of_one_handle)
{
	const struct embeng_optimizer optimizers[] = {embeng_adagrad(0.1f), embeng_sgd(0.1f),
						      embeng_adam_corrected(0.1f),
						      embeng_ftrl(0.1f)};

	for (size_t i = 0; i < sizeof(optimizers) / sizeof(*optimizers); i++)
		compare_all(&optimizers[i], false);
}
END_TEST

/* The control in there gives the sums as gradients: zeros then lose their sign. */
START_TEST(zeros_keep_their_sign)
{
	const struct embeng_optimizer optimizers[] = {embeng_sgd(0.1f), embeng_adagrad(0.1f)};

	for (size_t i = 0; i < sizeof(optimizers) / sizeof(*optimizers); i++)
		compare_all(&optimizers[i], true);
}
END_TEST

/* -- refused ------------------------------------------------------------------ */

static void expect_refused(const struct embeng_optimizer *optimizer, bool dense, const char *text)
{
	const float ones[] = {1, 1, 1, 1, 1, 1};
	const float *features[] = {ones};
	struct embeng_gradients g = {
		.size = sizeof(g), .count = 1, .features = features, .sums = 1};
	struct embeng *e = open_small(&(struct shape){.optimizer = *optimizer});
	struct embeng_activations a = {.size = sizeof(a)};
	const int64_t ids[] = {1, 2, 3};
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);

	if (dense) {
		help_expect_ok(embeng_batch_dense(b, 0, EMBENG_I64, ids, 3, (int64_t[]){3}, 1));
		help_expect_ok(embeng_enqueue(e, b, 0));
	} else {
		help_expect_ok(enqueue_bags(e, EMBENG_TRAIN, 0, 0));
	}
	embeng_batch_free(b);
	help_expect_ok(embeng_dequeue(e, 0, 0, &a));
	help_expect(embeng_apply_gradients(e, &g, 0), -EINVAL, text);
	/* The step waits for its gradients still. */
	g.sums = 0;
	help_expect_ok(embeng_apply_gradients(e, &g, 0));
	help_expect_ok(embeng_flush(e, 0));
	embeng_close(e);
}

START_TEST(sums_refused)
{
	struct embeng_optimizer o = embeng_sgd(0.5f);

	expect_refused(&o, false, "feature f: a sum belongs to one row");
	o.use_gradient_accumulation = EMBENG_OFF;
	expect_refused(&o, true, "table t applies each gradient by itself");
	o = embeng_sgd(0.5f);
	o.scale_by_frequency = 1;
	expect_refused(&o, true, "table t divides sums by the number of ids");
}
END_TEST

RUN_SUITE("split tables", hosts_have_the_bits_of_one_handle, zeros_keep_their_sign, sums_refused)
