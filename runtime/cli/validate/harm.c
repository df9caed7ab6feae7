// SPDX-License-Identifier: MIT
/*
 * Looks whether somebody else uses the device, and how hot it is. Validation takes time and memory
 * that others then lack, and works the device hard, so it is refused where that could do harm.
 *
 * Everything is read from /proc and sysfs and nothing is kept.
 */
#include "harm.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../frame/exit.h"

#define MILLI 1000.0

static bool read_sensor(const char *folder, const char *name, double *celsius)
{
	char path[2 * SUBJECT_PATH];
	long milli;
	FILE *file;
	bool read;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "re");
	if (!file)
		return false;
	read = fscanf(file, "%ld", &milli) == 1;
	fclose(file);
	*celsius = (double)milli / MILLI;
	return read;
}

bool harm_temperature(const struct subject *s, double *celsius, double *limit)
{
	char pattern[2 * SUBJECT_PATH];
	glob_t found;
	bool read;

	if (!*s->function)
		return false;
	snprintf(pattern, sizeof(pattern), "%s/hwmon/hwmon*", s->function);
	if (glob(pattern, 0, NULL, &found))
		return false;
	read = read_sensor(found.gl_pathv[0], "temp1_input", celsius) &&
	       read_sensor(found.gl_pathv[0], "temp1_crit", limit);
	globfree(&found);
	/* A function that is gone has no critical temperature: its registers cannot be read. */
	if (!read || *limit <= 0)
		return false;
	*limit -= HARM_MARGIN_C;
	return true;
}

/* Whether an open file is the device's, with memory or work on it. */
static bool uses_device(FILE *fdinfo, const char *address)
{
	bool ours = false, used = false;
	char line[128], key[64], value[64];

	while (fgets(line, sizeof(line), fdinfo)) {
		if (sscanf(line, "%63[^:]: %63s", key, value) != 2)
			continue;
		if (!strcmp(key, "drm-pdev"))
			ours = !strcmp(value, address);
		else if (!strncmp(key, "drm-total-", 10) || !strncmp(key, "drm-engine-", 11))
			used |= strtoull(value, NULL, 10) > 0;
	}
	return ours && used;
}

static bool file_uses_device(const char *path, const char *address)
{
	FILE *file = fopen(path, "re");
	bool uses;

	if (!file)
		return false;
	uses = uses_device(file, address);
	fclose(file);
	return uses;
}

static bool process_uses_device(const char *proc, const char *pid, const char *address)
{
	char pattern[2 * SUBJECT_PATH];
	bool uses = false;
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/%.20s/fdinfo/*", proc, pid);
	if (glob(pattern, GLOB_NOSORT, NULL, &found))
		return false;
	for (size_t i = 0; i < found.gl_pathc && !uses; i++)
		uses = file_uses_device(found.gl_pathv[i], address);
	globfree(&found);
	return uses;
}

static void name_process(const char *proc, const char *pid, char *text, size_t size)
{
	char path[2 * SUBJECT_PATH], name[32] = "a program";
	FILE *file;

	snprintf(path, sizeof(path), "%s/%.20s/comm", proc, pid);
	file = fopen(path, "re");
	if (file) {
		if (fgets(name, sizeof(name), file))
			name[strcspn(name, "\n")] = 0;
		fclose(file);
	}
	snprintf(text, size, "%s (process %.20s) uses it", name, pid);
}

static bool find_process(const struct subject *s, const char *proc, char *text, size_t size)
{
	DIR *folder = opendir(proc);
	const struct dirent *entry;
	bool found = false;

	if (!folder)
		return false;
	while (!found && (entry = readdir(folder))) {
		if (!isdigit((unsigned char)*entry->d_name) || atol(entry->d_name) == getpid())
			continue;
		found = process_uses_device(proc, entry->d_name, s->address);
		if (found)
			name_process(proc, entry->d_name, text, size);
	}
	closedir(folder);
	return found;
}

bool harm_find_program(const struct subject *s, const char *root, char *text, size_t size)
{
	char proc[SUBJECT_PATH];
	uint64_t used;

	if (!*s->address)
		return false;
	snprintf(proc, sizeof(proc), "%.100s/proc", root);
	if (find_process(s, proc, text, size))
		return true;
	if (!subject_number(s, "table_memory_used", &used) || !used)
		return false;
	snprintf(text, size, "tables of another program take %" PRIu64 " bytes of its memory",
		 used);
	return true;
}

int harm_refuse(const struct subject *s, bool force, const struct output *out)
{
	double celsius, limit;
	char text[128];

	if (harm_temperature(s, &celsius, &limit) && celsius > limit)
		return output_fail(out, CLI_BUSY, EBUSY, "Let it cool, and see to its air flow",
				   "%s has %.1f degrees Celsius; validation begins below %.1f",
				   s->node, celsius, limit);
	if (!force && harm_find_program(s, "", text, sizeof(text)))
		return output_fail(out, CLI_BUSY, EBUSY, "End it first, or give --force",
				   "%s is in use: %s", s->node, text);
	return 0;
}
