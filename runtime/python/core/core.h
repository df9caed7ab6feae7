/* SPDX-License-Identifier: MIT */
/*
 * The files of embeng._core share this: the module's state, arrays of the program, errors, and the
 * objects Model and Engine.
 *
 * Functions that return an object or an int return NULL or -1 with a Python exception set. Unless a
 * comment says otherwise they are called with the interpreter's lock held.
 */
#ifndef EMBENG_PYTHON_CORE_H
#define EMBENG_PYTHON_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "embeng.h"
#include "embeng/group.h"
#include "embeng/partition.h"
#include "handles.h"

struct engine_object;

/* Objects of the module that all of its types use. They live as long as it does. */
struct core_state {
	PyObject *errors;	  /* dict: errno to a subclass of EmbengError */
	PyObject *error;	  /* EmbengError */
	PyObject *not_found;	  /* the class for a checkpoint's folder that is not there */
	PyObject *bags_type;	  /* embeng.Ragged */
	PyObject *sparse_type;	  /* embeng.Sparse */
	PyObject *keyed_type;	  /* embeng.Keyed */
	PyObject *as_ids;	  /* makes an array of ids of anything else */
	PyObject *as_floats;	  /* likewise of f32 numbers */
	PyObject *as_buffer;	  /* numpy's view of an object with __array_interface__, or None */
	PyObject *empty;	  /* empty(shape): a new f32 array */
	PyObject *empty_ids;	  /* likewise i64 */
	PyObject *dlpack;	  /* "__dlpack__" */
	PyObject *dlpack_device;  /* "__dlpack_device__" */
	PyObject *dlpack_version; /* keywords of __dlpack__() */
	PyObject *write, *readinto; /* names of methods */
	PyTypeObject *model_type;
	PyTypeObject *engine_type;
	PyTypeObject *checkpoint_type;
	PyTypeObject *table_map_type;
	PyTypeObject *transport_type;
	PyTypeObject *relay_type;
	PyTypeObject *group_type;
};

/* The state of the module of which @type or one of its bases is. */
struct core_state *core_state_of(PyTypeObject *type);

/* -- arrays.c: memory of the program --------------------------------------- */

/* The name of an array in messages: "feature NAME: PART", or the part alone. */
struct part {
	PyObject *feature; /* its name, or NULL */
	const char *name;
};

/* Raises an exception that begins with the part. Return: -1. */
int part_fail(PyObject *type, const struct part *part, const char *format, ...);

enum array_type { ARRAY_OTHER, ARRAY_F32, ARRAY_I32, ARRAY_I64 };
#define ARRAY_MAX_RANK 8

/*
 * An array of the program, held so that it is neither freed nor resized. @shape is in elements,
 * @strides in bytes.
 */
struct array {
	PyObject *owner; /* NULL: there is none */
	Py_buffer view;
	bool has_view;
	void *data;
	enum array_type type;
	int rank;
	size_t count;
	int64_t shape[ARRAY_MAX_RANK];
	int64_t strides[ARRAY_MAX_RANK];
};

/*
 * array_get() - hold the memory of an object
 * @part: how messages call it
 *
 * Takes the buffer protocol, __dlpack__ of memory of the processor, or __array_interface__. Return: 1;
 * 0 if the object has none of them or another type of element; -1 with an exception.
 */
int array_get(struct core_state *state, PyObject *object, bool writable, const struct part *part,
	      struct array *array);
/* Ids, or 32-bit floats, one after another. Anything else is converted, which copies it. */
int array_get_ids(struct core_state *state, PyObject *object, const struct part *part,
		  struct array *array);
int array_get_floats(struct core_state *state, PyObject *object, const struct part *part,
		     struct array *array);
/* f32 memory to write into; only the first stride may be longer than its row. */
int array_get_output(struct core_state *state, PyObject *object, const struct part *part,
		     struct array *array);
void array_put(struct array *array);
bool array_is_contiguous(const struct array *array);

static inline enum embeng_id_type array_id_type(const struct array *array)
{
	return array->type == ARRAY_I32 ? EMBENG_I32 : EMBENG_I64;
}

/* A new array of numpy. */
PyObject *array_new(PyObject *empty, const int64_t *shape, int rank);

/* -- error.c ----------------------------------------------------------------- */

/* Raises the exception of the calling thread's last error, or of @error. Return: NULL. */
PyObject *core_fail(struct core_state *state);
PyObject *core_fail_of(struct core_state *state, const struct embeng_error *error);
/* Likewise of a call of a group, where EBADMSG is about a message and not about a checkpoint. */
PyObject *core_fail_group(struct core_state *state);
/* Has the next core_fail() of this thread raise this one. NULL: none. */
void core_keep_error(const struct embeng_error *error);
/* Likewise of a call that makes tables, for which there may be no memory (ENOSPC, too). */
PyObject *core_fail_making(struct core_state *state, int code);
/* Raises one with a code and a sentence of this module. */
PyObject *core_fail_with(struct core_state *state, int code, const char *format, ...);
/* Likewise, of a call that opens a checkpoint, which may not be there. Return: NULL. */
PyObject *core_fail_opening(struct core_state *state, int code);

/* -- wait.c: calls that may wait ------------------------------------------- */

/*
 * core_wait() - run a call of the library that may wait for the program
 * @call: the call, which is made without the interpreter's lock, with a timeout in nanoseconds
 * @timeout: seconds as a number, or None: no limit
 *
 * Signals are looked at between waits of 100 ms. Return: what @call returned, or 1 with an exception
 * of a signal handler.
 */
int core_wait(int (*call)(void *arg, int64_t timeout_ns), void *arg, PyObject *timeout);

/*
 * Likewise, of a call that copies or computes for long: it is asked for signals every 50 ms, too.
 * Their handlers may not use the engine then.
 */
int core_compute(struct engine_object *engine, int (*call)(void *arg, int64_t timeout_ns),
		 void *arg, PyObject *timeout);

/* The end of several waits that share a timeout. */
struct deadline {
	int64_t limit, end; /* nanoseconds: of the timeout, or -1; on the monotonic clock */
};

/* Return: 0, or -1 with an exception. */
int deadline_read(PyObject *timeout, struct deadline *deadline);
/* Likewise as core_wait(). */
int core_wait_until(int (*call)(void *arg, int64_t timeout_ns), void *arg,
		    const struct deadline *deadline);

/* Rows that one call moves of many: from @at on. */
struct row_piece {
	int64_t at, length;
};

/* Rows of 16 MiB, and at least one. */
int64_t row_piece_most(int64_t width);
/*
 * Makes @call for pieces of @count rows, @most at a time, with @piece saying which, and looks at
 * signals in between. Return: 0, or -1 with an exception.
 */
int row_pieces_run(struct core_state *state, int (*call)(void *arg, int64_t timeout_ns), void *arg,
		   struct row_piece *piece, int64_t count, int64_t most);

/* Progress of long work, which ends when a signal handler or the program's function raises. */
struct progress_call {
	PyObject *function; /* NULL: none */
	PyThreadState *thread;
	bool failed; /* an exception is set */
};
int core_progress(void *arg, const struct embeng_progress *progress);

/* -- arguments.c: arguments of methods ----------------------------------------- */

/* A member of a dict as a new reference; NULL, with an exception or without one. */
PyObject *dict_find(PyObject *dict, PyObject *key);
/* The UTF-8 of a name, which lives as long as the object. @what is how messages call it. */
const char *text_read(PyObject *object, const char *what);
/* A whole number of [0, @most]. Return: 0, -1. */
int whole_read(PyObject *object, const char *what, unsigned long long most, unsigned long long *to);

/* Arguments of a fast call, by position or by name. */
struct arguments {
	const char *function;
	const char *const *names;
	size_t count, required;
};

int arguments_parse(const struct arguments *spec, PyObject *const *args, Py_ssize_t nargs,
		    PyObject *kwnames, PyObject **out);

/* -- settings.c, optimizers.c: structures of the library as dictionaries -------------------- */

/* A description of one kind of structure; structures.c has them. */
struct structure;
extern const struct structure structure_table, structure_feature, structure_engine;
extern const struct structure structure_plan, structure_device, structure_quantization;
extern const struct structure structure_part;

/*
 * settings_hold() - a copy of a dict, with its dicts copied and its lists as tuples
 *
 * Reading settings calls methods of the program's objects (__index__, __float__), which may change the
 * program's own dict. So the functions below are given copies, which also keep the texts that
 * structures point to. Return: a new reference; to the object itself where it is no dict.
 */
PyObject *settings_hold(PyObject *object);
int settings_read(const struct structure *structure, PyObject *dict, void *to);
PyObject *settings_describe(const struct structure *structure, const void *from);
int settings_read_optimizer(struct core_state *state, PyObject *dict,
			    struct embeng_optimizer *optimizer, struct embeng_dynamic **dynamic);
PyObject *settings_describe_optimizer(const struct embeng_optimizer *optimizer);
int settings_read_initializer(PyObject *object, struct embeng_initializer *initializer);
PyObject *settings_describe_initializer(const struct embeng_initializer *initializer);
int settings_read_schedule(PyObject *dict, struct embeng_schedule *schedule, uint64_t **boundaries,
			   float **values);
/* Sets a key to a new reference, which it takes. */
int settings_set(PyObject *dict, const char *key, PyObject *value);

/* -- model.c ----------------------------------------------------------------- */

struct model_object {
	PyObject_HEAD
	struct core_state *state;
	struct embeng_model *model;
};

extern PyType_Spec model_spec;
/* A model as dictionaries, with the defaults filled in. */
PyObject *model_describe_all(const struct embeng_model *model);

/* -- engine.c ---------------------------------------------------------------- */

enum input_form { INPUT_DENSE, INPUT_BAGS, INPUT_SPARSE };

struct input {
	struct array ids, bounds, weights;
	enum input_form form;
	struct embeng_bags bags;	    /* with INPUT_BAGS */
	int64_t shape[EMBENG_MAX_RANK + 1]; /* with INPUT_SPARSE, whose @bounds are indices */
	size_t rank;
	size_t samples;
	bool given;    /* the program's dict has the feature */
	bool sequence; /* the output of a sample is max_sequence_length rows */
};

struct output {
	struct array array;
	PyObject *object;
};

/* The inputs and outputs of one call, by feature. It is kept for the next call. */
struct call {
	struct call *next;
	struct embeng_batch *batches[2]; /* by enum embeng_mode */
	uint32_t replicas[2];
	size_t feature_count;
	struct input *inputs;
	struct output *outputs;
	struct embeng_output *places;
	const float **gradients;
	size_t *elements;
	bool is_keyed;		    /* the members below hold the arrays of all features */
	struct input keyed;	    /* sequence: features have numbers of samples of their own */
	struct output keyed_output; /* activations or gradients */
	float *scratch;		    /* gradients of a feature after another */
};

struct engine_feature {
	PyObject *name;
	int table;
	int64_t dim, sequence_length;
	int64_t rows; /* rows of the table */
	bool strict;  /* ids outside of the table are refused */
	bool whole;   /* its batches have a shape or a limit, and are not cut into pieces */
	PyObject *table_name;
};

/* Names and sizes of tables and features. It changes only while no call is under way. */
struct engine_layout {
	size_t feature_count;
	struct engine_feature *features;
	PyObject *tables;  /* dict: name to index */
	PyObject *numbers; /* likewise of features */
};

struct engine_object {
	PyObject_HEAD
	struct core_state *state;
	struct open_engine *open; /* its uses, and when it is closed */
	struct embeng *handle;	  /* open->handle */
	struct engine_layout layout;
	struct call *calls;	/* kept for the next ones; open->lock guards them */
	bool collective;	/* its tables lie on several hosts, which make the same calls */
	unsigned long *viewers; /* [replicas] thread that has the replica's view, or 0 */
	uint32_t replicas;
};

extern PyType_Spec engine_spec;

/* Begins a use of the handle, which stays open until engine_leave(). Return: 0, -1. */
int engine_enter(struct engine_object *engine);
void engine_leave(struct engine_object *engine);
/* Ends a map, which open_engine_keep() began within a use. */
void engine_let_go(struct engine_object *engine);
/* Index of a table by its name. Return: index, or -1 with an exception. */
int engine_table(struct engine_object *engine, PyObject *name);
/* Puts the methods of all files together, before the type is made. */
void engine_gather_methods(void);
struct call *engine_call_get(struct engine_object *engine);
void engine_call_put(struct engine_object *engine, struct call *call);
struct embeng_batch *engine_batch(struct engine_object *engine, struct call *call,
				  enum embeng_mode mode, uint32_t replica);

/* -- inputs.c ---------------------------------------------------------------- */

/* Fills the call's batch from a dict of feature names; those that are left out have no samples. */
int inputs_fill(struct engine_object *engine, struct call *call, struct embeng_batch *batch,
		PyObject *features);
/* Raises the exception of a key that is no feature's. @what is how messages call @dict. Return: -1. */
int inputs_fail_unknown(struct engine_object *engine, const char *what, PyObject *dict);
/* A feature without samples, in a batch that has others. */
int inputs_give_nothing(struct engine_object *engine, struct call *call, struct embeng_batch *batch,
			int feature);
/* Rates of a dict from names to numbers. rates_put() also after an error. */
struct rates {
	PyObject *held; /* a dict that has the names of @items */
	struct embeng_rate *items;
	size_t count;
};

int rates_read(PyObject *dict, struct rates *rates);
void rates_put(struct rates *rates);

/* -- update.c ---------------------------------------------------------------- */

/* Holds gradients by feature in the call, behind its inputs. */
int gradients_read(struct engine_object *engine, struct call *call, PyObject *gradients);
/* The factor of all gradients; none where @object is NULL or None. */
int multiplier_read(PyObject *object, struct embeng_gradients *gradients);

/* -- protocol.c -------------------------------------------------------------- */

/* Copies activations into a new array. */
PyObject *view_copy(struct core_state *state, const struct embeng_view *view);

/* -- keyed.c: bags of several features in one array ----------------------------- */

bool keyed_is(const struct engine_object *engine, PyObject *object);
int keyed_fill(struct engine_object *engine, struct call *call, struct embeng_batch *batch,
	       PyObject *tuple);
/* Places the activations in @out, or in a new array if that is NULL. */
int keyed_place(struct engine_object *engine, struct call *call, PyObject *out);
int keyed_read_gradients(struct engine_object *engine, struct call *call, PyObject *gradients);
void keyed_put(struct call *call);

/* -- pieces.c ---------------------------------------------------------------- */

/* Into how many pieces a lookup is cut whose inputs and outputs the call has; 1: it is not. */
size_t pieces_count(struct engine_object *engine, struct call *call);
/* Looks them up one after another, within one timeout. Return: 0, -1. */
int pieces_look_up(struct engine_object *engine, struct call *call, struct embeng_batch *batch,
		   size_t count, PyObject *timeout);

/* A function with keywords, in a table of methods. */
#define KEYWORDS(function) ((PyCFunction)(void (*)(void))(function))

/* -- methods of Engine ------------------------------------------------------- */

extern PyMethodDef lookup_methods[], update_methods[], protocol_methods[], rows_methods[];
extern PyMethodDef checkpoint_methods[], stats_methods[], partition_methods[];
extern PyMethodDef session_methods[];

/* -- other objects, and functions of the module ------------------------------ */

extern PyType_Spec checkpoint_spec, table_map_spec, transport_spec, relay_spec, group_spec;
PyObject *table_map_new(struct engine_object *engine, int table, const char *slot);

PyObject *xla_targets(PyObject *module, PyObject *unused);
/* xla_tensorflow.c: registers them with the XLA of the TensorFlow whose library @path is loaded. */
PyObject *xla_register(PyObject *module, PyObject *path);
PyObject *devices_list(PyObject *module, PyObject *unused);
PyObject *devices_describe(PyObject *module, PyObject *name);
/* transport.c: the transport of an object, which can be taken once. Return: 0, -1. */
int transport_take(struct core_state *state, PyObject *object, struct embeng_transport *to);
PyObject *transport_load(PyObject *module, PyObject *name);
PyObject *transport_threads(PyObject *module, PyObject *ranks);
PyObject *plan_compute(struct model_object *self, PyObject *options);

/* tensorflow.c: a library that TensorFlow has loaded, for dlsym() and dlclose(), or NULL with an exception. */
void *tensorflow_open(PyObject *path);
/*
 * tensorflow.c: registers the operators with the TensorFlow whose library @path the process has loaded.
 * Return: a tuple of their names.
 */
PyObject *tensorflow_register(PyObject *module, PyObject *path);

/* -- stream.c: file objects of the program ---------------------------------- */

struct stream_call {
	struct progress_call *progress; /* has the thread's state */
	PyObject *file, *method;	/* write or readinto */
};

int64_t stream_write(void *arg, const void *data, size_t bytes);
int64_t stream_read(void *arg, void *data, size_t bytes);

#endif
