/* SPDX-License-Identifier: MIT */
/* The inside of a plug-in: a communicator that is the group's alone, and messages over it. */
#ifndef EMBENG_MPI_PLUGIN_H
#define EMBENG_MPI_PLUGIN_H

#include <errno.h>
#include <stdbool.h>

#include "embeng/mpi.h"

/* Message tags of one group; each next group over the communicator has others. */
#define LINK_TAGS 16

/*
 * struct mpi_link - a communicator on which nobody else sends
 * @groups: number of groups that were opened over it, in the same order on all ranks
 * @tag_most: largest tag
 */
struct mpi_link {
	MPI_Comm comm;
	int rank, ranks, tag_most;
	uint64_t groups;
};

/* The name by which sentences call this MPI. */
extern const char *const mpi_words;

/* Records a sentence, and returns @code. @error may be NULL. */
int mpi_fail(struct embeng_error *error, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* launch.c: refuses to be one of many jobs with one rank each, and too few threads. */
int check_launcher(struct embeng_error *error);
int check_threads(int least, struct embeng_error *error);

/* messages.c: a transport over @link, which stays the caller's. */
int make_transport(struct mpi_link *link, struct embeng_transport *out, struct embeng_error *error);
/*
 * messages.c: ends all use of MPI by groups' threads, for a process that exits. Return: false if a group failed, or
 * left messages behind, so that MPI_Finalize() could wait for ever.
 */
bool messages_end(void);
/* Notes that a group failed, or that messages were left behind. */
void messages_note_left(void);

#endif
