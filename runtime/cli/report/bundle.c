// SPDX-License-Identifier: MIT
/*
 * Keeps the files of a report in memory and writes them as a tar archive that any tar reads, with an
 * index (README) in front. The format is the one of checkpoints' streams, whose headers are used.
 *
 * A bundle owns copies of all that it is given.
 */
#define _GNU_SOURCE
#include "bundle.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/checkpoint/tar.h"
#include "../frame/document.h"
#include "../frame/output.h"
#include "embeng.h"

#define FOLDER "embeng-report/"

static char *copy_bundle_words(const char *words)
{
	char *copy = strdup(words);

	if (!copy)
		document_no_memory();
	return copy;
}

static struct bundle_file *add_bundle_file(struct bundle *b, const char *name, const char *words)
{
	struct bundle_file *files = reallocarray(b->files, b->count + 1, sizeof(*files));

	if (!files)
		document_no_memory();
	b->files = files;
	files[b->count] = (struct bundle_file){.words = copy_bundle_words(words)};
	snprintf(files[b->count].name, BUNDLE_NAME, "%s", name);
	return &files[b->count++];
}

void bundle_add(struct bundle *b, const char *name, const char *words, char *text)
{
	char *cleaned = text ? clean_text_of(&b->clean, text) : NULL;
	struct bundle_file *f;

	free(text);
	if (!cleaned)
		document_no_memory();
	f = add_bundle_file(b, name, words);
	f->text = cleaned;
	f->size = strlen(cleaned);
}

void bundle_miss(struct bundle *b, const char *name, const char *words, bool failed,
		 const char *format, ...)
{
	struct bundle_file *f = add_bundle_file(b, name, words);
	char *reason = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&reason, format, args) < 0)
		reason = NULL;
	va_end(args);
	f->reason = reason ? clean_text_of(&b->clean, reason) : NULL;
	free(reason);
	if (!f->reason)
		document_no_memory();
	f->failed = failed;
}

size_t bundle_failures(const struct bundle *b)
{
	size_t count = 0;

	for (size_t i = 0; i < b->count; i++)
		count += b->files[i].failed;
	return count;
}

void bundle_document(const struct bundle *b, struct json_object *document)
{
	struct json_object *files = json_object_new_array(), *missing = json_object_new_array();
	struct json_object *left_out = json_object_new_array();

	for (size_t i = 0; i < b->count; i++) {
		const struct bundle_file *f = &b->files[i];
		struct json_object *row = json_object_new_object();

		json_add_text(row, "name", f->name);
		json_add_text(row, "what", f->words);
		if (f->text) {
			json_add_number(row, "bytes", f->size);
			json_object_array_add(files, row);
			continue;
		}
		json_add_text(row, "reason", f->reason);
		json_object_object_add(row, "failed", json_object_new_boolean(f->failed));
		json_object_array_add(missing, row);
	}
	for (size_t i = 0; i < clean_rule_count; i++)
		json_object_array_add(left_out, json_object_new_string(clean_rules[i]));
	json_object_object_add(document, "files", files);
	json_object_object_add(document, "missing", missing);
	json_object_object_add(document, "left_out", left_out);
}

static void write_readme(const struct bundle *b, FILE *to)
{
	fprintf(to,
		"Report of an embedding engine, made by embeng %s.\n\n"
		"All files are text or JSON and can be read without embeng.\n\nFiles:\n",
		embeng_version());
	for (size_t i = 0; i < b->count; i++) {
		if (b->files[i].text)
			fprintf(to, "  %-28s %8zu bytes  %s\n", b->files[i].name, b->files[i].size,
				b->files[i].words);
	}
	fputs("\nNot there:\n", to);
	for (size_t i = 0; i < b->count; i++) {
		if (!b->files[i].text)
			fprintf(to, "  %-28s %s (%s)%s\n", b->files[i].name, b->files[i].reason,
				b->files[i].words, b->files[i].failed ? ": could not be read" : "");
	}
	fputs("\nLeft out on purpose; a word in brackets stands where it was:\n", to);
	for (size_t i = 0; i < clean_rule_count; i++)
		fprintf(to, "  %s\n", clean_rules[i]);
	fputs("\nDumps have the names of tables and features. Look through the files before you "
	      "give them\n"
	      "to others.\n",
	      to);
}

static void write_member(const char *name, const char *text, size_t size, FILE *to)
{
	static const char zeros[TAR_BLOCK];
	struct tar_member member = {.bytes = size, .kind = TAR_FILE};
	char block[TAR_BLOCK];

	snprintf(member.name, sizeof(member.name), FOLDER "%s", name);
	tar_write_header(&member, block);
	fwrite(block, 1, sizeof(block), to);
	fwrite(text, 1, size, to);
	fwrite(zeros, 1, tar_padding(size), to);
}

int bundle_write(const struct bundle *b, FILE *to)
{
	static const char end[2 * TAR_BLOCK];
	char *readme = NULL;
	size_t size;
	FILE *text = open_memstream(&readme, &size);

	if (!text)
		return -ENOMEM;
	write_readme(b, text);
	if (fclose(text)) {
		free(readme);
		return -ENOMEM;
	}
	write_member("README", readme, size, to);
	free(readme);
	for (size_t i = 0; i < b->count; i++) {
		if (b->files[i].text)
			write_member(b->files[i].name, b->files[i].text, b->files[i].size, to);
	}
	fwrite(end, 1, sizeof(end), to);
	return 0;
}

void bundle_free(struct bundle *b)
{
	for (size_t i = 0; i < b->count; i++) {
		free(b->files[i].words);
		free(b->files[i].text);
		free(b->files[i].reason);
	}
	free(b->files);
	clean_free(&b->clean);
	*b = (struct bundle){0};
}
