// SPDX-License-Identifier: MIT
/*
 * Takes lines apart for the readers of text: dumps and traces. Nothing is copied but single words,
 * and nothing behind the end of the text is read.
 */
#include "line.h"

#include <string.h>

#include "../../text/number.h"

#define NS_DIGITS 9

bool line_next(const char *text, size_t size, struct line *line, size_t *end)
{
	const char *newline;
	size_t left = size - *end;

	if (!left)
		return false;
	newline = memchr(text + *end, '\n', left);
	*line = (struct line){.at = text + *end,
			      .length = newline ? (size_t)(newline - (text + *end)) : left,
			      .offset = *end,
			      .number = line->number + 1,
			      .whole = newline};
	*end += line->length + (newline ? 1 : 0);
	/* A text that went through another system may have a carriage return in front of it. */
	if (newline && line->length && line->at[line->length - 1] == '\r')
		line->length--;
	return true;
}

static void skip_line_blanks(struct line *line)
{
	while (line->length && (*line->at == ' ' || *line->at == '\t')) {
		line->at++;
		line->length--;
	}
}

static size_t word_length(const struct line *line)
{
	size_t length = 0;

	while (length < line->length && line->at[length] != ' ' && line->at[length] != '\t')
		length++;
	return length;
}

static void drop_bytes(struct line *line, size_t count)
{
	line->at += count;
	line->length -= count;
}

bool line_word(struct line *line, const char *word)
{
	size_t length = strlen(word);

	skip_line_blanks(line);
	if (word_length(line) != length || memcmp(line->at, word, length) != 0)
		return false;
	drop_bytes(line, length);
	return true;
}

bool line_take(struct line *line, char *word, size_t size)
{
	size_t length, kept;

	skip_line_blanks(line);
	length = word_length(line);
	if (!length)
		return false;
	kept = length < size ? length : size - 1;
	memcpy(word, line->at, kept);
	word[kept] = '\0';
	drop_bytes(line, length);
	return true;
}

bool line_number(struct line *line, uint64_t *value)
{
	struct line rest = *line;
	char word[32];

	if (!line_take(&rest, word, sizeof(word)) || number_read_code(word, value))
		return false;
	*line = rest;
	return true;
}

bool line_pairs(struct line *line, const char *names, uint64_t *values)
{
	char name[32];

	while (*names) {
		size_t length = strcspn(names, " ");

		if (length >= sizeof(name))
			return false;
		memcpy(name, names, length);
		name[length] = '\0';
		if (!line_word(line, name) || !line_number(line, values++))
			return false;
		names += length + (names[length] == ' ');
	}
	return true;
}

bool line_is_over(const struct line *line)
{
	struct line rest = *line;

	skip_line_blanks(&rest);
	return !rest.length;
}

bool line_time(const char *line, const char *end, uint64_t *ns)
{
	const char *point, *begin = end;
	uint64_t seconds, part;
	size_t digits;

	while (begin > line && (begin[-1] == '.' || (begin[-1] >= '0' && begin[-1] <= '9')))
		begin--;
	point = memchr(begin, '.', (size_t)(end - begin));
	if (!point || point == begin)
		return false;
	digits = (size_t)(end - point - 1);
	if (!digits || digits > NS_DIGITS ||
	    number_read(begin, (size_t)(point - begin), 10, &seconds) ||
	    number_read(point + 1, digits, 10, &part) || seconds > UINT64_MAX / 2000000000)
		return false;
	for (; digits < NS_DIGITS; digits++)
		part *= 10;
	*ns = seconds * 1000000000 + part;
	return true;
}
