/* SPDX-License-Identifier: MIT */
/* Captures the output of a call. */
#ifndef EMBENG_TESTS_CLI_CAPTURE_H
#define EMBENG_TESTS_CLI_CAPTURE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct capture {
	FILE *out, *err;
	char *out_text, *err_text;
	size_t out_size, err_size;
};

static inline void capture_start(struct capture *c)
{
	fflush(NULL);
	c->out = stdout;
	c->err = stderr;
	stdout = open_memstream(&c->out_text, &c->out_size);
	stderr = open_memstream(&c->err_text, &c->err_size);
}

static inline void capture_stop(struct capture *c)
{
	fclose(stdout);
	fclose(stderr);
	stdout = c->out;
	stderr = c->err;
}

/* Both streams must have said exactly this since capture_start(). */
static inline void capture_expect(struct capture *c, const char *out, const char *err)
{
	capture_stop(c);
	ck_assert_str_eq(c->out_text, out);
	ck_assert_str_eq(c->err_text, err);
	free(c->out_text);
	free(c->err_text);
}

static inline void capture_has(const char *name, char *text, const char *wanted)
{
	if (!text || !strstr(text, wanted))
		ck_abort_msg("%s has no '%s': %s", name, wanted, text ? text : "");
	free(text);
}

/* Both streams must contain these texts. */
static inline void capture_expect_in(struct capture *c, const char *out, const char *err)
{
	capture_stop(c);
	capture_has("stdout", c->out_text, out);
	capture_has("stderr", c->err_text, err);
}

#endif
