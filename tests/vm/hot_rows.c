// SPDX-License-Identifier: MIT
/*
 * Trains two tables whose hottest rows are known, for top.sh to look at from outside.
 * usage: vm-hot_rows STEPS
 *
 * It trains STEPS steps, prints "trained" and waits for a line on its input. Then it trains STEPS more
 * and exits with 0 if the hottest row is what 2 * STEPS steps make of it. In each step table 1 is
 * asked for row 41 three times and for row 5 once, and table 0 for rows 1 and 3.
 */
#include <stdio.h>
#include <stdlib.h>

#include "embeng.h"

enum { ROWS = 64, DIM = 2, HOT_ROW = 41 };
#define GRADIENT (1.0f / 64)

static void check(int rc)
{
	struct embeng_error err = EMBENG_INIT(embeng_error);

	if (rc >= 0)
		return;
	embeng_last_error(&err);
	fprintf(stderr, "%s\n", err.text);
	exit(1);
}

static struct embeng *open_two_tables(void)
{
	static const int table_of_feature[] = {0, 1, 1};
	struct embeng_model *model = embeng_model_new();
	struct embeng_table_config table = EMBENG_INIT(embeng_table_config, .vocabulary_size = ROWS,
						       .dim = DIM, .optimizer = embeng_sgd(1));
	struct embeng *e;

	table.name = "mild";
	check(embeng_model_add_table(model, &table));
	table.name = "hot";
	check(embeng_model_add_table(model, &table));
	for (int i = 0; i < 3; i++)
		check(embeng_model_add_feature(
			model, &EMBENG_INIT(embeng_feature_config, .table = table_of_feature[i])));
	check(embeng_open(NULL, model, &e, NULL));
	embeng_model_free(model);
	return e;
}

static void train_step(struct embeng *e)
{
	static const int64_t ids[3][2] = {{1, 3}, {HOT_ROW, HOT_ROW}, {HOT_ROW, 5}}, shape[] = {2};
	static const float given[2 * DIM] = {GRADIENT, GRADIENT, GRADIENT, GRADIENT};
	static const float *const features[] = {given, given, given};
	struct embeng_batch *batch = embeng_batch_new(e, EMBENG_TRAIN, 0);
	struct embeng_activations activations = EMBENG_INIT(embeng_activations);

	for (int i = 0; i < 3; i++)
		check(embeng_batch_dense(batch, i, EMBENG_I64, ids[i], 2, shape, 1));
	check(embeng_enqueue(e, batch, -1));
	embeng_batch_free(batch);
	check(embeng_dequeue(e, 0, -1, &activations));
	check(embeng_apply_gradients(
		e, &EMBENG_INIT(embeng_gradients, .count = 3, .features = features), -1));
}

static void train_steps(struct embeng *e, int steps)
{
	for (int i = 0; i < steps; i++)
		train_step(e);
	check(embeng_flush(e, -1));
}

int main(int argc, char **argv)
{
	int steps = argc == 2 ? atoi(argv[1]) : 0;
	static const int64_t hot_row[] = {HOT_ROW};
	float row[DIM] = {0}, expected;
	struct embeng *e;

	if (steps < 1)
		return 2;
	e = open_two_tables();
	check(embeng_rows_write(e, 1, NULL, hot_row, 1, row));
	train_steps(e, steps);
	puts("trained");
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	train_steps(e, steps);
	check(embeng_rows_read(e, 1, NULL, hot_row, 1, row));
	embeng_close(e);
	expected = -3 * GRADIENT * 2 * (float)steps;
	printf("row %d is %g and %g, expected %g\n", HOT_ROW, (double)row[0], (double)row[1],
	       (double)expected);
	return row[0] != expected || row[1] != expected;
}
