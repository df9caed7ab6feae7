// SPDX-License-Identifier: MIT
/*
 * Looks at device nodes. A recorded tree cannot have any, since making one takes root, so that a file
 * with a line about the node stands in its place there. This file writes and reads that line.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../frame/exit.h"
#include "tree_parts.h"

#define LINE "node %o owner %u group %u number %u:%u opens %31s"

static int read_node_line(struct tree *tree, const char *path, struct tree_node *node)
{
	char line[TREE_LINE], word[32];
	int err = tree_line(tree, path, line, sizeof(line));

	if (err)
		return err;
	if (sscanf(line, LINE, &node->mode, &node->owner, &node->group, &node->major, &node->minor,
		   word) != 6)
		return -EINVAL;
	node->mode &= 07777;
	node->opens = strcmp(word, "yes") ? -errno_by_name(word) : 0;
	return node->opens || !strcmp(word, "yes") ? 0 : -EINVAL;
}

static void record_node_line(struct tree *tree, const char *path, const struct tree_node *node)
{
	char line[TREE_LINE];
	int length = snprintf(line, sizeof(line),
			      "node %04o owner %u group %u number %u:%u opens %s\n", node->mode,
			      node->owner, node->group, node->major, node->minor,
			      node->opens ? errno_name(node->opens) : "yes");

	record_file(tree, path, line, (size_t)length);
}

static int try_to_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

int tree_node(struct tree *tree, const char *path, struct tree_node *node)
{
	struct stat found;

	*node = (struct tree_node){0};
	if (tree->recorded)
		return read_node_line(tree, path, node);
	if (stat(path, &found))
		return -errno;
	if (!S_ISCHR(found.st_mode))
		return -EINVAL;
	*node = (struct tree_node){
		.mode = found.st_mode & 07777,
		.owner = found.st_uid,
		.group = found.st_gid,
		.major = major(found.st_rdev),
		.minor = minor(found.st_rdev),
		.opens = try_to_open(path),
	};
	record_node_line(tree, path, node);
	return 0;
}
