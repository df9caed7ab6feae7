// SPDX-License-Identifier: MIT
/*
 * Opens an engine, loads its model, and closes it: the functions of a handle's whole life. Those of
 * a training step are in enqueue.c, dequeue.c and gradients.c.
 *
 * A handle owns everything that it reaches and lives until embeng_close(). Opening and closing are
 * done by one thread; the other functions take e->lock where they need it.
 */
#include <stdlib.h>
#include <string.h>

#include "../../../engine/kernels/kernels.h"
#include "device/name.h"
#include "embeng/group.h"
#include "session.h"
#include "wait.h"

#define TEXT_OF_VERSION(major, minor, patch) #major "." #minor "." #patch
#define VERSION_TEXT(...) TEXT_OF_VERSION(__VA_ARGS__)

_Static_assert(!__builtin_strcmp(EMBENG_VERSION,
				 VERSION_TEXT(EMBENG_VERSION_MAJOR, EMBENG_VERSION_MINOR,
					      EMBENG_VERSION_PATCH)),
	       "embeng/error.h must have the version of meson.build");

const char *embeng_version(void)
{
	return EMBENG_VERSION;
}

void give_error(struct embeng_error *error)
{
	if (error)
		embeng_last_error(error);
}

void session_destroy(struct embeng *e)
{
	if (e->device) {
		session_stop(e);
		if (!e->calls)
			e->device->ops->close(e->device);
	}
	if (tracer_close(e->tracer))
		log_say(&e->log, EMBENG_LOG_WARNING,
			"the record of commands could not be written to the file that EMBENG_TRACE "
			"names");
	session_free_models(e);
	log_end(&e->log);
	pthread_mutex_destroy(&e->grid);
	pthread_mutex_destroy(&e->rows);
	pthread_mutex_destroy(&e->saves);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

/* The origin of a handle: options that name a device, or the descriptor of a context. */
struct origin {
	const struct embeng_open_options *options; /* NULL: fd is the origin */
	int fd;
};

static int open_origin(struct embeng *e, const struct origin *from)
{
	const struct device_log log = {.fn = log_line, .arg = &e->log};
	struct name name;
	int ret;

	if (!from->options)
		return device_attach(from->fd, &e->device);
	embeng_log(e, from->options->log, from->options->log_arg, from->options->log_level);
	ret = name_of_options(from->options, &name);
	return ret ? ret : device_open(&name, e->replica_count, &log, &e->device);
}

static int start_handle(struct embeng *e, const struct origin *from,
			const struct embeng_model *model)
{
	int ret;

	e->model = model_copy(model);
	if (!e->model)
		return fail(-ENOMEM, "no memory for the model");
	e->replica_count = e->local_replicas = e->model->engine.replicas;
	e->shared = !from->options;
	ret = open_origin(e, from);
	ret = ret ? ret : tracer_open(e->device->info.name, &e->tracer);
	ret = ret ? ret : session_start(e);
	return ret ? ret : session_load(e, e->shared);
}

struct embeng *session_new(void)
{
	struct embeng *e = calloc(1, sizeof(*e));

	if (!e) {
		fail(-ENOMEM, "no memory for a handle");
		return NULL;
	}
	e->fork = fork_generation();
	e->kernels = kernel_select(NULL);
	pthread_mutex_init(&e->lock, NULL);
	pthread_mutex_init(&e->saves, NULL);
	pthread_mutex_init(&e->rows, NULL);
	pthread_mutex_init(&e->grid, NULL);
	log_init(&e->log);
	return e;
}

static int new_handle(const struct origin *from, const struct embeng_model *model,
		      struct embeng **out)
{
	struct embeng *e = session_new();
	int ret = e ? start_handle(e, from, model) : -ENOMEM;

	if (!e)
		return ret;
	if (ret)
		session_destroy(e);
	else
		*out = e;
	return ret;
}

int session_open(const struct embeng_open_options *options, const struct embeng_model *model,
		 struct embeng **out)
{
	const struct origin from = {.options = options};

	if ((unsigned int)options->log_level > EMBENG_LOG_DEBUG)
		return fail(-ERANGE, "embeng_open_with: log_level %u must be 0 to %d",
			    (unsigned int)options->log_level, EMBENG_LOG_DEBUG);
	return new_handle(&from, model, out);
}

static int check_shareable(const struct embeng_model *model, const char *call)
{
	if (!model->engine.pipelining)
		return 0;
	/* A write of rows has the held update applied, for the next lookup of all replicas. */
	return fail(
		-ENOTSUP,
		"%s: the model is pipelined; the processes that share a context do "
		"not agree on where rows are written, so that bits would depend on their timing",
		call);
}

int embeng_attach(int fd, const struct embeng_model *model, struct embeng **out,
		  struct embeng_error *error)
{
	const struct origin from = {.fd = fd};
	int ret = !model || !out ? fail(-EINVAL, "embeng_attach: model and out must be given")
				 : check_shareable(model, "embeng_attach");

	ret = ret ? ret : new_handle(&from, model, out);
	if (ret)
		give_error(error);
	return ret;
}

int embeng_export(struct embeng *e)
{
	int ret = session_check_alone(e, "embeng_export");

	if (ret)
		return ret;
	if (!e->device->ops->share)
		return fail(-ENOTSUP, "embeng_export: the soft device is part of this process, it "
				      "cannot be shared");
	ret = check_shareable(e->model, "embeng_export");
	if (ret)
		return ret;
	pthread_mutex_lock(&e->lock);
	if (e->wants_fd)
		ret = fail(-EBUSY, "embeng_export: embeng_fd() was called, whose events other "
				   "processes would take; share the context before, and wait by "
				   "embeng_dequeue()");
	else
		ret = e->device->ops->share(e->device);
	if (ret >= 0 && !e->shared)
		session_share(e);
	pthread_mutex_unlock(&e->lock);
	return ret;
}

void embeng_close(struct embeng *e)
{
	if (!e || fork_generation() != e->fork)
		return;
	if (e->calls) {
		e->calls->close(e);
	} else {
		struct embeng_group *group = e->group;

		/* Steps that cannot be applied any more are lost with the tables. */
		embeng_flush(e, 0);
		session_destroy(e);
		embeng_group_close(group);
	}
}

int embeng_info(struct embeng *e, struct embeng_device_info *info)
{
	int ret = session_check(e, "embeng_info");

	if (ret)
		return ret;
	if (!info || info->size < sizeof(*info))
		return fail(-EINVAL, "embeng_info: info must be given, with its size");
	pthread_mutex_lock(&e->lock);
	if (e->device->ops->describe)
		e->device->ops->describe(e->device);
	*info = e->device->info;
	pthread_mutex_unlock(&e->lock);
	info->replica_count = e->local_replicas;
	info->hosts = 1;
	if (e->calls)
		e->calls->info(e, info);
	return 0;
}

int embeng_fd(struct embeng *e)
{
	int ret = session_check(e, "embeng_fd");

	if (ret)
		return ret;
	if (e->calls)
		return e->calls->fd(e);
	pthread_mutex_lock(&e->lock);
	if (e->shared) {
		ret = fail(-ENOTSUP, "embeng_fd: the context is shared, other processes take its "
				     "events, too; wait by embeng_dequeue()");
	} else {
		e->wants_fd = true;
		session_reap(e);
		ret = e->device->ops->fd(e->device);
	}
	pthread_mutex_unlock(&e->lock);
	return ret;
}
