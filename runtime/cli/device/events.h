/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_CLI_EVENTS_H
#define EMBENG_CLI_EVENTS_H

#include "../frame/command.h"

/* Prints the event log of a copy of a device's registers, oldest first. Returns an exit code. */
int events_show(const struct output *out, const char *page);

#endif
