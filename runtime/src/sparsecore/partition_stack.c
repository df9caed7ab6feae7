// SPDX-License-Identifier: MIT
/*
 * Describes the features of a batch as one stack of tables over a grid of cores, either in the
 * order of the model or as a stacking says. Options and inputs are checked here.
 *
 * The places belong to the struct stack until stack_free(). No lock is needed.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "partition.h"

#define ROWS_PER_CORE 8u /* a table has a multiple of so many on each core */
#define COLUMNS_MAX (1ull << 31)
#define BUCKETS 64u
#define ALIGN 8u
#define WHAT "embeng_partition"

int grid_check(const char *what, enum embeng_partition_flavour flavour, uint32_t cores,
	       uint32_t each)
{
	if (flavour != EMBENG_PARTITION_TF && flavour != EMBENG_PARTITION_JAX)
		return fail(-EINVAL, "%s: there is no flavour %d", what, (int)flavour);
	if (!cores || cores > EMBENG_PARTITION_CORES_MAX)
		return fail(-ERANGE, "%s: %u sparse_cores; 1 to %u are allowed", what, cores,
			    EMBENG_PARTITION_CORES_MAX);
	if (!each || each > EMBENG_PARTITION_DEVICE_CORES_MAX)
		return fail(-ERANGE, "%s: %u cores_per_device; 1 to %u are allowed", what, each,
			    EMBENG_PARTITION_DEVICE_CORES_MAX);
	if (cores % each)
		return fail(-EINVAL,
			    "%s: %u sparse_cores are not a multiple of %u "
			    "cores_per_device",
			    what, cores, each);
	if (flavour == EMBENG_PARTITION_JAX && (cores & (cores - 1)))
		return fail(-EINVAL, "%s: %u sparse_cores; the jax flavour wants a power of two",
			    what, cores);
	return 0;
}

static int check_device_grid(const struct embeng_partition_options *o)
{
	int ret = grid_check(WHAT, o->flavour, o->sparse_cores, o->cores_per_device);

	if (!ret && o->device >= o->sparse_cores / o->cores_per_device)
		return fail(-ERANGE, WHAT ": device %u; %u sparse_cores are devices 0 to %u",
			    o->device, o->sparse_cores, o->sparse_cores / o->cores_per_device - 1);
	return ret;
}

static int check_option_limits(const struct embeng_partition_options *o)
{
	if (o->max_ids_per_partition > INT32_MAX - ALIGN)
		return fail(-ERANGE,
			    WHAT ": max_ids_per_partition %" PRIu64 "; at most %u is "
				 "allowed",
			    o->max_ids_per_partition, INT32_MAX - ALIGN);
	if (o->max_unique_ids_per_partition > INT32_MAX - ALIGN)
		return fail(-ERANGE,
			    WHAT ": max_unique_ids_per_partition %" PRIu64 "; at most %u "
				 "is allowed",
			    o->max_unique_ids_per_partition, INT32_MAX - ALIGN);
	if (o->buffer_size > INT32_MAX - 1024)
		return fail(-ERANGE, WHAT ": buffer_size %" PRIu64 "; positions are 32 bits wide",
			    o->buffer_size);
	if (o->flavour == EMBENG_PARTITION_TF && o->buffer_size % ALIGN)
		return fail(-EINVAL, WHAT ": buffer_size %" PRIu64 " is not a multiple of %u",
			    o->buffer_size, ALIGN);
	return 0;
}

static int check_partition_options(const struct embeng_partition_options *o)
{
	int ret;

	if (!o || o->size < sizeof(*o))
		return fail(-EINVAL, WHAT ": no options, or of another size");
	if ((unsigned int)o->bucket > EMBENG_PARTITION_BUCKET_HASH)
		return fail(-EINVAL, WHAT ": there is no bucket %d", (int)o->bucket);
	ret = check_device_grid(o);
	if (!ret && (o->splits >> (BUCKETS - 1) || (o->splits && !o->minibatching)))
		return fail(-EINVAL,
			    WHAT ": splits %#" PRIx64 "; they are below 2^63, and 0 without "
				 "minibatching",
			    o->splits);
	return ret ? ret : check_option_limits(o);
}

static int check_stack_input(const struct stack *stack, size_t index)
{
	const struct feature *f = &stack->b->e->model->features[index];
	const struct input *in = &stack->b->inputs[index];

	if (in->error)
		return fail(in->error, "%s",
			    in->error_text ? in->error_text : "an input was refused");
	if (in->form == INPUT_PARTITIONED)
		return fail(-EINVAL, "feature %s: its input is partitioned already", f->name);
	if (in->form == INPUT_CSR && !in->pooled)
		return fail(-EINVAL,
			    "feature %s: the positions of a sequence have no place in a "
			    "partition; give one id for each as dense",
			    f->name);
	if (in->samples % stack->o->cores_per_device)
		return fail(-EINVAL,
			    "feature %s: %zu samples are not a multiple of %u "
			    "cores_per_device",
			    f->name, in->samples, stack->o->cores_per_device);
	return 0;
}

static bool has_input(const struct embeng_batch *b, size_t feature)
{
	return b->inputs[feature].form != INPUT_NONE || b->inputs[feature].error;
}

static int list_features(struct stack *stack)
{
	for (size_t f = 0; f < stack->b->count; f++) {
		int ret;

		if (!has_input(stack->b, f))
			continue;
		ret = check_stack_input(stack, f);
		if (ret)
			return ret;
		stack->ids += stack->b->inputs[f].id_count;
		stack->places[stack->count++].feature = f;
	}
	if (!stack->count)
		return fail(-EINVAL, WHAT ": the batch has no input");
	if (stack->count > EMBENG_PARTITION_FEATURES_MAX)
		return fail(-ERANGE, WHAT ": %zu features; at most %u are allowed", stack->count,
			    EMBENG_PARTITION_FEATURES_MAX);
	return 0;
}

/* Gives a table its rows of the stack, if any feature uses it. */
static int stack_one(struct stack *stack, int table, uint64_t *number)
{
	const struct embeng_partition_options *o = stack->o;
	const struct table *t = &stack->b->e->model->tables[table];
	uint64_t each = (uint64_t)ROWS_PER_CORE * o->sparse_cores, rows = (uint64_t)t->rows;
	uint32_t by = o->rotation_given ? o->rotation : o->cores_per_device;
	bool used = false;

	for (size_t i = 0; i < stack->count; i++) {
		struct place *p = &stack->places[i];

		if (stack->b->e->model->features[p->feature].table != table)
			continue;
		p->column_offset = stack->columns;
		p->rotation = (uint32_t)(*number * (uint64_t)by % o->sparse_cores);
		used = true;
	}
	if (!used)
		return 0;
	if (rows > COLUMNS_MAX || (rows + each - 1) / each * each > COLUMNS_MAX - stack->columns)
		return fail(-ERANGE,
			    "table %s: with its %" PRIu64 " rows the stack has more than "
			    "2^31",
			    t->name, rows);
	stack->columns += (rows + each - 1) / each * each;
	++*number;
	return 0;
}

int stack_make(const struct embeng_batch *b, const struct embeng_partition_options *o,
	       struct stack *stack)
{
	uint64_t number = 0;
	int ret = check_partition_options(o);

	*stack = (struct stack){.b = b, .o = o};
	if (ret)
		return ret;
	stack->places = calloc(b->count + 1, sizeof(*stack->places));
	if (!stack->places)
		return fail(-ENOMEM, WHAT ": no memory for %zu features", b->count);
	ret = list_features(stack);
	for (size_t t = 0; !ret && t < b->e->model->table_count; t++)
		ret = stack_one(stack, (int)t, &number);
	if (ret)
		stack_free(stack);
	return ret;
}

/* A stack has less than 2^31 rows, so that its offsets are columns. */
static int take_stack_feature(struct stack *stack, const struct embeng_stacking *stacking, size_t f)
{
	const struct embeng_model *model = stack->b->e->model;
	const struct embeng_table_layout *l = &stacking->tables[model->features[f].table];
	const struct embeng_sample_place *place = &stacking->features[f];
	const struct input *in = &stack->b->inputs[f];
	int ret;

	if (!has_input(stack->b, f))
		return fail(-EINVAL,
			    "feature %s: no input, stack %s wants one of each of its "
			    "features",
			    model->features[f].name, l->stack);
	ret = check_stack_input(stack, f);
	if (ret)
		return ret;
	if ((uint64_t)place->samples != in->samples)
		return fail(-EINVAL, "feature %s: %zu samples, the stacking is of %" PRId64,
			    model->features[f].name, in->samples, place->samples);
	stack->ids += in->id_count;
	stack->places[stack->count++] = (struct place){
		.feature = f,
		.column_offset = (uint64_t)l->row_offset * stack->o->sparse_cores,
		.rotation = (uint32_t)l->rotation,
	};
	return 0;
}

static int take_features(struct stack *stack, const struct embeng_stacking *stacking,
			 const struct embeng_stack *from)
{
	int ret = 0;

	if ((uint64_t)from->rows_per_core > COLUMNS_MAX / stack->o->sparse_cores)
		return fail(-ERANGE,
			    "stack %s: its %" PRId64 " rows of each core are more than 2^31",
			    from->name, from->rows_per_core);
	if (from->feature_count > EMBENG_PARTITION_FEATURES_MAX)
		return fail(-ERANGE, "stack %s: %zu features; at most %u are allowed", from->name,
			    from->feature_count, EMBENG_PARTITION_FEATURES_MAX);
	stack->columns = (uint64_t)from->rows_per_core * stack->o->sparse_cores;
	for (size_t k = 0; !ret && k < from->feature_count; k++)
		ret = take_stack_feature(stack, stacking, (size_t)from->features[k]);
	return ret;
}

int stack_take(const struct embeng_batch *b, const struct embeng_partition_options *o,
	       const struct embeng_stacking *stacking, size_t index, struct stack *stack)
{
	const struct embeng_stack *from = &stacking->stacks[index];
	int ret = check_partition_options(o);

	*stack = (struct stack){.b = b, .o = o};
	if (ret)
		return ret;
	stack->places = calloc(from->feature_count + 1, sizeof(*stack->places));
	if (!stack->places)
		return fail(-ENOMEM, WHAT ": no memory for %zu features", from->feature_count);
	ret = take_features(stack, stacking, from);
	if (ret)
		stack_free(stack);
	return ret;
}

void stack_free(struct stack *stack)
{
	free(stack->places);
	stack->places = NULL;
}

/* Each core of JAX may have a part of the buffer as large as the largest core's. */
void stack_room(const struct stack *stack, uint64_t *row_pointers, uint64_t *items)
{
	const struct embeng_partition_options *o = stack->o;
	uint64_t cores = o->sparse_cores, each = o->cores_per_device;
	bool limited = o->max_ids_per_partition || o->max_unique_ids_per_partition;
	uint64_t minibatches = o->minibatching && (limited || o->splits) ? BUCKETS : 1;
	uint64_t gaps = each * cores * minibatches;
	bool parts = o->flavour == EMBENG_PARTITION_JAX && !o->minibatching;

	*row_pointers = each * minibatches * ((cores + ALIGN - 1) / ALIGN * ALIGN);
	*items = stack->ids + (ALIGN - 1) * (gaps < stack->ids ? gaps : stack->ids);
	if (!parts)
		return;
	*items *= each;
	if (o->max_ids_per_partition) {
		uint64_t part = (o->max_ids_per_partition + ALIGN - 1) / ALIGN * ALIGN * cores;

		*items = stack->ids + (ALIGN - 1) * gaps + (each - 1) * part;
	}
	if (o->buffer_size)
		*items = (o->buffer_size / (ALIGN * each) + 1) * ALIGN * each;
}
