/* SPDX-License-Identifier: MIT */
/* Bytes as people read them, and the progress line of what moves many. */
#ifndef CLI_TRANSFER_H
#define CLI_TRANSFER_H

#include "embeng.h"

#include "progress.h"

#define BYTES_TEXT 24

/* "17 B", "12.3 MiB" */
const char *bytes_text(uint64_t bytes, char text[BYTES_TEXT]);

/**
 * struct transfer - for transfer_progress()
 * @cancels: a signal that was caught ends the work
 */
struct transfer {
	struct progress line;
	bool cancels;
};

/* An embeng_progress_fn; @arg is a struct transfer. */
int transfer_progress(void *arg, const struct embeng_progress *progress);

#endif
