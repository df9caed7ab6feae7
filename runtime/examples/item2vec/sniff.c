// SPDX-License-Identifier: MIT
/*
 * Judges by the first lines of a file whether they are baskets or ratings, and what separates the
 * columns. Nonsense is learned from a file that is taken for another format, so that a file which
 * may be either is refused with a question.
 *
 * Nothing is kept but what is written into the format of the source.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "look.h"
#include "sniff.h"

/* Lines that are looked at. */
#define SAMPLE 200

enum verdict { NOT_THIS, RATINGS, RATINGS_BY_TIME, QUESTION };

/* Separators that no item has inside come first. */
static const char *const candidates[] = {"::", "\t", ";", ",", "|"};

#define CANDIDATES (sizeof(candidates) / sizeof(candidates[0]))

static bool few_values(const struct look_column *c, size_t lines)
{
	return look_mostly(c->small, lines) && c->value_count < LOOK_VALUES - 2;
}

static bool is_time(const struct look_column *c, size_t lines)
{
	return look_mostly(c->huge + c->dates, lines);
}

static bool has_time(const struct look *look)
{
	for (size_t k = 0; k < look->fields && k < LOOK_COLUMNS; k++) {
		if (is_time(&look->columns[k], look->alike))
			return true;
	}
	return false;
}

/* Columns between ';', '::', '|' or ',': nobody writes baskets so without saying it. */
static enum verdict judge_columns(const struct look *look)
{
	const struct look_column *c = look->columns;
	size_t lines = look->alike;

	if (!look_mostly(lines, look->lines) || look_mostly(c[1].dates, lines))
		return QUESTION;
	if (look->fields == 2)
		return RATINGS;
	if (look->fields == 3 && is_time(&c[2], lines))
		return RATINGS_BY_TIME;
	if (look->fields == 3)
		return look_mostly(c[2].numbers, lines) ? RATINGS : QUESTION;
	if (look->fields != 4 || !look_mostly(c[2].numbers, lines) ||
	    !look_mostly(c[3].numbers + c[3].dates, lines))
		return QUESTION;
	/* A rating and a time that are the other way round. */
	return is_time(&c[2], lines) && !is_time(&c[3], lines) ? QUESTION : RATINGS;
}

/* Three or four columns between tabs, the third of which is a number. */
static enum verdict judge_tab_numbers(const struct look *look)
{
	const struct look_column *c = look->columns;
	size_t lines = look->alike;
	bool rated = few_values(&c[2], lines);
	bool users = look->grouped * 5 >= lines || c[2].fractions;

	if (look->fields == 4)
		return rated && (users || look_mostly(c[3].large + c[3].dates, lines)) ? RATINGS
										       : QUESTION;
	if (is_time(&c[2], lines) && !is_time(&c[0], lines) && !is_time(&c[1], lines))
		return RATINGS_BY_TIME;
	return rated && (users || (c[2].value_count <= 11 && lines >= 10)) ? RATINGS : QUESTION;
}

/* Tabs may separate items, too. Words between tabs are baskets. */
static enum verdict judge_tabs(const struct look *look)
{
	const struct look_column *c = look->columns;
	size_t lines = look->alike;

	if (look->blanks * 5 >= lines)
		return QUESTION;
	if (!look_mostly(lines, look->lines))
		return NOT_THIS;
	if (look->fields == 2)
		return look->grouped ? RATINGS : QUESTION;
	if (look->fields == 3 && look_mostly(c[2].numbers + c[2].dates, lines))
		return judge_tab_numbers(look);
	if (look->fields == 4 && look_mostly(c[2].numbers, lines) &&
	    look_mostly(c[3].numbers + c[3].dates, lines))
		return judge_tab_numbers(look);
	return has_time(look) ? QUESTION : NOT_THIS;
}

/* Blanks separate items, unless the numbers can hardly be any. */
static enum verdict judge_blanks(const struct look *look)
{
	const struct look_column *c = look->columns;
	size_t lines = look->alike;

	if (!look_mostly(lines, look->lines) || look->fields < 2 || look->fields > 4)
		return NOT_THIS;
	if (look->header && lines > 1)
		return RATINGS;
	if (look->fields == 4 && few_values(&c[2], lines) &&
	    look_mostly(c[3].large + c[3].dates, lines))
		return RATINGS;
	if (has_time(look) && !is_time(&c[0], lines))
		return QUESTION;
	/* Lines of one user follow each other; the same first item seldom does. */
	if (look->grouped * 2 < lines)
		return NOT_THIS;
	if (look->fields == 2)
		return look_mostly(c[0].numbers, lines) && look_mostly(c[1].numbers, lines)
			       ? QUESTION
			       : NOT_THIS;
	if (few_values(&c[2], lines))
		return QUESTION;
	return NOT_THIS;
}

static enum verdict judge_look(const struct look *look)
{
	bool comma = !strcmp(look->separator, ",") && look->first_cut;

	if (!strcmp(look->separator, SEPARATOR_BLANK))
		return judge_blanks(look);
	if (look->header && look->first_cut)
		return RATINGS;
	if (!look_mostly(look->cut, look->lines) && !comma)
		return NOT_THIS;
	return strcmp(look->separator, "\t") ? judge_columns(look) : judge_tabs(look);
}

static int ask_format(struct source *s, const char *separator)
{
	char words[SEPARATOR_TEXT], option[SEPARATOR_TEXT];

	s->line = 1;
	separator_words(separator, words);
	separator_option(separator, option);
	return source_malformed(
		s,
		"the lines have %s between columns, but whether they are ratings "
		"or baskets is not clear. Say --format ratings --separator %s, with "
		"--columns unless these are user,item,rating,timestamp, or "
		"--format baskets --separator %s",
		words, option, option);
}

static int take_verdict(struct source *s, const char *separator, enum verdict verdict)
{
	static const struct columns by_time = {
		.by = COLUMNS_BY_PLACE, .count = 3, .places = {0, 1, SIZE_MAX, 2}};

	if (verdict == QUESTION)
		return ask_format(s, separator);
	s->format.kind = verdict == NOT_THIS ? FORMAT_BASKETS : FORMAT_RATINGS;
	snprintf(s->format.separator, SEPARATOR_SIZE, "%s", separator);
	if (verdict == RATINGS_BY_TIME)
		s->format.columns = by_time;
	return 0;
}

/* JSON has commas and colons, which separate other things there. */
static int refuse_json(struct source *s)
{
	const char *at = s->ahead_count ? s->ahead[0] : "";

	at += strspn(at, " \t");
	if ((*at != '{' && *at != '[') || !at[1] || !strchr("\"{[ \t", at[1]))
		return 0;
	s->line = 1;
	return source_malformed(s, "the file is JSON; write its users and items as CSV first");
}

/* The user has said nothing of the kind. */
static int sniff_kind(struct source *s)
{
	struct look look;
	int rc = refuse_json(s);

	if (!rc && *s->format.separator) {
		rc = look_at(s, s->format.separator, &look);
		if (!rc && judge_look(&look) == NOT_THIS)
			return ask_format(s, look.separator);
		return rc ? rc : take_verdict(s, look.separator, judge_look(&look));
	}
	/* Names of columns tell more than the lines below, where texts may have any character. */
	for (size_t k = 0; !rc && k < CANDIDATES; k++) {
		rc = look_at(s, candidates[k], &look);
		if (!rc && look.header && look.first_cut)
			return take_verdict(s, candidates[k], RATINGS);
	}
	for (size_t k = 0; !rc && k < CANDIDATES; k++) {
		rc = look_at(s, candidates[k], &look);
		if (!rc && judge_look(&look) != NOT_THIS)
			return take_verdict(s, candidates[k], judge_look(&look));
	}
	if (!rc)
		rc = look_at(s, SEPARATOR_BLANK, &look);
	return rc ? rc : take_verdict(s, SEPARATOR_BLANK, judge_look(&look));
}

/* Whether ratings can be read with a separator. */
static bool can_separate(const struct look *look, const struct columns *told)
{
	if (told->by == COLUMNS_BY_PLACE && look->fields != told->count)
		return false;
	return (look->header && look->first_cut) ||
	       (look_mostly(look->cut, look->lines) && look_mostly(look->alike, look->lines));
}

/* The user has said that these are ratings, but not with which separator. */
static int sniff_separator(struct source *s)
{
	struct look look;
	int rc;

	for (size_t k = 0; k <= CANDIDATES; k++) {
		const char *separator = k < CANDIDATES ? candidates[k] : SEPARATOR_BLANK;

		rc = look_at(s, separator, &look);
		if (rc)
			return rc;
		if (can_separate(&look, &s->format.columns)) {
			snprintf(s->format.separator, SEPARATOR_SIZE, "%s", separator);
			return 0;
		}
	}
	if (!look.lines)
		return 0;
	s->line = 1;
	return source_malformed(s, "the separator of these ratings is not clear; say --separator "
				   "tab, comma, semicolon, or the characters themselves");
}

static void word_format(const struct source *s, char words[SNIFF_TEXT])
{
	const struct format *f = &s->format;
	char separator[SEPARATOR_TEXT];

	separator_words(*f->separator ? f->separator : ",", separator);
	if (f->kind == FORMAT_BASKETS)
		snprintf(words, SNIFF_TEXT, "a basket on each line, with %s between items",
			 *f->separator ? separator : "blanks");
	else
		snprintf(words, SNIFF_TEXT, "ratings, with %s between the columns%s", separator,
			 f->columns.by == COLUMNS_BY_PLACE && f->columns.count == 3 &&
					 f->columns.places[COLUMN_TIME] == 2
				 ? " user,item,timestamp"
				 : "");
}

int sniff(struct source *s, char words[SNIFF_TEXT])
{
	struct format *f = &s->format;
	bool told = f->kind == FORMAT_BASKETS || (f->kind == FORMAT_RATINGS && *f->separator);
	int rc;

	words[0] = '\0';
	if (f->columns.by != COLUMNS_UNKNOWN)
		f->kind = FORMAT_RATINGS;
	if (told)
		return 0;
	rc = source_peek(s, SAMPLE);
	if (!rc)
		rc = f->kind == FORMAT_UNKNOWN ? sniff_kind(s)
		     : *f->separator	       ? 0
					       : sniff_separator(s);
	if (rc == -ENOMEM)
		snprintf(s->error, sizeof(s->error), "%.80s: out of memory", s->name);
	if (!rc)
		word_format(s, words);
	return rc;
}
