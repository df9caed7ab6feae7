// SPDX-License-Identifier: MIT
/*
 * Gives the engine a model and the rows that its tables begin with: all of it when a handle is
 * opened, and what is new when tables are added to one.
 *
 * A model that another one replaced stays until the handle is closed, because the program may have
 * asked for it. e->lock is taken while a command is submitted and waited for.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "model/initializer.h"
#include "blob_error.h"
#include "rows.h"
#include "wait.h"

static int load_by_validator(struct embeng *e, const struct model_blob *blob,
			     struct embeng_cqe *answer)
{
	struct request request = {0};
	int ret;

	pthread_mutex_lock(&e->lock);
	ret = ring_load(&e->transfer, blob, &request);
	ret = ret ? ret : wait_done(e, &request, deadline_never());
	if (ret)
		ring_abandon(&e->transfer, &request);
	ret = ret ? ret : session_aborted(e, &request);
	pthread_mutex_unlock(&e->lock);
	*answer = request.answer;
	return ret;
}

static int load_by_region(struct embeng *e, const struct model_blob *blob,
			  struct embeng_cqe *answer)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_MODEL_LOAD, .flags = blob->flags};
	struct region region = {0};
	int ret = region_alloc(e->device, &region, blob->length);

	if (ret)
		return ret;
	memcpy(region.data, blob->bytes, blob->length);
	cmd.desc = region_part(&region, 0, blob->length);
	pthread_mutex_lock(&e->lock);
	ret = transfer_quietly(e, &cmd, answer);
	pthread_mutex_unlock(&e->lock);
	if (region_free(e->device, &region) && !ret)
		ret = -EIO;
	return ret;
}

int session_load_blob(struct embeng *e, const struct model_blob *blob, struct embeng_cqe *answer)
{
	return e->transfer.queue.validator ? load_by_validator(e, blob, answer)
					   : load_by_region(e, blob, answer);
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

int session_begin_tables(struct embeng *e)
{
	int ret = 0;

	while (!ret && e->begun < e->model->table_count) {
		int table = (int)e->begun;

		ret = fill_new_table(e, table);
		if (!ret && e->model->tables[table].frozen)
			ret = embeng_table_freeze(e, table, true);
		e->begun += !ret;
	}
	return ret;
}

/* In words of tables. The device would refuse a record that it does not know. */
static int check_parts(const struct embeng *e, const struct embeng_model *model)
{
	if (e->device->info.features & EMBENG_CAP_SHARDS)
		return 0;
	for (size_t t = 0; t < model->table_count; t++) {
		if (table_is_part(&model->tables[t]))
			return fail(
				-ENOTSUP,
				"table %s is a part of a larger one, and %s knows only whole "
				"tables; its firmware may be an older one. exchange=table places "
				"the tables of several hosts whole",
				model->tables[t].name, e->device->info.name);
	}
	return 0;
}

int session_check_limit(const struct embeng *e, const struct embeng_model *model)
{
	struct device *d = e->device;
	char by[256] = "";
	uint64_t most = d->ops->most ? d->ops->most(d, by) : UINT64_MAX;
	int ret = check_parts(e, model);

	return ret ? ret : tables_limit_check(model, d->info.table_memory, most, by);
}

uint64_t blob_hash(const struct model_blob *blob)
{
	uint64_t hash;

	memcpy(&hash, (char *)blob->bytes + offsetof(struct embeng_blob_header, hash),
	       sizeof(hash));
	return hash;
}

/* The tables of an attached context stand already. */
static int load_tables(struct embeng *e, const struct model_blob *blob)
{
	struct embeng_cqe answer;
	int ret = session_check_limit(e, e->model);

	ret = ret ? ret : session_load_blob(e, blob, &answer);
	if (!ret && answer.status)
		ret = blob_error(e->model, blob->bytes, blob->length, &answer);
	return ret ? ret : session_begin_tables(e);
}

int session_load(struct embeng *e, bool attached)
{
	struct model_blob blob = {0};
	int ret = embeng_model_blob(e->model, &blob.bytes, &blob.length);

	if (ret)
		return ret;
	e->model_hash = blob_hash(&blob);
	if (!attached)
		ret = load_tables(e, &blob);
	free(blob.bytes);
	return ret;
}

void session_free_models(struct embeng *e)
{
	embeng_model_free(e->model);
	for (size_t i = 0; i < e->replaced_count; i++)
		embeng_model_free(e->replaced[i]);
	free(e->replaced);
}
