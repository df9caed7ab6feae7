// SPDX-License-Identifier: MIT
/*
 * Reads the tables of a training back from a checkpoint, by serving and without an engine.
 *
 * The vectors belong to the caller.
 */
#include <errno.h>
#include <stdlib.h>

#include "embeng.h"

#include "../../examples/item2vec/trainer.h"
#include "served.h"

/* Each item as a bag of its own: what comes out is the row. */
static int look_up_rows(const struct embeng_serving *serving, int feature, const int32_t *ids,
			size_t items, float *rows, size_t dim)
{
	const int64_t shape[] = {(int64_t)items};
	const struct embeng_serving_input input = EMBENG_INIT(
		embeng_serving_input, .feature = feature, .form = EMBENG_DENSE, .type = EMBENG_I32,
		.ids = ids, .id_count = items, .shape = shape, .rank = 1, .out = rows,
		.out_elements = items * dim);

	return embeng_serving_lookup(serving, &input, 1);
}

static int read_both(const struct embeng_serving *serving, size_t items, struct vectors *v)
{
	int32_t *ids = calloc(items + 1, sizeof(*ids));
	int rc = -ENOMEM;

	for (size_t k = 0; ids && k < items; k++)
		ids[k] = (int32_t)k;
	v->in = calloc(items * v->dim + 1, sizeof(*v->in));
	v->out = calloc(items * v->dim + 1, sizeof(*v->out));
	if (ids && v->in && v->out) {
		rc = look_up_rows(serving, TABLE_IN, ids, items, v->in, v->dim);
		if (!rc)
			rc = look_up_rows(serving, TABLE_OUT, ids, items, v->out, v->dim);
	}
	free(ids);
	return rc;
}

int served_vectors(const char *dir, size_t items, struct vectors *v)
{
	struct embeng_table_config table = EMBENG_INIT(embeng_table_config);
	struct embeng_serving *serving;
	int rc = embeng_serving_open(dir, NULL, 0, &serving, NULL);

	if (rc)
		return rc;
	rc = embeng_model_get_table(embeng_serving_model(serving), TABLE_IN, &table);
	if (!rc) {
		v->dim = (size_t)table.dim;
		rc = read_both(serving, items, v);
	}
	embeng_serving_close(serving);
	return rc;
}
