/* SPDX-License-Identifier: MIT */
/* One update of a row whose elements are all alike, on every variant. */
#ifndef EMBENG_TESTS_ELEMENT_H
#define EMBENG_TESTS_ELEMENT_H

#include "engine/kernels/kernels.h"
#include "test_kernels.h"
#include "variants.h"

#define DIM 19u /* more than one vector, and floats left over, whatever the variant */

/* A row whose elements are all alike. */
struct element {
	float w, slot[3];
};

static inline struct element apply(const struct kernel_ops *ops, const struct kernel_update *update,
				   struct element before, float g)
{
	float w[DIM], slots[3][DIM], gradient[DIM];
	struct kernel_update u = *update;

	for (u32 c = 0; c < DIM; c++) {
		w[c] = before.w;
		slots[0][c] = before.slot[0];
		slots[1][c] = before.slot[1];
		slots[2][c] = before.slot[2];
		gradient[c] = g;
	}
	u.dim = u.stride = DIM;
	u.table = w;
	u.slots[0] = slots[0];
	u.slots[1] = slots[1];
	u.slots[2] = slots[2];
	u.step = u.step ? u.step : 1;
	kernel_prepare(&u);
	ops->update_row(&u, 0, gradient);
	for (u32 c = 1; c < DIM; c++) {
		ck_assert(same_float(w[c], w[0]));
		ck_assert(same_float(slots[0][c], slots[0][0]));
		ck_assert(same_float(slots[1][c], slots[1][0]));
		ck_assert(same_float(slots[2][c], slots[2][0]));
	}
	return (struct element){w[0], {slots[0][0], slots[1][0], slots[2][0]}};
}

/* Checks the update on every variant that this processor has. */
static inline void expect(const struct kernel_update *u, struct element before, float g,
			  struct element after)
{
	const struct kernel_ops *ops;

	for_each_variant(ops) {
		struct element got = apply(ops, u, before, g);

		bool same = same_float(got.w, after.w);

		for (u32 i = 0; i < 3; i++)
			same &= same_float(got.slot[i], after.slot[i]);
		ck_assert_msg(same, "%s: %a (%a, %a, %a), not %a (%a, %a, %a)", ops->name, got.w,
			      got.slot[0], got.slot[1], got.slot[2], after.w, after.slot[0],
			      after.slot[1], after.slot[2]);
	}
}

#define E(...) ((struct element){__VA_ARGS__})

#endif
