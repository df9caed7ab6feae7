/* SPDX-License-Identifier: MIT */
/* Specifications of the classic interface, made or refused. */
#ifndef EMBENG_TESTS_CLASSIC_HELP_H
#define EMBENG_TESTS_CLASSIC_HELP_H

#include "checkpoint_help.h"
#include "embeng/classic.h"

static inline struct embeng_classic *make(const struct embeng_classic_spec *spec)
{
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng_classic *c = NULL;

	ck_assert_msg(!embeng_classic_new(spec, &c, &error), "%s", error.text);
	return c;
}

static inline void refuse(const struct embeng_classic_spec *spec, int code, const char *text)
{
	struct embeng_classic *c = (void *)(uintptr_t)7;

	help_expect(embeng_classic_new(spec, &c, NULL), code, text);
	ck_assert_ptr_eq(c, (void *)(uintptr_t)7);
}

static inline struct embeng_table_config table_of(const struct embeng_classic *c, size_t index)
{
	struct embeng_table_config t = {.size = sizeof(t)};

	help_expect_ok(embeng_model_get_table(embeng_classic_model(c), index, &t));
	return t;
}

#endif
