/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_STATUS_TEXT_H
#define EMBENG_STATUS_TEXT_H

#include "wire.h"

/* The negative errno of a status that is not OK. */
int status_errno(uint16_t status);

/* The sentence of a failed command, @what before it. Returns the negative errno. */
int command_error(const char *what, const struct embeng_cqe *c);

#endif
