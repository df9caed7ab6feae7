// SPDX-License-Identifier: MIT
/*
 * Forecasts of memory are compared with the memory that an engine then holds, and with sums worked
 * by hand.
 */
#include <sys/mman.h>

#include "plan_help.h"
#include "resident.h"

static struct embeng_plan *plan_of(const struct load *l)
{
	struct embeng_plan *plan = NULL;

	ck_assert_int_eq(embeng_model_plan(l->model, &l->options, &plan), 0);
	return plan;
}

static struct embeng *open_load(const struct load *l)
{
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng *e = NULL;

	ck_assert_msg(!embeng_open(l->device, l->model, &e, &error), "%s", error.text);
	return e;
}

static struct embeng_usage usage_of(struct embeng *e)
{
	struct embeng_usage usage = {.size = sizeof(usage)};

	ck_assert_int_eq(embeng_usage(e, &usage), 0);
	return usage;
}

/* Items are the totals. */
static void assert_sums(const struct embeng_plan *plan)
{
	uint64_t table = 0, engine = 0, buffer = 0;

	for (size_t i = 0; i < plan->item_count; i++) {
		const struct embeng_plan_item *item = &plan->items[i];

		if (item->kind == EMBENG_PLAN_TABLE || item->kind == EMBENG_PLAN_SLOT)
			table += item->bytes;
		else if (item->kind == EMBENG_PLAN_ENGINE)
			engine += item->bytes;
		else
			buffer += item->bytes;
	}
	ck_assert_uint_eq(table, plan->table_bytes);
	ck_assert_uint_eq(engine, plan->engine_bytes);
	ck_assert_uint_eq(buffer, plan->buffer_bytes);
	ck_assert_uint_eq(table + engine + buffer, plan->total_bytes);
}

/* Staging is as large as the most rows that were moved at once. A sanitizer would keep malloc()'s. */
static void read_all_rows(struct embeng *e)
{
	const struct embeng_model *m = embeng_get_model(e);

	for (size_t t = 0; t < m->table_count; t++) {
		const size_t rows = (size_t)m->tables[t].rows;
		const size_t bytes = rows * (size_t)m->tables[t].dim * sizeof(float);
		float *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				   -1, 0);

		ck_assert_ptr_ne(data, MAP_FAILED);
		ck_assert_int_eq(embeng_rows_read(e, (int)t, NULL, NULL, rows, data), 0);
		munmap(data, bytes);
	}
}

/* All places taken by largest batches: what is held is what was planned, to the byte. */
static void assert_exact(uint32_t seed, bool trains)
{
	struct load l = load_new(seed, trains);
	struct embeng_plan *plan = plan_of(&l);
	struct embeng *e = open_load(&l);
	struct embeng_usage usage;

	if (trains)
		train_all_slots(e, &l);
	if (!trains || l.options.inference)
		serve_all_slots(e, &l);
	read_all_rows(e);
	usage = usage_of(e);
	assert_sums(plan);
	ck_assert_msg(usage.table_bytes == plan->table_bytes, "seed %u: %lu, planned %lu", seed,
		      usage.table_bytes, plan->table_bytes);
	ck_assert_msg(usage.buffer_bytes == plan->buffer_bytes, "seed %u: %lu, planned %lu", seed,
		      usage.buffer_bytes, plan->buffer_bytes);
	/* One thread: inference batches of several replicas share one private copy. */
	if (l.replicas == 1 || (trains && !l.options.inference))
		ck_assert_msg(usage.engine_bytes == plan->engine_bytes, "seed %u: %lu, planned %lu",
			      seed, usage.engine_bytes, plan->engine_bytes);
	ck_assert_uint_le(usage.engine_bytes, plan->engine_bytes);
	embeng_close(e);
	embeng_plan_free(plan);
	embeng_model_free(l.model);
}

START_TEST(test_training_is_as_planned)
{
	for (uint32_t seed = 1; seed <= 40; seed++)
		assert_exact(seed, true);
}
END_TEST

START_TEST(test_serving_is_as_planned)
{
	for (uint32_t seed = 100; seed < 120; seed++)
		assert_exact(seed, false);
}
END_TEST

START_TEST(test_smaller_batches_take_no_more)
{
	for (uint32_t seed = 200; seed < 220; seed++) {
		struct load l = load_new(seed, true);
		struct embeng_plan *plan = plan_of(&l);
		struct embeng *e = open_load(&l);
		struct embeng_usage usage;

		for (int64_t each = 1; each <= l.options.ids_per_sample; each++) {
			for (uint32_t r = 0; r < l.replicas; r++)
				enqueue(e, &l, EMBENG_TRAIN, r, each);
			for (uint32_t r = 0; r < l.replicas; r++)
				apply(e, &l, r);
		}
		ck_assert_int_eq(embeng_flush(e, -1), 0);
		usage = usage_of(e);
		ck_assert_msg(usage.buffer_bytes <= plan->buffer_bytes, "seed %u", seed);
		ck_assert_msg(usage.engine_bytes <= plan->engine_bytes, "seed %u", seed);
		embeng_close(e);
		embeng_plan_free(plan);
		embeng_model_free(l.model);
	}
}
END_TEST

static struct load large_load(void)
{
	struct load l = {.model = embeng_model_new(), .replicas = 1, .state = 3};
	struct embeng_table_config t = table_config("t");
	struct embeng_feature_config f = feature_config("f");
	struct embeng_engine_config engine = {.size = sizeof(engine), .step_depth = 2};

	t.vocabulary_size = 100000;
	t.dim = 64;
	t.optimizer = embeng_adagrad(0.1f);
	ck_assert_int_eq(embeng_model_add_table(l.model, &t), 0);
	ck_assert_int_eq(embeng_model_add_feature(l.model, &f), 0);
	ck_assert_int_eq(embeng_model_set_engine(l.model, &engine), 0);
	l.options = (struct embeng_plan_options){.size = sizeof(l.options),
						 .batch_size = 20000,
						 .ids_per_sample = 8,
						 .id_type = EMBENG_I64,
						 .weights = 1,
						 .cores = 2};
	strcpy(l.device, "soft:cores=2,memory=64M");
	return l;
}

#ifdef __SANITIZE_ADDRESS__
#define OTHERS_OWN 2 /* shadow memory, and blocks that are kept after their end */
#else
#define OTHERS_OWN 8
#endif

/*
 * The process grows by what was planned. Below: a fifth of the engine's copies is room that
 * was never written. Above, an eighth: huge pages of the tables' ends, the threads' stacks,
 * the library's lists.
 */
START_TEST(test_process_grows_as_planned)
{
	struct load l = large_load();
	struct embeng_plan *plan = plan_of(&l);
	uint64_t before = resident(), grown;
	struct embeng *e = open_load(&l);

	train_all_slots(e, &l);
	read_all_rows(e);
	grown = resident() - before;
	ck_assert_uint_eq(usage_of(e).buffer_bytes, plan->buffer_bytes);
	printf("# process grew by %lu, planned %lu\n", grown, plan->total_bytes);
	ck_assert_uint_ge(grown, plan->total_bytes - plan->engine_bytes / 4);
	ck_assert_uint_le(grown, plan->total_bytes + plan->total_bytes / OTHERS_OWN);
	embeng_close(e);
	embeng_plan_free(plan);
	embeng_model_free(l.model);
}
END_TEST

static struct embeng_model *one_table(int64_t rows, int64_t dim, struct embeng_optimizer optimizer)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng_table_config t = table_config("t");
	struct embeng_feature_config f = feature_config("f");

	t.vocabulary_size = rows;
	t.dim = dim;
	t.optimizer = optimizer;
	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	return m;
}

START_TEST(test_by_hand)
{
	/* head 64 + feature 128 -> 192; offsets 101 * 8 at 192, 200 ids * 4 at 1024; in all 1824 */
	const uint64_t input = (1824 + 912 + 4095) & ~4095ull;
	const uint64_t activations = (1600 + 800 + 4095) & ~4095ull;
	struct embeng_model *m = one_table(1000, 4, embeng_adagrad(0.1f));
	struct embeng_plan_options o = {.size = sizeof(o),
					.batch_size = 100,
					.ids_per_sample = 2,
					.id_type = EMBENG_I32,
					.step_depth = 4};
	struct embeng_plan *plan;
	uint64_t kinds[EMBENG_PLAN_ROWS + 1] = {0};

	ck_assert_int_eq(embeng_model_plan(m, &o, &plan), 0);
	ck_assert_int_eq(plan->items[0].kind, EMBENG_PLAN_TABLE);
	ck_assert_str_eq(plan->items[0].slot, "parameters");
	ck_assert_uint_eq(plan->items[0].bytes, 16000);
	ck_assert_int_eq(plan->items[1].kind, EMBENG_PLAN_SLOT);
	ck_assert_str_eq(plan->items[1].slot, "accumulators");
	ck_assert_uint_eq(plan->items[1].bytes, 16000);
	for (size_t i = 0; i < plan->item_count; i++)
		kinds[plan->items[i].kind] += plan->items[i].bytes;
	ck_assert_uint_eq(kinds[EMBENG_PLAN_INPUT], 5 * input);
	ck_assert_uint_eq(kinds[EMBENG_PLAN_ACTIVATIONS], 5 * activations);
	ck_assert_uint_eq(kinds[EMBENG_PLAN_ROWS], 3u << 15);
	embeng_plan_free(plan);
	embeng_model_free(m);
}
END_TEST

#define ROWS ((int64_t)1 << 40)

START_TEST(test_beyond_64_bits)
{
	struct embeng_plan *plan = (struct embeng_plan *)&plan;
	struct embeng_model *m = one_table(ROWS, 1 << 20, embeng_adagrad(0.1f));

	ck_assert_int_eq(embeng_model_plan(m, NULL, &plan), 0);
	ck_assert_uint_eq(plan->table_bytes, 1ull << 63);
	embeng_plan_free(plan);
	embeng_model_free(m);
	plan = (struct embeng_plan *)&plan;
	m = one_table(ROWS, 1 << 21, embeng_adagrad(0.1f)); /* the sum of both */
	ASSERT_REFUSED(embeng_model_plan(m, NULL, &plan), ERANGE, "table t", "64 bits");
	embeng_model_free(m);
	m = one_table(ROWS, 1 << 22, embeng_sgd(0.1f)); /* the product */
	ASSERT_REFUSED(embeng_model_plan(m, NULL, &plan), ERANGE, "table t", "64 bits");
	embeng_model_free(m);
	m = one_table(INT64_MAX, UINT32_MAX, embeng_sgd(0.1f));
	ASSERT_REFUSED(embeng_model_plan(m, NULL, &plan), ERANGE, "table t", "64 bits");
	embeng_model_free(m);
	ck_assert_ptr_eq(plan, (struct embeng_plan *)&plan);
}
END_TEST

START_TEST(test_batches_that_cannot_be)
{
	struct embeng_model *m = one_table(8, 1, embeng_sgd(0.1f));
	struct embeng_plan_options o = {.size = sizeof(o), .batch_size = (int64_t)1 << 32};
	struct embeng_plan *plan;

	ASSERT_REFUSED(embeng_model_plan(m, &o, &plan), ERANGE, "feature f", "smaller batch");
	o.batch_size = (int64_t)1 << 31;
	o.ids_per_sample = 2;
	ASSERT_REFUSED(embeng_model_plan(m, &o, &plan), ERANGE, "feature f", "smaller batch");
	o.ids_per_sample = INT64_MAX;
	ASSERT_REFUSED(embeng_model_plan(m, &o, &plan), ERANGE, "feature f", "smaller batch");
	o.batch_size = -1;
	ASSERT_REFUSED(embeng_model_plan(m, &o, &plan), ERANGE, "-1");
	o.batch_size = o.ids_per_sample = 1;
	o.id_type = 2;
	ASSERT_REFUSED(embeng_model_plan(m, &o, &plan), EINVAL, "id type 2");
	o.size = 8;
	ASSERT_REFUSED(embeng_model_plan(m, &o, &plan), EINVAL, "embeng_plan_options");
	ASSERT_REFUSED(embeng_model_plan(NULL, NULL, &plan), EINVAL, "model");
	ASSERT_REFUSED(embeng_model_plan(m, NULL, NULL), EINVAL, "plan");
	embeng_model_free(m);
	embeng_plan_free(NULL);
}
END_TEST

/* More ids than an engine numbers in a step of all replicas. */
START_TEST(test_more_ids_than_are_sorted)
{
	struct embeng_model *m = one_table(8, 1, embeng_sgd(0.1f));
	struct embeng_engine_config engine = {.size = sizeof(engine), .replicas = 2};
	struct embeng_plan_options o = {.size = sizeof(o), .batch_size = (int64_t)1 << 31};
	struct embeng_plan *plan;

	ck_assert_int_eq(embeng_model_set_engine(m, &engine), 0);
	ASSERT_REFUSED(embeng_model_plan(m, &o, &plan), ERANGE, "sorts");
	embeng_model_free(m);
}
END_TEST

START_TEST(test_usage_arguments)
{
	struct load l = load_new(1, true);
	struct embeng *e = open_load(&l);
	struct embeng_usage usage = {.size = 8};

	ASSERT_REFUSED(embeng_usage(e, &usage), EINVAL, "size");
	ASSERT_REFUSED(embeng_usage(e, NULL), EINVAL, "usage");
	ASSERT_REFUSED(embeng_usage(NULL, &usage), EINVAL, "handle");
	embeng_close(e);
	embeng_model_free(l.model);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_training_is_as_planned,
		test_serving_is_as_planned,
		test_smaller_batches_take_no_more,
		test_process_grows_as_planned,
		test_by_hand,
		test_beyond_64_bits,
		test_batches_that_cannot_be,
		test_more_ids_than_are_sorted,
		test_usage_arguments,
	};

	return run_tests("plan", tests, COUNT(tests));
}
