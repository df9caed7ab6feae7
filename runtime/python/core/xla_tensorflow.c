// SPDX-License-Identifier: MIT
/*
 * The functions of xla.c for the XLA that TensorFlow has in it: finds the functions of that XLA in the
 * library that the process has loaded, and registers ours with them. It is a file of its own because
 * JAX is given the same functions in another way, by capsules.
 *
 * XLA keeps what was registered until the process ends, and the library is not unloaded either. The lock
 * of the registration is held while XLA registers, which calls nothing of ours but for their versions.
 */
#include "core.h"

#include <dlfcn.h>
#include <string.h>

#include "xla_abi.h"

#define XLA_PLATFORM "Host"

static struct xla_error *register_target(const struct xla_functions *xla,
					 const struct xla_target *target)
{
	struct xla_register_arguments arguments = {
		.size = sizeof(arguments),
		.name = {target->name, strlen(target->name)},
		.platform = {XLA_PLATFORM, strlen(XLA_PLATFORM)},
		.execute = target->function,
	};

	return xla->register_handler(&arguments);
}

/* Sets an exception with XLA's sentence, and frees its error. */
static void refuse_target(const struct xla_functions *xla, const char *name,
			  struct xla_error *error)
{
	struct xla_message_arguments message = {.size = sizeof(message), .error = error};
	struct xla_destroy_arguments destroy = {.size = sizeof(destroy), .error = error};

	xla->get_message(&message);
	PyErr_Format(PyExc_ImportError, "TensorFlow's XLA refuses the function %s: %s", name,
		     message.message ? message.message : "it does not say why");
	xla->destroy_error(&destroy);
}

static int register_targets(const struct xla_functions *xla)
{
	if (xla->version.major != XLA_MAJOR || xla->version.minor < XLA_MINOR) {
		PyErr_Format(PyExc_ImportError,
			     "TensorFlow's XLA has version %d.%d of functions in C; version %d.%d "
			     "or a later one of %d is needed",
			     xla->version.major, xla->version.minor, XLA_MAJOR, XLA_MINOR,
			     XLA_MAJOR);
		return -1;
	}
	for (size_t k = 0; k < XLA_TARGETS; k++) {
		struct xla_error *error = register_target(xla, &xla_target_list[k]);

		if (!error)
			continue;
		refuse_target(xla, xla_target_list[k].name, error);
		return -1;
	}
	return 0;
}

static int register_targets_once(void *library)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool done;
	const struct xla_functions *(*get_functions)(void);
	void *symbol = dlsym(library, "XLA_FFI_GetApi");
	int ret = 0;

	if (!symbol) {
		PyErr_SetString(PyExc_ImportError,
				"this TensorFlow exports no function XLA_FFI_GetApi");
		return -1;
	}
	memcpy(&get_functions, &symbol, sizeof(symbol));
	pthread_mutex_lock(&lock);
	if (!done)
		ret = register_targets(get_functions());
	done = done || !ret;
	pthread_mutex_unlock(&lock);
	return ret;
}

PyObject *xla_register(PyObject *module, PyObject *path)
{
	void *library = tensorflow_open(path);

	(void)module;
	if (!library)
		return NULL;
	if (register_targets_once(library)) {
		dlclose(library);
		return NULL;
	}
	Py_RETURN_NONE;
}
