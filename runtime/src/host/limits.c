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
 * Pages of files that a group has read count as used there, but the kernel takes them back before it
 * kills anybody, so that they count as free here.
 *
 * Nothing is kept; any thread may call.
 */
#define _GNU_SOURCE
#include "limits.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_MOST 4096
/* No machine has so many groups in each other, or mounts of them; files of another may say anything. */
#define DEPTH_MOST 128
#define MOUNTS_MOST 64

/* A call of host_limits_read(): where it reads, what it found, and what kept it from reading. */
struct look {
	host_read_fn read;
	void *arg;
	struct host_limits *out;
	uint64_t swap;	   /* the machine has so much */
	uint64_t resident; /* memory of this process that only swap could take */
	int error;
};

/* A whole file below the folder @arg as text. */
static char *read_root_text(void *arg, const char *path)
{
	char name[PATH_MOST], *text = NULL;
	size_t room = 0;
	FILE *f;

	errno = 0;
	if (snprintf(name, sizeof(name), "%s%s", (const char *)arg, path) >= (int)sizeof(name))
		return NULL;
	f = fopen(name, "re");
	if (f && getdelim(&text, &room, '\0', f) < 0) {
		free(text);
		text = NULL;
	}
	if (f) {
		int error = errno;

		fclose(f);
		errno = error;
	}
	return text;
}

/* A whole file as text, to be freed; NULL if it is empty or cannot be read. */
static char *read_proc_text(struct look *look, const char *path)
{
	char *text = look->read(look->arg, path);

	if (!text && (errno == ENOMEM || errno == EMFILE || errno == ENFILE))
		look->error = -errno;
	return text;
}

/* The number that @text begins with; UINT64_MAX for any other text and where it is larger. */
static uint64_t parse_leading_number(const char *text)
{
	return text && *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : UINT64_MAX;
}

/* The number behind @name at the start of a line of @text, times @unit; @otherwise if none. */
static uint64_t find_number(const char *text, const char *name, uint64_t unit, uint64_t otherwise)
{
	const size_t length = strlen(name);
	uint64_t number;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, length))
			continue;
		number = parse_leading_number(line + length + strspn(line + length, " \t"));
		if (number != UINT64_MAX)
			return number > UINT64_MAX / unit ? UINT64_MAX : number * unit;
	}
	return otherwise;
}

/* The text of a file of a group, to be freed, or NULL. */
static char *read_group_text(struct look *look, const char *group, const char *file)
{
	char path[PATH_MOST];

	if (snprintf(path, sizeof(path), "%s/%s", group, file) >= (int)sizeof(path))
		return NULL;
	return read_proc_text(look, path);
}

/* The number that a file of a group consists of; UINT64_MAX for "max", "-1" and no file. */
static uint64_t read_group_number(struct look *look, const char *group, const char *file)
{
	char *text = read_group_text(look, group, file);
	uint64_t number = parse_leading_number(text);

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
	const char *cached[3]; /* in memory.stat: what is given back before anybody is killed */
	const char *inherited; /* in memory.stat: the least limit from the root on; or NULL */
};

static const struct version versions[] = {
	{{"memory.limit_in_bytes", NULL},
	 "memory.usage_in_bytes",
	 {"total_inactive_file ", "total_active_file ", NULL},
	 "hierarchical_memory_limit"},
	{{"memory.max", "memory.high"},
	 "memory.current",
	 {"inactive_file ", "active_file ", "slab_reclaimable "},
	 NULL},
};

/* Writes what says a limit: @file, in folder @group if that is not "". */
static void name_limit(char by[256], const char *group, const char *file)
{
	snprintf(by, 256, "%.160s%s%.64s", group, *group ? "/" : "", file);
}

/* A limit of which @used is taken already. @group, @file: see name_limit(). */
static void take_memory_limit(struct host_limits *out, uint64_t limit, uint64_t used,
			      const char *group, const char *file)
{
	uint64_t left = limit > used ? limit - used : 0;

	lower_to(&out->memory, limit);
	if (limit == UINT64_MAX || left >= out->available)
		return;
	out->available = left;
	name_limit(out->available_by, group, file);
}

/* Pages of files count as used, and make room for others like those of the machine. */
static uint64_t count_used(struct look *look, const char *group, const struct version *version,
			   const char *stat)
{
	uint64_t used = read_group_number(look, group, version->usage), cached = 0;

	if (used == UINT64_MAX)
		return 0;
	for (int i = 0; i < 3 && version->cached[i]; i++) {
		cached = find_number(stat, version->cached[i], 1, 0);
		used -= cached < used ? cached : used;
	}
	return used;
}

/*
 * A limit that no process gets beyond, of which this one has @own already. @group, @file: see
 * name_limit().
 */
static void take_hard_limit(struct look *look, uint64_t limit, uint64_t own, const char *group,
			    const char *file)
{
	struct host_limits *out = look->out;
	uint64_t left = limit > own ? limit - own : 0;

	if (limit == UINT64_MAX || left >= out->most)
		return;
	out->most = left;
	name_limit(out->most_by, group, file);
}

/* A group may swap out what it has beyond its limit, as far as the machine has swap. */
static void take_group_limit(struct look *look, uint64_t limit, const char *group, const char *file)
{
	if (limit <= UINT64_MAX - look->swap)
		take_hard_limit(look, limit + look->swap, look->resident, group, file);
}

static void take_memory_group(struct look *look, const char *group, const struct version *version)
{
	char *stat = read_group_text(look, group, "memory.stat");
	uint64_t used = count_used(look, group, version, stat), limit;

	for (int i = 0; i < 2 && version->limits[i]; i++) {
		limit = read_group_number(look, group, version->limits[i]);
		take_memory_limit(look->out, limit, used, group, version->limits[i]);
		/* The second one slows a group down and ends nobody. */
		if (i == 0)
			take_group_limit(look, limit, group, version->limits[i]);
	}
	if (version->inherited) {
		limit = find_number(stat, version->inherited, 1, UINT64_MAX);
		take_memory_limit(look->out, limit, used, group, "memory.stat");
		take_group_limit(look, limit, group, "memory.stat");
	}
	free(stat);
}

/* @quota, @period: UINT64_MAX for one that there is not */
static void take_quota(uint64_t quota, uint64_t period, struct host_limits *out)
{
	uint64_t cores;

	if (!quota || !period || quota == UINT64_MAX || period == UINT64_MAX)
		return;
	lower_to(&out->quota, quota / period < UINT64_MAX / 2000
				      ? quota / period * 1000 + quota % period * 1000 / period
				      : UINT64_MAX);
	cores = quota / period + (quota % period != 0);
	if (cores < out->cores)
		out->cores = (uint32_t)cores;
}

/* "QUOTA PERIOD" or "max PERIOD" */
static void take_second_quota(struct look *look, const char *group)
{
	char *text = read_group_text(look, group, "cpu.max");
	const char *period = text ? strchr(text, ' ') : NULL;

	take_quota(parse_leading_number(text), parse_leading_number(period ? period + 1 : NULL),
		   look->out);
	free(text);
}

static void take_cpu_group(struct look *look, const char *group, const struct version *version)
{
	if (version == &versions[1])
		take_second_quota(look, group);
	else
		take_quota(read_group_number(look, group, "cpu.cfs_quota_us"),
			   read_group_number(look, group, "cpu.cfs_period_us"), look->out);
}

/* Every group from @group up to the mount, whose path has @mount characters. */
static void take_groups(struct look *look, char *group, size_t mount, bool memory,
			const struct version *version)
{
	char *slash;

	for (int depth = 0; depth < DEPTH_MOST; depth++) {
		if (memory)
			take_memory_group(look, group, version);
		else
			take_cpu_group(look, group, version);
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

/* mountinfo has blanks and backslashes of a path as three octal digits. */
static void decode_path(char *path)
{
	char *to = path;

	for (const char *from = path; *from; to++) {
		if (*from == '\\' && strspn(from + 1, "01234567") >= 3) {
			*to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/* One line of mountinfo: numbers, root, mount point, options, fields, "-", type, source, options */
static bool read_mount(const char *line, struct mount *m)
{
	const char *dash = strstr(line, " - ");

	if (!dash || sscanf(line, "%*d %*d %*s %4095s %4095s", m->top, m->point) != 2 ||
	    sscanf(dash + 3, "%31s %*s %511s", m->type, m->options) != 2)
		return false;
	decode_path(m->top);
	decode_path(m->point);
	return true;
}

/* Return: whether it is a mount of control groups. */
static bool take_mount(struct look *look, const char *cgroup, const struct mount *m)
{
	static const char *const controllers[] = {"memory", "cpu"};
	const bool second = !strcmp(m->type, "cgroup2");
	char path[PATH_MOST], group[2 * PATH_MOST];

	if (!second && strcmp(m->type, "cgroup"))
		return false;
	for (int i = 0; i < 2; i++) {
		if (!second && !has_word(m->options, controllers[i]))
			continue;
		if (!find_group(cgroup, second ? "" : controllers[i], path))
			continue;
		snprintf(group, sizeof(group), "%s%s", m->point, below_mount(path, m->top));
		take_groups(look, group, strlen(m->point), i == 0, &versions[second]);
	}
	return true;
}

static void take_all_groups(struct look *look)
{
	char *cgroup = read_proc_text(look, "/proc/self/cgroup");
	char *mounts = read_proc_text(look, "/proc/self/mountinfo"), *rest = mounts, *line;
	struct mount *m = malloc(sizeof(*m));
	int taken = 0;

	if (!m)
		look->error = -ENOMEM;
	while (m && cgroup && rest && taken < MOUNTS_MOST && (line = strsep(&rest, "\n"))) {
		if (read_mount(line, m))
			taken += take_mount(look, cgroup, m);
	}
	free(m);
	free(mounts);
	free(cgroup);
}

/* -- the machine and the process ------------------------------------------ */

#define ADDRESSES "ulimit -v (RLIMIT_AS)"
#define DATA "ulimit -d (RLIMIT_DATA)"
#define COMMIT "CommitLimit of /proc/meminfo"

/* The process's own limits, on addresses (RLIMIT_AS) and on memory that it may write. */
static void take_process(struct look *look)
{
	char *limits = read_proc_text(look, "/proc/self/limits");
	char *status = read_proc_text(look, "/proc/self/status");
	uint64_t addresses = find_number(limits, "Max address space ", 1, UINT64_MAX);
	uint64_t data = find_number(limits, "Max data size ", 1, UINT64_MAX);
	uint64_t mapped = find_number(status, "VmSize:", 1024, 0);
	uint64_t written = find_number(status, "VmData:", 1024, 0);

	take_memory_limit(look->out, addresses, mapped, "", ADDRESSES);
	take_hard_limit(look, addresses, mapped, "", ADDRESSES);
	take_memory_limit(look->out, data, written, "", DATA);
	take_hard_limit(look, data, written, "", DATA);
	free(status);
	free(limits);
}

/* A system that promises no more than it has counts a mapping in full before it is touched. */
static void take_commit_limit(struct look *look, const char *meminfo)
{
	char *mode = read_proc_text(look, "/proc/sys/vm/overcommit_memory");
	uint64_t limit = find_number(meminfo, "CommitLimit:", 1024, UINT64_MAX);

	if (parse_leading_number(mode) == 2) {
		take_memory_limit(look->out, limit, find_number(meminfo, "Committed_AS:", 1024, 0),
				  "", COMMIT);
		take_hard_limit(look, limit, look->resident, "", COMMIT);
	}
	free(mode);
}

static void take_machine(struct look *look)
{
	char *meminfo = read_proc_text(look, "/proc/meminfo");
	char *status = read_proc_text(look, "/proc/self/status");
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	uint64_t physical = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 1ull << 30;

	look->out->memory = find_number(meminfo, "MemTotal:", 1024, physical);
	look->out->available = find_number(meminfo, "MemAvailable:", 1024, look->out->memory);
	look->swap = find_number(meminfo, "SwapTotal:", 1024, 0);
	look->resident = find_number(status, "RssAnon:", 1024, 0);
	look->out->most = UINT64_MAX;
	*look->out->most_by = '\0';
	*look->out->available_by = '\0';
	take_commit_limit(look, meminfo);
	free(status);
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

int host_limits_read_by(host_read_fn read, void *arg, uint32_t allowed, struct host_limits *out)
{
	struct look look = {.read = read, .arg = arg, .out = out};

	take_machine(&look);
	out->cores = out->allowed = allowed;
	out->quota = UINT64_MAX;
	take_all_groups(&look);
	take_process(&look);
	lower_to(&out->available, out->memory);
	return look.error;
}

int host_limits_read(const char *root, struct host_limits *out)
{
	return host_limits_read_by(read_root_text, (void *)root, count_allowed_cores(), out);
}
