// SPDX-License-Identifier: MIT
/*
 * A test of a project that uses embeng: opens the first device behind the kernel driver, looks a row
 * up, trains it by one step and looks it up again. It speaks TAP, of which `embeng vm --junit` makes
 * a report.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <embeng.h>

#define DEVICE "/dev/accel/accel0"

static int number, failed;

static void report(bool ok, const char *name)
{
	printf("%sok %d - %s\n", ok ? "" : "not ", ++number, name);
	failed |= !ok;
}

/* Ends the program with the library's own words if a call failed. */
static void must(int rc)
{
	struct embeng_error err = EMBENG_INIT(embeng_error);

	if (rc >= 0)
		return;
	embeng_last_error(&err);
	printf("Bail out! %s\n", err.text);
	exit(1);
}

/* Looks row 1 up in @mode and says whether it is @first, @second. */
static bool row_is(struct embeng *e, int feature, enum embeng_mode mode, float first, float second)
{
	struct embeng_activations out = EMBENG_INIT(embeng_activations);
	struct embeng_batch *batch = embeng_batch_new(e, mode, 0);
	const int32_t id = 1;
	const int64_t shape[] = {1};
	const float *row;
	bool same;

	must(embeng_batch_dense(batch, feature, EMBENG_I32, &id, 1, shape, 1));
	must(embeng_enqueue(e, batch, -1));
	must(embeng_dequeue(e, 0, -1, &out));
	row = out.features[feature].data;
	same = row[0] == first && row[1] == second;
	if (!same)
		printf("# the row is (%g, %g), not (%g, %g)\n", row[0], row[1], first, second);
	if (mode == EMBENG_INFERENCE)
		embeng_release(e, &out);
	embeng_batch_free(batch);
	return same;
}

int main(void)
{
	const float rows[] = {0, 0, 3, 4}, ones[] = {1, 1};
	struct embeng_model *model = embeng_model_new();
	struct embeng *e;
	int table, feature;

	must(table = embeng_model_add_table(
		     model, &EMBENG_INIT(embeng_table_config, .name = "items", .vocabulary_size = 2,
					 .dim = 2, .optimizer = embeng_sgd(0.5f))));
	must(feature = embeng_model_add_feature(
		     model, &EMBENG_INIT(embeng_feature_config, .name = "item", .table = table)));
	must(embeng_open(DEVICE, model, &e, NULL));
	must(embeng_rows_write(e, table, NULL, NULL, 2, rows));

	report(row_is(e, feature, EMBENG_TRAIN, 3, 4), "a row is what was written");
	must(embeng_apply_gradients(e,
				    &EMBENG_INIT(embeng_gradients, .count = 1,
						 .features = (const float *const[]){ones}),
				    -1));
	report(row_is(e, feature, EMBENG_INFERENCE, 2.5f, 3.5f), "a step of SGD changed it");

	embeng_close(e);
	embeng_model_free(model);
	printf("1..%d\n", number);
	return failed;
}
