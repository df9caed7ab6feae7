/* SPDX-License-Identifier: MIT */
/*
 * The findings of `embeng decode` in a file: parts, each with a sentence and with fields, and the list of
 * what is odd. The readers of the formats fill it; as text and as JSON it says the same.
 */
#ifndef CLI_DECODE_SHEET_H
#define CLI_DECODE_SHEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <json-c/json.h>

#define SHEET_NAME 96
#define SHEET_SENTENCE 640

/* A file may be huge: more parts and more oddities than these are counted and not kept. */
#define SHEET_PARTS_MAX 50000u
#define SHEET_ODD_MAX 1000u

/**
 * struct sheet - the findings
 * @verdict: the sentence that a reader wants first, or ""
 * @parts: array of parts
 * @odd: array of what is odd
 * @part: the part that is being filled; NULL before the first one and beyond SHEET_PARTS_MAX
 * @fields: its fields
 * @name: its name
 * @line: its line in a file of text, from 1; 0 in a binary file
 * @part_count: number of parts
 * @odd_count: number of oddities
 */
struct sheet {
	char verdict[SHEET_SENTENCE];
	struct json_object *parts, *odd, *part, *fields;
	char name[SHEET_NAME];
	uint64_t line;
	uint64_t part_count, odd_count;
};

void sheet_begin(struct sheet *s);
void sheet_end(struct sheet *s);

/* Sets the verdict; the last one counts. */
void sheet_verdict(struct sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Begins a part at a byte of the file. Its name stands in front of everything that is said of it. */
void sheet_part(struct sheet *s, uint64_t offset, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Sets the sentence of the part. */
void sheet_says(struct sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a field of the part. @words: what the value means, or NULL. */
void sheet_number(struct sheet *s, uint64_t offset, const char *field, uint64_t value,
		  const char *words);
void sheet_text(struct sheet *s, uint64_t offset, const char *field, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Notes that something of the part is odd. */
void sheet_odd(struct sheet *s, uint64_t offset, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Prints it as text. */
void sheet_print(const struct sheet *s, FILE *stream);

/* Moves it into a document, as the members "verdict", "parts" and "odd" with the counts of the latter two. */
void sheet_document(struct sheet *s, struct json_object *document);

#endif
