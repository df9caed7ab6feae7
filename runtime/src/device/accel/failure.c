// SPDX-License-Identifier: MIT
/*
 * Turns what the driver refused into an error sentence, and finds out whether the context is lost.
 * Every ioctl of this folder that fails ends here, so that one error is worded one way.
 *
 * The lost state is atomic and is kept until the handle is closed; any thread may call.
 */
#include <string.h>
#include <time.h>

#include "accel.h"
#include "base/error.h"

static const char *words_of(uint32_t cause)
{
	switch (cause) {
#define WORDS(name, value, word, text) \
	case value: \
		return text;
		EMBENG_ACCEL_CAUSE_TABLE(WORDS)
#undef WORDS
	}
	return "something happened that this library does not know";
}

static int say_lost(const struct accel *a, int error)
{
	struct embeng_accel_health health = {0};
	const char *since = "", *cause = "";

	if (error != -ESHUTDOWN)
		return fail(error, "%s: the device is gone; close the handle", a->node);
	if (!accel_query(a->fd, EMBENG_ACCEL_QUERY_HEALTH, &health, sizeof(health)) &&
	    health.count) {
		since = ", since ";
		cause = words_of(health.cause);
	}
	return fail(error,
		    "%s: the device was reset%s%s, and this handle's tables are lost; close the "
		    "handle, open the device again and restore a checkpoint",
		    a->node, since, cause);
}

int accel_failed(struct accel *a, int error, const char *what)
{
	switch (error) {
	case -ENODEV:
	case -ESHUTDOWN:
		__atomic_store_n(&a->lost, error, __ATOMIC_RELAXED);
		return say_lost(a, error);
	case -EDQUOT:
		return fail(error,
			    "%s: %s: the context's memory limit, or this user's share of the "
			    "device's contexts, queues and memory, is reached; close other "
			    "handles, free buffers, or use smaller batches (see embeng(4))",
			    a->node, what);
	case -ENOSPC:
		return fail(error,
			    "%s: %s: the device has no place left for it, but for administrators",
			    a->node, what);
	case -ENOMEM:
		return fail(error,
			    "%s: %s: no memory, or beyond the limit of locked memory "
			    "(`ulimit -l`) of this user",
			    a->node, what);
	case -EACCES:
	case -EPERM:
		return fail(error, "%s: %s: permission denied", a->node, what);
	}
	return fail(error, "%s: %s: %s", a->node, what, strerror(-error));
}

/* The driver answers at once, also during a reset, which ends by itself. */
int accel_ended(const struct accel *a)
{
	const struct timespec while_reset = {.tv_nsec = 1000000};
	struct embeng_accel_context_state state;

	for (;;) {
		if (accel_query(a->fd, EMBENG_ACCEL_QUERY_CONTEXT, &state, sizeof(state)))
			return -ENODEV;
		if (state.status != EMBENG_ACCEL_CONTEXT_IN_RESET)
			break;
		nanosleep(&while_reset, NULL);
	}
	return state.status == EMBENG_ACCEL_CONTEXT_LOST ? -ESHUTDOWN : 0;
}

/* A dead ring does not say of what it died. */
static int find_cause(const struct accel *a)
{
	int error = accel_ended(a);

	return error ? error : -ENODEV;
}

int accel_lost(struct device *d, bool dead)
{
	struct accel *a = accel_of(d);
	int error = __atomic_load_n(&a->lost, __ATOMIC_RELAXED);

	if (!error && !dead)
		return 0;
	return accel_failed(a, error ? error : find_cause(a), "");
}

/* The answer that the driver gives behind a reset is told by a ring as well. */
void accel_settle(struct device *d)
{
	(void)accel_ended(accel_of(d));
}
