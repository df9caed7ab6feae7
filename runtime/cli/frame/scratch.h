/* SPDX-License-Identifier: MIT */
/* A folder that lives as long as a run. */
#ifndef CLI_SCRATCH_H
#define CLI_SCRATCH_H

/* Made in $TMPDIR, else /tmp; malloc'd in @path. 0 or a negative errno. */
int scratch_make(char **path);

/* With all that is in it; frees @path. NULL is fine. */
void scratch_remove(char *path);

#endif
