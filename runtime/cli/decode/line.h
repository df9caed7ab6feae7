/* SPDX-License-Identifier: MIT */
/* Reading the lines of a text whose end is known and whose contents are anybody's. */
#ifndef CLI_DECODE_LINE_H
#define CLI_DECODE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct line - a line of a text
 * @at: the rest of it; no zero byte ends it
 * @length: bytes of @at
 * @offset: byte of the text at which the line began
 * @number: number of the line, from 1
 * @whole: a newline ended it
 */
struct line {
	const char *at;
	size_t length;
	uint64_t offset, number;
	bool whole;
};

/**
 * line_next() - take the next line
 * @text: the text
 * @size: its bytes
 * @line: the last line, zeroes before the first one
 * @end: byte behind the last line, 0 before the first one; moved
 *
 * Return: false at the end of the text.
 */
bool line_next(const char *text, size_t size, struct line *line, size_t *end);

/* Takes the next word of the line, if it is @word. Blanks in front of a word are skipped. */
bool line_word(struct line *line, const char *word);

/* Takes the next word, cut to @size bytes with the zero byte. False at the end of the line. */
bool line_take(struct line *line, char *word, size_t size);

/* Takes the next word, if it is a whole number as C writes it. */
bool line_number(struct line *line, uint64_t *value);

/**
 * line_pairs() - take words each of which has a number behind it
 * @names: the words, in their order, in one text with a blank between them
 * @values: a number for each; those that were read before a failure are set
 *
 * Return: whether all of them were there.
 */
bool line_pairs(struct line *line, const char *names, uint64_t *values);

/* Reads a time such as "12.345678" that ends at @end. Return: false if @line has none there. */
bool line_time(const char *line, const char *end, uint64_t *ns);

/* Whether nothing but blanks is left. */
bool line_is_over(const struct line *line);

#endif
