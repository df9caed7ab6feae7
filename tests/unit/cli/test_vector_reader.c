// SPDX-License-Identifier: MIT
/* The reader of vector files: valid files are accepted, and each kind of mistake is refused. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cli/conform/file.h"
#include "runtime/cli/conform/value.h"
#include "json_help.h"
#include "suite.h"

#define HEAD "{\"schema\": \"embeng.vector/1\", \"name\": \"n\", "
#define TABLE "\"tables\": [{\"name\": \"t\", \"vocabulary_size\": 8, \"dim\": 2}], "
#define FEATURE "\"features\": [{\"name\": \"f\", \"table\": \"t\"}], "
#define MODEL HEAD TABLE FEATURE
#define STEP(text) MODEL "\"steps\": [" text "]}"
#define OPTIMIZER(text) \
	HEAD "\"tables\": [{\"name\": \"t\", \"vocabulary_size\": 8, \"dim\": 2, " \
	     "\"optimizer\": " text "}], " FEATURE "\"steps\": []}"

static const struct json *read_text(const char *text, char *error)
{
	return vector_parse(text, strlen(text), error);
}

static const char *const good[] = {
	STEP(""),
	STEP("{\"enqueue\": {\"features\": {\"f\": {\"dense\": [1, 2], \"shape\": [2, 1]}}}}"),
	STEP("{\"enqueue\": {\"features\": {\"f\": {\"dense\": [1], \"weights\": [1]}}}}"),
	STEP("{\"enqueue\": {\"features\": {\"f\": {\"ragged\": {\"rows\": [[], [1]]}, "
	     "\"weights\": [[], [\"nan\"]]}}}}"),
	STEP("{\"enqueue\": {\"features\": {\"f\": {\"ragged\": {\"values\": [], "
	     "\"row_splits\": [0]}}}}}"),
	STEP("{\"apply_gradients\": {\"gradients\": {\"f\": null}}}"),
	STEP("{\"expect_table\": {\"table\": \"t\", \"values\": {\"arange\": [0, 1]}}}"),
	STEP("{\"dequeue\": {\"expect\": {}}, \"error\": {\"errno\": \"EPROTO\"}}"),
	STEP("{\"expect_config\": {\"hex\": \"00\"}}"),
	OPTIMIZER("{\"kind\": \"sgd\", \"clipvalue\": [null, 1]}"),
	OPTIMIZER("{\"kind\": \"adagrad\", \"learning_rate\": {\"dynamic\": \"r\"}, "
		  "\"initial_accumulator_value\": 1}"),
	OPTIMIZER("{\"kind\": \"lamb\", \"beta_1\": 1}"),
	OPTIMIZER("{\"kind\": \"program\", \"anything\": 1}"),
};

START_TEST(takes)
{
	char error[VECTOR_ERROR_TEXT];
	const struct json *vector = read_text(good[_i], error);

	ck_assert_msg(vector, "%s: %s", good[_i], error);
	json_free(vector);
}
END_TEST

static const struct {
	const char *text, *says;
} bad[] = {
	{"", "ends too early"},
	{"null\n", "must be an object"},
	{"[]", "must be an object"},
	{MODEL, "ends too early"},
	{STEP("") "x", "stands behind"},
	{STEP("") " {}", "no JSON"},
	{STEP("NaN"), "no place here"},
	{STEP("1."), "decimal point"},
	{STEP("'a'"), "no place here"},
	{MODEL "\"about\": \"a\tb\", \"steps\": []}", "control character"},
	{MODEL "\"about\": \"a\\u0000b\", \"steps\": []}", "about: has a zero byte inside"},
	{MODEL "\"about\": \"\\ud800\", \"steps\": []}", "surrogate"},
	{MODEL "\"about\": \"\xed\xa0\x80\", \"steps\": []}", "not UTF-8"},
	{MODEL "\"steps\": [{\"save\\u0000\": {}}]}", "zero byte"},
	{MODEL "\"steps\": [], \"steps\": []}", "two members of the same name"},
	{STEP("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"),
	 "no JSON"},
	{"{\"schema\": \"embeng.vector/2\"}", "embeng.vector/2"},
	{"{\"schema\": 1}", "schema: must be a text"},
	{HEAD TABLE FEATURE "\"about\": \"\"}", "'steps' is missing"},
	{HEAD FEATURE "\"steps\": []}", "'tables' is missing"},
	{MODEL "\"stepz\": []}", "unknown key 'stepz'"},
	{MODEL "\"steps\": {}}", "steps: must be a list"},
	{HEAD "\"tables\": [{\"name\": \"t\", \"dim\": 2}], " FEATURE "\"steps\": []}",
	 "tables[0]: key 'vocabulary_size' is missing"},
	{HEAD "\"tables\": [{\"name\": \"t\", \"vocabulary_size\": 1.5}], " FEATURE
	      "\"steps\": []}",
	 "tables[0].vocabulary_size: must be an integer"},
	{OPTIMIZER("{\"kind\": \"sgd\", \"initial_accumulator_value\": 1}"),
	 "unknown key 'initial_accumulator_value' of optimizer 'sgd'"},
	{OPTIMIZER("{\"kind\": \"lamb\", \"frob\": 1}"), "unknown key 'frob'"},
	{OPTIMIZER("{\"learning_rate\": 1}"), "'kind' is missing"},
	{OPTIMIZER("[]"), "optimizer: must be an object"},
	{OPTIMIZER("{\"kind\": \"sgd\", \"learning_rate\": \"fast\"}"), "must be a number"},
	{OPTIMIZER("{\"kind\": \"sgd\", \"clipvalue\": [1]}"), "[low, high]"},
	{STEP("{}"), "steps[0]: a step must have one verb; this one has 0"},
	{STEP("{\"save\": {\"dir\": \"a\"}, \"restore\": {\"dir\": \"a\"}}"), "this one has 2"},
	{STEP("{\"frob\": {}}"), "unknown key 'frob'"},
	{STEP("{\"dequeue\": {\"expect\": {}}, \"error\": {\"errno\": \"EFROB\"}}"), "EFROB"},
	{HEAD FEATURE "\"tables\": [], \"model_error\": {\"errno\": \"EFROB\"}, \"steps\": []}",
	 "model_error: errno 'EFROB'"},
	{STEP("{\"dequeue\": {\"expect\": {}}, \"error\": {\"contains\": \"a\"}}"),
	 "contains: must be a list"},
	{STEP("{\"enqueue\": {\"features\": {\"f\": {}}}}"), "'dense', 'sparse' and 'ragged'"},
	{STEP("{\"enqueue\": {\"features\": {\"f\": {\"dense\": [[1]]}}}}"),
	 "dense[0]: must be an integer"},
	{STEP("{\"enqueue\": {\"features\": {\"f\": {\"ragged\": {\"rows\": [1]}}}}}"),
	 "rows[0]: must be a list"},
	{STEP("{\"enqueue\": {\"features\": {\"f\": {\"ragged\": {\"values\": []}}}}}"),
	 "'row_splits' is missing"},
	{STEP("{\"enqueue\": {\"features\": {\"f\": {\"dense\": [], \"weights\": [[[1]]]}}}}"),
	 "lists of numbers"},
	{STEP("{\"enqueue\": {\"features\": {\"f\": {\"ragged\": {\"rows\": [[1], [2]]}, "
	      "\"weights\": [[1], [[1]]]}}}}"),
	 "lists of numbers"},
	{STEP("{\"dequeue\": {\"expect\": {\"f\": [1, [2]]}}}"), "f[1]: must be a number"},
	{STEP("{\"dequeue\": {\"expect\": {\"f\": null}}}"), "must be a list"},
	{STEP("{\"apply_gradients\": {\"gradients\": {\"f\": {\"row_id\": 1}}}}"), "'row_id'"},
	{STEP("{\"expect_table\": {\"table\": \"t\", \"values\": {\"arange\": [0]}}}"),
	 "[start, step]"},
	{STEP("{\"expect_config\": {\"hex\": \"00\", \"import_hex\": \"00\"}}"), "'import_hex'"},
};

START_TEST(refuses)
{
	char error[VECTOR_ERROR_TEXT];
	const struct json *vector = read_text(bad[_i].text, error);

	ck_assert_msg(!vector, "taken: %s", bad[_i].text);
	ck_assert_msg(strstr(error, bad[_i].says), "%s: '%s' lacks '%s'", bad[_i].text, error,
		      bad[_i].says);
}
END_TEST

/* Every prefix of a good file is refused, none is read past its end (ASan sees that). */
START_TEST(refuses_prefixes)
{
	const char *whole = good[3];
	char error[VECTOR_ERROR_TEXT];

	for (size_t length = 0; length < strlen(whole); length++) {
		char *part = malloc(length + 1);

		memcpy(part, whole, length);
		ck_assert_ptr_null(vector_parse(part, length, error));
		ck_assert_str_ne(error, "");
		free(part);
	}
}
END_TEST

START_TEST(matrices)
{
	const struct json *arange = must_read("{\"arange\": [1, 0.5]}");
	const struct json *row_id = must_read("{\"row_id\": 0.5}");
	const struct json *nested = must_read("[[1, 2], [3, \"-inf\"]]");
	const int64_t ids[] = {7, 3}, shape[] = {2, 2}, other[] = {2, 3};
	float out[4];

	matrix_rows(arange, NULL, 2, 1, 2, out);
	ck_assert_float_eq(out[0], 3.0f);
	ck_assert_float_eq(out[1], 3.5f);
	matrix_rows(row_id, ids, 0, 2, 2, out);
	ck_assert_float_eq(out[0], 7.5f);
	ck_assert_float_eq(out[3], 3.5f);
	matrix_rows(nested, NULL, 0, 2, 2, out);
	ck_assert_float_eq(out[2], 3.0f);
	ck_assert(isinf(out[3]) && out[3] < 0);
	ck_assert(nested_has_shape(nested, shape, 2));
	ck_assert(!nested_has_shape(nested, other, 2));
	ck_assert(!nested_has_shape(nested, shape, 1));
	json_free(arange);
	json_free(row_id);
	json_free(nested);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, takes, 0, (int)(sizeof(good) / sizeof(good[0])));
	tcase_add_loop_test(tcase, refuses, 0, (int)(sizeof(bad) / sizeof(bad[0])));
	tcase_add_test(tcase, refuses_prefixes);
	tcase_add_test(tcase, matrices);
}

int main(void)
{
	return suite_main("vector_reader", add);
}
