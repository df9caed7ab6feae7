// SPDX-License-Identifier: MIT
/*
 * Finds and loads the plug-in of a transport. It is a file because the library itself links no MPI:
 * a plug-in is another library, found at run time, and a process without one loses nothing.
 *
 * A plug-in is looked for in the folder of the library that has this code, then in mpi/ there, as a
 * build has it, and then where the linker looks. So a plug-in of the same build is found first.
 *
 * A plug-in stays loaded until the process exits. No lock is needed.
 */
#define _GNU_SOURCE /* dladdr, secure_getenv */
#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "embeng/group.h"

struct plugin {
	const char *name, *library, *mpi;
	const char *launched[3]; /* variables by which this MPI's launcher is known */
};

static const struct plugin plugins[] = {
	{"openmpi",
	 "libembeng-openmpi.so.0",
	 "libmpi.so.40",
	 {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", NULL}},
	{"mpich", "libembeng-mpich.so.0", "libmpich.so.12", {"PMI_SIZE", NULL, NULL}},
};

#define PLUGINS (sizeof(plugins) / sizeof(*plugins))

static bool was_launched(const struct plugin *p)
{
	for (size_t i = 0; p->launched[i]; i++) {
		if (secure_getenv(p->launched[i]))
			return true;
	}
	return false;
}

static bool is_loaded(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);

	if (handle)
		dlclose(handle);
	return handle != NULL;
}

static void *load_library(const char *path)
{
	return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

/* A file that is there is the one to load: if it cannot be, that is the reason to tell. */
static void *load_plugin(const struct plugin *p)
{
	static const char *const folders[] = {"", "mpi/"};
	const char *slash;
	char path[PATH_MAX];
	Dl_info self;

	if (!dladdr(plugins, &self) || !(slash = strrchr(self.dli_fname, '/')))
		return load_library(p->library);
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		if ((size_t)snprintf(path, sizeof(path), "%.*s/%s%s", (int)(slash - self.dli_fname),
				     self.dli_fname, folders[i], p->library) < sizeof(path) &&
		    !access(path, F_OK))
			return load_library(path);
	}
	return load_library(p->library);
}

/* The MPI that this process has to do with. NULL: none can be told. */
static const struct plugin *guess_plugin(void)
{
	for (size_t i = 0; i < PLUGINS; i++) {
		if (is_loaded(plugins[i].mpi))
			return &plugins[i];
	}
	for (size_t i = 0; i < PLUGINS; i++) {
		if (was_launched(&plugins[i]))
			return &plugins[i];
	}
	for (size_t i = 0; i < PLUGINS; i++) {
		if (load_plugin(&plugins[i]))
			return &plugins[i];
	}
	return NULL;
}

static int find_plugin(const char *name, const struct plugin **out)
{
	const bool any = !strcmp(name, "mpi");

	*out = any ? guess_plugin() : NULL;
	for (size_t i = 0; i < PLUGINS && !any; i++) {
		if (!strcmp(name, plugins[i].name))
			*out = &plugins[i];
	}
	if (*out)
		return 0;
	return any ? fail(-ENOTSUP,
			  "embeng_group_transport: no MPI can be used; install "
			  "libembeng-openmpi or libembeng-mpich: %s",
			  dlerror())
		   : fail(-ENOENT,
			  "embeng_group_transport: there is no transport \"%s\"; ask for "
			  "\"mpi\", \"openmpi\" or \"mpich\"",
			  name);
}

static int open_plugin(const struct plugin *p, struct embeng_transport *out)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);
	int (*begin)(struct embeng_transport *t, struct embeng_error *error);
	void *handle = load_plugin(p);
	int ret;

	if (!handle)
		return fail(-ENOTSUP,
			    "embeng_group_transport: the plug-in of %s cannot be loaded: %s",
			    p->name, dlerror());
	*(void **)&begin = dlsym(handle, "embeng_transport_open");
	if (!begin)
		return fail(-ENOTSUP, "embeng_group_transport: %s is no plug-in of embeng: %s",
			    p->library, dlerror());
	ret = begin(out, &error);
	return ret ? fail(ret, "%s", error.text) : 0;
}

int embeng_group_transport(const char *name, struct embeng_transport *out,
			   struct embeng_error *error)
{
	const struct plugin *p;
	int ret = name && out ? 0
			      : fail(-EINVAL, "embeng_group_transport: name and out must be given");

	ret = ret ? ret : find_plugin(name, &p);
	ret = ret ? ret : open_plugin(p, out);
	if (ret && error)
		embeng_last_error(error);
	return ret;
}
