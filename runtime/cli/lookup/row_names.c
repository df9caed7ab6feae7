// SPDX-License-Identifier: MIT
/*
 * Reads and writes the names of a checkpoint's rows. `embeng train` writes them, and the verbs that
 * read checkpoints find rows by them.
 *
 * Names that were read belong to the struct row_names until row_names_free().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../examples/item2vec/hash.h"
#include "../../text/number.h"
#include "../frame/outfile.h"
#include "embeng.h"
#include "row_names.h"

/* Levels of a program state, as in training.c. */
#define LEVELS 32

struct row_names_mark row_names_mark(char *const *text, size_t count)
{
	struct row_names_mark mark = {.count = count, .hash = HASH_START};

	for (size_t k = 0; k < count; k++) {
		mark.hash = hash_more(mark.hash, text[k], strlen(text[k]));
		mark.hash = hash_more(mark.hash, "\n", 1);
	}
	return mark;
}

void row_names_mark_write(struct json_writer *w, const struct row_names_mark *mark)
{
	char hash[17];

	snprintf(hash, sizeof(hash), "%016" PRIx64, mark->hash);
	json_write_object(w, "names");
	json_write_text(w, "file", ROW_NAMES_FILE);
	json_write_number(w, "count", mark->count);
	json_write_text(w, "hash", hash);
	json_write_close(w);
}

int row_names_mark_read(const struct json *state, struct row_names_mark *mark)
{
	const struct json *object = json_get(state, "names"), *count = json_get(object, "count");
	const char *hash = json_string(json_get(object, "hash"));
	uint64_t read;

	*mark = (struct row_names_mark){0};
	if (!object)
		return 0;
	if (!json_says(json_get(object, "file"), ROW_NAMES_FILE) || !json_is(count, JSON_INTEGER) ||
	    count->negative || !hash || strlen(hash) != 16 || number_read(hash, 16, 16, &read))
		return -EBADMSG;
	*mark = (struct row_names_mark){.count = count->magnitude, .hash = read};
	return 0;
}

static char *path_in(const char *dir)
{
	char *path;

	return asprintf(&path, "%s/" ROW_NAMES_FILE, dir) < 0 ? NULL : path;
}

int row_names_save(const char *dir, char *const *text, size_t count)
{
	char *path = path_in(dir);
	struct outfile file;
	int rc = path ? outfile_open(&file, path) : -ENOMEM;

	free(path);
	if (rc)
		return rc;
	/* A write that fails is reported by the commit. */
	for (size_t k = 0; k < count; k++) {
		fputs(text[k], file.stream);
		putc('\n', file.stream);
	}
	return outfile_commit(&file);
}

static int refuse_names(char error[ROW_NAMES_ERROR], int rc, const char *dir, const char *why)
{
	snprintf(error, ROW_NAMES_ERROR, "%.300s/" ROW_NAMES_FILE ": %.100s", dir, why);
	return rc;
}

/* Reads the whole file, with a zero byte behind it. */
static int read_names_file(const char *dir, char **bytes, size_t *length,
			   char error[ROW_NAMES_ERROR])
{
	char *path = path_in(dir);
	FILE *stream = path ? fopen(path, "re") : NULL;
	struct stat about;
	int err = path ? errno : ENOMEM;

	free(path);
	if (!stream)
		return refuse_names(error, err == ENOENT ? -EBADMSG : -err, dir, strerror(err));
	*bytes = NULL;
	if (!fstat(fileno(stream), &about) && S_ISREG(about.st_mode)) {
		*bytes = malloc((size_t)about.st_size + 1);
		*length = *bytes ? fread(*bytes, 1, (size_t)about.st_size, stream) : 0;
	}
	err = *bytes ? EIO : ENOMEM;
	if (*bytes && !ferror(stream)) {
		(*bytes)[*length] = '\0';
		err = 0;
	}
	fclose(stream);
	if (!err)
		return 0;
	free(*bytes);
	return refuse_names(error, -err, dir, strerror(err));
}

/* Cuts the text into lines, as many as there are rows. */
static int cut_lines(struct row_names *names, size_t length, uint64_t rows)
{
	char *at = names->bytes, *end = at + length;

	/* Each line has a byte at least, so the count is not beyond memory. */
	names->text = rows <= length ? calloc(rows + 1, sizeof(*names->text)) : NULL;
	if (!names->text)
		return rows <= length ? -ENOMEM : -EBADMSG;
	for (; names->count < rows; at++) {
		char *newline = memchr(at, '\n', (size_t)(end - at));

		if (!newline)
			return -EBADMSG;
		*newline = '\0';
		names->text[names->count++] = at;
		at = newline;
	}
	return 0;
}

static int load_marked(const char *dir, const struct row_names_mark *mark, struct row_names *names,
		       char error[ROW_NAMES_ERROR])
{
	size_t length = 0;
	int rc = read_names_file(dir, &names->bytes, &length, error);

	if (rc) {
		names->bytes = NULL;
		return rc;
	}
	rc = cut_lines(names, length, mark->count);
	if (!rc && row_names_mark(names->text, names->count).hash != mark->hash)
		rc = -EBADMSG;
	if (rc) {
		row_names_free(names);
		return refuse_names(error, rc, dir,
				    rc == -ENOMEM
					    ? "out of memory"
					    : "it does not have the names of this checkpoint");
	}
	return 0;
}

int row_names_load(const char *dir, const struct embeng_checkpoint *c, struct row_names *names,
		   char error[ROW_NAMES_ERROR])
{
	struct embeng_checkpoint_info info = EMBENG_INIT(embeng_checkpoint_info);
	struct row_names_mark mark = {0};
	const struct json *state;
	char why[JSON_WHY];
	int rc = embeng_checkpoint_info(c, &info);

	*names = (struct row_names){0};
	/* Other programs' states need not be JSON. */
	if (rc || !info.program_state ||
	    json_read(info.program_state, strlen(info.program_state), LEVELS, &state, why)) {
		refuse_names(error, -ENOENT, dir, "the checkpoint does not name its rows");
		return -ENOENT;
	}
	rc = row_names_mark_read(state, &mark);
	json_free(state);
	if (rc || !mark.count)
		return refuse_names(error, -ENOENT, dir, "the checkpoint does not name its rows");
	return load_marked(dir, &mark, names, error);
}

int row_names_copy(const char *from, const struct embeng_checkpoint *c, const char *to,
		   char error[ROW_NAMES_ERROR])
{
	struct row_names names;
	int rc = row_names_load(from, c, &names, error);

	if (rc)
		return rc;
	rc = row_names_save(to, names.text, names.count);
	row_names_free(&names);
	return rc ? refuse_names(error, rc, to, strerror(-rc)) : 0;
}

int64_t row_names_find(const struct row_names *names, const char *name)
{
	for (size_t k = 0; k < names->count; k++) {
		if (!strcmp(names->text[k], name))
			return (int64_t)k;
	}
	return -ENOENT;
}

void row_names_free(struct row_names *names)
{
	free(names->bytes);
	free(names->text);
	*names = (struct row_names){0};
}
