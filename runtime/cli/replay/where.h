/* SPDX-License-Identifier: MIT */
/* Says in words which command an entry is about, and which table or feature a memory belongs to. */
#ifndef CLI_REPLAY_WHERE_H
#define CLI_REPLAY_WHERE_H

#include "../recording/recording.h"

/* The COMMAND of an index of a queue that stands last before entry @at, or @at. */
size_t where_find(const struct recording_entry *entries, size_t at, uint32_t queue, uint32_t index);

/* The command of the COMMAND, RUN or DONE at @at, such as "LOOKUP of step 3 (context 0, queue 1)". */
void where_command(const struct recording_entry *entries, size_t at, char *text, size_t size);
void where_run(const struct recording_entry *entries, size_t at, char *text, size_t size);
void where_done(const struct recording_entry *entries, size_t at, char *text, size_t size);

/* An output of the COMMAND at @command, with its feature and table as far as they can be found. */
void where_output(const struct recording_entry *entries, size_t command, uint32_t number,
		  const struct embeng_mem *mem, char *text, size_t size);

#endif
