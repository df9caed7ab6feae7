// SPDX-License-Identifier: MIT
/*
 * Tables whose rows are spread over hosts, all in one process: embeng_spread_unique() says which rows a
 * replica reads, their hosts gather them, embeng_spread_pool() makes the activations out of the rows that
 * came, embeng_spread_sum() the sums of their gradients, and the hosts update their rows with these. Activations, parameters and slots have the
 * bits of the model in one handle, signs of zeros too: with all combiners, policies, weights, a
 * sequence, and rows of more than one run.
 */
#include <math.h>
#include <stdbool.h>

#include "embeng/spread.h"
#include "split_help.h"

#define TABLES 5
#define FEATURES 6
#define REPLICAS 4
#define STEPS 3
#define SAMPLES 180
#define BAG 5	 /* most ids of a sample */
#define LENGTH 3 /* positions of the sequence */
#define IDS (SAMPLES * BAG)
#define MOST_ROWS 21
#define MOST_DIM 17
#define OUTPUTS (SAMPLES * LENGTH * MOST_DIM)
#define HOSTS 3
#define ARRAYS_MOST 4

static const struct {
	const char *name;
	int64_t rows;
	uint32_t dim;
	enum embeng_combiner_name combiner;
	enum embeng_policy policy;
} tables[TABLES] = {
	{"mean", 13, 5, EMBENG_MEAN, EMBENG_POLICY_ERROR},
	{"sum", 9, 17, EMBENG_SUM, EMBENG_POLICY_DROP},
	{"sqrtn", 21, 3, EMBENG_SQRTN, EMBENG_POLICY_ZERO},
	{"max", 11, 7, EMBENG_MAX, EMBENG_POLICY_CLAMP},
	{"sequence", 10, 4, EMBENG_MEAN, EMBENG_POLICY_DROP},
};

static const struct {
	uint32_t table, length;
	bool weighted;
} features[FEATURES] = {{0, 0, false}, {0, 0, true},  {1, 0, true},
			{2, 0, true},  {3, 0, false}, {4, LENGTH, false}};

/* One feature of a replica in a step. */
struct bags {
	int64_t ids[IDS], lengths[SAMPLES], offsets[SAMPLES + 1];
	float weights[IDS], gradients[OUTPUTS];
	size_t count, numbers;
};

typedef float array_of[MOST_ROWS * MOST_DIM];

struct state {
	array_of numbers[TABLES][ARRAYS_MOST];
};

/* Activations of a step. */
typedef float outputs_of[REPLICAS][FEATURES][OUTPUTS];

/* Half of all ids are one row, which so has several runs. Some are outside their tables. */
static int64_t draw_id(uint32_t table, uint32_t x)
{
	int64_t rows = tables[table].rows;

	if (x & 64)
		return 5;
	if (tables[table].policy == EMBENG_POLICY_ERROR)
		return (int64_t)(x >> 8) % rows;
	return (int64_t)(x >> 8) % (rows + 4) - 2;
}

/* Tiny gradients, with weights below 1, become zeros with a sign. */
static void make_bags(int step, uint32_t replica, int feature, bool tiny, struct bags *b)
{
	uint32_t table = features[feature].table, length = features[feature].length;

	b->count = 0;
	b->offsets[0] = 0;
	for (size_t s = 0; s < SAMPLES; s++) {
		b->lengths[s] = (int64_t)(help_draw(step, replica, feature, s) % (BAG + 1));
		if (tiny && b->lengths[s] < 2)
			b->lengths[s] = 2;
		for (int64_t k = 0; k < b->lengths[s]; k++) {
			uint32_t x = help_draw(step, replica, feature, 1000 + b->count);

			b->weights[b->count] = tiny ? 0.25f : (float)(x % 7) * 0.25f - 0.5f;
			b->ids[b->count++] = draw_id(table, x);
		}
		b->offsets[s + 1] = (int64_t)b->count;
	}
	b->numbers = SAMPLES * (length ? length : 1) * tables[table].dim;
	for (size_t i = 0; i < b->numbers; i++)
		b->gradients[i] = tiny ? -0x1p-149f
				       : (float)help_draw(step, replica, feature, 5000 + i) *
							  0x1p-30f -
						  1.0f;
}

/* @whole: the model; else one feature for each table of a host, which reads whole rows. */
static struct embeng *open_spread(const struct embeng_optimizer *optimizer, bool whole,
				  const struct embeng_shard *shard)
{
	struct embeng_engine_config c = {.size = sizeof(c), .replicas = REPLICAS};
	struct embeng_model *m = embeng_model_new();
	struct embeng *e = NULL;

	for (int i = 0; i < TABLES; i++) {
		struct embeng_table_config t = {.size = sizeof(t),
						.name = tables[i].name,
						.vocabulary_size = tables[i].rows,
						.dim = tables[i].dim,
						.combiner = tables[i].combiner,
						.out_of_range = tables[i].policy,
						.optimizer = *optimizer};
		struct embeng_shard_rows part;

		help_expect_ok(embeng_shard_rows(shard, t.vocabulary_size, &part));
		t.vocabulary_size = part.count;
		ck_assert_int_eq(embeng_model_add_table(m, &t), i);
	}
	for (int i = 0; i < (whole ? FEATURES : TABLES); i++) {
		struct embeng_feature_config f = {.size = sizeof(f), .table = i};

		if (whole) {
			f.table = (int)features[i].table;
			f.max_sequence_length = features[i].length;
		}
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
						  .dim = tables[t].dim,
						  .arrays = help_array_count(e, t, ARRAYS_MOST),
						  .apart = MOST_ROWS * MOST_DIM,
						  .numbers = state->numbers[t][0]};

		help_move_rows(e, t, shard, write, &whole);
	}
}

/* -- the model in one handle ---------------------------------------------- */

static void train_whole(struct embeng *e, int step, bool tiny, outputs_of out)
{
	static struct bags bags[REPLICAS][FEATURES];

	for (uint32_t r = 0; r < REPLICAS; r++) {
		struct embeng_activations a = {.size = sizeof(a)};
		struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, r);

		for (int f = 0; f < FEATURES; f++) {
			struct bags *x = &bags[r][f];

			make_bags(step, r, f, tiny, x);
			help_expect_ok(embeng_batch_ragged(b, f, EMBENG_I64, x->ids, x->count,
							   x->lengths, SAMPLES,
							   features[f].weighted ? x->weights : NULL,
							   features[f].weighted ? x->count : 0));
		}
		help_look_up(e, r, b, &a);
		for (int f = 0; f < FEATURES; f++)
			memcpy(out[r][f], a.features[f].data, bags[r][f].numbers * sizeof(float));
	}
	for (uint32_t r = 0; r < REPLICAS; r++) {
		const float *gradients[FEATURES];

		for (int f = 0; f < FEATURES; f++)
			gradients[f] = bags[r][f].gradients;
		help_give_gradients(e, r, FEATURES, gradients, 0);
	}
}

/* -- the same over hosts --------------------------------------------------- */

enum control {
	CONTROL_NONE,
	CONTROL_PLAIN_SUMS,  /* sums are given as gradients */
	CONTROL_OTHER_ORDER, /* two features of a table change places in the sums */
};

struct hosts {
	struct embeng_shard shard;
	struct embeng *owners[HOSTS]; /* a host's rows, all replicas */
	enum control control;
};

/* The rows that a replica asks for, and all that it makes of them. */
struct asked {
	struct bags bags[FEATURES];
	int32_t places[FEATURES][IDS];
	int64_t list[TABLES][2 * IDS];
	size_t counts[TABLES][HOSTS];
	array_of rows[TABLES], sums[TABLES];
	struct embeng_spread_table tables[TABLES];
	struct embeng_spread_feature features[FEATURES];
};

static size_t rows_before(const struct asked *asked, int table, uint32_t host)
{
	size_t count = 0;

	for (uint32_t h = 0; h < host; h++)
		count += asked->counts[table][h];
	return count;
}

static struct embeng_spread spread_of(const struct hosts *h, struct asked *asked)
{
	return (struct embeng_spread){
		.size = sizeof(struct embeng_spread),
		.tables = asked->tables,
		.features = asked->features,
		.table_count = TABLES,
		.feature_count = FEATURES,
		.hosts = h->shard.hosts,
		.sharding = h->shard.sharding,
	};
}

static void ask_unique(struct hosts *h, int step, uint32_t replica, bool tiny, struct asked *asked)
{
	const struct embeng_spread batch = spread_of(h, asked);

	for (int t = 0; t < TABLES; t++)
		asked->tables[t] = (struct embeng_spread_table){.name = tables[t].name,
								.rows = tables[t].rows,
								.dim = tables[t].dim,
								.combiner = tables[t].combiner,
								.out_of_range = tables[t].policy,
								.list = asked->list[t],
								.room = 2 * IDS,
								.counts = asked->counts[t],
								.data = asked->rows[t],
								.sums = asked->sums[t]};
	for (int f = 0; f < FEATURES; f++) {
		struct bags *b = &asked->bags[f];

		make_bags(step, replica, f, tiny, b);
		asked->features[f] = (struct embeng_spread_feature){
			.table = features[f].table,
			.max_sequence_length = features[f].length,
			.samples = SAMPLES,
			.offsets = b->offsets,
			.type = EMBENG_I64,
			.ids = b->ids,
			.id_count = b->count,
			.weights = features[f].weighted ? b->weights : NULL,
			.places = asked->places[f],
			.gradients = b->gradients};
	}
	help_expect_ok(embeng_spread_unique(h->owners[0], &batch));
	for (int t = 0; t < TABLES; t++)
		ck_assert_uint_eq(asked->tables[t].count, rows_before(asked, t, h->shard.hosts));
}

/* The rows that a replica asked a host for come into their places. */
static void gather_rows(struct hosts *h, uint32_t replica, uint32_t host, struct asked *asked)
{
	struct embeng *owner = h->owners[host];
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng_batch *b = embeng_batch_new(owner, EMBENG_TRAIN, replica);

	for (int t = 0; t < TABLES; t++) {
		size_t count = asked->counts[t][host];

		help_expect_ok(embeng_batch_dense(b, t, EMBENG_I64,
						  asked->list[t] + rows_before(asked, t, host),
						  count, (int64_t[]){(int64_t)count}, 1));
		help_expect_ok(embeng_batch_gather(b, t));
	}
	help_look_up(owner, replica, b, &a);
	for (int t = 0; t < TABLES; t++)
		memcpy(asked->rows[t] + rows_before(asked, t, host) * tables[t].dim,
		       a.features[t].data, asked->counts[t][host] * tables[t].dim * sizeof(float));
}

static void pool_and_sum(struct hosts *h, struct asked *asked, float (*out)[OUTPUTS])
{
	const struct embeng_spread batch = spread_of(h, asked);

	for (int f = 0; f < FEATURES; f++)
		asked->features[f].activations = out[f];
	help_expect_ok(embeng_spread_pool(h->owners[0], &batch));
	if (h->control == CONTROL_OTHER_ORDER) {
		struct embeng_spread_feature other = asked->features[0];

		asked->features[0] = asked->features[1];
		asked->features[1] = other;
	}
	help_expect_ok(embeng_spread_sum(h->owners[0], &batch));
}

/* Over two hosts all arrays lie in a buffer, and are used in place. */
static struct asked *asked_of(const struct hosts *h)
{
	static struct asked copied[REPLICAS];
	struct asked *asked = copied;

	if (h->shard.hosts == 2)
		asked = embeng_buffer_alloc(h->owners[0], sizeof(copied));
	ck_assert_ptr_nonnull(asked);
	return asked;
}

static void train_hosts(struct hosts *h, struct asked *asked, int step, bool tiny, outputs_of out)
{

	for (uint32_t r = 0; r < REPLICAS; r++) {
		ask_unique(h, step, r, tiny, &asked[r]);
		for (uint32_t host = 0; host < h->shard.hosts; host++)
			gather_rows(h, r, host, &asked[r]);
		pool_and_sum(h, &asked[r], out[r]);
	}
	for (uint32_t host = 0; host < h->shard.hosts; host++) {
		for (uint32_t r = 0; r < REPLICAS; r++) {
			const float *sums[TABLES];

			for (int t = 0; t < TABLES; t++)
				sums[t] = asked[r].sums[t] +
					  rows_before(&asked[r], t, host) * tables[t].dim;
			help_give_gradients(h->owners[host], r, TABLES, sums,
					    h->control != CONTROL_PLAIN_SUMS);
		}
	}
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
	outputs_of outputs[STEPS];
};

/* Return: how many numbers of the state differ; activations must not without a control. */
static size_t compare_hosts(const struct embeng_optimizer *optimizer, struct embeng_shard shard,
			    bool tiny, enum control control, struct compared *c)
{
	struct hosts h = {.shard = shard, .control = control};
	static outputs_of got;
	static struct state state;
	struct asked *asked;

	for (h.shard.host = 0; h.shard.host < shard.hosts; h.shard.host++) {
		h.owners[h.shard.host] = open_spread(optimizer, false, &h.shard);
		move_state(h.owners[h.shard.host], &h.shard, true, &c->start);
	}
	asked = asked_of(&h);
	for (int step = 0; step < STEPS; step++) {
		size_t differ;

		memset(got, 0, sizeof(got));
		train_hosts(&h, asked, step, tiny, got);
		differ = count_differences(got, c->outputs[step], sizeof(got));
		ck_assert_msg(control || !differ, "step %d, %u hosts: %zu activations differ", step,
			      shard.hosts, differ);
	}
	memset(&state, 0, sizeof(state));
	for (h.shard.host = 0; h.shard.host < shard.hosts; h.shard.host++) {
		move_state(h.owners[h.shard.host], &h.shard, false, &state);
		embeng_close(h.owners[h.shard.host]);
	}
	return count_differences(&state, &c->whole, sizeof(state));
}

/* Some rows start at zeros that have a sign; all do if gradients are @tiny. */
static void train_compared(const struct embeng_optimizer *optimizer, bool tiny, struct compared *c)
{
	const struct embeng_shard one = {.size = sizeof(one), .hosts = 1};
	struct embeng *e = open_spread(optimizer, true, &one);

	memset(c, 0, sizeof(*c));
	move_state(e, &one, false, &c->start);
	for (int t = 0; t < TABLES; t++)
		for (size_t i = 0; i < (size_t)tables[t].rows * tables[t].dim; i++)
			if (tiny || i % 5 == 0)
				c->start.numbers[t][0][i] = -0.0f;
	move_state(e, &one, true, &c->start);
	for (int step = 0; step < STEPS; step++)
		train_whole(e, step, tiny, c->outputs[step]);
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
		size_t differ = compare_hosts(optimizer, shard, tiny, CONTROL_NONE, &c);

		ck_assert_msg(!differ, "%s: %zu numbers differ over %u hosts",
			      embeng_optimizer_text(optimizer->kind), differ, shard.hosts);
		if (k < 2)
			ck_assert_uint_gt(
				compare_hosts(optimizer, shard, tiny,
					      tiny ? CONTROL_PLAIN_SUMS : CONTROL_OTHER_ORDER, &c),
				0);
	}
}

START_TEST(hosts_have_the_bits_of_one_handle)
{
	const struct embeng_optimizer optimizers[] = {
		embeng_adagrad(0.1f), embeng_sgd(0.1f), embeng_adam(0.1f),
		embeng_adam_corrected(0.1f), embeng_ftrl(0.1f)};

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

struct small {
	struct embeng *e;
	int64_t ids[4], offsets[3], list[4];
	int32_t places[4];
	size_t counts[2];
	float rows[8], numbers[4];
	struct embeng_spread_table table;
	struct embeng_spread_feature feature;
	struct embeng_spread batch;
};

/* Two samples of two ids each in a table of 10 rows over 2 hosts; its list has rows 2, 4 and 3. */
static void open_listed(struct small *s)
{
	*s = (struct small){.ids = {3, 2, 4, 3}, .offsets = {0, 2, 4}};
	s->e = open_small(&(struct shape){.optimizer = embeng_sgd(0.5f)});
	s->table = (struct embeng_spread_table){.name = "far",
						.rows = 10,
						.dim = 2,
						.list = s->list,
						.room = 4,
						.counts = s->counts,
						.data = s->rows,
						.sums = s->rows};
	s->feature = (struct embeng_spread_feature){.name = "seen",
						    .samples = 2,
						    .offsets = s->offsets,
						    .type = EMBENG_I64,
						    .ids = s->ids,
						    .id_count = 4,
						    .places = s->places,
						    .activations = s->numbers,
						    .gradients = s->numbers};
	s->batch = (struct embeng_spread){.size = sizeof(s->batch),
					  .tables = &s->table,
					  .table_count = 1,
					  .features = &s->feature,
					  .feature_count = 1,
					  .hosts = 2,
					  .sharding = EMBENG_SHARDING_MOD};
	help_expect_ok(embeng_spread_unique(s->e, &s->batch));
	ck_assert_uint_eq(s->table.count, 3);
	ck_assert_mem_eq(s->list, ((int64_t[]){1, 2, 1}), 3 * sizeof(*s->list));
	ck_assert_mem_eq(s->places, ((int32_t[]){2, 0, 1, 2}), sizeof(s->places));
	ck_assert_mem_eq(s->counts, ((size_t[]){2, 1}), sizeof(s->counts));
}

START_TEST(what_the_engine_refuses)
{
	struct small s;

	open_listed(&s);
	s.ids[3] = 10;
	help_expect(embeng_spread_unique(s.e, &s.batch), -ERANGE,
		    "embeng_spread_unique: feature seen, sample 1: id 10 is outside table far, "
		    "which has rows 0 to 9");
	s.ids[3] = 3;
	s.table.room = 2;
	help_expect(embeng_spread_unique(s.e, &s.batch), -ERANGE,
		    "embeng_spread_unique: table far: the batch reads 3 rows, and its list has "
		    "room for 2");
	s.places[2] = 3;
	help_expect(embeng_spread_pool(s.e, &s.batch), -ERANGE,
		    "embeng_spread_pool: feature seen, sample 1: place 3 is outside the list of "
		    "table far, which has rows 0 to 2");
	s.places[2] = 1;
	s.numbers[1] = INFINITY;
	help_expect(embeng_spread_sum(s.e, &s.batch), -ERANGE, "embeng_spread_sum: feature seen");
	s.batch.allow_non_finite = 1;
	help_expect_ok(embeng_spread_sum(s.e, &s.batch));
	ck_assert_float_eq(s.rows[5], INFINITY);
	embeng_close(s.e);
}
END_TEST

START_TEST(what_the_library_refuses)
{
	struct embeng_spread other;
	struct embeng_batch *b;
	struct small s;

	open_listed(&s);
	help_expect(embeng_spread_unique(s.e, NULL), -EINVAL, "no batch, or of another size");
	other = s.batch;
	other.size--;
	help_expect(embeng_spread_pool(s.e, &other), -EINVAL, "no batch, or of another size");
	other = s.batch;
	other.table_count = 0;
	help_expect(embeng_spread_pool(s.e, &other), -EINVAL, "0 tables; give 1 to 4096");
	other = s.batch;
	other.feature_count = 4097;
	help_expect(embeng_spread_sum(s.e, &other), -EINVAL, "4097 features; give 1 to 4096");
	other = s.batch;
	other.hosts = 0;
	help_expect(embeng_spread_unique(s.e, &other), -ERANGE, "0 hosts; give 1 to 65536");
	s.table.dim = 0;
	help_expect(embeng_spread_pool(s.e, &s.batch), -EINVAL,
		    "embeng_spread_pool: table far: its dim is one that the device has not");
	s.table.dim = 2;
	s.table.data = NULL;
	help_expect(embeng_spread_pool(s.e, &s.batch), -EINVAL, "table far: its data is NULL");
	s.table.sums = NULL;
	help_expect(embeng_spread_sum(s.e, &s.batch), -EINVAL, "table far: its sums are NULL");
	s.table.counts = NULL;
	help_expect(embeng_spread_unique(s.e, &s.batch), -EINVAL, "its counts or its list is NULL");
	s.table.counts = s.counts;
	s.feature.table = 1;
	help_expect(embeng_spread_unique(s.e, &s.batch), -EINVAL,
		    "feature seen: there is no such table");
	s.feature.table = 0;
	s.feature.offsets = NULL;
	help_expect(embeng_spread_unique(s.e, &s.batch), -EINVAL, "each sample has one id");
	s.feature.offsets = s.offsets;
	s.feature.places = NULL;
	help_expect(embeng_spread_unique(s.e, &s.batch), -EINVAL, "its places are NULL");
	b = embeng_batch_new(s.e, EMBENG_TRAIN, 0);
	help_expect(embeng_batch_gather(NULL, 0), -EINVAL, "no batch");
	help_expect(embeng_batch_gather(b, 7), -ENOENT, "there is no feature 7");
	help_expect(embeng_batch_gather(b, 0), -EINVAL, "give its rows with embeng_batch_dense()");
	embeng_batch_free(b);
	embeng_close(s.e);
}
END_TEST

RUN_SUITE("spread rows", hosts_have_the_bits_of_one_handle, zeros_keep_their_sign,
	  what_the_engine_refuses, what_the_library_refuses)
