/* SPDX-License-Identifier: MIT */
/* A piece of memory that the program and the device share. */
#ifndef EMBENG_REGION_H
#define EMBENG_REGION_H

#include <stdbool.h>

#include "wire.h"

/* A zeroed struct is no region. */
struct region {
	char *data;
	uint64_t length;
	struct embeng_mem key;
	bool counted;	 /* counted in device.region_bytes, since the library made it for itself */
	bool foreign;	 /* the program's own memory: only its registration ends */
	bool plain;	 /* memory of the process that the device does not reach */
	uint32_t handle; /* the driver's handle of the memory, if there is one */
};

#endif
