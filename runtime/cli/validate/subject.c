// SPDX-License-Identifier: MIT
/*
 * Finds the files of the validated device in sysfs and reads them. Checks, the refusal to begin and
 * the explanation of a failure all go by these files.
 *
 * Each call opens a file and closes it again. Nothing is written.
 */
#include "subject.h"

#include <stdio.h>
#include <string.h>

#include "../../text/number.h"
#include "errors.h"

bool subject_text(const struct subject *s, const char *attribute, char *text, size_t size)
{
	char path[2 * SUBJECT_PATH];
	FILE *file;
	bool read;

	if (!*s->function)
		return false;
	snprintf(path, sizeof(path), "%s/%s", s->function, attribute);
	file = fopen(path, "re");
	if (!file)
		return false;
	read = fgets(text, (int)size, file) != NULL;
	fclose(file);
	if (read)
		text[strcspn(text, "\n")] = 0;
	return read;
}

bool subject_number(const struct subject *s, const char *attribute, uint64_t *value)
{
	char text[64];

	return subject_text(s, attribute, text, sizeof(text)) &&
	       !number_read(text, strspn(text, "0123456789"), 10, value);
}

uint64_t subject_lost_data(const struct subject *s)
{
	uint64_t now;

	if (!subject_number(s, "counters/ecc_uncorrectable", &now) || now < s->lost_data)
		return 0;
	return now - s->lost_data;
}

void subject_begin(struct subject *s, const char *root)
{
	const char *address = strchr(s->info.address, ':');
	size_t length = strcspn(s->info.name, ",");

	s->soft = !strcmp(s->info.kind, "soft");
	if (s->soft || !address)
		return;
	snprintf(s->node, sizeof(s->node), "%.*s", (int)length, s->info.name);
	snprintf(s->address, sizeof(s->address), "%.31s", address + 1);
	snprintf(s->function, sizeof(s->function), "%.100s/sys/bus/pci/devices/%s", root,
		 s->address);
	if (!subject_number(s, "counters/ecc_uncorrectable", &s->lost_data))
		s->lost_data = 0;
	s->bus_errors = bus_errors_now(s, NULL, 0);
}
