// SPDX-License-Identifier: MIT
/* Initializers of the program that know which shard they fill. */
#include "checkpoint_help.h"
#include "embeng/shard.h"

struct by_row {
	int calls, give_up_at;
	int64_t rows;
	struct embeng_shard last;
};

static int by_row(void *arg, const struct embeng_shard_part *part, float *data)
{
	struct by_row *b = arg;

	ck_assert_uint_eq(part->size, sizeof(*part));
	ck_assert_str_eq(part->slot, "accumulators");
	ck_assert_int_eq(part->table, 2);
	ck_assert_int_eq(part->table_rows, 400);
	ck_assert_int_eq(part->dim, 130);
	if (++b->calls == b->give_up_at)
		return 1;
	for (int64_t i = 0; i < part->rows.count; i++)
		for (int64_t c = 0; c < 130; c++)
			data[i * 130 + c] = help_value(
				2, 1,
				(uint64_t)((part->rows.first + i * part->rows.stride) * 130 + c),
				5);
	b->rows += part->rows.count;
	b->last = part->shard;
	return 0;
}

static struct embeng *open_hosts(uint32_t hosts, enum embeng_sharding sharding)
{
	struct embeng_engine_config c = {.size = sizeof(c), .hosts = hosts, .sharding = sharding};
	size_t count;
	const struct help_table *tables = all_optimizers(&count);
	struct embeng_model *m = help_model(tables, count);
	struct embeng *e = NULL;

	help_expect_ok(embeng_model_set_engine(m, &c));
	help_expect_ok(embeng_open(SMALL, m, &e, NULL));
	embeng_model_free(m);
	return e;
}

START_TEST(initializers_see_their_shard)
{
	for (uint32_t k = 0; k < 6; k++) {
		enum embeng_sharding sharding = (enum embeng_sharding)(k % 2);
		struct embeng *e = open_hosts(k + 1, sharding);
		struct by_row b = {0};

		help_fill(e, 1);
		help_expect_ok(embeng_shard_initialize(e, 2, "accumulators", by_row, &b));
		help_expect_array(e, 2, 1, 5);
		help_expect_array(e, 2, 0, 1);
		ck_assert_int_eq(b.calls, (int)k + 1);
		ck_assert_int_eq(b.rows, 400);
		ck_assert_uint_eq(b.last.hosts, k + 1);
		ck_assert_uint_eq(b.last.host, k);
		ck_assert_int_eq(b.last.sharding, sharding);
		embeng_close(e);
	}
}
END_TEST

START_TEST(initializers_refused)
{
	struct embeng *e = open_hosts(3, EMBENG_SHARDING_DIV);
	struct by_row b = {.give_up_at = 2};

	help_fill(e, 1);
	help_expect(embeng_shard_initialize(e, 2, "accumulators", by_row, &b), -ECANCELED,
		    "table adagrad, accumulators: the initializer gave up at row 134 of host 1");
	help_expect(embeng_shard_initialize(e, 2, NULL, NULL, &b), -EINVAL,
		    "an initializer must be given");
	help_expect(embeng_shard_initialize(e, 7, NULL, by_row, &b), -ENOENT, "table 7");
	help_expect(embeng_shard_initialize(e, 2, "momenta", by_row, &b), -ENOENT, "momenta");
	help_expect(embeng_shard_initialize(NULL, 2, NULL, by_row, &b), -EINVAL,
		    "embeng_shard_initialize");
	ck_assert_int_eq(b.calls, 2);
	embeng_close(e);
}
END_TEST

RUN_SUITE("shard initializers", initializers_see_their_shard, initializers_refused)
