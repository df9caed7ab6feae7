// SPDX-License-Identifier: MIT
/*
 * embeng_partition(): turns a batch into partitioned CSR by a PARTITION command. Arrays of the
 * caller that lie in a buffer are used in place, and others are copied in and out.
 *
 * A struct partitioning lives for one call. e->grid is held for the whole call, since its memory
 * e->partition is shared; e->lock is taken for short times inside.
 */
#include <stdlib.h>
#include <string.h>

#include "../../../engine/kernels/kernels.h"
#include "batch/input.h"
#include "partition.h"
#include "session/wait.h"

enum { ROW_POINTERS, TOKENS, SAMPLES, GAINS, OUTPUTS };

/* One call under way. */
struct partitioning {
	struct embeng *e;
	struct stack stack;
	struct embeng_partitioned *out;
	struct array *arrays; /* [OUTPUTS + ARRAYS * features]: what comes out, then what goes in */
	size_t array_count;
	uint64_t head, result_at, result_bytes;
	struct pins pins;
};

static int check_out(const struct embeng_partitioned *out)
{
	if (!out || out->size < sizeof(*out))
		return fail(-EINVAL, "embeng_partition: no result, or of another size");
	if ((!out->row_pointers && out->row_pointer_capacity) ||
	    ((!out->token_ids || !out->sample_ids || !out->gains) && out->capacity))
		return fail(-EINVAL, "embeng_partition: an array of the result is NULL, its "
				     "capacity is not 0");
	return 0;
}

int partition_check_batch(const char *what, const struct embeng *e, const struct embeng_batch *b)
{
	int ret = session_check_alone(e, what);

	if (!ret && b && b->e == e && b->count != e->model->feature_count)
		ret = fail(-EINVAL, "%s: the batch was made before tables were added; reset it",
			   what);

	if (ret)
		return ret;
	if (!b || b->e != e)
		return fail(-EINVAL, "%s: the batch is not one of this handle", what);
	return 0;
}

/* Copies of outputs need not be larger than what there can be. */
static void list_outputs(struct partitioning *p)
{
	const struct embeng_partitioned *out = p->out;
	void *const data[OUTPUTS] = {out->row_pointers, out->token_ids, out->sample_ids,
				     out->gains};
	uint64_t pointers, items;

	stack_room(&p->stack, &pointers, &items);
	for (size_t i = 0; i < OUTPUTS; i++) {
		uint64_t capacity = i == ROW_POINTERS ? out->row_pointer_capacity : out->capacity;
		uint64_t most = i == ROW_POINTERS ? pointers : items;

		p->arrays[i] = (struct array){
			.data = data[i], .count = capacity < most ? capacity : most, .width = 4};
	}
}

static void list_inputs(struct partitioning *p)
{
	for (size_t i = 0; i < p->stack.count; i++) {
		const struct input *in = &p->stack.b->inputs[p->stack.places[i].feature];
		struct array *a = &p->arrays[OUTPUTS + ARRAYS * i];

		layout_arrays(a, in->samples, in->id_count, in->type);
		a[OFFSETS].data = in->form == INPUT_CSR ? in->offsets : NULL;
		a[IDS].data = in->id_count ? in->ids : NULL;
		a[WEIGHTS].data = in->id_count ? in->weights : NULL;
	}
}

/* The items' gains are made of weights, and would be refused by number alone. */
static int check_input_weights(const struct partitioning *p)
{
	const struct embeng_model *m = p->e->model;

	for (size_t i = 0; i < p->stack.count; i++) {
		size_t feature = p->stack.places[i].feature;
		const struct feature *f = &m->features[feature];
		const struct input *in = &p->stack.b->inputs[feature];
		uint64_t at, count = in->weights ? in->id_count : 0;

		if (!count || !model_checks_weights_of(m, f))
			continue;
		at = kernel_finite_until(p->e->kernels, in->weights, count);
		if (at < count)
			return input_weight_error(f, in, (size_t)at, in->weights[at]);
	}
	return 0;
}

/* The items' arrays have one length, though some may be in place and some copied. */
static int make_partition_room(struct partitioning *p)
{
	const struct embeng_partition_options *o = p->stack.o;
	uint64_t end;
	int ret;

	p->head = sizeof(struct embeng_partition) +
		  p->stack.count * sizeof(struct embeng_partition_feature);
	p->result_at = p->head;
	p->result_bytes = sizeof(struct embeng_partition_result) + 8ull * o->sparse_cores +
			  24ull * o->cores_per_device;
	end = layout_copies(p->arrays, p->array_count, p->result_at + p->result_bytes);
	ret = region_grow(p->e, &p->e->partition, end);
	for (size_t i = 0; !ret && i < p->array_count; i++) {
		struct array *a = &p->arrays[i];

		if (!a->data || a->in_place)
			continue;
		a->mem = region_part(&p->e->partition, a->at, a->count * a->width);
		if (i >= OUTPUTS)
			copy_counted(p->e, p->e->partition.data + a->at, a->data,
				     a->count * a->width);
	}
	return ret;
}

static uint8_t bucket_of_options(const struct embeng_partition_options *o)
{
	switch (o->bucket) {
	case EMBENG_PARTITION_BUCKET_DIV:
		return EMBENG_BUCKET_DIV;
	case EMBENG_PARTITION_BUCKET_MOD:
		return EMBENG_BUCKET_MOD;
	case EMBENG_PARTITION_BUCKET_HASH:
		return EMBENG_BUCKET_HASH;
	case EMBENG_PARTITION_BUCKET_DEFAULT:
		break;
	}
	return o->flavour == EMBENG_PARTITION_TF ? EMBENG_BUCKET_DIV : EMBENG_BUCKET_HASH;
}

static void write_partition_head(const struct partitioning *p)
{
	const struct embeng_partition_options *o = p->stack.o;
	struct embeng_partition head = {
		.flavour = o->flavour == EMBENG_PARTITION_TF ? EMBENG_FLAVOUR_TF
							     : EMBENG_FLAVOUR_JAX,
		.bucket = bucket_of_options(o),
		.flags = (uint16_t)((o->minibatching ? EMBENG_PARTITION_MINIBATCHING : 0) |
				    (o->allow_id_dropping ? EMBENG_PARTITION_DROPPING : 0)),
		.feature_count = (uint32_t)p->stack.count,
		.feature_stride = sizeof(struct embeng_partition_feature),
		.cores = o->sparse_cores,
		.device_cores = o->cores_per_device,
		.columns = p->stack.columns,
		.max_ids = o->max_ids_per_partition,
		.max_unique_ids = o->max_unique_ids_per_partition,
		.buffer = o->buffer_size,
		.row_pointers = p->arrays[ROW_POINTERS].mem,
		.tokens = p->arrays[TOKENS].mem,
		.samples = p->arrays[SAMPLES].mem,
		.gains = p->arrays[GAINS].mem,
		.result = region_part(&p->e->partition, p->result_at, p->result_bytes),
		.splits = o->splits,
	};

	memcpy(p->e->partition.data, &head, sizeof(head));
}

static void write_partition_features(const struct partitioning *p)
{
	char *to = p->e->partition.data + sizeof(struct embeng_partition);

	for (size_t i = 0; i < p->stack.count; i++) {
		const struct place *place = &p->stack.places[i];
		const struct input *in = &p->stack.b->inputs[place->feature];
		const struct table *t = stack_table(&p->stack, place->feature);
		const struct array *a = &p->arrays[OUTPUTS + ARRAYS * i];
		struct embeng_partition_feature feature = {
			.form = in->form == INPUT_DENSE ? EMBENG_FORM_DENSE : EMBENG_FORM_CSR,
			.id_width = (uint8_t)a[IDS].width,
			.offset_width = in->form == INPUT_CSR ? 8 : 0,
			.combiner = model_combiner(t->combiner),
			.rotation = place->rotation,
			.rows = (uint64_t)t->rows,
			.column_offset = place->column_offset,
			.sample_count = in->samples,
			.id_count = in->id_count,
			.offsets = a[OFFSETS].mem,
			.ids = a[IDS].mem,
			.weights = a[WEIGHTS].mem,
		};

		memcpy(to + i * sizeof(feature), &feature, sizeof(feature));
	}
}

static int run_partition_command(struct partitioning *p)
{
	struct embeng_cmd cmd = {
		.opcode = EMBENG_OP_PARTITION,
		.desc = region_part(&p->e->partition, 0, p->head),
	};
	struct embeng_cqe answer;
	int ret;

	pthread_mutex_lock(&p->e->lock);
	ret = transfer_quietly(p->e, &cmd, &answer);
	pthread_mutex_unlock(&p->e->lock);
	if (!ret && answer.status)
		ret = partition_error(&p->stack, &answer);
	return ret;
}

/* [first, last) of an array that could not be written in place. */
static void give_part(const struct partitioning *p, size_t which, uint64_t first, uint64_t last)
{
	struct embeng_partitioned *out = p->out;
	void *const data[OUTPUTS] = {out->row_pointers, out->token_ids, out->sample_ids,
				     out->gains};
	const struct array *a = &p->arrays[which];

	if (!a->in_place && last > first)
		copy_counted(p->e, (char *)data[which] + first * 4,
			     p->e->partition.data + a->at + first * 4, (last - first) * 4);
}

/* The device may be hostile as well: what it says of places is held to the capacities. */
static void give_items(const struct partitioning *p, const char *told)
{
	uint32_t each = p->stack.o->cores_per_device;

	for (uint32_t c = 0; c < each; c++) {
		uint64_t first, end, most = p->arrays[TOKENS].count;

		memcpy(&first, told + 8ull * (each + c), 8);
		memcpy(&end, told + 8ull * (2 * each + c), 8);
		end = end < most ? end : most;
		for (size_t i = TOKENS; i < OUTPUTS; i++)
			give_part(p, i, first, end);
	}
}

static void give_lists(const struct partitioning *p, const char *told)
{
	const struct embeng_partitioned *out = p->out;
	const size_t cores = p->stack.o->sparse_cores, each = p->stack.o->cores_per_device;
	const struct {
		void *to;
		size_t bytes;
	} lists[] = {
		{out->max_ids, 4 * cores},	  {out->max_unique_ids, 4 * cores},
		{out->required_buffer, 8 * each}, {out->core_first, 8 * each},
		{out->core_end, 8 * each},
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		if (lists[i].to)
			memcpy(lists[i].to, told, lists[i].bytes);
		told += lists[i].bytes;
	}
}

static void give_result(const struct partitioning *p)
{
	const char *told = p->e->partition.data + p->result_at;
	struct embeng_partition_result result;
	uint64_t pointers = p->arrays[ROW_POINTERS].count;

	memcpy(&result, told, sizeof(result));
	told += sizeof(result);
	give_part(p, ROW_POINTERS, 0,
		  result.row_pointers < pointers ? result.row_pointers : pointers);
	give_lists(p, told);
	give_items(p, told + 8ull * p->stack.o->sparse_cores);
	p->out->row_pointer_count = result.row_pointers;
	p->out->row_stride = result.row_stride;
	p->out->buffer_size = result.buffer;
	p->out->minibatches = result.minibatches;
	p->out->dropped_ids = result.dropped_ids;
	p->out->splits = result.splits;
}

static int partition_locked(struct partitioning *p)
{
	int ret = check_input_weights(p);

	if (ret)
		return ret;
	list_outputs(p);
	list_inputs(p);
	pthread_mutex_lock(&p->e->lock);
	ret = arrays_pin(p->e, p->arrays, p->array_count, &p->pins);
	pthread_mutex_unlock(&p->e->lock);
	ret = ret ? ret : make_partition_room(p);
	if (!ret) {
		write_partition_head(p);
		write_partition_features(p);
		ret = run_partition_command(p);
	}
	if (!ret)
		give_result(p);
	pthread_mutex_lock(&p->e->lock);
	unpin_all(&p->pins);
	pthread_mutex_unlock(&p->e->lock);
	pins_free(&p->pins);
	return ret;
}

int stack_partition(const struct stack *stack, struct embeng_partitioned *out)
{
	struct embeng *e = stack->b->e;
	struct partitioning p = {.e = e, .stack = *stack, .out = out};
	int ret;

	p.array_count = OUTPUTS + ARRAYS * p.stack.count;
	p.arrays = calloc(p.array_count, sizeof(*p.arrays));
	pthread_mutex_lock(&e->grid);
	ret = p.arrays ? partition_locked(&p)
		       : fail(-ENOMEM, "embeng_partition: no memory for %zu features",
			      p.stack.count);
	pthread_mutex_unlock(&e->grid);
	free(p.arrays);
	return ret;
}

int embeng_partition(struct embeng *e, const struct embeng_batch *b,
		     const struct embeng_partition_options *options, struct embeng_partitioned *out)
{
	struct stack stack;
	int ret = partition_check_batch("embeng_partition", e, b);

	ret = ret ? ret : check_out(out);
	ret = ret ? ret : stack_make(b, options, &stack);
	if (ret)
		return ret;
	ret = stack_partition(&stack, out);
	stack_free(&stack);
	return ret;
}

int embeng_partition_room(const struct embeng_batch *b,
			  const struct embeng_partition_options *options, size_t *row_pointers,
			  size_t *items)
{
	uint64_t pointers, most;
	struct stack stack;
	int ret = partition_check_batch("embeng_partition", b ? b->e : NULL, b);

	if (!ret && (!row_pointers || !items))
		ret = fail(-EINVAL, "embeng_partition_room: no place for the numbers");
	ret = ret ? ret : stack_make(b, options, &stack);
	if (ret)
		return ret;
	stack_room(&stack, &pointers, &most);
	stack_free(&stack);
	*row_pointers = pointers;
	*items = most;
	return 0;
}
