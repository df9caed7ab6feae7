// SPDX-License-Identifier: MIT
/*
 * Numbers of bytes as people read them, and the progress line of operations that move many. The
 * verbs that read or write checkpoints share the line, and many more print bytes.
 */
#include "interrupt.h"
#include "transfer.h"

const char *bytes_text(uint64_t bytes, char text[BYTES_TEXT])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	size_t unit = 0;

	/* A value that would be shown as 1024.0 goes to the next unit. */
	for (; value >= (unit ? 1023.95 : 1024); unit++)
		value /= 1024;
	snprintf(text, BYTES_TEXT, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return text;
}

int transfer_progress(void *arg, const struct embeng_progress *progress)
{
	char done[BYTES_TEXT], total[BYTES_TEXT];
	struct transfer *t = arg;

	if (progress->total)
		progress_line(&t->line, "%s: %s of %s", progress->what,
			      bytes_text(progress->done, done), bytes_text(progress->total, total));
	else
		progress_line(&t->line, "%s: %s", progress->what, bytes_text(progress->done, done));
	return t->cancels && interrupted();
}
