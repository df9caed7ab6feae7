/* SPDX-License-Identifier: MIT */
/* The image that soft devices boot when they are given no other. */
#ifndef EMBENG_FIRMWARE_BUILTIN_PARAMETERS_H
#define EMBENG_FIRMWARE_BUILTIN_PARAMETERS_H

#include "../../uapi/embeng_engine.h"
#include "../../uapi/embeng_firmware.h"

#define BUILTIN_VERSION (0ull << 48 | 1ull << 32)
#define BUILTIN_BUILD_ID "embeng-builtin"

static const struct embeng_fw_parameters builtin_parameters = {
	.step_depth = 8,
	.contexts = 64,
	.queues = 256,
	.regions = 4096,
	.features = EMBENG_CAP_MAPPED_QUEUES | EMBENG_CAP_PIPELINING | EMBENG_CAP_STATISTICS,
	.inline_bytes = 64 * 1024,
	.minimum_version = BUILTIN_VERSION,
	.heartbeat_ms = 1000,
};

/* Zero-ended, one after another. */
static const char builtin_strings[] = "embeng built-in firmware\0MIT";

#endif
