// SPDX-License-Identifier: MIT
/* Each host has its rows of a table, and reads, writes and initializes those alone. */
#include "checkpoint_help.h"
#include "embeng/shard.h"

static struct embeng_shard shard_of(enum embeng_sharding sharding, uint32_t hosts, uint32_t host)
{
	return (struct embeng_shard){.size = sizeof(struct embeng_shard),
				     .sharding = sharding,
				     .hosts = hosts,
				     .host = host};
}

static void expect_rows(enum embeng_sharding sharding, uint32_t hosts, uint32_t host,
			int64_t table_rows, int64_t first, int64_t stride, int64_t count)
{
	struct embeng_shard s = shard_of(sharding, hosts, host);
	struct embeng_shard_rows rows = {-1, -1, -1};

	ck_assert_int_eq(embeng_shard_rows(&s, table_rows, &rows), 0);
	ck_assert_int_eq(rows.first, first);
	ck_assert_int_eq(rows.stride, stride);
	ck_assert_int_eq(rows.count, count);
}

/* 13 ids over 5 hosts are 3, 3, 3, 2, 2. */
START_TEST(div_gives_runs)
{
	const int64_t firsts[] = {0, 3, 6, 9, 11}, counts[] = {3, 3, 3, 2, 2};

	for (uint32_t h = 0; h < 5; h++)
		expect_rows(EMBENG_SHARDING_DIV, 5, h, 13, firsts[h], 1, counts[h]);
	expect_rows(EMBENG_SHARDING_DIV, 1, 0, 13, 0, 1, 13);
	expect_rows(EMBENG_SHARDING_DIV, 3, 2, (int64_t)3 << 40, (int64_t)2 << 40, 1,
		    (int64_t)1 << 40);
	expect_rows(EMBENG_SHARDING_DIV, INT32_MAX, 1, INT64_MAX, ((int64_t)1 << 32) + 3, 1,
		    ((int64_t)1 << 32) + 2);
}
END_TEST

START_TEST(mod_gives_every_nth)
{
	const int64_t counts[] = {3, 3, 3, 2, 2};

	for (uint32_t h = 0; h < 5; h++)
		expect_rows(EMBENG_SHARDING_MOD, 5, h, 13, h, 5, counts[h]);
	expect_rows(EMBENG_SHARDING_MOD, 1, 0, 13, 0, 1, 13);
	expect_rows(EMBENG_SHARDING_MOD, 4, 3, (int64_t)1 << 40, 3, 4, (int64_t)1 << 38);
}
END_TEST

START_TEST(small_tables_leave_hosts_without)
{
	for (uint32_t h = 0; h < 4; h++) {
		expect_rows(EMBENG_SHARDING_DIV, 4, h, 2, h < 2 ? h : 0, 1, h < 2);
		expect_rows(EMBENG_SHARDING_MOD, 4, h, 2, h < 2 ? h : 0, h < 2 ? 4 : 1, h < 2);
	}
}
END_TEST

/* Each row is exactly one host's, where embeng_shard_find() says. */
START_TEST(find_is_the_inverse)
{
	for (int64_t rows = 1; rows < 40; rows++) {
		for (uint32_t k = 0; k < 2 * 11; k++) {
			struct embeng_shard s = shard_of(
				k % 2 ? EMBENG_SHARDING_MOD : EMBENG_SHARDING_DIV, k / 2 + 1, 0);
			int64_t seen = 0;

			for (; s.host < s.hosts; s.host++) {
				struct embeng_shard_rows part;

				ck_assert_int_eq(embeng_shard_rows(&s, rows, &part), 0);
				seen += part.count;
				for (int64_t i = 0; i < part.count; i++) {
					uint32_t host = UINT32_MAX;
					int64_t place = -1;
					int ret = embeng_shard_find(&s, rows,
								    part.first + i * part.stride,
								    &host, &place);

					if (ret || host != s.host || place != i)
						ck_abort_msg("row %lld of %lld", (long long)i,
							     (long long)rows);
				}
			}
			ck_assert_int_eq(seen, rows);
		}
	}
}
END_TEST

START_TEST(rows_refused)
{
	struct embeng_shard s = shard_of(EMBENG_SHARDING_DIV, 3, 2), wrong;
	struct embeng_shard_rows rows = {7, 7, 7};
	int64_t place = 7;
	uint32_t host = 7;

	help_expect(embeng_shard_rows(NULL, 9, &rows), -EINVAL, "NULL was given");
	help_expect(embeng_shard_rows(&s, 9, NULL), -EINVAL, "rows must be given");
	help_expect(embeng_shard_rows(&s, 0, &rows), -ERANGE, "a table of 0 rows");
	wrong = s;
	wrong.size = 1;
	help_expect(embeng_shard_rows(&wrong, 9, &rows), -EINVAL, "size 1 is not possible");
	wrong = s;
	wrong.sharding = (enum embeng_sharding)2;
	help_expect(embeng_shard_rows(&wrong, 9, &rows), -EINVAL, "sharding 2 is unknown");
	wrong = s;
	wrong.hosts = 0;
	help_expect(embeng_shard_rows(&wrong, 9, &rows), -ERANGE, "0 hosts, allowed are 1 to");
	wrong.hosts = (uint32_t)INT32_MAX + 1;
	help_expect(embeng_shard_rows(&wrong, 9, &rows), -ERANGE, "2147483648 hosts");
	wrong = s;
	wrong.host = 3;
	help_expect(embeng_shard_rows(&wrong, 9, &rows), -ERANGE, "host 3 of 3");
	ck_assert(rows.first == 7 && rows.stride == 7 && rows.count == 7);
	help_expect(embeng_shard_find(&s, 9, 9, &host, &place), -ERANGE, "row 9 is outside");
	help_expect(embeng_shard_find(&s, 9, -1, &host, &place), -ERANGE, "row -1 is outside");
	help_expect(embeng_shard_find(&s, 0, 0, &host, &place), -ERANGE, "a table of 0 rows");
	help_expect(embeng_shard_find(&s, 9, 1, NULL, &place), -EINVAL, "must be given");
	help_expect(embeng_shard_find(&s, 9, 1, &host, NULL), -EINVAL, "must be given");
	help_expect(embeng_shard_find(NULL, 9, 1, &host, &place), -EINVAL, "NULL was given");
	ck_assert(host == 7 && place == 7);
}
END_TEST

/* The whole of one host's part, through the engine, is these elements. */
static void expect_part(struct embeng *e, size_t table, size_t array, const struct embeng_shard *s)
{
	const struct embeng_model *m = embeng_get_model(e);
	size_t rows = help_rows(m, table), dim = help_elements(m, table) / rows;
	float *data = malloc((help_elements(m, table) + 1) * sizeof(*data));
	struct embeng_shard_rows part;

	ck_assert_int_eq(embeng_shard_rows(s, (int64_t)rows, &part), 0);
	help_expect_ok(embeng_shard_read(e, (int)table, help_slot(m, table, array), s, 0,
					 (size_t)part.count, data));
	for (int64_t i = 0; i < part.count; i++) {
		for (size_t c = 0; c < dim; c++) {
			uint64_t at = (uint64_t)(part.first + i * part.stride) * dim + c;

			if (data[(size_t)i * dim + c] != help_value(table, array, at, 3))
				ck_abort_msg("table %zu array %zu host %u row %lld", table, array,
					     s->host, (long long)i);
		}
	}
	free(data);
}

START_TEST(parts_are_read)
{
	struct embeng *e = open_all(SMALL);
	const struct embeng_model *m = embeng_get_model(e);

	help_fill(e, 3);
	for (size_t t = 0; t < embeng_model_table_count(m); t++) {
		for (uint32_t k = 0; k < 2 * 7; k++) {
			struct embeng_shard s = shard_of((enum embeng_sharding)(k % 2), 7, k / 2);

			expect_part(e, t, embeng_model_slot_count(m, t), &s);
		}
	}
	embeng_close(e);
}
END_TEST

/* Written part by part, the last host first. */
START_TEST(parts_are_written)
{
	struct embeng *e = open_all(SMALL);
	const struct embeng_model *m = embeng_get_model(e);

	help_fill(e, 1);
	for (uint32_t h = 5; h-- > 0;) {
		struct embeng_shard s = shard_of(EMBENG_SHARDING_MOD, 5, h);
		struct embeng_shard_rows part;
		float data[80 * 130];

		ck_assert_int_eq(embeng_shard_rows(&s, 400, &part), 0);
		for (size_t i = 0; i < (size_t)part.count * 130; i++)
			data[i] = help_value(2, 1, (h + i / 130 * 5) * 130 + i % 130, 3);
		help_expect_ok(embeng_shard_write(e, 2, "accumulators", &s, 0, 41, data));
		help_expect_ok(embeng_shard_write(e, 2, "accumulators", &s, 41, 39,
						  data + (size_t)41 * 130));
	}
	help_expect_array(e, 2, 1, 3);
	help_expect_array(e, 2, 0, 1);
	ck_assert_uint_eq(embeng_model_table_count(m), 7);
	embeng_close(e);
}
END_TEST

START_TEST(parts_refused)
{
	struct embeng *e = open_all(SMALL);
	struct embeng_shard s = shard_of(EMBENG_SHARDING_MOD, 4, 3), wrong = s;
	float data[4] = {7, 7, 7, 7};

	/* 9 rows of table 3 over 4 hosts: host 3 has two. */
	help_expect(embeng_shard_read(e, 3, NULL, &s, 0, 3, data), -ERANGE,
		    "3 rows from 0 of host 3 of 4, which has 2 of table momentum");
	help_expect(embeng_shard_read(e, 3, NULL, &s, 3, 0, data), -ERANGE, "0 rows from 3");
	help_expect(embeng_shard_read(e, 3, NULL, &s, -1, 1, data), -ERANGE, "1 rows from -1");
	help_expect(embeng_shard_read(e, 7, NULL, &s, 0, 1, data), -ENOENT, "table 7");
	help_expect(embeng_shard_read(e, -1, NULL, &s, 0, 1, data), -ENOENT, "table -1");
	help_expect(embeng_shard_read(e, 3, "linears", &s, 0, 1, data), -ENOENT, "linears");
	help_expect(embeng_shard_read(e, 3, NULL, &s, 0, 1, NULL), -EINVAL, "no data given");
	help_expect(embeng_shard_read(e, 3, NULL, NULL, 0, 1, data), -EINVAL, "NULL was given");
	help_expect(embeng_shard_read(NULL, 3, NULL, &s, 0, 1, data), -EINVAL, "embeng_shard_read");
	wrong.host = 4;
	help_expect(embeng_shard_write(e, 3, NULL, &wrong, 0, 1, data), -ERANGE, "host 4 of 4");
	/* 1 row: the hosts but the first have none. */
	help_expect(embeng_shard_write(e, 1, NULL, &s, 0, 1, data), -ERANGE, "which has 0");
	help_expect_ok(embeng_shard_read(e, 1, NULL, &s, 0, 0, NULL));
	ck_assert(data[0] == 7 && data[3] == 7);
	embeng_close(e);
}
END_TEST

/* -- how rows start ------------------------------------------------------ */

static struct embeng_model *started_model(void)
{
	const struct embeng_slot_start start = {"accumulators",
						{EMBENG_INIT_UNIFORM, 0.5f, 1.5f, 9}};
	struct embeng_table_config t = {.size = sizeof(t),
					.name = "normal",
					.vocabulary_size = 37,
					.dim = 6,
					.optimizer = embeng_adagrad(0.1f),
					.slot_starts = &start,
					.slot_start_count = 1};
	struct embeng_table_config u = {.size = sizeof(u),
					.name = "uniform",
					.vocabulary_size = 3,
					.dim = 5,
					.optimizer = embeng_adam(0.1f),
					.initializer = {EMBENG_INIT_UNIFORM, -1.0f, 1.0f, 77}};
	struct embeng_table_config c = {.size = sizeof(c),
					.name = "constant",
					.vocabulary_size = 9,
					.dim = 2,
					.optimizer = embeng_ftrl(0.1f),
					.initializer = {EMBENG_INIT_CONSTANT, 0.25f, 0, 0}};
	struct embeng_model *m = embeng_model_new();

	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	ck_assert_int_eq(embeng_model_add_table(m, &u), 1);
	ck_assert_int_eq(embeng_model_add_table(m, &c), 2);
	return m;
}

static void expect_start(struct embeng *e, const struct embeng_model *m, size_t table, size_t array,
			 const struct embeng_shard *s)
{
	const char *slot = help_slot(m, table, array);
	struct embeng_shard_rows part;
	float got[37 * 6], want[37 * 6];
	size_t rows = help_rows(m, table), dim = help_elements(m, table) / rows;

	ck_assert_int_eq(embeng_shard_rows(s, (int64_t)rows, &part), 0);
	help_expect_ok(embeng_shard_start(m, (int)table, slot, s, 0, (size_t)part.count, got));
	help_expect_ok(embeng_shard_read(e, (int)table, slot, s, 0, (size_t)part.count, want));
	ck_assert_mem_eq(got, want, (size_t)part.count * dim * sizeof(*got));
	if (part.count > 1) {
		help_expect_ok(embeng_shard_start(m, (int)table, slot, s, 1, 1, got));
		ck_assert_mem_eq(got, want + dim, dim * sizeof(*got));
	}
}

static void start_of(const char *first, const char *second, int table, uint64_t seed, float *out)
{
	const char *const names[] = {first, second};
	const struct embeng_shard s = shard_of(EMBENG_SHARDING_MOD, 1, 0);
	struct embeng_model *m = embeng_model_new();

	for (int i = 0; i < 2; i++) {
		struct embeng_table_config t = {.size = sizeof(t),
						.name = names[i],
						.vocabulary_size = 10,
						.dim = 4,
						.initializer.seed = seed};

		ck_assert_int_eq(embeng_model_add_table(m, &t), i);
	}
	help_expect_ok(embeng_shard_start(m, table, NULL, &s, 0, 10, out));
	embeng_model_free(m);
}

/* Rows that start at random depend on the name of their table and the seed, not on the model. */
START_TEST(starts_go_by_the_name)
{
	float rows[5][40];

	start_of("a", "b", 0, 0, rows[0]);
	start_of("b", "a", 1, 0, rows[1]);
	start_of("b", "a", 0, 0, rows[2]);
	start_of("a", "b", 0, 1, rows[3]);
	start_of("b", "a", 0, 1, rows[4]);
	ck_assert_mem_eq(rows[0], rows[1], sizeof(rows[0]));
	for (size_t i = 0; i < 5; i++)
		for (size_t k = 2; k < 5; k++)
			ck_assert(i == k || memcmp(rows[i], rows[k], sizeof(rows[0])) != 0);
}
END_TEST

START_TEST(starts_are_the_engines)
{
	struct embeng_model *m = started_model();
	struct embeng *e = NULL;

	ck_assert_int_eq(embeng_open(SMALL, m, &e, NULL), 0);
	for (size_t t = 0; t < 3; t++) {
		for (size_t a = 0; a <= embeng_model_slot_count(m, t); a++) {
			for (uint32_t k = 0; k < 2 * 5; k++) {
				struct embeng_shard s = shard_of((enum embeng_sharding)(k % 2), 5,
								 k / 2);

				expect_start(e, m, t, a, &s);
			}
		}
	}
	embeng_close(e);
	embeng_model_free(m);
}
END_TEST

START_TEST(starts_refused)
{
	struct embeng_shard s = shard_of(EMBENG_SHARDING_DIV, 2, 1);
	struct embeng_model *m = started_model();
	float data[12] = {7};

	help_expect(embeng_shard_start(NULL, 0, NULL, &s, 0, 1, data), -EINVAL, "must be given");
	help_expect(embeng_shard_start(m, 0, NULL, &s, 0, 1, NULL), -EINVAL, "must be given");
	help_expect(embeng_shard_start(m, 3, NULL, &s, 0, 1, data), -ENOENT, "table 3");
	help_expect(embeng_shard_start(m, 0, "momenta", &s, 0, 1, data), -ENOENT, "momenta");
	help_expect(embeng_shard_start(m, 1, NULL, &s, 0, 2, data), -ERANGE, "which has 1");
	ck_assert(data[0] == 7);
	embeng_model_free(m);
}
END_TEST

/* Hosts are an engine option that means nothing to the engine. */
START_TEST(engine_options)
{
	struct embeng_engine_config c = {
		.size = sizeof(c), .hosts = 3, .sharding = EMBENG_SHARDING_MOD};
	struct embeng_model *m = started_model();
	uint64_t hash = embeng_model_hash(m);

	help_expect_ok(embeng_model_set_engine(m, &c));
	ck_assert_uint_eq(embeng_model_hash(m), hash);
	c.sharding = (enum embeng_sharding)2;
	help_expect(embeng_model_set_engine(m, &c), -EINVAL, "sharding 2 is unknown");
	c.sharding = EMBENG_SHARDING_DIV;
	c.hosts = (uint32_t)INT32_MAX + 1;
	help_expect(embeng_model_set_engine(m, &c), -ERANGE, "2147483648 hosts");
	help_expect_ok(embeng_model_get_engine(m, &c));
	ck_assert_uint_eq(c.hosts, 3);
	ck_assert_int_eq(c.sharding, EMBENG_SHARDING_MOD);
	c = (struct embeng_engine_config){.size = sizeof(c)};
	help_expect_ok(embeng_model_set_engine(m, &c));
	help_expect_ok(embeng_model_get_engine(m, &c));
	ck_assert_uint_eq(c.hosts, 1);
	embeng_model_free(m);
}
END_TEST

RUN_SUITE("shards", div_gives_runs, mod_gives_every_nth, small_tables_leave_hosts_without,
	  find_is_the_inverse, rows_refused, parts_are_read, parts_are_written, parts_refused,
	  starts_are_the_engines, starts_go_by_the_name, starts_refused, engine_options)
