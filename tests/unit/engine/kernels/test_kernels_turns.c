// SPDX-License-Identifier: MIT
/*
 * Each row is updated exactly once, for any order of the rows and any distance of fetching ahead.
 */
#include "suite.h"
#include "test_kernels_rules.h"
#include "variants.h"

/*
 * Updates of one feature's rows: every @apart-th row of a table, each with @occurrences gradients,
 * in two calls. The arrays end with the last group, so that a read beyond it is found.
 */
struct turns {
	u32 dim, apart, occurrences;
	bool weighted,
		numbered; /* occurrences have coefficients; rows of gradients that are told */
	u32 first, second, prefetch, fetch;
};

struct turns_memory {
	struct kernel_group *groups;
	u32 *occ, *grad_row;
	float *gradient, *coef, *table;
	void *scratch;
};

static struct turns_memory turns_make(const struct turns *t)
{
	u32 n = t->first + t->second, each = t->occurrences, all = n * each;
	struct turns_memory m = {
		.groups = calloc(n, sizeof(*m.groups)),
		.occ = calloc(all, sizeof(*m.occ)),
		.grad_row = calloc(all, sizeof(*m.grad_row)),
		.gradient = calloc(all * t->dim, sizeof(*m.gradient)),
		.coef = calloc(all, sizeof(*m.coef)),
		.table = calloc(t->apart * n * t->dim, sizeof(*m.table)),
		.scratch = aligned_alloc(64, (kernel_scratch_bytes(t->dim) + 63) / 64 * 64),
	};

	for (u32 i = 0; i < n; i++)
		m.groups[i] = (struct kernel_group){t->apart * i, each * i, each};
	for (u32 k = 0; k < all; k++) {
		u32 o = each * (n - 1 - k / each) + k % each;

		m.occ[k] = o;
		m.coef[o] = t->weighted ? 1.0f + (float)(k % 4) : 1.0f;
		m.grad_row[o] = t->numbered ? all - 1 - o : o;
		for (u32 c = 0; c < t->dim; c++)
			m.gradient[m.grad_row[o] * t->dim + c] = -1.0f - (float)(k / each);
	}
	return m;
}

/* The value that the row of group @k must have after the update. */
static float turns_want(const struct turns *t, const struct turns_memory *m, u32 k)
{
	float sum = 0;

	for (u32 i = 0; i < t->occurrences; i++)
		sum += m->coef[m->occ[k * t->occurrences + i]];
	return sum * (1.0f + (float)k);
}

/* Each row and the one behind it, which nothing changes. */
static void turns_compare(const struct turns *t, const struct turns_memory *m)
{
	for (u32 i = 0; i < 2 * (t->first + t->second); i++) {
		u32 k = i / 2, row = t->apart * k + i % 2;
		float want = i % 2 ? 0.0f : turns_want(t, m, k);

		for (u32 c = 0; c < t->dim; c++) {
			float found = m->table[row * t->dim + c];

			if (found != want)
				ck_abort_msg("dim %u, %u and %u rows of %u, %u apart, %u ahead by "
					     "%u, weighted %d, numbered %d: row %u has %g, not %g",
					     t->dim, t->first, t->second, t->occurrences, t->apart,
					     t->prefetch, t->fetch, t->weighted, t->numbered, row,
					     found, want);
		}
	}
}

static void check_turns(const struct kernel_ops *ops, const struct turns *t)
{
	struct turns_memory m = turns_make(t);
	const struct kernel_segment segment = {
		.end = (t->first + t->second) * t->occurrences,
		.gradients = m.gradient,
		.stride = t->dim,
		.grad_row = t->numbered ? m.grad_row : NULL,
		.coef = t->weighted ? m.coef : NULL,
		.far = true,
	};
	struct kernel_update u = {.dim = t->dim,
				  .stride = t->dim,
				  .segments = &segment,
				  .segment_count = 1,
				  .optimizer = KERNEL_SGD,
				  .lr = 1.0f,
				  .prefetch = t->prefetch,
				  .fetch = t->fetch,
				  .table = m.table};

	ops->update_rows(&u, m.groups, t->first, t->second, m.occ, m.scratch);
	ops->update_rows(&u, m.groups + t->first, t->second, 0, m.occ, m.scratch);
	turns_compare(t, &m);
	free(m.groups);
	free(m.occ);
	free(m.grad_row);
	free(m.gradient);
	free(m.coef);
	free(m.table);
	free(m.scratch);
}

/*
 * Rows within a page of each other are taken in leaps, others are not, nor those of an update that
 * fetches again what it may.
 */
START_TEST(test_each_row_has_one_turn)
{
	static const u32 counts[] = {1, 63, 64, 65, 127, 128, 130, 257}, ahead[] = {0, 1, 32, 256};
	static const struct turns turns[] = {
		{.dim = 16, .apart = 2, .occurrences = 1},
		{.dim = 16, .apart = 2, .occurrences = 3},
		{.dim = 16, .apart = 70, .occurrences = 1},
		{.dim = 16, .apart = 70, .occurrences = 3},
		{.dim = 16, .apart = 2, .occurrences = 1, .weighted = true},
		{.dim = 16, .apart = 2, .occurrences = 3, .weighted = true},
		{.dim = 16, .apart = 2, .occurrences = 1, .numbered = true},
		{.dim = 16, .apart = 2, .occurrences = 3, .numbered = true},
		{.dim = 5, .apart = 2, .occurrences = 1},
	};
	const struct kernel_ops *ops = kernel_select(kernel_variant(_i));

	/* Each form with all lengths at two of the distances, its neighbours at the others. */
	for (u32 i = 0; i < 8 * 8; i++)
		for (u32 k = 0; k < 2 * sizeof(turns) / sizeof(turns[0]); k++) {
			struct turns t = turns[k / 2];

			t.first = counts[i / 8];
			t.second = counts[i % 8];
			t.prefetch = ahead[k / 2 % 2 + 2 * (k % 2)];
			check_turns(ops, &t);
			t.fetch = KERNEL_FETCH_AGAIN;
			check_turns(ops, &t);
		}
}
END_TEST

/* Rows that are asked for more than once, of dims that kernels are compiled for and of others. */
START_TEST(test_rows_are_fetched_again)
{
	static const u32 counts[] = {1,
				     8,
				     9,
				     25,
				     31,
				     UPDATE_TOUCH,
				     UPDATE_TOUCH + 1,
				     2 * UPDATE_TOUCH + UPDATE_TOUCH_AHEAD + 1};
	static const u32 dims[] = {64, 65, 128};
	static const struct turns forms[] = {
		{.apart = 2, .occurrences = 1},
		{.apart = 2, .occurrences = 3},
		{.apart = 2, .occurrences = 1, .weighted = true},
		{.apart = 2, .occurrences = 3, .numbered = true},
	};
	const struct kernel_ops *ops = kernel_select(kernel_variant(_i));

	for (u32 i = 0; i < 8 * 8; i++)
		for (u32 k = 0; k < sizeof(forms) / sizeof(forms[0]); k++) {
			struct turns t = forms[k];

			t.first = counts[i / 8];
			t.second = counts[i % 8];
			t.dim = dims[(i + k) % 3];
			t.prefetch = i % 5 ? 32 : 0;
			t.fetch = fetch_update((struct fetch_way){32, KERNEL_FETCH_AGAIN}, t.dim, 0)
					  .form;
			ck_assert_uint_eq(t.fetch, KERNEL_FETCH_AGAIN);
			check_turns(ops, &t);
		}
}
END_TEST

static void add(TCase *tcase)
{
	tcase_set_timeout(tcase, 120);
	add_variant_tests(tcase, test_each_row_has_one_turn, 1);
	add_variant_tests(tcase, test_rows_are_fetched_again, 1);
}

int main(void)
{
	return suite_main("kernels_turns", add);
}
