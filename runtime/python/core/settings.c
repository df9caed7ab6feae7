// SPDX-License-Identifier: MIT
/*
 * Structures of the library as dictionaries of Python, both ways. A table lists the members of each
 * structure, by their names in the library's headers, so that a name means the same in C and in Python.
 *
 * Texts stay those of the dictionary: it must live until the library has copied them, and be one that
 * the program cannot reach, as settings_hold() makes it.
 */
#include "core.h"

#include <stddef.h>
#include <string.h>

enum setting_kind {
	SETTING_F32,
	SETTING_BOOL,	  /* unsigned char */
	SETTING_SWITCH,	  /* int */
	SETTING_TRISTATE, /* True, False, or not given */
	SETTING_I64,
	SETTING_U32,
	SETTING_U64,
	SETTING_SIZE,
	SETTING_TEXT,  /* const char * */
	SETTING_CHARS, /* char[], only described */
	SETTING_NAME,  /* an enum, by the words of @names */
	SETTING_SKIP,  /* read elsewhere */
};

struct setting {
	const char *name;
	size_t offset;
	enum setting_kind kind;
	const char *const *names;
};

struct structure {
	const char *name;
	const struct setting *settings;
};

#define SETTING(type, member, kind) {#member, offsetof(struct type, member), SETTING_##kind, NULL}
#define SETTING_OF(type, member, names) \
	{#member, offsetof(struct type, member), SETTING_NAME, names}
#define SETTING_ELSEWHERE(member) {#member, 0, SETTING_SKIP, NULL}

static const char *const combiners[] = {"mean", "sum", "sqrtn", "max", NULL};
static const char *const policies[] = {"error", "clamp", "drop", "zero", NULL};
static const char *const shardings[] = {"div", "mod", NULL};
static const char *const non_finites[] = {"error", "drop", "allow", NULL};
static const char *const initializers[] = {"default", "constant", "uniform", "truncated_normal",
					   NULL};
static const char *const id_types[] = {"int32", "int64", NULL};

static const struct setting table_settings[] = {
	SETTING(embeng_table_config, name, TEXT),
	SETTING(embeng_table_config, vocabulary_size, I64),
	SETTING(embeng_table_config, dim, I64),
	SETTING_OF(embeng_table_config, combiner, combiners),
	SETTING_OF(embeng_table_config, out_of_range, policies),
	SETTING(embeng_table_config, frozen, SWITCH),
	SETTING_ELSEWHERE(optimizer),
	SETTING_ELSEWHERE(initializer),
	SETTING_ELSEWHERE(slot_starts),
	SETTING_ELSEWHERE(quantization),
	{0},
};

static const struct setting feature_settings[] = {
	SETTING(embeng_feature_config, name, TEXT),
	SETTING(embeng_feature_config, max_sequence_length, I64),
	SETTING(embeng_feature_config, check_weights, SWITCH),
	SETTING(embeng_feature_config, max_samples, U64),
	SETTING(embeng_feature_config, max_ids, U64),
	SETTING_ELSEWHERE(table),
	SETTING_ELSEWHERE(output_shape),
	{0},
};

static const struct setting engine_settings[] = {
	SETTING(embeng_engine_config, replicas, U32),
	SETTING(embeng_engine_config, pipelining, SWITCH),
	SETTING(embeng_engine_config, step_depth, U32),
	SETTING(embeng_engine_config, hosts, U32),
	SETTING_OF(embeng_engine_config, sharding, shardings),
	SETTING_OF(embeng_engine_config, non_finite, non_finites),
	SETTING(embeng_engine_config, fixed_shapes, SWITCH),
	{0},
};

static const struct setting plan_settings[] = {
	SETTING(embeng_plan_options, batch_size, I64),
	SETTING(embeng_plan_options, ids_per_sample, I64),
	SETTING_OF(embeng_plan_options, id_type, id_types),
	SETTING(embeng_plan_options, weights, SWITCH),
	SETTING(embeng_plan_options, buffers, SWITCH),
	SETTING(embeng_plan_options, inference, SWITCH),
	SETTING(embeng_plan_options, step_depth, U32),
	SETTING(embeng_plan_options, cores, U32),
	SETTING(embeng_plan_options, splits, SWITCH),
	{0},
};

static const struct setting device_settings[] = {
	SETTING(embeng_device_info, name, CHARS),
	SETTING(embeng_device_info, kind, CHARS),
	SETTING(embeng_device_info, variant, CHARS),
	SETTING(embeng_device_info, interface_major, U32),
	SETTING(embeng_device_info, interface_minor, U32),
	SETTING(embeng_device_info, firmware_version, U64),
	SETTING(embeng_device_info, cores, U32),
	SETTING(embeng_device_info, step_depth, U32),
	SETTING(embeng_device_info, replicas, U32),
	SETTING(embeng_device_info, dim, U32),
	SETTING(embeng_device_info, tables, U32),
	SETTING(embeng_device_info, table_memory, U64),
	SETTING(embeng_device_info, address, CHARS),
	SETTING(embeng_device_info, driver, CHARS),
	SETTING(embeng_device_info, description, CHARS),
	SETTING(embeng_device_info, state, CHARS),
	SETTING(embeng_device_info, problem, CHARS),
	SETTING(embeng_device_info, fetch, CHARS),
	SETTING(embeng_device_info, fetch_source, CHARS),
	SETTING(embeng_device_info, tune_problem, CHARS),
	SETTING(embeng_device_info, command_bytes, U64),
	{0},
};

static const struct setting optimizer_settings[] = {
	SETTING(embeng_optimizer, learning_rate, F32),
	SETTING(embeng_optimizer, rate_name, TEXT),
	SETTING(embeng_optimizer, initial_accumulator_value, F32),
	SETTING(embeng_optimizer, momentum, F32),
	SETTING(embeng_optimizer, use_nesterov, BOOL),
	SETTING(embeng_optimizer, exponent, F32),
	SETTING(embeng_optimizer, beta2, F32),
	SETTING(embeng_optimizer, epsilon, F32),
	SETTING(embeng_optimizer, learning_rate_power, F32),
	SETTING(embeng_optimizer, l1_regularization_strength, F32),
	SETTING(embeng_optimizer, l2_regularization_strength, F32),
	SETTING(embeng_optimizer, beta, F32),
	SETTING(embeng_optimizer, multiply_linear_by_learning_rate, BOOL),
	SETTING(embeng_optimizer, allow_zero_accumulator, BOOL),
	SETTING(embeng_optimizer, beta_1, F32),
	SETTING(embeng_optimizer, beta_2, F32),
	SETTING(embeng_optimizer, lazy_adam, TRISTATE),
	SETTING(embeng_optimizer, sum_inside_sqrt, TRISTATE),
	SETTING(embeng_optimizer, bias_correction, BOOL),
	SETTING(embeng_optimizer, use_gradient_accumulation, TRISTATE),
	SETTING(embeng_optimizer, low_dimensional_packing, BOOL),
	SETTING(embeng_optimizer, clip_weight_min, F32),
	SETTING(embeng_optimizer, clip_weight_max, F32),
	SETTING(embeng_optimizer, clip_min, F32),
	SETTING(embeng_optimizer, clip_max, F32),
	SETTING(embeng_optimizer, weight_decay_factor, F32),
	SETTING(embeng_optimizer, multiply_weight_decay_by_rate, SWITCH),
	SETTING(embeng_optimizer, beta1, F32),
	SETTING(embeng_optimizer, use_non_lazy, BOOL),
	SETTING(embeng_optimizer, rho, F32),
	SETTING(embeng_optimizer, l1, F32),
	SETTING(embeng_optimizer, l2, F32),
	SETTING(embeng_optimizer, b1, F32),
	SETTING(embeng_optimizer, b2, F32),
	SETTING(embeng_optimizer, eps, F32),
	SETTING(embeng_optimizer, update_accumulator_first, BOOL),
	SETTING(embeng_optimizer, max_var_update, F32),
	SETTING(embeng_optimizer, max_accumulator, F32),
	SETTING(embeng_optimizer, tau, F32),
	SETTING(embeng_optimizer, max_delta, F32),
	SETTING(embeng_optimizer, outlier_threshold, F32),
	SETTING(embeng_optimizer, weight_exponent, F32),
	SETTING(embeng_optimizer, max_lr_multiplier, F32),
	SETTING(embeng_optimizer, probability_exponent, F32),
	SETTING(embeng_optimizer, accumulator_decay, F32),
	SETTING(embeng_optimizer, step_counter, TEXT),
	SETTING(embeng_optimizer, lr_power, F32),
	SETTING(embeng_optimizer, min_servable_mdl_benefit, F32),
	SETTING(embeng_optimizer, mdl_mix_in_margin, F32),
	SETTING(embeng_optimizer, mdl_benefit_rampup_coeff, F32),
	SETTING(embeng_optimizer, mdl_min_weight, F32),
	SETTING(embeng_optimizer, benefit_revisit_scale, F32),
	SETTING(embeng_optimizer, max_event_benefit, F32),
	SETTING(embeng_optimizer, max_total_benefit, F32),
	SETTING(embeng_optimizer, mdl_hard_limit, F32),
	SETTING(embeng_optimizer, hard_limit_min_benefit, BOOL),
	SETTING(embeng_optimizer, mdl_regularize, BOOL),
	SETTING(embeng_optimizer, mean_gradient, BOOL),
	SETTING(embeng_optimizer, epsilon_hat, BOOL),
	SETTING(embeng_optimizer, weight_decay_in_gradient, BOOL),
	SETTING(embeng_optimizer, scale_by_frequency, BOOL),
	SETTING(embeng_optimizer, max_norm, F32),
	SETTING_ELSEWHERE(kind),
	SETTING_ELSEWHERE(dynamic),
	{0},
};

static const struct setting schedule_settings[] = {
	SETTING(embeng_schedule, learning_rate, F32),
	SETTING(embeng_schedule, decay_steps, U64),
	SETTING(embeng_schedule, decay_rate, F32),
	SETTING(embeng_schedule, staircase, BOOL),
	SETTING(embeng_schedule, end_learning_rate, F32),
	SETTING(embeng_schedule, power, F32),
	SETTING(embeng_schedule, cycle, BOOL),
	SETTING(embeng_schedule, alpha, F32),
	SETTING(embeng_schedule, warmup_steps, U64),
	SETTING(embeng_schedule, warmup_learning_rate, F32),
	SETTING(embeng_schedule, starts_after_warmup, BOOL),
	SETTING_ELSEWHERE(kind),
	SETTING_ELSEWHERE(boundaries),
	SETTING_ELSEWHERE(values),
	{0},
};

static const struct setting initializer_settings[] = {
	SETTING_OF(embeng_initializer, kind, initializers),
	SETTING(embeng_initializer, a, F32),
	SETTING(embeng_initializer, b, F32),
	SETTING(embeng_initializer, seed, U64),
	{0},
};

static const struct setting quantization_settings[] = {
	SETTING(embeng_quantization, num_buckets, I64),
	SETTING(embeng_quantization, lower, F32),
	SETTING(embeng_quantization, upper, F32),
	{0},
};

const struct structure structure_table = {"table", table_settings};
const struct structure structure_feature = {"feature", feature_settings};
const struct structure structure_engine = {"options of the model", engine_settings};
const struct structure structure_plan = {"options of the plan", plan_settings};
const struct structure structure_device = {"device", device_settings};
static const struct structure structure_optimizer = {"optimizer", optimizer_settings};
static const struct structure structure_schedule = {"schedule", schedule_settings};
static const struct structure structure_initializer = {"initializer", initializer_settings};
const struct structure structure_quantization = {"quantization", quantization_settings};

/* -- reading --------------------------------------------------------------------- */

/* More than what any structure nests; a dict that holds itself ends here, too. */
#define HOLD_DEPTH 4

static PyObject *hold_deep(PyObject *object, int depth);

static int hold_members(PyObject *dict, int depth)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;

	while (PyDict_Next(dict, &at, &key, &value)) {
		PyObject *held;
		int ret;

		if (!PyDict_Check(value) && !PyList_Check(value))
			continue;
		held = hold_deep(value, depth);
		ret = held ? PyDict_SetItem(dict, key, held) : -1;
		Py_XDECREF(held);
		if (ret)
			return -1;
	}
	return 0;
}

static PyObject *hold_deep(PyObject *object, int depth)
{
	PyObject *copy;

	if (PyList_Check(object))
		return PyList_AsTuple(object);
	if (!PyDict_Check(object))
		return Py_NewRef(object);
	if (depth == HOLD_DEPTH) {
		PyErr_SetString(PyExc_ValueError, "settings: dicts are nested too deeply");
		return NULL;
	}
	copy = PyDict_Copy(object);
	if (copy && hold_members(copy, depth + 1))
		Py_CLEAR(copy);
	return copy;
}

PyObject *settings_hold(PyObject *object)
{
	return hold_deep(object, 0);
}

static const struct setting *find_setting(const struct structure *structure, PyObject *key)
{
	for (const struct setting *s = structure->settings; s->name; s++)
		if (PyUnicode_Check(key) && !PyUnicode_CompareWithASCIIString(key, s->name))
			return s;
	PyErr_Format(PyExc_TypeError, "%s: there is no setting %R", structure->name, key);
	return NULL;
}

static int raise_type(const struct structure *structure, const char *name, PyObject *value,
		      const char *wanted)
{
	PyErr_Clear();
	PyErr_Format(PyExc_TypeError, "%s: %s is %R; give %s", structure->name, name, value,
		     wanted);
	return -1;
}

/* Likewise behind a method of the program's: what that raised stays, but for a type that is wrong. */
static int raise_reading(const struct structure *structure, const char *name, PyObject *value,
			 const char *wanted)
{
	if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError) &&
	    !PyErr_ExceptionMatches(PyExc_OverflowError))
		return -1;
	return raise_type(structure, name, value, wanted);
}

static int read_name(const struct structure *structure, const struct setting *s, PyObject *value,
		     int *to)
{
	PyObject *words;

	for (int k = 0; s->names[k]; k++)
		if (PyUnicode_Check(value) &&
		    !PyUnicode_CompareWithASCIIString(value, s->names[k])) {
			*to = k;
			return 0;
		}
	words = PyUnicode_FromString(s->names[0]);
	for (int k = 1; words && s->names[k]; k++) {
		PyObject *longer = PyUnicode_FromFormat("%U, %s", words, s->names[k]);

		Py_DECREF(words);
		words = longer;
	}
	if (words)
		PyErr_Format(PyExc_ValueError, "%s: %s is %R; the words are %U", structure->name,
			     s->name, value, words);
	Py_XDECREF(words);
	return -1;
}

static int read_text(const struct structure *structure, const struct setting *s, PyObject *value,
		     const char **to)
{
	Py_ssize_t length = 0;
	const char *text = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, &length) : NULL;

	if (!text || strlen(text) != (size_t)length)
		return raise_type(structure, s->name, value,
				  "text without null characters and surrogates");
	*to = text;
	return 0;
}

/* A whole number within [@least, @most], which may be of a type that stands for one. */
static int read_whole(const struct structure *structure, const struct setting *s, PyObject *value,
		      long long least, unsigned long long most, unsigned long long *to)
{
	PyObject *index = PyFloat_Check(value) ? NULL : PyNumber_Index(value);
	bool negative;

	if (!index)
		return raise_reading(structure, s->name, value, "a whole number");
	*to = (unsigned long long)PyLong_AsLongLong(index);
	negative = (long long)*to < 0;
	if (PyErr_Occurred()) {
		PyErr_Clear();
		*to = PyLong_AsUnsignedLongLong(index);
		negative = false;
	}
	Py_DECREF(index);
	if (!PyErr_Occurred() && (negative ? (long long)*to >= least : *to <= most))
		return 0;
	PyErr_Clear();
	PyErr_Format(PyExc_ValueError, "%s: %s is %R; give a whole number from %lld to %llu",
		     structure->name, s->name, value, least, most);
	return -1;
}

static int read_float(const struct structure *structure, const struct setting *s, PyObject *value,
		      float *to)
{
	double number = PyFloat_AsDouble(value);

	if (number == -1 && PyErr_Occurred())
		return raise_reading(structure, s->name, value, "a number");
	*to = (float)number;
	return 0;
}

/* Numbers whose members are of different widths. */
static int read_number(const struct structure *structure, const struct setting *s, PyObject *value,
		       void *to)
{
	static const unsigned long long most[] = {
		[SETTING_BOOL] = 1,	   [SETTING_SWITCH] = 1,       [SETTING_TRISTATE] = 1,
		[SETTING_I64] = INT64_MAX, [SETTING_U32] = UINT32_MAX, [SETTING_U64] = UINT64_MAX,
		[SETTING_SIZE] = SIZE_MAX,
	};
	unsigned long long number;

	if (read_whole(structure, s, value, s->kind == SETTING_I64 ? INT64_MIN : 0, most[s->kind],
		       &number))
		return -1;
	switch (s->kind) {
	case SETTING_BOOL:
		*(unsigned char *)to = (unsigned char)number;
		break;
	case SETTING_SWITCH:
		*(int *)to = (int)number;
		break;
	case SETTING_TRISTATE:
		*(enum embeng_tristate *)to = number ? EMBENG_ON : EMBENG_OFF;
		break;
	case SETTING_U32:
		*(uint32_t *)to = (uint32_t)number;
		break;
	default:
		*(uint64_t *)to = number;
	}
	return 0;
}

static int read_setting(const struct structure *structure, const struct setting *s, PyObject *value,
			void *to)
{
	if (value == Py_None)
		return 0;
	switch (s->kind) {
	case SETTING_SKIP:
	case SETTING_CHARS:
		return 0;
	case SETTING_TEXT:
		return read_text(structure, s, value, to);
	case SETTING_NAME:
		return read_name(structure, s, value, to);
	case SETTING_F32:
		return read_float(structure, s, value, to);
	default:
		return read_number(structure, s, value, to);
	}
}

int settings_read(const struct structure *structure, PyObject *dict, void *to)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;

	if (!PyDict_Check(dict))
		return raise_type(structure, "the whole", dict, "a dict");
	while (PyDict_Next(dict, &at, &key, &value)) {
		const struct setting *s = find_setting(structure, key);

		if (!s || read_setting(structure, s, value, (char *)to + s->offset))
			return -1;
	}
	return 0;
}

/* -- describing ------------------------------------------------------------------ */

int settings_set(PyObject *dict, const char *key, PyObject *value)
{
	int ret = value ? PyDict_SetItemString(dict, key, value) : -1;

	Py_XDECREF(value);
	return ret;
}

static PyObject *describe_tristate(enum embeng_tristate value)
{
	return value == EMBENG_DEFAULT ? Py_NewRef(Py_None) : PyBool_FromLong(value == EMBENG_ON);
}

static PyObject *describe_text(const char *text)
{
	return text ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace")
		    : Py_NewRef(Py_None);
}

static PyObject *describe_setting(const struct setting *s, const void *from)
{
	switch (s->kind) {
	case SETTING_F32:
		return PyFloat_FromDouble(*(const float *)from);
	case SETTING_BOOL:
		return PyBool_FromLong(*(const unsigned char *)from);
	case SETTING_SWITCH:
		return PyBool_FromLong(*(const int *)from);
	case SETTING_TRISTATE:
		return describe_tristate(*(const enum embeng_tristate *)from);
	case SETTING_I64:
		return PyLong_FromLongLong(*(const int64_t *)from);
	case SETTING_U32:
		return PyLong_FromUnsignedLong(*(const uint32_t *)from);
	case SETTING_U64:
	case SETTING_SIZE:
		return PyLong_FromUnsignedLongLong(*(const uint64_t *)from);
	case SETTING_TEXT:
		return describe_text(*(const char *const *)from);
	case SETTING_CHARS:
		return describe_text(from);
	default:
		return PyUnicode_FromString(s->names[*(const int *)from]);
	}
}

PyObject *settings_describe(const struct structure *structure, const void *from)
{
	PyObject *dict = PyDict_New();

	for (const struct setting *s = structure->settings; dict && s->name; s++)
		if (s->kind != SETTING_SKIP &&
		    settings_set(dict, s->name,
				 describe_setting(s, (const char *)from + s->offset)))
			Py_CLEAR(dict);
	return dict;
}

/* -- initializers ------------------------------------------------------------------ */

int settings_read_initializer(PyObject *object, struct embeng_initializer *initializer)
{
	return settings_read(&structure_initializer, object, initializer);
}

PyObject *settings_describe_initializer(const struct embeng_initializer *initializer)
{
	return settings_describe(&structure_initializer, initializer);
}

/* -- optimizers -------------------------------------------------------------------- */

/* The text of a key, or NULL with an exception. */
static const char *find_kind(const struct structure *structure, PyObject *dict)
{
	PyObject *kind = PyDict_Check(dict) ? PyDict_GetItemString(dict, "kind") : NULL;

	if (kind && PyUnicode_Check(kind))
		return text_read(kind, "kind");
	raise_type(structure, "kind", kind ? kind : dict, "the name of a kind");
	return NULL;
}

static int read_dynamic(PyObject *mapping, struct embeng_optimizer *optimizer,
			struct embeng_dynamic **dynamic)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;
	size_t count = 0;

	if (!PyDict_Check(mapping))
		return raise_type(&structure_optimizer, "dynamic", mapping,
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
				 describe_text(optimizer->dynamic[k].name)))
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
	if (dict &&
	    (settings_set(dict, "kind", describe_text(embeng_optimizer_text(optimizer->kind))) ||
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
		return raise_type(&structure_schedule, "boundaries", dict,
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
