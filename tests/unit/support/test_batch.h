/* SPDX-License-Identifier: MIT */
/* A handle that has a model and nothing else: all that a batch asks for. */
#ifndef TEST_BATCH_H
#define TEST_BATCH_H

#include "runtime/src/model/shape.h"
#include "runtime/src/session/session.h"
#include "test_model.h"

struct handle {
	struct embeng e;
	struct embeng_batch *batch;
};

/* Its features: 0 "bag", 1 "seq" of length 4, and 2 "shaped" with this output shape. */
static inline struct handle handle_new(const int64_t *shape, size_t rank)
{
	struct handle h = {.e = {.fork = fork_generation(), .replica_count = 1}};
	struct embeng_model *m = h.e.model = embeng_model_new();
	struct embeng_table_config t = table_config("t");
	struct embeng_feature_config f = feature_config("bag");

	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	f = feature_config("seq");
	f.max_sequence_length = 4;
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 1);
	f = feature_config("shaped");
	f.output_rank = rank;
	if (rank)
		memcpy(f.output_shape, shape, rank * sizeof(*shape));
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 2);
	return h;
}

static inline void handle_free(struct handle *h)
{
	embeng_batch_free(h->batch);
	embeng_model_free(h->e.model);
}

#define S(...) ((const int64_t[]){__VA_ARGS__})
#define RANK(...) (sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

#endif
