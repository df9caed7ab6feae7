// SPDX-License-Identifier: MIT
/*
 * Finds the signature behind a firmware image and checks its form: head, length and the zeros at its
 * end. Others find out who made it, with the keys and the PKCS #7 parser that they have. It is apart
 * from firmware.c because a driver gives image and signature to the device one by one.
 *
 * The file must be memory that nobody changes meanwhile. Nothing is allocated and no lock is
 * needed: the functions look only at their arguments.
 */
#include "signature.h"

#include "../../uapi/embeng_regs.h"
#include "../port.h"

#define AT(member) offsetof(struct embeng_fw_signature, member)

static u32 refuse_signature(u64 *offset, u64 at)
{
	*offset = at;
	return EMBENG_BOOT_ERROR_SIGNATURE;
}

/* The first byte from @at on that is not zero, or @end. */
static u64 find_set_byte(const u8 *block, u64 at, u64 end)
{
	while (at < end && !block[at])
		at++;
	return at;
}

static u32 check_key_id(const u8 *block, const struct embeng_fw_signature *head, u64 *offset)
{
	u64 at;

	if (head->key_id_length > sizeof(head->key_id))
		return refuse_signature(offset, AT(key_id_length));
	at = find_set_byte(block, AT(key_id) + head->key_id_length, sizeof(*head));
	return at < sizeof(*head) ? refuse_signature(offset, at) : EMBENG_BOOT_ERROR_NONE;
}

u32 signature_check(const void *block, u64 length, struct embeng_fw_signature *head, u64 *offset)
{
	struct embeng_fw_signature h;
	u64 end, at;
	u32 error;

	if (length < sizeof(h) || length > EMBENG_FW_SIGNATURE_MAX)
		return refuse_signature(offset, length < sizeof(h) ? length : AT(length));
	memcpy(&h, block, sizeof(h));
	if (h.magic != EMBENG_FW_SIGNATURE_MAGIC)
		return refuse_signature(offset, AT(magic));
	if (h.kind != EMBENG_FW_SIGNATURE_PKCS7)
		return refuse_signature(offset, AT(kind));
	if (!h.length || h.length > length - sizeof(h))
		return refuse_signature(offset, AT(length));
	end = (sizeof(h) + h.length + EMBENG_FW_ALIGN - 1) & ~(u64)(EMBENG_FW_ALIGN - 1);
	if (end != length)
		return refuse_signature(offset, AT(length));
	error = check_key_id(block, &h, offset);
	if (error)
		return error;
	at = find_set_byte(block, sizeof(h) + h.length, end);
	if (at < end)
		return refuse_signature(offset, at);
	*head = h;
	return EMBENG_BOOT_ERROR_NONE;
}

u32 signature_find(const void *file, u64 length, struct signature *out, u64 *offset)
{
	struct signature found = { 0 };
	struct embeng_fw_header header;
	u32 error;

	if (length < sizeof(header)) {
		*offset = length;
		return EMBENG_BOOT_ERROR_LENGTH;
	}
	memcpy(&header, file, sizeof(header));
	if (header.magic != EMBENG_FW_MAGIC) {
		*offset = offsetof(struct embeng_fw_header, magic);
		return EMBENG_BOOT_ERROR_MAGIC;
	}
	if (header.length < sizeof(header) || header.length > length) {
		*offset = offsetof(struct embeng_fw_header, length);
		return EMBENG_BOOT_ERROR_LENGTH;
	}
	found.image = header.length;
	found.block = length - header.length;
	if (found.block) {
		error = signature_check((const u8 *)file + found.image, found.block, &found.head,
					offset);
		if (error) {
			*offset += found.image;
			return error;
		}
	}
	*out = found;
	return EMBENG_BOOT_ERROR_NONE;
}
