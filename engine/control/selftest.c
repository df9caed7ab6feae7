// SPDX-License-Identifier: MIT
/*
 * Runs the test vectors of a firmware image on the kernels, as training does: the lookup first,
 * sample by sample, then the update, row by row, so that no stretch inside the FP section is long.
 * Every variant of the kernels that this processor can run is tested.
 *
 * The vectors were checked by selftest_check() before. Each run has one allocation, which is freed
 * before the next vector. No lock is needed.
 */
#include "selftest.h"

#include "../../uapi/embeng_regs.h"
#include "../blob/blob.h"
#include "../f32.h"
#include "../kernels/kernels.h"
#include "../kernels/variants.h"
#include "../port.h"

#define CACHE_LINE 64u

/* The memory that a vector needs beside itself; the pointers lie in one allocation. */
struct run {
	struct embeng_fw_self_test test;
	const u8 *vector;
	const struct kernel_ops *kernels;
	struct kernel_update update;
	struct kernel_segment segment;
	u64 *bag;
	u32 *rows;
	float *scales, *coef, *weights, *out, *table, *slots;
	u32 *sample; /* one for each occurrence */
	u32 *sorted; /* occurrences by row */
	struct kernel_group *groups;
	u32 group_count;
	void *scratch;
};

static const void *array_of_test(const struct run *run, u32 which)
{
	return run->vector + embeng_fw_test_offset(&run->test, which);
}

static u64 bytes_of_array(const struct run *run, u32 which)
{
	return 4 * embeng_fw_test_words(&run->test, which);
}

static void *carve_memory(u8 *memory, u64 *used, u64 bytes)
{
	void *at = memory ? memory + *used : NULL;

	*used += (bytes + CACHE_LINE - 1) & ~(u64)(CACHE_LINE - 1);
	return at;
}

/* Return: bytes in all. */
static u64 lay_out_run(struct run *run, u8 *memory)
{
	const struct embeng_fw_self_test *t = &run->test;
	u64 used = 0;

	run->bag = carve_memory(memory, &used, (t->samples + 1ull) * sizeof(*run->bag));
	run->rows = carve_memory(memory, &used, t->ids * sizeof(*run->rows));
	run->scales = carve_memory(memory, &used, 4ull * t->samples);
	run->coef = carve_memory(memory, &used, 4ull * t->ids);
	run->weights = carve_memory(memory, &used, 4ull * t->ids);
	run->out = carve_memory(memory, &used, bytes_of_array(run, EMBENG_FW_TEST_ACTIVATIONS));
	run->table = carve_memory(memory, &used, bytes_of_array(run, EMBENG_FW_TEST_TABLE));
	run->slots = carve_memory(memory, &used, bytes_of_array(run, EMBENG_FW_TEST_SLOTS));
	run->sample = carve_memory(memory, &used, 4ull * t->ids);
	run->sorted = carve_memory(memory, &used, 4ull * t->ids);
	run->groups = carve_memory(memory, &used, t->rows * sizeof(*run->groups));
	run->scratch = carve_memory(memory, &used, kernel_scratch_bytes(t->dim));
	return used;
}

static void sort_by_row(struct run *run)
{
	u32 row, i, at = 0;

	for (i = 0; i < run->test.ids; i++)
		run->groups[run->rows[i]].count++;
	for (row = 0; row < run->test.rows; row++) {
		run->groups[row].row = row;
		run->groups[row].first = at;
		at += run->groups[row].count;
		run->groups[row].count = 0;
	}
	for (i = 0; i < run->test.ids; i++) {
		struct kernel_group *group = &run->groups[run->rows[i]];

		run->sorted[group->first + group->count++] = i;
	}
	for (row = 0; row < run->test.rows; row++) {
		if (run->groups[row].count)
			run->groups[run->group_count++] = run->groups[row];
	}
}

static void fill_run(struct run *run)
{
	const u32 *offsets = array_of_test(run, EMBENG_FW_TEST_OFFSETS);
	const u32 *ids = array_of_test(run, EMBENG_FW_TEST_IDS);
	u32 s, i;

	for (s = 0; s <= run->test.samples; s++)
		run->bag[s] = offsets[s];
	for (s = 0; s < run->test.samples; s++) {
		for (i = offsets[s]; i < offsets[s + 1]; i++) {
			run->rows[i] = ids[i];
			run->sample[i] = s;
		}
	}
	memcpy(run->table, array_of_test(run, EMBENG_FW_TEST_TABLE),
	       bytes_of_array(run, EMBENG_FW_TEST_TABLE));
	memcpy(run->slots, array_of_test(run, EMBENG_FW_TEST_SLOTS),
	       bytes_of_array(run, EMBENG_FW_TEST_SLOTS));
	sort_by_row(run);
}

static void look_up_bags(struct run *run)
{
	const struct embeng_fw_self_test *t = &run->test;
	float *weights = t->flags & EMBENG_FW_TEST_WEIGHTS ? run->weights : NULL;
	const struct kernel_scale_work scale = {
		.combiner = t->combiner, /* both enums have the same numbers */
		.weights = weights,
		.bag = run->bag,
		.scales = run->scales,
		.coef = run->coef,
		.stretched = weights,
	};
	const struct kernel_bag_work work = {
		.table = run->table,
		.stride = t->dim,
		.dim = t->dim,
		.prefetch = fetch_lookup(
				    (struct fetch_way){ FETCH_ROWS_LOOKUP, KERNEL_FETCH_SECOND },
				    t->dim)
				    .rows,
		.narrow = run->rows,
		.rows_count = t->ids,
		.weights = weights,
		.scales = run->scales,
		.bag = run->bag,
		.out = run->out,
		.out_stride = t->dim,
	};
	struct port_fpu fpu;
	u32 s;

	if (weights)
		memcpy(weights, array_of_test(run, EMBENG_FW_TEST_WEIGHT), 4ull * t->ids);
	for (s = 0; s < t->samples; s++) {
		port_fpu_begin(&fpu);
		run->kernels->scales(&scale, s, s + 1);
		run->kernels->lookup(&work, s, s + 1);
		port_fpu_end(&fpu);
	}
}

static void describe_row_update(struct run *run)
{
	const struct embeng_fw_self_test *t = &run->test;
	struct kernel_update *u = &run->update;
	struct port_fpu fpu;
	u64 at = 0;
	u32 i;

	run->segment = (struct kernel_segment){
		.end = t->ids,
		.gradients = array_of_test(run, EMBENG_FW_TEST_GRADIENTS),
		.stride = t->dim,
		.grad_row = run->sample,
		.coef = run->coef,
	};
	u->optimizer = optimizer_kernel(t->optimizer);
	u->dim = t->dim;
	u->prefetch = fetch_rows((struct fetch_way){ FETCH_ROWS_UPDATE, KERNEL_FETCH_SECOND },
				 t->dim);
	u->stride = t->dim;
	u->table = run->table;
	for (i = 0; i < t->slot_count; i++) {
		u->slots[i] = run->slots + at;
		at += (u64)t->rows * embeng_slot_width(t->optimizer, i + 1, t->dim);
	}
	u->segment_count = 1;
	u->segments = &run->segment;
	memcpy(&u->lr, &t->learning_rate, sizeof(u->lr));
	memcpy(u->hyper, t->hyperparameter, sizeof(u->hyper));
	u->step = t->step;
	port_fpu_begin(&fpu);
	kernel_prepare(u);
	port_fpu_end(&fpu);
}

static void update_groups(struct run *run)
{
	struct port_fpu fpu;
	u32 i;

	describe_row_update(run);
	for (i = 0; i < run->group_count; i++) {
		port_fpu_begin(&fpu);
		run->kernels->update_rows(&run->update, &run->groups[i], 1, 0, run->sorted,
					  run->scratch);
		port_fpu_end(&fpu);
	}
}

static bool is_same_value(u32 a, u32 b)
{
	return a == b || (f32_nan(a) && f32_nan(b));
}

static bool as_expected(const struct run *run, const void *results, u32 expected)
{
	const u32 *is = results, *should = array_of_test(run, expected);
	u64 i, words = embeng_fw_test_words(&run->test, expected);

	for (i = 0; i < words; i++) {
		if (!is_same_value(is[i], should[i]))
			return false;
	}
	return true;
}

u32 selftest_one(const u8 *vector, const struct kernel_ops *kernels)
{
	struct run run = { .vector = vector, .kernels = kernels };
	bool passed;
	u8 *memory;

	memcpy(&run.test, vector, sizeof(run.test));
	memory = port_alloc(lay_out_run(&run, NULL) + CACHE_LINE);
	if (!memory)
		return EMBENG_BOOT_ERROR_MEMORY;
	lay_out_run(&run, memory + (-(size_t)memory & (CACHE_LINE - 1)));
	fill_run(&run);
	look_up_bags(&run);
	update_groups(&run);
	passed = as_expected(&run, run.out, EMBENG_FW_TEST_ACTIVATIONS) &&
		 as_expected(&run, run.table, EMBENG_FW_TEST_TABLE_AFTER) &&
		 as_expected(&run, run.slots, EMBENG_FW_TEST_SLOTS_AFTER);
	port_free(memory);
	return passed ? EMBENG_BOOT_ERROR_NONE : EMBENG_BOOT_ERROR_SELF_TEST;
}

/* The first failure of a variant. */
static u32 run_variant(const u8 *tests, u64 length, const struct kernel_ops *kernels,
		       struct selftest_failure *failure)
{
	u64 at = 0, vector;
	u32 index = 0, error;

	while (at < length) {
		error = selftest_one(tests + at, kernels);
		if (error) {
			*failure = (struct selftest_failure){ index, at, kernels->name };
			return error;
		}
		memcpy(&vector, tests + at + offsetof(struct embeng_fw_self_test, length),
		       sizeof(vector));
		at += vector;
		index++;
	}
	return EMBENG_BOOT_ERROR_NONE;
}

u32 selftest_run(const u8 *tests, u64 length, struct selftest_failure *failure)
{
	const struct kernel_ops *kernels;
	const char *name;
	u32 i, error = EMBENG_BOOT_ERROR_NONE;

	for (i = 0; !error && (name = kernel_variant(i)); i++) {
		kernels = kernel_select(name);
		if (kernels)
			error = run_variant(tests, length, kernels, failure);
	}
	return error;
}
