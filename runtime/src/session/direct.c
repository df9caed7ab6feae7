// SPDX-License-Identifier: MIT
/*
 * Rows in the memory where the engine itself has them, on devices in this process: live lookups read
 * them without a command, and programs map them as memory.
 *
 * The rows belong to the engine's model and stay until the handle is closed. e->lock is held, but not
 * while waiting; embeng_table_map() takes it itself.
 */
#include "rows.h"
#include "wait.h"

/* With pipelining a lookup for training puts rows of before into the tables for a while. */
bool direct_can(const struct embeng *e)
{
	return e->device->ops->table_rows && !e->model->engine.pipelining;
}

static bool nobody_changes(struct embeng *e, void *arg)
{
	(void)arg;
	return !e->changing;
}

int direct_enter(struct embeng *e, struct deadline deadline, const char *call)
{
	uint64_t step;
	int ret = gate_give_way(e);

	ret = ret ? ret : gate_enter(e, deadline, call, &step);
	if (ret)
		return ret;
	ret = wait_until(e, nobody_changes, NULL, deadline_never());
	if (ret)
		gate_leave(e);
	else
		e->direct++;
	return ret;
}

void direct_leave(struct embeng *e)
{
	e->direct--;
	gate_leave(e);
}

struct mapping {
	uint32_t table, slot;
	int change;
	void *rows;
	int ret;
};

static bool is_mapped(struct embeng *e, void *arg)
{
	struct mapping *m = arg;

	m->ret = e->device->ops->table_rows(e->device, m->table, m->slot, m->change, &m->rows);
	return m->ret != -EAGAIN;
}

static int map_locked(struct embeng *e, struct mapping *m, const char *call)
{
	int ret = direct_enter(e, deadline_in(0), call);

	if (ret)
		return ret;
	ret = wait_until(e, is_mapped, m, deadline_never());
	direct_leave(e);
	return ret ? ret : m->ret;
}

static int change_mapping(struct embeng *e, int table, const char *slot, const char *call,
			  struct mapping *m)
{
	int ret = rows_find_slot(e, call, table, slot);

	if (ret < 0)
		return ret;
	if (!e->device->ops->table_rows)
		return fail(-ENOTSUP,
			    "%s: %s has its tables in memory of its own; read and write rows with "
			    "embeng_rows_read() and embeng_rows_write()",
			    call, e->device->info.name);
	m->table = (uint32_t)table;
	m->slot = (uint32_t)ret;
	pthread_mutex_lock(&e->lock);
	ret = map_locked(e, m, call);
	pthread_mutex_unlock(&e->lock);
	return ret;
}

int embeng_table_map(struct embeng *e, int table, const char *slot, float **rows,
		     int64_t *row_stride)
{
	struct mapping m = {.change = 1};
	int ret;

	if (!rows || !row_stride)
		return fail(-EINVAL, "embeng_table_map: no place for the rows given");
	ret = change_mapping(e, table, slot, "embeng_table_map", &m);
	if (ret)
		return ret;
	*rows = m.rows;
	*row_stride = (int64_t)model_width(&e->model->tables[table], m.slot);
	return 0;
}

int embeng_table_unmap(struct embeng *e, int table, const char *slot)
{
	struct mapping m = {.change = -1};
	int ret = change_mapping(e, table, slot, "embeng_table_unmap", &m);

	if (ret == -EINVAL)
		return fail(-EPROTO, "embeng_table_unmap: table %s is not mapped",
			    e->model->tables[table].name);
	return ret;
}
