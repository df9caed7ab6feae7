/* SPDX-License-Identifier: MIT */
/* A handle that has a model and nothing else: all that a batch asks for. */
#ifndef TEST_BATCH_H
#define TEST_BATCH_H

#include "shape.h"
#include "test_model.h"

struct embeng {
	struct embeng_model *model;
	struct embeng_batch *batch;
};

const struct embeng_model *embeng_get_model(const struct embeng *e)
{
	return e->model;
}

/* Its features: 0 "bag", 1 "seq" of length 4, and 2 "shaped" with this output shape. */
static inline struct embeng handle_new(const int64_t *shape, size_t rank)
{
	struct embeng e = {.model = embeng_model_new()};
	struct embeng_table_config t = table_config("t");
	struct embeng_feature_config f = feature_config("bag");

	ck_assert_int_eq(embeng_model_add_table(e.model, &t), 0);
	ck_assert_int_eq(embeng_model_add_feature(e.model, &f), 0);
	f = feature_config("seq");
	f.max_sequence_length = 4;
	ck_assert_int_eq(embeng_model_add_feature(e.model, &f), 1);
	f = feature_config("shaped");
	f.output_rank = rank;
	if (rank)
		memcpy(f.output_shape, shape, rank * sizeof(*shape));
	ck_assert_int_eq(embeng_model_add_feature(e.model, &f), 2);
	return e;
}

static inline void handle_free(struct embeng *e)
{
	embeng_batch_free(e->batch);
	embeng_model_free(e->model);
}

#define S(...) ((const int64_t[]){__VA_ARGS__})
#define RANK(...) (sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

#endif
