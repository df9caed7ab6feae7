// SPDX-License-Identifier: MIT
/* Values of a checkpoint that are not finite: the first of parameters and of each slot is named. */
#include <json-c/json.h>
#include <math.h>

#include "runtime/cli/checkpoint/verify_finite.h"
#include "suite.h"
#include "tests/unit/support/checkpoint_help.h"

#define ROWS 50000
#define DIM 30 /* more than one piece */

static void put(struct embeng *e, const char *slot, int64_t row, size_t column, float value)
{
	float data[DIM];

	help_expect_ok(embeng_rows_read(e, 1, slot, &row, 1, data));
	data[column] = value;
	help_expect_ok(embeng_rows_write(e, 1, slot, &row, 1, data));
}

static struct embeng *open_allowing(void)
{
	const struct help_table tables[] = {{"whole", 10, DIM, embeng_sgd(0.1f)},
					    {"torn", ROWS, DIM, embeng_adam(0.1f)}};
	const struct embeng_engine_config engine = {.size = sizeof(engine),
						    .non_finite = EMBENG_NON_FINITE_ALLOW};
	struct embeng_model *m = help_model(tables, 2);
	struct embeng *e = NULL;

	ck_assert_int_eq(embeng_model_set_engine(m, &engine), 0);
	help_expect_ok(embeng_open("soft:cores=1,memory=64M", m, &e, NULL));
	embeng_model_free(m);
	return e;
}

/* Returns the text of the list. */
static const char *list_of(struct embeng *e, const char *folder, struct json_object **list)
{
	struct embeng_save_options o = {.size = sizeof(o), .flags = EMBENG_SAVE_NOT_FINITE};
	struct embeng_checkpoint *c;

	help_expect_ok(embeng_save(e, folder, &o));
	help_expect_ok(embeng_checkpoint_open(folder, &c, NULL));
	*list = json_object_new_array();
	ck_assert_int_eq(verify_finite(folder, c, *list), 0);
	embeng_checkpoint_close(c);
	return json_object_to_json_string_ext(*list, JSON_C_TO_STRING_PLAIN);
}

START_TEST(the_first_of_each_is_named)
{
	struct embeng *e = open_allowing();
	struct json_object *list;
	char folder[HELP_PATH];

	folder_new(folder);
	ck_assert_str_eq(list_of(e, folder, &list), "[]");
	json_object_put(list);
	put(e, NULL, ROWS - 1, DIM - 1, -INFINITY);
	put(e, "velocities", 0, 0, INFINITY);
	put(e, "velocities", 9, 0, INFINITY);
	ck_assert_str_eq(list_of(e, folder, &list),
			 "[{\"table\":\"torn\",\"array\":\"parameters\",\"row\":49999,"
			 "\"column\":29,\"value\":\"-inf\"},"
			 "{\"table\":\"torn\",\"array\":\"velocities\",\"row\":0,"
			 "\"column\":0,\"value\":\"inf\"}]");
	json_object_put(list);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, the_first_of_each_is_named);
}

int main(void)
{
	return suite_main("verify-finite", add);
}
