// SPDX-License-Identifier: MIT
/*
 * Rows of tables and slots: read, written and filled, in pieces, so that a signal is answered while a
 * large table moves. Rows and values are checked before the first piece is written.
 */
#include "core.h"

#include <errno.h>
#include <math.h>
#include <string.h>

struct rows {
	struct engine_object *engine;
	int table;
	const char *slot;
	PyObject *name; /* name of the table */
	struct array ids, data;
	bool by_id;
	int64_t first, count, width;
	bool write;
	/* the piece that moves: its rows from @at on, and their numbers */
	struct row_piece piece;
	int64_t *numbers;
};

static int read_slot(PyObject *slot, const char **text)
{
	*text = NULL;
	if (!slot || slot == Py_None)
		return 0;
	*text = text_read(slot, "slot");
	return *text ? 0 : -1;
}

static int find_table(struct rows *rows, PyObject *table, PyObject *slot)
{
	const struct embeng_model *model;

	rows->name = table;
	rows->table = engine_table(rows->engine, table);
	if (rows->table < 0 || read_slot(slot, &rows->slot))
		return -1;
	model = embeng_get_model(rows->engine->handle);
	rows->width = embeng_model_slot_width(model, rows->table, rows->slot);
	if (rows->width > 0)
		return 0;
	core_fail(rows->engine->state);
	return -1;
}

static int64_t count_rows(struct rows *rows)
{
	struct embeng_table_config config = EMBENG_INIT(embeng_table_config);

	embeng_model_get_table(embeng_get_model(rows->engine->handle), (size_t)rows->table,
			       &config);
	return config.vocabulary_size;
}

static int check_range(struct rows *rows, int64_t first, int64_t count)
{
	int64_t all = count_rows(rows);

	if (first >= 0 && count >= 0 && first <= all && count <= all - first)
		return 0;
	core_fail_with(rows->engine->state, -ERANGE,
		       "table %S: %lld rows from %lld on are asked for; it has rows 0 to %lld",
		       rows->name, (long long)count, (long long)first, (long long)(all - 1));
	return -1;
}

static int check_ids(struct rows *rows)
{
	int64_t all = count_rows(rows);

	for (size_t k = 0; k < rows->ids.count; k++) {
		int64_t id = rows->ids.type == ARRAY_I32 ? ((const int32_t *)rows->ids.data)[k]
							 : ((const int64_t *)rows->ids.data)[k];

		if (id >= 0 && id < all)
			continue;
		core_fail_with(rows->engine->state, -ERANGE,
			       "table %S: row %lld at place %zu; it has rows 0 to %lld", rows->name,
			       (long long)id, k, (long long)(all - 1));
		return -1;
	}
	return 0;
}

/* Either ids, an array, or None: rows from @first on, as many as the data have. */
static int take_rows(struct rows *rows, PyObject *ids, int64_t first)
{
	const struct part part = {NULL, "rows"};

	if (rows->data.count % (size_t)rows->width ||
	    (rows->data.rank > 1 && rows->data.shape[rows->data.rank - 1] != rows->width)) {
		PyErr_Format(PyExc_ValueError, "table %S: %zu numbers, for rows of %lld",
			     rows->name, rows->data.count, (long long)rows->width);
		return -1;
	}
	rows->count = (int64_t)(rows->data.count / (size_t)rows->width);
	rows->first = first;
	if (!ids || ids == Py_None)
		return check_range(rows, first, rows->count);
	rows->by_id = true;
	if (array_get_ids(rows->engine->state, ids, &part, &rows->ids))
		return -1;
	if (rows->ids.count != (size_t)rows->count) {
		PyErr_Format(PyExc_ValueError, "table %S: %zu row numbers, for %lld rows of data",
			     rows->name, rows->ids.count, (long long)rows->count);
		return -1;
	}
	return check_ids(rows);
}

static void number_rows(struct rows *rows)
{
	for (int64_t k = 0; k < rows->piece.length; k++) {
		int64_t at = rows->piece.at + k;

		if (!rows->by_id)
			rows->numbers[k] = rows->first + at;
		else if (rows->ids.type == ARRAY_I32)
			rows->numbers[k] = ((const int32_t *)rows->ids.data)[at];
		else
			rows->numbers[k] = ((const int64_t *)rows->ids.data)[at];
	}
}

static int move_piece(void *arg, int64_t timeout_ns)
{
	struct rows *rows = arg;
	float *data = (float *)rows->data.data + rows->piece.at * rows->width;

	(void)timeout_ns;
	number_rows(rows);
	if (rows->write)
		return embeng_rows_write(rows->engine->handle, rows->table, rows->slot,
					 rows->numbers, (size_t)rows->piece.length, data);
	return embeng_rows_read(rows->engine->handle, rows->table, rows->slot, rows->numbers,
				(size_t)rows->piece.length, data);
}

/*
 * Whether no piece can be refused once others are written: parameters are finite, and some slots hold
 * numbers from 0 on alone. Values that are not so are written in one call, which checks all.
 */
static bool has_safe_values(const struct rows *rows)
{
	bool is_slot = rows->slot && strcmp(rows->slot, "parameters");
	const float *values = rows->data.data;
	bool bad = false;

	for (size_t k = 0; k < rows->data.count; k++)
		bad |= !isfinite(values[k]) || (is_slot && values[k] < 0);
	return !bad;
}

static int64_t choose_piece(const struct rows *rows)
{
	int64_t most = row_piece_most(rows->width);
	bool safe = true;

	if (!rows->write || rows->count <= most)
		return most;
	Py_BEGIN_ALLOW_THREADS
	safe = has_safe_values(rows);
	Py_END_ALLOW_THREADS
	return safe ? most : rows->count;
}

/* Hosts that name no rows, or fewer than others, make the call as often as these: once. */
static int move_together(struct rows *rows)
{
	int ret;

	rows->piece = (struct row_piece){.length = rows->count};
	ret = core_wait(move_piece, rows, NULL);
	if (ret < 0)
		core_fail(rows->engine->state);
	return ret ? -1 : 0;
}

static int move_rows(struct rows *rows)
{
	const bool together = rows->engine->collective;
	int64_t most = together ? rows->count + 1 : choose_piece(rows);

	rows->numbers = PyMem_Malloc((size_t)(rows->count < most ? rows->count + 1 : most) *
				     sizeof(*rows->numbers));
	if (!rows->numbers) {
		PyErr_NoMemory();
		return -1;
	}
	return together ? move_together(rows)
			: row_pieces_run(rows->engine->state, move_piece, rows, &rows->piece,
					 rows->count, most);
}

static PyObject *run_rows(struct rows *rows, PyObject *table, PyObject *slot, PyObject *ids,
			  PyObject *data, int64_t first)
{
	const struct part part = {NULL, rows->write ? "values" : "out"};
	int ret;

	if (find_table(rows, table, slot))
		return NULL;
	ret = rows->write ? array_get_floats(rows->engine->state, data, &part, &rows->data)
			  : array_get_output(rows->engine->state, data, &part, &rows->data);
	if (!ret && !array_is_contiguous(&rows->data)) {
		part_fail(PyExc_ValueError, &part, "rows follow each other here");
		ret = -1;
	}
	if (ret || take_rows(rows, ids, first) || move_rows(rows))
		return NULL;
	return Py_NewRef(data);
}

static PyObject *access_rows(PyObject *self, PyObject *args, PyObject *kwargs, bool write)
{
	static char *names[] = {"table", "data", "rows", "slot", "first", NULL};
	struct rows rows = {.engine = (struct engine_object *)self, .write = write};
	PyObject *table, *data, *ids = NULL, *slot = NULL, *result;
	long long first = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs,
					 write ? "OO|OOL:rows_write" : "OO|OOL:rows_read", names,
					 &table, &data, &ids, &slot, &first) ||
	    engine_enter(rows.engine))
		return NULL;
	result = run_rows(&rows, table, slot, ids, data, first);
	array_put(&rows.ids);
	array_put(&rows.data);
	PyMem_Free(rows.numbers);
	engine_leave(rows.engine);
	return result;
}

static PyObject *read_rows(PyObject *self, PyObject *args, PyObject *kwargs)
{
	return access_rows(self, args, kwargs, false);
}

static PyObject *write_rows(PyObject *self, PyObject *args, PyObject *kwargs)
{
	return access_rows(self, args, kwargs, true);
}

struct filling {
	struct rows rows;
	struct embeng_initializer initializer;
};

static int fill_piece(void *arg, int64_t timeout_ns)
{
	struct filling *filling = arg;
	struct rows *rows = &filling->rows;

	(void)timeout_ns;
	return embeng_rows_fill(rows->engine->handle, rows->table, rows->slot,
				rows->first + rows->piece.at, (size_t)rows->piece.length,
				&filling->initializer);
}

static PyObject *fill_rows(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"table", "initializer", "slot", "first", "count", NULL};
	struct filling filling = {.rows.engine = (struct engine_object *)self};
	PyObject *table, *initializer, *held, *slot = NULL;
	long long first = 0, count = -1;
	int ret;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OLL:rows_fill", names, &table,
					 &initializer, &slot, &first, &count))
		return NULL;
	held = settings_hold(initializer);
	ret = held ? settings_read_initializer(held, &filling.initializer) : -1;
	Py_XDECREF(held); /* it has no texts that are kept */
	if (ret || engine_enter(filling.rows.engine))
		return NULL;
	ret = find_table(&filling.rows, table, slot);
	if (!ret) {
		filling.rows.first = first;
		filling.rows.count = count < 0 ? count_rows(&filling.rows) - first : count;
		ret = check_range(&filling.rows, first, filling.rows.count) ||
		      row_pieces_run(filling.rows.engine->state, fill_piece, &filling,
				     &filling.rows.piece, filling.rows.count,
				     row_piece_most(filling.rows.width));
	}
	engine_leave(filling.rows.engine);
	return ret ? NULL : Py_NewRef(Py_None);
}

static PyObject *map_table(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"table", "slot", NULL};
	struct engine_object *engine = (struct engine_object *)self;
	PyObject *table, *slot = NULL, *map = NULL;
	const char *text;
	int index;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:table_map", names, &table, &slot) ||
	    read_slot(slot, &text) || engine_enter(engine))
		return NULL;
	index = engine_table(engine, table);
	if (index >= 0)
		map = table_map_new(engine, index, text);
	engine_leave(engine);
	return map;
}

PyMethodDef rows_methods[] = {
	{"rows_read", KEYWORDS(read_rows), METH_VARARGS | METH_KEYWORDS,
	 PyDoc_STR("rows_read($self, table, data, rows=None, slot=None, "
		   "first=0)\n--\n\n"
		   "Copy rows of a table or slot into an array, which is returned.")},
	{"rows_write", KEYWORDS(write_rows), METH_VARARGS | METH_KEYWORDS,
	 PyDoc_STR("rows_write($self, table, data, rows=None, slot=None, "
		   "first=0)\n--\n\n"
		   "Write rows of a table or slot.")},
	{"rows_fill", KEYWORDS(fill_rows), METH_VARARGS | METH_KEYWORDS,
	 PyDoc_STR("rows_fill($self, table, initializer, slot=None, first=0, "
		   "count=-1)\n--\n\n"
		   "Start rows as an initializer says.")},
	{"table_map", KEYWORDS(map_table), METH_VARARGS | METH_KEYWORDS,
	 PyDoc_STR("table_map($self, table, slot=None)\n--\n\n"
		   "Return the memory of a table or slot, on the soft device.")},
	{0},
};
