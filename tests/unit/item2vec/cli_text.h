/* SPDX-License-Identifier: MIT */
/* Gives text to the readers of the command and checks their result. */
#ifndef EMBENG_TESTS_CLI_TEXT_H
#define EMBENG_TESTS_CLI_TEXT_H

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/examples/item2vec/source.h"

typedef int (*reader)(struct source *s, struct collector *c);

static inline int read_bytes(reader read, const char *text, size_t length, struct source *s,
			     struct collector *c)
{
	int rc;

	*s = (struct source){.stream = fmemopen((void *)text, length, "r"), .name = "file"};
	*c = (struct collector){0};
	ck_assert_ptr_nonnull(s->stream);
	rc = read(s, c);
	fclose(s->stream);
	source_free(s);
	return rc;
}

/* Every use in order, as "basket:item basket:item". */
static inline void expect_uses(reader read, const char *text, const char *expected)
{
	struct source s;
	struct collector c;
	char all[1024] = "";
	int rc = read_bytes(read, text, strlen(text), &s, &c);

	ck_assert_msg(rc == 0, "%s", s.error);
	for (size_t k = 0; k < c.use_count; k++) {
		size_t at = strlen(all);

		snprintf(all + at, sizeof(all) - at, "%s%s:%s", k ? " " : "",
			 c.baskets.text[c.uses[k].basket], c.items.text[c.uses[k].item]);
	}
	ck_assert_str_eq(all, expected);
	collector_free(&c);
}

/* The reader refuses, and its sentence begins as expected. */
static inline void expect_malformed(reader read, const char *text, const char *sentence)
{
	struct source s;
	struct collector c;
	int rc = read_bytes(read, text, strlen(text), &s, &c);

	ck_assert_int_eq(rc, -EBADMSG);
	ck_assert_msg(!strncmp(s.error, sentence, strlen(sentence)), "%s", s.error);
	collector_free(&c);
}

#endif
