/* SPDX-License-Identifier: MIT */
/*
 * Names of the rows of a checkpoint: a text file in its folder, with one name a line, which the
 * checkpoint's program state describes.
 *
 * Names are only ever added at the end. The file is written before the checkpoint, so that after a
 * crash in between an older checkpoint in the folder still finds the names of its rows.
 */
#ifndef CLI_ROW_NAMES_H
#define CLI_ROW_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "../../json/json_read.h"
#include "../../json/json_write.h"

struct embeng_checkpoint;

#define ROW_NAMES_FILE "embeng-items.names"

/**
 * struct row_names_mark - the names by which a program state knows its rows
 * @count: number of rows that have names: rows 0 to @count - 1; 0: there are none
 * @hash: hash of these lines, by which they are recognized
 */
struct row_names_mark {
	uint64_t count, hash;
};

/**
 * struct row_names - names that were read
 * @bytes: the text of the file, cut into lines
 * @text: [count] name of each row
 */
struct row_names {
	char *bytes, **text;
	size_t count;
};

#define ROW_NAMES_ERROR 512

struct row_names_mark row_names_mark(char *const *text, size_t count);

/* Writes the member "names" of a program state. */
void row_names_mark_write(struct json_writer *w, const struct row_names_mark *mark);

/* Reads that member; without one @mark is zero. Return: 0, or -EBADMSG if it is malformed. */
int row_names_mark_read(const struct json *state, struct row_names_mark *mark);

/* Writes the names into a folder, as a whole or not at all. Return: 0 or a negative errno. */
int row_names_save(const char *dir, char *const *text, size_t count);

/**
 * row_names_load() - read the names of a checkpoint's rows
 * @c: checkpoint that is open, from folder @dir
 * @error: on failure, a sentence about the file
 *
 * Return: 0; -ENOENT if the checkpoint does not name its rows; -EBADMSG if the file is missing or is
 * not the one that was saved; -ENOMEM; or the errno of a failed read.
 */
int row_names_load(const char *dir, const struct embeng_checkpoint *c, struct row_names *names,
		   char error[ROW_NAMES_ERROR]);

/* Copies the names of checkpoint @c from folder @from to folder @to. Return: as row_names_load(). */
int row_names_copy(const char *from, const struct embeng_checkpoint *c, const char *to,
		   char error[ROW_NAMES_ERROR]);

/* The row with this name, or -ENOENT. */
int64_t row_names_find(const struct row_names *names, const char *name);

#define ROW_NAMES_NEAR 200

/**
 * row_names_near() - list names that somebody may have meant
 * @text: [count] all names
 * @near: filled with a sentence for a hint
 *
 * Return: @near, or NULL if no name is near.
 */
const char *row_names_near(char *const *text, size_t count, const char *name,
			   char near[ROW_NAMES_NEAR]);

void row_names_free(struct row_names *names);

#endif
