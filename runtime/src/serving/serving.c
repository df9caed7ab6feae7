// SPDX-License-Identifier: MIT
/*
 * Handles for lookups on the CPU, over a checkpoint or over an open engine, and the lookup itself.
 *
 * A serving handle owns its model and its checkpoint until it is closed; an engine is only
 * borrowed. After it is open it is not changed, so any number of threads may look up.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "device/soft/fetch.h"
#include "serving.h"
#include "session/session.h"

static int find_kernels(struct embeng_serving *s)
{
	const char *variant = name_kernel();

	s->kernels = kernel_select(variant);
	if (s->kernels)
		return 0;
	return fail(-EINVAL,
		    "serving: this machine has no kernel variant \"%s\"; leave EMBENG_KERNEL out, "
		    "or say \"portable\"",
		    variant);
}

static uint64_t table_bytes_served(const struct table *t)
{
	return (uint64_t)t->rows * (uint64_t)t->dim * sizeof(float);
}

/* As an engine does on this machine for a model with these tables, see choose_fetch_ways(). */
static void set_fetch_ways(struct embeng_serving *s, const struct fetch_plan *plan)
{
	const struct embeng_model *m = s->model;
	const struct fetch_ways *ways;
	uint64_t bytes = 0;

	for (size_t t = 0; t < m->table_count; t++)
		bytes += table_bytes_served(&m->tables[t]);
	ways = bytes <= plan->cached_bytes ? &plan->near : &plan->far;
	for (size_t t = 0; t < m->table_count; t++) {
		struct fetch_way *fetch = &s->sources[t].fetch;

		*fetch = fetch_lookup(ways->lookup, (uint32_t)m->tables[t].dim);
		if (table_bytes_served(&m->tables[t]) <= plan->least_bytes)
			fetch->rows = 0;
	}
}

/* @e: the engine that is served, whose name may say how to fetch if it is in this process; NULL: none */
static int choose_serving_fetch(struct embeng_serving *s, const struct embeng *e)
{
	struct embeng_device_info info = {.size = sizeof(info)};
	struct name name = {0};
	struct fetch_plan plan;
	int ret = e && !strcmp(e->device->info.kind, "soft")
			  ? name_parse(e->device->info.name, &name)
			  : name_take_prefetch(&name);

	if (ret)
		return ret;
	fetch_choose(&name, s->kernels->name, &plan, &info);
	set_fetch_ways(s, &plan);
	return 0;
}

/* The table that serves @t: of the same name, and of its shape. */
static int find_served_table(const struct embeng_model *from, const struct table *t,
			     const char *where)
{
	int index = embeng_model_table(from, t->name);
	const struct table *found;

	if (index < 0)
		return fail(-ENOENT, "table %s is not in %s, which has %zu tables", t->name, where,
			    from->table_count);
	found = &from->tables[index];
	if (found->rows != t->rows || found->dim != t->dim)
		return fail(-EINVAL,
			    "table %s is %" PRId64 " x %" PRId64 " in the features to serve, and "
			    "%" PRId64 " x %" PRId64 " in %s",
			    t->name, t->rows, t->dim, found->rows, found->dim, where);
	return index;
}

static int take_model(struct embeng_serving *s, const struct embeng_model *features,
		      const struct embeng_model *from)
{
	s->model = model_copy(features ? features : from);
	if (!s->model)
		return fail(-ENOMEM, "no memory for the features to serve");
	s->tables = calloc(s->model->table_count + 1, sizeof(*s->tables));
	s->sources = calloc(s->model->table_count + 1, sizeof(*s->sources));
	if (!s->tables || !s->sources)
		return fail(-ENOMEM, "no memory for the tables to serve");
	return find_kernels(s);
}

static int open_source(struct embeng_serving *s, size_t t, uint32_t flags)
{
	const struct table *table = &s->model->tables[t];
	struct row_source *source = &s->sources[t];
	int ret = source_open(s->checkpoint, s->tables[t], (size_t)table->dim, source);

	if (ret)
		return ret;
	switch (flags) {
	case EMBENG_SERVING_VERIFY:
		return source_check_all(source);
	case EMBENG_SERVING_TRUST:
		source_trust(source);
		return 0;
	case EMBENG_SERVING_COPY:
		return source_copy(source, table);
	}
	return 0;
}

static int open_checkpoint(struct embeng_serving *s, const char *dir,
			   const struct embeng_model *features, uint32_t flags)
{
	const struct embeng_model *saved;
	int ret = embeng_checkpoint_open(dir, &s->checkpoint, NULL);

	if (ret)
		return ret;
	saved = embeng_checkpoint_model(s->checkpoint);
	ret = take_model(s, features, saved);
	for (size_t t = 0; !ret && t < s->model->table_count; t++) {
		const struct table *table = &s->model->tables[t];

		s->tables[t] = find_served_table(saved, table, dir);
		ret = s->tables[t] < 0 ? s->tables[t] : open_source(s, t, flags);
	}
	ret = ret ? ret : choose_serving_fetch(s, NULL);
	if (flags != EMBENG_SERVING_COPY) {
		checkpoint_read_mapped(s->checkpoint);
		return ret;
	}
	embeng_checkpoint_close(s->checkpoint);
	s->checkpoint = NULL;
	return ret;
}

static int open_live(struct embeng_serving *s, struct embeng *e,
		     const struct embeng_model *features)
{
	int ret = take_model(s, features, embeng_get_model(e));

	s->engine = e;
	for (size_t t = 0; !ret && t < s->model->table_count; t++) {
		s->tables[t] = find_served_table(e->model, &s->model->tables[t], "the open engine");
		ret = s->tables[t] < 0 ? s->tables[t] : 0;
	}
	return ret ? ret : choose_serving_fetch(s, e);
}

/* Ends an open: the handle, or the sentence. */
static int finish_open(struct embeng_serving *s, int ret, struct embeng_serving **out,
		       struct embeng_error *error)
{
	if (!ret) {
		*out = s;
		return 0;
	}
	give_error(error);
	embeng_serving_close(s);
	return ret;
}

int embeng_serving_open(const char *dir, const struct embeng_model *features, uint32_t flags,
			struct embeng_serving **out, struct embeng_error *error)
{
	struct embeng_serving *s = NULL;
	int ret;

	if (!dir || !out)
		ret = fail(-EINVAL, "embeng_serving_open: dir and out must be given");
	else if (flags & ~(EMBENG_SERVING_VERIFY | EMBENG_SERVING_TRUST | EMBENG_SERVING_COPY))
		ret = fail(-EINVAL,
			   "embeng_serving_open: flags 0x%x; there are VERIFY, 0x%x, TRUST, 0x%x, "
			   "and COPY, 0x%x",
			   flags, EMBENG_SERVING_VERIFY, EMBENG_SERVING_TRUST, EMBENG_SERVING_COPY);
	else if (flags & (flags - 1))
		ret = fail(-EINVAL,
			   "embeng_serving_open: flags 0x%x are several of VERIFY, TRUST and COPY; "
			   "give one of them",
			   flags);
	else if (!(s = calloc(1, sizeof(*s))))
		ret = fail(-ENOMEM, "no memory for a serving handle");
	else
		ret = open_checkpoint(s, dir, features, flags);
	return finish_open(s, ret, out, error);
}

int embeng_serving_live(struct embeng *e, const struct embeng_model *features,
			struct embeng_serving **out, struct embeng_error *error)
{
	struct embeng_serving *s = NULL;
	int ret = session_check_alone(e, "embeng_serving_live");

	if (!ret && !out)
		ret = fail(-EINVAL, "embeng_serving_live: out must be given");
	if (!ret && !(s = calloc(1, sizeof(*s))))
		ret = fail(-ENOMEM, "no memory for a serving handle");
	if (!ret)
		ret = open_live(s, e, features);
	return finish_open(s, ret, out, error);
}

void embeng_serving_close(struct embeng_serving *serving)
{
	if (!serving)
		return;
	for (size_t t = 0; serving->sources && t < serving->model->table_count; t++)
		source_close(&serving->sources[t]);
	embeng_model_free(serving->model);
	embeng_checkpoint_close(serving->checkpoint);
	free(serving->tables);
	free(serving->sources);
	free(serving);
}

const struct embeng_model *embeng_serving_model(const struct embeng_serving *serving)
{
	return serving ? serving->model : NULL;
}

int embeng_serving_shape(const struct embeng_serving *serving,
			 const struct embeng_serving_input *input, int64_t *shape, size_t *rank)
{
	struct plan plan;
	int ret;

	if (!serving || !shape || !rank)
		return fail(-EINVAL, "embeng_serving_shape: all arguments must be given");
	ret = plan_make(serving->model, input, &plan);
	if (ret)
		return ret;
	*rank = plan.rank;
	for (size_t i = 0; i < plan.rank; i++)
		shape[i] = plan.shape[i];
	return 0;
}

/* All of them, before anything is written. */
static int check_all(const struct embeng_serving *s, const struct embeng_serving_input *inputs,
		     size_t count)
{
	struct plan plan;
	int ret = 0;

	for (size_t i = 0; !ret && i < count; i++) {
		ret = plan_make(s->model, input_at(inputs, i), &plan);
		if (!ret)
			ret = plan_check(&plan, s->engine ? NULL : &s->sources[plan.f->table]);
	}
	return ret;
}

int embeng_serving_lookup(const struct embeng_serving *serving,
			  const struct embeng_serving_input *inputs, size_t count)
{
	struct plan plan;
	int ret;

	if (!serving || (!inputs && count))
		return fail(-EINVAL, "embeng_serving_lookup: the handle and inputs must be given");
	ret = check_all(serving, inputs, count);
	if (ret || serving->engine)
		return ret ? ret : live_lookup(serving, inputs, count);
	for (size_t i = 0; !ret && i < count; i++) {
		ret = plan_make(serving->model, input_at(inputs, i), &plan);
		if (!ret)
			plan_sum(&plan, &serving->sources[plan.f->table], serving->kernels);
	}
	return ret;
}
