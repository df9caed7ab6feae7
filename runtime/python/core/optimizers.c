// SPDX-License-Identifier: MIT
/*
 * Optimizers and schedules as dictionaries: they begin with a kind, which the library gives defaults
 * for, and have members beside those of their structures.
 *
 * Dictionaries are as settings.c says; what a schedule points to is made here and is the caller's.
 */
#include "settings.h"

#include <string.h>

/* -- optimizers -------------------------------------------------------------------- */

/* The text of a key, or NULL with an exception. */
static const char *find_kind(const struct structure *structure, PyObject *dict)
{
	PyObject *kind = PyDict_Check(dict) ? PyDict_GetItemString(dict, "kind") : NULL;

	if (kind && PyUnicode_Check(kind))
		return text_read(kind, "kind");
	settings_fail_type(structure, "kind", kind ? kind : dict, "the name of a kind");
	return NULL;
}

static int read_dynamic(PyObject *mapping, struct embeng_optimizer *optimizer,
			struct embeng_dynamic **dynamic)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;
	size_t count = 0;

	if (!PyDict_Check(mapping))
		return settings_fail_type(&structure_optimizer, "dynamic", mapping,
					  "a dict of hyperparameters to names of rates");
	*dynamic = PyMem_Calloc((size_t)PyDict_Size(mapping) + 1, sizeof(**dynamic));
	if (!*dynamic) {
		PyErr_NoMemory();
		return -1;
	}
	while (PyDict_Next(mapping, &at, &key, &value)) {
		struct embeng_dynamic *entry = &(*dynamic)[count++];

		entry->hyperparameter = text_read(key, "optimizer: dynamic");
		if (entry->hyperparameter)
			entry->name = text_read(value, "optimizer: dynamic");
		if (!entry->name)
			return -1;
	}
	optimizer->dynamic = *dynamic;
	optimizer->dynamic_count = count;
	return 0;
}

/* A limit that is given counts; there is no other word for one that does not. */
static void note_limits(PyObject *dict, struct embeng_optimizer *optimizer)
{
	const struct {
		const char *name;
		unsigned char *has;
	} limits[] = {
		{"clip_min", &optimizer->has_clip_min},
		{"clip_max", &optimizer->has_clip_max},
		{"clip_weight_min", &optimizer->has_clip_weight_min},
		{"clip_weight_max", &optimizer->has_clip_weight_max},
	};

	for (size_t k = 0; k < sizeof(limits) / sizeof(*limits); k++) {
		PyObject *given = PyDict_GetItemString(dict, limits[k].name);

		*limits[k].has = given && given != Py_None;
	}
}

/* @dynamic is memory of the caller's, for PyMem_Free() after the model was told. */
int settings_read_optimizer(struct core_state *state, PyObject *dict,
			    struct embeng_optimizer *optimizer, struct embeng_dynamic **dynamic)
{
	const char *kind = find_kind(&structure_optimizer, dict);
	PyObject *mapping;

	optimizer->size = sizeof(*optimizer);
	if (!kind)
		return -1;
	if (embeng_optimizer_by_name(kind, 0.01f, optimizer)) {
		core_fail(state);
		return -1;
	}
	if (settings_read(&structure_optimizer, dict, optimizer))
		return -1;
	note_limits(dict, optimizer);
	mapping = PyDict_GetItemString(dict, "dynamic");
	return mapping && mapping != Py_None ? read_dynamic(mapping, optimizer, dynamic) : 0;
}

static int describe_dynamic(PyObject *dict, const struct embeng_optimizer *optimizer)
{
	PyObject *mapping = PyDict_New();

	for (size_t k = 0; mapping && k < optimizer->dynamic_count; k++)
		if (settings_set(mapping, optimizer->dynamic[k].hyperparameter,
				 settings_describe_text(optimizer->dynamic[k].name)))
			Py_CLEAR(mapping);
	return settings_set(dict, "dynamic", mapping);
}

static int forget_limits(PyObject *dict, const struct embeng_optimizer *optimizer)
{
	if (!optimizer->has_clip_min && PyDict_DelItemString(dict, "clip_min"))
		return -1;
	if (!optimizer->has_clip_max && PyDict_DelItemString(dict, "clip_max"))
		return -1;
	if (!optimizer->has_clip_weight_min && PyDict_DelItemString(dict, "clip_weight_min"))
		return -1;
	return !optimizer->has_clip_weight_max && PyDict_DelItemString(dict, "clip_weight_max") ? -1
												: 0;
}

/* None for a table that has no optimizer. */
PyObject *settings_describe_optimizer(const struct embeng_optimizer *optimizer)
{
	PyObject *dict;

	if (optimizer->kind == EMBENG_OPTIMIZER_NO)
		return Py_NewRef(Py_None);
	dict = settings_describe(&structure_optimizer, optimizer);
	if (dict && (settings_set(dict, "kind",
				  settings_describe_text(embeng_optimizer_text(optimizer->kind))) ||
		     forget_limits(dict, optimizer) || describe_dynamic(dict, optimizer)))
		Py_CLEAR(dict);
	return dict;
}

/* -- schedules ---------------------------------------------------------------------- */

static int read_boundaries(PyObject *dict, struct embeng_schedule *schedule, uint64_t **boundaries,
			   float **values)
{
	PyObject *at = PyDict_GetItemString(dict, "boundaries");
	PyObject *rates = PyDict_GetItemString(dict, "values");
	Py_ssize_t count = at && PyTuple_Check(at) ? PyTuple_Size(at) : -1;

	if (!at && !rates)
		return 0;
	if (!rates || count < 0 || !PyTuple_Check(rates) || PyTuple_Size(rates) != count + 1)
		return settings_fail_type(
			&structure_schedule, "boundaries", dict,
			"lists boundaries and values, of which there is one more");
	*boundaries = PyMem_Calloc((size_t)count + 1, sizeof(**boundaries));
	*values = PyMem_Calloc((size_t)count + 1, sizeof(**values));
	if (!*boundaries || !*values) {
		PyErr_NoMemory();
		return -1;
	}
	for (Py_ssize_t k = 0; k < count; k++) {
		unsigned long long step;

		if (whole_read(PyTuple_GetItem(at, k), "schedule: boundaries", UINT64_MAX, &step))
			return -1;
		(*boundaries)[k] = step;
	}
	for (Py_ssize_t k = 0; k <= count && !PyErr_Occurred(); k++)
		(*values)[k] = (float)PyFloat_AsDouble(PyTuple_GetItem(rates, k));
	schedule->boundaries = *boundaries;
	schedule->values = *values;
	schedule->boundary_count = (size_t)count;
	return PyErr_Occurred() ? -1 : 0;
}

/* The defaults of a kind are those of its function. */
static int start_schedule(const char *kind, struct embeng_schedule *schedule)
{
	static const uint64_t no_boundary;
	static const float no_value;
	const struct embeng_schedule kinds[] = {
		embeng_schedule_constant(0),
		embeng_schedule_exponential(0, 1, 1),
		embeng_schedule_inverse_time(0, 1, 1),
		embeng_schedule_polynomial(0, 1),
		embeng_schedule_cosine(0, 1),
		embeng_schedule_piecewise(&no_boundary, &no_value, 0),
	};

	for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
		if (!strcmp(kind, embeng_schedule_text(kinds[k].kind))) {
			*schedule = kinds[k];
			return 0;
		}
	PyErr_Format(PyExc_ValueError,
		     "schedule: there is no kind '%s'; there are constant, exponential, "
		     "inverse_time, polynomial, cosine, piecewise",
		     kind);
	return -1;
}

/* @boundaries and @values are memory of the caller's, for PyMem_Free(). */
int settings_read_schedule(PyObject *dict, struct embeng_schedule *schedule, uint64_t **boundaries,
			   float **values)
{
	const char *kind = find_kind(&structure_schedule, dict);

	if (!kind || start_schedule(kind, schedule) ||
	    settings_read(&structure_schedule, dict, schedule))
		return -1;
	return read_boundaries(dict, schedule, boundaries, values);
}
