// SPDX-License-Identifier: MIT
/*
 * Two towers that share a table: queries and items are looked up one after the other, and only then
 * come the gradients of both. A lookup into the program's own memory waits for no gradients, so any
 * number of them may come first; embeng_update() then gives the rows theirs.
 *
 * Item i belongs to query i. Each pair should have the product 1, and each wrong pair 0.
 */
#include <stdio.h>
#include <stdlib.h>

#include "embeng.h"

enum { ROWS = 64, DIM = 8, BATCH = 16, STEPS = 400 };

static void check(int rc)
{
	struct embeng_error err = EMBENG_INIT(embeng_error);

	if (rc >= 0)
		return;
	embeng_last_error(&err);
	fprintf(stderr, "%s\n", err.text);
	exit(1);
}

struct tower {
	struct embeng_batch *look, *train;
	int64_t ids[BATCH];
	float rows[BATCH * DIM], gradients[BATCH * DIM];
};

static void open_tower(struct embeng *e, struct tower *t)
{
	t->look = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	t->train = embeng_batch_new(e, EMBENG_TRAIN, 0);
	if (!t->look || !t->train)
		check(-1);
}

static void forward(struct embeng *e, struct tower *t)
{
	const struct embeng_output out = {.data = t->rows, .elements = BATCH * DIM};
	const int64_t shape[] = {BATCH};

	check(embeng_batch_dense(t->look, 0, EMBENG_I64, t->ids, BATCH, shape, 1));
	check(embeng_lookup(e, t->look, &out, 1, -1));
}

static void backward(struct embeng *e, struct tower *t)
{
	const int64_t shape[] = {BATCH};
	const float *const features[] = {t->gradients};

	check(embeng_batch_dense(t->train, 0, EMBENG_I64, t->ids, BATCH, shape, 1));
	check(embeng_update(e, t->train,
			    &EMBENG_INIT(embeng_gradients, .count = 1, .features = features), -1));
}

/* The loss of all pairs of the batch, with the gradients of both towers. */
static float score(struct tower *q, struct tower *p)
{
	float loss = 0;

	for (int k = 0; k < BATCH * DIM; k++)
		q->gradients[k] = p->gradients[k] = 0;
	for (int i = 0; i < BATCH; i++) {
		for (int j = 0; j < BATCH; j++) {
			float off = i == j ? -1.0f : 0.0f;

			for (int c = 0; c < DIM; c++)
				off += q->rows[i * DIM + c] * p->rows[j * DIM + c];
			loss += off * off / BATCH;
			for (int c = 0; c < DIM; c++) {
				q->gradients[i * DIM + c] += off * p->rows[j * DIM + c] / BATCH;
				p->gradients[j * DIM + c] += off * q->rows[i * DIM + c] / BATCH;
			}
		}
	}
	return loss;
}

int main(void)
{
	struct embeng_model *model = embeng_model_new();
	static struct tower query, item;
	float first = 0, loss = 0;
	unsigned int seed = 1;
	struct embeng *e;

	/* Rows 0 to 31 are queries, rows 32 to 63 the items that belong to them. */
	check(embeng_model_add_table(model, &EMBENG_INIT(embeng_table_config, .name = "towers",
							 .vocabulary_size = ROWS, .dim = DIM,
							 .optimizer = embeng_adagrad(0.1f))));
	check(embeng_model_add_feature(model,
				       &EMBENG_INIT(embeng_feature_config, .name = "tower")));
	check(embeng_open(NULL, model, &e, NULL));
	open_tower(e, &query);
	open_tower(e, &item);
	for (int step = 1; step <= STEPS; step++) {
		int start = rand_r(&seed) % (ROWS / 2);

		for (int k = 0; k < BATCH; k++) {
			query.ids[k] = (start + k) % (ROWS / 2);
			item.ids[k] = query.ids[k] + ROWS / 2;
		}
		forward(e, &query);
		forward(e, &item);
		loss = score(&query, &item);
		backward(e, &query);
		backward(e, &item);
		first = step == 1 ? loss : first;
	}
	printf("loss %.4f in step 1, %.4f in step %d\n", first, loss, STEPS);
	embeng_close(e);
	embeng_model_free(model);
	return loss < first / 4 ? 0 : 1;
}
