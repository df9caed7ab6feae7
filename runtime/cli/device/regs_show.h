/* SPDX-License-Identifier: MIT */
/* Registers that are chosen by name, for people and as a document. */
#ifndef CLI_DEVICE_REGS_SHOW_H
#define CLI_DEVICE_REGS_SHOW_H

#include "../frame/output.h"

#define REGS_NAMES_MAX 128

/* Names of registers and groups, and REGISTER.FIELD; with a count of 0 all registers. */
struct regs_chosen {
	size_t count;
	const char *names[REGS_NAMES_MAX];
};

/* @device is the name to show, as the caller of the command may have given none. */
int regs_show(const struct output *out, const struct regs_chosen *chosen, const char *device,
	      const char *page);

struct json_object *regs_document(const struct output *out, const struct regs_chosen *chosen,
				  const char *device, const char *page);

#endif
