// SPDX-License-Identifier: MIT
/*
 * Asks the driver, by its folder in sysfs, why it did not take a function. There is no node to ask
 * then, and the kernel's log is not for everybody.
 *
 * Nothing is kept; any thread may call.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "accel.h"

#define DRIVER "/sys/bus/pci/drivers/embeng"

/* The reason in a line of the file, if the line is of @address. */
static const char *match_line(char *line, const char *address)
{
	size_t length = strlen(address);

	line[strcspn(line, "\n")] = 0;
	return !strncmp(line, address, length) && line[length] == ' ' ? line + length + 1 : NULL;
}

int accel_refusal(const char *address, char *text, size_t size)
{
	char line[256];
	const char *reason;
	FILE *file;

	*text = 0;
	if (access(DRIVER, F_OK))
		return -ENOENT;
	file = fopen(DRIVER "/refusals", "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		reason = match_line(line, address);
		if (reason)
			snprintf(text, size, "%s", reason);
	}
	fclose(file);
	return 0;
}
