// SPDX-License-Identifier: MIT
/*
 * The kernel variants that a processor has are found, none reads or writes outside its rows, and
 * the floating-point mode of the caller changes no result.
 */
#define _GNU_SOURCE
#include "variants.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/kernels/optimizers.h"
#include "fp_mode.h"
#include "suite.h"
#include "trace.h"

#define PAGE 65536u /* the largest page that a supported system has */
#define MOST_DIM 130u

/*
 * The flags of /proc/cpuinfo that stand for the instructions of a variant. The kernel leaves out
 * the flag of an instruction whose registers it does not save.
 */
static const struct need {
	const char *variant;
	const char *flags[6];
} needs[] = {
	{"portable", {NULL}},
	{"avx2", {" avx2 ", " fma ", NULL}},
	{"avx512", {" avx2 ", " fma ", " avx512f ", " avx512vl ", " avx512dq ", " avx512bw "}},
};

/* The first line of flags, with blanks around each. */
static const char *processor_flags(void)
{
	static char line[8192];
	FILE *in = fopen("/proc/cpuinfo", "r");

	ck_assert_ptr_nonnull(in);
	while (fgets(line, sizeof(line), in) && strncmp(line, "flags", 5))
		;
	fclose(in);
	for (char *p = line; *p; p++)
		if (*p == '\n' || *p == '\t')
			*p = ' ';
	return line;
}

START_TEST(test_a_variant_runs_where_the_system_says_so)
{
	const char *flags = processor_flags(), *name;
	u32 i;

	for (i = 0; (name = kernel_variant(i)); i++) {
		bool expected = true, found = false;

		for (u32 k = 0; k < sizeof(needs) / sizeof(needs[0]); k++) {
			if (strcmp(needs[k].variant, name))
				continue;
			found = true;
			for (u32 n = 0; n < 6 && needs[k].flags[n]; n++)
				expected &= strstr(flags, needs[k].flags[n]) != NULL;
		}
		ck_assert_msg(found, "no one has said what %s needs", name);
		ck_assert_msg((kernel_select(name) != NULL) == expected, "%s", name);
		ck_assert(kernel_variant_exists(name));
	}
	ck_assert_str_eq(kernel_variant(i - 1), "portable");
	ck_assert(!kernel_variant_exists("avx"));
	ck_assert(!kernel_variant_exists(""));
}
END_TEST

START_TEST(test_the_best_that_runs_is_chosen)
{
	u32 i = 0;

	while (!kernel_select(kernel_variant(i)))
		i++;
	ck_assert_ptr_eq(kernel_select(NULL), kernel_select(kernel_variant(i)));
}
END_TEST

/* A device says which variant it runs, or that the processor lacks it. */
START_TEST(test_a_variant_is_forced_or_refused)
{
	struct embeng_device_info info = {.size = sizeof(info)};
	struct embeng_model *m = embeng_model_new();
	struct embeng_table_config t = {.size = sizeof(t), .vocabulary_size = 1, .dim = 1};
	const char *name;
	char device[64];

	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	for (u32 i = 0; (name = kernel_variant(i)); i++) {
		bool runs = kernel_select(name) != NULL;
		struct embeng_error error = {.size = sizeof(error)};
		struct embeng *e = NULL;

		snprintf(device, sizeof(device), "soft:cores=1,memory=1M,variant=%s", name);
		ck_assert_int_eq(embeng_open(device, m, &e, &error), runs ? 0 : -ENOTSUP);
		if (!runs) {
			ck_assert_ptr_nonnull(strstr(error.text, "this processor lacks"));
			ck_assert_ptr_nonnull(strstr(error.text, name));
			continue;
		}
		ck_assert_int_eq(embeng_info(e, &info), 0);
		ck_assert_str_eq(info.variant, name);
		embeng_close(e);
	}
	embeng_model_free(m);
}
END_TEST

/* Floats that end where memory ends, or that begin where it begins. */
static float *fenced(u64 count, bool at_end)
{
	u64 bytes = (count * sizeof(float) + PAGE - 1) / PAGE * PAGE;
	char *base = mmap(NULL, bytes + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	float *floats;

	ck_assert_ptr_ne(base, MAP_FAILED);
	ck_assert_int_eq(mprotect(base + PAGE, bytes, PROT_READ | PROT_WRITE), 0);
	floats = (float *)(base + PAGE + (at_end ? bytes - count * sizeof(float) : 0));
	for (u64 i = 0; i < count; i++)
		floats[i] = 0.5f + (float)i;
	return floats;
}

static void unfence(float *floats, u64 count)
{
	u64 bytes = (count * sizeof(float) + PAGE - 1) / PAGE * PAGE;
	char *base = (char *)((uintptr_t)floats / PAGE * PAGE) - PAGE;

	munmap(base, bytes + 2 * PAGE);
}

static void fenced_lookup(const struct kernel_ops *ops, u32 dim, bool at_end)
{
	const u64 rows[] = {0, 1, 1, 0, KERNEL_ROW_ZERO}, bag[] = {0, 2, 5};
	const float weights[] = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f};
	struct kernel_bag_work w = {.table = fenced(2 * dim, at_end),
				    .stride = dim,
				    .dim = dim,
				    .rows = rows,
				    .rows_count = 5,
				    .prefetch = 2,
				    .bag = bag,
				    .zero_row = fenced(dim, at_end),
				    .out_stride = dim,
				    .out = fenced(2 * dim, at_end)};

	for (int weighted = 0; weighted < 2; weighted++) {
		w.weights = weighted ? weights : NULL;
		ops->lookup(&w, 0, 2);
		for (u32 c = 0; c < dim; c++) {
			float low = w.table[c], high = w.table[dim + c];

			ck_assert(w.out[c] == (weighted ? low + 2.0f * high : low + high));
		}
	}
	unfence((float *)w.table, 2 * dim);
	unfence((float *)w.zero_row, dim);
	unfence(w.out, 2 * dim);
}

/* Row 0 sums a run of two, row 1 has one gradient: every way of a gradient to its row. */
static void fenced_update(const struct kernel_ops *ops, u32 dim, u32 optimizer, bool at_end)
{
	const struct kernel_optimizer *o = &kernel_optimizers[optimizer];
	const struct kernel_group groups[] = {{0, 0, 2}, {1, 2, 1}};
	const float coef[] = {1.0f, 2.0f, 3.0f};
	const u32 occ[] = {0, 1, 2};
	struct kernel_segment segment = {
		.end = 3, .stride = dim, .gradients = fenced(3 * dim, at_end)};
	struct kernel_update u = {.optimizer = optimizer,
				  .dim = dim,
				  .stride = dim,
				  .lr = 0.25f,
				  .segments = &segment,
				  .segment_count = 1,
				  .prefetch = 1,
				  .step = 1,
				  .table = fenced(2 * dim, at_end)};
	void *scratch = aligned_alloc(64, (kernel_scratch_bytes(dim) + 63) / 64 * 64);

	for (u32 i = 0; i < o->hyper_count; i++)
		u.hyper[i] = o->hyper[i].value;
	for (u32 i = 0; i < o->slot_count; i++)
		u.slots[i] = fenced(o->slots[i].one_number ? 2 : 2 * dim, at_end);
	kernel_prepare(&u);
	for (u32 flags = 0; flags < 512; flags += 73) {
		u.flags = flags;
		segment.coef = flags & 1 ? coef : NULL;
		ops->update_rows(&u, groups, 2, 0, occ, scratch);
		ops->add_row(u.table, u.table + dim, dim);
	}
	for (u32 i = 0; i < o->slot_count; i++)
		unfence(u.slots[i], o->slots[i].one_number ? 2 : 2 * dim);
	unfence(u.table, 2 * dim);
	unfence((float *)segment.gradients, 3 * dim);
	free(scratch);
}

START_TEST(test_nothing_outside_the_rows_is_touched)
{
	const struct kernel_ops *ops = kernel_select(kernel_variant(_i));

	for (u32 dim = 1; dim <= MOST_DIM; dim++) {
		for (u32 at_end = 0; at_end < 2; at_end++) {
			fenced_lookup(ops, dim, at_end);
			for (u32 o = 0; o < KERNEL_OPTIMIZER_COUNT; o++)
				fenced_update(ops, dim, o, at_end);
		}
	}
}
END_TEST

/* Threads of the engine inherit the mode of the thread that opens it. */
START_TEST(test_the_mode_of_the_caller_does_not_count)
{
	const char *variant = kernel_variant(_i / FP_MODES);
	int mode = _i % FP_MODES;
	struct trace expected = trace_run(80, 1, "portable"), got;

	fp_mode_set(mode);
	got = trace_run(80, 2, variant);
	fp_mode_set(FP_DEFAULT);
	ck_assert_uint_eq(got.length, expected.length);
	ck_assert_msg(!memcmp(got.bytes, expected.bytes, got.length), "%s with %s", variant,
		      fp_mode_names[mode]);
	free(got.bytes);
	free(expected.bytes);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, test_a_variant_runs_where_the_system_says_so);
	tcase_add_test(tcase, test_the_best_that_runs_is_chosen);
	tcase_add_test(tcase, test_a_variant_is_forced_or_refused);
	add_variant_tests(tcase, test_nothing_outside_the_rows_is_touched, 1);
	add_variant_tests(tcase, test_the_mode_of_the_caller_does_not_count, FP_MODES);
}

int main(void)
{
	return suite_main("variants", add);
}
