// SPDX-License-Identifier: MIT
/*
 * Checks of the machine itself: the size of its pages and the clock of its processors. They slow
 * the soft device down, and what a program does for a device in hardware.
 */
#include <stdio.h>
#include <string.h>

#include "checks.h"

#define HUGE "/sys/kernel/mm/transparent_hugepage/enabled"
#define PROCESSORS "/sys/devices/system/cpu"

void check_huge_pages(const struct machine *m, const struct function *device, struct finding *f)
{
	char line[TREE_LINE];

	(void)device;
	if (tree_line(m->tree, HUGE, line, sizeof(line))) {
		found_nothing(f, "the kernel does not say whether it has huge pages");
		return;
	}
	if (!strstr(line, "[never]")) {
		found_ok(f, "huge pages are used: %.60s", line);
		return;
	}
	found_warning(f, "huge pages are switched off");
	found_fix(f,
		  "`echo madvise >" HUGE "` as root; transparent_hugepage=madvise on the kernel's "
		  "command line makes it last");
}

/* These drivers call the mode powersave in which the processor itself chooses its clock. */
static bool chooses_itself(const char *driver)
{
	return !strncmp(driver, "intel_pstate", 12) || !strncmp(driver, "amd-pstate", 10) ||
	       !strncmp(driver, "amd_pstate", 10);
}

/* True for the folder of a processor; "cpufreq" and "cpuidle" stand beside them. */
static bool is_processor(const struct machine *m, const char *name)
{
	char path[TREE_PATH];

	return !strncmp(name, "cpu", 3) && name[3] &&
	       strspn(name + 3, "0123456789") == strlen(name + 3) &&
	       tree_kind(m->tree, tree_path(path, PROCESSORS "/%s", name)) == TREE_FOLDER;
}

static bool is_kept_slow(const struct machine *m, const char *processor)
{
	char path[TREE_PATH], governor[32], driver[32];

	tree_path(path, PROCESSORS "/%s/cpufreq/scaling_governor", processor);
	if (tree_line(m->tree, path, governor, sizeof(governor)))
		return false;
	tree_path(path, PROCESSORS "/%s/cpufreq/scaling_driver", processor);
	if (tree_line(m->tree, path, driver, sizeof(driver)))
		*driver = '\0';
	return !strcmp(governor, "conservative") ||
	       (!strcmp(governor, "powersave") && !chooses_itself(driver));
}

void check_governor(const struct machine *m, const struct function *device, struct finding *f)
{
	struct tree_names names;
	size_t all = 0, slow = 0;

	(void)device;
	if (tree_list(m->tree, PROCESSORS, &names)) {
		found_nothing(f, "the kernel does not tell of its processors");
		return;
	}
	for (size_t i = 0; i < names.count; i++) {
		if (!is_processor(m, names.list[i]))
			continue;
		all++;
		slow += is_kept_slow(m, names.list[i]);
	}
	tree_names_free(&names);
	if (!slow) {
		found_ok(f, "none of %zu processors is kept slow", all);
		return;
	}
	found_warning(f, "%zu of %zu processors are kept slow by their governor", slow, all);
	found_fix(f, "`cpupower frequency-set -g schedutil`, or -g performance, as root");
}
