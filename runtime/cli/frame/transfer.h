/* SPDX-License-Identifier: MIT */
/* Numbers of bytes as text for people, and the progress line of long transfers. */
#ifndef CLI_TRANSFER_H
#define CLI_TRANSFER_H

#include "embeng.h"

#include "progress.h"

#define BYTES_TEXT 24

/* Writes a number of bytes, such as "17 B" or "12.3 MiB". */
const char *bytes_text(uint64_t bytes, char text[BYTES_TEXT]);

/**
 * struct transfer - argument of transfer_progress()
 * @cancels: a signal that was caught ends the work
 */
struct transfer {
	struct progress line;
	bool cancels;
};

/* Shows progress. It is an embeng_progress_fn; @arg is a struct transfer. */
int transfer_progress(void *arg, const struct embeng_progress *progress);

#endif
