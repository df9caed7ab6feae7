// SPDX-License-Identifier: MIT
/*
 * Look up two bags of ids in a table of four rows and print their means.
 *
 *   bag 0: rows 0 and 2      bag 1: row 3, twice as heavy as row 1
 */
#include <stdio.h>

#include "embeng.h"

int main(void)
{
	struct embeng_error err = EMBENG_INIT(embeng_error);
	struct embeng_model *model = embeng_model_new();
	struct embeng *e;
	int words, seen;

	words = embeng_model_add_table(model, &EMBENG_INIT(embeng_table_config, .name = "words",
							   .vocabulary_size = 4, .dim = 2,
							   .combiner = EMBENG_MEAN));
	seen = embeng_model_add_feature(
		model, &EMBENG_INIT(embeng_feature_config, .name = "seen", .table = words));
	if (words < 0 || seen < 0 || embeng_open(NULL, model, &e, &err) < 0) {
		embeng_last_error(&err);
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}

	/* Rows 0..3 become (0, 0.5), (1, 1.5), (2, 2.5), (3, 3.5). */
	const float rows[] = {0, 0.5f, 1, 1.5f, 2, 2.5f, 3, 3.5f};
	const int32_t ids[] = {0, 2, 3, 1};
	const int64_t lengths[] = {2, 2};
	const float weights[] = {1, 1, 2, 1};
	struct embeng_batch *batch = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	struct embeng_activations out = EMBENG_INIT(embeng_activations);

	if (embeng_rows_write(e, words, NULL, NULL, 4, rows) < 0 ||
	    embeng_batch_ragged(batch, seen, EMBENG_I32, ids, 4, lengths, 2, weights, 4) < 0 ||
	    embeng_enqueue(e, batch, -1) < 0 || embeng_dequeue(e, 0, -1, &out) < 0) {
		embeng_last_error(&err);
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	for (int64_t s = 0; s < out.features[seen].shape[0]; s++)
		printf("bag %d: %.4f %.4f\n", (int)s, out.features[seen].data[2 * s],
		       out.features[seen].data[2 * s + 1]);

	embeng_release(e, &out);
	embeng_batch_free(batch);
	embeng_close(e);
	embeng_model_free(model);
	return 0;
}
