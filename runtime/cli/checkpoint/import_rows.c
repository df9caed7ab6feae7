// SPDX-License-Identifier: MIT
/*
 * The part of `embeng checkpoint import` that replaces rows: it writes a checkpoint again in which rows of
 * tables or slots come from files of tensors, and all others are as they were.
 *
 * The list of arrays lives for one call. The old checkpoint is only read.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "edit.h"
#include "import.h"

/* @arrays: [count] parameters or slots that the tables of the same places go into */
struct replacing {
	const struct import_table *tables;
	struct checkpoint_array *arrays;
	size_t count;
	int64_t first;
};

bool import_has_array(const struct embeng_model *model, const char *name)
{
	const char *slash = strrchr(name, '/');
	char *table;
	bool has;

	if (embeng_model_table(model, name) >= 0)
		return true;
	table = slash ? strndup(name, (size_t)(slash - name)) : NULL;
	has = table && embeng_model_table(model, table) >= 0 &&
	      embeng_model_slot_width(model, embeng_model_table(model, table), slash + 1) > 0;
	free(table);
	return has;
}

static bool is_same_array(const struct checkpoint_array *a, const struct checkpoint_array *b)
{
	return a->table == b->table && !a->slot == !b->slot &&
	       (!a->slot || !strcmp(a->slot, b->slot));
}

/* A tensor has all rows of the table, or with --first those from there on that it has. */
static int check_replacing_shape(const struct output *out, const struct import_table *t,
				 const struct checkpoint_array *array, bool all, int64_t first)
{
	uint64_t rows = t->tensor->shape[0], dim = t->tensor->shape[1];
	int64_t has = array->config.vocabulary_size;

	if (dim != (uint64_t)array->width)
		return output_fail(out, CLI_USAGE, EINVAL, NULL,
				   "%s: the tensor for %s has %" PRIu64 " columns, a row there has "
				   "%" PRId64 " numbers",
				   t->file->path, t->name, dim, array->width);
	if (all && rows != (uint64_t)has)
		return output_fail(out, CLI_USAGE, EINVAL,
				   "--first=ROW replaces a part of the rows, and embeng checkpoint "
				   "grow adds rows",
				   "%s: the tensor for %s has %" PRIu64
				   " rows, the table has %" PRId64,
				   t->file->path, t->name, rows, has);
	if (first > has || rows > (uint64_t)(has - first))
		return output_fail(out, CLI_USAGE, ERANGE, NULL,
				   "%s: the tensor for %s has %" PRIu64
				   " rows, and from row %" PRId64 " on the table has %" PRId64,
				   t->file->path, t->name, rows, first,
				   first > has ? 0 : has - first);
	return CLI_OK;
}

static int find_replaced_arrays(const struct output *out, const struct edit *edit,
				struct replacing *r, bool all)
{
	const struct embeng_model *model = embeng_checkpoint_model(edit->from);

	for (size_t i = 0; i < r->count; i++) {
		int code = checkpoint_find_array(out, edit->dir, model, r->tables[i].name,
						 &r->arrays[i]);

		code = code ? code
			    : check_replacing_shape(out, &r->tables[i], &r->arrays[i], all,
						    r->first);
		if (code)
			return code;
		for (size_t k = 0; k < i; k++) {
			if (is_same_array(&r->arrays[k], &r->arrays[i]))
				return output_fail(out, CLI_USAGE, EINVAL, NULL,
						   "%s is given twice; the rows of a table or slot "
						   "come from one tensor",
						   r->tables[i].name);
		}
	}
	return CLI_OK;
}

/* The rows of @rows that the tensor has; where they are not successive, one by one. */
static int read_replaced_rows(const struct replacing *r, size_t i,
			      const struct embeng_shard_rows *rows, float *data)
{
	const struct import_table *t = &r->tables[i];
	int64_t end = r->first + (int64_t)t->tensor->shape[0], at = 0;

	if (rows->first < r->first)
		at = (r->first - rows->first + rows->stride - 1) / rows->stride;
	while (at < rows->count) {
		int64_t row = rows->first + at * rows->stride, count = 1;
		int rc;

		if (row >= end)
			return 0;
		if (rows->stride == 1)
			count = rows->count - at < end - row ? rows->count - at : end - row;
		rc = tensor_rows(t->file, t->tensor, (uint64_t)(row - r->first), (size_t)count,
				 data + at * r->arrays[i].width);
		if (rc)
			return rc;
		at += count;
	}
	return 0;
}

/* The replace of a struct edit. */
static int replace_rows(struct edit *edit, int table, const char *slot,
			const struct embeng_shard_rows *rows, float *data)
{
	const struct replacing *r = edit->arg;
	bool parameters = !strcmp(slot, "parameters");

	for (size_t i = 0; i < r->count; i++) {
		const struct checkpoint_array *array = &r->arrays[i];
		int rc;

		if (array->table != table ||
		    (array->slot ? strcmp(array->slot, slot) != 0 : !parameters))
			continue;
		rc = read_replaced_rows(r, i, rows, data);
		if (rc)
			edit->failed = output_fail(edit->out, exit_of_errno(rc), rc, NULL, "%s",
						   r->tables[i].file->why);
		return rc;
	}
	return 0;
}

static int print_replaced(const struct edit *edit, const struct replacing *r)
{
	printf("%s: step %" PRIu64 ", as %s but for\n", edit->to, edit->step, edit->dir);
	for (size_t i = 0; i < r->count; i++) {
		const struct import_table *t = &r->tables[i];

		printf("  %s: rows %" PRId64 " to %" PRId64 ", from %s of %s (%s)\n", t->name,
		       r->first, r->first + (int64_t)t->tensor->shape[0] - 1,
		       tensor_label(t->tensor), t->file->path, tensor_type_text(t->tensor->type));
	}
	return CLI_OK;
}

static int report_replaced(const struct edit *edit, const struct replacing *r)
{
	struct json_object *d, *list;

	if (!edit->out->json)
		return print_replaced(edit, r);
	d = json_document(edit->out);
	list = json_object_new_array();
	for (size_t i = 0; i < r->count; i++) {
		const struct import_table *t = &r->tables[i];
		struct json_object *one = json_object_new_object();

		json_add_text(one, "name", t->name);
		json_add_number(one, "first", (uint64_t)r->first);
		json_add_number(one, "rows", t->tensor->shape[0]);
		json_add_number(one, "dim", t->tensor->shape[1]);
		json_add_text(one, "file", t->file->path);
		json_add_text(one, "tensor", *t->tensor->name ? t->tensor->name : NULL);
		json_add_text(one, "type", tensor_type_text(t->tensor->type));
		json_object_array_add(list, one);
	}
	json_add_text(d, "dir", edit->to);
	json_add_text(d, "into", edit->dir);
	json_add_number(d, "step", edit->step);
	json_object_object_add(d, "replaced", list);
	return json_emit(d);
}

int import_rows(struct edit *edit, const struct import_table *tables, size_t count, int64_t first)
{
	struct replacing r = {.tables = tables, .count = count, .first = first < 0 ? 0 : first};
	int code;

	r.arrays = calloc(count + 1, sizeof(*r.arrays));
	if (!r.arrays)
		return output_fail(edit->out, CLI_DEVICE, ENOMEM, NULL,
				   "no memory for a list of tables");
	edit->replace = replace_rows;
	edit->arg = &r;
	code = find_replaced_arrays(edit->out, edit, &r, first < 0);
	code = code ? code : edit_model(edit, NULL);
	code = code ? code : edit_write(edit);
	code = code ? code : report_replaced(edit, &r);
	free(r.arrays);
	return code;
}
