/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_ENGINE_SIGNATURE_H
#define EMBENG_ENGINE_SIGNATURE_H

#include "../../uapi/embeng_firmware.h"
#include "../types.h"

/**
 * struct signature - the image and the signature in a file of both
 * @image: bytes of the image, which are signed
 * @block: bytes of the signature with its head and the zeros, from @image on; 0: unsigned
 * @head: its head; zeros if unsigned
 */
struct signature {
	u64 image;
	u64 block;
	struct embeng_fw_signature head;
};

/**
 * signature_find() - look where the image ends in a file, and whether a signature follows
 * @file: private copy
 * @length: its bytes
 * @out: written on success
 * @offset: on failure the byte at fault
 *
 * Nothing else of the image is checked: that is firmware_check(), for the first @out->image bytes.
 * Its signer is not checked either.
 *
 * Return: enum embeng_boot_error.
 */
u32 signature_find(const void *file, u64 length, struct signature *out, u64 *offset);

/**
 * signature_check() - check the form of a signature, as signature_find() does
 * @block: head, message and zeros, a private copy
 * @length: bytes of all that
 * @head: written on success; the message of @head->length bytes follows the head
 * @offset: on failure the byte of @block at fault
 *
 * Return: enum embeng_boot_error.
 */
u32 signature_check(const void *block, u64 length, struct embeng_fw_signature *head, u64 *offset);

#endif
