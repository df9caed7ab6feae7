// SPDX-License-Identifier: MIT
/*
 * Kernels that update rows, in each variant, against rules that are written plainly; and the fixed
 * order in which gradients of a row are summed.
 */
#include "suite.h"
#include "test_kernels_rules.h"
#include "variants.h"

static void expect_same(const struct kernel_update *u, const struct step *s, const char *what,
			const float *is, const float *should)
{
	for (u32 k = 0; k < ROWS * s->stride; k++) {
		if (!same_float(is[k], should[k]))
			ck_abort_msg("optimizer %u flags %#x dim %u, %s, row %llu column %llu: %a "
				     "instead of %a",
				     u->optimizer, u->flags, s->dim, what,
				     (unsigned long long)(k / s->stride),
				     (unsigned long long)(k % s->stride), is[k], should[k]);
	}
}

/* Rows, slots and what is beside them, where nothing is written. */
static void expect_rows(const struct kernel_update *u, const struct step *s)
{
	const u32 count = kernel_optimizers[u->optimizer].slot_count;
	const u32 wide = count - KERNEL_OPTIMIZER_IS_ROWWISE(u->optimizer);
	float *table = copy_rows(s, s->table), *slots[KERNEL_MAX_SLOTS], *at[KERNEL_MAX_SLOTS];
	char what[32];

	for (u32 i = 0; i < count; i++)
		slots[i] = copy_rows(s, s->slots[i]);
	for (u32 row = 0; row < ROWS; row++) {
		for (u32 i = 0; i < count; i++)
			at[i] = slots[i] + (i < wide ? row * s->stride : row);
		expected_group(u, s, &s->groups[row], table + row * s->stride, at);
	}
	expect_same(u, s, "table", u->table, table);
	free(table);
	for (u32 i = 0; i < count; i++) {
		snprintf(what, sizeof(what), "slot %u", i);
		expect_same(u, s, what, u->slots[i], slots[i]);
		free(slots[i]);
	}
}

/* @plain: nothing but the optimizer is asked for, which is compiled apart for some dims. */
static void check_update(const struct kernel_ops *ops, const struct step *s, u32 optimizer,
			 bool plain)
{
	struct kernel_update u = update_random(s, optimizer);
	void *scratch = aligned_alloc(64, (kernel_scratch_bytes(s->dim) + 63) / 64 * 64);

	if (plain)
		u.flags = 0;
	u.table = copy_rows(s, s->table);
	for (u32 i = 0; i < KERNEL_MAX_SLOTS; i++)
		u.slots[i] = copy_rows(s, s->slots[i]);
	ops->update_rows(&u, s->groups, 2, ROWS - 2, s->occ, scratch);
	ops->update_rows(&u, s->groups + 2, ROWS - 2, 0, s->occ, scratch);
	expect_rows(&u, s);
	free(u.table);
	for (u32 i = 0; i < KERNEL_MAX_SLOTS; i++)
		free(u.slots[i]);
	free(scratch);
}

START_TEST(test_update_equals_the_rule)
{
	const struct kernel_ops *ops = kernel_select(kernel_variant(_i));

	for (u32 dim = 1; dim <= 130; dim++) {
		struct step s;

		step_random(&s, dim, dim % 16 == 1 ? 600 : 30);
		step_sums(&s);
		for (u32 i = 0; i < 3 * KERNEL_OPTIMIZER_COUNT; i++)
			check_update(ops, &s, i % KERNEL_OPTIMIZER_COUNT,
				     i < KERNEL_OPTIMIZER_COUNT);
		step_free(&s);
	}
}
END_TEST

/* Sums alone; NaN and infinity hide order, so these gradients are finite. */
static void check_sums(const struct kernel_ops *ops, struct step *s)
{
	struct kernel_update u = {
		.dim = s->dim, .segments = s->segments, .segment_count = SEGMENTS};
	void *scratch = aligned_alloc(64, (kernel_scratch_bytes(s->dim) + 63) / 64 * 64);
	float *sum = malloc(s->dim * sizeof(*sum));

	for (u32 i = 0; i < SEGMENTS; i++) {
		struct kernel_segment *seg = &s->segments[i];
		u64 rows = seg->grad_row ? SAMPLES : seg->end - seg->first;

		for (u64 k = 0; k < rows * seg->stride; k++)
			s->gradients[i][k] = random_unit();
		for (u64 k = 0; k < seg->end - seg->first; k++)
			s->coefs[i][k] = random_unit();
	}
	for (u32 row = 0; row < ROWS; row++) {
		const struct kernel_group *group = &s->groups[row];

		ops->row_gradient(&u, sum, s->occ + group->first, group->count, scratch);
		for (u32 c = 0; c < s->dim; c++)
			if (!same_float(sum[c], expected_sum(s, group, c)))
				ck_abort_msg("dim %u row %u column %u: %a", s->dim, row, c, sum[c]);
	}
	free(sum);
	free(scratch);
}

START_TEST(test_row_gradient_equals_the_rule)
{
	const struct kernel_ops *ops = kernel_select(kernel_variant(_i));

	for (u32 dim = 1; dim <= 130; dim += 3) {
		struct step s;

		step_random(&s, dim, 900);
		check_sums(ops, &s);
		step_free(&s);
	}
}
END_TEST

/* @plain weighs 1 and is numbered by its gradients, @listed says the same of each occurrence. */
static void check_plain_sums(const struct kernel_ops *ops, u32 dim,
			     const struct kernel_segment *plain,
			     const struct kernel_segment *listed)
{
	static const u32 counts[] = {1, 2, 255, 256, 257, 600};
	struct kernel_update u = {.dim = dim, .segment_count = 1};
	void *scratch = aligned_alloc(64, (kernel_scratch_bytes(dim) + 63) / 64 * 64);
	float sum[130], want[130];
	u32 occ[600];

	for (u32 i = 0; i < 600; i++)
		occ[i] = 2 * i + i % 2;
	for (u32 i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		u.segments = listed;
		ops->row_gradient(&u, want, occ, counts[i], scratch);
		u.segments = plain;
		ops->row_gradient(&u, sum, occ, counts[i], scratch);
		if (memcmp(sum, want, dim * sizeof(*sum)))
			ck_abort_msg("dim %u, %u occurrences, far %d", dim, counts[i], plain->far);
	}
	free(scratch);
}

START_TEST(test_plain_sums_need_no_list)
{
	enum { OCCURRENCES = 1200 };
	const struct kernel_ops *ops = kernel_select(kernel_variant(_i));
	float *coef = malloc(OCCURRENCES * sizeof(*coef));
	u32 *grad_row = malloc(OCCURRENCES * sizeof(*grad_row));

	for (u32 k = 0; k < OCCURRENCES; k++) {
		coef[k] = 1.0f;
		grad_row[k] = k;
	}
	for (u32 dim = 1; dim <= 130; dim++) {
		float *gradients = malloc(OCCURRENCES * dim * sizeof(*gradients));
		struct kernel_segment plain = {
			.end = OCCURRENCES, .gradients = gradients, .stride = dim, .far = dim % 2};
		struct kernel_segment listed = plain;

		for (u32 i = 0; i < OCCURRENCES * dim; i++)
			gradients[i] = random_unit();
		listed.coef = coef;
		listed.grad_row = grad_row;
		check_plain_sums(ops, dim, &plain, &listed);
		free(gradients);
	}
	free(coef);
	free(grad_row);
}
END_TEST

/* 255, 256, 257, 512 and 513 occurrences in one replica, then one in the next. */
START_TEST(test_runs_end_at_256_and_at_replicas)
{
	static const u32 counts[] = {1, 255, 256, 257, 512, 513};
	u32 occ[600];

	for (u32 i = 0; i < 600; i++)
		occ[i] = i;
	for (u32 k = 0; k < 6; k++) {
		u32 n = counts[k], replica = 9;
		struct kernel_segment segments[] = {
			{.first = 0, .end = n / 2},
			{.first = n / 2, .end = n},
			{.first = n, .end = n + 1, .replica = 1},
		};

		for (u32 at = 0; at < n; at += 256) {
			u32 want = n - at < 256 ? n - at : 256;

			ck_assert_uint_eq(
				kernel_run_length(segments, 3, occ + at, n + 1 - at, &replica),
				want);
			ck_assert_uint_eq(replica, 0);
		}
		ck_assert_uint_eq(kernel_run_length(segments, 3, occ + n, 1, &replica), 1);
		ck_assert_uint_eq(replica, 1);
	}
}
END_TEST

/* A hot row may be summed run by run elsewhere and finished with update_row. */
START_TEST(test_cut_row_equals_whole_row)
{
	const struct kernel_ops *ops = kernel_select(kernel_variant(_i));
	float gradient[900], coef[900], whole[1], part[1],
		scratch[2048] __attribute__((aligned(64)));
	struct kernel_segment segment = {
		.end = 900, .gradients = gradient, .stride = 1, .coef = coef};
	float table[2] = {1.0f, 2.0f};
	struct kernel_update u = {.dim = 1,
				  .stride = 1,
				  .segments = &segment,
				  .segment_count = 1,
				  .optimizer = KERNEL_SGD,
				  .lr = 0.5f,
				  .table = table};
	u32 occ[900];

	ck_assert_uint_le(kernel_scratch_bytes(1), sizeof(scratch));
	for (u32 i = 0; i < 900; i++) {
		occ[i] = i;
		gradient[i] = random_unit();
		coef[i] = random_unit();
	}
	ops->row_gradient(&u, whole, occ, 900, scratch);
	for (u32 at = 0; at < 900; at += KERNEL_RUN) {
		float run;

		ops->run_gradient(&u, at ? &run : part, occ + at, at + 256 < 900 ? 256 : 900 - at,
				  scratch);
		if (at)
			ops->add_row(part, &run, 1);
	}
	ck_assert(whole[0] == part[0]);
	ops->update_row(&u, 1, part);
	ck_assert(table[1] == 2.0f - 0.5f * whole[0]);
	ck_assert(table[0] == 1.0f);
}
END_TEST

/* +0 is where a sum begins, so a lone gradient of -0 arrives as +0; -0 - +0 keeps its sign. */
START_TEST(test_lone_negative_zero_is_summed_from_zero)
{
	const struct kernel_ops *ops = kernel_select(kernel_variant(_i));
	float gradient[17], table[17], scratch[2048] __attribute__((aligned(64)));
	const struct kernel_segment segment = {.end = 1, .gradients = gradient, .stride = 17};
	const struct kernel_group group = {.count = 1};
	struct kernel_update u = {.dim = 17,
				  .stride = 17,
				  .segments = &segment,
				  .segment_count = 1,
				  .optimizer = KERNEL_SGD,
				  .lr = 1.0f,
				  .table = table};
	const u32 occ = 0;

	for (u32 c = 0; c < 17; c++)
		gradient[c] = table[c] = -0.0f;
	ops->update_rows(&u, &group, 1, 0, &occ, scratch);
	for (u32 c = 0; c < 17; c++)
		ck_assert_uint_eq(bits_of(table[c]), 0x80000000);
}
END_TEST

/*
 * The mean of a row's gradients is computed lane by lane. Numbers that cancel each other leave what was
 * added to the same lane before them out of the sum, and keep what was added later.
 */
static void check_row_sum(const struct kernel_ops *ops, u32 dim)
{
	static const float numbers[] = {0x1p60f, -0x1p60f, 1.5f, -0.25f};
	float gradient[MOST_COLUMNS], table[MOST_COLUMNS] = {0}, slot[MOST_COLUMNS] = {1.0f};
	float want[MOST_COLUMNS] = {0}, want_slot[MOST_COLUMNS] = {1.0f},
	      *want_slots[] = {want_slot};
	float scratch[4096] __attribute__((aligned(64)));
	const struct kernel_segment segment = {.end = 1, .gradients = gradient, .stride = dim};
	const struct kernel_group group = {.count = 1};
	struct kernel_update u = {.dim = dim,
				  .stride = dim,
				  .segments = &segment,
				  .segment_count = 1,
				  .optimizer = KERNEL_ROWWISE_ADAGRAD,
				  .lr = 1.0f,
				  .hyper = {0x1p-20f, 1.0f},
				  .table = table,
				  .slots = {slot}};
	const u32 occ = 0;

	ck_assert_uint_le(kernel_scratch_bytes(dim), sizeof(scratch));
	for (u32 c = 0; c < dim; c++)
		gradient[c] = numbers[random_below(4)];
	kernel_prepare(&u);
	expected_row(&u, want, want_slots, gradient);
	ops->update_rows(&u, &group, 1, 0, &occ, scratch);
	ck_assert_msg(bits_of(slot[0]) == bits_of(want_slot[0]), "dim %u: the slot is %a, not %a",
		      dim, slot[0], want_slot[0]);
	for (u32 c = 0; c < dim; c++)
		ck_assert_msg(bits_of(table[c]) == bits_of(want[c]),
			      "dim %u: column %u is %a, not %a", dim, c, table[c], want[c]);
}

START_TEST(test_sum_of_a_row_goes_by_lanes)
{
	const struct kernel_ops *ops = kernel_select(kernel_variant(_i));

	for (u32 k = 0; k < 20; k++)
		for (u32 dim = 1; dim <= MOST_COLUMNS; dim++)
			check_row_sum(ops, dim);
}
END_TEST

static void add(TCase *tcase)
{
	random_start();
	tcase_set_timeout(tcase, 120);
	add_variant_tests(tcase, test_update_equals_the_rule, 1);
	add_variant_tests(tcase, test_row_gradient_equals_the_rule, 1);
	add_variant_tests(tcase, test_plain_sums_need_no_list, 1);
	tcase_add_test(tcase, test_runs_end_at_256_and_at_replicas);
	add_variant_tests(tcase, test_cut_row_equals_whole_row, 1);
	add_variant_tests(tcase, test_lone_negative_zero_is_summed_from_zero, 1);
	add_variant_tests(tcase, test_sum_of_a_row_goes_by_lanes, 1);
}

int main(void)
{
	return suite_main("kernels_update", add);
}
