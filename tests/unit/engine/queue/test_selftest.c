// SPDX-License-Identifier: MIT
/*
 * Self-tests of an image, run by a device that boots it: a wrong number in a vector, and a wrong
 * kernel in each variant that the processor has.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/control/selftest.h"
#include "builtin_image.h"
#include "fake_model.h"
#include "image_help.h"
#include "rig.h"
#include "suite.h"
#include "variants.h"

#define VECTORS 3u
#define TESTS 320u /* 128 header, two entries of 64, parameters */

static struct good_vector vectors[VECTORS];
static void *image;
static size_t length;

static void pack(void)
{
	const struct image_section sections[] = {
		{EMBENG_FW_PARAMETERS, EMBENG_FW_SECTION_MANDATORY, &good_parameters,
		 sizeof(good_parameters)},
		{EMBENG_FW_SELF_TEST, EMBENG_FW_SECTION_MANDATORY, vectors, sizeof(vectors)},
	};

	ck_assert_int_eq(image_pack(GOOD_VERSION, "test", sections, 2, &image, &length), 0);
}

static void expect_failure(struct rig *rig, u32 index)
{
	ck_assert_uint_eq(rig_boot(rig, image, length), EMBENG_BOOT_FAILED);
	ck_assert_uint_eq(reg_read32(rig->engine, EMBENG_REG_BOOT_ERROR),
			  EMBENG_BOOT_ERROR_SELF_TEST);
	ck_assert_uint_eq(reg_read32(rig->engine, EMBENG_REG_BOOT_ERROR_INDEX), index);
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_BOOT_ERROR_OFFSET),
			  TESTS + index * sizeof(vectors[0]));
	ck_assert_uint_eq(reg_read32(rig->engine, EMBENG_REG_CORES), 0);
}

static void boot_well(struct rig *rig)
{
	ck_assert_uint_eq(rig_boot(rig, embeng_builtin_image, sizeof(embeng_builtin_image)),
			  EMBENG_BOOT_RUNNING);
	ck_assert_uint_eq(reg_read32(rig->engine, EMBENG_REG_BOOT_ERROR), 0);
	ck_assert_uint_eq(reg_read32(rig->engine, EMBENG_REG_BOOT_ERROR_INDEX), 0);
}

static void reset_vectors(void)
{
	for (u32 i = 0; i < VECTORS; i++)
		vectors[i] = good_vector;
}

START_TEST(good_vectors_boot)
{
	struct rig *rig = rig_power_on(1, 0);

	reset_vectors();
	pack();
	ck_assert_uint_eq(rig_boot(rig, image, length), EMBENG_BOOT_RUNNING);
	free(image);
	rig_free(rig);
}
END_TEST

/* One bit of the result of a lookup, of an update; in each vector. */
START_TEST(a_wrong_result_is_a_boot_failure_with_its_index)
{
	struct rig *rig = rig_power_on(1, 0);
	u32 index = (u32)_i / 2;
	struct good_vector *v = &vectors[index];
	u8 *bit = _i % 2 ? (u8 *)v->activations : (u8 *)v->table_after;

	reset_vectors();
	*bit ^= 1;
	pack();
	expect_failure(rig, index);
	boot_well(rig);
	free(image);
	rig_free(rig);
}
END_TEST

/* Any NaN equals any NaN, and no zero equals the other one. */
START_TEST(results_are_compared_by_their_bits)
{
	struct rig *rig = rig_power_on(1, 0);
	u32 nan = 0xffc00123, wrong = 0x80000000;

	reset_vectors();
	memcpy(vectors[1].table[0], &nan, sizeof(nan));
	nan = 0x7fc00001;
	memcpy(vectors[1].activations[0], &nan, sizeof(nan));
	memcpy(vectors[1].table_after[0], &nan, sizeof(nan));
	pack();
	ck_assert_uint_eq(rig_boot(rig, image, length), EMBENG_BOOT_RUNNING);
	free(image);
	rig_warm_reset(rig);
	memcpy(vectors[2].activations[1], &wrong, sizeof(wrong)); /* -0 of an empty bag */
	pack();
	expect_failure(rig, 2);
	free(image);
	rig_free(rig);
}
END_TEST

/* A variant that computes wrong: what kernel_select() gives is exchanged by the linker. */
static const struct kernel_ops *broken_variant;
static struct kernel_ops broken;

const struct kernel_ops *__real_kernel_select(const char *force);
const struct kernel_ops *__wrap_kernel_select(const char *force);

const struct kernel_ops *__wrap_kernel_select(const char *force)
{
	const struct kernel_ops *ops = __real_kernel_select(force);

	return force && ops && ops == broken_variant ? &broken : ops;
}

static bool lookup_nothing(const struct kernel_bag_work *w, u64 first, u64 last)
{
	memset(w->out + first * w->out_stride, 0, (last - first) * w->dim * sizeof(float));
	return false;
}

static void scale_by_two(const struct kernel_scale_work *w, u64 first, u64 last)
{
	broken_variant->scales(w, first, last);
	for (u64 s = first; s < last; s++)
		w->scales[s] *= 2;
}

static bool update_nothing(const struct kernel_update *u, const struct kernel_group *groups, u64 n,
			   u64 ahead, const u32 *occ, void *scratch)
{
	(void)u, (void)groups, (void)n, (void)ahead, (void)occ, (void)scratch;
	return false;
}

START_TEST(every_variant_is_tested)
{
	struct rig *rig = rig_power_on(1, 0);
	const struct kernel_ops *ops;

	reset_vectors();
	pack();
	for_each_variant(ops) {
		broken_variant = ops;
		for (u32 k = 0; k < 3; k++) {
			broken = *ops;
			if (k == 0)
				broken.lookup = lookup_nothing;
			else if (k == 1)
				broken.scales = scale_by_two;
			else
				broken.update_rows = update_nothing;
			expect_failure(rig, 0);
		}
	}
	broken_variant = NULL;
	boot_well(rig);
	free(image);
	rig_free(rig);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, good_vectors_boot);
	tcase_add_loop_test(t, a_wrong_result_is_a_boot_failure_with_its_index, 0, 2 * VECTORS);
	tcase_add_test(t, results_are_compared_by_their_bits);
	tcase_add_test(t, every_variant_is_tested);
}

int main(void)
{
	return suite_main("selftest", add);
}
