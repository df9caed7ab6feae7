// SPDX-License-Identifier: MIT
/* Checkpoints as they are saved and read back, without a restore. */
#include "../../runtime/src/checkpoint_index.h"
#include "../../runtime/src/checkpoint_open.h"
#include "../../runtime/src/session.h"
#include "checkpoint_help.h"

static const struct help_table *all_optimizers(size_t *count)
{
	static struct help_table tables[7];

	tables[0] = (struct help_table){"none", 5, 1, {0}};
	tables[1] = (struct help_table){"sgd", 1, 17, embeng_sgd(0.5f)};
	tables[2] = (struct help_table){"adagrad", 40, 130, embeng_adagrad(0.1f)};
	tables[3] = (struct help_table){"momentum", 9, 3, embeng_adagrad_momentum(0.1f)};
	tables[4] = (struct help_table){"ftrl/with \"slash\" \xc3\xa9", 7, 2, embeng_ftrl(0.1f)};
	tables[5] = (struct help_table){"adam", 300, 4, embeng_adam(0.1f)};
	tables[6] = (struct help_table){"corrected", 33, 16, embeng_adam_corrected(0.1f)};
	*count = 7;
	return tables;
}

static struct embeng *open_all(const char *device)
{
	size_t count;
	const struct help_table *tables = all_optimizers(&count);

	return help_open(device, tables, count);
}

START_TEST(reads_back_what_was_saved)
{
	struct embeng_save_options o = {.size = sizeof(o), .program_state = "{\"seed\": 7}\n\"\\"};
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	struct embeng *e = open_all("soft:cores=3,memory=64M");
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, &o));
	c = help_checkpoint(folder);
	ck_assert_int_eq(embeng_checkpoint_info(c, &info), 0);
	ck_assert_uint_eq(info.table_count, 7);
	ck_assert_uint_eq(info.file_count, 7);
	ck_assert_uint_eq(info.chunk_count, 7);
	ck_assert_uint_eq(info.step, 0);
	ck_assert_uint_eq(info.model_hash, embeng_model_hash(embeng_get_model(e)));
	ck_assert_str_eq(info.program_state, o.program_state);
	help_expect_checkpoint(c, 1);
	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	embeng_checkpoint_close(c);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

RUN_SUITE("checkpoint", reads_back_what_was_saved)
