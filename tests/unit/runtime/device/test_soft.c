// SPDX-License-Identifier: MIT
#include <poll.h>
#include <stdio.h>

#include "session_help.h"

static int one(void *arg, const struct embeng_device_info *info)
{
	*(struct embeng_device_info *)arg = *info;
	return 7;
}

START_TEST(lists_itself)
{
	struct embeng_device_info info = {0};

	ck_assert_int_eq(embeng_device_list(one, &info), 7);
	ck_assert_str_eq(info.kind, "soft");
	ck_assert_uint_ge(info.step_depth, 4);
	ck_assert_int_eq(embeng_device_list(NULL, NULL), -EINVAL);
}
END_TEST

START_TEST(says_what_it_is)
{
	struct embeng_device_info info = {.size = sizeof(info)};
	struct embeng *e = open_small(&(struct shape){0});

	ck_assert_int_eq(embeng_info(e, &info), 0);
	ck_assert_uint_eq(info.cores, 2);
	ck_assert_uint_eq(info.table_memory, 64u << 20);
	ck_assert_int_eq(embeng_export(e), -ENOTSUP);
	embeng_close(e);
}
END_TEST

/*
 * What is given is taken, what is measured is one of what was tried, and found but once. For a
 * small table nothing is.
 */
START_TEST(says_how_far_it_fetches_ahead)
{
	static const char *const names[] = {"soft:prefetch=7:l1", "soft:prefetch=9:touch",
					    "soft:prefetch=8:burst",
					    "soft:prefetch=measure", "soft:prefetch=measure",
					    "soft"};
	struct embeng_table_config t = {.size = sizeof(t), .vocabulary_size = 9, .dim = 4};
	enum { NAMES = sizeof(names) / sizeof(names[0]) };
	unsigned int rows[NAMES] = {0};
	char cache[NAMES][8] = {{0}};

	for (int i = 0; i < NAMES; i++) {
		struct embeng_device_info info = {.size = sizeof(info)};
		struct embeng_model *m = embeng_model_new();
		const char *said;
		struct embeng *e;

		ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
		ck_assert_int_eq(embeng_open(names[i], m, &e, NULL), 0);
		ck_assert_int_eq(embeng_info(e, &info), 0);
		said = strstr(info.name, ",prefetch=");
		ck_assert_int_eq(!!said, i < NAMES - 1);
		if (said)
			ck_assert_int_ge(sscanf(said, ",prefetch=%u%7s", &rows[i], cache[i]), 1);
		embeng_close(e);
		embeng_model_free(m);
	}
	ck_assert_uint_eq(rows[0], 7);
	ck_assert_str_eq(cache[0], ":l1");
	ck_assert_uint_eq(rows[1], 9);
	ck_assert_str_eq(cache[1], ":touch");
	ck_assert_uint_eq(rows[2], 8);
	ck_assert_str_eq(cache[2], ":burst");
	ck_assert_uint_ge(rows[3], 16);
	ck_assert_uint_le(rows[3], 96);
	ck_assert(!cache[3][0] || !strcmp(cache[3], ":l1") || !strcmp(cache[3], ":touch") ||
		  !strcmp(cache[3], ":burst"));
	ck_assert_uint_eq(rows[4], rows[3]);
	ck_assert_str_eq(cache[4], cache[3]);
}
END_TEST

/* From 4 MiB on. */
START_TEST(measures_for_large_tables)
{
	for (int large = 0; large < 2; large++) {
		struct embeng_table_config t = {
			.size = sizeof(t), .vocabulary_size = (1 << 14) - !large, .dim = 64};
		struct embeng_device_info info = {.size = sizeof(info)};
		struct embeng_model *m = embeng_model_new();
		struct embeng *e;

		ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
		ck_assert_int_eq(embeng_open("soft", m, &e, NULL), 0);
		ck_assert_int_eq(embeng_info(e, &info), 0);
		ck_assert_int_eq(!!strstr(info.name, ",prefetch="), large);
		embeng_close(e);
		embeng_model_free(m);
	}
}
END_TEST

START_TEST(memory_runs_out)
{
	struct embeng_table_config t = {.size = sizeof(t), .vocabulary_size = 1 << 20, .dim = 64};
	struct embeng_model *m = embeng_model_new();
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng *e = NULL;

	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	ck_assert_int_eq(embeng_open("soft:memory=1M", m, &e, &error), -ENOSPC);
	ck_assert_ptr_null(e);
	ck_assert_ptr_nonnull(strstr(error.text, "268435456 bytes are needed"));
	ck_assert_int_eq(embeng_open("soft:variant=none", m, &e, &error), -EINVAL);
	ck_assert_ptr_nonnull(strstr(error.text, "\"none\" is not a kernel variant"));
	ck_assert_ptr_nonnull(strstr(error.text, "\"portable\""));
	embeng_model_free(m);
}
END_TEST

START_TEST(descriptor_is_readable)
{
	struct embeng *e = open_small(&(struct shape){0});
	struct embeng_activations a = {.size = sizeof(a)};
	struct pollfd p = {.fd = embeng_fd(e), .events = POLLIN};

	ck_assert_int_eq(enqueue_bags(e, EMBENG_INFERENCE, 0, -1), 0);
	ck_assert_int_ge(p.fd, 0);
	ck_assert_int_eq(poll(&p, 1, -1), 1);
	ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a), 0);
	embeng_close(e);
}
END_TEST

RUN_SUITE("soft", lists_itself, says_what_it_is, says_how_far_it_fetches_ahead,
	  measures_for_large_tables, memory_runs_out, descriptor_is_readable)
