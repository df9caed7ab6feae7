// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests what a request for a queue may say (queue_check.c, which is compiled in), by a table of
 * requests with the error of each.
 */
#include <linux/cred.h>

#include "world.h"

#include "../queue_check.c"

#define KIND(k) EMBENG_QUEUE_##k
#define MAPPED EMBENG_ACCEL_QUEUE_MAPPED

struct request {
	const char *what;
	int error;
	struct embeng_accel_queue_create arg;
};

static const struct request requests[] = {
	{ "transfer", 0, { .kind = KIND(TRANSFER), .sq_entries = 16, .cq_entries = 16 } },
	{ "one entry each", 0, { .kind = KIND(TRANSFER), .sq_entries = 1, .cq_entries = 1 } },
	{ "the most", 0,
	  { .kind = KIND(GRADIENT), .sq_entries = 4096, .cq_entries = 8192 } },
	{ "input with twice as many", 0,
	  { .kind = KIND(INPUT), .sq_entries = 16, .cq_entries = 32 } },
	{ "mapped", 0,
	  { .kind = KIND(INPUT), .flags = MAPPED, .sq_entries = 1, .cq_entries = 2 } },
	{ "last replica", 0,
	  { .kind = KIND(GRADIENT), .replica = 3, .sq_entries = 1, .cq_entries = 1 } },
	{ "each completion", 0,
	  { .kind = KIND(TRANSFER), .sq_entries = 1, .cq_entries = 1, .coalesce_count = 1 } },
	{ "all completions", 0,
	  { .kind = KIND(TRANSFER), .sq_entries = 16, .cq_entries = 16, .coalesce_count = 16,
	    .coalesce_us = 1000000 } },
	{ "admin", -EINVAL, { .kind = KIND(ADMIN), .sq_entries = 1, .cq_entries = 1 } },
	{ "kind beyond", -EINVAL, { .kind = 5, .sq_entries = 1, .cq_entries = 1 } },
	{ "flag", -EINVAL,
	  { .kind = KIND(TRANSFER), .flags = 2, .sq_entries = 1, .cq_entries = 1 } },
	{ "replica beyond", -EINVAL,
	  { .kind = KIND(INPUT), .replica = 4, .sq_entries = 1, .cq_entries = 2 } },
	{ "replica of a transfer", -EINVAL,
	  { .kind = KIND(TRANSFER), .replica = 1, .sq_entries = 1, .cq_entries = 1 } },
	{ "priority beyond", -EINVAL,
	  { .kind = KIND(TRANSFER), .priority = 4, .sq_entries = 1, .cq_entries = 1 } },
	{ "no submissions", -EINVAL, { .kind = KIND(TRANSFER), .cq_entries = 16 } },
	{ "no completions", -EINVAL, { .kind = KIND(TRANSFER), .sq_entries = 16 } },
	{ "three submissions", -EINVAL,
	  { .kind = KIND(TRANSFER), .sq_entries = 3, .cq_entries = 4 } },
	{ "three completions", -EINVAL,
	  { .kind = KIND(TRANSFER), .sq_entries = 2, .cq_entries = 3 } },
	{ "too many submissions", -EINVAL,
	  { .kind = KIND(TRANSFER), .sq_entries = 8192, .cq_entries = 8192 } },
	{ "too many completions", -EINVAL,
	  { .kind = KIND(TRANSFER), .sq_entries = 4096, .cq_entries = 16384 } },
	{ "2^31 submissions", -EINVAL,
	  { .kind = KIND(INPUT), .sq_entries = 1u << 31, .cq_entries = 1u << 31 } },
	{ "input without room for both", -EINVAL,
	  { .kind = KIND(INPUT), .sq_entries = 16, .cq_entries = 16 } },
	{ "inference without room for both", -EINVAL,
	  { .kind = KIND(INFERENCE), .sq_entries = 1, .cq_entries = 1 } },
	{ "more coalesced than there are", -EINVAL,
	  { .kind = KIND(TRANSFER), .sq_entries = 16, .cq_entries = 16, .coalesce_count = 17,
	    .coalesce_us = 1 } },
	{ "coalesced for ever", -EINVAL,
	  { .kind = KIND(TRANSFER), .sq_entries = 16, .cq_entries = 16, .coalesce_count = 2 } },
	{ "coalesced too long", -EINVAL,
	  { .kind = KIND(TRANSFER), .sq_entries = 16, .cq_entries = 16, .coalesce_count = 2,
	    .coalesce_us = 1000001 } },
	{ "time without a count", -EINVAL,
	  { .kind = KIND(TRANSFER), .sq_entries = 16, .cq_entries = 16, .coalesce_us = 5 } },
	{ "time with a count of one", -EINVAL,
	  { .kind = KIND(TRANSFER), .sq_entries = 16, .cq_entries = 16, .coalesce_count = 1,
	    .coalesce_us = 5 } },
	{ "mapped and coalesced", -EINVAL,
	  { .kind = KIND(TRANSFER), .flags = MAPPED, .sq_entries = 16, .cq_entries = 16,
	    .coalesce_count = 2, .coalesce_us = 5 } },
	{ "number", -EINVAL,
	  { .kind = KIND(TRANSFER), .sq_entries = 1, .cq_entries = 1, .queue = 1 } },
	{ "an index near the end", 0,
	  { .kind = KIND(TRANSFER), .sq_entries = 1, .cq_entries = 1, .first = U32_MAX } },
	{ "ring", -EINVAL,
	  { .kind = KIND(TRANSFER), .sq_entries = 1, .cq_entries = 1, .ring = 1 } },
	{ "doorbell", -EINVAL,
	  { .kind = KIND(TRANSFER), .sq_entries = 1, .cq_entries = 1, .doorbell = 1 } },
	{ "layout", -EINVAL,
	  { .kind = KIND(TRANSFER), .sq_entries = 1, .cq_entries = 1, .layout.size = 1 } },
};

static void describe(const struct request *request, char *text)
{
	strscpy(text, request->what, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(requests, requests, describe);

static void a_request_is_judged(struct kunit *test)
{
	const struct request *request = test->param_value;
	struct test_world *w = test->priv;

	KUNIT_EXPECT_EQ(test, embeng_queue_check(&w->device, &request->arg), request->error);
}

static void mapping_can_be_forbidden(struct kunit *test)
{
	struct embeng_accel_queue_create arg = { .kind = EMBENG_QUEUE_TRANSFER, .flags = MAPPED,
						 .sq_entries = 1, .cq_entries = 1 };
	struct test_world *w = test->priv;

	w->device.caps.features = 0;
	KUNIT_EXPECT_EQ(test, embeng_queue_check(&w->device, &arg), -EOPNOTSUPP);
	arg.flags = 0;
	KUNIT_EXPECT_EQ(test, embeng_queue_check(&w->device, &arg), 0);
}

/* Anybody may use the two lower priorities. */
static void high_priority_needs_a_right(struct kunit *test)
{
	struct embeng_accel_queue_create arg = { .kind = EMBENG_QUEUE_TRANSFER, .sq_entries = 1,
						 .cq_entries = 1 };
	struct cred *poor = prepare_creds();
	struct test_world *w = test->priv;
	const struct cred *old;
	int errors[4];

	KUNIT_ASSERT_NOT_NULL(test, poor);
	cap_lower(poor->cap_effective, CAP_SYS_NICE);
	old = override_creds(poor);
	for (arg.priority = 0; arg.priority < ARRAY_SIZE(errors); arg.priority++)
		errors[arg.priority] = embeng_queue_check(&w->device, &arg);
	revert_creds(old);
	put_cred(poor);
	KUNIT_EXPECT_EQ(test, errors[0], 0);
	KUNIT_EXPECT_EQ(test, errors[1], 0);
	KUNIT_EXPECT_EQ(test, errors[2], -EACCES);
	KUNIT_EXPECT_EQ(test, errors[3], -EACCES);
	arg.priority = 3;
	KUNIT_EXPECT_EQ(test, embeng_queue_check(&w->device, &arg), 0);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(a_request_is_judged, requests_gen_params),
	KUNIT_CASE(mapping_can_be_forbidden),
	KUNIT_CASE(high_priority_needs_a_right),
	{ }
};

static struct kunit_suite suite = {
	.name = "embeng-queue-check",
	.init = test_world_init,
	.exit = test_world_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
