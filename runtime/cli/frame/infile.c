// SPDX-License-Identifier: MIT
/*
 * Reads a whole file into memory, up to a limit. Its size is not asked for beforehand, because files
 * of the kernel and pipes do not say it. The text belongs to the caller.
 */
#include "infile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_FIRST 65536

static int grow_text(char **text, size_t *capacity, size_t most)
{
	size_t larger = *capacity ? 2 * *capacity : READ_FIRST;
	char *grown;

	if (larger > most)
		larger = most + 2; /* one byte too many is seen, and a zero byte goes behind */
	grown = realloc(*text, larger);
	if (!grown)
		return -ENOMEM;
	*text = grown;
	*capacity = larger;
	return 0;
}

static int read_infile(FILE *file, size_t most, char **text, size_t *length)
{
	size_t capacity = 0, used = 0, got = 1;
	int err = 0;

	while (got && !err && used <= most) {
		if (capacity - used < 2)
			err = grow_text(text, &capacity, most);
		if (err)
			break;
		got = fread(*text + used, 1, capacity - used - 1, file);
		used += got;
		if (!got && ferror(file))
			err = errno ? -errno : -EIO;
	}
	if (!err && used > most)
		err = -EFBIG;
	if (err)
		return err;
	(*text)[used] = '\0';
	*length = used;
	return 0;
}

int infile_read(const char *path, size_t most, char **text, size_t *length)
{
	FILE *file = strcmp(path, "-") ? fopen(path, "re") : stdin;
	int err;

	*text = NULL;
	if (!file)
		return -errno;
	errno = 0;
	err = read_infile(file, most, text, length);
	if (file != stdin)
		fclose(file);
	if (err) {
		free(*text);
		*text = NULL;
	}
	return err;
}
