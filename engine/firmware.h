/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_ENGINE_FIRMWARE_H
#define EMBENG_ENGINE_FIRMWARE_H

#include "../uapi/embeng_firmware.h"
#include "types.h"

/* What a device takes from an image that it accepted. */
struct firmware {
	u64 version;
	struct embeng_fw_parameters parameters;
};

/**
 * firmware_check() - check a whole image
 * @image: private copy
 * @length: its bytes
 * @minimum: lowest version to accept
 * @out: written on success
 * @offset: on failure the byte at fault
 *
 * Return: enum embeng_boot_error.
 */
u32 firmware_check(const void *image, u64 length, u64 minimum, struct firmware *out, u64 *offset);

#endif
