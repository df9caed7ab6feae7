// SPDX-License-Identifier: MIT
/* The file of `embeng tune`: its text, what is refused, where it is looked for, who takes it. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/src/device/soft/fetch.h"
#include "session_help.h"

static char folder[] = "/tmp/test_tune_file.XXXXXX";

static const struct tune example = {.processor = "A 1, family 2",
				    .variant = "portable",
				    .near = {{1, KERNEL_FETCH_SECOND}, {256, KERNEL_FETCH_AGAIN}},
				    .far = {{256, KERNEL_FETCH_BURST}, {1, KERNEL_FETCH_SECOND}}};

/* A path in the folder of this test; lives until the next call. */
static const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void put_text(const char *path, const char *text, size_t length)
{
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(text, 1, length, f), length);
	ck_assert_int_eq(fclose(f), 0);
}

static void put_tune(const char *path, const struct tune *tune)
{
	size_t length;
	char *text;

	ck_assert_int_eq(tune_write(tune, &text, &length), 0);
	put_text(path, text, length);
	free(text);
}

START_TEST(what_is_written_is_read)
{
	char why[TUNE_WHY] = "";
	struct tune back;
	size_t length;
	char *text;

	ck_assert_int_eq(tune_write(&example, &text, &length), 0);
	ck_assert_str_eq(text, "{\n"
			       "  \"schema\": \"embeng.tune-file/1\",\n"
			       "  \"processor\": \"A 1, family 2\",\n"
			       "  \"variant\": \"portable\",\n"
			       "  \"near\": {\n"
			       "    \"lookup\": \"1\",\n"
			       "    \"update\": \"256:again\"\n"
			       "  },\n"
			       "  \"far\": {\n"
			       "    \"lookup\": \"256:burst\",\n"
			       "    \"update\": \"1\"\n"
			       "  }\n"
			       "}\n");
	ck_assert_int_eq(tune_parse(text, length, &back, why), 0);
	ck_assert_str_eq(back.processor, example.processor);
	ck_assert_str_eq(back.variant, example.variant);
	ck_assert_mem_eq(&back.near, &example.near, sizeof(back.near));
	ck_assert_mem_eq(&back.far, &example.far, sizeof(back.far));
	/* Each shorter text is refused, and none is read beyond its end. */
	for (size_t i = 0; i + 2 < length; i++) {
		char *part = malloc(i + 1);

		memcpy(part, text, i);
		ck_assert_int_eq(tune_parse(part, i, &back, why), -EBADMSG);
		ck_assert_str_ne(why, "");
		free(part);
	}
	free(text);
}
END_TEST

#define HEAD "{\"schema\": \"embeng.tune-file/1\", \"processor\": \"p\", \"variant\": \"v\", "
#define GOOD "{\"lookup\": \"48\", \"update\": \"32\"}"

START_TEST(what_is_wrong_is_told)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"", "byte 0"},
		{"garbage", "byte 0"},
		{"\xff\xfe", "byte 0"},
		{"[]", "not a file of `embeng tune`"},
		{"7", "not a file of `embeng tune`"},
		{"{}", "it has no \"schema\""},
		{"{\"schema\": 1}", "it has no \"schema\""},
		{"{\"schema\": \"embeng.vector/1\"}", "it has no \"schema\""},
		{"{\"schema\": \"embeng.tune-file/2\"}", "of another version"},
		{"{\"schema\": \"embeng.tune-file/10\"}", "of another version"},
		{"{\"schema\": \"embeng.tune-file/1\\u0000\"}", "of another version"},
		{"{\"schema\": \"embeng.tune-file/1\"}", "\"processor\" is not"},
		{"{\"schema\": \"embeng.tune-file/1\", \"processor\": \"a\\u0000b\"}",
		 "\"processor\" is not"},
		{"{\"schema\": \"embeng.tune-file/1\", \"processor\": \"p\", \"variant\": "
		 "\"0123456789abcdef\"}",
		 "\"variant\" is not"},
		{HEAD "\"near\": " GOOD "}", "\"far\" must have"},
		{HEAD "\"far\": " GOOD "}", "\"near\" must have"},
		{HEAD "\"near\": [], \"far\": " GOOD "}", "\"near\" must have"},
		{HEAD "\"near\": {\"lookup\": 48, \"update\": \"32\"}, \"far\": " GOOD "}",
		 "\"near\" must have"},
		{HEAD "\"near\": " GOOD ", \"near\": " GOOD "}", "two members"},
		{HEAD "\"near\": " GOOD ", \"far\": " GOOD "} x", "byte"},
		{HEAD "\"near\": " GOOD ", \"far\": " GOOD ", \"a\": [[[[]]]]}", "byte"},
	};
	struct tune tune = example;
	char why[TUNE_WHY];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		*why = '\0';
		ck_assert_msg(tune_parse(cases[i].text, strlen(cases[i].text), &tune, why) ==
				      -EBADMSG,
			      "case %zu", i);
		ck_assert_msg(strstr(why, cases[i].why), "case %zu: %s", i, why);
	}
	/* A text that is refused leaves what there was; an unknown member is for a later version. */
	ck_assert_mem_eq(&tune, &example, sizeof(tune));
	ck_assert_int_eq(tune_parse(HEAD "\"near\": " GOOD ", \"far\": " GOOD ", \"a\": 1}",
				    strlen(HEAD GOOD GOOD) + 26, &tune, why),
			 0);
	ck_assert_uint_eq(tune.far.lookup.rows, 48);
}
END_TEST

START_TEST(words_of_ways)
{
	static const struct {
		const char *word;
		bool lookup, update;
	} cases[] = {
		{"1", true, true},	   {"256", true, true},
		{"48:l1", true, false},	   {"48:touch", true, false},
		{"48:burst", true, false}, {"32:again", false, true},
		{"0", false, false},	   {"257", false, false},
		{"999", false, false},	   {"4294967297", false, false},
		{"048", false, false},	   {"", false, false},
		{":l1", false, false},	   {"48:", false, false},
		{"48:l2", false, false},   {"48:l1x", false, false},
		{"-1", false, false},	   {"+1", false, false},
		{" 1", false, false},	   {"1 ", false, false},
		{"0x10", false, false},
	};
	struct fetch_way way;
	char word[FETCH_WORD];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_msg(fetch_lookup_parse(cases[i].word, &way) == cases[i].lookup, "%s",
			      cases[i].word);
		if (cases[i].lookup) {
			fetch_way_text(way, word);
			ck_assert_str_eq(word, cases[i].word);
		}
		ck_assert_msg(fetch_update_parse(cases[i].word, &way) == cases[i].update, "%s",
			      cases[i].word);
		if (cases[i].update) {
			fetch_way_text(way, word);
			ck_assert_str_eq(word, cases[i].word);
		}
	}
}
END_TEST

static struct embeng_device_info choose(const char *device, struct fetch_plan *plan)
{
	struct embeng_device_info info = {.size = sizeof(info)};
	struct name name;

	ck_assert_int_eq(name_parse(device, &name), 0);
	fetch_choose(&name, "portable", plan, &info);
	return info;
}

/* Away from the files of whoever runs this test. */
static void leave_home(void)
{
	setenv("XDG_CONFIG_HOME", folder, 1);
	unsetenv("EMBENG_TUNE");
	unsetenv("EMBENG_PREFETCH");
}

START_TEST(looks_in_the_users_folders)
{
	char path[TUNE_PATH], want[256];

	leave_home();
	setenv("HOME", "/home/x", 1);
	ck_assert(tune_user_path(path));
	snprintf(want, sizeof(want), "%s/embeng/tune.json", folder);
	ck_assert_str_eq(path, want);
	setenv("XDG_CONFIG_HOME", "relative", 1);
	ck_assert(tune_user_path(path));
	ck_assert_str_eq(path, "/home/x/.config/embeng/tune.json");
	unsetenv("XDG_CONFIG_HOME");
	setenv("HOME", "x", 1);
	ck_assert(!tune_user_path(path));
	unsetenv("HOME");
	ck_assert(!tune_user_path(path));
	ck_assert_ptr_null(tune_named_path());
	setenv("EMBENG_TUNE", "", 1);
	ck_assert_ptr_null(tune_named_path());
	leave_home();
}
END_TEST

START_TEST(takes_the_file_of_this_processor)
{
	struct tune tune = example;
	struct embeng_device_info info;
	struct fetch_plan plan;

	leave_home();
	ck_assert_int_eq(mkdir(path_of("embeng"), 0700), 0);
	processor_name(tune.processor);
	put_tune(path_of("embeng/tune.json"), &tune);
	info = choose("soft", &plan);
	ck_assert_str_eq(info.fetch_source, path_of("embeng/tune.json"));
	ck_assert_str_eq(info.tune_problem, "");
	ck_assert_mem_eq(&plan.near, &tune.near, sizeof(plan.near));
	ck_assert_mem_eq(&plan.far, &tune.far, sizeof(plan.far));
	ck_assert_ptr_nonnull(strstr(info.fetch, "lookups 1, updates 256:again; tables beyond"));
	ck_assert_ptr_nonnull(strstr(info.fetch, "MiB: lookups 256:burst, updates 1"));

	/* The name and the environment count more, and "default" reads no file. */
	info = choose("soft:prefetch=7:burst", &plan);
	ck_assert_str_eq(info.fetch_source, "device name");
	ck_assert_str_eq(info.fetch, "lookups 7:burst, updates 7:again");
	ck_assert_uint_eq(plan.near.update.form, KERNEL_FETCH_AGAIN);
	setenv("EMBENG_PREFETCH", "9:l1", 1);
	info = choose("soft", &plan);
	ck_assert_str_eq(info.fetch_source, "EMBENG_PREFETCH");
	ck_assert_str_eq(info.fetch, "lookups 9:l1, updates 9");
	setenv("EMBENG_PREFETCH", "default", 1);
	info = choose("soft", &plan);
	ck_assert_str_eq(info.fetch_source, "processor's caches");
	unsetenv("EMBENG_PREFETCH");
	unlink(path_of("embeng/tune.json"));
	rmdir(path_of("embeng"));
}
END_TEST

/* The default stays, and the sentence has the path. */
static void expect_ignored(const char *path, const char *why)
{
	struct embeng_error before = {.size = sizeof(before)}, after = {.size = sizeof(after)};
	struct fetch_plan plan, usual;
	struct embeng_device_info info;

	setenv("EMBENG_TUNE", path, 1);
	choose("soft:prefetch=default", &usual);
	embeng_last_error(&before);
	info = choose("soft", &plan);
	embeng_last_error(&after);
	ck_assert_str_eq(info.fetch_source, "processor's caches");
	ck_assert_mem_eq(&plan, &usual, sizeof(plan));
	ck_assert_msg(!strncmp(info.tune_problem, path, strlen(path)), "%s", info.tune_problem);
	ck_assert_msg(strstr(info.tune_problem, why), "%s", info.tune_problem);
	ck_assert_str_eq(before.text, after.text);
	leave_home();
}

START_TEST(ignores_what_is_not_for_it)
{
	static char large[TUNE_BYTES_MOST + 1];
	struct tune tune = example;
	char path[256];

	leave_home();
	snprintf(path, sizeof(path), "%s/named.json", folder);
	expect_ignored(path, "cannot be opened: No such file");
	expect_ignored(folder, "not a regular file");
	put_tune(path, &tune);
	expect_ignored(path, "measured on another processor (A 1, family 2)");
	processor_name(tune.processor);
	strcpy(tune.variant, "avx2");
	put_tune(path, &tune);
	expect_ignored(path, "with the kernel variant avx2, and this is portable");
	put_text(path, "{", 1);
	expect_ignored(path, "byte");
	put_text(path, "", 0);
	expect_ignored(path, "byte");
	memset(large, ' ', sizeof(large));
	put_text(path, large, sizeof(large));
	expect_ignored(path, "more than 65536 bytes");
	put_text(path, large, sizeof(large) - 1);
	expect_ignored(path, "byte");
	unlink(path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	expect_ignored(path, "not a regular file");
	unlink(path);
}
END_TEST

/* A file in the user's folder that is for another machine does not keep embeng_open() from it. */
START_TEST(opens_with_a_broken_file)
{
	struct embeng_device_info info = {.size = sizeof(info)};
	struct embeng *e;

	leave_home();
	ck_assert_int_eq(mkdir(path_of("embeng"), 0700), 0);
	put_text(path_of("embeng/tune.json"), "nonsense", 8);
	e = open_small(&(struct shape){0});
	ck_assert_int_eq(embeng_info(e, &info), 0);
	embeng_close(e);
	ck_assert_ptr_nonnull(strstr(info.tune_problem, "embeng/tune.json: "));
	unlink(path_of("embeng/tune.json"));
	rmdir(path_of("embeng"));
}
END_TEST

static void put_cache(int index, const char *level, const char *type, const char *size)
{
	const char *const names[] = {"level", "type", "size"}, *const texts[] = {level, type, size};
	char name[64];

	snprintf(name, sizeof(name), "index%d", index);
	mkdir(path_of(name), 0700);
	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "index%d/%s", index, names[i]);
		put_text(path_of(name), texts[i], strlen(texts[i]));
	}
}

START_TEST(reads_the_sizes_of_caches)
{
	struct fetch_machine machine = {.first_bytes = 1, .second_bytes = 2, .third_bytes = 3};
	char command[64];

	processor_caches("/nonexistent", &machine);
	ck_assert_uint_eq(machine.first_bytes, 1);
	put_cache(0, "1\n", "Data\n", "48K\n");
	put_cache(1, "1\n", "Instruction\n", "64K\n");
	put_cache(2, "2\n", "Unified\n", "1024K\n");
	processor_caches(folder, &machine);
	ck_assert_uint_eq(machine.first_bytes, 48 << 10);
	ck_assert_uint_eq(machine.second_bytes, 1 << 20);
	ck_assert_uint_eq(machine.third_bytes, 3);
	/* A text that is no size changes nothing. */
	put_cache(2, "2\n", "Unified\n", "99999999999999999999K\n");
	put_cache(3, "3\n", "Unified\n", "32M\n");
	put_cache(4, "1\n", "Data\n", "-1K\n");
	put_cache(5, "1\n", "Data\n", "7\n");
	processor_caches(folder, &machine);
	ck_assert_uint_eq(machine.first_bytes, 48 << 10);
	ck_assert_uint_eq(machine.second_bytes, 1 << 20);
	ck_assert_uint_eq(machine.third_bytes, 32 << 20);
	snprintf(command, sizeof(command), "rm -r %s/index?", folder);
	ck_assert_int_eq(system(command), 0);
}
END_TEST

/* Where the system tells of caches, they are known, and the name has all there is. */
START_TEST(knows_this_processor)
{
	struct fetch_machine machine, system = {0};
	char name[PROCESSOR_NAME], brand[PROCESSOR_BRAND];

	processor_machine(&machine);
	processor_caches("/sys/devices/system/cpu/cpu0/cache", &system);
	if (system.second_bytes) {
		ck_assert_uint_ge(machine.first_bytes, 4096);
		ck_assert_uint_gt(machine.second_bytes, machine.first_bytes);
		ck_assert_uint_lt(machine.second_bytes, 1u << 30);
	}
	processor_brand(brand);
	processor_name(name);
	ck_assert_ptr_eq(strstr(name, brand), name);
	ck_assert_ptr_nonnull(strstr(name, ", caches "));
}
END_TEST

START_TEST(makes_the_folder)
{
	ck_assert_ptr_nonnull(mkdtemp(folder));
}
END_TEST

START_TEST(leaves_nothing_behind)
{
	ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

RUN_SUITE("tune_file", makes_the_folder, what_is_written_is_read, what_is_wrong_is_told,
	  words_of_ways, looks_in_the_users_folders, takes_the_file_of_this_processor,
	  ignores_what_is_not_for_it, opens_with_a_broken_file, reads_the_sizes_of_caches,
	  knows_this_processor, leaves_nothing_behind)
