// SPDX-License-Identifier: MIT
/* The soft device and mapped queues have no fences, and calls that ask for one say so. */
#include "session_help.h"
#include "suite.h"

START_TEST(no_fences_here)
{
	struct embeng *e = open_small(&(struct shape){.replicas = 1, .optimizer = embeng_sgd(1)});
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng_gradients g = {.size = sizeof(g), .count = 1};
	const int files[EMBENG_FENCES_MAX + 1] = {0};
	const float *features[1];
	int fence = -7;

	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
	ck_assert_int_eq(embeng_dequeue_fence(e, 0, -1, &a, &fence), -ENOTSUP);
	expect_text("path=validated");
	ck_assert_int_eq(fence, -7);
	ck_assert_ptr_null(a.token);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	features[0] = embeng_gradient_buffer(e, 0, 0);
	g.features = features;
	/* The list is looked at before the path: as many as are allowed, and one more. */
	g.fence_count = 1;
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), -EINVAL);
	expect_text("none given");
	g.fences = files;
	g.fence_count = EMBENG_FENCES_MAX + 1;
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), -EINVAL);
	expect_text("there may be up to");
	g.fence_count = EMBENG_FENCES_MAX;
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), -ENOTSUP);
	g.fence_count = 1;
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), -ENOTSUP);
	expect_text("path=validated");
	g.fence_count = 0;
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), 0);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	embeng_close(e);
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_test(tc, no_fences_here);
}

int main(void)
{
	return suite_main("fences", add);
}
