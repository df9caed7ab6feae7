// SPDX-License-Identifier: MIT
/*
 * Decides which stack a table goes into: the first one that it fits, or the group that the program
 * named.
 *
 * The result goes into the struct stacker, which lives for one call of embeng_stacking_make().
 */
#include "stacking.h"

/* The contents of a stack so far; beyond 64 bits a number stays at the most. */
struct load {
	uint64_t samples, rows, tables;
};

static uint64_t capped_product(uint64_t a, uint64_t b)
{
	uint64_t out;

	return __builtin_mul_overflow(a, b, &out) ? UINT64_MAX : out;
}

static uint64_t capped_sum(uint64_t a, uint64_t b)
{
	uint64_t out;

	return __builtin_add_overflow(a, b, &out) ? UINT64_MAX : out;
}

static struct load load_of(const struct stacker *s, size_t stack)
{
	struct load load = {0};

	for (size_t t = 0; t < s->model->table_count; t++) {
		if (s->tables[t].stack != stack)
			continue;
		load.samples = capped_sum(load.samples, (uint64_t)s->tables[t].samples);
		load.rows = capped_sum(load.rows, (uint64_t)s->tables[t].height);
		load.tables++;
	}
	return load;
}

static bool is_below(uint64_t value, uint64_t limit)
{
	return limit == UINT64_MAX || value < limit;
}

static bool table_fits(const struct stacker *s, size_t stack, size_t table)
{
	const struct embeng_stacking_options *o = &s->options;
	const struct stackable *t = &s->tables[table];
	struct load load = load_of(s, stack);
	uint64_t bytes = capped_product(4, (uint64_t)t->width);
	uint64_t rows = capped_sum(load.rows, (uint64_t)t->height);
	uint64_t activations = capped_product(bytes,
					      capped_sum(load.samples, (uint64_t)t->samples));
	uint64_t devices = o->sparse_cores / o->cores_per_device;
	bool jax = o->flavour == EMBENG_PARTITION_JAX;

	return load.tables < o->table_limit && s->tables[s->firsts[stack]].width == t->width &&
	       stackable_alike(s, s->firsts[stack], table) &&
	       (jax ? activations <= o->activation_limit_bytes
		    : is_below(activations, o->activation_limit_bytes)) &&
	       is_below(capped_product(bytes, rows) / devices, o->shard_limit_bytes) &&
	       is_below(rows, o->row_limit);
}

static void put_in_stack(struct stacker *s, size_t stack, size_t table)
{
	if (stack == s->stack_count) {
		s->names[stack] = NULL;
		s->firsts[s->stack_count++] = table;
	}
	s->tables[table].position = (size_t)load_of(s, stack).tables;
	s->tables[table].stack = stack;
}

void stacker_fit(struct stacker *s)
{
	for (size_t i = 0; i < s->model->table_count; i++) {
		size_t table = s->order[i], stack = s->options.no_stacking ? s->stack_count : 0;

		while (stack < s->stack_count && !table_fits(s, stack, table))
			stack++;
		put_in_stack(s, stack, table);
	}
}

/* The name of a group in a sentence. */
static const char *group_name(const struct embeng_stack_group *group)
{
	return group->name ? group->name : "that is made of its tables";
}

static int check_member(const struct stacker *s, const struct embeng_stack_group *group, size_t k)
{
	const struct table *tables = s->model->tables;
	int index = group->tables[k], first = group->tables[0];

	if (index < 0 || (size_t)index >= s->model->table_count)
		return fail(-ENOENT, "stack %s: there is no table %d; the model has %zu",
			    group_name(group), index, s->model->table_count);
	for (size_t before = 0; before < k; before++) {
		if (group->tables[before] == index)
			return fail(-EEXIST, "stack %s: table %s is repeated", group_name(group),
				    tables[index].name);
	}
	if (s->tables[index].stack != NO_STACK)
		return fail(-EEXIST, "stack %s: table %s is already stacked, with table %s",
			    group_name(group), tables[index].name,
			    tables[s->firsts[s->tables[index].stack]].name);
	if (!same_optimizer(&tables[first], &tables[index]))
		return fail(-EINVAL, "stack %s: tables %s and %s have different optimizers",
			    group_name(group), tables[first].name, tables[index].name);
	if (!same_quantization(&tables[first], &tables[index]))
		return fail(-EINVAL, "stack %s: tables %s and %s have different quantizations",
			    group_name(group), tables[first].name, tables[index].name);
	if (!stackable_alike(s, (size_t)first, (size_t)index))
		return fail(-EINVAL, "stack %s: tables %s and %s have different combiners",
			    group_name(group), tables[first].name, tables[index].name);
	if (s->options.no_excess_padding && s->tables[first].width != s->tables[index].width)
		return fail(-EINVAL,
			    "stack %s: tables %s and %s have %lld and %lld columns, padded; "
			    "stack them apart, or allow excess padding",
			    group_name(group), tables[first].name, tables[index].name,
			    (long long)s->tables[first].width, (long long)s->tables[index].width);
	return 0;
}

/* All are as wide as the widest. */
static void widen_group(struct stacker *s, const struct embeng_stack_group *group)
{
	int64_t width = 0;

	for (size_t k = 0; k < group->table_count; k++) {
		if (s->tables[group->tables[k]].width > width)
			width = s->tables[group->tables[k]].width;
	}
	for (size_t k = 0; k < group->table_count; k++)
		s->tables[group->tables[k]].width = width;
}

static int put_group(struct stacker *s, const struct embeng_stack_group *group)
{
	size_t stack = s->stack_count;

	for (size_t k = 0; k < group->table_count; k++) {
		int ret = check_member(s, group, k);

		if (ret)
			return ret;
	}
	for (size_t k = 0; k < group->table_count; k++)
		put_in_stack(s, stack, (size_t)group->tables[k]);
	s->names[stack] = group->name;
	widen_group(s, group);
	return 0;
}

int stacker_group(struct stacker *s)
{
	int ret = 0;

	for (size_t g = 0; !ret && g < s->options.group_count; g++)
		ret = put_group(s, &s->options.groups[g]);
	for (size_t i = 0; !ret && i < s->model->table_count; i++) {
		if (s->tables[s->order[i]].stack == NO_STACK)
			put_in_stack(s, s->stack_count, s->order[i]);
	}
	return ret;
}
