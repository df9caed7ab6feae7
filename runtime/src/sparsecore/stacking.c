// SPDX-License-Identifier: MIT
/*
 * embeng_stacking_make(): decides which tables share a stack and where they lie in it, as data that
 * other calls take. This file puts the result together; the rules are in the files stacking_*.c.
 *
 * A stacking owns its names and lists until embeng_stacking_free() and is not changed after it was
 * made. No lock is needed.
 */
#include <stdlib.h>
#include <string.h>

#include "profile/open.h"
#include "stacking.h"

/* Names of tables are the stacking's own, one for each. */
void embeng_stacking_free(struct embeng_stacking *stacking)
{
	if (!stacking)
		return;
	for (size_t i = 0; stacking->stacks && i < stacking->stack_count; i++) {
		free((char *)stacking->stacks[i].name);
		free(stacking->stacks[i].tables);
		free(stacking->stacks[i].features);
	}
	for (size_t t = 0; stacking->tables && t < stacking->table_count; t++)
		free((char *)stacking->tables[t].table);
	free(stacking->stacks);
	free(stacking->tables);
	free(stacking->features);
	free(stacking);
}

static struct embeng_stacking *stacking_new(const struct stacker *s)
{
	struct embeng_stacking *out = calloc(1, sizeof(*out));

	if (!out)
		return NULL;
	out->flavour = s->options.flavour;
	out->sparse_cores = s->options.sparse_cores;
	out->cores_per_device = s->options.cores_per_device;
	out->model_hash = embeng_model_hash(s->model);
	out->stack_count = s->stack_count;
	out->table_count = s->model->table_count;
	out->feature_count = s->model->feature_count;
	out->stacks = calloc(out->stack_count + 1, sizeof(*out->stacks));
	out->tables = calloc(out->table_count + 1, sizeof(*out->tables));
	out->features = calloc(out->feature_count + 1, sizeof(*out->features));
	if (out->stacks && out->tables && out->features)
		return out;
	embeng_stacking_free(out);
	return NULL;
}

/* Its tables by position, and the features of these. */
static int list_stack(const struct stacker *s, size_t index, struct embeng_stack *stack)
{
	stack->tables = calloc(s->model->table_count + 1, sizeof(*stack->tables));
	stack->features = calloc(s->model->feature_count + 1, sizeof(*stack->features));
	if (!stack->tables || !stack->features)
		return fail(-ENOMEM, "no memory for stacks");
	for (size_t t = 0; t < s->model->table_count; t++) {
		if (s->tables[t].stack != index)
			continue;
		stack->tables[s->tables[t].position] = (int)t;
		stack->table_count++;
	}
	for (size_t f = 0; f < s->model->feature_count; f++) {
		if (s->tables[s->model->features[f].table].stack == index)
			stack->features[stack->feature_count++] = (int)f;
	}
	stack->name = stack_name(s, stack);
	return stack->name ? 0 : fail(-ENOMEM, "no memory for the name of a stack");
}

static int64_t rotation_of(const struct stacker *s, size_t table, size_t position)
{
	if (s->rotations)
		return s->rotations[table];
	return (int64_t)(position * (uint64_t)s->options.rotation % s->options.sparse_cores);
}

static int place_table(const struct stacker *s, struct embeng_stacking *out,
		       struct embeng_stack *stack, size_t position)
{
	size_t index = (size_t)stack->tables[position];
	const struct stackable *from = &s->tables[index];
	const struct embeng_stacking_options *o = &s->options;
	struct embeng_table_layout *to = &out->tables[index];

	*to = (struct embeng_table_layout){
		.size = sizeof(*to),
		.table = strdup(s->model->tables[index].name),
		.stack = stack->name,
		.sparse_cores = (int32_t)o->sparse_cores,
		.partitions = (int32_t)(o->sparse_cores / o->cores_per_device),
		.rows = s->model->tables[index].rows,
		.dim = s->model->tables[index].dim,
		.padded_rows = from->height,
		.padded_dim = from->width,
		.row_offset = stack->rows_per_core,
		.rotation = rotation_of(s, index, position),
		.samples_per_core = from->all_samples / o->cores_per_device,
		.feature_count = from->features,
	};
	if (!to->table)
		return fail(-ENOMEM, "no memory for the name of a table");
	stack->width = from->width;
	/* Each table has a core's share of int64_t rows; a stack might have more. */
	if (__builtin_add_overflow(stack->rows_per_core, from->height / o->sparse_cores,
				   &stack->rows_per_core))
		return fail(-ERANGE, "stack %s: more rows than 64 bits count", stack->name);
	return 0;
}

static int place_tables(const struct stacker *s, struct embeng_stacking *out,
			struct embeng_stack *stack)
{
	int ret = 0;

	for (size_t k = 0; !ret && k < stack->table_count; k++)
		ret = place_table(s, out, stack, k);
	for (size_t k = 0; !ret && k < stack->table_count; k++)
		out->tables[stack->tables[k]].rows_per_core = stack->rows_per_core;
	return ret;
}

/* Shapes were counted before, table by table. */
static int place_features(const struct stacker *s, struct embeng_stacking *out, size_t index)
{
	struct embeng_stack *stack = &out->stacks[index];

	for (size_t k = 0; k < stack->feature_count; k++) {
		size_t f = (size_t)stack->features[k];
		struct embeng_sample_place *to = &out->features[f];

		to->stack = index;
		to->offset = stack->samples;
		to->samples = feature_samples(&s->model->features[f]);
		if (__builtin_add_overflow(stack->samples, to->samples, &stack->samples))
			return fail(-ERANGE,
				    "stack %s: its features have more samples than 64 bits "
				    "count",
				    stack->name);
	}
	return 0;
}

static int check_stack_names(const struct embeng_stacking *out)
{
	for (size_t i = 0; i < out->stack_count; i++) {
		for (size_t k = 0; k < i; k++) {
			if (!strcmp(out->stacks[i].name, out->stacks[k].name))
				return fail(-EEXIST,
					    "two stacks are named %s; rename a table, or "
					    "stack by hand with names",
					    out->stacks[i].name);
		}
	}
	return 0;
}

static int fill_stacks(const struct stacker *s, struct embeng_stacking *out)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < out->stack_count; i++) {
		ret = list_stack(s, i, &out->stacks[i]);
		ret = ret ? ret : place_tables(s, out, &out->stacks[i]);
		ret = ret ? ret : place_features(s, out, i);
	}
	return ret ? ret : check_stack_names(out);
}

/* A profile goes by names and rows; what the tables are trained with is no part of it. */
static bool same_tables(const struct embeng_model *a, const struct embeng_model *b)
{
	bool same = a->table_count == b->table_count;

	for (size_t t = 0; same && t < a->table_count; t++)
		same = a->tables[t].rows == b->tables[t].rows &&
		       !strcmp(a->tables[t].name, b->tables[t].name);
	return same;
}

static int take_rotations(struct stacker *s)
{
	const struct embeng_profile *profile = s->options.profile;

	if (!profile)
		return 0;
	if (!same_tables(profile->model, s->model))
		return fail(-EINVAL, "embeng_stacking_make: the profile is one of other tables");
	s->rotations = calloc(s->model->table_count + 1, sizeof(*s->rotations));
	if (!s->rotations)
		return fail(-ENOMEM, "no memory for rotations");
	return embeng_profile_rotations(profile, s->options.sparse_cores, s->rotations);
}

static int make_stacks(struct stacker *s, struct embeng_stacking **out)
{
	struct embeng_stacking *made;
	int ret = stacker_tables(s);

	if (!ret)
		ret = take_rotations(s);
	if (!ret && s->options.group_count)
		ret = stacker_group(s);
	else if (!ret)
		stacker_fit(s);
	if (ret)
		return ret;
	made = stacking_new(s);
	ret = made ? fill_stacks(s, made) : fail(-ENOMEM, "no memory for stacks");
	if (ret)
		embeng_stacking_free(made);
	else
		*out = made;
	return ret;
}

int embeng_stacking_make(const struct embeng_model *model,
			 const struct embeng_stacking_options *options,
			 struct embeng_stacking **out)
{
	struct stacker s = {.model = model};
	size_t room;
	int ret;

	if (!model || !out)
		return fail(-EINVAL, "embeng_stacking_make: the model and out must be given");
	ret = stacker_options(&s, options);
	if (ret)
		return ret;
	room = model->table_count + 1;
	s.tables = calloc(room, sizeof(*s.tables));
	s.order = calloc(room, sizeof(*s.order));
	s.firsts = calloc(room, sizeof(*s.firsts));
	s.names = calloc(room, sizeof(*s.names));
	ret = s.tables && s.order && s.firsts && s.names ? make_stacks(&s, out)
							 : fail(-ENOMEM, "no memory for stacks");
	free(s.tables);
	free(s.order);
	free(s.firsts);
	free(s.names);
	free(s.rotations);
	return ret;
}
