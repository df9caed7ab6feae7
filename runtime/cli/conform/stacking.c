// SPDX-License-Identifier: MIT
/*
 * The step stacking of a vector: stacks of its model, compared with the expected ones. The stacking
 * lives for one step.
 */
#include <errno.h>
#include <string.h>

#include "run.h"
#include "value.h"
#include "embeng/stacking.h"

/* One stack of what came out. */
struct stacked {
	const struct embeng_stacking *all;
	const struct embeng_stack *stack;
	size_t index;
};

static int64_t row_offset(const struct stacked *s, size_t k)
{
	return s->all->tables[s->stack->tables[k]].row_offset;
}

static int64_t table_rotation(const struct stacked *s, size_t k)
{
	return s->all->tables[s->stack->tables[k]].rotation;
}

static int64_t sample_offset(const struct stacked *s, size_t k)
{
	return s->all->features[s->stack->features[k]].offset;
}

static int check_stack_numbers(struct run *r, const struct stacked *s, const struct json *expect,
			       const char *key, size_t count,
			       int64_t (*number)(const struct stacked *s, size_t k))
{
	const struct json *list = member(expect, key);

	if (!list)
		return 0;
	if (list_length(list) != count)
		return run_mismatch(r, "at", key, "stack %zu has %zu %s, expected %zu", s->index,
				    count, key, list_length(list));
	for (size_t k = 0; k < count; k++) {
		int64_t wanted = json_int64(json_at(list, k));

		if (number(s, k) != wanted)
			return run_mismatch(r, "at", key,
					    "stack %zu: %s[%zu] is %lld, expected "
					    "%lld",
					    s->index, key, k, (long long)number(s, k),
					    (long long)wanted);
	}
	return 0;
}

static int check_stack_tables(struct run *r, const struct stacked *s, const struct json *expect)
{
	const struct json *list = member(expect, "tables");

	if (!list)
		return 0;
	if (list_length(list) != s->stack->table_count)
		return run_mismatch(r, "at", "tables", "stack %zu has %zu tables, expected %zu",
				    s->index, s->stack->table_count, list_length(list));
	for (size_t k = 0; k < s->stack->table_count; k++) {
		const char *got = s->all->tables[s->stack->tables[k]].table;
		const char *wanted = json_string(json_at(list, k));

		if (strcmp(got, wanted) != 0)
			return run_mismatch(r, "at", "tables",
					    "stack %zu: table %zu is %s, expected "
					    "%s",
					    s->index, k, got, wanted);
	}
	return 0;
}

static int check_expected_stack(struct run *r, const struct stacked *s, const struct json *expect)
{
	const struct embeng_stack *stack = s->stack;
	const char *name = text_member(expect, "name", stack->name);
	int64_t width = integer_member(expect, "width", stack->width);
	int result;

	if (strcmp(name, stack->name) != 0)
		return run_mismatch(r, "at", "name", "stack %zu is %s, expected %s", s->index,
				    stack->name, name);
	if (width != stack->width)
		return run_mismatch(r, "at", "width", "stack %zu has %lld columns, expected %lld",
				    s->index, (long long)stack->width, (long long)width);
	result = check_stack_tables(r, s, expect);
	result = result ? result
			: check_stack_numbers(r, s, expect, "row_offsets", stack->table_count,
					      row_offset);
	result = result ? result
			: check_stack_numbers(r, s, expect, "rotations", stack->table_count,
					      table_rotation);
	return result ? result
		      : check_stack_numbers(r, s, expect, "sample_offsets", stack->feature_count,
					    sample_offset);
}

static int check_stacks(struct run *r, const struct embeng_stacking *all, const struct json *expect)
{
	int result = 0;

	if (list_length(expect) != all->stack_count)
		return run_mismatch(r, "at", "stacking", "%zu stacks came out, expected %zu",
				    all->stack_count, list_length(expect));
	for (size_t i = 0; !result && i < all->stack_count; i++) {
		struct stacked s = {.all = all, .stack = &all->stacks[i], .index = i};

		result = check_expected_stack(r, &s, json_at(expect, i));
	}
	return result;
}

static int read_stacking_options(struct run *r, const struct json *body,
				 struct embeng_stacking_options *o)
{
	uint64_t cores = 0, each = 0;
	int err = read_partition_flavour(r, body, &o->flavour);

	err = err ? err : read_count(r, body, "sparse_cores", 0, 1, &cores);
	err = err ? err
		  : read_count(r, body, "cores_per_device", 0,
			       member(body, "cores_per_device") ? 1 : 0, &each);
	err = err ? err
		  : read_count(r, body, "activation_limit_bytes", 0,
			       member(body, "activation_limit_bytes") ? 1 : 0,
			       &o->activation_limit_bytes);
	if (err)
		return err;
	o->size = sizeof(*o);
	o->sparse_cores = (uint32_t)cores;
	o->cores_per_device = (uint32_t)each;
	return 0;
}

int step_stacking(struct run *r, const struct json *body)
{
	struct embeng_stacking_options o = {0};
	struct embeng_stacking *stacking;
	int err = read_stacking_options(r, body, &o);

	if (err)
		return err;
	err = embeng_stacking_make(r->model, &o, &stacking);
	if (err)
		return run_library(r, err);
	err = check_stacks(r, stacking, member(body, "expect"));
	embeng_stacking_free(stacking);
	return err;
}
