// SPDX-License-Identifier: MIT
/*
 * TensorFlow's operators of this package: finds the functions of TensorFlow's C API in the library that
 * the process has loaded, and registers operators and kernels with them. It is a file of its own because
 * it alone knows names of TensorFlow's; tensorflow_operators.c has the operators.
 *
 * TensorFlow keeps operators until the process ends, and so are the functions' addresses. The lock of the
 * registration is held while TensorFlow registers, which calls nothing of ours.
 */
#include "core.h"

#include <dlfcn.h>
#include <string.h>

#include "tensorflow.h"

struct tf_functions tf;

static const struct {
	const char *name;
	size_t place;
} tf_symbols[] = {
#define SYMBOL(text, member) {text, offsetof(struct tf_functions, member)}
	SYMBOL("TF_NewStatus", new_status),
	SYMBOL("TF_DeleteStatus", delete_status),
	SYMBOL("TF_SetStatus", set_status),
	SYMBOL("TF_GetCode", get_code),
	SYMBOL("TF_Message", get_message),
	SYMBOL("TF_SetPayload", set_payload),
	SYMBOL("TF_NewOpDefinitionBuilder", new_op),
	SYMBOL("TF_OpDefinitionBuilderAddAttr", add_attr),
	SYMBOL("TF_OpDefinitionBuilderAddInput", add_input),
	SYMBOL("TF_OpDefinitionBuilderAddOutput", add_output),
	SYMBOL("TF_OpDefinitionBuilderSetIsStateful", set_stateful),
	SYMBOL("TF_OpDefinitionBuilderSetShapeInferenceFunction", set_shape_function),
	SYMBOL("TF_RegisterOpDefinition", register_op),
	SYMBOL("TF_ShapeInferenceContextSetUnknownShape", set_unknown_shape),
	SYMBOL("TF_NewKernelBuilder", new_kernel),
	SYMBOL("TF_RegisterKernelBuilder", register_kernel),
	SYMBOL("TF_OpKernelConstruction_GetAttrSize", get_attr_size),
	SYMBOL("TF_OpKernelConstruction_GetAttrInt64", get_attr_int),
	SYMBOL("TF_OpKernelConstruction_GetAttrInt64List", get_attr_ints),
	SYMBOL("TF_OpKernelConstruction_GetAttrStringList", get_attr_texts),
	SYMBOL("TF_OpKernelConstruction_Failure", fail_construction),
	SYMBOL("TF_NumInputs", num_inputs),
	SYMBOL("TF_GetInput", get_input),
	SYMBOL("TF_AllocateOutput", allocate_output),
	SYMBOL("TF_OpKernelContext_Failure", fail_context),
	SYMBOL("TF_TensorType", tensor_type),
	SYMBOL("TF_NumDims", num_dims),
	SYMBOL("TF_Dim", dim),
	SYMBOL("TF_TensorElementCount", element_count),
	SYMBOL("TF_TensorData", tensor_data),
	SYMBOL("TF_DeleteTensor", delete_tensor),
#undef SYMBOL
};

#define SYMBOL_COUNT (sizeof(tf_symbols) / sizeof(*tf_symbols))
_Static_assert(SYMBOL_COUNT * sizeof(void *) == sizeof(struct tf_functions),
	       "each function has a name");

/* The first function that the library lacks, or NULL. */
static const char *find_functions(void *library, struct tf_functions *functions)
{
	for (size_t k = 0; k < SYMBOL_COUNT; k++) {
		void *symbol = dlsym(library, tf_symbols[k].name);

		if (!symbol)
			return tf_symbols[k].name;
		memcpy((char *)functions + tf_symbols[k].place, &symbol, sizeof(symbol));
	}
	return NULL;
}

/*
 * The shape of activations follows from the engine, and a shape function is shown no attribute that
 * would name it. The Python function that adds the operator to a graph says the shape.
 */
static void leave_shapes_open(struct tf_shape_context *context, struct tf_status *status)
{
	tf.set_unknown_shape(context, status);
}

static void register_operator(const struct tf_operator *operator, struct tf_status * status)
{
	struct tf_op_builder *op = tf.new_op(operator->name);

	for (const char *const *spec = operator->attrs; *spec; spec++)
		tf.add_attr(op, *spec);
	for (const char *const *spec = operator->inputs; *spec; spec++)
		tf.add_input(op, *spec);
	for (const char *const *spec = operator->outputs; *spec; spec++)
		tf.add_output(op, *spec);
	tf.set_stateful(op, true);
	tf.set_shape_function(op, leave_shapes_open);
	tf.register_op(op, status);
	if (tf.get_code(status) != TF_CODE_OK)
		return;
	tf.register_kernel(operator->name,
			   tf.new_kernel(operator->name, "CPU", operator->create, operator->compute,
					 tf_kernel_free),
			   status);
}

static int register_all(void)
{
	struct tf_status *status = tf.new_status();
	size_t at = 0;

	while (at < tf_operator_count) {
		register_operator(&tf_operators[at], status);
		if (tf.get_code(status) != TF_CODE_OK)
			break;
		at++;
	}
	if (at < tf_operator_count)
		PyErr_Format(PyExc_RuntimeError, "TensorFlow refuses the operator %s: %s",
			     tf_operators[at].name, tf.get_message(status));
	tf.delete_status(status);
	return at < tf_operator_count ? -1 : 0;
}

/* Errors of steps begin with the names of the exceptions that eager programs get. */
static int name_errors(PyObject *errors)
{
	PyObject *number, *type;
	Py_ssize_t at = 0;

	while (PyDict_Next(errors, &at, &number, &type)) {
		PyObject *name = PyObject_GetAttrString(type, "__name__");
		const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;

		if (text)
			tf_name_error((int)PyLong_AsLong(number), text);
		Py_XDECREF(name);
		if (!text)
			return -1;
	}
	return 0;
}

/* TensorFlow has one registry in a process, in which all interpreters find the operators. */
static int register_once(void *library, PyObject *errors)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static enum { UNTRIED, DONE, REFUSED } state;
	struct tf_functions found;
	const char *missing = find_functions(library, &found);
	int ret = 0;

	if (missing) {
		PyErr_Format(PyExc_ImportError, "this TensorFlow exports no function %s", missing);
		return -1;
	}
	pthread_mutex_lock(&lock);
	if (state == UNTRIED) {
		tf = found;
		ret = name_errors(errors) ? -1 : register_all();
		state = ret ? REFUSED : DONE;
	} else if (state == REFUSED) {
		PyErr_SetString(PyExc_RuntimeError, "TensorFlow refused the operators before");
		ret = -1;
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

void *tensorflow_open(PyObject *path)
{
	const char *text = text_read(path, "path");
	void *library = text ? dlopen(text, RTLD_LAZY | RTLD_NOLOAD) : NULL;

	if (text && !library)
		PyErr_Format(PyExc_ImportError, "%s: TensorFlow has not loaded this library", text);
	return library;
}

PyObject *tensorflow_register(PyObject *module, PyObject *path)
{
	struct core_state *state = PyModule_GetState(module);
	void *library = tensorflow_open(path);
	PyObject *names;

	if (!library)
		return NULL;
	if (register_once(library, state->errors)) {
		dlclose(library);
		return NULL;
	}
	names = PyTuple_New((Py_ssize_t)tf_operator_count);
	for (size_t k = 0; names && k < tf_operator_count; k++) {
		PyObject *name = PyUnicode_FromString(tf_operators[k].name);

		if (!name || PyTuple_SetItem(names, (Py_ssize_t)k, name))
			Py_CLEAR(names);
	}
	return names;
}
