// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests the arithmetic of ring indices (ring.h): they wrap at 2^32, and a device or a program may
 * have written any value.
 */
#include "world.h"

#include "../ring.h"

static void an_index_is_between(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, embeng_ring_between(5, 5, 9));
	KUNIT_EXPECT_TRUE(test, embeng_ring_between(9, 5, 9));
	KUNIT_EXPECT_FALSE(test, embeng_ring_between(4, 5, 9));
	KUNIT_EXPECT_FALSE(test, embeng_ring_between(10, 5, 9));
	KUNIT_EXPECT_TRUE(test, embeng_ring_between(5, 5, 5));
	KUNIT_EXPECT_FALSE(test, embeng_ring_between(6, 5, 5));
}

static void an_index_is_between_across_the_wrap(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, embeng_ring_between(U32_MAX, U32_MAX - 1, 2));
	KUNIT_EXPECT_TRUE(test, embeng_ring_between(0, U32_MAX - 1, 2));
	KUNIT_EXPECT_TRUE(test, embeng_ring_between(2, U32_MAX - 1, 2));
	KUNIT_EXPECT_FALSE(test, embeng_ring_between(3, U32_MAX - 1, 2));
	KUNIT_EXPECT_FALSE(test, embeng_ring_between(U32_MAX - 2, U32_MAX - 1, 2));
}

static void a_ring_holds_its_entries(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, embeng_ring_holds(0, 0, 16, 16));
	KUNIT_EXPECT_FALSE(test, embeng_ring_holds(0, 0, 17, 16));
	KUNIT_EXPECT_TRUE(test, embeng_ring_holds(3, 10, 9, 16));
	KUNIT_EXPECT_FALSE(test, embeng_ring_holds(3, 10, 10, 16));
	KUNIT_EXPECT_TRUE(test, embeng_ring_holds(0, 16, 0, 16));
}

static void a_ring_holds_them_across_the_wrap(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, embeng_ring_holds(U32_MAX - 3, 4, 8, 16));
	KUNIT_EXPECT_FALSE(test, embeng_ring_holds(U32_MAX - 3, 4, 9, 16));
}

/* There is no room if a device put the head beyond the tail, or for counts near 2^32. */
static void nonsense_is_no_room(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, embeng_ring_holds(1, 0, 1, 16));
	KUNIT_EXPECT_FALSE(test, embeng_ring_holds(0, 1, U32_MAX, 16));
	KUNIT_EXPECT_FALSE(test, embeng_ring_holds(0, 8, (u64)U32_MAX + 1, 16));
	KUNIT_EXPECT_FALSE(test, embeng_ring_holds(0, 17, 0, 16));
}

/* The parts of a queue's memory do not overlap, and none shares a cache line with another. */
static void parts_of_a_ring_do_not_overlap(struct kunit *test)
{
	struct embeng_queue_layout layout;
	u32 sq, cq;

	for (sq = 1; sq <= EMBENG_SQ_ENTRIES_MAX; sq *= 2) {
		for (cq = 1; cq <= 2 * EMBENG_SQ_ENTRIES_MAX; cq *= 2) {
			layout = embeng_ring_layout(sq, cq, EMBENG_RING_REPORTS);
			KUNIT_ASSERT_EQ(test, layout.sq_entries, sq);
			KUNIT_ASSERT_EQ(test, layout.cq_entries, cq);
			KUNIT_ASSERT_EQ(test, layout.features, EMBENG_RING_REPORTS);
			KUNIT_ASSERT_EQ(test, (layout.header | layout.sq | layout.cq) % 64, 0);
			KUNIT_ASSERT_GE(test, layout.sq,
					layout.header + sizeof(struct embeng_ring_header));
			KUNIT_ASSERT_GE(test, layout.cq,
					layout.sq + sq * sizeof(struct embeng_cmd));
			KUNIT_ASSERT_GE(test, layout.size,
					layout.cq + cq * sizeof(struct embeng_cqe));
			KUNIT_ASSERT_LE(test, layout.size, SZ_1M);
		}
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(an_index_is_between),
	KUNIT_CASE(an_index_is_between_across_the_wrap),
	KUNIT_CASE(a_ring_holds_its_entries),
	KUNIT_CASE(a_ring_holds_them_across_the_wrap),
	KUNIT_CASE(nonsense_is_no_room),
	KUNIT_CASE(parts_of_a_ring_do_not_overlap),
	{ }
};

static struct kunit_suite suite = {
	.name = "embeng-ring",
	.test_cases = cases,
};

kunit_test_suite(suite);
