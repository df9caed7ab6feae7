// SPDX-License-Identifier: MIT
/*
 * Decides which table and slot of a checkpoint is restored into which of the model, and how many
 * rows. All that does not match is refused here, before a row moves.
 *
 * The list of pairs belongs to the struct restore. No lock is needed: models do not change.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "restore.h"

#define WHAT "embeng_restore"
#define TABLES_TEXT 200 /* bytes of a list of tables in a sentence */

/* Reasons why a table of the model takes no table of the checkpoint. */
enum { TABLE_MISSING = -1, TABLE_LEFT_OUT = -2 };

static const struct embeng_model *saved_model(const struct restore *r)
{
	return embeng_checkpoint_model(r->c);
}

static int find_table(const struct embeng_model *model, const char *name)
{
	for (size_t i = 0; i < model->table_count; i++) {
		if (!strcmp(model->tables[i].name, name))
			return (int)i;
	}
	return -1;
}

/* As many names of tables as a sentence has room for. */
static const char *list_tables(const struct embeng_model *model, char text[TABLES_TEXT])
{
	size_t length = 0, i;

	snprintf(text, TABLES_TEXT, "no table");
	for (i = 0; i < model->table_count; i++) {
		const char *name = model->tables[i].name;

		if (length + strlen(name) + 32 > TABLES_TEXT)
			break;
		length += (size_t)snprintf(text + length, TABLES_TEXT - length, "%s%s",
					   i ? ", " : "", name);
	}
	if (i && i < model->table_count)
		snprintf(text + length, TABLES_TEXT - length, " and %zu more",
			 model->table_count - i);
	return text;
}

/* -- names --------------------------------------------------------------- */

static int refuse_name(const struct restore *r, size_t index, bool from)
{
	const struct embeng_restore_name *name = &r->options.names[index];
	char tables[TABLES_TEXT];

	return fail(-ENOENT, WHAT ": names[%zu]: %s has no table %s, it has %s", index,
		    from ? r->dir : "the model", from ? name->from : name->to,
		    list_tables(from ? saved_model(r) : r->e->model, tables));
}

static int check_restore_name(const struct restore *r, size_t index)
{
	const struct embeng_restore_name *names = r->options.names, *name = &names[index];

	if (!name->from && !name->to)
		return fail(-EINVAL, WHAT ": names[%zu]: from and to are both NULL; give a table",
			    index);
	if (name->from && find_table(saved_model(r), name->from) < 0)
		return refuse_name(r, index, true);
	if (name->to && find_table(r->e->model, name->to) < 0)
		return refuse_name(r, index, false);
	for (size_t i = 0; name->to && i < index; i++) {
		if (names[i].to && !strcmp(names[i].to, name->to))
			return fail(-EINVAL,
				    WHAT ": names[%zu] and names[%zu] both go into table %s", i,
				    index, name->to);
	}
	return 0;
}

/* A table that an entry sends elsewhere is not taken by the table of its own name. */
static int find_own_name(const struct restore *r, const char *table)
{
	const struct embeng_restore_name *names = r->options.names;
	bool sent = false;

	for (size_t i = 0; i < r->options.name_count; i++) {
		if (!names[i].from || strcmp(names[i].from, table))
			continue;
		if (!names[i].to)
			return TABLE_LEFT_OUT;
		sent = true;
	}
	return sent ? TABLE_MISSING : find_table(saved_model(r), table);
}

static int find_source(const struct restore *r, const char *table)
{
	const struct embeng_restore_name *names = r->options.names;

	for (size_t i = 0; i < r->options.name_count; i++) {
		if (names[i].to && !strcmp(names[i].to, table))
			return names[i].from ? find_table(saved_model(r), names[i].from)
					     : TABLE_LEFT_OUT;
	}
	return find_own_name(r, table);
}

/* -- tables and slots ---------------------------------------------------- */

static void pair_arrays(struct restore *r, int table, int array, int from_table, int from_array)
{
	const struct table *t = &r->e->model->tables[table];
	const struct table *f = &saved_model(r)->tables[from_table];
	uint64_t rows = (uint64_t)(f->rows < t->rows ? f->rows : t->rows);

	r->pairs[r->pair_count++] = (struct array_pair){
		.table = table,
		.array = array,
		.from_table = from_table,
		.from_array = from_array,
		.rows = rows,
		.to_table = table,
		.to_rows = {0, 1, t->rows},
		.to_columns = model_width(t, (size_t)array),
	};
	r->total += rows * model_row_bytes(t, (size_t)array);
	r->report.slots += array > 0;
}

/* Slot of a table of the checkpoint by name, or -1. */
static int find_slot(const struct embeng_model *from, int table, const char *name)
{
	const char *slot;

	for (size_t i = 0; (slot = model_slot_name(from, table, i)); i++) {
		if (!strcmp(slot, name))
			return (int)i;
	}
	return -1;
}

static const char *name_saved_optimizer(const struct table *t)
{
	return t->optimizer.kind ? embeng_optimizer_text(t->optimizer.kind) : "no optimizer";
}

static int pair_slots(struct restore *r, int table, int from_table)
{
	const struct embeng_model *to = r->e->model, *from = saved_model(r);

	for (size_t i = 0; i <= to->tables[table].slot_count; i++) {
		const char *name = model_slot_name(to, table, i);
		int from_array = find_slot(from, from_table, name);

		if (from_array >= 0)
			pair_arrays(r, table, (int)i, from_table, from_array);
		else if (r->options.flags & EMBENG_RESTORE_MISSING_SLOTS)
			r->report.slots_left++;
		else
			return fail(-ENOENT,
				    WHAT ": table %s: slot %s is not in %s, which has the "
					 "slots of %s; EMBENG_RESTORE_MISSING_SLOTS leaves it as "
					 "it is",
				    to->tables[table].name, name, r->dir,
				    name_saved_optimizer(&from->tables[from_table]));
	}
	return 0;
}

/* The slots of one kind of optimizer mean nothing to another, even under the same name. */
static int refuse_saved_optimizer(const struct restore *r, int table, int from_table)
{
	const struct table *t = &r->e->model->tables[table];

	return fail(-EINVAL,
		    WHAT
		    ": table %s: its optimizer is %s, in %s it is %s, whose slots it cannot take; "
		    "EMBENG_RESTORE_OTHER_OPTIMIZER restores the parameters alone",
		    t->name, name_saved_optimizer(t), r->dir,
		    name_saved_optimizer(&saved_model(r)->tables[from_table]));
}

static int pair_arrays_of_table(struct restore *r, int table, int from_table)
{
	const struct table *t = &r->e->model->tables[table];
	enum embeng_optimizer_name saved = saved_model(r)->tables[from_table].optimizer.kind;

	if (!t->optimizer.kind || !saved || t->optimizer.kind == saved)
		return pair_slots(r, table, from_table);
	if (!(r->options.flags & EMBENG_RESTORE_OTHER_OPTIMIZER))
		return refuse_saved_optimizer(r, table, from_table);
	pair_arrays(r, table, 0, from_table, 0);
	r->report.slots_left += t->slot_count;
	return 0;
}

static int refuse_shape(const struct restore *r, const struct table *t, const struct table *f)
{
	const char *remedy =
		t->dim == f->dim ? "EMBENG_RESTORE_OTHER_SHAPES restores the rows that both have"
				 : "rows of another dim cannot be restored, an entry of names "
				   "with from = NULL leaves the table as it is";

	return fail(-EINVAL,
		    WHAT ": table %s is %" PRId64 " x %" PRId64 ", in %s it is %" PRId64
			 " x %" PRId64 "; %s",
		    t->name, t->rows, t->dim, r->dir, f->rows, f->dim, remedy);
}

static int pair_found(struct restore *r, int table, int from_table)
{
	const struct table *t = &r->e->model->tables[table];
	const struct table *f = &saved_model(r)->tables[from_table];
	uint64_t rows = (uint64_t)t->rows, saved = (uint64_t)f->rows;

	if (f->dim != t->dim ||
	    (rows != saved && !(r->options.flags & EMBENG_RESTORE_OTHER_SHAPES)))
		return refuse_shape(r, t, f);
	r->report.tables++;
	r->report.rows += rows < saved ? rows : saved;
	r->report.rows_left += rows > saved ? rows - saved : 0;
	r->report.rows_unused += saved > rows ? saved - rows : 0;
	return pair_arrays_of_table(r, table, from_table);
}

static int pair_table(struct restore *r, int table, bool *left_out)
{
	const char *name = r->e->model->tables[table].name;
	char tables[TABLES_TEXT];
	int from_table = find_source(r, name);

	if (from_table >= 0)
		return pair_found(r, table, from_table);
	r->report.tables_left++;
	if (from_table == TABLE_LEFT_OUT)
		*left_out = true;
	else if (!(r->options.flags & EMBENG_RESTORE_MISSING_TABLES))
		return fail(-ENOENT,
			    WHAT ": table %s is not in %s, which has %s; "
				 "EMBENG_RESTORE_MISSING_TABLES leaves it as it is, names take "
				 "a table of another name",
			    name, r->dir, list_tables(saved_model(r), tables));
	return 0;
}

/* A restore of nothing looks like one that worked, and the model is not trained. */
static int refuse_nothing(const struct restore *r)
{
	char have[TABLES_TEXT], want[TABLES_TEXT];

	return fail(-ENOENT,
		    WHAT ": nothing to restore: the model has %s, and none of that is in %s, which "
			 "has %s; names take a table of another name",
		    list_tables(r->e->model, want), r->dir, list_tables(saved_model(r), have));
}

int restore_pair_all(struct restore *r)
{
	size_t tables = r->e->model->table_count;
	bool left_out = false;
	int ret = 0;

	r->pairs = calloc(tables * ARRAYS_MAX + 1, sizeof(*r->pairs));
	if (!r->pairs)
		return fail(-ENOMEM, WHAT ": no memory for a list of tables");
	for (size_t i = 0; !ret && i < r->options.name_count; i++)
		ret = check_restore_name(r, i);
	for (size_t t = 0; !ret && t < tables; t++)
		ret = pair_table(r, (int)t, &left_out);
	if (!ret && tables && !r->pair_count && !left_out)
		ret = refuse_nothing(r);
	return ret;
}
