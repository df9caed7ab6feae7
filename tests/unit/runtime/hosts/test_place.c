// SPDX-License-Identifier: MIT
/*
 * Owners of tables: each column of each table has exactly one, in any random model, and tables that
 * are large or much asked for are spread.
 */
#include "hosts/place.h"
#include "random_model.h"

#define MODELS 300

static const uint32_t host_counts[] = {1, 2, 3, 4, 7, 8, 64, 1000, 4096};

static struct placement place(const struct embeng_model *m, uint32_t hosts)
{
	struct placement p;

	ck_assert_int_eq(place_model(m, hosts, NULL, &p), 0);
	return p;
}

static uint64_t bytes_of_model(const struct embeng_model *m)
{
	uint64_t sum = 0;

	for (size_t t = 0; t < m->table_count; t++)
		sum += (uint64_t)m->tables[t].rows * model_whole_row_bytes(&m->tables[t]);
	return sum;
}

/* Each host has some rows of a table that is too large for one and is not cut. */
static void check_spread_table(const struct embeng_model *m, const struct placement *p, size_t t)
{
	const struct table *table = &m->tables[t];
	const uint64_t bytes = (uint64_t)table->rows * model_whole_row_bytes(table);
	int64_t rows = 0;

	ck_assert(bytes > bytes_of_model(m) / p->hosts);
	ck_assert(!place_is_elementwise(m, (int)t, NULL) && !place_refuse_sums(m, t));
	ck_assert_int_ne(table->combiner, EMBENG_MAX);
	ck_assert_int_eq(p->sharding, EMBENG_SHARDING_MOD);
	for (size_t i = p->first[t]; i < p->first[t + 1]; i++) {
		ck_assert_uint_eq(p->parts[i].host, i - p->first[t]);
		ck_assert_int_eq(p->parts[i].rows.stride, p->hosts);
		ck_assert_int_eq(p->parts[i].columns, table->dim);
		rows += p->parts[i].rows.count;
	}
	ck_assert_int_eq(rows, table->rows);
}

/* The parts of a table follow each other without a gap, on different hosts. */
static void check_table(const struct embeng_model *m, const struct placement *p, size_t t)
{
	const size_t first = p->first[t], end = p->first[t + 1];
	uint32_t next = 0;

	ck_assert_uint_lt(first, end);
	if (p->parts[first].kind == PLACE_ROWS) {
		check_spread_table(m, p, t);
		return;
	}
	for (size_t i = first; i < end; i++) {
		const struct place_part *part = &p->parts[i];

		ck_assert_int_eq(part->table, (int)t);
		ck_assert_uint_lt(part->host, p->hosts);
		ck_assert_uint_eq(part->first_column, next);
		if (end - first > 1)
			ck_assert_uint_ge(part->columns, PLACE_COLUMNS_LEAST);
		next += part->columns;
		for (size_t other = first; other < i; other++)
			ck_assert_uint_ne(p->parts[other].host, part->host);
	}
	ck_assert_int_eq(next, m->tables[t].dim);
	if (!place_is_elementwise(m, (int)t, NULL))
		ck_assert_uint_eq(end - first, 1);
}

static void check_placement(const struct embeng_model *m, const struct placement *p)
{
	uint64_t *bytes = calloc(p->hosts, sizeof(*bytes)), sum = 0;

	for (size_t t = 0; t < m->table_count; t++)
		check_table(m, p, t);
	ck_assert_uint_eq(p->part_count, p->first[m->table_count]);
	for (size_t i = 0; i < p->part_count; i++)
		bytes[p->parts[i].host] += place_part_bytes(m, &p->parts[i]);
	for (uint32_t h = 0; h < p->hosts; h++) {
		ck_assert_uint_eq(bytes[h], p->bytes[h]);
		sum += bytes[h];
	}
	ck_assert_uint_eq(sum, bytes_of_model(m));
	free(bytes);
}

START_TEST(each_column_has_one_owner)
{
	for (uint32_t seed = 1; seed <= MODELS; seed++) {
		struct embeng_model *m = random_model(seed);
		struct placement p = place(m, host_counts[_i]);

		check_placement(m, &p);
		placement_free(&p);
		embeng_model_free(m);
	}
}
END_TEST

/* Each host computes its own. A process of another layout of memory must come to the same. */
START_TEST(equal_models_have_equal_owners)
{
	for (uint32_t seed = 1; seed <= MODELS; seed++) {
		struct embeng_model *a = random_model(seed), *b = model_copy(a);
		struct placement p = place(a, host_counts[seed % COUNT(host_counts)]);
		struct placement q = place(b, p.hosts);

		ck_assert_uint_eq(p.part_count, q.part_count);
		for (size_t i = 0; i < p.part_count; i++) {
			ck_assert_int_eq(p.parts[i].kind, q.parts[i].kind);
			ck_assert_uint_eq(p.parts[i].host, q.parts[i].host);
			ck_assert_int_eq(p.parts[i].table, q.parts[i].table);
			ck_assert_uint_eq(p.parts[i].first_column, q.parts[i].first_column);
			ck_assert_uint_eq(p.parts[i].columns, q.parts[i].columns);
			ck_assert_mem_eq(&p.parts[i].rows, &q.parts[i].rows,
					 sizeof(p.parts[i].rows));
		}
		placement_free(&p);
		placement_free(&q);
		embeng_model_free(a);
		embeng_model_free(b);
	}
}
END_TEST

static struct embeng_model *model_of(const int64_t *rows, size_t count, int64_t dim)
{
	struct embeng_model *m = embeng_model_new();

	for (size_t t = 0; t < count; t++) {
		struct embeng_table_config c = table_config(NULL);
		struct embeng_feature_config f = feature_config(NULL);

		c.vocabulary_size = rows[t];
		c.dim = dim;
		ck_assert_int_eq(embeng_model_add_table(m, &c), (int)t);
		f.table = (int)t;
		ck_assert_int_eq(embeng_model_add_feature(m, &f), (int)t);
	}
	return m;
}

START_TEST(equal_tables_have_a_host_each)
{
	static const int64_t rows[] = {1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000};
	struct embeng_model *m = model_of(rows, 8, 64);
	struct placement p = place(m, 8);

	for (uint32_t t = 0; t < 8; t++)
		ck_assert_uint_eq(p.parts[t].host, t);
	placement_free(&p);
	p = place(m, 16); /* two hosts have half of the columns of a table each */
	ck_assert_uint_eq(p.part_count, 16);
	for (uint32_t h = 0; h < 16; h++)
		ck_assert_uint_eq(p.bytes[h], 1000 * 32 * 4);
	placement_free(&p);
	embeng_model_free(m);
}
END_TEST

START_TEST(a_large_table_is_cut)
{
	static const int64_t rows[] = {16000000};
	struct embeng_model *m = model_of(rows, 1, 40);
	struct placement p = place(m, 4);

	ck_assert_uint_eq(p.part_count, 2);
	ck_assert_uint_eq(p.parts[0].columns, 16);
	ck_assert_uint_eq(p.parts[1].first_column, 16);
	ck_assert_uint_eq(p.parts[1].columns, 24);
	placement_free(&p);
	embeng_model_free(m);
}
END_TEST

/* By bytes alone, all the small tables would be on one host, which would get all of their samples. */
START_TEST(small_tables_are_spread)
{
	static const int64_t rows[] = {1460,  583,     10000000, 1250000, 305,	   24,	 12517,
				       633,   10,      93145,	 5683,	  1250000, 3194, 27,
				       14992, 1250000, 10,	 5652,	  2173,	   10,	 1250000,
				       18,    15,      286181,	 105,	  142572};
	struct embeng_model *m = model_of(rows, COUNT(rows), 128);
	struct placement p = place(m, 8);
	uint32_t columns[8] = {0}, most = 0;

	for (size_t i = 0; i < p.part_count; i++)
		columns[p.parts[i].host] += p.parts[i].columns;
	for (uint32_t h = 0; h < 8; h++)
		most = columns[h] > most ? columns[h] : most;
	ck_assert_uint_lt(most, 2 * 26 * 128 / 8);
	placement_free(&p);
	embeng_model_free(m);
}
END_TEST

/* Three tables, of which the second takes each gradient by itself, and the third has two rows. */
static struct embeng_model *mixed_model(void)
{
	static const int64_t rows[] = {10, 8, 2};
	struct embeng_model *m = embeng_model_new();

	for (size_t t = 0; t < 3; t++) {
		struct embeng_table_config c = table_config(NULL);

		c.vocabulary_size = rows[t];
		c.dim = 64;
		c.optimizer = embeng_sgd(0.1f);
		if (t == 1)
			c.optimizer.use_gradient_accumulation = EMBENG_OFF;
		ck_assert_int_eq(embeng_model_add_table(m, &c), (int)t);
	}
	return m;
}

START_TEST(rows_are_spread_where_sums_are_exact)
{
	const struct place_wish mod = {.exchange = EMBENG_EXCHANGE_ROWS,
				       .sharding = EMBENG_SHARDING_MOD};
	const struct place_wish div = {.exchange = EMBENG_EXCHANGE_ROWS,
				       .sharding = EMBENG_SHARDING_DIV};
	struct embeng_model *m = mixed_model();
	struct placement p;

	ck_assert_int_eq(place_model(m, 3, &mod, &p), 0);
	ck_assert_uint_eq(p.first[1], 3);
	for (uint32_t h = 0; h < 3; h++) {
		ck_assert_int_eq(p.parts[h].kind, PLACE_ROWS);
		ck_assert_uint_eq(p.parts[h].host, h);
		ck_assert_uint_eq(p.parts[h].columns, 64);
		ck_assert_int_eq(p.parts[h].rows.first, h);
		ck_assert_int_eq(p.parts[h].rows.stride, 3);
		ck_assert_int_eq(p.parts[h].rows.count, h ? 3 : 4);
	}
	for (size_t i = p.first[1]; i < p.first[2]; i++)
		ck_assert_int_ne(p.parts[i].kind, PLACE_ROWS);
	/* The third host has no row of a table of two. */
	ck_assert_uint_eq(p.first[3] - p.first[2], 2);
	ck_assert_uint_eq(p.bytes[0] + p.bytes[1] + p.bytes[2], 20 * 64 * 4);
	placement_free(&p);
	ck_assert_int_eq(place_model(m, 3, &div, &p), 0);
	ck_assert_int_eq(p.parts[1].rows.first, 4);
	ck_assert_int_eq(p.parts[1].rows.stride, 1);
	ck_assert_int_eq(p.parts[1].rows.count, 3);
	placement_free(&p);
	embeng_model_free(m);
}
END_TEST

/* Tables of these sizes; the first one has a slot of one number a row. */
static struct embeng_model *model_of_rows(struct embeng_optimizer first,
					  enum embeng_combiner_name combiner)
{
	static const int64_t rows[] = {1000, 300, 200, 100};
	struct embeng_model *m = embeng_model_new();

	for (size_t t = 0; t < COUNT(rows); t++) {
		struct embeng_table_config c = table_config(NULL);
		struct embeng_feature_config f = feature_config(NULL);

		c.vocabulary_size = rows[t];
		c.dim = 64;
		c.optimizer = t ? embeng_rowwise_adagrad(0.1f) : first;
		c.combiner = combiner;
		ck_assert_int_eq(embeng_model_add_table(m, &c), (int)t);
		f.table = (int)t;
		ck_assert_int_eq(embeng_model_add_feature(m, &f), (int)t);
	}
	return m;
}

static void expect_kinds(struct embeng_model *m, const struct place_wish *wish,
			 enum place_kind kind)
{
	struct placement p;

	ck_assert_int_eq(place_model(m, 4, wish, &p), 0);
	ck_assert_int_eq(p.parts[0].kind, kind);
	ck_assert_uint_eq(p.first[1], kind == PLACE_TABLE ? 1 : 4);
	/* The others are no larger than a share of the whole model. */
	for (size_t i = p.first[1]; i < p.part_count; i++)
		ck_assert_int_eq(p.parts[i].kind, PLACE_TABLE);
	placement_free(&p);
	embeng_model_free(m);
}

START_TEST(rows_are_spread_where_columns_cannot_be_cut)
{
	const struct place_wish whole = {.exchange = EMBENG_EXCHANGE_TABLE};
	struct embeng_optimizer rowwise = embeng_rowwise_adagrad(0.1f), norm = embeng_adagrad(0.1f),
				each = rowwise;

	norm.max_norm = 1.0f;
	each.use_gradient_accumulation = EMBENG_OFF;
	expect_kinds(model_of_rows(rowwise, EMBENG_SUM), NULL, PLACE_ROWS);
	expect_kinds(model_of_rows(norm, EMBENG_SUM), NULL, PLACE_ROWS);
	expect_kinds(model_of_rows(embeng_adagrad(0.1f), EMBENG_SUM), NULL, PLACE_COLUMN);
	/* It cannot be spread, it would take fewer calls, or it is asked for whole. */
	expect_kinds(model_of_rows(each, EMBENG_SUM), NULL, PLACE_TABLE);
	expect_kinds(model_of_rows(rowwise, EMBENG_MAX), NULL, PLACE_TABLE);
	expect_kinds(model_of_rows(rowwise, EMBENG_SUM), &whole, PLACE_TABLE);
}
END_TEST

/* For costs there is one part of a table that is spread, and the others are where they are. */
START_TEST(plans_have_the_same_owners)
{
	for (uint32_t seed = 1; seed <= MODELS; seed++) {
		struct embeng_model *m = random_model(seed);
		struct placement p = place(m, host_counts[seed % COUNT(host_counts)]), plan;

		ck_assert_int_eq(
			place_model(m, p.hosts, &(struct place_wish){.plans = true}, &plan), 0);
		for (size_t t = 0; t < m->table_count; t++) {
			const struct place_part *own = &p.parts[p.first[t]],
						*planned = &plan.parts[plan.first[t]];

			ck_assert_int_eq(own->kind, planned->kind);
			if (own->kind == PLACE_ROWS) {
				ck_assert_uint_eq(plan.first[t + 1] - plan.first[t], 1);
				ck_assert_int_eq(planned->rows.count, m->tables[t].rows);
			} else {
				ck_assert_uint_eq(plan.first[t + 1] - plan.first[t],
						  p.first[t + 1] - p.first[t]);
				ck_assert_uint_eq(own->host, planned->host);
			}
		}
		placement_free(&p);
		placement_free(&plan);
		embeng_model_free(m);
	}
}
END_TEST

START_TEST(wishes_are_met)
{
	const struct place_wish whole = {.exchange = EMBENG_EXCHANGE_TABLE};
	const struct place_wish cut = {.exchange = EMBENG_EXCHANGE_COLUMN};
	struct embeng_model *m = mixed_model();
	struct placement p;

	ck_assert_int_eq(place_model(m, 2, &whole, &p), 0);
	ck_assert_uint_eq(p.part_count, 3);
	for (size_t i = 0; i < 3; i++)
		ck_assert_int_eq(p.parts[i].kind, PLACE_TABLE);
	placement_free(&p);
	ck_assert_int_eq(place_model(m, 3, &cut, &p), 0);
	ck_assert_uint_eq(p.part_count, 9);
	for (size_t i = 0; i < 9; i++)
		ck_assert_int_eq(p.parts[i].kind, PLACE_COLUMN);
	placement_free(&p);
	embeng_model_free(m);
}
END_TEST

START_TEST(a_wish_that_no_table_allows_is_refused)
{
	const struct place_wish wish = {.exchange = EMBENG_EXCHANGE_ROWS,
					.sharding = EMBENG_SHARDING_MOD};
	struct embeng_model *m = embeng_model_new();
	struct embeng_table_config c = table_config("seen");
	struct placement p;

	c.optimizer = embeng_sgd(0.1f);
	c.optimizer.scale_by_frequency = 1;
	ck_assert_int_eq(embeng_model_add_table(m, &c), 0);
	ASSERT_REFUSED(place_model(m, 2, &wish, &p), EINVAL, "exchange=rows",
		       "table seen: not allowed: scale_by_frequency needs");
	embeng_model_free(m);
}
END_TEST

START_TEST(refusals)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng_table_config c = table_config("vast");
	struct placement p;

	ASSERT_REFUSED(place_model(NULL, 2, NULL, &p), EINVAL, "1 host");
	ASSERT_REFUSED(place_model(m, 0, NULL, &p), EINVAL, "1 host", "not 0");
	ck_assert_int_eq(place_model(m, 5, NULL, &p), 0);
	ck_assert_uint_eq(p.part_count, 0);
	placement_free(&p);
	c.vocabulary_size = INT64_MAX;
	c.dim = 4;
	ck_assert_int_eq(embeng_model_add_table(m, &c), 0);
	ASSERT_REFUSED(place_model(m, 2, NULL, &p), ERANGE, "vast", "64 bits");
	embeng_model_free(m);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, each_column_has_one_owner, 0, COUNT(host_counts));
	tcase_add_test(tcase, equal_models_have_equal_owners);
	tcase_add_test(tcase, equal_tables_have_a_host_each);
	tcase_add_test(tcase, a_large_table_is_cut);
	tcase_add_test(tcase, small_tables_are_spread);
	tcase_add_test(tcase, rows_are_spread_where_sums_are_exact);
	tcase_add_test(tcase, rows_are_spread_where_columns_cannot_be_cut);
	tcase_add_test(tcase, plans_have_the_same_owners);
	tcase_add_test(tcase, wishes_are_met);
	tcase_add_test(tcase, a_wish_that_no_table_allows_is_refused);
	tcase_add_test(tcase, refusals);
}

int main(void)
{
	return suite_main("place", add_tests);
}
