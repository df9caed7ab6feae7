// SPDX-License-Identifier: MIT
/*
 * Copies what is read of a tree into a folder, which is a recorded tree then.
 *
 * A record is made to be sent to others, so that it leaves out what no check needs: mounts of no
 * control group, members of groups, words of the kernel's command line that change nothing for a
 * device, and lines about other modules. The table below has these files; all others are attributes
 * of the kernel or of a driver, which are copied as they are.
 *
 * Folders and files are made with the rights of their owner only. The first failure is remembered
 * until tree_close().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tree_parts.h"

/* Words of the command line by which a kernel treats devices, memory or modules differently. */
static const char *const kept_words[] = {
	"amd_iommu",
	"default_hugepagesz",
	"hugepages",
	"initcall_blacklist",
	"intel_iommu",
	"iommu",
	"lockdown",
	"mem_encrypt",
	"memmap",
	"module.sig_enforce",
	"module_blacklist",
	"modprobe.blacklist",
	"pci",
	"pcie_aspm",
	"swiotlb",
	"embeng.",
	"transparent_hugepage",
};

static bool begins_with(const char *text, size_t length, const char *word)
{
	return length >= strlen(word) && !memcmp(text, word, strlen(word));
}

static bool is_kept_word(const char *word, size_t length)
{
	for (size_t i = 0; i < sizeof(kept_words) / sizeof(kept_words[0]); i++) {
		if (begins_with(word, length, kept_words[i]))
			return true;
	}
	return false;
}

static void keep_words(FILE *to, const char *text, size_t length)
{
	const char *between = "";

	for (size_t at = 0, end; at < length; at = end + 1) {
		for (end = at; end < length && !strchr(" \n", text[end]); end++)
			;
		if (!is_kept_word(text + at, end - at))
			continue;
		fprintf(to, "%s%.*s", between, (int)(end - at), text + at);
		between = " ";
	}
	fputc('\n', to);
}

/* The name, the password's place and the number; no members. */
static void keep_group(FILE *to, const char *line, size_t length)
{
	size_t end = 0;

	for (int colons = 0; end < length && colons < 3; end++)
		colons += line[end] == ':';
	fprintf(to, "%.*s\n", (int)end, line);
}

static void keep_mount(FILE *to, const char *line, size_t length)
{
	if (memmem(line, length, " - cgroup", 9) || memmem(line, length, " /dev ", 6) ||
	    memmem(line, length, " - hugetlbfs ", 13))
		fprintf(to, "%.*s\n", (int)length, line);
}

static void keep_module(FILE *to, const char *line, size_t length)
{
	if (memmem(line, length, "embeng", 6))
		fprintf(to, "%.*s\n", (int)length, line);
}

static const struct {
	const char *pattern;
	void (*line)(FILE *to, const char *line, size_t length);
} kept_lines[] = {
	{"/etc/group", keep_group},
	{"/etc/modprobe.d/*", keep_module},
	{"/lib/modprobe.d/*", keep_module},
	{"/lib/modules/*/modules.dep", keep_module},
	{"/proc/cmdline", keep_words},
	{"/proc/self/mountinfo", keep_mount},
	{"/run/modprobe.d/*", keep_module},
	{"/usr/lib/modprobe.d/*", keep_module},
	{"/usr/local/lib/modprobe.d/*", keep_module},
};

/* modprobe joins a line that a backslash ends with the next one. */
static size_t find_line_end(const char *data, size_t at, size_t length)
{
	const char *newline = memchr(data + at, '\n', length - at);

	while (newline && newline > data + at && newline[-1] == '\\')
		newline = memchr(newline + 1, '\n', (size_t)(data + length - newline - 1));
	return newline ? (size_t)(newline - data) : length;
}

static void write_kept(FILE *to, const char *path, const char *data, size_t length)
{
	for (size_t i = 0; i < sizeof(kept_lines) / sizeof(kept_lines[0]); i++) {
		if (fnmatch(kept_lines[i].pattern, path, 0))
			continue;
		for (size_t at = 0, end; at < length; at = end + 1) {
			end = find_line_end(data, at, length);
			kept_lines[i].line(to, data + at, end - at);
		}
		return;
	}
	fwrite(data, 1, length, to);
}

static void note_error(struct tree *tree, int error)
{
	if (error && !tree->record_error)
		tree->record_error = error;
}

/* Makes the folders above the last part of @path, and that too if @whole. */
static int make_folders(const struct tree *tree, const char *path, bool whole)
{
	char part[TREE_PATH];
	size_t length = strlen(path);

	if (length >= sizeof(part))
		return -ENAMETOOLONG;
	for (size_t i = 1; i <= length; i++) {
		if (path[i] != '/' && !(whole && i == length))
			continue;
		memcpy(part, path + 1, i - 1);
		part[i - 1] = '\0';
		if (*part && mkdirat(tree->record, part, 0700) && errno != EEXIST)
			return -errno;
	}
	return 0;
}

void record_folder(struct tree *tree, const char *path)
{
	if (tree->record >= 0)
		note_error(tree, make_folders(tree, path, true));
}

/* A file that was read to its end stays when its first line alone is read later. */
static int replace_shorter(const struct tree *tree, const char *name, const char *text,
			   size_t length)
{
	int fd = openat(tree->record, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat there;
	int err = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &there) || there.st_size > (off_t)length) {
		close(fd);
		return 0;
	}
	for (size_t done = 0; !err && done < length;) {
		ssize_t wrote = write(fd, text + done, length - done);

		if (wrote < 0 && errno != EINTR)
			err = -errno;
		done += wrote > 0 ? (size_t)wrote : 0;
	}
	return close(fd) && !err ? -errno : err;
}

static int write_record(const struct tree *tree, const char *path, const char *data, size_t length)
{
	int err = make_folders(tree, path, false);
	char *text = NULL;
	size_t kept;
	FILE *to;

	if (err)
		return err;
	to = open_memstream(&text, &kept);
	if (!to)
		return -ENOMEM;
	write_kept(to, path, data, length);
	err = ferror(to) ? -ENOMEM : 0;
	if (fclose(to) && !err)
		err = -ENOMEM;
	if (!err)
		err = replace_shorter(tree, path + 1, text, kept);
	free(text);
	return err;
}

void record_file(struct tree *tree, const char *path, const void *data, size_t length)
{
	if (tree->record >= 0)
		note_error(tree, write_record(tree, path, data, length));
}

void record_link(struct tree *tree, const char *path, const char *target)
{
	int err;

	if (tree->record < 0)
		return;
	err = make_folders(tree, path, false);
	if (!err && symlinkat(target, tree->record, path + 1) && errno != EEXIST)
		err = -errno;
	note_error(tree, err);
}

static int check_empty(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0), count = 0;
	DIR *folder = copy < 0 ? NULL : fdopendir(copy);

	if (!folder) {
		int err = -errno;

		if (copy >= 0)
			close(copy);
		return err;
	}
	while (count < 3 && readdir(folder))
		count++;
	closedir(folder);
	return count > 2 ? -ENOTEMPTY : 0;
}

int tree_record(struct tree *tree, const char *folder)
{
	int err;

	if (mkdir(folder, 0700) && errno != EEXIST)
		return -errno;
	tree->record = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tree->record < 0)
		return -errno;
	err = check_empty(tree->record);
	if (err) {
		close(tree->record);
		tree->record = -1;
	}
	return err;
}
