// SPDX-License-Identifier: MIT
/*
 * Each allocation of a small program fails once, one program after another: the call that
 * wanted it says -ENOMEM, may be made again, and the numbers come out the same. A call that fails
 * frees what it has allocated, which the leak checker of the sanitized build sees.
 */
#include <math.h>

#include "failing_alloc.h"
#include "session_help.h"
#include "embeng/preprocess.h"
#include "embeng/tpu.h"

#define MOST 4096 /* allocations; there are a few hundred */

static uint32_t nth; /* number of the allocation that fails */

/* Check allocates, too: it is called for failures alone. */
#define EXPECT(holds) \
	do { \
		if (!(holds)) { \
			struct embeng_error e_ = {.size = sizeof(e_)}; \
			embeng_last_error(&e_); \
			scarce_end(); \
			ck_abort_msg("allocation %u: %s; %d, %s", nth, #holds, e_.code, e_.text); \
		} \
	} while (0)

static int last_code(void)
{
	struct embeng_error error = {.size = sizeof(error)};

	embeng_last_error(&error);
	return error.code;
}

static struct embeng_model *small_model(void)
{
	struct embeng_table_config t = {.size = sizeof(t),
					.name = "t",
					.vocabulary_size = 4,
					.dim = 2,
					.combiner = EMBENG_SUM,
					.optimizer = embeng_adagrad(0.5f)};
	struct embeng_feature_config f = {.size = sizeof(f), .name = "f"};
	struct embeng_model *m = embeng_model_new();

	if (!m)
		return NULL;
	t.optimizer.initial_accumulator_value = 1;
	/* A call that is made again must not find what it left half done. */
	if (embeng_model_add_table(m, &t))
		EXPECT(embeng_model_add_table(m, &t) == 0);
	if (embeng_model_add_feature(m, &f))
		EXPECT(embeng_model_add_feature(m, &f) == 0);
	return m;
}

static struct embeng *opened(void)
{
	struct embeng_model *m = small_model();
	struct embeng *e = NULL;
	int ret;

	if (!m)
		m = small_model();
	EXPECT(m);
	ret = embeng_open(SMALL, m, &e, NULL);
	if (ret) {
		EXPECT(ret == -ENOMEM);
		EXPECT(!e);
		EXPECT(embeng_open(SMALL, m, &e, NULL) == 0);
	}
	embeng_model_free(m);
	return e;
}

/* The call, made again when there was no memory. */
#define AGAIN(call) \
	({ \
		int ret_ = (call); \
		if (ret_) { \
			EXPECT(ret_ == -ENOMEM); \
			EXPECT(last_code() == -ENOMEM); \
			ret_ = (call); \
		} \
		ret_; \
	})

static int enqueue(struct embeng *e, enum embeng_mode mode)
{
	const int64_t ids[] = {1, 2, 3}, lengths[] = {2, 1};
	struct embeng_batch *b = embeng_batch_new(e, mode, 0);
	int ret;

	if (!b)
		return last_code();
	ret = embeng_batch_ragged(b, 0, EMBENG_I64, ids, 3, lengths, 2, NULL, 0);
	if (!ret)
		ret = embeng_enqueue(e, b, -1);
	embeng_batch_free(b);
	return ret;
}

static int apply(struct embeng *e)
{
	const float ones[] = {1, 1, 1, 1}, *features[] = {ones};
	const size_t elements[] = {4};
	struct embeng_gradients g = {
		.size = sizeof(g), .count = 1, .features = features, .elements = elements};

	return embeng_apply_gradients(e, &g, -1);
}

static void look_up(struct embeng *e, enum embeng_mode mode)
{
	struct embeng_activations a = {.size = sizeof(a)};

	EXPECT(AGAIN(enqueue(e, mode)) == 0);
	EXPECT(AGAIN(embeng_dequeue(e, 0, -1, &a)) == 0);
	EXPECT(!memcmp(a.features[0].data, (const float[]){30, 32, 30, 31}, 4 * sizeof(float)));
	if (mode == EMBENG_INFERENCE)
		EXPECT(AGAIN(embeng_release(e, &a)) == 0);
}

/* An update that failed after it was taken is gone: from then on all that needs it says so. */
static void train(struct embeng *e)
{
	const float after[] = {0, 1, 10 - 0.35355338f, 11 - 0.35355338f};
	struct embeng_table_stats stats = {.size = sizeof(stats)};
	float rows[4];
	bool taken;
	int ret;

	look_up(e, EMBENG_TRAIN);
	taken = AGAIN(apply(e)) == 0;
	ret = AGAIN(embeng_flush(e, -1));
	EXPECT(ret == -ENOMEM || (!ret && taken));
	EXPECT(AGAIN(embeng_rows_read(e, 0, NULL, NULL, 2, rows)) == ret);
	EXPECT(AGAIN(embeng_stats(e, 0, 1, &stats)) == ret);
	EXPECT(AGAIN(enqueue(e, EMBENG_INFERENCE)) == ret);
	if (ret)
		return;
	for (int i = 0; i < 4; i++)
		EXPECT(fabsf(rows[i] - after[i]) < 1e-5f);
	EXPECT(stats.ids == 3);
}

static void whole_program(void)
{
	const float rows[] = {0, 1, 10, 11, 20, 21, 30, 31};
	struct embeng *e = opened();

	EXPECT(AGAIN(embeng_rows_write(e, 0, NULL, NULL, 4, rows)) == 0);
	look_up(e, EMBENG_INFERENCE);
	train(e);
	embeng_close(e);
}

static void each_may_fail(void (*program)(void))
{
	bool failed = true;

	for (nth = 1; failed && nth < MOST; nth++) {
		scarce_begin(nth);
		program();
		failed = scarce_end();
	}
	ck_assert_uint_gt(nth, 100);
	ck_assert(!failed);
}

START_TEST(each_allocation_may_fail)
{
	each_may_fail(whole_program);
}
END_TEST

/* As the small model, its batch fixed. */
static struct embeng_stacking *stacked(void)
{
	const struct embeng_stacking_options o = {
		.size = sizeof(o), .sparse_cores = 2, .cores_per_device = 2};
	struct embeng_model *m = small_model();
	struct embeng_stacking *s = NULL;

	if (!m)
		m = small_model();
	EXPECT(AGAIN(embeng_model_build(m, 2)) == 0);
	EXPECT(AGAIN(embeng_stacking_make(m, &o, &s)) == 0);
	embeng_model_free(m);
	return s;
}

static void hand_on(const struct embeng_stacking *s)
{
	struct embeng_layouts *layouts = NULL;
	void *bytes = NULL;
	size_t length = 0;

	EXPECT(AGAIN(embeng_tpu_export_layouts(s->tables, s->table_count, &bytes, &length)) == 0);
	EXPECT(AGAIN(embeng_tpu_import_layouts(bytes, length, &layouts)) == 0);
	EXPECT(layouts->table_count == 1);
	embeng_layouts_free(layouts);
	free(bytes);
}

static void sparse_program(void)
{
	const float rows[] = {0, 1, 10, 11, 20, 21, 30, 31};
	const int64_t ids[] = {1, 2, 3}, lengths[] = {2, 1};
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng *e = opened();
	struct embeng_stacking *s = stacked();
	struct embeng_preprocessed *p = NULL;
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);

	if (!b)
		b = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	EXPECT(b);
	hand_on(s);
	EXPECT(AGAIN(embeng_rows_write(e, 0, NULL, NULL, 4, rows)) == 0);
	EXPECT(AGAIN(embeng_batch_ragged(b, 0, EMBENG_I64, ids, 3, lengths, 2, NULL, 0)) == 0);
	EXPECT(AGAIN(embeng_preprocess(e, b, s, NULL, &p)) == 0);
	EXPECT(AGAIN(embeng_batch_partitioned(b, s, p)) == 0);
	EXPECT(AGAIN(embeng_enqueue(e, b, -1)) == 0);
	EXPECT(AGAIN(embeng_dequeue(e, 0, -1, &a)) == 0);
	EXPECT(!memcmp(a.features[0].data, (const float[]){30, 32, 30, 31}, 4 * sizeof(float)));
	EXPECT(AGAIN(embeng_release(e, &a)) == 0);
	embeng_preprocessed_free(p);
	embeng_stacking_free(s);
	embeng_batch_free(b);
	embeng_close(e);
}

START_TEST(each_allocation_of_sparse_cores_may_fail)
{
	each_may_fail(sparse_program);
}
END_TEST

RUN_SUITE("oom", each_allocation_may_fail, each_allocation_of_sparse_cores_may_fail)
