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
#include "base/bits.h"
#include "base/check.h"
#include "device/name.h"
#include "model/initializer.h"
#include "blob_error.h"
#include "rows.h"
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

static int load_by_validator(struct embeng *e, const void *blob, size_t length)
{
	struct request request = {0};
	int ret;

	pthread_mutex_lock(&e->lock);
	ret = ring_load(&e->transfer, blob, length, &request);
	ret = ret ? ret : wait_done(e, &request, deadline_never());
	if (ret)
		ring_abandon(&e->transfer, &request);
	ret = ret ? ret : session_aborted(e, &request);
	pthread_mutex_unlock(&e->lock);
	if (ret || !request.status)
		return ret;
	return blob_error(e->model, blob, length, &request.answer);
}

static int load_blob(struct embeng *e, const void *blob, size_t length)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_MODEL_LOAD};
	struct region region = {0};
	struct embeng_cqe answer;
	int ret;

	if (e->transfer.queue.validator)
		return load_by_validator(e, blob, length);
	ret = region_alloc(e->device, &region, length);
	if (ret)
		return ret;
	memcpy(region.data, blob, length);
	cmd.desc = region_part(&region, 0, length);
	pthread_mutex_lock(&e->lock);
	ret = transfer_quietly(e, &cmd, &answer);
	pthread_mutex_unlock(&e->lock);
	if (!ret && answer.status)
		ret = blob_error(e->model, blob, length, &answer);
	if (region_free(e->device, &region) && !ret)
		ret = -EIO;
	return ret;
}

/* Fills rows whose start the blob cannot describe: parameters, and slots that start at random. */
static int fill_new_table(struct embeng *e, int table)
{
	const struct table *t = &e->model->tables[table];
	size_t rows = (size_t)t->rows;
	int ret = 0;

	/* Fresh tables hold zeros, and pages that nobody wrote cost nothing. */
	if (t->initializer.kind != EMBENG_INIT_CONSTANT || bits(t->initializer.a))
		ret = embeng_rows_fill(e, table, NULL, 0, rows, &t->initializer);

	for (size_t s = 0; !ret && s < t->slot_count; s++) {
		struct embeng_initializer start = slot_start(t, s);

		if (start.kind != EMBENG_INIT_CONSTANT)
			ret = embeng_rows_fill(e, table, model_slot_name(e->model, table, s + 1), 0,
					       rows, &start);
	}
	return ret;
}

static int check_host_limit(const struct embeng *e)
{
	struct device *d = e->device;
	char by[256] = "";
	uint64_t most = d->ops->most ? d->ops->most(d, by) : UINT64_MAX;

	return tables_limit_check(e->model, d->info.table_memory, most, by);
}

/* The blob's hash is the model's; the tables of an attached context stand already. */
static int load_model(struct embeng *e, bool attached)
{
	size_t length;
	void *blob;
	int ret = embeng_model_blob(e->model, &blob, &length);

	if (ret)
		return ret;
	memcpy(&e->model_hash, (char *)blob + offsetof(struct embeng_blob_header, hash),
	       sizeof(e->model_hash));
	if (!attached)
		ret = check_host_limit(e);
	if (!ret && !attached)
		ret = load_blob(e, blob, length);
	free(blob);
	for (size_t t = 0; !ret && !attached && t < e->model->table_count; t++) {
		ret = fill_new_table(e, (int)t);
		if (!ret && e->model->tables[t].frozen)
			ret = embeng_table_freeze(e, (int)t, true);
	}
	return ret;
}

static void destroy_handle(struct embeng *e)
{
	if (e->device) {
		session_stop(e);
		e->device->ops->close(e->device);
	}
	embeng_model_free(e->model);
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
	e->replica_count = e->model->engine.replicas;
	e->shared = !from->options;
	ret = open_origin(e, from);
	ret = ret ? ret : session_start(e);
	return ret ? ret : load_model(e, e->shared);
}

static int new_handle(const struct origin *from, const struct embeng_model *model,
		      struct embeng **out)
{
	struct embeng *e = calloc(1, sizeof(*e));
	int ret;

	if (!e)
		return fail(-ENOMEM, "no memory for a handle");
	e->fork = fork_generation();
	e->kernels = kernel_select(NULL);
	pthread_mutex_init(&e->lock, NULL);
	pthread_mutex_init(&e->saves, NULL);
	pthread_mutex_init(&e->rows, NULL);
	pthread_mutex_init(&e->grid, NULL);
	log_init(&e->log);
	ret = start_handle(e, from, model);
	if (ret)
		destroy_handle(e);
	else
		*out = e;
	return ret;
}

static int check_open(const struct embeng_open_options *options, const struct embeng_model *model,
		      struct embeng **out)
{
	if (!model || !out)
		return fail(-EINVAL, "embeng_open: model and out must be given");
	if ((unsigned int)options->log_level > EMBENG_LOG_DEBUG)
		return fail(-ERANGE, "embeng_open_with: log_level %u must be 0 to %d",
			    (unsigned int)options->log_level, EMBENG_LOG_DEBUG);
	return 0;
}

int embeng_open_with(const struct embeng_open_options *options, const struct embeng_model *model,
		     struct embeng **out, struct embeng_error *error)
{
	struct embeng_open_options taken;
	const struct origin from = {.options = &taken};
	int ret = config_take(&taken, options, sizeof(taken), "embeng_open_options");

	ret = ret ? ret : check_open(&taken, model, out);
	ret = ret ? ret : new_handle(&from, model, out);
	if (ret)
		give_error(error);
	return ret;
}

int embeng_open(const char *name, const struct embeng_model *model, struct embeng **out,
		struct embeng_error *error)
{
	const struct embeng_open_options options = EMBENG_INIT(embeng_open_options, .device = name);

	return embeng_open_with(&options, model, out, error);
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
	int ret = session_check(e, "embeng_export");

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
	/* Steps that cannot be applied any more are lost with the tables, so errors are ignored. */
	embeng_flush(e, 0);
	destroy_handle(e);
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
	return 0;
}

int embeng_fd(struct embeng *e)
{
	int ret = session_check(e, "embeng_fd");

	if (ret)
		return ret;
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
