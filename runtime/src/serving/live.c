// SPDX-License-Identifier: MIT
/*
 * Lookups over an open engine. On a device in this process rows are summed where the engine has
 * them. From any other device each row that the inputs ask for is read once, and summed here.
 *
 * All memory lives for one call. direct_enter() keeps updates back while rows are summed; it and
 * rows_read_together() take the engine's locks.
 */
#include <stdlib.h>

#include "base/list.h"
#include "serving.h"
#include "session/rows.h"
#include "session/wait.h"

/* The rows that a call asks of each table. */
struct wanted {
	size_t table_count;
	struct rows_reading *tables; /* [table_count], in the served model's order */
	int64_t **ids;		     /* [table_count] */
	struct row_source *sources;  /* [table_count] */
};

static void each_id(const struct plan *p, struct rows_reading *reading, int64_t *ids)
{
	struct bag bag = {0};

	for (size_t s = 0; s < p->samples; s++) {
		bag = plan_bag(p, s, bag.end);
		while (plan_next(p, &bag) && plan_reads(p, &bag))
			ids[reading->count++] = bag.id;
	}
}

/* Room for the ids of all inputs of a table, whether they count or not. */
static int make_ids_room(const struct embeng_serving *s, const struct embeng_serving_input *inputs,
			 size_t count, struct wanted *w)
{
	for (size_t i = 0; i < count; i++) {
		const struct embeng_serving_input *in = input_at(inputs, i);

		w->tables[s->model->features[in->feature].table].count += in->id_count;
	}
	for (size_t t = 0; t < w->table_count; t++) {
		if (w->tables[t].count)
			w->ids[t] = reallocarray(NULL, w->tables[t].count, sizeof(**w->ids));
		if (w->tables[t].count && !w->ids[t])
			return fail(-ENOMEM, "no memory for the ids of a lookup");
		w->tables[t].count = 0;
	}
	return 0;
}

static int collect_ids(const struct embeng_serving *s, const struct embeng_serving_input *inputs,
		       size_t count, struct wanted *w)
{
	struct plan plan;
	int ret = make_ids_room(s, inputs, count, w);

	for (size_t i = 0; !ret && i < count; i++) {
		ret = plan_make(s->model, input_at(inputs, i), &plan);
		if (!ret)
			each_id(&plan, &w->tables[plan.f->table], w->ids[plan.f->table]);
	}
	return ret;
}

static int read_live_rows(const struct embeng_serving *s, struct wanted *w)
{
	for (size_t t = 0; t < w->table_count; t++) {
		struct rows_reading *r = &w->tables[t];
		size_t dim = (size_t)s->model->tables[t].dim;

		if (!r->count)
			continue;
		r->table = s->tables[t];
		r->ids = w->ids[t];
		r->count = list_keep_unique(w->ids[t], r->count);
		r->data = reallocarray(NULL, r->count, dim * sizeof(float));
		if (!r->data)
			return fail(-ENOMEM, "no memory for the %zu rows of a lookup", r->count);
		w->sources[t] = (struct row_source){
			.base = r->data,
			.dim = dim,
			.ids = r->ids,
			.id_count = r->count,
			.fetch = s->sources[t].fetch,
		};
	}
	return rows_read_together(s->engine, "embeng_serving_lookup", w->tables, w->table_count, 0);
}

static void release_wanted(struct wanted *w)
{
	for (size_t t = 0; t < w->table_count; t++) {
		if (w->ids)
			free(w->ids[t]);
		if (w->tables)
			free(w->tables[t].data);
	}
	free(w->ids);
	free(w->tables);
	free(w->sources);
}

static int read_and_sum(const struct embeng_serving *serving,
			const struct embeng_serving_input *inputs, size_t count)
{
	size_t tables = serving->model->table_count;
	struct wanted w = {
		.table_count = tables,
		.tables = calloc(tables + 1, sizeof(*w.tables)),
		.ids = calloc(tables + 1, sizeof(*w.ids)),
		.sources = calloc(tables + 1, sizeof(*w.sources)),
	};
	struct plan plan;
	int ret = 0;

	if (!w.tables || !w.ids || !w.sources)
		ret = fail(-ENOMEM, "no memory for a lookup");
	if (!ret)
		ret = collect_ids(serving, inputs, count, &w);
	if (!ret)
		ret = read_live_rows(serving, &w);
	for (size_t i = 0; !ret && i < count; i++) {
		ret = plan_make(serving->model, input_at(inputs, i), &plan);
		if (!ret)
			plan_sum(&plan, &w.sources[plan.f->table], serving->kernels);
	}
	release_wanted(&w);
	return ret;
}

static int sum_in_place(const struct embeng_serving *s, const struct embeng_serving_input *inputs,
			size_t count)
{
	struct device *d = s->engine->device;
	int ret = 0;

	for (size_t i = 0; !ret && i < count; i++) {
		struct row_source source = {0};
		struct plan plan;
		void *rows = NULL;

		ret = plan_make(s->model, input_at(inputs, i), &plan);
		if (!ret && d->ops->table_rows(d, (uint32_t)s->tables[plan.f->table], 0, 0, &rows))
			ret = fail(-EIO, "table %s: the engine has no rows of it",
				   plan.table->name);
		source.base = rows;
		source.dim = (size_t)plan.table->dim;
		if (!ret)
			source.fetch = s->sources[plan.f->table].fetch;
		if (!ret)
			plan_sum(&plan, &source, s->kernels);
	}
	return ret;
}

int live_lookup(const struct embeng_serving *serving, const struct embeng_serving_input *inputs,
		size_t count)
{
	struct embeng *e = serving->engine;
	int ret = session_check(e, "embeng_serving_lookup");

	if (ret)
		return ret;
	if (!direct_can(e))
		return read_and_sum(serving, inputs, count);
	pthread_mutex_lock(&e->lock);
	ret = direct_enter(e, deadline_in(0), "embeng_serving_lookup");
	pthread_mutex_unlock(&e->lock);
	if (ret)
		return ret;
	ret = sum_in_place(serving, inputs, count);
	pthread_mutex_lock(&e->lock);
	direct_leave(e);
	pthread_mutex_unlock(&e->lock);
	return ret;
}
