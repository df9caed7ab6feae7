/* SPDX-License-Identifier: MIT */
/* A temporary folder for a run. */
#ifndef CLI_SCRATCH_H
#define CLI_SCRATCH_H

/* Makes a folder in $TMPDIR or /tmp and sets @path, malloc'd. 0 or a negative errno. */
int scratch_make(char **path);

/* Removes the folder with all files in it, and frees @path. NULL is ignored. */
void scratch_remove(char *path);

#endif
