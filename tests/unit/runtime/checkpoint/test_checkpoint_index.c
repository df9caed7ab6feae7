// SPDX-License-Identifier: MIT
/* Each check of an index fails by itself, on an index that is right otherwise. */
#include "checkpoint_edit.h"
#include "suite.h"

struct edit {
	const char *old, *new;
	int code;
	const char *text;
};

/* Shards' names by the save are not known here; theirs are edited below. */
static const struct edit edits[] = {
	{"index/1", "index/2", -ENOTSUP, "its schema is embeng.checkpoint.index/2"},
	{"embeng.checkpoint.index/1", "embeng.checkpoint/1", -EBADMSG,
	 "\"schema\" is not \"embeng.checkpoint.index/1\""},
	{"\"schema\": \"embeng.checkpoint.index/1\"", "\"schema\": 1", -EBADMSG,
	 "\"schema\" is not"},
	{"\"requires\": [\n    \"chunk_tables\"\n  ]", "\"requires\": [\"encryption\"]", -ENOTSUP,
	 "requires \"encryption\""},
	{"\"requires\": [\n    \"chunk_tables\"\n  ]", "\"requires\": {}", -EBADMSG,
	 "\"requires\" is not an array"},
	{"  \"requires\": [\n    \"chunk_tables\"\n  ],\n", "", -EBADMSG,
	 "\"requires\" is not an array"},
	{"\"model_hash\": \"", "\"model_hash\": \"0", -EBADMSG, "\"model_hash\" is not 16"},
	{"\"model_hash\": \"", "\"model_hash\": 1, \"x\": \"", -EBADMSG,
	 "\"model_hash\" is not a text"},
	{"\"step\": 0", "\"step\": -1", -EBADMSG, "\"step\" is not a whole number"},
	{"\"step\": 0", "\"step\": 1.5", -EBADMSG, "\"step\" is not a whole number"},
	{"\"step\": 0", "\"step\": 9223372036854775808", -EBADMSG, "\"step\" is not a whole"},
	{"\"step\": 0", "\"step\": 99999999999999999999999", -EBADMSG, "\"step\" is not a whole"},
	{"\"step\": 0", "\"step\": \"0\"", -EBADMSG, "\"step\" is not a whole number"},
	{"\"step\": 0,", "\"step\": 0, \"step\": 0,", -EBADMSG, "two members of the same name"},
	{"\"step\": 0,", "", -EBADMSG, "\"step\" is not a whole number"},
	{"\"step\": 0,", "\"step\": 0, \"frozen_steps\": 0,", -EBADMSG, "\"frozen_steps\""},
	{"\"step\": 0,", "\"step\": 0, \"frozen_steps\": [0, 1],", -EBADMSG,
	 "of table u is no number"},
	{"\"step\": 0,", "\"step\": 0, \"frozen_steps\": [-1, 0],", -EBADMSG,
	 "of table t is no number"},
	{"\"step\": 0,", "\"step\": 0, \"frozen_steps\": [],", -EBADMSG, "0 numbers for"},
	{"\"step\": 0,", "\"step\": 0, \"frozen_steps\": [0, 0, 0, 0, 0],", -EBADMSG,
	 "5 numbers for"},
	{"\"chunk_bytes\": 4096", "\"chunk_bytes\": 4097", -EBADMSG,
	 "\"chunk_bytes\" is 4097, which is no power of two"},
	{"\"chunk_bytes\": 4096", "\"chunk_bytes\": 2048", -EBADMSG,
	 "\"chunk_bytes\" is not a whole number"},
	{"\"chunk_bytes\": 4096", "\"chunk_bytes\": 8388608", -EBADMSG,
	 "\"chunk_bytes\" is not a whole number"},
	{"\"chunk_bytes\": 4096", "\"chunk_bytes\": 0", -EBADMSG, "\"chunk_bytes\" is not"},
	{"\"program_state\": \"x\"", "\"program_state\": 1", -EBADMSG, "\"program_state\" is not"},
	{"\"program_state\": \"x\"", "\"program_state\": \"a\\u0000b\"", -EBADMSG,
	 "\"program_state\" has a zero byte"},
	{"\"program_state\": \"x\"", "\"program_state\": \"\xc3\"", -EBADMSG, "no JSON at byte"},
	{"\"engine\": {", "\"engine\": 1, \"x\": {", -EBADMSG, "\"engine\" is not an object"},
	{"\"replicas\": 1", "\"replicas\": 0", -EBADMSG, "\"replicas\" is not a whole number"},
	{"\"step_depth\": 0", "\"step_depth\": 4294967296", -EBADMSG, "\"step_depth\" is not"},
	{"\"step_depth\": 0", "\"step_depth\": 0, \"pipelining\": 1", -EBADMSG,
	 "\"pipelining\" is neither"},
	{"\"step_depth\": 0", "\"step_depth\": 0, \"hosts\": 0", -EBADMSG, "\"hosts\" is not"},
	{"\"step_depth\": 0", "\"step_depth\": 0, \"sharding\": 1", -EBADMSG,
	 "\"sharding\" is not a text"},
	{"\"step_depth\": 0", "\"step_depth\": 0, \"sharding\": \"shuffle\"", -ENOTSUP,
	 "\"sharding\" is \"shuffle\""},
	{"\"step_depth\": 0", "\"step_depth\": 0, \"hosts\": 2", -EBADMSG,
	 "files 0: has 4 rows from row 0 of table t, of which host 0 has 3"},
	{"\"step_depth\": 0", "\"step_depth\": 0, \"hosts\": 6, \"sharding\": \"mod\"", -EBADMSG,
	 "files 0: has 4 rows from row 0 of table t, of which host 0 has 1"},
	{"\"requires\": [\n    \"chunk_tables\"\n  ]", "\"requires\": [\"mod\", 1]", -ENOTSUP,
	 "requires 1"},
	{"\"tables\": [", "\"tables\": 1, \"x\": [", -EBADMSG, "\"tables\" is not an array"},
	{"\"tables\": [", "\"tables\": [1, ", -EBADMSG, "tables 0: is not an object"},
	{"\"name\": \"t\"", "\"name\": 1", -EBADMSG, "tables 0: \"name\" is not a text"},
	{"\"name\": \"t\"", "\"name\": \"\"", -EBADMSG, "tables 0: table: the name is empty"},
	{"\"name\": \"u\"", "\"name\": \"t\"", -EBADMSG, "tables 1: table t: table 0 has this"},
	{"\"name\": \"t\"", "\"name\": \"v\"", -EBADMSG, "files 0: \"v/parameters\" is not"},
	{"\"rows\": 6", "\"rows\": 0", -EBADMSG, "tables 0: \"rows\" is not a whole number"},
	{"\"rows\": 6", "\"rows\": 7", -EBADMSG,
	 "files 2: has table 1 from row 0, expected is "
	 "table 0 from row 6"},
	{"\"rows\": 6", "\"rows\": 5", -EBADMSG,
	 "files 1: has 2 rows from row 4 of table t, of which host 0 has 5"},
	{"\"dim\": 2", "\"dim\": 0", -EBADMSG, "tables 0: \"dim\" is not a whole number"},
	{"\"dim\": 2", "\"dim\": 4294967296", -EBADMSG, "tables 0: \"dim\" is not a whole number"},
	{"\"rows\": 3,\n      \"dim\": 2", "\"rows\": 3,\n      \"dim\": 2147483648", -EBADMSG,
	 "bytes do not hold its rows"},
	{"\"rows\": 3,\n      \"dim\": 2", "\"rows\": 3,\n      \"dim\": 1", -EBADMSG,
	 "\"u/parameters\" is [3, 2]"},
	{"\"dim\": 2", "\"dim\": 1", -ENOTSUP, "slot accumulators has 2 numbers for each row"},
	{"\"combiner\": \"sum\"", "\"combiner\": \"median\"", -ENOTSUP,
	 "\"combiner\" is \"median\""},
	{"\"combiner\": \"sum\"", "\"combiner\": 1", -EBADMSG, "\"combiner\" is not a text"},
	{"\"out_of_range\": \"error\"", "\"out_of_range\": \"wrap\"", -ENOTSUP,
	 "\"out_of_range\" is \"wrap\""},
	{"\"optimizer\": {", "\"quantization\": 1, \"optimizer\": {", -EBADMSG,
	 "tables 0: \"quantization\" is not an object"},
	{"\"optimizer\": {", "\"quantization\": {\"lower\": 0, \"upper\": 1}, \"optimizer\": {",
	 -EBADMSG, "tables 0: \"num_buckets\" is not a whole number"},
	{"\"optimizer\": {", "\"quantization\": {\"num_buckets\": 1}, \"optimizer\": {", -EBADMSG,
	 "tables 0: \"num_buckets\" is not a whole number"},
	{"\"optimizer\": {",
	 "\"quantization\": {\"num_buckets\": 4, \"lower\": []}, \"optimizer\": {", -EBADMSG,
	 "tables 0: \"lower\" is not the value"},
	{"\"optimizer\": {",
	 "\"quantization\": {\"num_buckets\": 4, \"upper\": 0.1}, \"optimizer\": {", -EBADMSG,
	 "tables 0: \"upper\" is not the value"},
	{"\"optimizer\": {", "\"quantization\": {\"num_buckets\": 4}, \"optimizer\": {", -EBADMSG,
	 "tables 0: table t: quantization: lower 0 is not below upper 0"},
	{"\"optimizer\": {", "\"optimizer\": 1, \"x\": {", -EBADMSG,
	 "\"optimizer\" is not an object"},
	{"\"kind\": \"adagrad\"", "\"kind\": \"lamb\"", -ENOTSUP, "\"kind\" is \"lamb\""},
	{"\"kind\": \"adagrad\"", "\"kind\": \"sgd\"", -EBADMSG, "tables 0: 1 slots"},
	{"\"kind\": \"adagrad\"", "\"kind\": \"adagrad\", \"rate_name\": 1", -EBADMSG,
	 "\"rate_name\" is not a text"},
	{"\"kind\": \"adagrad\"", "\"kind\": \"adagrad\", \"dynamic\": [\"epsilon\"]", -EBADMSG,
	 "\"dynamic\" is not an object"},
	{"\"kind\": \"adagrad\"", "\"kind\": \"adagrad\", \"dynamic\": {\"epsilon\": 1}", -EBADMSG,
	 "\"epsilon\" is not a text"},
	{"\"kind\": \"adagrad\"", "\"kind\": \"adagrad\", \"dynamic\": {\"rho\": \"r\"}", -EBADMSG,
	 "computes with a hyperparameter 'rho'"},
	{"\"learning_rate\": 0.1", "\"learning_rate\": 0.3", -EBADMSG,
	 "\"learning_rate\" is not the value of a 32-bit float"},
	{"\"learning_rate\": 0.10000000149011612", "\"learning_rate\": \"nan\"", -EBADMSG,
	 "\"learning_rate\" is not the value"},
	{"\"learning_rate\": 0.10000000149011612", "\"learning_rate\": 1e39", -EBADMSG,
	 "\"learning_rate\" is not the value"},
	{"\"learning_rate\": 0.10000000149011612", "\"learning_rate\": null", -EBADMSG,
	 "\"learning_rate\" is not the value"},
	{"\"initial_accumulator_value\": 0.1", "\"initial_accumulator_value\": -1, \"x\": 0.1",
	 -EBADMSG, "tables 0: table t: initial_accumulator_value"},
	{"\"learning_rate\": ", "\"clip_min\": [], \"learning_rate\": ", -EBADMSG,
	 "\"clip_min\" is not the value"},
	{"\"learning_rate\": ", "\"use_nesterov\": 1, \"learning_rate\": ", -EBADMSG,
	 "\"use_nesterov\" is neither"},
	{"\"learning_rate\": ", "\"lazy_adam\": 1, \"learning_rate\": ", -EBADMSG,
	 "\"lazy_adam\" is neither"},
	{"\"learning_rate\": ", "\"multiply_weight_decay_by_rate\": 1, \"learning_rate\": ",
	 -EBADMSG, "\"multiply_weight_decay_by_rate\" is neither"},
	{"\"slots\": [", "\"slots\": 1, \"x\": [", -EBADMSG, "\"slots\" is not an array"},
	{"\"slot_widths\": [", "\"slot_widths\": 2, \"x\": [", -EBADMSG,
	 "\"slot_widths\" is not an array"},
	{"\"slot_widths\": [", "\"slot_widths\": [2, ", -EBADMSG, "tables 0: 2 widths of 1 slots"},
	{"\"slot_widths\": [\n        2", "\"slot_widths\": [\n        1", -ENOTSUP,
	 "table t: slot accumulators has 1 numbers for each row"},
	{"\"slot_widths\": [\n        2", "\"slot_widths\": [\n        0", -EBADMSG,
	 "\"slot_widths\" is not whole numbers from 1"},
	{"\"slot_widths\": [\n        2", "\"slot_widths\": [\n        \"2\"", -EBADMSG,
	 "\"slot_widths\" is not whole numbers from 1"},
	{"\"slot_widths\": [\n        2", "\"slot_widths\": [\n        4294967296", -EBADMSG,
	 "\"slot_widths\" is not whole numbers from 1"},
	{"\"accumulators\"\n", "\"momenta\"\n", -EBADMSG, "slot 0 is not \"accumulators\""},
	{"\"accumulators\"\n", "1\n", -EBADMSG, "slot 0 is not \"accumulators\""},
	{"\"features\": [", "\"features\": {}, \"x\": [", -EBADMSG, "\"features\" is not an array"},
	{"\"features\": [", "\"features\": [[],", -EBADMSG, "features 0: is not an object"},
	{"\"name\": \"feature_0\"", "\"name\": null", -EBADMSG, "features 0: \"name\" is not"},
	{"\"table\": 1,\n      \"max", "\"table\": 2,\n      \"max", -EBADMSG,
	 "features 1: feature feature_1: there is no table 2"},
	{"\"max_sequence_length\": 0", "\"max_sequence_length\": 4294967296", -EBADMSG,
	 "features 0: \"max_sequence_length\" is not"},
	{"\"output_shape\": [", "\"output_shape\": 1, \"x\": [", -EBADMSG,
	 "\"output_shape\" is not an array"},
	{"\"output_shape\": [", "\"output_shape\": [1,1,1,1,1,1,1,1,1], \"x\": [", -EBADMSG,
	 "\"output_shape\" has 9 lengths"},
	{"\"output_shape\": [", "\"output_shape\": [-1], \"x\": [", -EBADMSG,
	 "\"output_shape\" is not whole numbers"},
	{"\"max_samples\": 0", "\"max_samples\": -1", -EBADMSG, "\"max_samples\" is not"},
	{"\"max_samples\": 0", "\"max_samples\": 0, \"check_weights\": 1", -EBADMSG,
	 "\"check_weights\" is neither"},
	{"\"max_samples\": 0", "\"max_samples\": 0, \"unchecked_serving\": 1", -EBADMSG,
	 "\"unchecked_serving\" is neither"},
	{"\"max_samples\": 0", "\"max_samples\": 0, \"v1_dense_zero_is_padding\": 1", -EBADMSG,
	 "\"v1_dense_zero_is_padding\" is neither"},
	{"\"max_ids\": 0", "\"max_ids\": {}", -EBADMSG, "\"max_ids\" is not"},
	{"\"files\": [", "\"files\": null, \"x\": [", -EBADMSG, "\"files\" is not an array"},
	{"\"files\": [", "\"files\": [1,", -EBADMSG, "files 0: is not an object"},
	{"\"files\": [", "\"files\": [], \"x\": [", -EBADMSG, "table t: no file has row 0"},
	{"\"name\": \"embeng-0", "\"name\": \"../embeng-0", -EBADMSG, "is not the name of a shard"},
	{"\"name\": \"embeng-0", "\"name\": 1, \"x\": \"embeng-0", -EBADMSG,
	 "files 0: \"name\" is not a text"},
	{"\"name\": \"embeng-0-", "\"name\": \"embeng--", -EBADMSG, "is not the name of a shard"},
	{"\"name\": \"embeng-0-", "\"name\": \"embeng-123456789012345678901-", -EBADMSG,
	 "is not the name of a shard"},
	{"-00000000.safetensors", "-0000000.safetensors", -EBADMSG, "is not the name of a shard"},
	{"-00000000.safetensors", "-00000000.safetensor", -EBADMSG, "is not the name of a shard"},
	{"-00000001.safetensors", "-00000000.safetensors", -EBADMSG, "twice"},
	{"-00000001.safetensors", "-00000009.safetensors", -EBADMSG,
	 "-00000009.safetensors: cannot be opened"},
	{"\"bytes\": 392", "\"bytes\": 0", -EBADMSG, "files 0: \"bytes\" is not a whole number"},
	{"\"bytes\": 392", "\"bytes\": 31", -EBADMSG, "files 0: 31 bytes do not hold its rows"},
	{"\"bytes\": 392", "\"bytes\": 396", -EBADMSG, "\"chunk_table\" is at 384 of 396 bytes"},
	{"\"bytes\": 392", "\"bytes\": 9223372036854775807", -EBADMSG,
	 "files 0: \"chunk_table\" is at 384 of 9223372036854775807 bytes"},
	{"\"table\": 0,\n      \"first", "\"table\": 1,\n      \"first", -EBADMSG,
	 "files 0: has table 1 from row 0, expected is table 0 from row 0"},
	{"\"table\": 0,\n      \"first", "\"table\": -1,\n      \"first", -EBADMSG,
	 "files 0: \"table\" is not"},
	{"\"first_row\": 4", "\"first_row\": 3", -EBADMSG, "expected is table 0 from row 4"},
	{"\"first_row\": 4", "\"first_row\": -4", -EBADMSG, "files 1: \"first_row\" is not"},
	{"\"rows\": 4", "\"rows\": 0", -EBADMSG, "files 0: \"rows\" is not"},
	{"\"rows\": 4", "\"rows\": 3", -EBADMSG, "files 1: has table 0 from row 4, expected"},
	{"\"tensors\": {", "\"tensors\": [], \"x\": {", -EBADMSG, "\"tensors\" is not an object"},
	{"\"t/accumulators\": 320", "\"t/accumulators\": 320, \"t/momenta\": 320", -EBADMSG,
	 "files 0: has 3 tensors"},
	{"\"t/accumulators\": 320", "\"t/momenta\": 320", -EBADMSG,
	 "files 0: \"t/accumulators\" is not"},
	{"\"t/accumulators\": 320", "\"t/accumulators\": 322", -EBADMSG, "not at a multiple of 4"},
	{"\"t/accumulators\": 320", "\"t/accumulators\": 4", -EBADMSG,
	 "files 0: \"t/accumulators\" is not"},
	{"\"t/accumulators\": 320", "\"t/accumulators\": 364", -EBADMSG,
	 "files 0: \"t/accumulators\" is not"},
	{"\"t/accumulators\": 320", "\"t/accumulators\": 352", -EBADMSG,
	 "\"t/accumulators\" lies at 0 to 32"},
	{"\"t/accumulators\": 320", "\"t/accumulators\": 8", -EBADMSG,
	 "\"t/accumulators\" lies at 0 to 32"},
	{"\"chunk_table\": {", "\"chunk_table\": [], \"x\": {", -EBADMSG,
	 "\"chunk_table\" is not an object"},
	{"\"chunk_table\": {", "\"x\": {", -EBADMSG, "\"chunks\" is not a text"},
	{"\"at\": 384", "\"at\": 380", -EBADMSG, "is at 380 of 392 bytes"},
	{"\"at\": 384", "\"at\": 385", -EBADMSG, "is at 385 of 392 bytes"},
	{"\"at\": 384", "\"at\": 388", -EBADMSG, "is at 388 of 392 bytes"},
	{"\"at\": 384", "\"at\": 392", -EBADMSG, "is at 392 of 392 bytes"},
	{"\"at\": 384", "\"at\": 393", -EBADMSG, "\"at\" is not a whole number"},
	{"\"at\": 384", "\"at\": 4", -EBADMSG, "\"at\" is not a whole number"},
	{"\"at\": 384", "\"at\": \"384\"", -EBADMSG, "\"at\" is not a whole number"},
	{"\"crc32c\": \"", "\"crc32c\": \"0", -EBADMSG, "\"crc32c\" is not 8"},
	{"\"crc32c\": \"", "\"crc32c\": 1, \"x\": \"", -EBADMSG, "\"crc32c\" is not a text"},
	{"\"sha256\": \"", "\"sha256\": \"0", -EBADMSG, "\"sha256\" is not 64"},
	{"\"sha256\": \"", "\"sha256\": 1, \"x\": \"", -EBADMSG, "\"sha256\" is not a text"},
	{"\"chunks_sha256\": \"", "\"chunks_sha256\": \"0", -EBADMSG,
	 "\"chunks_sha256\" is not that of"},
	{"\"chunks_sha256\": \"", "\"chunks_sha256\": 1, \"x\": \"", -EBADMSG,
	 "\"chunks_sha256\" is not a text"},
	{"\"index_crc32c\": \"", "\"index_crc32c\": 1, \"x\": \"", -EBADMSG,
	 "\"index_crc32c\" is not a text"},
	{"\"index_crc32c\": \"", "\"index_crc32c\": \"0", -EBADMSG, "\"index_crc32c\" is not 8"},
	{"{\n", "[{\n", -EBADMSG, "no JSON at byte"},
	{"{\n", "[[{\n", -EBADMSG, "the text ends too early"},
};

static char text[EDIT_BYTES];

START_TEST(refuses_what_is_wrong)
{
	const struct edit *edit = &edits[_i];
	char folder[HELP_PATH];
	int ret;

	folder_new(folder);
	edit_save(folder);
	edit_read(folder, INDEX_NAME, text);
	edit_replace(text, edit->old, edit->new);
	edit_seal(text);
	edit_write(folder, INDEX_NAME, text, strlen(text));
	ret = edit_open(folder);
	folder_remove(folder);
	ck_assert_msg(ret == edit->code, "%s -> %s: %d, expected %d", edit->old, edit->new, ret,
		      edit->code);
	expect_text(edit->text);
	expect_text(folder);
}
END_TEST

/* The same save, with what an edit may put in and a reader must not mind. */
static void expect_fine(const char *old, const char *new)
{
	char folder[HELP_PATH];

	folder_new(folder);
	edit_save(folder);
	edit_read(folder, INDEX_NAME, text);
	edit_replace(text, old, new);
	edit_seal(text);
	edit_write(folder, INDEX_NAME, text, strlen(text));
	help_expect_ok(edit_open(folder));
	folder_remove(folder);
}

START_TEST(takes_what_is_fine)
{
	expect_fine("{\n", "{\n");
	expect_fine("\"step\": 0", "\"step\": 9223372036854775807");
	expect_fine("\"step\": 0,", "\"step\": 0, \"a_later_addition\": [{\"x\": 1}],");
	expect_fine("\"program_state\": \"x\"", "\"program_state\": \"\\\"a: {\\\\\"");
	expect_fine("  \"program_state\": \"x\",\n", "");
	expect_fine("\"optimizer\": null,", "");
	expect_fine("\"learning_rate\": ", "\"clip_weight_min\": \"-inf\", \"learning_rate\": ");
	expect_fine("\"learning_rate\": 0.10000000149011612", "\"learning_rate\": 1");
	expect_fine("\"index_crc32c\"", "\"x\": 1,\n  \"index_crc32c\"");
}
END_TEST

/* Any byte of the index, every bit of it: never taken for what was saved. */
START_TEST(sees_each_flipped_bit)
{
	char folder[HELP_PATH];
	size_t length, taken = 0;

	folder_new(folder);
	edit_save(folder);
	length = edit_read(folder, INDEX_NAME, text);
	for (size_t i = 0; i < length; i++) {
		text[i] ^= (char)(1 << i % 8);
		edit_write(folder, INDEX_NAME, text, length);
		taken += !edit_open(folder);
		text[i] ^= (char)(1 << i % 8);
	}
	edit_write(folder, INDEX_NAME, text, length);
	help_expect_ok(edit_open(folder));
	folder_remove(folder);
	ck_assert_uint_eq(taken, 0);
}
END_TEST

START_TEST(sees_each_cut)
{
	char folder[HELP_PATH];
	size_t length;

	folder_new(folder);
	edit_save(folder);
	length = edit_read(folder, INDEX_NAME, text);
	for (size_t i = 0; i < length; i++) {
		edit_write(folder, INDEX_NAME, text, i);
		ck_assert_int_eq(edit_open(folder), -EBADMSG);
	}
	folder_remove(folder);
}
END_TEST

START_TEST(a_wrong_own_checksum_is_told)
{
	char folder[HELP_PATH];

	folder_new(folder);
	edit_save(folder);
	edit_read(folder, INDEX_NAME, text);
	edit_replace(text, "\"step\": 0", "\"step\": 1");
	edit_write(folder, INDEX_NAME, text, strlen(text));
	help_expect(edit_open(folder), -EBADMSG, "the index is corrupt");
	folder_remove(folder);
}
END_TEST

START_TEST(the_own_checksum_stands_last)
{
	char folder[HELP_PATH];

	folder_new(folder);
	edit_save(folder);
	edit_read(folder, INDEX_NAME, text);
	strcpy(strstr(text, ",\n  \"index_crc32c\""), ",\n  \"x\": \"00000000\"\n}\n");
	edit_replace(text, "\"step\"", "\"index_crc32c\": \"12345678\", \"step\"");
	edit_write(folder, INDEX_NAME, text, strlen(text));
	help_expect(edit_open(folder), -EBADMSG, "\"index_crc32c\" is not its last member");
	folder_remove(folder);
}
END_TEST

static void expect_verified(const char *folder, const char *wrong)
{
	struct embeng_checkpoint *c;

	edit_seal(text);
	edit_write(folder, INDEX_NAME, text, strlen(text));
	c = help_checkpoint(folder);
	help_expect(embeng_checkpoint_verify(c, NULL, NULL), -EBADMSG, wrong);
	embeng_checkpoint_close(c);
}

/* The index has two checksums of a shard's table; the table is not read when the checkpoint is opened. */
START_TEST(a_wrong_checksum_of_a_table_is_seen)
{
	char folder[HELP_PATH], *digits;

	folder_new(folder);
	edit_save(folder);
	edit_read(folder, INDEX_NAME, text);
	digits = edit_find(text, "\"crc32c\": \"");
	*digits = *digits == '0' ? '1' : '0';
	expect_verified(folder, "-00000000.safetensors: offset 388: the 4 bytes from there");
	edit_save(folder);
	edit_read(folder, INDEX_NAME, text);
	digits = edit_find(text, "\"sha256\": \"");
	*digits = *digits == '0' ? '1' : '0';
	edit_seal(text);
	edit_write(folder, INDEX_NAME, text, strlen(text));
	help_expect(edit_open(folder), -EBADMSG, "\"chunks_sha256\" is not that of the chunks");
	edit_seal_chunks(text);
	expect_verified(folder, "-00000000.safetensors: offset 384: the checksums from there");
	folder_remove(folder);
}
END_TEST

/* Checkpoints of earlier versions have their checksums in the index. */
static const struct edit old_edits[] = {
	{"\"chunks\": \"", "\"chunks\": 1, \"x\": \"", -EBADMSG, "\"chunks\" is not a text"},
	{"\"chunks\": \"", "\"chunks\": \"00000000", -EBADMSG, "\"chunks\" has 16 digits"},
	{"\"chunks\": \"", "\"chunks\": \"0", -EBADMSG, "\"chunks\" has 9 digits"},
	{"\"chunks\": \"", "\"chunks\": \"A", -EBADMSG, "digits, "},
	{"\"chunks_sha256\": \"", "\"chunks_sha256\": \"0", -EBADMSG,
	 "\"chunks_sha256\" is not that of"},
};

START_TEST(older_checksums_are_checked)
{
	const struct edit *edit = &old_edits[_i];
	char folder[HELP_PATH], golden[HELP_PATH];

	folder_new(folder);
	ck_assert_ptr_nonnull(getenv("EMBENG_SOURCE_ROOT"));
	snprintf(golden, sizeof(golden), "%s/tests/golden/checkpoint",
		 getenv("EMBENG_SOURCE_ROOT"));
	edit_read(golden, INDEX_NAME, text);
	edit_replace(text, edit->old, edit->new);
	edit_seal(text);
	edit_write(folder, INDEX_NAME, text, strlen(text));
	help_expect(edit_open(folder), edit->code, edit->text);
	folder_remove(folder);
}
END_TEST

START_TEST(a_wrong_older_checksum_is_seen)
{
	char folder[HELP_PATH], golden[HELP_PATH], *digits;

	folder_new(folder);
	snprintf(golden, sizeof(golden), "%s/tests/golden/checkpoint",
		 getenv("EMBENG_SOURCE_ROOT"));
	edit_read(golden, INDEX_NAME, text);
	digits = edit_find(text, "\"chunks\": \"");
	*digits = *digits == '0' ? '1' : '0';
	edit_seal(text);
	edit_write(folder, INDEX_NAME, text, strlen(text));
	help_expect(edit_open(folder), -EBADMSG, "\"chunks_sha256\" is not that of the chunks");
	*digits = 'G';
	edit_seal_chunks(text);
	edit_seal(text);
	edit_write(folder, INDEX_NAME, text, strlen(text));
	help_expect(edit_open(folder), -EBADMSG, "checksum 0 is not hexadecimal digits");
	folder_remove(folder);
}
END_TEST

static void add(TCase *tcase)
{
	help_never_sync();
	tcase_add_loop_test(tcase, refuses_what_is_wrong, 0, sizeof(edits) / sizeof(*edits));
	tcase_add_test(tcase, takes_what_is_fine);
	tcase_add_test(tcase, sees_each_flipped_bit);
	tcase_add_test(tcase, sees_each_cut);
	tcase_add_test(tcase, a_wrong_own_checksum_is_told);
	tcase_add_test(tcase, the_own_checksum_stands_last);
	tcase_add_test(tcase, a_wrong_checksum_of_a_table_is_seen);
	tcase_add_loop_test(tcase, older_checksums_are_checked, 0,
			    (int)(sizeof(old_edits) / sizeof(*old_edits)));
	tcase_add_test(tcase, a_wrong_older_checksum_is_seen);
}

int main(void)
{
	return suite_main("checkpoint index", add);
}
