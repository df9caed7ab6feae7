// SPDX-License-Identifier: MIT
/* Ids and offsets out of memory that a program may write meanwhile. */
#include <check.h>

#include "engine/lookup/batch.h"
#include "engine/kernels/variants.h"
#include "direct_model.h"
#include "suite.h"
#include "test_kernels.h"

#define MOST 300u

struct given {
	_Alignas(8) u8 bytes[8 * MOST + 8];
	u32 width;
};

static void put(struct given *g, u64 at, s64 id)
{
	if (g->width == 8)
		memcpy(g->bytes + 8 * at, &id, 8);
	else
		memcpy(g->bytes + 4 * at, &(s32){(s32)id}, 4);
}

static void put_all(struct given *g, u64 count, u64 limit)
{
	for (u64 i = 0; i < count; i++)
		put(g, i,
		    (s64)random_below(g->width == 4 && limit > INT32_MAX ? INT32_MAX : limit));
}

/* Nothing before and behind is written. */
static bool take_to(const struct kernel_ops *ops, const u8 *from, u64 count, u32 width, u64 limit,
		    u32 *to, bool stream)
{
	u64 other = 0;
	bool bad;

	memset(to - 1, 0xee, (count + 2) * sizeof(*to));
	bad = ops->take_ids(to, from, count, width, limit, stream);
	for (u64 i = 0; i < count; i++)
		other += to[i] != *(const u32 *)(from + i * width);
	ck_assert_uint_eq(other, 0);
	ck_assert_uint_eq(to[-1], 0xeeeeeeee);
	ck_assert_uint_eq(to[count], 0xeeeeeeee);
	return bad;
}

/*
 * Reads @count ids from any place on, and writes them to any place: neither is a line's beginning.
 */
static bool take(const struct kernel_ops *ops, const struct given *g, u64 first, u64 count,
		 u64 limit)
{
	_Alignas(64) u32 to[MOST + 34];
	const u8 *from = g->bytes + first * g->width;
	u32 at = 1 + random_below(32);
	bool bad = take_to(ops, from, count, g->width, limit, to + at, false);

	ck_assert_uint_eq(take_to(ops, from, count, g->width, limit, to + at, true), bad);
	return bad;
}

static const s64 outside_of_8[] = {-1, INT64_MIN, INT64_MAX, 1ll << 32, (1ll << 32) + 5, U32_MAX};
static const s64 outside_of_4[] = {-1, INT32_MIN};

static void one_outside(const struct kernel_ops *ops, struct given *g, u64 first, u64 count,
			u64 limit, u64 at)
{
	const s64 *outside = g->width == 8 ? outside_of_8 : outside_of_4;
	u64 cases = g->width == 8 ? 6 : 2;

	for (u64 i = 0; i < cases; i++) {
		put(g, at, outside[i]);
		ck_assert(take(ops, g, first, count, limit));
	}
	if (g->width == 8 || limit <= INT32_MAX) {
		put(g, at, (s64)limit);
		ck_assert(take(ops, g, first, count, limit));
		put(g, at, (s64)limit - 1);
	} else {
		put(g, at, 0);
	}
	ck_assert(!take(ops, g, first, count, limit));
}

/* Each count up to several lines and some beyond a block, each id of them outside in turn. */
START_TEST(test_take_ids)
{
	static const u64 limits[] = {1, 10, 1000000, 1ull << 31, U32_MAX};
	const struct kernel_ops *ops = kernel_select(kernel_variant(_i));
	struct given g;

	if (!ops)
		return;
	random_start();
	for (g.width = 4; g.width <= 8; g.width += 4) {
		for (u64 count = 0; count < MOST - 16; count += count < 70 ? 1 : 17) {
			u64 limit = limits[count % 5], first = random_below(16);

			put_all(&g, first + count, limit);
			ck_assert(!take(ops, &g, first, count, limit));
			for (u64 i = 0; i < count; i++)
				one_outside(ops, &g, first, count, limit, first + i);
		}
	}
}
END_TEST

static bool naive(const u64 *offsets, u64 samples, u64 ids)
{
	bool ascend = !offsets[0] && offsets[samples] == ids;

	for (u64 i = 0; i < samples; i++)
		ascend &= offsets[i] <= offsets[i + 1];
	return ascend;
}

static void expect_offsets(const u64 *offsets, u64 samples, u64 ids)
{
	struct fault fault = {0};
	u16 status = ids_check_offsets(NULL, offsets, samples, ids, 3, &fault);
	u64 at = fault.element;

	ck_assert_uint_eq(status, naive(offsets, samples, ids) ? 0 : EMBENG_STATUS_OFFSETS);
	if (!status)
		return;
	ck_assert_uint_eq(fault.feature, 3);
	ck_assert_uint_eq(fault.value, offsets[at]);
	if (at && offsets[at] >= offsets[at - 1])
		ck_assert(offsets[at] > ids || (at == samples && offsets[at] != ids));
	for (u64 i = 1; i < at; i++)
		ck_assert(offsets[i] >= offsets[i - 1] && offsets[i] <= ids);
}

START_TEST(test_offsets)
{
	u64 offsets[40];

	random_start();
	for (u64 samples = 0; samples < 39; samples++) {
		u64 ids = 0;

		offsets[0] = 0;
		for (u64 i = 1; i <= samples; i++)
			offsets[i] = ids += random_below(3);
		expect_offsets(offsets, samples, ids);
		expect_offsets(offsets, samples, ids + 1);
		for (u64 i = 0; i <= samples; i++) {
			const u64 was = offsets[i];
			const u64 others[] = {was + 1,	  was - 1,	    ids + 1, 0,
					      1ull << 63, (1ull << 63) - 1, U64_MAX};

			for (u32 k = 0; k < 7; k++) {
				offsets[i] = others[k];
				expect_offsets(offsets, samples, ids);
			}
			offsets[i] = was;
		}
	}
}
END_TEST

/* Says that one is outside; by then the program has written others. */
static bool suspects(u32 *to, const void *from, u64 count, u32 width, u64 limit, bool stream)
{
	ck_assert(!stream);
	ck_assert_ptr_nonnull(from);
	ck_assert_uint_eq(width, 8);
	ck_assert_uint_eq(limit, 1000);
	memset(to, 0xff, count * sizeof(*to));
	return true;
}

START_TEST(test_ids_that_change_are_taken_as_they_are_read_last)
{
	struct small_model m = small_model(1000, 1);
	struct direct *d = small_open(&m, 1);
	struct kernel_ops ops = *d->engine.kernels;
	const u64 count = 5000; /* several calls and blocks */
	s64 *ids = malloc(count * sizeof(*ids));
	const struct batch_feature *f;
	struct small_lookup l;

	ops.take_ids = suspects;
	d->engine.kernels = &ops;
	for (u64 i = 0; i < count; i++)
		ids[i] = (s64)(i * 7 % 1000);
	l = small_lookup(d, &d->input[0], 1, ids, count);
	ck_assert_int_eq(direct_submit(d, l.command), VERDICT_READY);
	f = model_part(d->context.model, 1, 0)->batch->features;
	for (u64 i = 0; i < count; i++)
		ck_assert_uint_eq(batch_row(f, i), (u64)ids[i]);
	free(l.command);
	ids[4500] = 1000;
	l = small_lookup(d, &d->input[0], 2, ids, count);
	ck_assert_int_eq(direct_submit(d, l.command), VERDICT_FAILED);
	ck_assert_uint_eq(l.command->fault.status, EMBENG_STATUS_ID);
	ck_assert_uint_eq(l.command->fault.element, 4500);
	ck_assert_uint_eq(l.command->fault.value, 1000);
	ck_assert_uint_eq(l.command->fault.limit, 1000);
	free(l.command);
	free(ids);
	direct_free(d);
}
END_TEST

/* Ids of a core of PARTITION; what stands around them is neither read nor written. */
START_TEST(test_a_part_of_ids)
{
	static const struct kernel_ops lying = {.take_ids = suspects};
	const struct kernel_ops *each[] = {&lying, &kernel_ops_portable};
	const u64 count = 5000, first = 301, last = 4777;
	s64 *ids = malloc(count * sizeof(*ids));
	u32 *to = malloc(count * sizeof(*to));
	const struct given_ids given = {ids, 1000, 8};
	struct fault fault;

	for (u32 k = 0; k < 2; k++) {
		for (u64 i = 0; i < count; i++)
			ids[i] = i < first || i >= last ? 1000 : (s64)(i * 7 % 1000);
		memset(to, 0xee, count * sizeof(*to));
		ck_assert_uint_eq(
			ids_take(NULL, each[k], to, &given, first, last, false, 3, &fault), 0);
		for (u64 i = first; i < last; i++)
			ck_assert_uint_eq(to[i - first], (u64)ids[i]);
		ck_assert_uint_eq(to[last - first], 0xeeeeeeee);
		ids[last - 1] = 1000;
		fault = (struct fault){0};
		ck_assert_uint_eq(
			ids_take(NULL, each[k], to, &given, first, last, false, 3, &fault),
			EMBENG_STATUS_ID);
		ck_assert_uint_eq(fault.feature, 3);
		ck_assert_uint_eq(fault.element, last - 1);
		ck_assert_uint_eq(fault.value, 1000);
		ck_assert_uint_eq(fault.limit, 1000);
	}
	free(ids);
	free(to);
}
END_TEST

static const struct kernel_ops *kernels;
static bool streamed;

static bool watch(u32 *to, const void *from, u64 count, u32 width, u64 limit, bool stream)
{
	streamed = stream;
	return kernels->take_ids(to, from, count, width, limit, stream);
}

/* A lookup of @count ids, copied past the caches or not. */
static void expect_stream(struct direct *d, u64 step, const s64 *ids, u64 count, bool stream)
{
	struct small_lookup l = small_lookup(d, &d->input[0], step, ids, count);
	const struct batch_feature *f;
	u64 other = 0;

	streamed = !stream;
	ck_assert_int_eq(direct_submit(d, l.command), VERDICT_READY);
	ck_assert(streamed == stream);
	f = model_part(d->context.model, step, 0)->batch->features;
	for (u64 i = 0; i < count; i++)
		other += batch_row(f, i) != (u64)ids[i];
	ck_assert_uint_eq(other, 0);
	free(l.command);
}

/* Whether large batches of a table of so many rows of one float go past the caches. */
static void expect_streams(u64 rows, bool stream)
{
	struct small_model m = small_model(rows, 1);
	const u64 count = 256u << 10;
	struct kernel_ops ops;
	struct direct *d = small_open(&m, 1);
	s64 *ids = malloc(count * sizeof(*ids));

	ops = *d->engine.kernels;
	kernels = d->engine.kernels;
	ops.take_ids = watch;
	d->engine.kernels = &ops;
	for (u64 i = 0; i < count; i++)
		ids[i] = (s64)random_below(rows);
	expect_stream(d, 1, ids, count - 1, false);
	expect_stream(d, 2, ids, count, stream);
	free(ids);
	direct_free(d);
}

START_TEST(test_ids_of_large_batches_go_past_the_caches)
{
	struct fetch_plan plan;
	u64 most;

	/* the plan of an engine whose host gives none */
	fetch_plan_fill(&plan, &(struct fetch_machine){.vendor = FETCH_VENDOR_OTHER});
	most = plan.cached_bytes / sizeof(float);
	random_start();
	expect_streams(most, false);
	expect_streams(most + 1, true);
}
END_TEST

static void add(TCase *tcase)
{
	int variants = 0;

	while (kernel_variant(variants))
		variants++;
	tcase_add_loop_test(tcase, test_take_ids, 0, variants);
	tcase_add_test(tcase, test_offsets);
	tcase_add_test(tcase, test_ids_that_change_are_taken_as_they_are_read_last);
	tcase_add_test(tcase, test_a_part_of_ids);
	tcase_add_test(tcase, test_ids_of_large_batches_go_past_the_caches);
}

int main(void)
{
	return suite_main("ids", add);
}
