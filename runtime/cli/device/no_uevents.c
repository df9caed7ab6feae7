// SPDX-License-Identifier: MIT
/*
 * Stands in for uevents.c in a build without the driver's interface, which has no libudev: there is
 * nothing to listen to. It owns nothing and takes no lock.
 */
#include <poll.h>
#include <stddef.h>

#include "uevents.h"

struct uevents *uevents_open(void)
{
	return NULL;
}

void uevents_close(struct uevents *uevents)
{
	(void)uevents;
}

bool uevents_wait(struct uevents *uevents, int ms, struct uevent *out)
{
	(void)uevents;
	(void)out;
	poll(NULL, 0, ms);
	return false;
}
