// SPDX-License-Identifier: MIT
/*
 * The text and the place of the file with a machine's measured ways of fetching ahead. Reader and
 * writer are in one file, and the library and the command both compile it: `embeng tune` writes
 * what embeng_open() reads.
 *
 * A text that is read may be anybody's: whatever is wrong with it, it is refused with a sentence.
 * Nothing is kept; any thread may call while nobody changes the environment.
 */
#define _GNU_SOURCE /* secure_getenv */
#include "tune_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../json/json_read.h"
#include "../../json/json_write.h"

#define SCHEMA_NAME "embeng.tune-file/"
#define SCHEMA SCHEMA_NAME "1"
#define LEVELS 4

/* The word behind the number of rows. */
static const char *const form_words[] = {
	[KERNEL_FETCH_SECOND] = "",	 [KERNEL_FETCH_FIRST] = ":l1",
	[KERNEL_FETCH_TOUCH] = ":touch", [KERNEL_FETCH_BURST] = ":burst",
	[KERNEL_FETCH_AGAIN] = ":again",
};

void fetch_way_text(struct fetch_way way, char text[FETCH_WORD])
{
	snprintf(text, FETCH_WORD, "%u%s", way.rows, form_words[way.form]);
}

/* Digits without a sign or a leading zero, at most three of them; 0 for anything else. */
static u32 parse_way_rows(const char *digits, size_t length)
{
	u32 rows = 0;

	if (length > 3 || *digits == '0')
		return 0;
	for (size_t i = 0; i < length; i++)
		rows = rows * 10 + (u32)(digits[i] - '0');
	return rows;
}

/* @forms: the bits of the forms that are allowed */
static bool parse_way(const char *text, u32 forms, struct fetch_way *out)
{
	size_t length = strspn(text, "0123456789");
	u32 rows = parse_way_rows(text, length);

	if (!rows || rows > FETCH_ROWS_MOST)
		return false;
	for (u32 form = 0; form < sizeof(form_words) / sizeof(form_words[0]); form++) {
		if (forms >> form & 1 && !strcmp(text + length, form_words[form])) {
			*out = (struct fetch_way){rows, form};
			return true;
		}
	}
	return false;
}

bool fetch_lookup_parse(const char *text, struct fetch_way *out)
{
	return parse_way(text,
			 1u << KERNEL_FETCH_SECOND | 1u << KERNEL_FETCH_FIRST |
				 1u << KERNEL_FETCH_TOUCH | 1u << KERNEL_FETCH_BURST,
			 out);
}

bool fetch_update_parse(const char *text, struct fetch_way *out)
{
	return parse_way(text, 1u << KERNEL_FETCH_SECOND | 1u << KERNEL_FETCH_AGAIN, out);
}

/* A relative path is to be ignored, says the XDG Base Directory Specification. */
static const char *absolute_folder(const char *variable)
{
	const char *value = secure_getenv(variable);

	return value && *value == '/' ? value : NULL;
}

bool tune_user_path(char path[TUNE_PATH])
{
	const char *config = absolute_folder("XDG_CONFIG_HOME"), *home = absolute_folder("HOME");
	int length = -1;

	if (config)
		length = snprintf(path, TUNE_PATH, "%s/embeng/tune.json", config);
	else if (home)
		length = snprintf(path, TUNE_PATH, "%s/.config/embeng/tune.json", home);
	return length >= 0 && length < TUNE_PATH;
}

const char *tune_named_path(void)
{
	const char *value = secure_getenv("EMBENG_TUNE");

	return value && *value ? value : NULL;
}

static int refuse_text(char why[TUNE_WHY], const char *what)
{
	snprintf(why, TUNE_WHY, "%s", what);
	return -EBADMSG;
}

/* A member that is a text of less than @size bytes, none of them zero. */
static bool take_text(const struct json *object, const char *name, char *to, size_t size)
{
	const struct json *value = json_get(object, name);

	if (!json_is(value, JSON_TEXT) || value->length >= size ||
	    strlen(value->text) != value->length)
		return false;
	memcpy(to, value->text, value->length + 1);
	return true;
}

static bool take_ways(const struct json *document, const char *name, struct fetch_ways *out)
{
	const struct json *ways = json_get(document, name);
	char lookup[FETCH_WORD], update[FETCH_WORD];

	return take_text(ways, "lookup", lookup, sizeof(lookup)) &&
	       take_text(ways, "update", update, sizeof(update)) &&
	       fetch_lookup_parse(lookup, &out->lookup) && fetch_update_parse(update, &out->update);
}

static int take_ways_or_say(const struct json *document, const char *name, struct fetch_ways *out,
			    char why[TUNE_WHY])
{
	if (take_ways(document, name, out))
		return 0;
	snprintf(why, TUNE_WHY,
		 "\"%s\" must have \"lookup\", 1 to %u rows and perhaps :l1, :touch or :burst "
		 "behind them, and \"update\", such rows and perhaps :again",
		 name, FETCH_ROWS_MOST);
	return -EBADMSG;
}

static int take_document(const struct json *document, struct tune *tune, char why[TUNE_WHY])
{
	const struct json *schema = json_get(document, "schema");
	int ret;

	if (!json_is(schema, JSON_TEXT) || strncmp(schema->text, SCHEMA_NAME, strlen(SCHEMA_NAME)))
		return refuse_text(why, "it is not a file of `embeng tune`: it has no \"schema\": "
					"\"" SCHEMA "\"");
	if (!json_says(schema, SCHEMA))
		return refuse_text(why, "it is of another version: its \"schema\" is not "
					"\"" SCHEMA "\"");
	if (!take_text(document, "processor", tune->processor, sizeof(tune->processor)))
		return refuse_text(why, "\"processor\" is not a text of at most 255 bytes");
	if (!take_text(document, "variant", tune->variant, sizeof(tune->variant)))
		return refuse_text(why, "\"variant\" is not a text of at most 15 bytes");
	ret = take_ways_or_say(document, "near", &tune->near, why);
	return ret ? ret : take_ways_or_say(document, "far", &tune->far, why);
}

int tune_parse(const char *text, size_t length, struct tune *out, char why[TUNE_WHY])
{
	const struct json *document;
	struct tune tune = {0};
	char wrong[JSON_WHY];
	int ret = json_read(text, length, LEVELS, &document, wrong);

	if (ret) {
		snprintf(why, TUNE_WHY, "%s", wrong);
		return ret;
	}
	ret = take_document(document, &tune, why);
	json_free(document);
	if (!ret)
		*out = tune;
	return ret;
}

static void write_ways(struct json_writer *w, const char *name, const struct fetch_ways *ways)
{
	char word[FETCH_WORD];

	json_write_object(w, name);
	fetch_way_text(ways->lookup, word);
	json_write_text(w, "lookup", word);
	fetch_way_text(ways->update, word);
	json_write_text(w, "update", word);
	json_write_close(w);
}

int tune_write(const struct tune *tune, char **text, size_t *length)
{
	struct json_writer w;

	json_write_begin(&w, JSON_LINES);
	json_write_object(&w, NULL);
	json_write_text(&w, "schema", SCHEMA);
	json_write_text(&w, "processor", tune->processor);
	json_write_text(&w, "variant", tune->variant);
	write_ways(&w, "near", &tune->near);
	write_ways(&w, "far", &tune->far);
	json_write_close(&w);
	return json_write_end(&w, text, length);
}

bool tune_fits(const struct tune *tune, const char *processor, const char *variant,
	       char why[TUNE_WHY])
{
	if (strcmp(tune->processor, processor))
		snprintf(why, TUNE_WHY, "it was measured on another processor (%s)",
			 tune->processor);
	else if (strcmp(tune->variant, variant))
		snprintf(why, TUNE_WHY,
			 "it was measured with the kernel variant %s, and this is %s",
			 tune->variant, variant);
	else
		return true;
	return false;
}
