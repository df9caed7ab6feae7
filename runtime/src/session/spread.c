// SPDX-License-Identifier: MIT
/*
 * Runs the commands for batches of tables whose rows are spread over hosts (embeng/spread.h). Arrays of
 * the caller that lie in a buffer are used in place, and others are copied in and out.
 *
 * A struct spreading lives for one call. e->grid is held for the whole call, since it shares the memory
 * of embeng_partition(); e->lock is taken for short times inside.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spread.h"
#include "wait.h"

enum { LIST, RESULT, TABLE_ARRAYS };
enum { DATA = ARRAYS, FEATURE_ARRAYS }; /* behind offsets, ids and weights */

/* One call under way. */
struct spreading {
	struct embeng *e;
	uint16_t opcode;
	const struct embeng_spread *batch;
	struct array
		*arrays; /* [TABLE_ARRAYS] of each table, then [FEATURE_ARRAYS] of each feature */
	size_t array_count;
	uint64_t head;
	struct pins pins;
};

static struct array *arrays_of_table(const struct spreading *x, size_t table)
{
	return &x->arrays[TABLE_ARRAYS * table];
}

static struct array *arrays_of_feature(const struct spreading *x, size_t feature)
{
	return &x->arrays[TABLE_ARRAYS * x->batch->table_count + FEATURE_ARRAYS * feature];
}

/* An empty array needs no memory. */
static struct array make_array(const void *data, uint64_t count, uint64_t width)
{
	return (struct array){.data = count ? data : NULL, .count = count, .width = width};
}

static void list_table_arrays(struct spreading *x, size_t table)
{
	const struct embeng_spread_table *t = &x->batch->tables[table];
	uint64_t numbers = t->count * (uint64_t)t->dim;
	struct array *a = arrays_of_table(x, table);

	if (x->opcode == EMBENG_OP_UNIQUE) {
		a[LIST] = make_array(t->list, t->room, 8);
		a[RESULT] = make_array(t->counts, x->batch->hosts, 8);
		return;
	}
	a[LIST] = make_array(spread_reads_rows(x->opcode, t) ? t->data : NULL, numbers, 4);
	a[RESULT] = make_array(x->opcode == EMBENG_OP_SUM ? t->sums : NULL, numbers, 4);
}

static void list_feature_arrays(struct spreading *x, size_t feature)
{
	const struct embeng_spread_feature *f = &x->batch->features[feature];
	uint64_t numbers = spread_outputs(f) * (uint64_t)x->batch->tables[f->table].dim;
	struct array *a = arrays_of_feature(x, feature);

	a[OFFSETS] = make_array(f->offsets, f->samples + 1, 8);
	if (x->opcode == EMBENG_OP_UNIQUE) {
		a[IDS] = make_array(f->ids, f->id_count, f->type == EMBENG_I32 ? 4 : 8);
		a[DATA] = make_array(f->places, f->id_count, 4);
		return;
	}
	a[IDS] = make_array(f->places, f->id_count, 4);
	a[WEIGHTS] = make_array(f->weights, f->id_count, 4);
	a[DATA] = x->opcode == EMBENG_OP_POOL ? make_array(f->activations, numbers, 4)
					      : make_array(f->gradients, numbers, 4);
}

static bool is_written(const struct spreading *x, size_t array)
{
	size_t tables = TABLE_ARRAYS * x->batch->table_count;

	if (array < tables)
		return x->opcode == EMBENG_OP_UNIQUE || array % TABLE_ARRAYS == RESULT;
	return x->opcode != EMBENG_OP_SUM && (array - tables) % FEATURE_ARRAYS == DATA;
}

static int make_spread_room(struct spreading *x)
{
	uint64_t end;
	int ret;

	x->head = sizeof(struct embeng_row_exchange) +
		  x->batch->table_count * sizeof(struct embeng_exchange_table) +
		  x->batch->feature_count * sizeof(struct embeng_exchange_feature);
	end = layout_copies(x->arrays, x->array_count, x->head);
	ret = region_grow(x->e, &x->e->partition, end);
	for (size_t i = 0; !ret && i < x->array_count; i++) {
		struct array *a = &x->arrays[i];

		if (!a->data || a->in_place)
			continue;
		a->mem = region_part(&x->e->partition, a->at, a->count * a->width);
		if (!is_written(x, i))
			copy_counted(x->e, x->e->partition.data + a->at, a->data,
				     a->count * a->width);
	}
	return ret;
}

static bool has_sequence(const struct spreading *x, size_t table)
{
	for (size_t i = 0; i < x->batch->feature_count; i++) {
		if (x->batch->features[i].table == table &&
		    x->batch->features[i].max_sequence_length)
			return true;
	}
	return false;
}

/* Places are -1 where the policy leaves an id out, and behind a sequence's length. */
static uint8_t policy_of_list(const struct spreading *x, size_t table)
{
	enum embeng_policy policy = x->batch->tables[table].out_of_range;

	if (x->opcode == EMBENG_OP_UNIQUE || policy == EMBENG_POLICY_DROP)
		return model_policy(policy);
	if (policy == EMBENG_POLICY_ZERO || has_sequence(x, table))
		return EMBENG_OUT_OF_RANGE_ZERO;
	return EMBENG_OUT_OF_RANGE_ERROR;
}

static char *write_spread_tables(const struct spreading *x, char *to)
{
	for (size_t i = 0; i < x->batch->table_count; i++) {
		const struct embeng_spread_table *t = &x->batch->tables[i];
		const struct array *a = arrays_of_table(x, i);
		struct embeng_exchange_table table = {
			.row_count = (uint64_t)t->rows,
			.out_of_range = policy_of_list(x, i),
			.rows = a[LIST].mem,
			.result = a[RESULT].mem,
		};

		if (x->opcode != EMBENG_OP_UNIQUE) {
			table.row_count = t->count;
			table.dim = (uint32_t)t->dim;
			table.combiner = model_combiner(t->combiner);
		}
		memcpy(to, &table, sizeof(table));
		to += sizeof(table);
	}
	return to;
}

static void write_spread_features(const struct spreading *x, char *to)
{
	for (size_t i = 0; i < x->batch->feature_count; i++) {
		const struct embeng_spread_feature *f = &x->batch->features[i];
		const struct array *a = arrays_of_feature(x, i);
		struct embeng_exchange_feature feature = {
			.table = (uint32_t)f->table,
			.max_sequence_length = (uint32_t)f->max_sequence_length,
			.form = f->offsets ? EMBENG_FORM_CSR : EMBENG_FORM_DENSE,
			.id_width = (uint8_t)a[IDS].width,
			.offset_width = f->offsets ? 8 : 0,
			.sample_count = f->samples,
			.id_count = f->id_count,
			.offsets = a[OFFSETS].mem,
			.ids = a[IDS].mem,
			.weights = a[WEIGHTS].mem,
			.data = a[DATA].mem,
		};

		memcpy(to, &feature, sizeof(feature));
		to += sizeof(feature);
	}
}

static void write_spread(const struct spreading *x)
{
	struct embeng_row_exchange head = {
		.table_count = (uint32_t)x->batch->table_count,
		.table_stride = sizeof(struct embeng_exchange_table),
		.feature_count = (uint32_t)x->batch->feature_count,
		.feature_stride = sizeof(struct embeng_exchange_feature),
	};

	if (x->opcode == EMBENG_OP_UNIQUE) {
		head.hosts = x->batch->hosts;
		head.placement = x->batch->sharding == EMBENG_SHARDING_MOD ? EMBENG_PLACEMENT_MOD
									   : EMBENG_PLACEMENT_DIV;
	} else if (x->batch->allow_non_finite) {
		head.flags = EMBENG_EXCHANGE_NON_FINITE;
	}
	memcpy(x->e->partition.data, &head, sizeof(head));
	write_spread_features(x, write_spread_tables(x, x->e->partition.data + sizeof(head)));
}

static int run_spread_command(struct spreading *x)
{
	struct embeng_cmd cmd = {
		.opcode = x->opcode,
		.desc = region_part(&x->e->partition, 0, x->head),
	};
	struct embeng_cqe answer;
	int ret;

	pthread_mutex_lock(&x->e->lock);
	ret = transfer_quietly(x->e, &cmd, &answer);
	pthread_mutex_unlock(&x->e->lock);
	if (!ret && answer.status)
		ret = spread_error(x->opcode, x->batch, &answer);
	return ret;
}

/* The device may be hostile as well: what it says of rows is held to the room. */
static void count_list(struct embeng_spread_table *t, uint32_t hosts)
{
	t->count = 0;
	for (uint32_t h = 0; h < hosts; h++) {
		if (t->counts[h] > t->room - t->count)
			t->counts[h] = t->room - t->count;
		t->count += t->counts[h];
	}
}

static void give_spread(const struct spreading *x)
{
	for (size_t i = 0; i < x->array_count; i++) {
		const struct array *a = &x->arrays[i];

		/* An array says const of what it may only read; this is the caller's output. */
		if (a->data && !a->in_place && is_written(x, i))
			copy_counted(x->e, (void *)(uintptr_t)a->data, x->e->partition.data + a->at,
				     a->count * a->width);
	}
	for (size_t i = 0; x->opcode == EMBENG_OP_UNIQUE && i < x->batch->table_count; i++)
		count_list(&x->batch->tables[i], x->batch->hosts);
}

static int spread_locked(struct spreading *x)
{
	int ret;

	for (size_t i = 0; i < x->batch->table_count; i++)
		list_table_arrays(x, i);
	for (size_t i = 0; i < x->batch->feature_count; i++)
		list_feature_arrays(x, i);
	pthread_mutex_lock(&x->e->lock);
	ret = arrays_pin(x->e, x->arrays, x->array_count, &x->pins);
	pthread_mutex_unlock(&x->e->lock);
	ret = ret ? ret : make_spread_room(x);
	if (!ret) {
		write_spread(x);
		ret = run_spread_command(x);
	}
	if (!ret)
		give_spread(x);
	pthread_mutex_lock(&x->e->lock);
	unpin_all(&x->pins);
	pthread_mutex_unlock(&x->e->lock);
	pins_free(&x->pins);
	return ret;
}

static int run_spread(struct embeng *e, uint16_t opcode, const struct embeng_spread *batch)
{
	struct spreading x = {.e = e, .opcode = opcode, .batch = batch};
	int ret = spread_check(e, opcode, batch);

	if (ret)
		return ret;
	x.array_count = TABLE_ARRAYS * batch->table_count + FEATURE_ARRAYS * batch->feature_count;
	x.arrays = calloc(x.array_count, sizeof(*x.arrays));
	pthread_mutex_lock(&e->grid);
	ret = x.arrays ? spread_locked(&x)
		       : fail(-ENOMEM, "%s: no memory for %zu features", spread_call(opcode),
			      batch->feature_count);
	pthread_mutex_unlock(&e->grid);
	free(x.arrays);
	return ret;
}

int embeng_spread_unique(struct embeng *e, const struct embeng_spread *batch)
{
	return run_spread(e, EMBENG_OP_UNIQUE, batch);
}

int embeng_spread_pool(struct embeng *e, const struct embeng_spread *batch)
{
	return run_spread(e, EMBENG_OP_POOL, batch);
}

int embeng_spread_sum(struct embeng *e, const struct embeng_spread *batch)
{
	return run_spread(e, EMBENG_OP_SUM, batch);
}
