// SPDX-License-Identifier: MIT
/*
 * Stands in for hot_ask.c in a build without the driver's interface, which cannot ask a context. It
 * owns nothing and takes no lock.
 */
#include <stdio.h>

#include "hot.h"

int hot_ask(struct tree *tree, const struct sample_context *context, struct hot_look *look)
{
	(void)tree;
	(void)context;
	snprintf(look->reason, sizeof(look->reason),
		 "this embeng was built without the driver's interface");
	return 0;
}
