// SPDX-License-Identifier: MIT
/*
 * The working memory of exchanges of rows, one set for each context: a model without tables of its
 * own, a batch, and what a sort and sums need. It grows as needed and is kept, so that a command whose
 * input is no larger than an earlier one allocates nothing.
 *
 * The memory lives until its context ends. The running command uses it without a lock, since only one
 * command of a device runs at a time.
 */
#include "../update/apply.h"
#include "exchange.h"

/* Zeroed memory for @count of @size. */
static int clear_room(struct exchange *x, void **p, u64 *have, u64 count, u64 size)
{
	if (grow(&x->model, p, have, (count + 1) * size))
		return -1;
	memset(*p, 0, (count + 1) * size);
	return 0;
}

/* The private copies of features keep their memory where there are more of them than before. */
static int make_feature_room(struct exchange *x, u32 count)
{
	struct batch_feature *larger;

	if (count > x->feature_room) {
		larger = model_alloc(&x->model, (count + 1ull) * sizeof(*larger));
		if (!larger)
			return -1;
		if (x->feature_room)
			memcpy(larger, x->batch.features, x->feature_room * sizeof(*larger));
		if (x->batch.features)
			model_count(&x->model, -((x->feature_room + 1) * sizeof(*larger)));
		port_free(x->batch.features);
		x->batch.features = larger;
		x->feature_room = count;
	}
	x->batch.feature_count = count;
	return 0;
}

static void free_scratch(struct exchange *x)
{
	if (x->model.scratch)
		port_free_table(x->model.scratch, x->scratch_bytes);
	model_count(&x->model, -x->scratch_bytes);
	x->model.scratch = NULL;
	x->scratch_bytes = 0;
}

static int make_scratch(struct exchange *x)
{
	struct model *m = &x->model;
	u64 bytes;

	m->scratch_stride = apply_scratch_bytes(m->largest_dim);
	bytes = m->scratch_stride * m->engine->caps.cores;
	if (bytes <= x->scratch_bytes)
		return 0;
	free_scratch(x);
	m->scratch = alloc_table(m->engine, bytes);
	if (!m->scratch)
		return -1;
	model_count(m, bytes);
	x->scratch_bytes = bytes;
	return 0;
}

static int make_exchange_memory(struct exchange *x, const struct exchange_call *call)
{
	u32 tables = call->given.table_count, features = call->given.feature_count;
	struct model *m = &x->model;

	m->largest_dim = 1;
	for (u32 i = 0; i < tables; i++) {
		if (call->tables[i].dim > m->largest_dim)
			m->largest_dim = call->tables[i].dim;
	}
	if (clear_room(x, (void **)&m->tables, &x->tables_bytes, tables, sizeof(*m->tables)) ||
	    clear_room(x, (void **)&m->blob.features, &x->records_bytes, features,
		       sizeof(*m->blob.features)) ||
	    clear_room(x, (void **)&m->gradients, &x->outputs_bytes, features,
		       sizeof(*m->gradients)) ||
	    clear_room(x, (void **)&m->sources, &x->sources_bytes, features, sizeof(*m->sources)) ||
	    clear_room(x, (void **)&m->segments, &x->segments_bytes, features,
		       sizeof(*m->segments)) ||
	    clear_room(x, (void **)&x->views, &x->views_bytes, 2ull * tables + features,
		       sizeof(*x->views)) ||
	    clear_room(x, (void **)&m->zeros, &x->zeros_bytes, 1,
		       model_zeros_bytes(m->largest_dim)) ||
	    make_feature_room(x, features))
		return -1;
	return make_scratch(x);
}

struct exchange *exchange_memory(struct command *command)
{
	struct context *context = command->context;
	struct exchange *x = context->exchange;

	if (!x) {
		x = port_alloc(sizeof(*x));
		if (!x)
			return NULL;
		x->model.engine = context->engine;
		x->model.context = context;
		x->partition.model = &x->model;
		context->exchange = x;
	}
	return make_exchange_memory(x, command->state) ? NULL : x;
}

void context_exchange_free(struct context *context)
{
	struct exchange *x = context->exchange;
	struct model *m;

	if (!x)
		return;
	m = &x->model;
	x->batch.feature_count = (u32)x->feature_room;
	batch_release(&x->batch);
	partition_free(&x->partition);
	port_free(m->tables);
	port_free(m->blob.features);
	port_free(m->gradients);
	port_free(m->sources);
	port_free(m->segments);
	port_free(m->zeros);
	free_scratch(x);
	port_free(x->views);
	port_free(x->keys);
	model_count(m, -m->memory);
	port_free(x);
	context->exchange = NULL;
}
