/* SPDX-License-Identifier: MIT */
/* Datasets made of text: a basket a line. */
#ifndef EMBENG_TESTS_CLI_BASKETS_H
#define EMBENG_TESTS_CLI_BASKETS_H

#include "runtime/examples/item2vec/basket.h"
#include "cli_text.h"

static inline struct dataset baskets(reader read, const char *text, size_t min_count,
				     size_t min_basket)
{
	struct source s;
	struct collector c;
	struct dataset data;

	ck_assert_int_eq(read_bytes(read, text, strlen(text), &s, &c), 0);
	ck_assert_int_eq(dataset_build(&data, &c, min_count, min_basket), 0);
	collector_free(&c);
	return data;
}

#endif
