// SPDX-License-Identifier: MIT
/*
 * Reads the kernel's counts of errors on the PCI Express link: three files in sysfs with a line for
 * each kind, such as "Timeout 3" for a replay timer that ran out.
 *
 * Suites link and dma go by the same counts, so they are apart from both.
 */
#include "errors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const aer_files[] = {"aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal"};

static void open_aer_file(const struct subject *s, const char *name, FILE **file)
{
	char path[2 * SUBJECT_PATH];

	snprintf(path, sizeof(path), "%s/%s", s->function, name);
	*file = *s->function ? fopen(path, "re") : NULL;
}

bool bus_errors_known(const struct subject *s)
{
	FILE *file;

	open_aer_file(s, aer_files[0], &file);
	if (file)
		fclose(file);
	return file;
}

static void name_error(char *names, size_t size, const char *kind, uint64_t count)
{
	size_t used = strlen(names);

	snprintf(names + used, size - used, "%s%s %" PRIu64, used ? ", " : "", kind, count);
}

/* The last line of each file is the sum of the others. */
static uint64_t sum_aer_file(FILE *file, char *names, size_t size)
{
	char kind[64];
	uint64_t count, sum = 0;

	while (fscanf(file, "%63s %" SCNu64, kind, &count) == 2) {
		if (!strncmp(kind, "TOTAL", 5))
			continue;
		sum += count;
		if (names && count)
			name_error(names, size, kind, count);
	}
	return sum;
}

uint64_t bus_errors_now(const struct subject *s, char *names, size_t size)
{
	uint64_t sum = 0;

	if (names)
		*names = 0;
	for (size_t i = 0; i < sizeof(aer_files) / sizeof(aer_files[0]); i++) {
		FILE *file;

		open_aer_file(s, aer_files[i], &file);
		if (!file)
			continue;
		sum += sum_aer_file(file, names, size);
		fclose(file);
	}
	return sum;
}

void bus_errors_check(const struct subject *s, struct finding *f)
{
	char names[256];
	uint64_t now = bus_errors_now(s, names, sizeof(names));

	finding_figure(f, (double)(now - s->bus_errors), 0, "errors");
	if (now != s->bus_errors)
		finding_fail(f,
			     "the link reported %" PRIu64 " errors since the first check; since "
			     "the kernel started: %s",
			     now - s->bus_errors, names);
}
