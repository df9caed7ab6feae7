// SPDX-License-Identifier: MIT
/*
 * Finds out how much memory and how many processors this process may use. It is a file of its own
 * because the library and the command both compile it: the one to size a soft device, the other to
 * tell a user what fits.
 *
 * A control group of version 1 has a hierarchy for each controller, one of version 2 has them all;
 * a machine can have both at a time. The group's folder is its path below the root of the mount
 * that shows it. A process in a container sees only the groups from its own one on, so that the
 * groups above cannot be read; version 1 tells their limit in memory.stat. Each group up to the
 * mount counts, since a parent may be tighter than its child.
 *
 * Nothing is kept; any thread may call.
 */
#define _GNU_SOURCE
#include "limits.h"

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define PATH_MOST 4096
#define FILE_MOST (256u << 10) /* mountinfo of a machine with many containers */

/* A whole file as text, to be freed; NULL if it cannot be read. */
static char *read_proc_text(const char *root, const char *path)
{
	char name[PATH_MOST], *text;
	size_t length = 0;
	ssize_t got = 0;
	int fd;

	if (snprintf(name, sizeof(name), "%s%s", root, path) >= (int)sizeof(name))
		return NULL;
	fd = open(name, O_RDONLY | O_CLOEXEC);
	text = fd < 0 ? NULL : malloc(FILE_MOST);
	while (text && length < FILE_MOST - 1 &&
	       (got = read(fd, text + length, FILE_MOST - 1 - length)) > 0)
		length += (size_t)got;
	if (fd >= 0)
		close(fd);
	if (text)
		text[length] = '\0';
	return text;
}

/* The number behind @name at the start of a line of @text, times @unit; @otherwise if none. */
static uint64_t find_number(const char *text, const char *name, uint64_t unit, uint64_t otherwise)
{
	const size_t length = strlen(name);
	unsigned long long number;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, length) || sscanf(line + length, "%llu", &number) != 1)
			continue;
		return number > UINT64_MAX / unit ? UINT64_MAX : number * unit;
	}
	return otherwise;
}

/* The number that a file of a group consists of; UINT64_MAX for "max", "-1" and no file. */
static uint64_t read_group_number(const char *root, const char *group, const char *file)
{
	char path[PATH_MOST], *text;
	unsigned long long number = UINT64_MAX;

	if (snprintf(path, sizeof(path), "%s/%s", group, file) >= (int)sizeof(path))
		return UINT64_MAX;
	text = read_proc_text(root, path);
	if (!text || text[0] < '0' || text[0] > '9' || sscanf(text, "%llu", &number) != 1)
		number = UINT64_MAX;
	free(text);
	return number;
}

static void lower_to(uint64_t *to, uint64_t value)
{
	if (value < *to)
		*to = value;
}

/* -- groups -------------------------------------------------------------- */

/* How a controller's files are named in each version. */
struct version {
	const char *limits[2];
	const char *usage;
	const char *cached;    /* in memory.stat: what is given back before anybody is killed */
	const char *inherited; /* in memory.stat: the least limit from the root on; or NULL */
};

static const struct version versions[] = {
	{{"memory.limit_in_bytes", NULL},
	 "memory.usage_in_bytes",
	 "total_inactive_file",
	 "hierarchical_memory_limit"},
	{{"memory.max", "memory.high"}, "memory.current", "inactive_file ", NULL},
};

static void take_memory_limit(struct host_limits *out, uint64_t limit, uint64_t used)
{
	lower_to(&out->memory, limit);
	if (limit != UINT64_MAX)
		lower_to(&out->available, limit > used ? limit - used : 0);
}

static void take_memory_group(const char *root, const char *group, const struct version *version,
			      struct host_limits *out)
{
	uint64_t used = read_group_number(root, group, version->usage), cached;
	char path[PATH_MOST], *stat = NULL;

	if (snprintf(path, sizeof(path), "%s/memory.stat", group) < (int)sizeof(path))
		stat = read_proc_text(root, path);
	used = used == UINT64_MAX ? 0 : used;
	cached = find_number(stat, version->cached, 1, 0);
	used -= cached < used ? cached : used;
	for (int i = 0; i < 2 && version->limits[i]; i++)
		take_memory_limit(out, read_group_number(root, group, version->limits[i]), used);
	if (version->inherited)
		take_memory_limit(out, find_number(stat, version->inherited, 1, UINT64_MAX), used);
	free(stat);
}

static void take_quota(double quota, double period, struct host_limits *out)
{
	uint32_t cores;

	if (!(quota > 0) || !(period > 0) || quota / period >= out->cores)
		return;
	cores = (uint32_t)(quota / period);
	cores += quota / period > cores;
	out->cores = cores ? cores : 1;
}

static void take_cpu_group(const char *root, const char *group, const struct version *version,
			   struct host_limits *out)
{
	char path[PATH_MOST], *text;
	double quota, period;

	if (version == &versions[0]) {
		uint64_t of = read_group_number(root, group, "cpu.cfs_quota_us");

		if (of != UINT64_MAX)
			take_quota((double)of,
				   (double)read_group_number(root, group, "cpu.cfs_period_us"),
				   out);
		return;
	}
	if (snprintf(path, sizeof(path), "%s/cpu.max", group) >= (int)sizeof(path))
		return;
	text = read_proc_text(root, path);
	if (text && sscanf(text, "%lf %lf", &quota, &period) == 2)
		take_quota(quota, period, out);
	free(text);
}

/* Every group from @group up to the mount, whose path has @mount characters. */
static void take_groups(const char *root, char *group, size_t mount, bool memory, bool cpu,
			const struct version *version, struct host_limits *out)
{
	char *slash;

	for (;;) {
		if (memory)
			take_memory_group(root, group, version, out);
		if (cpu)
			take_cpu_group(root, group, version, out);
		slash = strrchr(group, '/');
		if (strlen(group) <= mount || !slash || (size_t)(slash - group) < mount)
			return;
		*slash = '\0';
	}
}

/* -- mounts -------------------------------------------------------------- */

/* True if @word is one of the words of @list, which commas part. */
static bool has_word(const char *list, const char *word)
{
	const size_t length = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += length) {
		if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
			return true;
	}
	return false;
}

/*
 * The path of this process's group in the hierarchy that has @controller, from the text of
 * /proc/self/cgroup; "" is the controller list of version 2. False if there is none.
 */
static bool find_group(const char *cgroup, const char *controller, char path[PATH_MOST])
{
	char list[256];
	int at;

	for (const char *line = cgroup; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		at = 0;
		if (sscanf(line, "%*u:%n", &at) < 0 || !at)
			continue;
		*list = '\0';
		if (sscanf(line + at, "%255[^:\n]", list) == 1)
			at += (int)strlen(list);
		if (line[at] != ':' || !(*controller ? has_word(list, controller) : !*list))
			continue;
		return sscanf(line + at + 1, "%4095[^\n]", path) == 1;
	}
	return false;
}

/*
 * The path @path of a group below a mount that shows the hierarchy from @top on. A path outside of
 * @top, such as that of a container's host, is not visible: the mount's own group stands for it.
 */
static const char *below_mount(const char *path, const char *top)
{
	const size_t length = strcmp(top, "/") ? strlen(top) : 0;

	if (strncmp(path, top, length) || (path[length] && path[length] != '/') ||
	    !strncmp(path, "/..", 3))
		return "";
	return strcmp(path + length, "/") ? path + length : "";
}

struct mount {
	char top[PATH_MOST], point[PATH_MOST], type[32], options[512];
};

/* One line of mountinfo: numbers, root, mount point, options, fields, "-", type, source, options */
static bool read_mount(const char *line, struct mount *m)
{
	const char *dash = strstr(line, " - "), *end = strchr(line, '\n');

	if (!dash || (end && dash > end))
		return false;
	return sscanf(line, "%*d %*d %*s %4095s %4095s", m->top, m->point) == 2 &&
	       sscanf(dash + 3, "%31s %*s %511s", m->type, m->options) == 2;
}

static void take_mount(const char *root, const char *cgroup, struct mount *m,
		       struct host_limits *out)
{
	static const char *const controllers[] = {"memory", "cpu"};
	const bool second = !strcmp(m->type, "cgroup2");
	char path[PATH_MOST], group[2 * PATH_MOST];

	for (int i = 0; i < 2; i++) {
		if (!second && (strcmp(m->type, "cgroup") || !has_word(m->options, controllers[i])))
			continue;
		if (!find_group(cgroup, second ? "" : controllers[i], path))
			continue;
		snprintf(group, sizeof(group), "%s%s", m->point, below_mount(path, m->top));
		take_groups(root, group, strlen(m->point), i == 0, i == 1, &versions[second], out);
	}
}

static void take_all_groups(const char *root, struct host_limits *out)
{
	char *cgroup = read_proc_text(root, "/proc/self/cgroup");
	char *mounts = read_proc_text(root, "/proc/self/mountinfo");
	struct mount *m = malloc(sizeof(*m));

	for (const char *line = mounts; m && cgroup && line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (read_mount(line, m))
			take_mount(root, cgroup, m, out);
	}
	free(m);
	free(mounts);
	free(cgroup);
}

/* -- the machine and the process ------------------------------------------ */

static void take_rlimit(int resource, const char *status, const char *name, struct host_limits *out)
{
	struct rlimit limit;

	if (!getrlimit((__rlimit_resource_t)resource, &limit) && limit.rlim_cur != RLIM_INFINITY)
		take_memory_limit(out, limit.rlim_cur, find_number(status, name, 1024, 0));
}

static void take_process(const char *root, struct host_limits *out)
{
	char *status = read_proc_text(root, "/proc/self/status");

	take_rlimit(RLIMIT_AS, status, "VmSize:", out);
	take_rlimit(RLIMIT_DATA, status, "VmData:", out);
	free(status);
}

static void take_machine(const char *root, struct host_limits *out)
{
	char *meminfo = read_proc_text(root, "/proc/meminfo");
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	uint64_t physical = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 1ull << 30;

	out->memory = find_number(meminfo, "MemTotal:", 1024, physical);
	out->available = find_number(meminfo, "MemAvailable:", 1024, out->memory);
	free(meminfo);
}

static uint32_t count_allowed_cores(void)
{
	cpu_set_t *set;
	int count = 0;

	/* A machine may have more processors than a cpu_set_t holds. */
	for (int most = CPU_SETSIZE; most <= 1 << 20 && !count; most *= 4) {
		set = CPU_ALLOC(most);
		if (set && !sched_getaffinity(0, CPU_ALLOC_SIZE(most), set))
			count = CPU_COUNT_S(CPU_ALLOC_SIZE(most), set);
		CPU_FREE(set);
	}
	return count > 0 ? (uint32_t)count : 1;
}

void host_limits_read(const char *root, struct host_limits *out)
{
	take_machine(root, out);
	out->cores = count_allowed_cores();
	take_all_groups(root, out);
	take_process(root, out);
	lower_to(&out->available, out->memory);
}
