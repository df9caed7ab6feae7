// SPDX-License-Identifier: MIT
/* Open, load, close, and what a handle says of itself. */
#include <stdlib.h>
#include <string.h>

#include "bits.h"
#include "initializer.h"
#include "rows.h"
#include "wait.h"

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
	pthread_mutex_unlock(&e->lock);
	if (ret || !request.status)
		return ret;
	return command_error("model", &request.answer);
}

static int load_blob(struct embeng *e, const void *blob, size_t length)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_MODEL_LOAD};
	struct region region = {0};
	int ret;

	if (e->transfer.queue.validator)
		return load_by_validator(e, blob, length);
	ret = region_alloc(e->device, &region, length);
	if (ret)
		return ret;
	memcpy(region.data, blob, length);
	cmd.desc = region_part(&region, 0, length);
	pthread_mutex_lock(&e->lock);
	ret = transfer(e, &cmd, "model", NULL);
	pthread_mutex_unlock(&e->lock);
	if (region_free(e->device, &region) && !ret)
		ret = -EIO;
	return ret;
}

/* What the model's records cannot say: parameters, and slots that do not start with a number. */
static int fill_table(struct embeng *e, int table)
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

static int load_model(struct embeng *e)
{
	size_t length;
	void *blob;
	int ret = embeng_model_blob(e->model, &blob, &length);

	if (ret)
		return ret;
	memcpy(&e->model_hash, (char *)blob + offsetof(struct embeng_blob_header, hash),
	       sizeof(e->model_hash));
	ret = load_blob(e, blob, length);
	free(blob);
	for (size_t t = 0; !ret && t < e->model->table_count; t++)
		ret = fill_table(e, (int)t);
	return ret;
}

static void destroy(struct embeng *e)
{
	if (e->device) {
		session_stop(e);
		e->device->ops->close(e->device);
	}
	embeng_model_free(e->model);
	log_end(&e->log);
	pthread_mutex_destroy(&e->rows);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

static int start(struct embeng *e, const char *name, const struct embeng_model *model)
{
	const struct device_log log = {.fn = log_line, .arg = &e->log};
	int ret;

	e->model = model_copy(model);
	if (!e->model)
		return fail(-ENOMEM, "no memory for the model");
	e->replica_count = e->model->engine.replicas;
	ret = device_open(name, e->replica_count, &log, &e->device);
	ret = ret ? ret : session_start(e);
	return ret ? ret : load_model(e);
}

int embeng_open(const char *name, const struct embeng_model *model, struct embeng **out,
		struct embeng_error *error)
{
	struct embeng *e = NULL;
	int ret;

	if (!model || !out)
		ret = fail(-EINVAL, "embeng_open: model and out must be given");
	else if (!(e = calloc(1, sizeof(*e))))
		ret = fail(-ENOMEM, "no memory for a handle");
	else {
		e->fork = fork_generation();
		pthread_mutex_init(&e->lock, NULL);
		pthread_mutex_init(&e->rows, NULL);
		log_init(&e->log);
		ret = start(e, name, model);
	}
	if (ret) {
		give_error(error);
		if (e)
			destroy(e);
		return ret;
	}
	*out = e;
	return 0;
}

void embeng_close(struct embeng *e)
{
	if (!e || fork_generation() != e->fork)
		return;
	/* What cannot be applied any more is lost with the tables, so nobody is told. */
	embeng_flush(e, 0);
	destroy(e);
}

int embeng_info(struct embeng *e, struct embeng_device_info *info)
{
	int ret = session_check(e, "embeng_info");

	if (ret)
		return ret;
	if (!info || info->size < sizeof(*info))
		return fail(-EINVAL, "embeng_info: info must be given, with its size");
	*info = e->device->info;
	return 0;
}

const struct embeng_model *embeng_get_model(const struct embeng *e)
{
	return e ? e->model : NULL;
}

int embeng_fd(struct embeng *e)
{
	int ret = session_check(e, "embeng_fd");

	if (ret)
		return ret;
	pthread_mutex_lock(&e->lock);
	e->wants_fd = true;
	session_reap(e);
	pthread_mutex_unlock(&e->lock);
	return e->device->ops->fd(e->device);
}

int embeng_export(struct embeng *e)
{
	int ret = session_check(e, "embeng_export");

	return ret ? ret : fail(-ENOTSUP, "the soft device is one process, it cannot be shared");
}

int embeng_attach(int fd, const struct embeng_model *model, struct embeng **out,
		  struct embeng_error *error)
{
	int ret;

	(void)fd;
	ret = !model || !out ? fail(-EINVAL, "embeng_attach: model and out must be given")
			     : fail(-ENOTSUP, "this build has only the soft device, which is one "
					      "process and cannot be shared");
	give_error(error);
	return ret;
}
