// SPDX-License-Identifier: MIT
/*
 * The type Group: a group of hosts that exchange bytes in lock-step.
 *
 * A wait is cut into pieces of 100 ms, between which handlers of signals run, and a close() by another
 * thread is seen. open_group.h says when a group is left.
 */
#include "group.h"

#include <errno.h>
#include <string.h>

#define LARGE_BYTES (1 << 20) /* copied without the interpreter's lock */

static int group_enter(struct group_object *group)
{
	if (open_group_enter(group->open))
		return 0;
	PyErr_SetString(PyExc_ValueError, "the group is closed");
	return -1;
}

static void group_leave(struct group_object *group)
{
	Py_BEGIN_ALLOW_THREADS
	open_group_leave(group->open);
	Py_END_ALLOW_THREADS
}

/* -- opening and closing ---------------------------------------------------------------- */

int group_lend(struct group_object *group)
{
	const int ret = open_group_lend(group->open);

	if (ret == -ESHUTDOWN)
		PyErr_SetString(PyExc_ValueError, "the group is closed");
	else if (ret)
		core_fail_with(group->state, ret, "another engine has this group; close it first");
	return ret ? -1 : 0;
}

struct opening {
	struct embeng_transport transport;
	struct embeng_group_options options;
	struct embeng_group *group;
	PyThreadState *thread;
	bool failed; /* an exception of a signal's handler is set */
};

static int ask_opening(void *arg)
{
	struct opening *opening = arg;

	PyEval_RestoreThread(opening->thread);
	opening->failed = PyErr_CheckSignals() != 0;
	opening->thread = PyEval_SaveThread();
	return opening->failed;
}

static int open_group(struct group_object *self, struct opening *opening)
{
	int ret;

	opening->thread = PyEval_SaveThread();
	embeng_ask(ask_opening, opening);
	ret = embeng_group_open(&opening->transport, &opening->options, &opening->group, NULL);
	embeng_ask(NULL, NULL);
	PyEval_RestoreThread(opening->thread);
	if (ret) {
		if (!opening->failed)
			core_fail_group(self->state);
		return -1;
	}
	self->open = open_group_new(opening->group);
	if (!self->open) {
		embeng_group_close(opening->group);
		PyErr_NoMemory();
		return -1;
	}
	return 0;
}

/* Seconds of the program as nanoseconds; None is 0, a default. Return: 0, -1. */
static int read_nanoseconds(PyObject *seconds, const char *what, uint64_t *to)
{
	struct deadline deadline;

	*to = 0;
	if (deadline_read(seconds, &deadline))
		return -1;
	if (!deadline.limit) {
		PyErr_Format(PyExc_ValueError, "%s: give more than 0 seconds, or None", what);
		return -1;
	}
	if (deadline.limit > 0)
		*to = (uint64_t)deadline.limit;
	return 0;
}

static PyObject *make_group(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"transport", "deadline", "piece_bytes", NULL};
	struct core_state *state = core_state_of(type);
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	struct opening opening = {.options = EMBENG_INIT(embeng_group_options)};
	PyObject *transport, *deadline = Py_None, *piece = NULL;
	struct group_object *self;
	unsigned long long bytes = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO:Group", names, &transport, &deadline,
					 &piece) ||
	    read_nanoseconds(deadline, "deadline", &opening.options.deadline_ns) ||
	    (piece && whole_read(piece, "piece_bytes", UINT64_MAX, &bytes)))
		return NULL;
	opening.options.piece_bytes = bytes;
	self = (struct group_object *)alloc(type, 0);
	if (!self)
		return NULL;
	self->state = state;
	if (transport_take(state, transport, &opening.transport) || open_group(self, &opening))
		Py_CLEAR(self);
	return (PyObject *)self;
}

static void free_group(PyObject *object)
{
	struct group_object *self = (struct group_object *)object;
	PyTypeObject *type = Py_TYPE(object);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	if (self->open) {
		open_group_close(self->open);
		open_group_put(self->open);
	}
	release(object);
	Py_DECREF(type);
}

static PyObject *close_group(PyObject *object, PyObject *unused)
{
	(void)unused;
	Py_BEGIN_ALLOW_THREADS
	open_group_close(((struct group_object *)object)->open);
	Py_END_ALLOW_THREADS
	Py_RETURN_NONE;
}

/* -- exchanges ------------------------------------------------------------------------------ */

/* The program's bytes for each host, held. */
struct parcels {
	Py_buffer *views;
	struct embeng_bytes *bytes;
	size_t count;
};

static void put_parcels(struct parcels *parcels)
{
	for (size_t k = 0; k < parcels->count; k++)
		PyBuffer_Release(&parcels->views[k]);
	PyMem_Free(parcels->views);
	PyMem_Free(parcels->bytes);
}

static int hold_parcel(struct parcels *parcels, PyObject *given)
{
	Py_buffer *view = &parcels->views[parcels->count];

	if (given == Py_None) {
		parcels->count++;
		return 0;
	}
	if (PyObject_GetBuffer(given, view, PyBUF_SIMPLE)) {
		PyErr_Format(PyExc_TypeError,
			     "send: host %zu gets %R; give bytes, a contiguous array or None",
			     parcels->count, given);
		return -1;
	}
	parcels->bytes[parcels->count++] = (struct embeng_bytes){view->buf, (uint64_t)view->len};
	return 0;
}

static int hold_parcels(struct group_object *self, PyObject *given, struct parcels *parcels)
{
	const size_t ranks = embeng_group_ranks(self->open->group);
	PyObject *list = PySequence_List(given);
	int ret = list ? 0 : -1;

	if (list && (size_t)PyList_Size(list) != ranks) {
		core_fail_with(self->state, -EINVAL,
			       "send: it has %zd items; give one for each of the %zu hosts",
			       PyList_Size(list), ranks);
		ret = -1;
	}
	parcels->views = PyMem_Calloc(ranks, sizeof(*parcels->views));
	parcels->bytes = PyMem_Calloc(ranks, sizeof(*parcels->bytes));
	if (!ret && (!parcels->views || !parcels->bytes)) {
		PyErr_NoMemory();
		ret = -1;
	}
	for (size_t k = 0; k < ranks && !ret; k++)
		ret = hold_parcel(parcels, PyList_GetItem(list, (Py_ssize_t)k));
	Py_XDECREF(list);
	return ret;
}

static const char *const begin_names[] = {"phase",    "step",	 "send",   "model", "rates",
					  "replicas", "channel", "status", "text",  "timeout"};
enum { PHASE, STEP, SEND, MODEL, RATES, REPLICAS, CHANNEL, STATUS, TEXT, TIMEOUT, BEGIN_COUNT };

/* Whole numbers of the exchange, in the order of their names. */
static int read_numbers(PyObject *const *given, struct embeng_exchange *x)
{
	static const unsigned long long most[BEGIN_COUNT] = {[STEP] = UINT64_MAX,
							     [MODEL] = UINT64_MAX,
							     [RATES] = UINT64_MAX,
							     [REPLICAS] = UINT32_MAX,
							     [CHANNEL] = UINT32_MAX};
	unsigned long long numbers[BEGIN_COUNT] = {0};

	for (size_t k = 0; k < BEGIN_COUNT; k++)
		if (most[k] && given[k] &&
		    whole_read(given[k], begin_names[k], most[k], &numbers[k]))
			return -1;
	x->step = numbers[STEP];
	x->model = numbers[MODEL];
	x->rates = numbers[RATES];
	x->replicas = (uint32_t)numbers[REPLICAS];
	x->channel = (uint32_t)numbers[CHANNEL];
	return 0;
}

/* A status is the negative errno of an exception's code. */
static int read_status(PyObject *given, struct embeng_exchange *x)
{
	const long status = PyLong_AsLong(given);

	if (status == -1 && PyErr_Occurred())
		return -1;
	if (status > 0 || status < -4095) {
		PyErr_Format(PyExc_ValueError,
			     "status is %ld; give 0, or a negative errno such as an error's code",
			     status);
		return -1;
	}
	x->status = (int)status;
	return 0;
}

static int read_exchange(PyObject *const *given, struct embeng_exchange *x)
{
	x->phase = text_read(given[PHASE], "phase");
	if (!x->phase || read_numbers(given, x) ||
	    (given[STATUS] && read_status(given[STATUS], x)) ||
	    read_nanoseconds(given[TIMEOUT], "timeout", &x->timeout_ns))
		return -1;
	if (given[TEXT] && given[TEXT] != Py_None) {
		x->text = text_read(given[TEXT], "text");
		if (!x->text)
			return -1;
	}
	return 0;
}

static int start_exchange(struct group_object *self, PyObject *const *given,
			  struct embeng_exchange *x)
{
	struct parcels parcels = {0};
	int ret = read_exchange(given, x), code = 0;

	if (!ret && open_group_is_lent(self->open)) {
		core_fail_with(self->state, -EBUSY,
			       "an engine has this group; make exchanges when it is closed");
		ret = -1;
	}
	if (!ret && given[SEND] && given[SEND] != Py_None)
		ret = hold_parcels(self, given[SEND], &parcels);
	if (!ret && x->channel < EMBENG_GROUP_CHANNELS &&
	    !open_group_begin_taking(self->open, x->channel)) {
		core_fail_with(self->state, -EBUSY, "channel %u: another thread has it",
			       x->channel);
		ret = -1;
	}
	if (!ret) {
		x->send = parcels.bytes;
		Py_BEGIN_ALLOW_THREADS
		code = embeng_group_begin(self->open->group, x, NULL);
		Py_END_ALLOW_THREADS
		if (x->channel < EMBENG_GROUP_CHANNELS)
			open_group_end_taking(self->open, x->channel);
	}
	put_parcels(&parcels);
	if (code)
		core_fail_group(self->state);
	return ret || code ? -1 : 0;
}

struct exchange_wait {
	struct open_group *open;
	uint32_t channel;
};

static int wait_for_exchange(void *arg, int64_t timeout_ns)
{
	const struct exchange_wait *wait = arg;
	int ret = embeng_group_wait(wait->open->group, wait->channel, timeout_ns, NULL);

	return ret == -ETIME && open_group_is_closed(wait->open) ? -ECANCELED : ret;
}

static PyObject *copy_bytes(const struct embeng_bytes *from)
{
	PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)from->bytes);
	char *to = bytes ? PyBytes_AsString(bytes) : NULL;

	if (!to || !from->bytes)
		return bytes;
	if (from->bytes < LARGE_BYTES) {
		memcpy(to, from->data, from->bytes);
		return bytes;
	}
	Py_BEGIN_ALLOW_THREADS
	memcpy(to, from->data, from->bytes);
	Py_END_ALLOW_THREADS
	return bytes;
}

/* Called while the channel is being taken. */
static PyObject *take_exchange(struct group_object *self, uint32_t channel)
{
	const size_t ranks = embeng_group_ranks(self->open->group);
	struct embeng_bytes *received = PyMem_Calloc(ranks, sizeof(*received));
	PyObject *list;
	int ret;

	if (!received)
		return PyErr_NoMemory();
	ret = embeng_group_end(self->open->group, channel, received, NULL);
	list = ret ? core_fail_group(self->state) : PyList_New((Py_ssize_t)ranks);
	for (size_t k = 0; list && k < ranks; k++) {
		PyObject *bytes = copy_bytes(&received[k]);

		if (!bytes || PyList_SetItem(list, (Py_ssize_t)k, bytes))
			Py_CLEAR(list);
	}
	PyMem_Free(received);
	return list;
}

static PyObject *finish_exchange(struct group_object *self, uint32_t channel)
{
	struct exchange_wait wait = {self->open, channel};
	PyObject *list = NULL;
	int ret = core_wait(wait_for_exchange, &wait, NULL);

	if (ret == 1)
		return NULL;
	if (ret == -ECANCELED) {
		PyErr_SetString(PyExc_ValueError, "the group is closed");
		return NULL;
	}
	/* Where no exchange was begun, end() has the better sentence: the group may be dead. */
	if (channel >= EMBENG_GROUP_CHANNELS)
		return core_fail_group(self->state);
	if (!open_group_begin_taking(self->open, channel))
		return core_fail_with(self->state, -EBUSY, "channel %u: another thread has it",
				      channel);
	list = take_exchange(self, channel);
	open_group_end_taking(self->open, channel);
	return list;
}

static PyObject *run_exchange(PyObject *object, const char *function, PyObject *const *args,
			      Py_ssize_t nargs, PyObject *kwnames, bool finish)
{
	const struct arguments spec = {function, begin_names, BEGIN_COUNT, 1};
	struct embeng_exchange x = EMBENG_INIT(embeng_exchange);
	struct group_object *self = (struct group_object *)object;
	PyObject *given[BEGIN_COUNT] = {0}, *result = NULL;

	if (arguments_parse(&spec, args, nargs, kwnames, given) || group_enter(self))
		return NULL;
	if (!start_exchange(self, given, &x))
		result = finish ? finish_exchange(self, x.channel) : Py_NewRef(Py_None);
	group_leave(self);
	return result;
}

static PyObject *begin_exchange(PyObject *object, PyObject *const *args, Py_ssize_t nargs,
				PyObject *kwnames)
{
	return run_exchange(object, "begin", args, nargs, kwnames, false);
}

static PyObject *make_exchange(PyObject *object, PyObject *const *args, Py_ssize_t nargs,
			       PyObject *kwnames)
{
	return run_exchange(object, "exchange", args, nargs, kwnames, true);
}

static PyObject *end_exchange(PyObject *object, PyObject *const *args, Py_ssize_t nargs,
			      PyObject *kwnames)
{
	static const char *const names[] = {"channel"};
	const struct arguments spec = {"end", names, 1, 0};
	struct group_object *self = (struct group_object *)object;
	PyObject *given = NULL, *result;
	unsigned long long channel = 0;

	if (arguments_parse(&spec, args, nargs, kwnames, &given) ||
	    (given && whole_read(given, "channel", UINT32_MAX, &channel)) || group_enter(self))
		return NULL;
	result = finish_exchange(self, (uint32_t)channel);
	group_leave(self);
	return result;
}

/* -- members ------------------------------------------------------------------------------ */

static PyObject *read_group_rank(PyObject *object, void *unused)
{
	struct group_object *self = (struct group_object *)object;
	PyObject *number;

	(void)unused;
	if (group_enter(self))
		return NULL;
	number = PyLong_FromUnsignedLong(embeng_group_rank(self->open->group));
	group_leave(self);
	return number;
}

static PyObject *read_group_ranks(PyObject *object, void *unused)
{
	struct group_object *self = (struct group_object *)object;
	PyObject *number;

	(void)unused;
	if (group_enter(self))
		return NULL;
	number = PyLong_FromUnsignedLong(embeng_group_ranks(self->open->group));
	group_leave(self);
	return number;
}

static PyObject *read_hosts(PyObject *object, void *unused)
{
	struct group_object *self = (struct group_object *)object;
	PyObject *names;

	(void)unused;
	if (group_enter(self))
		return NULL;
	names = PyTuple_New((Py_ssize_t)embeng_group_ranks(self->open->group));
	for (uint32_t k = 0; names && k < embeng_group_ranks(self->open->group); k++) {
		const char *name = embeng_group_host(self->open->group, k);
		PyObject *text = PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "replace");

		if (!text || PyTuple_SetItem(names, (Py_ssize_t)k, text))
			Py_CLEAR(names);
	}
	group_leave(self);
	return names;
}

static PyObject *is_group_closed(PyObject *object, void *unused)
{
	(void)unused;
	return PyBool_FromLong(open_group_is_closed(((struct group_object *)object)->open));
}

#define BEGIN_TEXT \
	"($self, /, phase, step=0, send=None, model=0, rates=0, replicas=0, channel=0, status=0, " \
	"text=None, timeout=None)\n--\n\n"

static PyMethodDef group_methods[] = {
	{"begin", KEYWORDS(begin_exchange), METH_FASTCALL | METH_KEYWORDS,
	 PyDoc_STR("begin" BEGIN_TEXT "Begin an exchange, and return at once.")},
	{"end", KEYWORDS(end_exchange), METH_FASTCALL | METH_KEYWORDS,
	 PyDoc_STR("end($self, /, channel=0)\n--\n\nWait for an exchange, and return what came.")},
	{"exchange", KEYWORDS(make_exchange), METH_FASTCALL | METH_KEYWORDS,
	 PyDoc_STR("exchange" BEGIN_TEXT "Begin an exchange, wait for it, return what came.")},
	{"close", close_group, METH_NOARGS,
	 PyDoc_STR("close($self, /)\n--\n\nLeave the group. A second call does nothing.")},
	{0},
};

static PyGetSetDef group_properties[] = {
	{"rank", read_group_rank, NULL, PyDoc_STR("The number of this host."), NULL},
	{"ranks", read_group_ranks, NULL, PyDoc_STR("How many hosts there are."), NULL},
	{"hosts", read_hosts, NULL, PyDoc_STR("The names of all hosts, by rank."), NULL},
	{"closed", is_group_closed, NULL, PyDoc_STR("Whether close() was called."), NULL},
	{0},
};

static PyType_Slot group_slots[] = {
	{Py_tp_new, make_group},
	{Py_tp_dealloc, free_group},
	{Py_tp_methods, group_methods},
	{Py_tp_getset, group_properties},
	{Py_tp_doc, (void *)PyDoc_STR("A group of hosts that exchange bytes in lock-step.")},
	{0},
};

PyType_Spec group_spec = {
	.name = "embeng._core.Group",
	.basicsize = sizeof(struct group_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.slots = group_slots,
};
