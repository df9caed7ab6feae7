/* SPDX-License-Identifier: MIT */
/* The internals of the classic interface: one list of tables and features for all its forms. */
#ifndef EMBENG_CLASSIC_H
#define EMBENG_CLASSIC_H

#include <stdbool.h>

#include "embeng.h"
#include "embeng/classic.h"

struct classic_table {
	char *name;
	const char *rate_name; /* belongs to the caller until the model has a copy */
	int64_t rows, dim;
	enum embeng_combiner_name combiner;
	struct embeng_initializer initializer;
	struct embeng_optimizer optimizer;
	bool used;
};

struct classic_feature {
	char *name, *table, *weight_key;
	int64_t length;
	size_t index;	      /* index of the feature's table in the model */
	int64_t first, count; /* places of a sample */
};

struct embeng_classic {
	struct embeng_model *model;
	struct classic_table *tables; /* sorted by name, in the order of the model */
	size_t table_count;
	struct classic_feature *features; /* sorted by name, in the order of the model */
	size_t feature_count;
	int64_t *num_features; /* [table_count] */
	int64_t batch_size;    /* batch size of one replica */
	char *profile_directory;
	enum embeng_classic_mode mode;
};

/* spec.c: each adds one entry; NULL with a sentence on failure. All of it is freed with @c. */
struct classic_table *classic_add_table(struct embeng_classic *c);
struct classic_feature *classic_add_feature(struct embeng_classic *c);

/* Copies a text, which may be NULL. */
int classic_copy(const char *text, char **copy);

/* columns.c: takes the tables and features from feature columns. */
int classic_take_columns(struct embeng_classic *c, const struct embeng_classic_spec *spec);

/* optimizer.c: whether the interface had an optimizer of this kind. */
bool classic_has_optimizer(enum embeng_optimizer_name kind);

#endif
