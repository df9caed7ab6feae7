// SPDX-License-Identifier: MIT
/* The limits of a process are read from trees that stand for the /proc and /sys of other machines. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "host/limits.h"
#include "scratch_help.h"
#include "suite.h"

#define GIB (1ull << 30)
#define MIB (1ull << 20)

struct file {
	const char *path, *text;
};

static char root[32];
static struct host_limits found;

static void put_file(const char *path, const char *text)
{
	char name[1024];
	FILE *f;

	snprintf(name, sizeof(name), "%s%s", root, path);
	for (char *slash = name + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(name, 0700);
		*slash = '/';
	}
	f = fopen(name, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	ck_assert_int_eq(fclose(f), 0);
}

/* 16 GiB, of which 12 are available. */
static void put_machine(void)
{
	put_file("/proc/meminfo", "MemTotal:       16777216 kB\nMemFree:         1048576 kB\n"
				  "MemAvailable:   12582912 kB\n");
}

static void setup(void)
{
	scratch_folder_make(root);
	put_machine();
}

static void teardown(void)
{
	scratch_folder_remove(root);
}

static void look(void)
{
	ck_assert_int_eq(host_limits_read(root, &found), 0);
}

#define V2_MOUNT "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1_MOUNTS \
	"35 31 0:30 / /sys/fs/cgroup/memory rw shared:14 - cgroup cgroup rw,memory\n" \
	"36 31 0:31 / /sys/fs/cgroup/cpu,cpuacct rw shared:15 - cgroup cgroup rw,cpu,cpuacct\n"

static const struct kind {
	const char *name;
	struct file files[9];
	uint64_t memory, available;
	uint32_t cores; /* 0: all that the affinity has */
} kinds[] = {
	{"no groups at all", {{NULL, NULL}}, 16 * GIB, 12 * GIB, 0},
	{"version 2 without limits",
	 {{"/proc/self/cgroup", "0::/user.slice\n"},
	  {"/proc/self/mountinfo", V2_MOUNT},
	  {"/sys/fs/cgroup/user.slice/memory.max", "max\n"},
	  {"/sys/fs/cgroup/user.slice/memory.current", "1048576\n"},
	  {"/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n"}},
	 16 * GIB,
	 12 * GIB,
	 0},
	{"version 2",
	 {{"/proc/self/cgroup", "0::/job\n"},
	  {"/proc/self/mountinfo", V2_MOUNT},
	  {"/sys/fs/cgroup/job/memory.max", "838860800\n"},
	  {"/sys/fs/cgroup/job/memory.current", "314572800\n"},
	  {"/sys/fs/cgroup/job/memory.stat",
	   "anon 1\ninactive_file 104857600\nactive_file 52428800\nunevictable 1048576\n"
	   "slab_reclaimable 52428800\nslab_unreclaimable 1048576\n"},
	  {"/sys/fs/cgroup/job/cpu.max", "50000 100000\n"}},
	 800 * MIB,
	 700 * MIB,
	 1},
	{"version 2, soft limit",
	 {{"/proc/self/cgroup", "0::/job\n"},
	  {"/proc/self/mountinfo", V2_MOUNT},
	  {"/sys/fs/cgroup/job/memory.max", "2147483648\n"},
	  {"/sys/fs/cgroup/job/memory.high", "1073741824\n"},
	  {"/sys/fs/cgroup/job/memory.current", "536870912\n"}},
	 GIB,
	 512 * MIB,
	 0},
	{"version 2, a parent is tighter",
	 {{"/proc/self/cgroup", "0::/a/b/c\n"},
	  {"/proc/self/mountinfo", V2_MOUNT},
	  {"/sys/fs/cgroup/a/b/c/memory.max", "8589934592\n"},
	  {"/sys/fs/cgroup/a/b/c/memory.current", "1073741824\n"},
	  {"/sys/fs/cgroup/a/memory.max", "4294967296\n"},
	  {"/sys/fs/cgroup/a/memory.current", "3221225472\n"},
	  {"/sys/fs/cgroup/a/cpu.max", "100000 100000\n"}},
	 4 * GIB,
	 GIB,
	 1},
	{"version 2, a namespace of groups",
	 {{"/proc/self/cgroup", "0::/\n"},
	  {"/proc/self/mountinfo", V2_MOUNT},
	  {"/sys/fs/cgroup/memory.max", "1073741824\n"},
	  {"/sys/fs/cgroup/memory.current", "2147483648\n"}},
	 GIB,
	 0,
	 0},
	{"version 2, a group outside of the namespace",
	 {{"/proc/self/cgroup", "0::/../other\n"},
	  {"/proc/self/mountinfo", V2_MOUNT},
	  {"/sys/fs/cgroup/memory.max", "1073741824\n"}},
	 GIB,
	 GIB,
	 0},
	{"version 2, a container sees the host's paths",
	 {{"/proc/self/cgroup", "0::/docker/4fa6\n"},
	  {"/proc/self/mountinfo",
	   "30 23 0:26 /docker/4fa6 /sys/fs/cgroup ro - cgroup2 cgroup rw\n"},
	  {"/sys/fs/cgroup/memory.max", "1073741824\n"},
	  {"/sys/fs/cgroup/memory.current", "1\n"}},
	 GIB,
	 GIB - 1,
	 0},
	{"version 1",
	 {{"/proc/self/cgroup", "9:memory:/job\n4:cpu,cpuacct:/job\n0::/\n"},
	  {"/proc/self/mountinfo", V1_MOUNTS},
	  {"/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "838860800\n"},
	  {"/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "104857600\n"},
	  {"/sys/fs/cgroup/memory/job/memory.stat",
	   "inactive_file 1\nhierarchical_memory_limit 838860800\ntotal_inactive_file 3145728\n"
	   "total_active_file 1048576\n"},
	  {"/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "20000\n"},
	  {"/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n"}},
	 800 * MIB,
	 704 * MIB,
	 1},
	{"version 1, no limits",
	 {{"/proc/self/cgroup", "9:memory:/\n4:cpu,cpuacct:/\n"},
	  {"/proc/self/mountinfo", V1_MOUNTS},
	  {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
	  {"/sys/fs/cgroup/memory/memory.usage_in_bytes", "17179869184\n"},
	  {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"},
	  {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"}},
	 16 * GIB,
	 12 * GIB,
	 0},
	{"version 1, a parent that is not visible is tighter",
	 {{"/proc/self/cgroup", "9:memory:/k8s/pod/box\n"},
	  {"/proc/self/mountinfo",
	   "35 31 0:30 /k8s/pod/box /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"},
	  {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
	  {"/sys/fs/cgroup/memory/memory.usage_in_bytes", "0\n"},
	  {"/sys/fs/cgroup/memory/memory.stat", "hierarchical_memory_limit 2147483648\n"}},
	 2 * GIB,
	 2 * GIB,
	 0},
	{"both versions",
	 {{"/proc/self/cgroup", "3:memory:/job\n0::/job\n"},
	  {"/proc/self/mountinfo",
	   "30 23 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" V1_MOUNTS},
	  {"/sys/fs/cgroup/unified/job/memory.max", "3221225472\n"},
	  {"/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4294967296\n"}},
	 3 * GIB,
	 3 * GIB,
	 0},
	{"version 2, more of files than is used",
	 {{"/proc/self/cgroup", "0::/job\n"},
	  {"/proc/self/mountinfo", V2_MOUNT},
	  {"/sys/fs/cgroup/job/memory.max", "1073741824\n"},
	  {"/sys/fs/cgroup/job/memory.current", "1048576\n"},
	  {"/sys/fs/cgroup/job/memory.stat", "inactive_file 1048577\nactive_file 1\n"}},
	 GIB,
	 GIB,
	 0},
	{"a system that promises no more than it has",
	 {{"/proc/meminfo", "MemTotal:       16777216 kB\nMemAvailable:   12582912 kB\n"
			    "CommitLimit:     8388608 kB\nCommitted_AS:    2097152 kB\n"},
	  {"/proc/sys/vm/overcommit_memory", "2\n"}},
	 8 * GIB,
	 6 * GIB,
	 0},
	{"a system that promises more than it has",
	 {{"/proc/meminfo", "MemTotal:       16777216 kB\nMemAvailable:   12582912 kB\n"
			    "CommitLimit:     8388608 kB\nCommitted_AS:    2097152 kB\n"},
	  {"/proc/sys/vm/overcommit_memory", "1\n"}},
	 16 * GIB,
	 12 * GIB,
	 0},
	{"a blank in a path",
	 {{"/proc/self/cgroup", "0::/my job/\\041\n"},
	  {"/proc/self/mountinfo",
	   "30 23 0:26 /my\\040job /mnt/a\\134b\\040c rw - cgroup2 cgroup2 rw\n"},
	  {"/mnt/a\\b c/\\041/memory.max", "1073741824\n"}},
	 GIB,
	 GIB,
	 0},
	{"a group that was removed",
	 {{"/proc/self/cgroup", "0::/job/gone (deleted)\n"},
	  {"/proc/self/mountinfo", V2_MOUNT},
	  {"/sys/fs/cgroup/job/memory.max", "1073741824\n"}},
	 GIB,
	 GIB,
	 0},
	{"a group whose name another's begins with",
	 {{"/proc/self/cgroup", "0::/jobs\n"},
	  {"/proc/self/mountinfo", "30 23 0:26 /job /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
	  {"/sys/fs/cgroup/memory.max", "1073741824\n"},
	  {"/sys/fs/cgroup/s/memory.max", "1048576\n"}},
	 GIB,
	 GIB,
	 0},
	{"numbers too large for 64 bits",
	 {{"/proc/self/cgroup", "0::/job\n"},
	  {"/proc/self/mountinfo", V2_MOUNT},
	  {"/sys/fs/cgroup/job/memory.max", "99999999999999999999999\n"},
	  {"/sys/fs/cgroup/job/memory.current", "99999999999999999999999\n"},
	  {"/sys/fs/cgroup/job/cpu.max", "99999999999999999999999 100000\n"}},
	 16 * GIB,
	 12 * GIB,
	 0},
	{"version 1, a quota without a period",
	 {{"/proc/self/cgroup", "4:cpu,cpuacct:/job\n"},
	  {"/proc/self/mountinfo", V1_MOUNTS},
	  {"/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "1000\n"}},
	 16 * GIB,
	 12 * GIB,
	 0},
	{"version 2, a quota without a period",
	 {{"/proc/self/cgroup", "0::/job\n"},
	  {"/proc/self/mountinfo", V2_MOUNT},
	  {"/sys/fs/cgroup/job/cpu.max", "1000\n"}},
	 16 * GIB,
	 12 * GIB,
	 0},
	{"empty files",
	 {{"/proc/self/cgroup", "0::/job\n"},
	  {"/proc/self/mountinfo", V2_MOUNT},
	  {"/sys/fs/cgroup/job/memory.max", ""},
	  {"/sys/fs/cgroup/job/memory.stat", ""},
	  {"/sys/fs/cgroup/job/cpu.max", ""},
	  {"/proc/self/status", ""}},
	 16 * GIB,
	 12 * GIB,
	 0},
	{"no part of a name is a name",
	 {{"/proc/self/cgroup", "3:memory2:/job\n2:xmemory:/job\n"},
	  {"/proc/self/mountinfo", V1_MOUNTS},
	  {"/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4294967296\n"}},
	 16 * GIB,
	 12 * GIB,
	 0},
	{"nonsense limits nothing",
	 {{"/proc/self/cgroup", "::::\n\n0:\n17\n0::/job\n"},
	  {"/proc/self/mountinfo", "- - -\n\n1 2 - cgroup2\n" V2_MOUNT " - "},
	  {"/sys/fs/cgroup/job/memory.max", "many\n"},
	  {"/sys/fs/cgroup/job/memory.current", "-7\n"},
	  {"/sys/fs/cgroup/job/memory.stat", "inactive_file\nactive_file -7\n"},
	  {"/sys/fs/cgroup/job/cpu.max", "0 0\n"}},
	 16 * GIB,
	 12 * GIB,
	 0},
};

static uint32_t allowed_cores(void)
{
	cpu_set_t set;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	return (uint32_t)CPU_COUNT(&set);
}

START_TEST(test_groups)
{
	const struct kind *k = &kinds[_i];

	for (size_t i = 0; i < 9 && k->files[i].path; i++)
		put_file(k->files[i].path, k->files[i].text);
	look();
	ck_assert_msg(found.memory == k->memory, "%s: memory %llu, not %llu", k->name,
		      (unsigned long long)found.memory, (unsigned long long)k->memory);
	ck_assert_msg(found.available == k->available, "%s: available %llu, not %llu", k->name,
		      (unsigned long long)found.available, (unsigned long long)k->available);
	ck_assert_msg(found.cores == (k->cores ? k->cores : allowed_cores()), "%s: %u cores",
		      k->name, found.cores);
}
END_TEST

/* A part of a processor counts as one; a quota above what there is adds none. */
static void put_v2(const char *group_max, const char *group_high, const char *outer_max)
{
	put_file("/proc/self/cgroup", "0::/outer/inner\n");
	put_file("/proc/self/mountinfo", V2_MOUNT);
	put_file("/sys/fs/cgroup/outer/inner/memory.max", group_max);
	put_file("/sys/fs/cgroup/outer/inner/memory.high", group_high);
	put_file("/sys/fs/cgroup/outer/memory.max", outer_max);
}

/* Files of groups and ulimits name themselves; memory.high slows a process down alone. */
START_TEST(test_hard_limits_are_named)
{
	look();
	ck_assert_uint_eq(found.most, UINT64_MAX);
	ck_assert_str_eq(found.most_by, "");
	put_v2("max\n", "1048576\n", "max\n");
	look();
	ck_assert_uint_eq(found.most, UINT64_MAX);
	ck_assert_uint_eq(found.memory, MIB);
	put_v2("1073741824\n", "max\n", "max\n");
	look();
	ck_assert_uint_eq(found.most, GIB);
	ck_assert_str_eq(found.most_by, "/sys/fs/cgroup/outer/inner/memory.max");
	put_v2("1073741824\n", "max\n", "536870912\n");
	look();
	ck_assert_uint_eq(found.most, GIB / 2);
	ck_assert_str_eq(found.most_by, "/sys/fs/cgroup/outer/memory.max");
	put_file("/proc/self/limits", "Limit                     Soft Limit  Hard Limit  Units\n"
				      "Max data size             1048576     unlimited   bytes\n"
				      "Max address space         2097152     unlimited   bytes\n");
	look();
	ck_assert_uint_eq(found.most, MIB);
	ck_assert_str_eq(found.most_by, "ulimit -d (RLIMIT_DATA)");
	/* Memory that the process has already counts. */
	put_file("/proc/self/status", "VmSize:\t    1536 kB\nVmData:\t     256 kB\n"
				      "RssAnon:\t     128 kB\n");
	look();
	ck_assert_uint_eq(found.most, MIB / 2);
	ck_assert_str_eq(found.most_by, "ulimit -v (RLIMIT_AS)");
	put_file("/proc/self/limits", "");
	look();
	ck_assert_uint_eq(found.most, GIB / 2 - MIB / 8);
	ck_assert_str_eq(found.most_by, "/sys/fs/cgroup/outer/memory.max");
}
END_TEST

/* A group may swap out what it has beyond its limit. */
START_TEST(test_swap_is_beyond_a_limit)
{
	put_file("/proc/meminfo", "MemTotal:       16777216 kB\nMemAvailable:   12582912 kB\n"
				  "SwapTotal:       1048576 kB\n");
	put_v2("1073741824\n", "max\n", "max\n");
	look();
	ck_assert_uint_eq(found.memory, GIB);
	ck_assert_uint_eq(found.most, 2 * GIB);
}
END_TEST

START_TEST(test_hard_limits_of_version_1)
{
	put_file("/proc/self/cgroup", "5:memory:/job\n");
	put_file("/proc/self/mountinfo", V1_MOUNTS);
	put_file("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1073741824\n");
	put_file("/sys/fs/cgroup/memory/job/memory.stat", "hierarchical_memory_limit 536870912\n");
	look();
	ck_assert_uint_eq(found.most, GIB / 2);
	ck_assert_str_eq(found.most_by, "/sys/fs/cgroup/memory/job/memory.stat");
}
END_TEST

START_TEST(test_quota_is_rounded_up)
{
	const uint32_t all = allowed_cores();
	char quota[32];

	put_file("/proc/self/cgroup", "0::/\n");
	put_file("/proc/self/mountinfo", V2_MOUNT);
	for (uint32_t tenths = 1; tenths <= 10 * all + 10; tenths++) {
		uint32_t want = (tenths + 9) / 10;

		snprintf(quota, sizeof(quota), "%u 100000\n", tenths * 10000);
		put_file("/sys/fs/cgroup/cpu.max", quota);
		look();
		ck_assert_uint_eq(found.cores, want < all ? want : all);
		ck_assert_uint_eq(found.allowed, all);
	}
}
END_TEST

/* A machine with many containers has many mounts, and a group's may be the last of them. */
START_TEST(test_many_mounts)
{
	const char line[] =
		"99 23 0:26 /a /var/lib/box/overlay/0123456789abcdef rw - overlay o rw\n";
	const size_t length = sizeof(line) - 1, count = 20000;
	char *mounts = malloc(count * length + sizeof(V2_MOUNT));

	ck_assert_ptr_nonnull(mounts);
	for (size_t i = 0; i < count; i++)
		memcpy(mounts + i * length, line, length);
	strcpy(mounts + count * length, V2_MOUNT);
	put_file("/proc/self/mountinfo", mounts);
	free(mounts);
	put_file("/proc/self/cgroup", "0::/\n");
	put_file("/sys/fs/cgroup/memory.max", "1073741824\n");
	look();
	ck_assert_uint_eq(found.memory, GIB);
}
END_TEST

/* A limit that is there and cannot be read is no permission to take everything. */
START_TEST(test_no_descriptor_left)
{
	struct rlimit before, none;
	int ret;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){0, before.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ret = host_limits_read(root, &found);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_int_eq(ret, -EMFILE);
}
END_TEST

START_TEST(test_affinity)
{
	cpu_set_t set, one;
	int cpu = 0;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	look();
	ck_assert_uint_eq(found.cores, 1);
	ck_assert_uint_eq(found.allowed, 1);
}
END_TEST

#define LIMITS(data, space) \
	"Limit                     Soft Limit           Hard Limit           Units     \n" \
	"Max data size             " data "           unlimited            bytes     \n" \
	"Max processes             17                   17                   processes \n" \
	"Max address space         " space "           unlimited            bytes     \n"

/* Memory that the process has already counts against its own limits. */
START_TEST(test_limits_of_the_process)
{
	static const struct {
		const char *limits;
		uint64_t memory, available;
	} cases[] = {
		{LIMITS("unlimited ", "4294967296"), 4 * GIB, 3 * GIB},
		{LIMITS("4294967296", "unlimited "), 4 * GIB, 2 * GIB},
		{LIMITS("8589934592", "4294967296"), 4 * GIB, 3 * GIB},
		{LIMITS("unlimited ", "1048576   "), MIB, 0},
		{LIMITS("0         ", "unlimited "), 0, 0},
		{LIMITS("unlimited ", "unlimited "), 16 * GIB, 12 * GIB},
		{LIMITS("nonsense  ", "-1        "), 16 * GIB, 12 * GIB},
	};

	put_file("/proc/self/status",
		 "Name:\tVmSize: 7\nVmSize:\t 1048576 kB\nVmData:\t 2097152 kB\n");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		put_file("/proc/self/limits", cases[i].limits);
		look();
		ck_assert_uint_eq(found.memory, cases[i].memory);
		ck_assert_uint_eq(found.available, cases[i].available);
	}
}
END_TEST

/* Whatever machine runs the test: the numbers are possible ones. */
START_TEST(test_this_machine)
{
	ck_assert_int_eq(host_limits_read("", &found), 0);
	ck_assert_uint_gt(found.memory, 64 * MIB);
	ck_assert_uint_le(found.available, found.memory);
	ck_assert_uint_ge(found.cores, 1);
	ck_assert_uint_le(found.cores, allowed_cores());
	ck_assert_uint_eq(found.allowed, allowed_cores());
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, test_groups, 0, sizeof(kinds) / sizeof(kinds[0]));
	tcase_add_test(tc, test_quota_is_rounded_up);
	tcase_add_test(tc, test_hard_limits_are_named);
	tcase_add_test(tc, test_swap_is_beyond_a_limit);
	tcase_add_test(tc, test_hard_limits_of_version_1);
	tcase_add_test(tc, test_many_mounts);
	tcase_add_test(tc, test_no_descriptor_left);
	tcase_add_test(tc, test_affinity);
	tcase_add_test(tc, test_limits_of_the_process);
	tcase_add_test(tc, test_this_machine);
}

int main(void)
{
	return suite_main("host_limits", add);
}
