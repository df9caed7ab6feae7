// SPDX-License-Identifier: MIT
/*
 * Reads the Test Anything Protocol, a line at a time, as the bytes come. Whoever prints may be
 * hostile or broken: any bytes are taken, and what is kept of them is bounded.
 *
 * All memory belongs to the struct tap. It has no locks: one thread reads.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../../text/number.h"

#include "tap_read.h"

/* Appends at most @most - @text->length bytes. */
static int append_text(struct tap_text *text, const char *bytes, size_t length, size_t most)
{
	if (length > most - text->length)
		length = most - text->length;
	if (!length)
		return 0;
	if (text->room < text->length + length + 1) {
		size_t room = 2 * text->room > text->length + length + 1
				      ? 2 * text->room
				      : text->length + length + 1;
		char *grown = realloc(text->bytes, room);

		if (!grown)
			return -ENOMEM;
		text->bytes = grown;
		text->room = room;
	}
	memcpy(text->bytes + text->length, bytes, length);
	text->length += length;
	text->bytes[text->length] = '\0';
	return 0;
}

static const char *pass_blanks(const char *at)
{
	return at + strspn(at, " \t");
}

/* Return: what follows @word, where the line begins with it and the word ends there; else NULL. */
static const char *after_word(const char *at, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(at, word, length) || (at[length] && !isspace((unsigned char)at[length])))
		return NULL;
	return at + length;
}

/* Return: the "#" of a directive, which a blank stands before and no backslash; else NULL. */
static const char *find_directive(const char *text)
{
	for (const char *at = text; *at; at++) {
		if (*at == '\\' && at[1]) {
			at++;
			continue;
		}
		if (*at == '#' && (at == text || isspace((unsigned char)at[-1]))) {
			const char *word = pass_blanks(at + 1);

			if (!strncasecmp(word, "skip", 4) || !strncasecmp(word, "todo", 4))
				return at;
		}
	}
	return NULL;
}

/* Copies a description, in which a backslash stands before "#" and before a backslash. */
static char *copy_description(const char *from, size_t length)
{
	char *copy = malloc(length + 1), *to = copy;

	if (!copy)
		return NULL;
	for (size_t i = 0; i < length; i++) {
		if (from[i] == '\\' && i + 1 < length &&
		    (from[i + 1] == '#' || from[i + 1] == '\\'))
			i++;
		*to++ = from[i];
	}
	while (to > copy && isspace((unsigned char)to[-1]))
		to--;
	*to = '\0';
	return copy;
}

static enum tap_result judge_case(bool ok, const char *reason)
{
	if (!strncasecmp(reason, "skip", 4) || (!ok && !strncasecmp(reason, "todo", 4)))
		return TAP_SKIPPED;
	return ok ? TAP_PASSED : TAP_FAILED;
}

static struct tap_case *new_case(struct tap *tap)
{
	if (tap->count == tap->room) {
		size_t room = tap->room ? 2 * tap->room : 64;
		struct tap_case *grown = realloc(tap->cases, room * sizeof(*grown));

		if (!grown)
			return NULL;
		tap->cases = grown;
		tap->room = room;
	}
	return memset(&tap->cases[tap->count], 0, sizeof(*tap->cases));
}

/* @rest is what stands behind "ok" or "not ok". */
static int take_case(struct tap *tap, bool ok, const char *rest, double now)
{
	const char *text = pass_blanks(rest), *directive;
	struct tap_case *new;

	if (tap->count == TAP_CASES) {
		tap->left_out++;
		return 0;
	}
	text = pass_blanks(text + strspn(text, "0123456789"));
	if (*text == '-')
		text = pass_blanks(text + 1);
	directive = find_directive(text);
	new = new_case(tap);
	if (!new)
		return -ENOMEM;
	new->name = copy_description(text, directive ? (size_t)(directive - text) : strlen(text));
	new->reason = strdup(directive ? pass_blanks(directive + 1) : "");
	tap->count++;
	if (!new->name || !new->reason)
		return -ENOMEM;
	new->result = judge_case(ok, new->reason);
	new->seconds = now > tap->since ? now - tap->since : 0;
	tap->since = now;
	return 0;
}

/* Return: true when the line is a plan, "1..N" with a directive or nothing behind it. */
static bool take_plan(struct tap *tap, const char *line)
{
	size_t digits;
	uint64_t planned;
	const char *rest;

	if (strncmp(line, "1..", 3))
		return false;
	digits = strspn(line + 3, "0123456789");
	rest = pass_blanks(line + 3 + digits);
	if (!digits || (*rest && *rest != '#') || number_read(line + 3, digits, 10, &planned))
		return false;
	if (!tap->plans++)
		tap->planned = planned;
	return true;
}

static int take_bail(struct tap *tap, const char *why)
{
	if (tap->bailed)
		return 0;
	tap->bailed = true;
	tap->bail = strdup(pass_blanks(why));
	return tap->bail ? 0 : -ENOMEM;
}

/* Diagnostics of the last test: comments, and what is indented as YAML is. */
static int take_words(struct tap *tap, const char *line)
{
	struct tap_case *last = tap->count ? &tap->cases[tap->count - 1] : NULL;
	int rc;

	if (!last || last->result != TAP_FAILED || (*line != '#' && strncmp(line, "  ", 2)))
		return 0;
	line += *line == '#' ? 1 + (line[1] == ' ') : 2;
	rc = append_text(&last->words, line, strlen(line), TAP_WORDS);
	return rc ? rc : append_text(&last->words, "\n", 1, TAP_WORDS);
}

static int take_tap_line(struct tap *tap, double now)
{
	const char *line = tap->line, *rest;

	while (tap->line_length && tap->line[tap->line_length - 1] == '\r')
		tap->line_length--;
	tap->line[tap->line_length] = '\0';
	tap->line_length = 0;
	rest = after_word(line, "ok");
	if (rest)
		return take_case(tap, true, rest, now);
	rest = after_word(line, "not ok");
	if (rest)
		return take_case(tap, false, rest, now);
	if (take_plan(tap, line))
		return 0;
	if (!strncmp(line, "Bail out!", 9))
		return take_bail(tap, line + 9);
	return take_words(tap, line);
}

int tap_take(struct tap *tap, const char *bytes, size_t length, double now)
{
	size_t kept = TAP_OUTPUT - tap->output.length < length ? TAP_OUTPUT - tap->output.length
							       : length;
	int rc = append_text(&tap->output, bytes, length, TAP_OUTPUT);

	tap->more += length - kept;
	for (size_t i = 0; i < length && !rc; i++) {
		if (bytes[i] == '\n')
			rc = take_tap_line(tap, now);
		else if (tap->line_length < TAP_LINE)
			tap->line[tap->line_length++] = bytes[i];
	}
	return rc;
}

int tap_end(struct tap *tap, double now)
{
	return tap->line_length ? take_tap_line(tap, now) : 0;
}

size_t tap_count(const struct tap *tap, enum tap_result result)
{
	size_t count = 0;

	for (size_t i = 0; i < tap->count; i++)
		count += tap->cases[i].result == result;
	return count;
}

bool tap_spoken(const struct tap *tap)
{
	return tap->count || tap->plans || tap->bailed;
}

void tap_free(struct tap *tap)
{
	for (size_t i = 0; i < tap->count; i++) {
		free(tap->cases[i].name);
		free(tap->cases[i].reason);
		free(tap->cases[i].words.bytes);
	}
	free(tap->cases);
	free(tap->bail);
	free(tap->output.bytes);
	memset(tap, 0, sizeof(*tap));
}
