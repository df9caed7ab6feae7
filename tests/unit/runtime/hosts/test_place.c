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

	ck_assert_int_eq(place_model(m, hosts, &p), 0);
	return p;
}

static uint64_t bytes_of_model(const struct embeng_model *m)
{
	uint64_t sum = 0;

	for (size_t t = 0; t < m->table_count; t++)
		sum += (uint64_t)m->tables[t].rows * model_whole_row_bytes(&m->tables[t]);
	return sum;
}

/* The parts of a table follow each other without a gap, on different hosts. */
static void check_table(const struct embeng_model *m, const struct placement *p, size_t t)
{
	const size_t first = p->first[t], end = p->first[t + 1];
	uint32_t next = 0;

	ck_assert_uint_lt(first, end);
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
		ck_assert_mem_eq(p.parts, q.parts, p.part_count * sizeof(*p.parts));
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

START_TEST(refusals)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng_table_config c = table_config("vast");
	struct placement p;

	ASSERT_REFUSED(place_model(NULL, 2, &p), EINVAL, "1 host");
	ASSERT_REFUSED(place_model(m, 0, &p), EINVAL, "1 host", "not 0");
	ck_assert_int_eq(place_model(m, 5, &p), 0);
	ck_assert_uint_eq(p.part_count, 0);
	placement_free(&p);
	c.vocabulary_size = INT64_MAX;
	c.dim = 4;
	ck_assert_int_eq(embeng_model_add_table(m, &c), 0);
	ASSERT_REFUSED(place_model(m, 2, &p), ERANGE, "vast", "64 bits");
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
	tcase_add_test(tcase, refusals);
}

int main(void)
{
	return suite_main("place", add_tests);
}
