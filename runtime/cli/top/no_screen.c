// SPDX-License-Identifier: MIT
/*
 * Stands in for screen.c in a build without ncurses: `embeng top` prints pages then. It owns nothing
 * and takes no lock.
 */
#include <errno.h>

#include "top.h"

int screen_run(struct sampler *sampler, enum order order)
{
	(void)sampler;
	(void)order;
	return -ENOTTY;
}
