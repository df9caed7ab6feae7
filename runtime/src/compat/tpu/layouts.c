// SPDX-License-Identifier: MIT
/*
 * Exports layouts of stacked tables as SparseCoreTableLayouts and imports them. Both ways check the
 * layouts: each by itself and every pair in one stack.
 *
 * Layouts that were imported point into their message and live until embeng_layouts_free(). No lock
 * is needed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "sparsecore/layout_check.h"
#include "tpu.pb-c.h"
#include "wire.h"

#define SHAPE_RANK 2
#define WHERE_TEXT 32

/* The result of embeng_tpu_import_layouts(), and the message that holds its texts. */
struct imported {
	struct embeng_layouts layouts;
	Tpu__SparseCoreTableLayouts *message;
	struct tpu_unknowns unknowns;
};

/* Messages with what they point to. */
struct exported {
	Tpu__SparseCoreTableLayouts all;
	Tpu__SparseCoreTableLayout *tables, **list;
	int64_t (*shapes)[2][SHAPE_RANK];
};

static const char *describe_table_place(char text[static WHERE_TEXT], size_t index)
{
	snprintf(text, WHERE_TEXT, "tables[%zu]", index);
	return text;
}

static int check_name(const char *at, const char *what, const char *name)
{
	size_t good;

	if (!name || !name[0])
		return fail(-EINVAL, "%s.%s: a name is missing", at, what);
	good = utf8_good(name);
	return !name[good] ? 0
			   : fail(-EINVAL,
				  "%s.%s: byte %zu of the name is not UTF-8, which the "
				  "protobuf wants",
				  at, what, good);
}

static int check_table(const struct embeng_table_layout *l, size_t index)
{
	char at[WHERE_TEXT];
	int ret = layout_check(describe_table_place(at, index), l);

	ret = ret ? ret : check_name(at, "table_name", l->table);
	ret = ret ? ret : check_name(at, "stacked_table_name", l->stack);
	if (!ret && (l->samples_per_core < 0 || l->feature_count < 0))
		return fail(-EINVAL,
			    "%s: %" PRId64 " samples of %" PRId64 " features; neither is "
			    "below 0",
			    at, l->samples_per_core, l->feature_count);
	return ret;
}

static bool layouts_overlap(const struct embeng_table_layout *a,
			    const struct embeng_table_layout *b)
{
	return a->row_offset < b->row_offset + b->padded_rows / b->sparse_cores &&
	       b->row_offset < a->row_offset + a->padded_rows / a->sparse_cores;
}

/* Checks two tables against each other; each of them is sound by itself. */
static int check_pair(const struct embeng_table_layout *tables, size_t one, size_t other)
{
	const struct embeng_table_layout *a = &tables[one], *b = &tables[other];
	char at[WHERE_TEXT];

	if (!strcmp(a->table, b->table))
		return fail(-EEXIST, "%s.table_name: tables[%zu] is %s already",
			    describe_table_place(at, other), one, a->table);
	if (strcmp(a->stack, b->stack) != 0)
		return 0;
	if (a->sparse_cores != b->sparse_cores || a->partitions != b->partitions ||
	    a->rows_per_core != b->rows_per_core || a->padded_dim != b->padded_dim)
		return fail(-EINVAL,
			    "%s: cores, partitions, rows of a core or columns of stack %s "
			    "are not those of tables[%zu]",
			    describe_table_place(at, other), a->stack, one);
	if (layouts_overlap(a, b))
		return fail(-EINVAL, "%s: table %s overlaps table %s in stack %s",
			    describe_table_place(at, other), b->table, a->table, a->stack);
	return 0;
}

static int check_tables(const struct embeng_table_layout *tables, size_t count)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < count; i++) {
		ret = check_table(&tables[i], i);
		for (size_t k = 0; !ret && k < i; k++)
			ret = check_pair(tables, k, i);
	}
	return ret;
}

static void fill_layout(struct exported *x, const struct embeng_table_layout *from, size_t index)
{
	Tpu__SparseCoreTableLayout *to = &x->tables[index];
	int64_t(*shapes)[SHAPE_RANK] = x->shapes[index];

	tpu__sparse_core_table_layout__init(to);
	x->list[index] = to;
	to->table_name = (char *)from->table;
	to->stacked_table_name = (char *)from->stack;
	to->num_sparse_cores = from->sparse_cores;
	to->num_partitions = from->partitions;
	to->total_rows_per_sparse_core_shard = from->rows_per_core;
	shapes[0][0] = from->rows;
	shapes[0][1] = from->dim;
	shapes[1][0] = from->padded_rows;
	shapes[1][1] = from->padded_dim;
	to->n_unsharded_shape = SHAPE_RANK;
	to->unsharded_shape = shapes[0];
	to->n_unsharded_padded_shape = SHAPE_RANK;
	to->unsharded_padded_shape = shapes[1];
	to->sparse_core_shard_row_offset = from->row_offset;
	to->sparse_core_shard_rotation = from->rotation;
	to->per_sparse_core_batch_size = from->samples_per_core;
	to->num_features = from->feature_count;
}

static int export_layouts(struct exported *x, const struct embeng_table_layout *tables,
			  size_t count, void **bytes, size_t *length)
{
	if (!x->tables || !x->list || !x->shapes)
		return fail(-ENOMEM, "no memory to export %zu layouts", count);
	tpu__sparse_core_table_layouts__init(&x->all);
	for (size_t i = 0; i < count; i++)
		fill_layout(x, &tables[i], i);
	x->all.n_tables = count;
	x->all.tables = x->list;
	return tpu_pack(&x->all.base, bytes, length);
}

int embeng_tpu_export_layouts(const struct embeng_table_layout *tables, size_t count, void **bytes,
			      size_t *length)
{
	struct exported x;
	int ret;

	if ((!tables && count) || !bytes || !length)
		return fail(-EINVAL, "embeng_tpu_export_layouts: tables, bytes and length must be "
				     "given");
	if (count > TPU_MOST_ELEMENTS)
		return fail(-EINVAL,
			    "embeng_tpu_export_layouts: %zu tables; at most %u are allowed", count,
			    TPU_MOST_ELEMENTS);
	ret = check_tables(tables, count);
	if (ret)
		return ret;
	x.tables = calloc(count + 1, sizeof(*x.tables));
	x.list = calloc(count + 1, sizeof(*x.list));
	x.shapes = calloc(count + 1, sizeof(*x.shapes));
	ret = export_layouts(&x, tables, count, bytes, length);
	free(x.tables);
	free(x.list);
	free(x.shapes);
	return ret;
}

void embeng_layouts_free(struct embeng_layouts *layouts)
{
	struct imported *im = (struct imported *)layouts;

	if (!im)
		return;
	tpu_unpacked_free((ProtobufCMessage *)im->message);
	free(im->unknowns.fields);
	free(im->layouts.tables);
	free(im->layouts.unknowns);
	free(im);
}

static int check_shape(size_t index, const char *field, size_t rank)
{
	return rank == SHAPE_RANK ? 0
				  : fail(-EINVAL, "tables[%zu].%s: %zu lengths, a table has %d",
					 index, field, rank, SHAPE_RANK);
}

static int read_layout(const Tpu__SparseCoreTableLayout *from, size_t index,
		       struct embeng_table_layout *to)
{
	int ret = check_shape(index, "unsharded_shape", from->n_unsharded_shape);

	ret = ret ? ret
		  : check_shape(index, "unsharded_padded_shape", from->n_unsharded_padded_shape);
	if (ret)
		return ret;
	*to = (struct embeng_table_layout){
		.size = sizeof(*to),
		.table = from->table_name,
		.stack = from->stacked_table_name,
		.sparse_cores = from->num_sparse_cores,
		.partitions = from->num_partitions,
		.rows_per_core = from->total_rows_per_sparse_core_shard,
		.rows = from->unsharded_shape[0],
		.dim = from->unsharded_shape[1],
		.padded_rows = from->unsharded_padded_shape[0],
		.padded_dim = from->unsharded_padded_shape[1],
		.row_offset = from->sparse_core_shard_row_offset,
		.rotation = from->sparse_core_shard_rotation,
		.samples_per_core = from->per_sparse_core_batch_size,
		.feature_count = from->num_features,
	};
	return 0;
}

static void tell_unknowns(struct imported *im)
{
	for (size_t i = 0; i < im->unknowns.count; i++)
		im->layouts.unknowns[i] = tpu_tell_unknown(&im->unknowns.fields[i]);
	im->layouts.unknown_count = im->unknowns.count;
}

static int read_layouts(struct imported *im)
{
	size_t count = im->message->n_tables;
	int ret = 0;

	im->layouts.tables = calloc(count + 1, sizeof(*im->layouts.tables));
	im->layouts.unknowns = calloc(im->unknowns.count + 1, sizeof(*im->layouts.unknowns));
	if (!im->layouts.tables || !im->layouts.unknowns)
		return fail(-ENOMEM, "no memory to import %zu layouts", count);
	for (size_t i = 0; !ret && i < count; i++)
		ret = read_layout(im->message->tables[i], i, &im->layouts.tables[i]);
	im->layouts.table_count = count;
	tell_unknowns(im);
	return ret ? ret : check_tables(im->layouts.tables, count);
}

int embeng_tpu_import_layouts(const void *bytes, size_t length, struct embeng_layouts **out)
{
	struct imported *im;
	int ret;

	if ((!bytes && length) || !out)
		return fail(-EINVAL, "embeng_tpu_import_layouts: bytes and out must be given");
	im = calloc(1, sizeof(*im));
	if (!im)
		return fail(-ENOMEM, "no memory to import layouts");
	ret = tpu_unpack(&tpu__sparse_core_table_layouts__descriptor, "SparseCoreTableLayouts",
			 bytes, length, &im->unknowns, (ProtobufCMessage **)&im->message);
	ret = ret ? ret : read_layouts(im);
	if (ret)
		embeng_layouts_free(&im->layouts);
	else
		*out = &im->layouts;
	return ret;
}
