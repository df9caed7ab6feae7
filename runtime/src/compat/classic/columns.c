// SPDX-License-Identifier: MIT
/*
 * Translates the feature columns of a v1 specification: which tables and features they mean, and
 * how these are named.
 *
 * Everything that is made goes into the struct embeng_classic of the caller, also on failure. No
 * lock is needed.
 */
#define _GNU_SOURCE /* asprintf */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/error.h"
#include "classic.h"

#define TABLE_PREFIX "tbl_"

/* The column's own name, malloc'd; that of a weighted one tells its weights. */
static char *own_column_name(const struct embeng_classic_categorical *c)
{
	char *name;

	if (!c->weight_key)
		return strdup(c->name);
	return asprintf(&name, "%s_weighted_by_%s", c->name, c->weight_key) < 0 ? NULL : name;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All names one after another, "_" between, and then @end; malloc'd. */
static char *join_column_names(char **names, size_t count, const char *end)
{
	size_t length = strlen(end) + 1;
	char *joined, *at;

	for (size_t i = 0; i < count; i++)
		length += strlen(names[i]) + 1;
	joined = malloc(length);
	if (!joined)
		return NULL;
	at = joined;
	for (size_t i = 0; i < count; i++)
		at += sprintf(at, "%s%s", i ? "_" : "", names[i]);
	strcpy(at, end);
	return joined;
}

/* The rule of those that were given no name: the order of the list does not matter. */
static char *collection_name(const struct embeng_classic_categorical *list, size_t count)
{
	char **names = calloc(count, sizeof(*names)), *joined = NULL;
	bool all = names != NULL;

	for (size_t i = 0; all && i < count; i++) {
		names[i] = own_column_name(&list[i]);
		all = names[i] != NULL;
	}
	if (all) {
		qsort(names, count, sizeof(*names), by_text);
		joined = join_column_names(names, count, "_shared_embedding");
	}
	for (size_t i = 0; names && i < count; i++)
		free(names[i]);
	free(names);
	return joined;
}

static int make_table_name(const struct embeng_classic_column *column,
			   const struct embeng_classic_categorical *list, char **table)
{
	char *name;
	int written;

	if (!column->shared)
		name = own_column_name(list);
	else if (column->collection_name && *column->collection_name)
		name = strdup(column->collection_name);
	else
		name = collection_name(list, column->categorical_count);
	written = name ? asprintf(table, TABLE_PREFIX "%s", name) : -1;
	free(name);
	if (written >= 0)
		return 0;
	*table = NULL;
	return fail(-ENOMEM, "no memory for the name of a table");
}

static int check_categorical(size_t column, const struct embeng_classic_categorical *c)
{
	if (!c->name || !*c->name)
		return fail(-EINVAL, "column %zu: a categorical column has no name", column);
	if (c->sequence && c->max_sequence_length < 1)
		return fail(-EINVAL,
			    "column %zu: max_sequence_length must be greater than 0 for sequence "
			    "columns; it is %" PRId64 " for sequence column %s",
			    column, c->max_sequence_length, c->name);
	if (!c->sequence && c->max_sequence_length)
		return fail(-EINVAL,
			    "column %zu: max_sequence_length %" PRId64 " is given for column %s, "
			    "which is no sequence",
			    column, c->max_sequence_length, c->name);
	return 0;
}

/* Copies of all, whatever their size in the caller's build. */
static int take_list(size_t index, const struct embeng_classic_column *column,
		     struct embeng_classic_categorical **out)
{
	const struct embeng_classic_categorical *given = column->categorical;
	struct embeng_classic_categorical *list;
	int ret = 0;

	if (!given || !column->categorical_count)
		return fail(-EINVAL, "column %zu: it has no categorical column", index);
	if (!column->shared && column->categorical_count > 1)
		return fail(-EINVAL,
			    "column %zu: an embedding column has one categorical column, %zu were "
			    "given; shared embedding columns have several",
			    index, column->categorical_count);
	if (!column->shared && column->collection_name)
		return fail(-EINVAL,
			    "column %zu: collection_name \"%s\" is for shared embedding columns "
			    "alone",
			    index, column->collection_name);
	list = calloc(column->categorical_count, sizeof(*list));
	if (!list)
		return fail(-ENOMEM, "no memory for feature columns");
	for (size_t i = 0; !ret && i < column->categorical_count; i++) {
		ret = config_take(&list[i], (const char *)given + i * given->size, sizeof(list[i]),
				  "embeng_classic_categorical");
		ret = ret ? ret : check_categorical(index, &list[i]);
		if (!ret && list[i].num_buckets != list[0].num_buckets)
			ret = fail(-EINVAL,
				   "column %zu: all columns that share a table must have the same "
				   "number of buckets; column %s has %" PRId64 ", column %s has "
				   "%" PRId64,
				   index, list[0].name, list[0].num_buckets, list[i].name,
				   list[i].num_buckets);
	}
	if (ret)
		free(list);
	else
		*out = list;
	return ret;
}

static int add_column_feature(struct embeng_classic *c,
			      const struct embeng_classic_categorical *from, const char *table)
{
	struct classic_feature *f;
	int ret = 0;

	for (size_t i = 0; i < c->feature_count; i++) {
		if (!strcmp(c->features[i].name, from->name))
			return fail(-EEXIST,
				    "feature column %s is used with several embeddings, which is "
				    "not supported",
				    from->name);
	}
	f = classic_add_feature(c);
	if (!f)
		return -ENOMEM;
	f->length = from->max_sequence_length;
	ret = classic_copy(from->name, &f->name);
	ret = ret ? ret : classic_copy(table, &f->table);
	return ret ? ret : classic_copy(from->weight_key, &f->weight_key);
}

static int add_column(struct embeng_classic *c, const struct embeng_classic_spec *spec,
		      const struct embeng_classic_column *column,
		      const struct embeng_classic_categorical *list)
{
	struct classic_table *t = classic_add_table(c);
	int ret = t ? make_table_name(column, list, &t->name) : -ENOMEM;

	if (ret)
		return ret;
	t->rows = list->num_buckets;
	t->dim = column->dimension;
	t->combiner = column->combiner;
	t->initializer = column->initializer;
	t->rate_name = column->rate_name;
	t->optimizer = spec->optimizer;
	for (size_t i = 0; !ret && i < column->categorical_count; i++)
		ret = add_column_feature(c, &list[i], t->name);
	return ret;
}

int classic_take_columns(struct embeng_classic *c, const struct embeng_classic_spec *spec)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < spec->column_count; i++) {
		const char *at = (const char *)spec->columns + i * spec->columns->size;
		struct embeng_classic_categorical *list = NULL;
		struct embeng_classic_column column;

		ret = config_take(&column, at, sizeof(column), "embeng_classic_column");
		ret = ret ? ret : take_list(i, &column, &list);
		ret = ret ? ret : add_column(c, spec, &column, list);
		free(list);
	}
	return ret;
}
