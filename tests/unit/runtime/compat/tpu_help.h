/* SPDX-License-Identifier: MIT */
/* Protobufs that tests/golden/tpu.txt and layouts.txt have: lines of words parted by tabs. */
#ifndef TPU_HELP_H
#define TPU_HELP_H

#include <stdint.h>
#include <stdio.h>

#include "test_model.h"

#define GOLDEN_WORDS 5

struct golden {
	FILE *file;
	char *line;
	size_t room;
	char *words[GOLDEN_WORDS]; /* verb, name, ... */
	size_t count;
};

struct bytes {
	uint8_t *data;
	size_t length;
};

static inline void golden_open_file(struct golden *g, const char *name)
{
	char path[4096];

	*g = (struct golden){0};
	ck_assert_ptr_nonnull(getenv("EMBENG_SOURCE_ROOT"));
	snprintf(path, sizeof(path), "%s/tests/golden/%s", getenv("EMBENG_SOURCE_ROOT"), name);
	g->file = fopen(path, "r");
	ck_assert_msg(g->file, "%s", path);
}

static inline void golden_open(struct golden *g)
{
	golden_open_file(g, "tpu.txt");
}

/* The next line whose verb this is; at the end it closes. */
static inline bool golden_next(struct golden *g, const char *verb)
{
	while (getline(&g->line, &g->room, g->file) > 0) {
		char *rest = g->line, *word;

		g->line[strcspn(g->line, "\n")] = '\0';
		for (g->count = 0; g->count < GOLDEN_WORDS && (word = strsep(&rest, "\t"));)
			g->words[g->count++] = word;
		if (!strcmp(g->words[0], verb))
			return true;
	}
	free(g->line);
	fclose(g->file);
	return false;
}

/* "0a00", or "0a00x3": three times that. */
static inline struct bytes golden_bytes(const char *hex)
{
	size_t once = strcspn(hex, "x") / 2,
	       times = hex[2 * once] ? strtoul(hex + 2 * once + 1, NULL, 10) : 1;
	struct bytes b = {malloc(once * times + 1), once * times};

	for (size_t i = 0; i < b.length; i++) {
		unsigned int byte;

		ck_assert_int_eq(sscanf(hex + 2 * (i % once), "%2x", &byte), 1);
		b.data[i] = (uint8_t)byte;
	}
	return b;
}

static inline void assert_bytes(const char *name, const void *got, size_t length, struct bytes want)
{
	size_t at = 0;

	while (at < length && at < want.length && ((const uint8_t *)got)[at] == want.data[at])
		at++;
	ck_assert_msg(length == want.length && at == length,
		      "%s: %zu bytes, not %zu; byte %zu differs", name, length, want.length, at);
}

/* The line's errno, and each of its words in the sentence. */
static inline void assert_words(const struct golden *g, int code)
{
	static const struct {
		const char *name;
		int code;
	} codes[] = {{"EBADMSG", EBADMSG}, {"ERANGE", ERANGE}, {"EINVAL", EINVAL},
		     {"EEXIST", EEXIST},   {"ENOENT", ENOENT}, {"ENOTSUP", ENOTSUP}};
	struct embeng_error error = {.size = sizeof(error)};
	char *rest = g->words[4], *word;
	size_t i = 0;

	embeng_last_error(&error);
	while (i < COUNT(codes) && strcmp(codes[i].name, g->words[3]))
		i++;
	ck_assert_msg(i < COUNT(codes), "%s", g->words[3]);
	ck_assert_msg(code == -codes[i].code, "%s: %d, not %s: %s", g->words[1], code, g->words[3],
		      error.text);
	while ((word = strsep(&rest, "|")))
		ck_assert_msg(strstr(error.text, word), "%s: no \"%s\" in \"%s\"", g->words[1],
			      word, error.text);
}

#endif
