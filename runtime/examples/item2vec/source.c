// SPDX-License-Identifier: MIT
/*
 * Reads a stream line by line, and words errors about it with the file and the line. Files that are
 * not text in UTF-8 or ASCII are told by their first bytes.
 *
 * The line belongs to the struct source and is overwritten by the next one.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "source.h"

static void word_error(struct source *s, const char *format, va_list args)
{
	char what[400];

	vsnprintf(what, sizeof(what), format, args);
	snprintf(s->error, sizeof(s->error), "%.80s:%llu: %s", s->name, (unsigned long long)s->line,
		 what);
}

int source_malformed(struct source *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	word_error(s, format, args);
	va_end(args);
	return -EBADMSG;
}

/* The first bytes of files that are not text as it is read here. */
static const struct {
	const char *bytes;
	size_t length, offset;
	const char *what;
} foreign[] = {
	{"\xff\xfe\0\0", 4, 0, "UTF-32 text; iconv -f UTF-32 -t UTF-8 makes it readable"},
	{"\0\0\xfe\xff", 4, 0, "UTF-32 text; iconv -f UTF-32 -t UTF-8 makes it readable"},
	{"\xff\xfe", 2, 0,
	 "UTF-16 text (little-endian); iconv -f UTF-16 -t UTF-8 makes it readable"},
	{"\xfe\xff", 2, 0, "UTF-16 text (big-endian); iconv -f UTF-16 -t UTF-8 makes it readable"},
	{"\x1f\x8b", 2, 0, "compressed by gzip; zcat FILE | embeng train - reads it"},
	{"\x28\xb5\x2f\xfd", 4, 0, "compressed by zstd; zstdcat FILE | embeng train - reads it"},
	{"\xfd"
	 "7zXZ",
	 5, 0, "compressed by xz; xzcat FILE | embeng train - reads it"},
	{"1AY&SY", 6, 4, "compressed by bzip2; bzcat FILE | embeng train - reads it"},
	{"PK\x03\x04", 4, 0, "a zip archive or a spreadsheet; unzip it or export it as text first"},
	{"PAR1\x15", 5, 0, "a Parquet file; export it as text first"},
	{"SQLite format 3", 15, 0, "an SQLite database; export a table as text first"},
	{"\x89HDF", 4, 0, "an HDF5 file; export it as text first"},
	{"\x93NUMPY", 6, 0, "a NumPy file; export it as text first"},
};

/* UTF-16 without a mark: one of the first two bytes is NUL, and the other is not. */
static const char *guess_wide_text(const char *text, size_t length)
{
	if (length < 2 || !text[0] == !text[1])
		return NULL;
	return text[0] ? "UTF-16 text (little-endian, without a byte order mark); "
			 "iconv -f UTF-16LE -t UTF-8 makes it readable"
		       : "UTF-16 text (big-endian, without a byte order mark); "
			 "iconv -f UTF-16BE -t UTF-8 makes it readable";
}

/* Looks at the first line as it was read, with its end. */
static int check_first_line(struct source *s, size_t length)
{
	const char *what = guess_wide_text(s->text, length), *end;

	for (size_t k = 0; k < sizeof(foreign) / sizeof(foreign[0]); k++) {
		if (length >= foreign[k].offset + foreign[k].length &&
		    !memcmp(s->text + foreign[k].offset, foreign[k].bytes, foreign[k].length)) {
			what = foreign[k].what;
			break;
		}
	}
	if (what)
		return source_malformed(s, "the file is %s", what);
	end = memchr(s->text, '\0', length) ? NULL : memchr(s->text, '\r', length);
	if (end && (size_t)(end - s->text) + 2 < length && end[1] != '\r')
		return source_malformed(s, "lines end with a carriage return alone; "
					   "tr '\\r' '\\n' makes the file readable");
	return 0;
}

static void skip_byte_order_mark(struct source *s)
{
	if (s->length >= 3 && !memcmp(s->text, "\xef\xbb\xbf", 3)) {
		s->length -= 3;
		memmove(s->text, s->text + 3, s->length + 1);
	}
}

static int read_failure(struct source *s, int err)
{
	snprintf(s->error, sizeof(s->error), "%.80s: %s", s->name, strerror(err));
	return -err;
}

static int read_source_line(struct source *s)
{
	ssize_t length;
	int rc;

	errno = 0;
	length = getline(&s->text, &s->capacity, s->stream);
	if (length < 0) {
		int err = errno;

		if (feof(s->stream) && !err)
			return 0;
		return read_failure(s, err ? err : EIO);
	}
	s->line++;
	rc = s->line == 1 ? check_first_line(s, (size_t)length) : 0;
	if (rc)
		return rc;
	if (memchr(s->text, '\0', (size_t)length))
		return source_malformed(s, "the line has a NUL byte; the file must be text");
	if (length && s->text[length - 1] == '\n')
		length--;
	if (length && s->text[length - 1] == '\r')
		length--;
	s->text[length] = '\0';
	s->length = (size_t)length;
	if (s->line == 1)
		skip_byte_order_mark(s);
	return 1;
}

/* Makes a line that was read ahead the current one. */
static void take_ahead(struct source *s)
{
	free(s->text);
	s->text = s->ahead[s->ahead_next];
	s->ahead[s->ahead_next++] = NULL;
	s->length = strlen(s->text);
	s->capacity = s->length + 1;
	s->line++;
}

int source_line(struct source *s)
{
	if (s->ahead_next == s->ahead_count)
		return read_source_line(s);
	take_ahead(s);
	return 1;
}

int source_peek(struct source *s, size_t most)
{
	int rc = 1;

	s->ahead = calloc(most + 1, sizeof(*s->ahead));
	if (!s->ahead)
		return read_failure(s, ENOMEM);
	while (s->ahead_count < most && (rc = read_source_line(s)) > 0) {
		s->ahead[s->ahead_count++] = s->text;
		s->text = NULL;
		s->capacity = 0;
	}
	if (rc >= 0)
		s->line = 0;
	return rc < 0 ? rc : 0;
}

void source_free(struct source *s)
{
	while (s->ahead_next < s->ahead_count)
		free(s->ahead[s->ahead_next++]);
	free(s->ahead);
	s->ahead = NULL;
	s->ahead_count = s->ahead_next = 0;
	free(s->text);
	s->text = NULL;
	s->capacity = 0;
}
