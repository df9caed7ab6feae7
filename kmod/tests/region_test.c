// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests the regions of a context (region.c, which is compiled in): keys and generations, what the
 * device's table says, and that segment lists are freed as they were allocated.
 */
#include <linux/dma-mapping.h>

#include "world.h"

/* There is no device to map the lists for, so the tests count and check them here. */
static void *list_alloc(struct embeng_context *ctx, struct device *dev, size_t bytes,
			dma_addr_t *dma, gfp_t gfp)
{
	void *list = dev == &test_world_of(ctx)->pci.dev ? kzalloc(bytes, gfp) : NULL;

	*dma = (uintptr_t)list;
	test_world_of(ctx)->lists += list ? 1 : 0;
	return list;
}

/* A list that is freed with other values than it was allocated with stays in the count. */
static void list_free(struct embeng_context *ctx, struct device *dev, size_t bytes, void *list,
		      dma_addr_t dma)
{
	if (dma == (uintptr_t)list && bytes && dev == &test_world_of(ctx)->pci.dev)
		test_world_of(ctx)->lists--;
	kfree(list);
}

#define dma_alloc_coherent(dev, bytes, dma, gfp) list_alloc(ctx, dev, bytes, dma, gfp)
#define dma_free_coherent(dev, bytes, list, dma) list_free(ctx, dev, bytes, list, dma)
#include "../region.c"

#define CAN_READ EMBENG_REGION_DEVICE_READ
#define CAN_WRITE EMBENG_REGION_DEVICE_WRITE
#define SIZE (8 * PAGE_SIZE) /* the world's buffer has so many bytes */

static int bind(struct test_world *w, struct embeng_accel_bind *arg)
{
	return embeng_region_bind(&w->ctx, &w->bo, arg);
}

static struct embeng_accel_bind bound(struct kunit *test)
{
	struct embeng_accel_bind arg = { .rights = CAN_READ };

	KUNIT_ASSERT_EQ(test, bind(test->priv, &arg), 0);
	return arg;
}

static void check_empty(struct kunit *test)
{
	struct test_world *w = test->priv;

	KUNIT_EXPECT_EQ(test, w->ctx.memory, 0);
	KUNIT_EXPECT_EQ(test, w->ctx.region_count, 0);
	KUNIT_EXPECT_EQ(test, w->lists, 0);
	KUNIT_EXPECT_EQ(test, kref_read(&w->bo.base.refcount), 1);
}

static void an_entry_says_what_was_bound(struct kunit *test)
{
	struct test_world *w = test->priv;
	struct embeng_accel_bind arg = { .rights = CAN_READ | CAN_WRITE, .offset = PAGE_SIZE,
					 .length = 2 * PAGE_SIZE + 1 };
	const struct embeng_segment *list;

	w->dma[2] = 0x900000;
	KUNIT_ASSERT_EQ(test, bind(w, &arg), 0);
	KUNIT_EXPECT_EQ(test, arg.index, 0);
	KUNIT_EXPECT_EQ(test, arg.generation, 1);
	KUNIT_EXPECT_EQ(test, w->table[0].generation, 1);
	KUNIT_EXPECT_EQ(test, w->table[0].rights, CAN_READ | CAN_WRITE);
	KUNIT_EXPECT_EQ(test, w->table[0].length, 2 * PAGE_SIZE + 1);
	KUNIT_ASSERT_EQ(test, w->table[0].segment_count, 3);
	list = (void *)(uintptr_t)w->table[0].segments;
	KUNIT_EXPECT_EQ(test, list[1].address, 0x900000);
	KUNIT_EXPECT_EQ(test, list[2].length, 1);
	KUNIT_EXPECT_EQ(test, w->ctx.memory, SIZE);
	KUNIT_EXPECT_EQ(test, w->ctx.region_count, 1);
	KUNIT_EXPECT_EQ(test, kref_read(&w->bo.base.refcount), 2);
	embeng_region_release_all(&w->ctx);
	check_empty(test);
}

static void no_length_is_all_of_it(struct kunit *test)
{
	struct test_world *w = test->priv;
	struct embeng_accel_bind arg = { .rights = CAN_READ, .offset = 3 * PAGE_SIZE };

	KUNIT_ASSERT_EQ(test, bind(w, &arg), 0);
	KUNIT_EXPECT_EQ(test, w->table[0].length, 5 * PAGE_SIZE);
	embeng_region_release_all(&w->ctx);
}

struct refusal {
	const char *what;
	int error;
	struct embeng_accel_bind arg;
};

static const struct refusal refusals[] = {
	{ "offset at the end", -EINVAL, { .rights = CAN_READ, .offset = SIZE } },
	{ "offset beyond", -EINVAL, { .rights = CAN_READ, .offset = SIZE + PAGE_SIZE } },
	{ "a byte too long", -EINVAL, { .rights = CAN_READ, .length = SIZE + 1 } },
	{ "reaches beyond", -EINVAL,
	  { .rights = CAN_READ, .offset = 7 * PAGE_SIZE, .length = PAGE_SIZE + 1 } },
	{ "wraps", -EOVERFLOW, { .rights = CAN_READ, .offset = PAGE_SIZE, .length = U64_MAX } },
};

static void describe(const struct refusal *refusal, char *text)
{
	strscpy(text, refusal->what, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(refusals, refusals, describe);

static void a_part_is_judged(struct kunit *test)
{
	const struct refusal *refusal = test->param_value;
	struct embeng_accel_bind arg = refusal->arg;

	KUNIT_EXPECT_EQ(test, bind(test->priv, &arg), refusal->error);
	KUNIT_EXPECT_MEMEQ(test, &arg, &refusal->arg, sizeof(arg));
	check_empty(test);
}

static const struct refusal bad_calls[] = {
	{ "no rights", -EINVAL, { .rights = 0 } },
	{ "unknown right", -EINVAL, { .rights = 4 } },
	{ "crooked offset", -EINVAL, { .rights = CAN_READ, .offset = 1 } },
	{ "index", -EINVAL, { .rights = CAN_READ, .index = 1 } },
	{ "generation", -EINVAL, { .rights = CAN_READ, .generation = 1 } },
	{ "valid", 0, { .rights = CAN_READ | CAN_WRITE, .offset = PAGE_SIZE } },
};

KUNIT_ARRAY_PARAM(bad_calls, bad_calls, describe);

static void a_call_is_judged(struct kunit *test)
{
	const struct refusal *call = test->param_value;

	KUNIT_EXPECT_EQ(test, check_bind(&call->arg), call->error);
}

static void read_only_memory_is_not_written(struct kunit *test)
{
	struct test_world *w = test->priv;
	struct embeng_accel_bind arg = { .rights = CAN_READ | CAN_WRITE };

	w->bo.read_only = true;
	KUNIT_EXPECT_EQ(test, bind(w, &arg), -EACCES);
	check_empty(test);
	arg.rights = CAN_READ;
	KUNIT_EXPECT_EQ(test, bind(w, &arg), 0);
	embeng_region_release_all(&w->ctx);
}

static void the_limit_holds(struct kunit *test)
{
	struct test_world *w = test->priv;
	struct embeng_accel_bind arg = { .rights = CAN_READ };

	w->ctx.memory_limit = SIZE - 1;
	KUNIT_EXPECT_EQ(test, bind(w, &arg), -EDQUOT);
	KUNIT_EXPECT_EQ(test, w->ctx.memory, 0);
	w->ctx.memory_limit = SIZE;
	KUNIT_EXPECT_EQ(test, bind(w, &arg), 0);
	/* A buffer that another made is charged once, however often it is bound. */
	KUNIT_EXPECT_EQ(test, bind(w, &arg), 0);
	KUNIT_EXPECT_EQ(test, w->ctx.memory, SIZE);
	embeng_region_release_all(&w->ctx);
	check_empty(test);
}

static void a_full_table_is_told(struct kunit *test)
{
	struct test_world *w = test->priv;
	struct embeng_accel_bind arg = { .rights = CAN_READ };
	u32 i;

	for (i = 0; i < WORLD_ENTRIES; i++)
		KUNIT_EXPECT_EQ(test, bound(test).index, i);
	KUNIT_EXPECT_EQ(test, bind(w, &arg), -ENOSPC);
	KUNIT_EXPECT_EQ(test, arg.generation, 0);
	KUNIT_EXPECT_EQ(test, w->ctx.memory, SIZE);
	KUNIT_EXPECT_EQ(test, w->lists, WORLD_ENTRIES);
	embeng_region_release_all(&w->ctx);
	check_empty(test);
}

static void memory_that_is_too_short(struct kunit *test)
{
	struct test_world *w = test->priv;
	struct embeng_accel_bind arg = { .rights = CAN_READ };

	w->bo.dma = NULL;
	w->bo.table = kunit_kzalloc(test, sizeof(*w->bo.table), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, w->bo.table);
	KUNIT_EXPECT_EQ(test, bind(w, &arg), -EINVAL);
	check_empty(test);
}

/* The entry has generation 0 before the device is asked, and is free after it has answered. */
static void a_key_ends(struct kunit *test)
{
	struct test_world *w = test->priv;
	struct embeng_accel_bind first = bound(test), second = bound(test);

	w->dead = 99;
	KUNIT_EXPECT_EQ(test, embeng_region_unbind(&w->ctx, second.index, second.generation), 0);
	KUNIT_EXPECT_EQ(test, w->tellings, 1);
	KUNIT_EXPECT_EQ(test, w->told.opcode, EMBENG_ADMIN_INVALIDATE);
	KUNIT_EXPECT_EQ(test, w->told.context, 7);
	KUNIT_EXPECT_EQ(test, w->told.index, 1);
	KUNIT_EXPECT_EQ(test, w->dead, 0);
	KUNIT_EXPECT_EQ(test, w->lists, 1);
	KUNIT_EXPECT_TRUE(test, embeng_region_exists(&w->ctx, first.index, first.generation));
	KUNIT_EXPECT_FALSE(test, embeng_region_exists(&w->ctx, second.index, second.generation));
	KUNIT_EXPECT_EQ(test, embeng_region_unbind(&w->ctx, first.index, first.generation), 0);
	check_empty(test);
}

static void a_stale_or_guessed_key_is_none(struct kunit *test)
{
	struct test_world *w = test->priv;
	struct embeng_accel_bind arg = bound(test);

	KUNIT_EXPECT_EQ(test, embeng_region_unbind(&w->ctx, 0, 0), -ENOENT);
	KUNIT_EXPECT_EQ(test, embeng_region_unbind(&w->ctx, 0, 2), -ENOENT);
	KUNIT_EXPECT_EQ(test, embeng_region_unbind(&w->ctx, 1, 1), -ENOENT);
	KUNIT_EXPECT_EQ(test, embeng_region_unbind(&w->ctx, WORLD_ENTRIES, 1), -ENOENT);
	KUNIT_EXPECT_EQ(test, embeng_region_unbind(&w->ctx, U32_MAX, 1), -ENOENT);
	KUNIT_EXPECT_EQ(test, w->tellings, 0);
	KUNIT_EXPECT_EQ(test, embeng_region_unbind(&w->ctx, arg.index, arg.generation), 0);
	KUNIT_EXPECT_EQ(test, embeng_region_unbind(&w->ctx, arg.index, arg.generation), -ENOENT);
}

static void an_index_gets_the_next_generation(struct kunit *test)
{
	struct test_world *w = test->priv;
	u32 i;

	for (i = 1; i < 5; i++) {
		struct embeng_accel_bind arg = bound(test);

		KUNIT_EXPECT_EQ(test, arg.index, 0);
		KUNIT_EXPECT_EQ(test, arg.generation, i);
		KUNIT_EXPECT_EQ(test, w->table[0].generation, i);
		KUNIT_EXPECT_EQ(test, embeng_region_unbind(&w->ctx, 0, i), 0);
	}
	check_empty(test);
}

static void the_last_generation_retires_its_index(struct kunit *test)
{
	struct test_world *w = test->priv;

	w->generations[0] = U32_MAX - 1;
	KUNIT_EXPECT_EQ(test, bound(test).generation, U32_MAX);
	KUNIT_EXPECT_TRUE(test, embeng_region_exists(&w->ctx, 0, U32_MAX));
	KUNIT_EXPECT_EQ(test, embeng_region_unbind(&w->ctx, 0, U32_MAX), 0);
	KUNIT_EXPECT_EQ(test, w->table[0].generation, 0);
	KUNIT_EXPECT_EQ(test, bound(test).index, 1);
	KUNIT_EXPECT_FALSE(test, embeng_region_exists(&w->ctx, 0, U32_MAX));
	KUNIT_EXPECT_FALSE(test, embeng_region_exists(&w->ctx, 0, 0));
	KUNIT_EXPECT_EQ(test, embeng_region_unbind(&w->ctx, 0, 0), -ENOENT);
	embeng_region_release_all(&w->ctx);
	check_empty(test);
}

static void all_retired_is_a_full_table(struct kunit *test)
{
	struct test_world *w = test->priv;
	struct embeng_accel_bind arg = { .rights = CAN_READ };
	u32 i;

	for (i = 0; i < WORLD_ENTRIES; i++) {
		w->generations[i] = U32_MAX - 1;
		KUNIT_EXPECT_EQ(test, bound(test).index, i);
		KUNIT_EXPECT_EQ(test, embeng_region_unbind(&w->ctx, i, U32_MAX), 0);
	}
	KUNIT_EXPECT_EQ(test, bind(w, &arg), -ENOSPC);
	check_empty(test);
	embeng_region_release_all(&w->ctx);
	KUNIT_EXPECT_TRUE(test, xa_empty(&w->ctx.regions));
}

static struct kunit_case cases[] = {
	KUNIT_CASE(an_entry_says_what_was_bound),
	KUNIT_CASE(no_length_is_all_of_it),
	KUNIT_CASE_PARAM(a_part_is_judged, refusals_gen_params),
	KUNIT_CASE_PARAM(a_call_is_judged, bad_calls_gen_params),
	KUNIT_CASE(read_only_memory_is_not_written),
	KUNIT_CASE(the_limit_holds),
	KUNIT_CASE(a_full_table_is_told),
	KUNIT_CASE(memory_that_is_too_short),
	KUNIT_CASE(a_key_ends),
	KUNIT_CASE(a_stale_or_guessed_key_is_none),
	KUNIT_CASE(an_index_gets_the_next_generation),
	KUNIT_CASE(the_last_generation_retires_its_index),
	KUNIT_CASE(all_retired_is_a_full_table),
	{ }
};

static struct kunit_suite suite = {
	.name = "embeng-region",
	.init = test_world_init,
	.exit = test_world_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
