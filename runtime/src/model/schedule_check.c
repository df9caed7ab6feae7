// SPDX-License-Identifier: MIT
/*
 * Checks the settings of a schedule, and says in a sentence which one is wrong and what is allowed.
 *
 * Only arguments are touched; no lock is needed.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/check.h"
#include "schedule.h"

static int piecewise_check(const char *where, const struct embeng_schedule *s)
{
	if (!s->boundaries || !s->values || !s->boundary_count)
		return fail(-EINVAL,
			    "%s: boundaries, values and boundary_count from 1 must be given",
			    where);
	for (size_t i = 0; i <= s->boundary_count; i++) {
		char what[48];
		int code;

		snprintf(what, sizeof(what), "values[%zu]", i);
		code = number_check(isfinite(s->values[i]), where, what, s->values[i], "finite");
		if (code)
			return code;
	}
	for (size_t i = 1; i < s->boundary_count; i++) {
		if (s->boundaries[i - 1] >= s->boundaries[i])
			return fail(-EINVAL,
				    "%s: boundaries[%zu] %" PRIu64
				    " is not above the one before, %" PRIu64,
				    where, i, s->boundaries[i], s->boundaries[i - 1]);
	}
	return 0;
}

static int polynomial_check(const char *where, const struct embeng_schedule *s)
{
	int code = number_check(isfinite(s->end_learning_rate), where, "end_learning_rate",
				s->end_learning_rate, "finite");

	return code ? code
		    : number_check(s->power >= 0.0f && isfinite(s->power), where, "power", s->power,
				   "0 or above, and finite");
}

/* Checks the kinds that decay. */
static int decay_check(const char *where, const struct embeng_schedule *s)
{
	if (!s->decay_steps)
		return fail(-ERANGE, "%s: decay_steps 0 must be 1 or above", where);
	if (s->kind == EMBENG_SCHEDULE_POLYNOMIAL)
		return polynomial_check(where, s);
	if (s->kind == EMBENG_SCHEDULE_COSINE)
		return number_check(isfinite(s->alpha), where, "alpha", s->alpha, "finite");
	return number_check(s->decay_rate >= 0.0f && isfinite(s->decay_rate), where, "decay_rate",
			    s->decay_rate, "0 or above, and finite");
}

int schedule_check(const char *where, const struct embeng_schedule *s)
{
	int code;

	if (!embeng_schedule_text(s->kind))
		return fail(-EINVAL,
			    "%s: schedule kind %d is unknown; there are those from "
			    "EMBENG_SCHEDULE_CONSTANT to EMBENG_SCHEDULE_PIECEWISE",
			    where, (int)s->kind);
	code = number_check(isfinite(s->warmup_learning_rate), where, "warmup_learning_rate",
			    s->warmup_learning_rate, "finite");
	if (code)
		return code;
	if (s->kind == EMBENG_SCHEDULE_PIECEWISE)
		return piecewise_check(where, s);
	code = number_check(isfinite(s->learning_rate), where, "learning_rate", s->learning_rate,
			    "finite");
	if (code || s->kind == EMBENG_SCHEDULE_CONSTANT)
		return code;
	return decay_check(where, s);
}

const char *embeng_schedule_text(enum embeng_schedule_name kind)
{
	static const char *const names[] = {
		[EMBENG_SCHEDULE_CONSTANT] = "constant",
		[EMBENG_SCHEDULE_EXPONENTIAL] = "exponential",
		[EMBENG_SCHEDULE_INVERSE_TIME] = "inverse_time",
		[EMBENG_SCHEDULE_POLYNOMIAL] = "polynomial",
		[EMBENG_SCHEDULE_COSINE] = "cosine",
		[EMBENG_SCHEDULE_PIECEWISE] = "piecewise",
	};

	return (unsigned int)kind <= EMBENG_SCHEDULE_PIECEWISE ? names[kind] : NULL;
}
