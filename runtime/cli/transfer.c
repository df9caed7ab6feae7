// SPDX-License-Identifier: MIT
/* Tells of bytes. */
#include <inttypes.h>

#include "interrupt.h"
#include "transfer.h"

const char *bytes_text(uint64_t bytes, char text[BYTES_TEXT])
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes / 1024;
	int unit = 0;

	if (bytes < 1024) {
		snprintf(text, BYTES_TEXT, "%" PRIu64 " bytes", bytes);
		return text;
	}
	/* What would be shown as 1024.0 goes to the next unit. */
	for (; value >= 1023.95 && unit < 5; unit++)
		value /= 1024;
	snprintf(text, BYTES_TEXT, "%.1f %s", value, units[unit]);
	return text;
}

int transfer_progress(void *arg, const struct embeng_progress *progress)
{
	char done[BYTES_TEXT], total[BYTES_TEXT];
	struct transfer *t = arg;

	progress_line(&t->line, "%s: %s of %s", progress->what, bytes_text(progress->done, done),
		      bytes_text(progress->total, total));
	return t->cancels && interrupted();
}
