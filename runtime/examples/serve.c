// SPDX-License-Identifier: MIT
/*
 * Save a table of four rows, then serve from the checkpoint as another program would: no
 * device, no slots, any number of threads on one handle.
 *
 *   example-serve [DIR]      bag 0: rows 0 and 2      bag 1: row 3, twice as heavy as row 1
 */
#include <stdio.h>

#include "embeng.h"

static int failed(const struct embeng_error *err)
{
	fprintf(stderr, "%s\n", err->text);
	return 1;
}

/* Saves as a training program does at its end: rows 0..3 are (0, 0.5), (1, 1.5), ... */
static int save_words(const char *dir)
{
	const float rows[] = {0, 0.5f, 1, 1.5f, 2, 2.5f, 3, 3.5f};
	struct embeng_model *model = embeng_model_new();
	struct embeng *e = NULL;
	int words, ret;

	words = embeng_model_add_table(model, &EMBENG_INIT(embeng_table_config, .name = "words",
							   .vocabulary_size = 4, .dim = 2,
							   .combiner = EMBENG_MEAN));
	embeng_model_add_feature(
		model, &EMBENG_INIT(embeng_feature_config, .name = "seen", .table = words));
	ret = embeng_open(NULL, model, &e, NULL);
	if (!ret)
		ret = embeng_rows_write(e, words, NULL, NULL, 4, rows);
	if (!ret)
		ret = embeng_save(e, dir, NULL);
	embeng_close(e);
	embeng_model_free(model);
	return ret;
}

int main(int argc, char **argv)
{
	struct embeng_error err = EMBENG_INIT(embeng_error);
	const char *dir = argc > 1 ? argv[1] : "words.ckpt";
	const int32_t ids[] = {0, 2, 3, 1};
	const int64_t splits[] = {0, 2, 4};
	const float weights[] = {1, 1, 2, 1};
	float out[2 * 2];
	struct embeng_serving_input seen = EMBENG_INIT(
		embeng_serving_input, .form = EMBENG_RAGGED, .type = EMBENG_I32, .ids = ids,
		.id_count = 4, .row_splits = splits, .split_count = 3, .weights = weights,
		.weight_count = 4, .out = out, .out_elements = 4);
	struct embeng_serving *serving;

	if (save_words(dir)) {
		embeng_last_error(&err);
		return failed(&err);
	}
	if (embeng_serving_open(dir, NULL, 0, &serving, &err))
		return failed(&err);
	seen.feature = embeng_model_feature(embeng_serving_model(serving), "seen");
	if (embeng_serving_lookup(serving, &seen, 1)) {
		embeng_last_error(&err);
		embeng_serving_close(serving);
		return failed(&err);
	}
	for (int bag = 0; bag < 2; bag++)
		printf("bag %d: %.4f %.4f\n", bag, out[2 * bag], out[2 * bag + 1]);
	embeng_serving_close(serving);
	return 0;
}
