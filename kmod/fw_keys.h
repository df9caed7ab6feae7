/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keys that sign firmware: a keyring of X.509 certificates, and the check of a PKCS #7 message
 * against it. All cryptography, the parsing of the message included, is the kernel's.
 *
 * Driver and emulator have a keyring each, and the functions are here so that both check alike. A
 * keyring lives as long as its module. The kernel guards it with locks of its own, and no function
 * here needs one; embeng_keys_check() may sleep.
 */
#ifndef EMBENG_FW_KEYS_H
#define EMBENG_FW_KEYS_H

#include <linux/cred.h>
#include <linux/err.h>
#include <linux/key.h>
#include <linux/types.h>
#include <linux/verification.h>

#include "../uapi/embeng_regs.h"

#ifdef CONFIG_SYSTEM_DATA_VERIFICATION

/**
 * embeng_keys_open() - make a keyring to which root may add certificates
 * @name: name that /proc/keys shows
 *
 * Root may add keys (keyctl padd asymmetric "" %keyring:NAME) and restrict what is added (keyctl
 * restrict_keyring). A key that was added stays until the module is unloaded: KEEP.
 *
 * Return: the keyring, for key_put(), or an error pointer.
 */
static inline struct key *embeng_keys_open(const char *name)
{
	return keyring_alloc(name, GLOBAL_ROOT_UID, GLOBAL_ROOT_GID, current_cred(),
			     (KEY_POS_ALL & ~KEY_POS_SETATTR) | KEY_USR_VIEW | KEY_USR_READ |
				     KEY_USR_WRITE | KEY_USR_SEARCH | KEY_USR_SETATTR,
			     KEY_ALLOC_NOT_IN_QUOTA | KEY_ALLOC_SET_KEEP, NULL, NULL);
}

/**
 * embeng_keys_any() - whether a keyring has a key
 * @keys: from embeng_keys_open()
 *
 * Return: true when there is one, so that a signature is required.
 */
static inline bool embeng_keys_any(const struct key *keys)
{
	return READ_ONCE(keys->keys.nr_leaves_on_tree) > 0;
}

/**
 * embeng_keys_check() - check that a key of a keyring has signed some data
 * @keys: keyring, or VERIFY_USE_SECONDARY_KEYRING
 * @data: bytes that are signed
 * @length: bytes of @data
 * @message: PKCS #7 message, detached
 * @message_length: bytes of @message
 *
 * Return: enum embeng_boot_error, NONE or one of those about signatures, or MEMORY.
 */
static inline u32 embeng_keys_check(struct key *keys, const void *data, size_t length,
				    const void *message, size_t message_length)
{
	switch (verify_pkcs7_signature(data, length, message, message_length, keys,
				       VERIFYING_UNSPECIFIED_SIGNATURE, NULL, NULL)) {
	case 0:
		return EMBENG_BOOT_ERROR_NONE;
	case -ENOMEM:
		return EMBENG_BOOT_ERROR_MEMORY;
	case -EKEYREJECTED:
		return EMBENG_BOOT_ERROR_SIGNATURE_MISMATCH;
	case -ENOKEY:
	case -EKEYREVOKED:
	case -EKEYEXPIRED:
		return EMBENG_BOOT_ERROR_SIGNATURE_KEY;
	default:
		return EMBENG_BOOT_ERROR_SIGNATURE;
	}
}

#else

/* A kernel that cannot check signatures has no keys, and asks for none. */
static inline struct key *embeng_keys_open(const char *name)
{
	return NULL;
}

static inline bool embeng_keys_any(const struct key *keys)
{
	return false;
}

static inline u32 embeng_keys_check(struct key *keys, const void *data, size_t length,
				    const void *message, size_t message_length)
{
	return EMBENG_BOOT_ERROR_SIGNATURE_KEY;
}

#endif

#endif
