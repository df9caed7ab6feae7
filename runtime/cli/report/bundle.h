/* SPDX-License-Identifier: MIT */
/* The files of a report, kept until all are there, and then written as one tar archive. */
#ifndef CLI_REPORT_BUNDLE_H
#define CLI_REPORT_BUNDLE_H

#include <stdbool.h>
#include <stdio.h>

#include <json-c/json.h>

#include "clean.h"

#define BUNDLE_NAME 80

/**
 * struct bundle_file - a file of the report, or one that is not there
 * @name: name in the archive
 * @words: its description
 * @text: contents; NULL: it is not there
 * @size: bytes of @text
 * @reason: why it is not there
 * @failed: it could not be read, although it may be there
 */
struct bundle_file {
	char name[BUNDLE_NAME];
	char *words, *text;
	size_t size;
	char *reason;
	bool failed;
};

/**
 * struct bundle - the report
 * @clean: every text goes through it
 * @files: [count] in the order in which they were added
 */
struct bundle {
	struct clean clean;
	struct bundle_file *files;
	size_t count;
};

/* Adds a file. @text is freed, and a cleaned copy is kept; NULL: there is no memory. */
void bundle_add(struct bundle *b, const char *name, const char *words, char *text);

/* Notes that a file is not there: @failed says whether that is a fault of the report. */
void bundle_miss(struct bundle *b, const char *name, const char *words, bool failed,
		 const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Number of files that could not be read. */
size_t bundle_failures(const struct bundle *b);

/* Lists the files as the members "files", "missing" and "left_out" of a document. */
void bundle_document(const struct bundle *b, struct json_object *document);

/* Writes the archive, its index first. Return: 0 or -ENOMEM; the stream knows of failed writes. */
int bundle_write(const struct bundle *b, FILE *to);

void bundle_free(struct bundle *b);

#endif
