// SPDX-License-Identifier: MIT
/*
 * The step partition of a vector: features of a device as partitioned CSR, compared with the
 * expected partitions, items and padding.
 *
 * All arrays live for one step.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "input.h"
#include "value.h"

#define ALIGN 8
#define NAME "partition"

/* The result of the call. */
struct partitions {
	struct embeng_partition_options o;
	struct embeng_partitioned out;
};

/* A walk through a core's items, partition by partition. */
struct walk {
	const struct partitions *p;
	uint32_t core;
	size_t pointer; /* next one */
	uint64_t at, end;
};

static int read_bucket(struct run *r, const struct json *body, struct embeng_partition_options *o)
{
	static const char *const names[] = {"", "div", "mod", "hash"};
	const char *name = text_member(body, "bucket", "");

	for (int i = 0; i < 4; i++) {
		if (!strcmp(name, names[i])) {
			o->bucket = (enum embeng_partition_bucket)i;
			return 0;
		}
	}
	return run_fail(r, -EINVAL, "there is no bucket '%s'; give hash, mod or div", name);
}

static int read_partition_options(struct run *r, const struct json *body,
				  struct embeng_partition_options *o)
{
	uint64_t cores = 0, each = 0, device = 0, rotation = 0;
	int err = read_partition_flavour(r, body, &o->flavour);

	err = err ? err : read_bucket(r, body, o);
	err = err ? err : read_count(r, body, "sparse_cores", 0, 1, &cores);
	err = err ? err : read_count(r, body, "cores_per_device", 0, 1, &each);
	err = err ? err : read_count(r, body, "device", 0, 0, &device);
	err = err ? err : read_count(r, body, "rotation", 0, 0, &rotation);
	err = err ? err
		  : read_count(r, body, "max_ids_per_partition", 0, 1, &o->max_ids_per_partition);
	err = err ? err
		  : read_count(r, body, "max_unique_ids_per_partition", 0, 1,
			       &o->max_unique_ids_per_partition);
	err = err ? err
		  : read_count(r, body, "suggested_buffer_size", 0,
			       member(body, "suggested_buffer_size") ? 1 : 0, &o->buffer_size);
	if (err)
		return err;
	o->size = sizeof(*o);
	o->sparse_cores = (uint32_t)cores;
	o->cores_per_device = (uint32_t)each;
	o->device = (uint32_t)device;
	o->rotation = (uint32_t)rotation;
	o->rotation_given = member(body, "rotation") != NULL;
	o->minibatching = bool_member(body, "minibatching", false);
	o->allow_id_dropping = bool_member(body, "allow_id_dropping", false);
	return 0;
}

static void partitions_free(struct partitions *p)
{
	free(p->out.row_pointers);
	free(p->out.token_ids);
	free(p->out.sample_ids);
	free(p->out.gains);
	free(p->out.max_ids);
	free(p->out.max_unique_ids);
	free(p->out.required_buffer);
	free(p->out.core_first);
	free(p->out.core_end);
}

static int allocate_partitions(struct run *r, const struct embeng_batch *b, struct partitions *p)
{
	struct embeng_partitioned *out = &p->out;
	size_t pointers, items, cores = p->o.sparse_cores, each = p->o.cores_per_device;
	int err = embeng_partition_room(b, &p->o, &pointers, &items);

	if (err)
		return run_library(r, err);
	out->size = sizeof(*out);
	out->row_pointers = calloc(pointers + 1, sizeof(*out->row_pointers));
	out->token_ids = calloc(items + 1, sizeof(*out->token_ids));
	out->sample_ids = calloc(items + 1, sizeof(*out->sample_ids));
	out->gains = calloc(items + 1, sizeof(*out->gains));
	out->max_ids = calloc(cores, sizeof(*out->max_ids));
	out->max_unique_ids = calloc(cores, sizeof(*out->max_unique_ids));
	out->required_buffer = calloc(each, sizeof(*out->required_buffer));
	out->core_first = calloc(each, sizeof(*out->core_first));
	out->core_end = calloc(each, sizeof(*out->core_end));
	if (!out->row_pointers || !out->token_ids || !out->sample_ids || !out->gains ||
	    !out->max_ids || !out->max_unique_ids || !out->required_buffer || !out->core_first ||
	    !out->core_end)
		return run_fail(r, -ENOMEM, "out of memory");
	out->row_pointer_capacity = pointers;
	out->capacity = items;
	return 0;
}

static struct walk walk_start(const struct partitions *p, uint32_t core)
{
	return (struct walk){
		.p = p,
		.core = core,
		.pointer = (size_t)core * p->out.minibatches * p->out.row_stride,
		.end = p->out.core_first[core],
	};
}

/* To the next partition. False behind the core's last. */
static bool walk_next(struct walk *w)
{
	const struct embeng_partitioned *out = &w->p->out;
	bool own = w->p->o.flavour == EMBENG_PARTITION_JAX && !w->p->o.minibatching;
	size_t last = (size_t)(w->core + 1) * out->minibatches * out->row_stride;

	while (w->pointer < last && w->pointer % out->row_stride >= w->p->o.sparse_cores)
		w->pointer++;
	if (w->pointer >= last)
		return false;
	w->at = (w->end + ALIGN - 1) / ALIGN * ALIGN;
	w->end = (uint64_t)out->row_pointers[w->pointer++] + (own ? out->core_first[w->core] : 0);
	return true;
}

static int check_pointers(struct run *r, const struct partitions *p, const struct json *expected)
{
	size_t lists = (size_t)p->o.cores_per_device * p->out.minibatches;

	if (list_length(expected) != lists)
		return run_mismatch(r, "at", NAME,
				    "%zu lists of row pointers are expected, %zu came",
				    list_length(expected), lists);
	for (size_t i = 0; i < lists; i++) {
		const struct json *list = json_at(expected, i);
		const int32_t *got = p->out.row_pointers + i * p->out.row_stride;

		if (list_length(list) != p->out.row_stride)
			return run_mismatch(r, "at", NAME,
					    "row_pointers[%zu] has %zu, expected %zu", i,
					    p->out.row_stride, list_length(list));
		for (size_t k = 0; k < p->out.row_stride; k++) {
			int64_t value = json_int64(json_at(list, k));

			if (value != got[k])
				return run_mismatch(r, "at", NAME,
						    "row_pointers[%zu][%zu] is %d, expected %lld",
						    i, k, got[k], (long long)value);
		}
	}
	return 0;
}

static double item_number(const struct json *item, size_t k)
{
	return value_number(json_at(item, k));
}

static int check_item(struct run *r, const struct partitions *p, uint32_t core, size_t number,
		      uint64_t at, const struct json *item)
{
	const struct embeng_partitioned *out = &p->out;
	struct comparison gain = comparison_start(NULL);
	float expected;

	if (list_length(item) != 4)
		return run_fail(r, -EINVAL, "an item must be [position, sample, token, gain]");
	expected = (float)item_number(item, 3);
	compare_floats(&gain, &out->gains[at], &expected, 1);
	if (item_number(item, 0) == (double)(at - out->core_first[core]) &&
	    item_number(item, 1) == out->sample_ids[at] &&
	    item_number(item, 2) == out->token_ids[at] && !gain.differing)
		return 0;
	return run_mismatch(r, "at", NAME,
			    "items[%u][%zu] is [%llu, %d, %d, %.9g], expected [%.0f, %.0f, %.0f, "
			    "%.9g]",
			    core, number, (unsigned long long)(at - out->core_first[core]),
			    out->sample_ids[at], out->token_ids[at], (double)out->gains[at],
			    item_number(item, 0), item_number(item, 1), item_number(item, 2),
			    item_number(item, 3));
}

static int check_core(struct run *r, const struct partitions *p, uint32_t core,
		      const struct json *items)
{
	struct walk w = walk_start(p, core);
	size_t number = 0;
	int result = 0;

	while (!result && walk_next(&w)) {
		for (uint64_t at = w.at; !result && at < w.end; at++, number++) {
			if (number == list_length(items))
				return run_mismatch(r, "at", NAME,
						    "core %u has more than the "
						    "expected %zu items",
						    core, number);
			result = check_item(r, p, core, number, at, json_at(items, number));
		}
	}
	if (!result && number < list_length(items))
		return run_mismatch(r, "at", NAME, "core %u has %zu items, expected %zu", core,
				    number, list_length(items));
	return result;
}

static int check_items(struct run *r, const struct partitions *p, const struct json *expected)
{
	int result = 0;

	if (list_length(expected) != p->o.cores_per_device)
		return run_fail(r, -EINVAL, "items must have one list for each of %u cores",
				p->o.cores_per_device);
	for (uint32_t c = 0; !result && c < p->o.cores_per_device; c++)
		result = check_core(r, p, c, json_at(expected, c));
	return result;
}

static bool is_expected_padding(const struct partitions *p, uint64_t at, const struct json *padding)
{
	double id = number_member(padding, "id", 0), gain = number_member(padding, "gain", 0);

	if (member(padding, "id") && (p->out.token_ids[at] != id || p->out.sample_ids[at] != id))
		return false;
	return !member(padding, "gain") || (double)p->out.gains[at] == gain ||
	       (isnan(p->out.gains[at]) && isnan(gain));
}

static int check_padding(struct run *r, const struct partitions *p, const struct json *padding)
{
	for (uint32_t c = 0; c < p->o.cores_per_device; c++) {
		struct walk w = walk_start(p, c);

		while (walk_next(&w)) {
			for (uint64_t at = w.end; at % ALIGN; at++) {
				if (!is_expected_padding(p, at, padding))
					return run_mismatch(
						r, "at", NAME,
						"item %llu is padded with %d, %d, %g",
						(unsigned long long)at, p->out.token_ids[at],
						p->out.sample_ids[at], (double)p->out.gains[at]);
			}
		}
	}
	return 0;
}

static int match_number(struct run *r, const struct json *expect, const char *key, uint64_t got)
{
	const struct json *expected = member(expect, key);

	if (!expected || (uint64_t)json_int64(expected) == got)
		return 0;
	return run_mismatch(r, "at", key, "%s is %llu, expected %lld", key, (unsigned long long)got,
			    (long long)json_int64(expected));
}

/* Compares numbers of @width bytes each. */
static int match_list(struct run *r, const struct json *expect, const char *key, const void *got,
		      size_t width, size_t count)
{
	const struct json *expected = member(expect, key);

	if (!expected)
		return 0;
	if (list_length(expected) != count)
		return run_mismatch(r, "at", key, "%s has %zu numbers, expected %zu", key, count,
				    list_length(expected));
	for (size_t i = 0; i < count; i++) {
		uint64_t value = width == 4 ? ((const uint32_t *)got)[i]
					    : ((const uint64_t *)got)[i];
		int64_t wanted = json_int64(json_at(expected, i));

		if (value != (uint64_t)wanted)
			return run_mismatch(r, "at", key, "%s[%zu] is %llu, expected %lld", key, i,
					    (unsigned long long)value, (long long)wanted);
	}
	return 0;
}

static int compare_partitions(struct run *r, const struct partitions *p, const struct json *expect)
{
	const struct embeng_partitioned *out = &p->out;
	size_t cores = p->o.sparse_cores, each = p->o.cores_per_device;
	int result = match_number(r, expect, "minibatches", out->minibatches);

	result = result ? result : match_number(r, expect, "dropped_ids", out->dropped_ids);
	result = result ? result : match_list(r, expect, "max_ids", out->max_ids, 4, cores);
	result = result ? result
			: match_list(r, expect, "max_unique_ids", out->max_unique_ids, 4, cores);
	result = result ? result
			: match_list(r, expect, "required_buffer", out->required_buffer, 8, each);
	if (!result && member(expect, "row_pointers"))
		result = check_pointers(r, p, member(expect, "row_pointers"));
	if (!result && member(expect, "items"))
		result = check_items(r, p, member(expect, "items"));
	if (!result && member(expect, "padding"))
		result = check_padding(r, p, member(expect, "padding"));
	return result;
}

static int run_partition(struct run *r, const struct json *body, struct embeng_batch *b)
{
	struct partitions p = {0};
	struct arrays *kept = NULL;
	int err = inputs_add(r, b, member(body, "features"), &kept);

	err = err ? err : read_partition_options(r, body, &p.o);
	err = err ? err : allocate_partitions(r, b, &p);
	if (!err) {
		err = embeng_partition(r->e, b, &p.o, &p.out);
		if (err)
			run_library(r, err);
	}
	if (!err)
		err = compare_partitions(r, &p, member(body, "expect"));
	partitions_free(&p);
	inputs_free(kept);
	return err;
}

int step_partition(struct run *r, const struct json *body)
{
	struct embeng_batch *b;
	int err = batch_begin(r, EMBENG_INFERENCE, 0, &b);

	if (err)
		return err;
	err = run_partition(r, body, b);
	embeng_batch_free(b);
	return err;
}
