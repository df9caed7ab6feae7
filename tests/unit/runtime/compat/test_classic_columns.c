// SPDX-License-Identifier: MIT
/* Feature columns of the classic interface give the right features; invalid ones are refused. */
#include "classic_help.h"

static struct embeng_classic_categorical categorical(const char *name, int64_t buckets,
						     const char *weight_key, int64_t length)
{
	return (struct embeng_classic_categorical){
		.size = sizeof(struct embeng_classic_categorical),
		.name = name,
		.num_buckets = buckets,
		.weight_key = weight_key,
		.sequence = length > 0,
		.max_sequence_length = length};
}

/* embedding_column of "query", weighted; shared_embedding_columns of "b" and "a". */
struct columns {
	struct embeng_classic_categorical query, shared[2];
	struct embeng_classic_column columns[2];
	struct embeng_classic_spec spec;
};

static void columns(struct columns *c)
{
	c->query = categorical("query", 11, "tf", 0);
	c->shared[0] = categorical("b", 5, NULL, 3);
	c->shared[1] = categorical("a", 5, NULL, 0);
	c->columns[0] = (struct embeng_classic_column){
		.size = sizeof(*c->columns),
		.categorical = &c->query,
		.categorical_count = 1,
		.dimension = 4,
		.combiner = EMBENG_SQRTN,
		.initializer = {EMBENG_INIT_UNIFORM, -1, 1, 7},
		.rate_name = "warm"};
	c->columns[1] = (struct embeng_classic_column){.size = sizeof(*c->columns),
						       .categorical = c->shared,
						       .categorical_count = 2,
						       .shared = 1,
						       .dimension = 2};
	c->spec = (struct embeng_classic_spec){.size = sizeof(c->spec),
					       .columns = c->columns,
					       .column_count = 2,
					       .optimizer = embeng_ftrl(0.5f),
					       .batch_size = 2};
}

START_TEST(columns_make_tables_and_features)
{
	const char *const features[] = {"a", "b", "query"};
	struct embeng_feature_config f = {.size = sizeof(f)};
	struct embeng_classic *c;
	struct columns s;

	columns(&s);
	c = make(&s.spec);
	ck_assert_uint_eq(embeng_model_table_count(embeng_classic_model(c)), 2);
	ck_assert_str_eq(table_of(c, 0).name, "tbl_a_b_shared_embedding");
	ck_assert_int_eq(table_of(c, 0).vocabulary_size, 5);
	ck_assert_int_eq(table_of(c, 0).dim, 2);
	ck_assert_int_eq(table_of(c, 0).combiner, EMBENG_MEAN);
	ck_assert_ptr_null(table_of(c, 0).optimizer.rate_name);
	ck_assert_str_eq(table_of(c, 1).name, "tbl_query_weighted_by_tf");
	ck_assert_int_eq(table_of(c, 1).vocabulary_size, 11);
	ck_assert_int_eq(table_of(c, 1).dim, 4);
	ck_assert_int_eq(table_of(c, 1).combiner, EMBENG_SQRTN);
	ck_assert_int_eq(table_of(c, 1).initializer.kind, EMBENG_INIT_UNIFORM);
	ck_assert(table_of(c, 1).initializer.a == -1 && table_of(c, 1).initializer.seed == 7);
	ck_assert_str_eq(table_of(c, 1).optimizer.rate_name, "warm");
	for (size_t i = 0; i < 3; i++) {
		help_expect_ok(embeng_model_get_feature(embeng_classic_model(c), i, &f));
		ck_assert_str_eq(f.name, features[i]);
		ck_assert_int_eq(f.table, i == 2);
		ck_assert_int_eq(f.max_sequence_length, i == 1 ? 3 : 0);
		ck_assert_int_eq(f.v1_dense_zero_is_padding, 1);
	}
	ck_assert_str_eq(embeng_classic_weight_key(c, 2), "tf");
	ck_assert_ptr_null(embeng_classic_weight_key(c, 0));
	embeng_classic_free(c);
}
END_TEST

START_TEST(collections_may_be_named)
{
	struct embeng_classic *c;
	struct columns s;

	columns(&s);
	s.columns[1].collection_name = "words";
	s.query.weight_key = NULL;
	c = make(&s.spec);
	ck_assert_str_eq(table_of(c, 0).name, "tbl_query");
	ck_assert_str_eq(table_of(c, 1).name, "tbl_words");
	embeng_classic_free(c);
	/* The order of the list does not matter; a weighted column has its own name. */
	columns(&s);
	s.shared[0].weight_key = "w";
	s.shared[0].sequence = 0;
	s.shared[0].max_sequence_length = 0;
	c = make(&s.spec);
	ck_assert_str_eq(table_of(c, 0).name, "tbl_a_b_weighted_by_w_shared_embedding");
	embeng_classic_free(c);
	columns(&s);
	s.columns[1].categorical_count = 1;
	c = make(&s.spec);
	ck_assert_str_eq(table_of(c, 0).name, "tbl_b_shared_embedding");
	embeng_classic_free(c);
}
END_TEST

START_TEST(columns_refused)
{
	struct columns d;

#define REFUSE(change, code, text) \
	do { \
		columns(&d); \
		change; \
		refuse(&d.spec, code, text); \
	} while (0)
	REFUSE(d.spec.columns = NULL, -EINVAL, "is NULL, its count is not 0");
	REFUSE(d.columns[0].size = 8, -EINVAL, "size 8 is not possible");
	REFUSE(d.query.size = 8, -EINVAL, "size 8 is not possible");
	REFUSE(d.columns[0].categorical = NULL, -EINVAL, "column 0: it has no categorical column");
	REFUSE(d.columns[1].categorical_count = 0, -EINVAL, "column 1: it has no categorical");
	REFUSE(d.columns[1].shared = 0, -EINVAL, "column 1: an embedding column has one");
	REFUSE(d.columns[0].collection_name = "x", -EINVAL, "\"x\" is for shared embedding");
	REFUSE(d.query.name = NULL, -EINVAL, "column 0: a categorical column has no name");
	REFUSE(d.query.name = "", -EINVAL, "column 0: a categorical column has no name");
	REFUSE(d.shared[0].max_sequence_length = 0, -EINVAL, "must be greater than 0");
	REFUSE(d.query.max_sequence_length = 2, -EINVAL, "which is no sequence");
	REFUSE(d.shared[1].num_buckets = 6, -EINVAL, "column b has 5, column a has 6");
	REFUSE(d.shared[1].name = "query", -EEXIST, "feature column query is used with several");
	REFUSE(d.columns[1].collection_name = "query_weighted_by_tf", -EEXIST,
	       "table tbl_query_weighted_by_tf is given twice");
	REFUSE(d.columns[0].dimension = 0, -ERANGE, "dim 0");
	REFUSE(d.query.num_buckets = 0, -ERANGE, "vocabulary_size 0");
	REFUSE(d.spec.feature_count = 1, -EINVAL, "exactly one of");
}
END_TEST

RUN_SUITE("classic columns", columns_make_tables_and_features, collections_may_be_named,
	  columns_refused)
