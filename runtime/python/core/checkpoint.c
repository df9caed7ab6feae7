// SPDX-License-Identifier: MIT
/*
 * Checkpoints: saving and restoring an engine, in folders and through file objects, and the type
 * Checkpoint, which reads one without an engine.
 *
 * Long calls run without the interpreter's lock. They take it to tell progress, and end with the
 * exception that the program's function or a signal handler raised.
 */
#include "core.h"

#include <errno.h>
#include <unistd.h>

/* -- what save and restore share --------------------------------------------------- */

static void begin_work(struct progress_call *progress)
{
	progress->thread = PyEval_SaveThread();
}

/* Return: 0, or -1 with the program's exception or the library's. */
static int end_work(struct core_state *state, struct progress_call *progress, int ret)
{
	PyEval_RestoreThread(progress->thread);
	if (!ret)
		return 0;
	if (!progress->failed)
		core_fail_opening(state, ret == -ENOENT ? 0 : ret);
	return -1;
}

/* A folder's path as bytes. Return: a new reference. */
static PyObject *encode_path(PyObject *path, const char **text)
{
	PyObject *bytes = NULL;

	if (!PyUnicode_FSConverter(path, &bytes))
		return NULL;
	*text = PyBytes_AsString(bytes);
	if (!*text)
		Py_CLEAR(bytes);
	return bytes;
}

static void set_function(struct progress_call *progress, PyObject *function)
{
	progress->function = function == Py_None ? NULL : function;
}

/* -- saving -------------------------------------------------------------------------- */

struct saving {
	struct embeng_save_options options;
	struct embeng_save_report report;
	struct progress_call progress;
};

static PyObject *describe_save(const struct embeng_save_report *report)
{
	return Py_BuildValue("{sIsKsKsKss}", "delta", report->delta, "base_step",
			     (unsigned long long)report->base_step, "rows",
			     (unsigned long long)report->rows, "bytes",
			     (unsigned long long)report->bytes, "why_full", report->why_full);
}

/* @target is a path or a file object. */
static int read_saving(PyObject *args, PyObject *kwargs, struct saving *saving, PyObject **target)
{
	static char *names[] = {"target",     "progress", "shard_bytes", "program_state",
				"not_finite", "delta",	  "keep",	 NULL};
	unsigned long long shard_bytes = 0, keep = 0;
	PyObject *function = Py_None, *bytes = NULL, *count = NULL;
	int not_finite = 0, delta = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOzppO:save", names, target, &function,
					 &bytes, &saving->options.program_state, &not_finite,
					 &delta, &count) ||
	    (bytes && whole_read(bytes, "shard_bytes", UINT64_MAX, &shard_bytes)) ||
	    (count && whole_read(count, "keep", UINT32_MAX, &keep)))
		return -1;
	set_function(&saving->progress, function);
	saving->report = EMBENG_INIT(embeng_save_report);
	saving->options.size = sizeof(saving->options);
	saving->options.shard_bytes = shard_bytes;
	saving->options.keep = (unsigned int)keep;
	saving->options.flags = (not_finite ? EMBENG_SAVE_NOT_FINITE : 0) |
				(delta ? EMBENG_SAVE_DELTA : 0);
	saving->options.report = &saving->report;
	saving->options.progress = core_progress;
	saving->options.progress_arg = &saving->progress;
	return 0;
}

static int save_folder(struct engine_object *engine, struct saving *saving, PyObject *target)
{
	const char *path;
	PyObject *bytes = encode_path(target, &path);
	int ret;

	if (!bytes)
		return -1;
	begin_work(&saving->progress);
	ret = embeng_save(engine->handle, path, &saving->options);
	ret = end_work(engine->state, &saving->progress, ret);
	Py_DECREF(bytes);
	return ret;
}

static int save_file(struct engine_object *engine, struct saving *saving, PyObject *target)
{
	struct stream_call call = {
		.progress = &saving->progress, .file = target, .method = engine->state->write};
	struct embeng_writer to = EMBENG_INIT(embeng_writer, .write = stream_write, .arg = &call);
	int ret;

	begin_work(&saving->progress);
	ret = embeng_save_stream(engine->handle, &to, &saving->options);
	return end_work(engine->state, &saving->progress, ret);
}

static PyObject *save_engine(PyObject *self, PyObject *args, PyObject *kwargs)
{
	struct engine_object *engine = (struct engine_object *)self;
	struct saving saving = {0};
	struct open_work work;
	PyObject *target;
	int ret;

	if (read_saving(args, kwargs, &saving, &target) || engine_enter(engine))
		return NULL;
	open_work_begin(&work, engine->open);
	ret = PyObject_HasAttr(target, engine->state->write) ? save_file(engine, &saving, target)
							     : save_folder(engine, &saving, target);
	open_work_end(&work);
	engine_leave(engine);
	return ret ? NULL : describe_save(&saving.report);
}

/* -- restoring ----------------------------------------------------------------------- */

struct restoring {
	struct embeng_restore_options options;
	struct embeng_restore_report report;
	struct embeng_restore_name *names;
	struct progress_call progress;
};

/* A dict from tables of the model to tables of the checkpoint; None leaves a table as it is. */
static int read_names(PyObject *dict, struct restoring *restoring)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;
	size_t count = 0;

	if (dict == Py_None)
		return 0;
	if (!PyDict_Check(dict)) {
		PyErr_SetString(
			PyExc_TypeError,
			"names: a dict from tables of the model to tables of the checkpoint");
		return -1;
	}
	restoring->names = PyMem_Calloc((size_t)PyDict_Size(dict) + 1, sizeof(*restoring->names));
	if (!restoring->names) {
		PyErr_NoMemory();
		return -1;
	}
	while (PyDict_Next(dict, &at, &key, &value)) {
		struct embeng_restore_name *name = &restoring->names[count++];

		name->to = text_read(key, "names");
		if (!name->to)
			return -1;
		if (value != Py_None)
			name->from = text_read(value, "names");
		if (value != Py_None && !name->from)
			return -1;
	}
	restoring->options.names = restoring->names;
	restoring->options.name_count = count;
	return 0;
}

static int read_restoring(PyObject *args, PyObject *kwargs, struct restoring *restoring,
			  PyObject **source, PyObject **held)
{
	static char *names[] = {"source",	"progress",	   "names",
				"step",		"missing_tables",  "missing_slots",
				"other_shapes", "other_optimizer", NULL};
	PyObject *function = Py_None, *step = Py_None, *mapping = Py_None;
	int tables = 0, slots = 0, shapes = 0, optimizer = 0;
	unsigned long long number = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOOpppp:restore", names, source,
					 &function, &mapping, &step, &tables, &slots, &shapes,
					 &optimizer))
		return -1;
	if (step != Py_None && whole_read(step, "step", UINT64_MAX, &number))
		return -1;
	set_function(&restoring->progress, function);
	/* The names stay those of a dict that nobody else changes. */
	*held = PyDict_Check(mapping) ? PyDict_Copy(mapping) : Py_NewRef(mapping);
	restoring->report = EMBENG_INIT(embeng_restore_report);
	restoring->options.size = sizeof(restoring->options);
	restoring->options.report = &restoring->report;
	restoring->options.progress = core_progress;
	restoring->options.progress_arg = &restoring->progress;
	restoring->options.flags = (tables ? EMBENG_RESTORE_MISSING_TABLES : 0) |
				   (slots ? EMBENG_RESTORE_MISSING_SLOTS : 0) |
				   (shapes ? EMBENG_RESTORE_OTHER_SHAPES : 0) |
				   (optimizer ? EMBENG_RESTORE_OTHER_OPTIMIZER : 0) |
				   (step != Py_None ? EMBENG_RESTORE_STEP : 0);
	restoring->options.step = number;
	return *held ? read_names(*held, restoring) : -1;
}

/* Tables and slots that a checkpoint lacks have the same errno as a folder without one. */
static bool has_index(const char *folder)
{
	PyObject *path = PyBytes_FromFormat("%s/index.json", folder);
	bool found = path && !access(PyBytes_AsString(path), F_OK);

	Py_XDECREF(path);
	PyErr_Clear();
	return found;
}

static int restore_folder(struct engine_object *engine, struct restoring *restoring,
			  PyObject *source)
{
	const char *path;
	PyObject *bytes = encode_path(source, &path);
	int ret;

	if (!bytes)
		return -1;
	begin_work(&restoring->progress);
	ret = embeng_restore(engine->handle, path, &restoring->options);
	PyEval_RestoreThread(restoring->progress.thread);
	if (ret && !restoring->progress.failed)
		core_fail_opening(engine->state, ret == -ENOENT && has_index(path) ? 0 : ret);
	Py_DECREF(bytes);
	return ret;
}

static int restore_file(struct engine_object *engine, struct restoring *restoring, PyObject *source)
{
	struct stream_call call = {.progress = &restoring->progress,
				   .file = source,
				   .method = engine->state->readinto};
	struct embeng_reader from = EMBENG_INIT(embeng_reader, .read = stream_read, .arg = &call,
						.flags = EMBENG_READER_GOES_ON);
	int ret;

	begin_work(&restoring->progress);
	ret = embeng_restore_stream(engine->handle, &from, &restoring->options);
	return end_work(engine->state, &restoring->progress, ret);
}

static PyObject *describe_restore(const struct embeng_restore_report *r)
{
	return Py_BuildValue(
		"{snsnsnsnsKsKsKsnsnss}", "tables", (Py_ssize_t)r->tables, "tables_left",
		(Py_ssize_t)r->tables_left, "slots", (Py_ssize_t)r->slots, "slots_left",
		(Py_ssize_t)r->slots_left, "rows", (unsigned long long)r->rows, "rows_left",
		(unsigned long long)r->rows_left, "rows_unused", (unsigned long long)r->rows_unused,
		"settings", (Py_ssize_t)r->settings, "not_finite", (Py_ssize_t)r->not_finite,
		"text", r->text);
}

static PyObject *restore_engine(PyObject *self, PyObject *args, PyObject *kwargs)
{
	struct engine_object *engine = (struct engine_object *)self;
	struct restoring restoring = {0};
	struct open_work work;
	PyObject *source, *held = NULL;
	int ret = read_restoring(args, kwargs, &restoring, &source, &held);

	ret = ret ? ret : engine_enter(engine);
	if (!ret) {
		open_work_begin(&work, engine->open);
		ret = PyObject_HasAttr(source, engine->state->readinto)
			      ? restore_file(engine, &restoring, source)
			      : restore_folder(engine, &restoring, source);
		open_work_end(&work);
		engine_leave(engine);
	}
	PyMem_Free(restoring.names);
	Py_XDECREF(held);
	return ret ? NULL : describe_restore(&restoring.report);
}

PyMethodDef checkpoint_methods[] = {
	{"_save", KEYWORDS(save_engine), METH_VARARGS | METH_KEYWORDS,
	 PyDoc_STR("_save($self, target, progress=None, shard_bytes=0, "
		   "program_state=None, not_finite=False, delta=False, keep=0)\n--\n\n"
		   "Save tables, slots and the step count into a folder or a file object.")},
	{"_restore", KEYWORDS(restore_engine), METH_VARARGS | METH_KEYWORDS,
	 PyDoc_STR("_restore($self, source, progress=None, names=None, step=None, "
		   "missing_tables=False, missing_slots=False, other_shapes=False, "
		   "other_optimizer=False)\n--\n\n"
		   "Restore tables, slots and the step count from a folder or a file object.")},
	{0},
};

/* -- reading a checkpoint without an engine -------------------------------------------- */

struct checkpoint_object {
	PyObject_HEAD
	struct core_state *state;
	struct embeng_checkpoint *checkpoint;
};

static int open_folder(struct checkpoint_object *self, PyObject *path, PyObject *earlier,
		       PyObject *step)
{
	unsigned long long at = 0, back = 0;
	const char *text;
	PyObject *bytes;
	int ret;

	if ((step != Py_None && whole_read(step, "step", UINT64_MAX, &at)) ||
	    (earlier && whole_read(earlier, "back", UINT32_MAX, &back)))
		return -1;
	bytes = encode_path(path, &text);
	if (!bytes)
		return -1;
	Py_BEGIN_ALLOW_THREADS
	ret = step != Py_None ? embeng_checkpoint_open_step(text, at, &self->checkpoint, NULL)
			      : embeng_checkpoint_open_earlier(text, back, &self->checkpoint, NULL);
	Py_END_ALLOW_THREADS
	Py_DECREF(bytes);
	if (ret)
		core_fail_opening(self->state, ret);
	return ret ? -1 : 0;
}

static int open_file(struct checkpoint_object *self, PyObject *file)
{
	struct progress_call progress = {0};
	struct stream_call call = {
		.progress = &progress, .file = file, .method = self->state->readinto};
	struct embeng_reader from = EMBENG_INIT(embeng_reader, .read = stream_read, .arg = &call,
						.flags = EMBENG_READER_GOES_ON);
	int ret;

	begin_work(&progress);
	ret = embeng_checkpoint_open_stream(&from, core_progress, &progress, &self->checkpoint,
					    NULL);
	return end_work(self->state, &progress, ret);
}

static PyObject *make_checkpoint(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"source", "back", "step", NULL};
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	struct checkpoint_object *self;
	PyObject *source, *back = NULL, *step = Py_None;
	int ret;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO:Checkpoint", names, &source, &back,
					 &step))
		return NULL;
	self = (struct checkpoint_object *)alloc(type, 0);
	if (!self)
		return NULL;
	self->state = core_state_of(type);
	ret = PyObject_HasAttr(source, self->state->readinto)
		      ? open_file(self, source)
		      : open_folder(self, source, back, step);
	if (ret)
		Py_CLEAR(self);
	return (PyObject *)self;
}

static void free_checkpoint(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	embeng_checkpoint_close(((struct checkpoint_object *)object)->checkpoint);
	release(object);
	Py_DECREF(type);
}

static PyObject *describe_checkpoint(PyObject *object, PyObject *unused)
{
	struct checkpoint_object *self = (struct checkpoint_object *)object;
	struct embeng_checkpoint_info info = EMBENG_INIT(embeng_checkpoint_info);
	PyObject *model = model_describe_all(embeng_checkpoint_model(self->checkpoint));

	(void)unused;
	if (!model)
		return NULL;
	embeng_checkpoint_info(self->checkpoint, &info);
	return Py_BuildValue("{sKsKsnsnsKsKszsIsN}", "step", (unsigned long long)info.step,
			     "model_hash", (unsigned long long)info.model_hash, "table_count",
			     (Py_ssize_t)info.table_count, "file_count",
			     (Py_ssize_t)info.file_count, "bytes", (unsigned long long)info.bytes,
			     "chunk_count", (unsigned long long)info.chunk_count, "program_state",
			     info.program_state, "deltas", info.deltas, "model", model);
}

struct reading {
	struct checkpoint_object *self;
	int table;
	const char *slot;
	int64_t first, count, width;
	struct array data;
	struct row_piece piece;
};

static int read_piece(void *arg, int64_t timeout_ns)
{
	struct reading *reading = arg;
	float *data = (float *)reading->data.data + reading->piece.at * reading->width;

	(void)timeout_ns;
	return embeng_checkpoint_read(reading->self->checkpoint, reading->table, reading->slot,
				      reading->first + reading->piece.at,
				      (size_t)reading->piece.length, data);
}

static int begin_reading(struct reading *reading, const char *table, PyObject *out)
{
	const struct embeng_model *model = embeng_checkpoint_model(reading->self->checkpoint);
	const struct part part = {NULL, "out"};

	reading->table = embeng_model_table(model, table);
	if (reading->table < 0) {
		core_fail_with(reading->self->state, -ENOENT, "the checkpoint has no table '%s'",
			       table);
		return -1;
	}
	reading->width = embeng_model_slot_width(model, reading->table, reading->slot);
	if (reading->width <= 0) {
		core_fail(reading->self->state);
		return -1;
	}
	if (array_get_output(reading->self->state, out, &part, &reading->data))
		return -1;
	if (!array_is_contiguous(&reading->data) || reading->data.count % (size_t)reading->width)
		return part_fail(PyExc_ValueError, &part,
				 "give rows of %lld that follow each other",
				 (long long)reading->width);
	reading->count = (int64_t)(reading->data.count / (size_t)reading->width);
	return 0;
}

static PyObject *read_checkpoint(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"table", "out", "slot", "first", NULL};
	struct reading reading = {.self = (struct checkpoint_object *)object};
	const char *table;
	long long first = 0;
	PyObject *out;
	int ret;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO|zL:read", names, &table, &out,
					 &reading.slot, &first))
		return NULL;
	reading.first = first;
	ret = begin_reading(&reading, table, out) ||
	      row_pieces_run(reading.self->state, read_piece, &reading, &reading.piece,
			     reading.count, row_piece_most(reading.width));
	array_put(&reading.data);
	return ret ? NULL : Py_NewRef(out);
}

static PyObject *verify_checkpoint(PyObject *object, PyObject *function)
{
	struct checkpoint_object *self = (struct checkpoint_object *)object;
	struct progress_call progress = {0};
	int ret;

	set_function(&progress, function);
	begin_work(&progress);
	ret = embeng_checkpoint_verify(self->checkpoint, core_progress, &progress);
	return end_work(self->state, &progress, ret) ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef reader_methods[] = {
	{"describe", describe_checkpoint, METH_NOARGS,
	 PyDoc_STR("describe($self, /)\n--\n\n"
		   "Return what the checkpoint is of.")},
	{"read", KEYWORDS(read_checkpoint), METH_VARARGS | METH_KEYWORDS,
	 PyDoc_STR("read($self, table, out, slot=None, first=0)\n--\n\n"
		   "Copy rows of a table or slot into an array, which is returned.")},
	{"verify", verify_checkpoint, METH_O,
	 PyDoc_STR("verify($self, progress, /)\n--\n\n"
		   "Read and check everything; the argument is told about progress, or None.")},
	{0},
};

static PyType_Slot checkpoint_slots[] = {
	{Py_tp_new, make_checkpoint},
	{Py_tp_dealloc, free_checkpoint},
	{Py_tp_methods, reader_methods},
	{Py_tp_doc, (void *)PyDoc_STR("A checkpoint that is open for reading.")},
	{0},
};

PyType_Spec checkpoint_spec = {
	.name = "embeng._core.Checkpoint",
	.basicsize = sizeof(struct checkpoint_object),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = checkpoint_slots,
};
