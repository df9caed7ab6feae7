// SPDX-License-Identifier: MIT
/*
 * Shows a host that shares the engine's memory where the rows of a table lie, so that it reads and
 * writes them without a command. A table that is mapped stays where it is: a command that would
 * exchange its arrays copies them instead.
 *
 * engine->lock is taken inside. Arrays belong to the model; who reads rows while commands run may
 * see those of before and after one.
 */
#include <linux/errno.h>

#include "../engine.h"
#include "model.h"

static struct model *find_idle_model(struct engine *engine, u32 context, int *ret)
{
	struct context *c = context < engine->caps.contexts ? engine->contexts[context] : NULL;

	*ret = -ENOENT;
	if (!c || !c->model || c->model->state != MODEL_READY)
		return NULL;
	/* A lookup behind an early update exchanges arrays for a while. */
	*ret = c->running && c->model->pipelining ? -EAGAIN : 0;
	return *ret ? NULL : c->model;
}

int engine_table(struct engine *engine, const struct engine_table *asked, void **rows)
{
	struct model *model;
	struct table *table;
	int ret;

	port_lock(engine->lock);
	model = find_idle_model(engine, asked->context, &ret);
	if (model && (asked->table >= model->blob.engine.table_count ||
		      asked->slot > model->tables[asked->table].record.slot_count))
		ret = -ENOENT;
	table = ret ? NULL : &model->tables[asked->table];
	if (table && asked->map < 0 && !table->mapped)
		ret = -EINVAL;
	if (!ret) {
		table->mapped += (u32)asked->map;
		*rows = *table_array(table, asked->slot);
	}
	port_unlock(engine->lock);
	return ret;
}
