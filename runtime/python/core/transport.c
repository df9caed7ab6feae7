// SPDX-License-Identifier: MIT
/*
 * The types Transport and Relay. A Transport is one end of a group's messages, which a Group takes; a
 * Relay is one whose messages threads of Python carry.
 *
 * A Transport that no Group took is closed with its object. The functions of Relay wait without the
 * interpreter's lock.
 */
#include "core.h"

#include <errno.h>
#include <string.h>

#include "relay.h"

struct transport_object {
	PyObject_HEAD
	struct core_state *state;
	struct embeng_transport transport;
	bool taken;
};

struct relay_object {
	PyObject_HEAD
	struct core_state *state;
	struct relay *relay;
};

/* -- Transport --------------------------------------------------------------------------- */

static PyObject *make_transport(struct core_state *state, const struct embeng_transport *transport)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(state->transport_type, Py_tp_alloc);
	struct transport_object *self = (struct transport_object *)alloc(state->transport_type, 0);

	if (!self) {
		transport->close(transport->self);
		return NULL;
	}
	self->state = state;
	self->transport = *transport;
	return (PyObject *)self;
}

int transport_take(struct core_state *state, PyObject *object, struct embeng_transport *to)
{
	struct transport_object *self = (struct transport_object *)object;

	if (!PyObject_TypeCheck(object, state->transport_type)) {
		PyErr_Format(PyExc_TypeError, "transport: %R is no Transport and no name of one",
			     object);
		return -1;
	}
	if (self->taken) {
		core_fail_with(state, -EBUSY,
			       "transport: a group has had this one; each serves one group");
		return -1;
	}
	self->taken = true;
	*to = self->transport;
	return 0;
}

static void free_transport(PyObject *object)
{
	struct transport_object *self = (struct transport_object *)object;
	PyTypeObject *type = Py_TYPE(object);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	if (self->transport.close && !self->taken)
		self->transport.close(self->transport.self);
	release(object);
	Py_DECREF(type);
}

static PyObject *read_transport_rank(PyObject *object, void *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLong(((struct transport_object *)object)->transport.rank);
}

static PyObject *read_transport_ranks(PyObject *object, void *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLong(((struct transport_object *)object)->transport.ranks);
}

static PyObject *read_transport_name(PyObject *object, void *unused)
{
	const char *name = ((struct transport_object *)object)->transport.name;

	(void)unused;
	return PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "replace");
}

static PyGetSetDef transport_properties[] = {
	{"rank", read_transport_rank, NULL, PyDoc_STR("The number of this host."), NULL},
	{"ranks", read_transport_ranks, NULL, PyDoc_STR("How many hosts there are."), NULL},
	{"name", read_transport_name, NULL, PyDoc_STR("The name of this host."), NULL},
	{0},
};

static PyType_Slot transport_slots[] = {
	{Py_tp_dealloc, free_transport},
	{Py_tp_getset, transport_properties},
	{Py_tp_doc, (void *)PyDoc_STR("Messages between this host and others, for one Group.")},
	{0},
};

PyType_Spec transport_spec = {
	.name = "embeng._core.Transport",
	.basicsize = sizeof(struct transport_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = transport_slots,
};

PyObject *transport_load(PyObject *module, PyObject *given)
{
	struct embeng_transport transport = EMBENG_INIT(embeng_transport);
	struct core_state *state = PyModule_GetState(module);
	const char *name = text_read(given, "transport");
	int ret;

	if (!name)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	ret = embeng_group_transport(name, &transport, NULL);
	Py_END_ALLOW_THREADS
	return ret ? core_fail_group(state) : make_transport(state, &transport);
}

PyObject *transport_threads(PyObject *module, PyObject *given)
{
	struct core_state *state = PyModule_GetState(module);
	struct embeng_transport *transports;
	unsigned long long count;
	PyObject *list;

	if (whole_read(given, "ranks", EMBENG_GROUP_RANKS_MOST, &count))
		return NULL;
	transports = PyMem_Calloc((size_t)count + 1, sizeof(*transports));
	if (!transports)
		return PyErr_NoMemory();
	if (embeng_group_threads((uint32_t)count, transports)) {
		PyMem_Free(transports);
		return core_fail_group(state);
	}
	list = PyList_New(0);
	for (size_t k = 0; k < count; k++) {
		PyObject *one = list ? make_transport(state, &transports[k]) : NULL;

		if (!list)
			transports[k].close(transports[k].self);
		if (list && (!one || PyList_Append(list, one)))
			Py_CLEAR(list);
		Py_XDECREF(one);
	}
	PyMem_Free(transports);
	return list;
}

/* -- Relay --------------------------------------------------------------------------------- */

static PyObject *make_relay(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"rank", "ranks", NULL};
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	unsigned int rank, ranks;
	struct relay_object *self;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "II:Relay", names, &rank, &ranks))
		return NULL;
	if (!ranks || ranks > EMBENG_GROUP_RANKS_MOST || rank >= ranks) {
		core_fail_with(core_state_of(type), -ERANGE,
			       "rank %u of %u is not possible; a group has 1 to %d ranks, counted "
			       "from 0",
			       rank, ranks, EMBENG_GROUP_RANKS_MOST);
		return NULL;
	}
	self = (struct relay_object *)alloc(type, 0);
	if (!self)
		return NULL;
	self->state = core_state_of(type);
	self->relay = relay_new(rank, ranks);
	if (!self->relay) {
		Py_DECREF((PyObject *)self);
		return PyErr_NoMemory();
	}
	return (PyObject *)self;
}

static void free_relay(PyObject *object)
{
	struct relay_object *self = (struct relay_object *)object;
	PyTypeObject *type = Py_TYPE(object);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	if (self->relay)
		relay_put(self->relay);
	release(object);
	Py_DECREF(type);
}

static PyObject *get_transport(PyObject *object, PyObject *given)
{
	struct relay_object *self = (struct relay_object *)object;
	const char *name = text_read(given, "name");
	struct embeng_transport transport;

	if (!name)
		return NULL;
	relay_fill(self->relay, name, &transport);
	return make_transport(self->state, &transport);
}

static int check_peer(const struct relay_object *self, unsigned int peer)
{
	if (peer < relay_ranks(self->relay) && peer != relay_rank(self->relay))
		return 0;
	core_fail_with(self->state, -ERANGE, "peer: %u is no other host of this relay", peer);
	return -1;
}

static PyObject *take_frame(PyObject *object, PyObject *args)
{
	struct relay_object *self = (struct relay_object *)object;
	unsigned int peer;
	Py_buffer room;
	size_t bytes;

	if (!PyArg_ParseTuple(args, "Iw*:take", &peer, &room))
		return NULL;
	if (room.len < (Py_ssize_t)RELAY_FRAME_BYTES)
		core_fail_with(self->state, -ERANGE, "room: give %zu bytes", RELAY_FRAME_BYTES);
	if (PyErr_Occurred() || check_peer(self, peer)) {
		PyBuffer_Release(&room);
		return NULL;
	}
	Py_BEGIN_ALLOW_THREADS
	bytes = relay_take(self->relay, peer, room.buf);
	Py_END_ALLOW_THREADS
	PyBuffer_Release(&room);
	return PyLong_FromSize_t(bytes);
}

static PyObject *give_frame(PyObject *object, PyObject *args)
{
	struct relay_object *self = (struct relay_object *)object;
	unsigned int peer;
	Py_buffer frame;
	int ret;

	if (!PyArg_ParseTuple(args, "Iy*:give", &peer, &frame))
		return NULL;
	if (check_peer(self, peer)) {
		PyBuffer_Release(&frame);
		return NULL;
	}
	Py_BEGIN_ALLOW_THREADS
	ret = relay_give(self->relay, peer, frame.buf, (size_t)frame.len);
	Py_END_ALLOW_THREADS
	PyBuffer_Release(&frame);
	return PyBool_FromLong(ret > 0);
}

static PyObject *lose_peer(PyObject *object, PyObject *args)
{
	struct relay_object *self = (struct relay_object *)object;
	unsigned int peer;

	if (!PyArg_ParseTuple(args, "I:lose", &peer) || check_peer(self, peer))
		return NULL;
	relay_lose(self->relay, peer);
	Py_RETURN_NONE;
}

static PyMethodDef relay_methods[] = {
	{"transport", get_transport, METH_O,
	 PyDoc_STR("transport($self, name, /)\n--\n\nReturn it as a Transport of a named host.")},
	{"take", take_frame, METH_VARARGS,
	 PyDoc_STR("take($self, peer, room, /)\n--\n\n"
		   "Wait for a frame to a peer; return its bytes, or 0 if none comes any more.")},
	{"give", give_frame, METH_VARARGS,
	 PyDoc_STR("give($self, peer, frame, /)\n--\n\n"
		   "Hand in a frame from a peer; return whether another one may come.")},
	{"lose", lose_peer, METH_VARARGS,
	 PyDoc_STR("lose($self, peer, /)\n--\n\nSay that a peer cannot be reached any more.")},
	{0},
};

static PyType_Slot relay_slots[] = {
	{Py_tp_new, make_relay},
	{Py_tp_dealloc, free_relay},
	{Py_tp_methods, relay_methods},
	{Py_tp_doc,
	 (void *)PyDoc_STR("A transport whose messages threads of the program carry, in frames.")},
	{0},
};

PyType_Spec relay_spec = {
	.name = "embeng._core.Relay",
	.basicsize = sizeof(struct relay_object),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = relay_slots,
};
