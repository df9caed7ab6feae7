// SPDX-License-Identifier: MIT
/* Text sources of firmware: one wrong line at a time in a text that is good without it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/control/firmware.h"
#include "firmware-loader/source.h"
#include "image_help.h"
#include "suite.h"

static const char good[] = "# a comment\n"
			   "[image]\n"
			   "version = 3.2.1\n"
			   "build_id = test\n"
			   "[parameters]\n"
			   "step_depth = 8\n"
			   "contexts = 64\n"
			   "queues = 0x100\n"
			   "regions = 4096\n"
			   "features = mapped_queues\n"
			   "   pipelining\n"
			   "inline_bytes = 4096\n"
			   "minimum_version = 2.0.0\n"
			   "heartbeat_ms = 1000\n"
			   "[strings]\n"
			   "name = me\n"
			   "empty =\n"
			   "[self-test]\n"
			   "combiner = sum\n"
			   "optimizer = sgd\n"
			   "learning_rate = 0x1p-1\n"
			   "step = 1\n"
			   "rows = 2\n"
			   "dim = 1\n"
			   "offsets = 0 3 3\n"
			   "ids = 0\n"
			   "\t0 1\r\n"
			   "table = 1 10\n"
			   "gradients = 3 1e2\n"
			   "activations = 12 0\n"
			   "table_after = -2 8.5\n";

static struct fw_source source;

static int read_text(const char *text)
{
	memset(&source, 0, sizeof(source));
	return fw_source_read(&source, "test.txt", text, strlen(text));
}

START_TEST(a_source_becomes_the_image_it_says)
{
	const struct image_section sections[] = {
		{EMBENG_FW_PARAMETERS, EMBENG_FW_SECTION_MANDATORY, &good_parameters,
		 sizeof(good_parameters)},
		{EMBENG_FW_SELF_TEST, EMBENG_FW_SECTION_MANDATORY, &good_vector,
		 sizeof(good_vector)},
		{EMBENG_FW_STRINGS, 0, good_strings, sizeof(good_strings)},
	};
	void *image, *expected;
	size_t length, wanted;

	ck_assert_msg(!read_text(good), "%s", source.error);
	ck_assert_int_eq(fw_source_pack(&source, &image, &length), 0);
	ck_assert_int_eq(image_pack(GOOD_VERSION, "test", sections, 3, &expected, &wanted), 0);
	ck_assert_uint_eq(length, wanted);
	ck_assert_mem_eq(image, expected, length);
	free(image);
	free(expected);
	fw_source_free(&source);
}
END_TEST

/* @line of the good text, "" for its end, becomes @put. */
static const struct {
	const char *line, *put, *error;
} broken[] = {
	{"[image]\n", "", "test.txt:2: version stands before any section"},
	{"[image]\n", "[image\n", "test.txt:2: a section is written [name], not [image"},
	{"[image]\n", "[image] x\n", "test.txt:2: a section is written [name], not [image] x"},
	{"[image]\n", "[picture]\n", "test.txt:2: there is no section picture"},
	{"[image]\n", "[image]\nversion\n",
	 "test.txt:3: 'version' is neither [section] nor key = value"},
	{"[image]\n", "[image]\n= 3\n", "test.txt:3: '= 3' is neither [section] nor key = value"},
	{"3.2.1", "3.2", "test.txt:3: version is '3.2', not like"},
	{"3.2.1", "3.2.1.", "test.txt:3: version is '3.2.1.', not like"},
	{"3.2.1", "3.-2.1", "test.txt:3: version is '3.-2.1', not like"},
	{"3.2.1", "3.65536.1", "test.txt:3: version is '3.65536.1', not like"},
	{"build_id = test", "version = 3.2.1", "test.txt:4: version is given a second time"},
	{"version = 3.2.1", "build_id = a", "test.txt:4: build_id is given a second time"},
	{"build_id = test", "name = me", "test.txt:4: an image has version and build_id, no name"},
	{"= test", "= 123456789012345678901234567890123", "build_id has 33 bytes, at most 32 fit"},
	{"version = 3.2.1\n", "", "test.txt: the [image] has no version"},
	{"step_depth = 8", "depth = 8", "test.txt:6: there is no boot parameter depth"},
	{"step_depth = 8", "step_depth = 3", "step_depth is 3, allowed are 4 to 64"},
	{"step_depth = 8", "step_depth = 65", "step_depth is 65, allowed are 4 to 64"},
	{"step_depth = 8", "step_depth = 8 9", "step_depth is '8 9', not a whole number"},
	{"step_depth = 8", "step_depth = -8", "step_depth is '-8', not a whole number"},
	{"step_depth = 8", "step_depth = 99999999999999999999999", "allowed are 4 to 64"},
	{"step_depth = 8", "contexts = 8", "test.txt:7: contexts is given a second time"},
	{"regions = 4096\n", "", "test.txt: the boot parameter regions is missing"},
	{"mapped_queues", "magic", "test.txt:10: features: there is no 'magic'"},
	{"2.0.0", "two", "minimum_version is 'two', not like 1.2.3"},
	{"2.0.0", "3.2.2", "minimum_version is above the image's own version"},
	{"sum", "max", "test.txt:19: combiner is 'max', allowed are sum, mean and sqrtn"},
	{"sgd", "lamb", "test.txt:20: there is no optimizer 'lamb'"},
	{"0x1p-1", "fast", "test.txt:21: learning_rate: 'fast' is no number"},
	{"0x1p-1", "1 2", "test.txt:21: learning_rate: '1 2' is no number"},
	{"step = 1", "step = 0", "test.txt:22: step is 0, allowed are 1 to"},
	{"rows = 2", "rows = 0", "rows is 0, allowed are 1 to 8192"},
	{"dim = 1", "dim = 8193", "dim is 8193, allowed are 1 to 8192"},
	{"dim = 1", "dim = 1\nrows = 2", "test.txt:25: rows is given a second time"},
	{"dim = 1\n", "", "test.txt:18: this self-test has no dim"},
	{"optimizer = sgd", "epsilon = 1\noptimizer = adam", "epsilon: the optimizer goes first"},
	{"step = 1", "step = 1\nepsilon = 1", "neither a self-test nor sgd has a epsilon"},
	{"offsets = 0 3 3", "offsets = 0", "test.txt:18: this self-test has no samples"},
	{"offsets = 0 3 3", "offsets = 0 3 x", "offsets is 'x', not a whole number"},
	{"ids = 0\n", "ids = 8193\n", "ids is 8193, allowed are 0 to 8192"},
	{"table = 1 10", "table = 1 ten", "table: 'ten' is no number"},
	{"table = 1 10", "table = 1", "this self-test has 1 table, 2 follow from its sizes"},
	{"table = 1 10", "table = 1 10\ntable = 1 10", "table is given a second time"},
	{"gradients = 3 1e2\n", "", "this self-test has 0 gradients, 2 follow from its sizes"},
	{"table = 1 10", "weights = 1 2\ntable = 1 10", "this self-test has 2 weights, 3 follow"},
	{"table = 1 10", "slots = 1\ntable = 1 10", "this self-test has 1 slots, 0 follow"},
};

START_TEST(a_wrong_line_is_named)
{
	const char *at = strstr(good, broken[_i].line);
	size_t before = (size_t)(at - good);
	char text[2 * sizeof(good)];
	void *image = NULL;
	size_t length;
	int ret;

	snprintf(text, sizeof(text), "%.*s%s%s", (int)before, good, broken[_i].put,
		 at + strlen(broken[_i].line));
	ret = read_text(text);
	if (!ret)
		ret = fw_source_pack(&source, &image, &length);
	ck_assert_int_eq(ret, -EINVAL);
	ck_assert_msg(strstr(source.error, broken[_i].error), "it says: %s", source.error);
	ck_assert_ptr_null(image);
	fw_source_free(&source);
}
END_TEST

START_TEST(a_zero_byte_is_no_text)
{
	memset(&source, 0, sizeof(source));
	ck_assert_int_eq(fw_source_read(&source, "test.txt", "[image]\0", 8), -EINVAL);
	ck_assert(strstr(source.error, "this is no text: it has a zero byte"));
	fw_source_free(&source);
}
END_TEST

START_TEST(several_sources_add_up)
{
	static const char *const parts[] = {"[strings]\n", "[self-test]\n"};
	const char *cut = strstr(good, parts[_i]);
	void *whole, *sum;
	size_t length, summed;

	ck_assert_int_eq(read_text(good), 0);
	ck_assert_int_eq(fw_source_pack(&source, &whole, &length), 0);
	fw_source_free(&source);
	memset(&source, 0, sizeof(source));
	ck_assert_int_eq(fw_source_read(&source, "one", good, (size_t)(cut - good)), 0);
	ck_assert_int_eq(fw_source_read(&source, "two", cut, strlen(cut)), 0);
	ck_assert_int_eq(fw_source_pack(&source, &sum, &summed), 0);
	ck_assert_uint_eq(summed, length);
	ck_assert_mem_eq(sum, whole, length);
	free(sum);
	free(whole);
	fw_source_free(&source);
}
END_TEST

/* Hyperparameters that are not given have their defaults. */
START_TEST(hyperparameters_go_by_name)
{
	static const char text[] = "[self-test]\ncombiner = mean\noptimizer = adam\n"
				   "learning_rate = 1\nstep = 3\nrows = 1\ndim = 1\n"
				   "epsilon = 0.5\noffsets = 0 0\ntable = 1\nslots = 2 3\n"
				   "gradients = 0\nactivations = 0\ntable_after = 1\n"
				   "slots_after = 2 3\n";
	static const float expected[16] = {0.9f, 0.999f, 0.5f, 1};
	struct embeng_fw_self_test t;

	ck_assert_msg(!read_text(text), "%s", source.error);
	memcpy(&t, source.tests.data, sizeof(t));
	ck_assert_uint_eq(t.length, source.tests.length);
	ck_assert_uint_eq(t.optimizer, EMBENG_OPTIMIZER_ADAM);
	ck_assert_uint_eq(t.slot_count, 2);
	ck_assert_uint_eq(t.step, 3);
	ck_assert_mem_eq(t.hyperparameter, expected, sizeof(expected));
	fw_source_free(&source);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, a_source_becomes_the_image_it_says);
	tcase_add_loop_test(t, a_wrong_line_is_named, 0, (int)(sizeof(broken) / sizeof(broken[0])));
	tcase_add_test(t, a_zero_byte_is_no_text);
	tcase_add_loop_test(t, several_sources_add_up, 0, 2);
	tcase_add_test(t, hyperparameters_go_by_name);
}

int main(void)
{
	return suite_main("firmware-source", add);
}
