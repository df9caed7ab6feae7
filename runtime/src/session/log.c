// SPDX-License-Identifier: MIT
/*
 * embeng_log() sets the function that gets the sentences of a handle. It is apart from base/log.c,
 * which knows no handle. The log has a lock of its own.
 */
#include "session.h"

void embeng_log(struct embeng *e, embeng_log_fn fn, void *arg, enum embeng_log_level most)
{
	if (session_check(e, "embeng_log"))
		return;
	pthread_mutex_lock(&e->log.lock);
	e->log.fn = fn;
	e->log.arg = arg;
	e->log.most = most;
	pthread_mutex_unlock(&e->log.lock);
}
