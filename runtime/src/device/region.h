/* SPDX-License-Identifier: MIT */
/* A piece of memory that program and device share. */
#ifndef EMBENG_REGION_H
#define EMBENG_REGION_H

#include <stdbool.h>

#include "wire.h"

/* Zeroed: none. */
struct region {
	char *data;
	uint64_t length;
	struct embeng_mem key;
	bool counted;	 /* in device.region_bytes: the library's own */
	uint32_t handle; /* the device's name for the memory, where it has one */
};

#endif
