// SPDX-License-Identifier: MIT
/*
 * The step that adds tables and features to the open engine. The longer model is made anew, of the
 * vector and of all steps that added something, so that a step that fails leaves the run as it was.
 *
 * The model belongs to the run once the engine has taken it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "value.h"

static int build_longer_model(struct run *r, const struct json *body, struct embeng_model *model)
{
	int err = model_build(r, r->opened, r->trains, model);

	for (size_t i = 0; !err && i < r->added_count; i++)
		err = model_add(r, r->added[i], r->trains, model);
	return err ? err : model_add(r, body, r->trains, model);
}

/* Room for the shapes of more features, and for one more step. */
static int make_room(struct run *r, const struct embeng_model *model)
{
	size_t had = embeng_model_feature_count(r->model);
	size_t count = embeng_model_feature_count(model);
	const struct json **added = realloc(r->added, (r->added_count + 1) * sizeof(struct json *));
	struct output_shape *shapes = realloc(r->shapes, (count + 1) * sizeof(*shapes));

	r->added = added ? added : r->added;
	r->shapes = shapes ? shapes : r->shapes;
	if (!added || !shapes)
		return run_fail(r, -ENOMEM, "out of memory");
	memset(shapes + had, 0, (count + 1 - had) * sizeof(*shapes));
	return 0;
}

static int extend_run(struct run *r, const struct json *body, struct embeng_model *model)
{
	int first = (int)embeng_model_table_count(r->model);
	int err = embeng_add_tables(r->e, model);

	if (err)
		return run_library(r, err);
	embeng_model_free(r->model);
	r->model = model;
	r->added[r->added_count++] = body;
	return run_fill_tables(r, r->e, member(body, "tables"), first, r->trains);
}

int step_add_tables(struct run *r, const struct json *body)
{
	struct embeng_model *model = embeng_model_new();
	int err;

	if (!model)
		return run_fail(r, -ENOMEM, "out of memory");
	err = build_longer_model(r, body, model);
	err = err ? err : make_room(r, model);
	err = err ? err : extend_run(r, body, model);
	if (r->model != model)
		embeng_model_free(model);
	return err;
}
