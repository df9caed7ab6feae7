/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_STATUS_TEXT_H
#define EMBENG_STATUS_TEXT_H

#include "wire.h"

/* The negative errno for a status that is not OK. */
int status_errno(uint16_t status);

/* Sets the sentence of a failed command, which begins with @what. Returns the negative errno. */
int command_error(const char *what, const struct embeng_cqe *c);

/* In words what EMBENG_REG_BOOT_ERROR says. */
const char *boot_error_text(uint32_t error);

#endif
