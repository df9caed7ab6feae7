/* SPDX-License-Identifier: MIT */
/* Names of devices: "soft:cores=4,memory=1G,variant=portable". */
#ifndef EMBENG_NAME_H
#define EMBENG_NAME_H

#include <stdint.h>

enum name_kind { NAME_SOFT };

struct name {
	enum name_kind kind;
	uint32_t cores;	 /* 0: as many as there are */
	uint64_t memory; /* 0: most of the machine's */
	char variant[16]; /* "": the best */
};

/*
 * name_parse() - what a name asks for
 * @text: NULL: the environment's EMBENG_DEVICE, else the soft device
 *
 * Without variant= the environment's EMBENG_KERNEL names the kernel variant.
 * Return: 0, -EINVAL for a bad option, -ENODEV for what this build cannot open.
 */
int name_parse(const char *text, struct name *out);

/* The environment's EMBENG_KERNEL, or NULL: the best variant. */
const char *name_kernel(void);

#endif
