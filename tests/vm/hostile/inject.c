// SPDX-License-Identifier: MIT
/* Sets the kernel's fault injection, so that allocations and copies of a task fail on request. */
#include "inject.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEBUG "/sys/kernel/debug"

static int nth_file = -1;

static int try_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

static void set(const char *fault, const char *word, const char *text)
{
	char path[128];
	int ret;

	snprintf(path, sizeof(path), DEBUG "/%s/%s", fault, word);
	ret = try_write(path, text);
	ck_assert_msg(!ret,
		      "%s: %s: this test wants a kernel with FAULT_INJECTION_DEBUG_FS, FAILSLAB, "
		      "FAIL_PAGE_ALLOC and FAULT_INJECTION_USERCOPY: tests/vm/run --kernel debug",
		      path, strerror(-ret));
}

static const char *const faults[] = {"failslab", "fail_page_alloc", "fail_usercopy"};

void inject_begin(void)
{
	for (int i = 0; i < 3; i++) {
		set(faults[i], "verbose", "0");
		set(faults[i], "probability", "0");
		set(faults[i], "times", "-1");
		set(faults[i], "interval", "1");
		set(faults[i], "task-filter", "Y");
	}
	set("failslab", "ignore-gfp-wait", "N");
	set("fail_page_alloc", "ignore-gfp-wait", "N");
	set("fail_page_alloc", "ignore-gfp-highmem", "N");
	set("fail_page_alloc", "min-order", "0");
	nth_file = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	ck_assert_msg(nth_file >= 0, "fail-nth: %s", strerror(errno));
}

static void set_both(const char *word, unsigned long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%#lx", value);
	set("failslab", word, text);
	set("fail_page_alloc", word, text);
}

/* Addresses of code. */
struct range {
	unsigned long start, end;
};

static struct range module_range(const char *name)
{
	FILE *file = fopen("/proc/modules", "r");
	struct range r = {0};
	unsigned long size, at;
	char line[512], found[64];

	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%63s %lu %*s %*s %*s %lx", found, &size, &at) == 3 &&
		    !strcmp(found, name))
			r = (struct range){at, at + size};
	}
	fclose(file);
	ck_assert_msg(r.start, "module %s has no address", name);
	return r;
}

/* To the next symbol, as far as there is one. */
static struct range function_range(const char *name)
{
	FILE *file = fopen("/proc/kallsyms", "r");
	struct range r = {0, -1ul};
	unsigned long at;
	char line[512], found[256];

	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx %*c %255s", &at, found) == 2 && !strcmp(found, name))
			r.start = at;
	}
	rewind(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx", &at) == 1 && at > r.start && at < r.end)
			r.end = at;
	}
	fclose(file);
	ck_assert_msg(r.start, "function %s has no address", name);
	return r;
}

static void set_ranges(const struct range *require, const struct range *reject)
{
	set_both("require-start", require->start);
	set_both("require-end", require->end);
	set_both("reject-start", reject->start);
	set_both("reject-end", reject->end);
}

void inject_below_module(const char *module, const char *after, const char *but)
{
	struct range require = module_range(module), reject = function_range(but);

	require.start = function_range(after).end;
	set_ranges(&require, &reject);
}

void inject_below_function(const char *function)
{
	const struct range require = function_range(function), nothing = {0};

	set_ranges(&require, &nothing);
}

void inject_arm(unsigned int nth)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", nth);

	ck_assert_int_eq(pwrite(nth_file, text, (size_t)length, 0), length);
}

/* Its own copies may be what fails; then nothing before did. */
bool inject_disarm(void)
{
	char text[16] = "1";
	bool injected = pread(nth_file, text, sizeof(text) - 1, 0) > 0 && text[0] == '0';

	while (pwrite(nth_file, "0", 1, 0) != 1)
		ck_assert_int_eq(errno, EFAULT);
	return injected;
}

void inject_seldom(unsigned int percent, unsigned int interval)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", interval);
	set("failslab", "interval", text);
	set("fail_page_alloc", "interval", text);
	snprintf(text, sizeof(text), "%u", percent);
	set("failslab", "probability", text);
	set("fail_page_alloc", "probability", text);
}

void inject_chance(unsigned int percent)
{
	inject_seldom(percent, 1);
}

void inject_mark_self(bool on)
{
	ck_assert_int_eq(try_write("/proc/self/make-it-fail", on ? "1" : "0"), 0);
}

static bool is_named(const char *path, const char *name)
{
	char comm[32] = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (read(fd, comm, sizeof(comm) - 1) < 0)
		comm[0] = 0;
	close(fd);
	return !strncmp(comm, name, strlen(name));
}

int inject_mark_threads(const char *name)
{
	glob_t found;
	int count = 0;

	ck_assert_int_eq(glob("/proc/[0-9]*/comm", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		char path[64];

		if (!is_named(found.gl_pathv[i], name))
			continue;
		snprintf(path, sizeof(path), "%.*s/make-it-fail",
			 (int)(strrchr(found.gl_pathv[i], '/') - found.gl_pathv[i]),
			 found.gl_pathv[i]);
		count += !try_write(path, "1");
	}
	globfree(&found);
	return count;
}
