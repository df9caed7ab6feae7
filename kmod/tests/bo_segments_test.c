// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests how the pages of a buffer become the pieces that a region names (bo_segments.c, which is
 * compiled in): neighbours join, a gap or a change of order begins a new piece.
 */
#include "world.h"

#include "../bo_segments.c"

#define ROOM 8u

static struct embeng_bo *bo_of(struct kunit *test)
{
	return &((struct test_world *)test->priv)->bo;
}

static void neighbours_are_one_piece(struct kunit *test)
{
	struct embeng_bo *bo = bo_of(test);
	struct embeng_segment out[ROOM] = {};

	KUNIT_EXPECT_EQ(test, embeng_segments(bo, 0, bo->base.size, out, ROOM), 1);
	KUNIT_EXPECT_EQ(test, out[0].address, 0x100000);
	KUNIT_EXPECT_EQ(test, out[0].length, bo->base.size);
	KUNIT_EXPECT_EQ(test, out[1].length, 0);
}

static void a_gap_makes_two(struct kunit *test)
{
	struct embeng_bo *bo = bo_of(test);
	struct embeng_segment out[ROOM];

	bo->dma[2] = 0x900000;
	KUNIT_EXPECT_EQ(test, embeng_segments(bo, 0, 4 * PAGE_SIZE, out, ROOM), 3);
	KUNIT_EXPECT_EQ(test, out[0].address, 0x100000);
	KUNIT_EXPECT_EQ(test, out[0].length, 2 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, out[1].address, 0x900000);
	KUNIT_EXPECT_EQ(test, out[1].length, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, out[2].address, 0x100000 + 3 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, out[2].length, PAGE_SIZE);
}

/* A page below the last one, or the same page again, does not extend a piece. */
static void order_matters(struct kunit *test)
{
	struct embeng_bo *bo = bo_of(test);
	struct embeng_segment out[ROOM];

	bo->dma[0] = 0x3000;
	bo->dma[1] = 0x2000;
	bo->dma[2] = 0x2000;
	KUNIT_EXPECT_EQ(test, embeng_segments(bo, 0, 3 * PAGE_SIZE, out, ROOM), 3);
	KUNIT_EXPECT_EQ(test, out[1].address, 0x2000);
	KUNIT_EXPECT_EQ(test, out[2].address, 0x2000);
}

static void a_part_begins_and_ends_within(struct kunit *test)
{
	struct embeng_bo *bo = bo_of(test);
	struct embeng_segment out[ROOM];

	bo->dma[3] = 0x900000;
	KUNIT_EXPECT_EQ(test, embeng_segments(bo, 2 * PAGE_SIZE, PAGE_SIZE + 5, out, ROOM), 2);
	KUNIT_EXPECT_EQ(test, out[0].address, 0x100000 + 2 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, out[0].length, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, out[1].address, 0x900000);
	KUNIT_EXPECT_EQ(test, out[1].length, 5);
}

static void counting_writes_nothing(struct kunit *test)
{
	struct embeng_bo *bo = bo_of(test);

	bo->dma[4] = 0x900000;
	KUNIT_EXPECT_EQ(test, embeng_segments(bo, 0, bo->base.size, NULL, ROOM), 3);
}

static void no_more_than_there_is_room(struct kunit *test)
{
	struct embeng_bo *bo = bo_of(test);
	struct embeng_segment out[2] = {};

	bo->dma[1] = 0x900000;
	KUNIT_EXPECT_EQ(test, embeng_segments(bo, 0, 2 * PAGE_SIZE, out, 2), 2);
	KUNIT_EXPECT_EQ(test, embeng_segments(bo, 0, 3 * PAGE_SIZE, out, 2), -ENOSPC);
	KUNIT_EXPECT_EQ(test, embeng_segments(bo, 0, PAGE_SIZE, out, 0), -ENOSPC);
}

/* Makes an imported buffer of three entries, of which the first two are contiguous. */
static struct embeng_bo *imported(struct kunit *test)
{
	static const struct {
		u64 address;
		u32 length;
	} parts[] = { { 0x10000, 0x3000 }, { 0x13000, 0x1000 }, { 0x80000, 0x2000 } };
	struct embeng_bo *bo = bo_of(test);
	struct scatterlist *sg;
	int i;

	bo->dma = NULL;
	bo->table = kunit_kzalloc(test, sizeof(*bo->table), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, bo->table);
	KUNIT_ASSERT_EQ(test, sg_alloc_table(bo->table, ARRAY_SIZE(parts), GFP_KERNEL), 0);
	for_each_sgtable_dma_sg(bo->table, sg, i) {
		sg_dma_address(sg) = parts[i].address;
		sg_dma_len(sg) = parts[i].length;
	}
	return bo;
}

static void entries_of_a_table_merge(struct kunit *test)
{
	struct embeng_bo *bo = imported(test);
	struct embeng_segment out[ROOM];

	KUNIT_EXPECT_EQ(test, embeng_segments(bo, 0, 0x6000, out, ROOM), 2);
	KUNIT_EXPECT_EQ(test, out[0].address, 0x10000);
	KUNIT_EXPECT_EQ(test, out[0].length, 0x4000);
	KUNIT_EXPECT_EQ(test, out[1].address, 0x80000);
	KUNIT_EXPECT_EQ(test, out[1].length, 0x2000);
	sg_free_table(bo->table);
}

static void a_part_of_a_table(struct kunit *test)
{
	struct embeng_bo *bo = imported(test);
	struct embeng_segment out[ROOM];

	KUNIT_EXPECT_EQ(test, embeng_segments(bo, 0x2000, 0x2800, out, ROOM), 2);
	KUNIT_EXPECT_EQ(test, out[0].address, 0x12000);
	KUNIT_EXPECT_EQ(test, out[0].length, 0x2000);
	KUNIT_EXPECT_EQ(test, out[1].address, 0x80000);
	KUNIT_EXPECT_EQ(test, out[1].length, 0x800);
	KUNIT_EXPECT_EQ(test, embeng_segments(bo, 0x4000, 0x1000, out, ROOM), 1);
	KUNIT_EXPECT_EQ(test, out[0].address, 0x80000);
	KUNIT_EXPECT_EQ(test, embeng_segments(bo, 0x2000, 0x2800, out, 1), -ENOSPC);
	sg_free_table(bo->table);
}

static void a_table_that_is_too_short(struct kunit *test)
{
	struct embeng_bo *bo = imported(test);
	struct embeng_segment out[ROOM];

	KUNIT_EXPECT_EQ(test, embeng_segments(bo, 0, 0x6001, out, ROOM), -EINVAL);
	KUNIT_EXPECT_EQ(test, embeng_segments(bo, 0x6000, 1, out, ROOM), -EINVAL);
	sg_free_table(bo->table);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(neighbours_are_one_piece),
	KUNIT_CASE(a_gap_makes_two),
	KUNIT_CASE(order_matters),
	KUNIT_CASE(a_part_begins_and_ends_within),
	KUNIT_CASE(counting_writes_nothing),
	KUNIT_CASE(no_more_than_there_is_room),
	KUNIT_CASE(entries_of_a_table_merge),
	KUNIT_CASE(a_part_of_a_table),
	KUNIT_CASE(a_table_that_is_too_short),
	{ }
};

static struct kunit_suite suite = {
	.name = "embeng-segments",
	.init = test_world_init,
	.exit = test_world_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
