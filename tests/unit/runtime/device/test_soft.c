// SPDX-License-Identifier: MIT
/*
 * The soft device: it is listed, describes itself, runs out of memory cleanly, and has a
 * descriptor that becomes readable.
 */
#define _GNU_SOURCE /* sched_setaffinity */
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>

#include "host/limits.h"
#include "runtime/src/session/session.h"
#undef fail /* session.h defines one, and so does Check */

#include "resident.h"
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

static void note_line(void *arg, enum embeng_log_level level, const char *text)
{
	snprintf(arg, 64, "%d %s", (int)level, text);
}

START_TEST(opens_by_options)
{
	char line[64] = "";
	struct embeng_open_options o = EMBENG_INIT(
		embeng_open_options, .device = "soft", .cores = 1, .memory = 8 << 20,
		.variant = "portable", .prefetch = "9:touch", .log = note_line, .log_arg = line,
		.log_level = EMBENG_LOG_WARNING);
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	struct embeng_error error = EMBENG_INIT(embeng_error);
	struct embeng_model *model = embeng_model_new();
	struct embeng *e = NULL;

	ck_assert_int_ge(
		embeng_model_add_table(model, &EMBENG_INIT(embeng_table_config, .name = "t",
							   .vocabulary_size = 10, .dim = 4)),
		0);
	ck_assert_int_eq(embeng_open_with(&o, model, &e, &error), 0);
	ck_assert_int_eq(embeng_info(e, &info), 0);
	ck_assert_uint_eq(info.cores, 1);
	ck_assert_uint_eq(info.table_memory, 8 << 20);
	ck_assert_str_eq(info.variant, "portable");
	ck_assert_str_eq(info.fetch_source, "open options");
	log_say(&e->log, EMBENG_LOG_INFO, "not this");
	ck_assert_str_eq(line, "");
	log_say(&e->log, EMBENG_LOG_WARNING, "but this");
	ck_assert_str_eq(line, "1 but this");
	embeng_close(e);

	e = NULL;
	o.size--;
	ck_assert_int_eq(embeng_open_with(&o, model, &e, &error), -EINVAL);
	ck_assert_int_eq(error.code, -EINVAL);
	expect_text("struct embeng_open_options: size");
	o.size++;
	o.log_level = EMBENG_LOG_DEBUG + 1;
	ck_assert_int_eq(embeng_open_with(&o, model, &e, NULL), -ERANGE);
	expect_text("log_level 4 must be 0 to 3");
	ck_assert_int_eq(embeng_open_with(NULL, model, &e, NULL), -EINVAL);
	ck_assert_int_eq(embeng_open_with(&EMBENG_INIT(embeng_open_options), NULL, &e, NULL),
			 -EINVAL);
	ck_assert_ptr_null(e);
	embeng_model_free(model);
}
END_TEST

/* The name of an open device has the distances that were given, so that it opens the same again. */
START_TEST(says_how_far_it_fetches_ahead)
{
	static const struct {
		const char *name, *in_name, *fetch, *source;
	} cases[] = {
		{"soft:prefetch=7:l1", ",prefetch=7:l1", "lookups 7:l1, updates 7", "device name"},
		{"soft:prefetch=9:touch", ",prefetch=9:touch", "lookups 9:touch, updates 9",
		 "device name"},
		{"soft:prefetch=8:burst", ",prefetch=8:burst", "lookups 8:burst, updates 8:again",
		 "device name"},
		{"soft:prefetch=default", ",prefetch=default", "lookups 48", "processor's caches"},
		{"soft", NULL, "lookups ", ""},
	};
	struct embeng_table_config t = {.size = sizeof(t), .vocabulary_size = 9, .dim = 4};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct embeng_device_info info = {.size = sizeof(info)};
		struct embeng_model *m = embeng_model_new();
		struct embeng *e;

		ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
		ck_assert_int_eq(embeng_open(cases[i].name, m, &e, NULL), 0);
		ck_assert_int_eq(embeng_info(e, &info), 0);
		if (cases[i].in_name)
			ck_assert_ptr_nonnull(strstr(info.name, cases[i].in_name));
		else
			ck_assert_ptr_null(strstr(info.name, ",prefetch="));
		ck_assert_ptr_eq(strstr(info.fetch, cases[i].fetch), info.fetch);
		ck_assert_ptr_eq(strstr(info.fetch_source, cases[i].source), info.fetch_source);
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

static struct embeng *open_alone(const char *device, struct embeng_device_info *info)
{
	struct embeng_table_config t = {.size = sizeof(t), .vocabulary_size = 9, .dim = 4};
	struct embeng_model *m = embeng_model_new();
	struct embeng *e;

	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	ck_assert_int_eq(embeng_open(device, m, &e, NULL), 0);
	*info = (struct embeng_device_info){.size = sizeof(*info)};
	ck_assert_int_eq(embeng_info(e, info), 0);
	embeng_model_free(m);
	return e;
}

/* Nobody's limits are above the machine's, and the part that is left to the program is not taken. */
START_TEST(is_as_large_as_it_may_be)
{
	struct embeng_device_info info;
	struct host_limits limits;

	ck_assert_int_eq(host_limits_read("", &limits), 0);
	embeng_close(open_alone("soft", &info));
	ck_assert_uint_le(info.table_memory, limits.memory / 10 * 8);
	ck_assert_uint_gt(info.table_memory, 0);
	ck_assert_uint_eq(info.cores, limits.cores < 64 ? limits.cores : 64);
}
END_TEST

/* Bytes that count against RLIMIT_DATA. */
static uint64_t count_data_bytes(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long long kib = 0;
	char line[128];

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f) && sscanf(line, "VmData: %llu", &kib) != 1)
		;
	fclose(f);
	ck_assert_uint_gt(kib, 0);
	return kib << 10;
}

/* A sanitizer's own memory would not fit into the limit. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIMIT_FITS false
#else
#define LIMIT_FITS true
#endif

/* The kernel counts what is mapped against RLIMIT_DATA: a table that does not fit is refused. */
START_TEST(keeps_to_the_limits_of_the_process)
{
	struct embeng_table_config t = {.size = sizeof(t), .vocabulary_size = 1 << 20, .dim = 64};
	struct embeng_model *m = embeng_model_new();
	struct embeng_error error = {.size = sizeof(error)};
	struct rlimit limit = {0, RLIM_INFINITY};
	struct embeng_device_info info;
	struct embeng *e = NULL;

	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	if (!LIMIT_FITS) {
		embeng_model_free(m);
		return;
	}
	limit.rlim_cur = count_data_bytes() + (200 << 20);
	ck_assert_int_eq(setrlimit(RLIMIT_DATA, &limit), 0);
	embeng_close(open_alone("soft", &info));
	ck_assert_uint_le(info.table_memory, 200 << 20);
	ck_assert_uint_gt(info.table_memory, 100 << 20);
	ck_assert_int_eq(embeng_open("soft", m, &e, &error), -ENOSPC);
	ck_assert_ptr_nonnull(strstr(error.text, "268435456 bytes are needed"));
	/* Whoever says how much may promise more; here the kernel does not keep the promise. */
	ck_assert_int_eq(embeng_open("soft:memory=100G", m, &e, &error), -ENOMEM);
	ck_assert_ptr_null(e);
	embeng_model_free(m);
}
END_TEST

/* However many cores are asked for: more threads than work at a time would wait for each other. */
START_TEST(starts_no_more_threads_than_can_work)
{
	const int before = count_threads();
	struct embeng_device_info info;
	cpu_set_t allowed, one;
	struct embeng *e;
	int cpu = 0;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	while (!CPU_ISSET(cpu, &allowed))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	e = open_alone("soft", &info);
	ck_assert_uint_eq(info.cores, 1);
	ck_assert_int_eq(count_threads(), before + 1); /* the service thread */
	embeng_close(e);
	e = open_alone("soft:cores=64", &info);
	ck_assert_uint_eq(info.cores, 64);
	ck_assert_int_eq(count_threads(), before + 4);
	embeng_close(e);
	ck_assert_int_eq(count_threads(), before);
}
END_TEST

RUN_SUITE("soft", opens_by_options, lists_itself, says_what_it_is, says_how_far_it_fetches_ahead,
	  memory_runs_out, descriptor_is_readable, is_as_large_as_it_may_be,
	  keeps_to_the_limits_of_the_process, starts_no_more_threads_than_can_work)
