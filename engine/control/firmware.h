/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_ENGINE_FIRMWARE_H
#define EMBENG_ENGINE_FIRMWARE_H

#include "../../uapi/embeng_firmware.h"
#include "../types.h"

/**
 * struct firmware - the parts of an accepted image that a device keeps
 * @version: the image's
 * @parameters: its boot parameters
 * @tests: where its self-tests begin
 * @tests_length: bytes of them, 0: it has none
 * @test_count: how many they are
 */
struct firmware {
	u64 version;
	struct embeng_fw_parameters parameters;
	u64 tests;
	u64 tests_length;
	u32 test_count;
};

/**
 * firmware_check() - check a whole image, but run nothing of it
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
