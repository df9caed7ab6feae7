/* SPDX-License-Identifier: MIT */
/* Suites, their checks, and what depends on what. */
#ifndef CLI_VALIDATE_SUITES_H
#define CLI_VALIDATE_SUITES_H

#include <stdint.h>

#include "subject.h"

/* A check looks at the device and fills in @f, which is zeroed. */
typedef void (*check_fn)(const struct subject *s, struct finding *f);

enum check_place {
	CHECK_ANYWHERE,
	CHECK_BOARD, /* it has no meaning on a soft device */
	CHECK_SOFT,  /* only a soft device has what it looks at */
};

/**
 * struct check - one thing that is proved
 * @proves: a sentence that the check proves; it begins with a small letter
 * @run: NULL in builds that have no devices of the driver
 */
struct check {
	const char *name, *proves;
	check_fn run;
	enum check_place place;
};

enum {
	SUITE_LINK,
	SUITE_DEVICE,
	SUITE_INTERRUPT,
	SUITE_DMA,
	SUITE_MEMORY,
	SUITE_FENCES,
	SUITE_NUMERIC,
	SUITE_THROUGHPUT,
	SUITE_RESET,
	SUITES,
};

#define SUITE_BIT(suite) (1u << (suite))

/**
 * struct suite - checks about one part of a device
 * @checks: in the order in which they run, ended by a name that is NULL
 * @needs: bits of the suites that must not have failed, because this one would say nothing new then
 * @disturbs: other programs on the device lose their tables, so that the caller has to allow it
 * @soft_ms: milliseconds that it took on a soft device with two cores, 0 if all of it is skipped there
 * @board_ms: milliseconds that it took on the emulator, in a virtual machine without KVM
 */
struct suite {
	const char *name, *proves;
	const struct check *checks;
	uint32_t needs;
	bool disturbs;
	uint32_t soft_ms[2], board_ms[2]; /* quick, full */
};

/**
 * struct suite_set - a name for several suites
 * @members: bits of the suites
 * @full: they take the time that they need
 * @hold_s: seconds for which they are repeated, unless the caller says how long
 */
struct suite_set {
	const char *name, *proves;
	uint32_t members;
	bool full;
	int64_t hold_s;
};

#define SUITE_SETS 3

extern const struct suite suites[SUITES];
extern const struct suite_set suite_sets[SUITE_SETS];

/* Number of a suite's checks. */
size_t suite_check_count(const struct suite *suite);

/* Index of the suite with this name, or -1. */
int suite_find(const char *name);

/* The set with this name, or NULL. */
const struct suite_set *suite_set_find(const char *name);

#endif
