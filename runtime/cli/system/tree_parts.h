/* SPDX-License-Identifier: MIT */
/* The inside of a tree, for the files of this folder. */
#ifndef CLI_SYSTEM_TREE_PARTS_H
#define CLI_SYSTEM_TREE_PARTS_H

#include "tree.h"

/**
 * struct tree - the files of a machine
 * @root: descriptor of the folder that stands for /
 * @recorded: it is not this machine's
 * @record: descriptor of the folder to copy into, or -1
 * @record_error: negative errno of the first copy that failed, or 0
 */
struct tree {
	int root;
	bool recorded;
	int record;
	int record_error;
};

/* Opens a path below the root. Return: a descriptor or a negative errno. */
int tree_open_path(const struct tree *tree, const char *path, int flags);

/* These copy into the record, if there is one, and remember what failed. */
void record_file(struct tree *tree, const char *path, const void *data, size_t length);
void record_folder(struct tree *tree, const char *path);
void record_link(struct tree *tree, const char *path, const char *target);

#endif
