/* SPDX-License-Identifier: MIT */
/*
 * Parsing names of devices: "soft:cores=4,memory=1G,variant=portable", "/dev/accel/accel0",
 * "pci:0000:01:00.0,path=validated".
 */
#ifndef EMBENG_NAME_H
#define EMBENG_NAME_H

#include <stdbool.h>
#include <stdint.h>

enum name_kind {
	NAME_ANY, /* the first device behind the driver, else soft */
	NAME_SOFT,
	NAME_NODE,
	NAME_PCI,
};

/* How commands reach a device behind the driver. */
enum name_path { NAME_PATH_ANY, NAME_PATH_MAPPED, NAME_PATH_VALIDATED };

struct name {
	enum name_kind kind;
	uint32_t cores;	     /* 0: as many as the machine has */
	uint64_t memory;     /* 0: most of the machine's memory */
	char variant[16];    /* "": the best for this machine */
	uint32_t fetch_rows; /* rows that are fetched ahead; 0: not given */
	uint32_t fetch_form; /* enum kernel_fetch, for lookups */
	bool fetch_default;  /* tune files are not read */
	bool fetch_from_environment;
	char where[64]; /* NAME_NODE: path of the node; NAME_PCI: "0000:01:00.0" */
	enum name_path path;
};

/*
 * name_parse() - parse the name of a device
 * @text: the name; NULL: EMBENG_DEVICE from the environment, or any device if that is not set
 *
 * If there is no variant=, EMBENG_KERNEL in the environment names the kernel variant; without path=
 * it is EMBENG_PATH, and without prefetch= EMBENG_PREFETCH.
 * Return: 0, -EINVAL for a bad option, -ENODEV for a text that is no name of a device.
 */
int name_parse(const char *text, struct name *out);

/* EMBENG_KERNEL from the environment; NULL if it is not set, for the best variant. */
const char *name_kernel(void);

#endif
