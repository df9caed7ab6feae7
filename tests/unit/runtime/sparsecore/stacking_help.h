/* SPDX-License-Identifier: MIT */
/* Models that are stacked, and stacks of them. */
#ifndef STACKING_HELP_H
#define STACKING_HELP_H

#include "test_model.h"
#include "embeng/stacking.h"

/* A table of 8 columns with sgd; its index. */
static inline int add_table(struct embeng_model *m, const char *name, int64_t rows)
{
	struct embeng_table_config c = table_config(name);

	c.vocabulary_size = rows;
	c.dim = 8;
	return embeng_model_add_table(m, &c);
}

/* A feature of so many samples. */
static inline void add_feature(struct embeng_model *m, const char *name, int table, int64_t samples)
{
	struct embeng_feature_config c = feature_config(name);

	c.table = table;
	c.output_rank = 1;
	c.output_shape[0] = samples;
	ck_assert_int_ge(embeng_model_add_feature(m, &c), 0);
}

/* Tables c, a and b of so many rows, each with a feature of 64 samples. */
static inline struct embeng_model *three_tables(int64_t rows)
{
	struct embeng_model *m = embeng_model_new();
	const char *const names[] = {"c", "a", "b"};

	for (int t = 0; t < 3; t++) {
		ck_assert_int_eq(add_table(m, names[t], rows), t);
		add_feature(m, names[t], t, 64);
	}
	return m;
}

static inline struct embeng_stacking_options stacking_options(enum embeng_partition_flavour flavour)
{
	return (struct embeng_stacking_options){.size = sizeof(struct embeng_stacking_options),
						.flavour = flavour,
						.sparse_cores = 8};
}

static inline struct embeng_stacking *stacked(const struct embeng_model *m,
					      const struct embeng_stacking_options *o)
{
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng_stacking *s = NULL;
	int ret = embeng_stacking_make(m, o, &s);

	embeng_last_error(&error);
	ck_assert_msg(!ret, "%s", ret ? error.text : "");
	return s;
}

#endif
