/* SPDX-License-Identifier: MIT */
/* Checks the refusals of blob_parse(). */
#ifndef EMBENG_TESTS_BLOB_REFUSED_H
#define EMBENG_TESTS_BLOB_REFUSED_H

#include "direct_model.h"

struct refusal {
	u16 status;
	u64 element, value, limit;
};

static inline struct embeng_caps blob_caps(void)
{
	struct direct *d = direct_new(1, NULL);
	struct embeng_caps caps = d->engine.caps;

	direct_free(d);
	return caps;
}

static inline void blob_refused(const struct direct_blob *b, const struct embeng_caps *caps,
				struct refusal e)
{
	struct fault fault = {0};
	struct blob parsed;

	ck_assert_uint_eq(blob_parse(b->data, b->length, caps, &parsed, &fault), e.status);
	ck_assert_uint_eq(fault.status, e.status);
	ck_assert_uint_eq(fault.field, EMBENG_FIELD_BLOB);
	ck_assert_uint_eq(fault.feature, EMBENG_NO_INDEX);
	ck_assert_uint_eq(fault.element, e.element);
	ck_assert_uint_eq(fault.value, e.value);
	ck_assert_uint_eq(fault.limit, e.limit);
	blob_free(&parsed);
}

static inline void blob_taken(const struct direct_blob *b)
{
	struct embeng_caps caps = blob_caps();
	struct fault fault = {0};
	struct blob parsed;

	ck_assert_uint_eq(blob_parse(b->data, b->length, &caps, &parsed, &fault), 0);
	ck_assert_uint_eq(parsed.hash, b->header.hash);
	blob_free(&parsed);
}

#endif
