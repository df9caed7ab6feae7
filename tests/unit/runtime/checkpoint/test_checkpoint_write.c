// SPDX-License-Identifier: MIT
/*
 * Checkpoints that are written without a device: rows of a function of the program, over hosts of both
 * shardings, and what is refused.
 */
#include <math.h>

#include "checkpoint_help.h"
#include "suite.h"

struct source {
	uint32_t salt;
	int64_t give_up_at; /* a row, or -1 */
	float bad;	    /* in place of the first element of row 2, unless it is 0 */
	const struct embeng_model *model;
};

static int array_of(const struct embeng_model *m, size_t table, const char *slot)
{
	for (size_t i = 0; i < embeng_model_slot_count(m, table); i++) {
		if (!strcmp(embeng_model_slot_name(m, table, i), slot))
			return (int)i + 1;
	}
	ck_assert_str_eq(slot, "parameters");
	return 0;
}

static int give_values(void *arg, int table, const char *slot, const struct embeng_shard_rows *rows,
		       float *data)
{
	const struct source *source = arg;
	struct embeng_table_config c = {.size = sizeof(c)};
	size_t array = (size_t)array_of(source->model, (size_t)table, slot);

	ck_assert_int_eq(embeng_model_get_table(source->model, (size_t)table, &c), 0);
	for (int64_t i = 0; i < rows->count; i++) {
		int64_t row = rows->first + i * rows->stride;

		ck_assert_int_lt(row, c.vocabulary_size);
		if (row == source->give_up_at)
			return 1;
		for (int64_t k = 0; k < c.dim; k++)
			data[i * c.dim + k] = help_value((size_t)table, array,
							 (uint64_t)(row * c.dim + k), source->salt);
		if (row == 2 && source->bad != 0)
			data[i * c.dim] = source->bad;
	}
	return 0;
}

static struct embeng_model *make_model(uint32_t hosts, enum embeng_sharding sharding)
{
	const struct help_table tables[] = {{"t", 600, 3, embeng_adam(0.1f)},
					    {"u", 7, 2, embeng_sgd(0.1f)}};
	const struct embeng_engine_config engine = {
		.size = sizeof(engine), .hosts = hosts, .sharding = sharding};
	struct embeng_model *m = help_model(tables, 2);

	ck_assert_int_eq(embeng_model_set_engine(m, &engine), 0);
	return m;
}

START_TEST(over_hosts)
{
	static const uint32_t hosts[] = {1, 2, 3, 7, 11};
	enum embeng_sharding sharding = _i < 5 ? EMBENG_SHARDING_DIV : EMBENG_SHARDING_MOD;
	struct embeng_model *m = make_model(hosts[_i % 5], sharding);
	struct source source = {.salt = 4, .give_up_at = -1, .model = m};
	const struct embeng_write_options options = {.size = sizeof(options),
						     .step = 77,
						     .save = {.size = sizeof(options.save),
							      .shard_bytes = 1000,
							      .program_state = "state"}};
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];

	help_never_sync();
	folder_new(folder);
	help_expect_ok(embeng_checkpoint_write(folder, m, give_values, &source, &options, NULL));
	c = help_checkpoint(folder);
	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	help_expect_checkpoint(c, 4);
	ck_assert_int_eq(embeng_checkpoint_info(c, &info), 0);
	ck_assert_uint_eq(info.step, 77);
	ck_assert_str_eq(info.program_state, "state");
	ck_assert_uint_eq(info.model_hash, embeng_model_hash(m));
	embeng_checkpoint_close(c);
	embeng_model_free(m);
	folder_remove(folder);
}
END_TEST

/* The checkpoint that was there stays whatever happens. */
START_TEST(refused)
{
	struct embeng_model *m = make_model(1, EMBENG_SHARDING_DIV), *none = embeng_model_new();
	struct source good = {.salt = 1, .give_up_at = -1, .model = m}, bad = good;
	struct embeng_write_options o = {.size = sizeof(o), .save = {.size = sizeof(o.save)}};
	struct embeng_checkpoint *from, *c;
	char folder[HELP_PATH];

	help_never_sync();
	folder_new(folder);
	help_expect_ok(embeng_checkpoint_write(folder, m, give_values, &good, NULL, NULL));
	help_expect(embeng_checkpoint_write(NULL, m, give_values, &good, NULL, NULL), -EINVAL,
		    "dir");
	help_expect(embeng_checkpoint_write(folder, NULL, give_values, &good, NULL, NULL), -EINVAL,
		    "model");
	help_expect(embeng_checkpoint_write(folder, m, NULL, &good, NULL, NULL), -EINVAL, "fn");
	help_expect(embeng_checkpoint_write(folder, none, give_values, &good, NULL, NULL), -EINVAL,
		    "no table");
	bad.give_up_at = 5;
	help_expect(embeng_checkpoint_write(folder, m, give_values, &bad, NULL, NULL), -ECANCELED,
		    "table t, momenta: the function that gives rows gave up");
	bad = good;
	bad.bad = NAN;
	help_expect(embeng_checkpoint_write(folder, m, give_values, &bad, NULL, NULL), -ERANGE,
		    "table t");
	o.step = (uint64_t)INT64_MAX + 1;
	help_expect(embeng_checkpoint_write(folder, m, give_values, &good, &o, NULL), -ERANGE,
		    "step 9223372036854775808");
	o.step = 0;
	o.replaces = 1;
	help_expect(embeng_checkpoint_write(folder, m, give_values, &good, &o, NULL), -EINVAL,
		    "from is NULL");
	o.save.flags = 1u << 31;
	o.replaces = 0;
	help_expect(embeng_checkpoint_write(folder, m, give_values, &good, &o, NULL), -EINVAL,
		    "flags 0x80000000");
	o.save.flags = 0;
	/* Somebody else was faster. */
	from = help_checkpoint(folder);
	o.from = from;
	o.replaces = 1;
	help_expect_ok(embeng_checkpoint_write(folder, m, give_values, &good, &o, NULL));
	help_expect(embeng_checkpoint_write(folder, m, give_values, &good, &o, NULL), -ESTALE,
		    "has another checkpoint by now");
	embeng_checkpoint_close(from);
	c = help_checkpoint(folder);
	help_expect_checkpoint(c, 1);
	embeng_checkpoint_close(c);
	embeng_model_free(m);
	embeng_model_free(none);
	folder_remove(folder);
}
END_TEST

static int write_kept(const char *folder, struct source *source, float bad, uint32_t keep)
{
	const struct embeng_write_options o = {
		.size = sizeof(o),
		.save = {.size = sizeof(o.save), .keep = keep, .flags = EMBENG_SAVE_NOT_FINITE}};

	source->bad = bad;
	return embeng_checkpoint_write(folder, source->model, give_values, source, &o, NULL);
}

/* Checks the checkpoints of a folder, the newest first: 'f' is a finite one, 'n' one that is not. */
static void expect_kept(const char *folder, const char *kinds)
{
	struct embeng_checkpoint *none = NULL;

	for (size_t back = 0; kinds[back]; back++) {
		struct embeng_checkpoint *c = NULL;

		help_expect_ok(embeng_checkpoint_open_earlier(folder, back, &c, NULL));
		help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
		ck_assert_int_eq(embeng_checkpoint_finite(c, 0), kinds[back] == 'f');
		embeng_checkpoint_close(c);
	}
	ck_assert_int_eq(embeng_checkpoint_open_earlier(folder, strlen(kinds), &none, NULL),
			 -ENODATA);
}

/* However many bad ones come after it, and however few stay. */
START_TEST(the_last_finite_one_stays)
{
	struct embeng_model *m = make_model(1, EMBENG_SHARDING_DIV);
	struct source source = {.salt = 1, .give_up_at = -1, .model = m};
	static const struct {
		uint32_t keep;
		float bad;
		const char *kinds;
	} saves[] = {
		{1, 0, "f"},	 {1, 0, "f"},	   {1, NAN, "nf"},    {1, INFINITY, "nf"},
		{2, NAN, "nnf"}, {3, NAN, "nnnf"}, {4, NAN, "nnnnf"}, {1, -INFINITY, "nf"},
		{3, 0, "fnf"},	 {3, NAN, "nfn"},  {2, NAN, "nnf"},   {0, 0, "fn"},
		{2, NAN, "nf"},	 {1, 0, "f"},
	};
	char folder[HELP_PATH];

	help_never_sync();
	folder_new(folder);
	for (size_t i = 0; i < sizeof(saves) / sizeof(*saves); i++) {
		help_expect_ok(write_kept(folder, &source, saves[i].bad, saves[i].keep));
		expect_kept(folder, saves[i].kinds);
	}
	embeng_model_free(m);
	folder_remove(folder);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, over_hosts, 0, 10);
	tcase_add_test(tcase, refused);
	tcase_add_test(tcase, the_last_finite_one_stays);
}

int main(void)
{
	return suite_main("checkpoint write", add);
}
