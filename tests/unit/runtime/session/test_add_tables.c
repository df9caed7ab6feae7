// SPDX-License-Identifier: MIT
/*
 * Tables that are added to an open handle: all rows, slots and activations have the bits of a handle
 * that was opened with all tables, whose new ones were frozen until then. Maps, models, batches and
 * checkpoints of before go on, and a call that is refused leaves no trace. On any device.
 */
#include <stdbool.h>

#include "runtime/cli/frame/random.h"
#include "runtime/src/session/session.h"

#undef fail /* session.h defines one, and so does Check */
#include "checkpoint_help.h"
#include "failing_alloc.h"
#include "suite.h"

#define ROWS 40
#define DIM 5
#define NEW_ROWS 30
#define NEW_DIM 3
#define MOST 8u
#define BAG 4u
#define BEFORE 7u
#define STEPS 20u
#define HAS_MAPS (!getenv("EMBENG_TEST_DEVICE"))

static struct random random_state = {20261128};

struct kind {
	struct embeng_optimizer (*optimizer)(float rate);
	int non_lazy, pipelining;
	uint32_t replicas;
};

static const struct kind kinds[] = {
	{embeng_sgd, 0, 0, 1},	{embeng_adagrad, 0, 0, 2}, {embeng_adam, 0, 0, 1},
	{embeng_adam, 1, 0, 2}, {embeng_adam, 0, 1, 2},	   {embeng_lion, 1, 1, 1},
};

static struct embeng_model *new_model(const struct kind *kind)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng_optimizer optimizer = kind->optimizer(0.1f);
	const struct embeng_initializer start = {
		.kind = EMBENG_INIT_UNIFORM, .a = -1, .b = 1, .seed = 3};

	optimizer.lazy_adam = kind->non_lazy ? EMBENG_OFF : optimizer.lazy_adam;
	ck_assert_int_eq(embeng_model_set_engine(m, &EMBENG_INIT(embeng_engine_config,
								 .replicas = kind->replicas,
								 .pipelining = kind->pipelining)),
			 0);
	ck_assert_int_eq(embeng_model_add_table(m, &EMBENG_INIT(embeng_table_config, .name = "t",
								.vocabulary_size = ROWS, .dim = DIM,
								.optimizer = optimizer,
								.initializer = start)),
			 0);
	ck_assert_int_eq(embeng_model_add_feature(
				 m, &EMBENG_INIT(embeng_feature_config, .name = "f", .table = 0)),
			 0);
	return m;
}

/* A table with a feature, and another feature of the table that is there. */
static void add_more(struct embeng_model *m, const struct kind *kind, int frozen)
{
	struct embeng_optimizer optimizer = kind->optimizer(0.2f);
	const struct embeng_initializer start = {
		.kind = EMBENG_INIT_UNIFORM, .a = -1, .b = 1, .seed = 3};

	optimizer.lazy_adam = kind->non_lazy ? EMBENG_OFF : optimizer.lazy_adam;
	ck_assert_int_eq(embeng_model_add_table(
				 m, &EMBENG_INIT(embeng_table_config, .name = "new",
						 .vocabulary_size = NEW_ROWS, .dim = NEW_DIM,
						 .optimizer = optimizer, .combiner = EMBENG_SUM,
						 .initializer = start, .frozen = frozen)),
			 1);
	ck_assert_int_eq(embeng_model_add_feature(
				 m, &EMBENG_INIT(embeng_feature_config, .name = "g", .table = 1)),
			 1);
	ck_assert_int_eq(embeng_model_add_feature(
				 m, &EMBENG_INIT(embeng_feature_config, .name = "h", .table = 0)),
			 2);
}

static struct embeng *open_model(const struct embeng_model *m)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);
	struct embeng *e = NULL;

	ck_assert_msg(!embeng_open(SMALL, m, &e, &error), "%s", error.text);
	return e;
}

static void expect_done(int ret)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);

	embeng_last_error(&error);
	ck_assert_msg(!ret, "%d: %s", ret, error.text);
}

static const size_t dims[] = {DIM, NEW_DIM, DIM};

/* The input of each feature and its gradients; those that are not @used have no samples. */
struct part {
	size_t samples[3], count[3];
	int64_t lengths[3][MOST], ids[3][MOST * BAG];
	float gradients[3][MOST * DIM];
};

static struct part make_part(size_t used)
{
	struct part p = {0};

	for (size_t f = 0; f < used; f++) {
		p.samples[f] = random_below(&random_state, MOST + 1);
		for (size_t i = 0; i < p.samples[f]; i++) {
			p.lengths[f][i] = random_below(&random_state, BAG + 1);
			for (int64_t k = 0; k < p.lengths[f][i]; k++)
				p.ids[f][p.count[f]++] = random_below(&random_state,
								      f == 1 ? NEW_ROWS : ROWS);
		}
		for (size_t i = 0; i < MOST * DIM; i++)
			p.gradients[f][i] = (float)random_below(&random_state, 1000) / 500 - 1;
	}
	return p;
}

static void give(struct embeng_batch *b, const struct part *p, size_t features)
{
	for (size_t f = 0; f < features; f++)
		expect_done(embeng_batch_ragged(b, (int)f, EMBENG_I64, p->ids[f], p->count[f],
						p->lengths[f], p->samples[f], NULL, 0));
}

static void enqueue_part(struct embeng *e, uint32_t replica, const struct part *p, size_t features)
{
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, replica);

	give(b, p, features);
	expect_done(embeng_enqueue(e, b, 0));
	embeng_batch_free(b);
}

static void answer_part(struct embeng *e, uint32_t replica, const struct part *p, size_t features,
			float *out)
{
	struct embeng_activations a = EMBENG_INIT(embeng_activations);
	const float *gradients[] = {p->gradients[0], p->gradients[1], p->gradients[2]};
	const struct embeng_gradients g = EMBENG_INIT(embeng_gradients, .replica = replica,
						      .count = features, .features = gradients);

	expect_done(embeng_dequeue(e, replica, 0, &a));
	ck_assert_uint_eq(a.count, features);
	for (size_t f = 0; f < features; f++)
		memcpy(out + f * MOST * DIM, a.features[f].data,
		       p->samples[f] * dims[f] * sizeof(float));
	expect_done(embeng_apply_gradients(e, &g, 0));
}

/* The two handles do the same step and see the same, whatever features the first has. */
static void step_both(struct embeng *added, struct embeng *whole, const struct kind *kind,
		      size_t features)
{
	struct part parts[2];

	for (uint32_t r = 0; r < kind->replicas; r++) {
		parts[r] = make_part(features);
		enqueue_part(added, r, &parts[r], features);
		enqueue_part(whole, r, &parts[r], 3);
	}
	for (uint32_t r = 0; r < kind->replicas; r++) {
		float a[3 * MOST * DIM] = {0}, b[3 * MOST * DIM] = {0};

		answer_part(added, r, &parts[r], features, a);
		answer_part(whole, r, &parts[r], 3, b);
		expect_floats(a, b, 3 * MOST * DIM);
	}
}

static void expect_same_table(struct embeng *a, struct embeng *b, int table, size_t rows)
{
	const struct embeng_model *m = embeng_get_model(a);
	float x[ROWS * DIM], y[ROWS * DIM];

	for (size_t slot = 0; slot <= m->tables[table].slot_count; slot++) {
		const char *name = slot ? model_slot_name(m, table, slot) : NULL;
		size_t width = (size_t)embeng_model_slot_width(m, table, name);

		expect_done(embeng_rows_read(a, table, name, NULL, rows, x));
		expect_done(embeng_rows_read(b, table, name, NULL, rows, y));
		expect_floats(x, y, rows * width);
	}
}

START_TEST(added_tables_have_the_bits_of_tables_of_the_start)
{
	const struct kind *kind = &kinds[_i];
	struct embeng_model *m = new_model(kind), *all = new_model(kind);
	struct embeng *added = open_model(m), *whole;

	add_more(all, kind, true);
	whole = open_model(all);
	for (uint32_t n = 0; n < BEFORE; n++)
		step_both(added, whole, kind, 1);
	add_more(m, kind, false);
	expect_done(embeng_flush(added, 0));
	expect_done(embeng_add_tables(added, m));
	expect_done(embeng_table_freeze(whole, 1, 0));
	ck_assert_uint_eq(embeng_model_feature_count(embeng_get_model(added)), 3);
	expect_same_table(added, whole, 1, NEW_ROWS);
	for (uint32_t n = BEFORE; n < STEPS; n++)
		step_both(added, whole, kind, 3);
	expect_done(embeng_flush(added, 0));
	expect_done(embeng_flush(whole, 0));
	expect_same_table(added, whole, 0, ROWS);
	expect_same_table(added, whole, 1, NEW_ROWS);
	embeng_close(added);
	embeng_close(whole);
	embeng_model_free(m);
	embeng_model_free(all);
}
END_TEST

static const struct kind plain = {embeng_adagrad, 0, 0, 1};

/* A handle with one table, and the model that has more. */
static struct embeng *open_one(struct embeng_model **larger)
{
	struct embeng *e;

	*larger = new_model(&plain);
	e = open_model(*larger);
	add_more(*larger, &plain, false);
	return e;
}

static void close_one(struct embeng *e, struct embeng_model *larger)
{
	embeng_close(e);
	embeng_model_free(larger);
}

static int look_up(struct embeng *e, struct embeng_batch *b, float *out, size_t *samples)
{
	const struct embeng_output outputs[] = {
		{.data = out, .stride = DIM, .elements = MOST * DIM},
		{.data = out + MOST * DIM, .stride = NEW_DIM, .elements = MOST * NEW_DIM},
		{.data = out + 2 * MOST * DIM, .stride = DIM, .elements = MOST * DIM}};
	int ret = embeng_lookup(e, b, outputs, 3, 0);

	*samples = b->inputs[1].samples;
	return ret;
}

START_TEST(batches_of_before_have_no_samples_of_new_features)
{
	struct embeng_model *m;
	struct embeng *e = open_one(&m);
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	struct embeng_batch *second = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	struct embeng_batch *third = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	const int64_t ids[] = {3, 4}, lengths[] = {2};
	float out[3 * MOST * DIM], rows[2 * NEW_DIM];
	size_t samples;

	expect_done(embeng_batch_ragged(b, 0, EMBENG_I64, ids, 2, lengths, 1, NULL, 0));
	expect_done(embeng_batch_ragged(second, 0, EMBENG_I64, ids, 2, lengths, 1, NULL, 0));
	expect_done(embeng_add_tables(e, m));
	expect_done(look_up(e, b, out, &samples));
	ck_assert_uint_eq(samples, 0);
	/* One that was not used since then takes an input of a new feature, too. */
	expect_done(embeng_batch_ragged(second, 1, EMBENG_I64, ids, 2, lengths, 1, NULL, 0));
	expect_done(look_up(e, second, out, &samples));
	ck_assert_uint_eq(samples, 1);
	expect_done(embeng_rows_read(e, 1, NULL, ids, 2, rows));
	ck_assert(out[MOST * DIM] == rows[0] + rows[NEW_DIM]);
	/* A batch that was reset wants an input for each feature, as a new one does. */
	for (int used = 0; used < 2; used++) {
		struct embeng_batch *reset = used ? b : third;

		embeng_batch_reset(reset, EMBENG_INFERENCE);
		expect_done(embeng_batch_ragged(reset, 0, EMBENG_I64, ids, 2, lengths, 1, NULL, 0));
		ck_assert_int_eq(look_up(e, reset, out, &samples), -EINVAL);
		expect_text("feature g");
	}
	embeng_batch_free(b);
	embeng_batch_free(second);
	embeng_batch_free(third);
	close_one(e, m);
}
END_TEST

START_TEST(an_update_of_a_batch_of_before)
{
	struct embeng_model *m;
	struct embeng *e = open_one(&m);
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	const int64_t ids[] = {3};
	float ones[DIM] = {1, 1, 1, 1, 1}, before[DIM], after[DIM];
	const float *gradients[] = {ones, ones, ones};
	const struct embeng_gradients g = EMBENG_INIT(embeng_gradients, .count = 3,
						      .features = gradients);

	expect_done(
		embeng_batch_ragged(b, 0, EMBENG_I64, ids, 1, (const int64_t[]){1}, 1, NULL, 0));
	expect_done(embeng_add_tables(e, m));
	expect_done(embeng_rows_read(e, 0, NULL, ids, 1, before));
	expect_done(embeng_update(e, b, &g, 0));
	expect_done(embeng_rows_read(e, 0, NULL, ids, 1, after));
	ck_assert(after[0] < before[0]);
	embeng_batch_free(b);
	close_one(e, m);
}
END_TEST

START_TEST(maps_and_models_of_before_stay)
{
	struct embeng_model *m;
	struct embeng *e = open_one(&m);
	const struct embeng_model *before = embeng_get_model(e);
	float *rows = NULL, *again = NULL, read[DIM];
	int64_t stride;

	if (HAS_MAPS)
		expect_done(embeng_table_map(e, 0, NULL, &rows, &stride));
	expect_done(embeng_add_tables(e, m));
	ck_assert_ptr_ne(embeng_get_model(e), before);
	ck_assert_str_eq(embeng_model_table_name(before, 0), "t");
	ck_assert_uint_eq(embeng_model_table_count(before), 1);
	ck_assert_uint_eq(embeng_model_table_count(embeng_get_model(e)), 2);
	ck_assert_uint_eq(embeng_model_hash(m), embeng_model_hash(embeng_get_model(e)));
	if (HAS_MAPS) {
		expect_done(embeng_table_map(e, 0, NULL, &again, &stride));
		ck_assert_ptr_eq(rows, again);
		rows[0] = 17;
		expect_done(embeng_rows_read(e, 0, NULL, NULL, 1, read));
		ck_assert(read[0] == 17.0f);
		expect_done(embeng_table_map(e, 1, NULL, &again, &stride));
		ck_assert_int_eq(stride, NEW_DIM);
	}
	/* Nothing more: that is fine, too. */
	expect_done(embeng_add_tables(e, m));
	close_one(e, m);
}
END_TEST

START_TEST(checkpoints_of_before_and_after)
{
	struct embeng_model *m;
	struct embeng *e = open_one(&m);
	char old[64], new[64];
	float saved[NEW_ROWS * NEW_DIM], read[NEW_ROWS * NEW_DIM], zeros[NEW_ROWS * NEW_DIM] = {0};

	help_never_sync();
	folder_new(old);
	folder_new(new);
	expect_done(embeng_save(e, old, NULL));
	expect_done(embeng_add_tables(e, m));
	expect_done(embeng_rows_read(e, 1, NULL, NULL, NEW_ROWS, saved));
	expect_done(embeng_save(e, new, NULL));
	expect_done(embeng_rows_write(e, 1, NULL, NULL, NEW_ROWS, zeros));
	expect_done(embeng_restore(e, new, NULL));
	expect_done(embeng_rows_read(e, 1, NULL, NULL, NEW_ROWS, read));
	expect_floats(read, saved, NEW_ROWS * NEW_DIM);
	ck_assert_int_lt(embeng_restore(e, old, NULL), 0);
	expect_text("new");
	folder_remove(old);
	folder_remove(new);
	close_one(e, m);
}
END_TEST

START_TEST(rates_of_new_tables)
{
	struct embeng_model *m;
	struct embeng *e = open_one(&m);
	struct embeng_optimizer optimizer = embeng_sgd(0);
	const int64_t ids[] = {3}, one[] = {1};
	float ones[DIM] = {1, 1, 1, 1, 1}, before[1], after[1];
	const float *gradients[] = {ones, ones, ones, ones};
	const struct embeng_rate rate = {"later", 0.5f};
	struct embeng_gradients g = EMBENG_INIT(embeng_gradients, .count = 4,
						.features = gradients);
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);

	optimizer.rate_name = "later";
	ck_assert_int_eq(embeng_model_add_table(m, &EMBENG_INIT(embeng_table_config, .name = "r",
								.vocabulary_size = ROWS, .dim = 1,
								.optimizer = optimizer)),
			 2);
	ck_assert_int_eq(embeng_model_add_feature(
				 m, &EMBENG_INIT(embeng_feature_config, .name = "q", .table = 2)),
			 3);
	expect_done(embeng_batch_ragged(b, 0, EMBENG_I64, ids, 1, one, 1, NULL, 0));
	expect_done(embeng_add_tables(e, m));
	expect_done(embeng_batch_ragged(b, 3, EMBENG_I64, ids, 1, one, 1, NULL, 0));
	ck_assert_int_eq(embeng_update(e, b, &g, 0), -EINVAL);
	expect_text("later");
	g.rates = &rate;
	g.rate_count = 1;
	expect_done(embeng_rows_read(e, 2, NULL, ids, 1, before));
	expect_done(embeng_update(e, b, &g, 0));
	expect_done(embeng_rows_read(e, 2, NULL, ids, 1, after));
	ck_assert(after[0] == before[0] - 0.5f);
	embeng_batch_free(b);
	close_one(e, m);
}
END_TEST

static void enqueue_one(struct embeng *e, enum embeng_mode mode)
{
	struct embeng_batch *b = embeng_batch_new(e, mode, 0);
	const int64_t ids[] = {3}, one[] = {1};

	expect_done(embeng_batch_ragged(b, 0, EMBENG_I64, ids, 1, one, 1, NULL, 0));
	expect_done(embeng_enqueue(e, b, 0));
	embeng_batch_free(b);
}

START_TEST(a_step_or_view_is_in_the_way)
{
	struct embeng_model *m;
	struct embeng *e = open_one(&m);
	struct embeng_activations a = EMBENG_INIT(embeng_activations);

	enqueue_one(e, EMBENG_TRAIN);
	ck_assert_int_eq(embeng_add_tables(e, m), -EBUSY);
	expect_text("step 1 of replica 0");
	expect_done(embeng_dequeue(e, 0, 0, &a));
	ck_assert_int_eq(embeng_add_tables(e, m), -EBUSY);
	ck_assert_uint_eq(embeng_model_table_count(embeng_get_model(e)), 1);
	expect_done(embeng_discard(e, 0, 0));
	enqueue_one(e, EMBENG_INFERENCE);
	ck_assert_int_eq(embeng_add_tables(e, m), -EBUSY);
	expect_text("inference");
	expect_done(embeng_dequeue(e, 0, 0, &a));
	expect_done(embeng_release(e, &a));
	expect_done(embeng_add_tables(e, m));
	close_one(e, m);
}
END_TEST

/* A model of which something is not as the open one's has it. */
enum {
	DIM_CHANGES,
	ROWS_CHANGE,
	NAME_CHANGES,
	RATE_CHANGES,
	FEATURE_CHANGES,
	SHAPE_CHANGES,
	LESS,
	REPLICAS_CHANGE,
	CHANGES
};

static const char *const told[] = {
	[DIM_CHANGES] = "table t ",
	[ROWS_CHANGE] = "table t ",
	[NAME_CHANGES] = "table t ",
	[RATE_CHANGES] = "table t ",
	[FEATURE_CHANGES] = "feature f ",
	[SHAPE_CHANGES] = "feature f ",
	[LESS] = "0 features",
	[REPLICAS_CHANGE] = "embeng_engine_config",
};

static struct embeng_model *changed_model(int change)
{
	struct embeng_model *m = embeng_model_new();
	const struct embeng_initializer start = {
		.kind = EMBENG_INIT_UNIFORM, .a = -1, .b = 1, .seed = 3};
	struct embeng_feature_config f = EMBENG_INIT(
		embeng_feature_config, .name = change == FEATURE_CHANGES ? "other" : "f");

	if (change == REPLICAS_CHANGE)
		embeng_model_set_engine(m, &EMBENG_INIT(embeng_engine_config, .replicas = 2));
	embeng_model_add_table(
		m, &EMBENG_INIT(embeng_table_config, .name = change == NAME_CHANGES ? "other" : "t",
				.vocabulary_size = ROWS + (change == ROWS_CHANGE),
				.dim = DIM + (change == DIM_CHANGES), .initializer = start,
				.optimizer = embeng_adagrad(change == RATE_CHANGES ? 0.2f : 0.1f)));
	f.output_rank = change == SHAPE_CHANGES;
	f.output_shape[0] = 4;
	if (change != LESS)
		embeng_model_add_feature(m, &f);
	return m;
}

START_TEST(a_model_that_is_another_is_refused)
{
	struct embeng_model *larger, *m = changed_model(_i);
	struct embeng *e = open_one(&larger);

	ck_assert_int_eq(embeng_add_tables(e, m), -EINVAL);
	expect_text(told[_i]);
	ck_assert_int_eq(embeng_add_tables(e, NULL), -EINVAL);
	ck_assert_int_eq(embeng_add_tables(NULL, m), -EINVAL);
	expect_done(embeng_add_tables(e, larger));
	embeng_model_free(m);
	close_one(e, larger);
}
END_TEST

START_TEST(a_table_that_does_not_fit_is_named)
{
	struct embeng_model *m;
	struct embeng *e = open_one(&m);
	int ret;

	ck_assert_int_eq(
		embeng_model_add_table(m, &EMBENG_INIT(embeng_table_config, .name = "giant",
						       .vocabulary_size = 1ll << 40, .dim = 64)),
		2);
	ret = embeng_add_tables(e, m);
	ck_assert_msg(ret == -ENOSPC || ret == -ENOMEM, "%d", ret);
	expect_text("giant");
	ck_assert_uint_eq(embeng_model_table_count(embeng_get_model(e)), 1);
	enqueue_one(e, EMBENG_TRAIN);
	close_one(e, m);
}
END_TEST

/* If the rows of the new table could not be written, the same call again does that. */
static void expect_begun(struct embeng *e, const struct embeng_model *m)
{
	float rows[NEW_ROWS * NEW_DIM];

	expect_done(embeng_add_tables(e, m));
	expect_done(embeng_rows_read(e, 1, NULL, NULL, NEW_ROWS, rows));
	for (size_t i = 0; i < NEW_ROWS * NEW_DIM; i++)
		ck_assert(rows[i] != 0.0f);
}

/* Each allocation fails once: the handle has its tables and trains, or it has the new ones, too. */
START_TEST(without_memory)
{
	struct embeng_model *m;
	struct embeng *e = open_one(&m);
	struct embeng_activations a = EMBENG_INIT(embeng_activations);
	uint32_t failures = 0;
	bool failed = true;

	while (failed) {
		size_t tables;
		int ret;

		enqueue_one(e, EMBENG_TRAIN);
		expect_done(embeng_dequeue(e, 0, 0, &a));
		expect_done(embeng_discard(e, 0, 0));
		scarce_begin(failures + 1);
		ret = embeng_add_tables(e, m);
		failed = scarce_end();
		tables = embeng_model_table_count(embeng_get_model(e));
		ck_assert_msg(failed && ret ? ret == -ENOMEM : !ret && tables == 2,
			      "allocation %u: %d, %zu tables", failures + 1, ret, tables);
		if (tables == 2) {
			expect_begun(e, m);
			close_one(e, m);
			e = open_one(&m);
		}
		failures += failed;
	}
	ck_assert_uint_gt(failures, 50);
	close_one(e, m);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("add_tables");
	TCase *all = tcase_create("all");

	tcase_add_loop_test(all, added_tables_have_the_bits_of_tables_of_the_start, 0,
			    (int)(sizeof(kinds) / sizeof(kinds[0])));
	tcase_add_test(all, batches_of_before_have_no_samples_of_new_features);
	tcase_add_test(all, an_update_of_a_batch_of_before);
	tcase_add_test(all, maps_and_models_of_before_stay);
	tcase_add_test(all, checkpoints_of_before_and_after);
	tcase_add_test(all, rates_of_new_tables);
	tcase_add_test(all, a_step_or_view_is_in_the_way);
	tcase_add_loop_test(all, a_model_that_is_another_is_refused, 0, CHANGES);
	tcase_add_test(all, a_table_that_does_not_fit_is_named);
	tcase_add_test(all, without_memory);
	suite_add_tcase(suite, all);
	return suite_run(suite);
}
