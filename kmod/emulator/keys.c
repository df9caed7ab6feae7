// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keys of emulated devices: what a chip has in fuses is here the keyring .embeng_emu, to which root
 * adds certificates. As soon as it has one, the devices boot signed firmware alone, and check it
 * themselves, whatever the driver thinks of it.
 *
 * The keyring is that of all devices. It lives from emu_keys_init() to emu_keys_exit(), between
 * which all devices come and go; the kernel guards it. Service threads ask here.
 */
#include "../fw_keys.h"
#include "emu.h"

static struct key *fuses;

/**
 * emu_keys_init() - make the keyring
 *
 * Return: 0 or a negative errno.
 */
int emu_keys_init(void)
{
	fuses = embeng_keys_open(".embeng_emu");
	return PTR_ERR_OR_ZERO(fuses);
}

/** emu_keys_exit() - drop the keyring and its keys */
void emu_keys_exit(void)
{
	key_put(fuses);
}

bool port_has_keys(void *host)
{
	return embeng_keys_any(fuses);
}

u32 port_signature(void *host, const void *image, u64 length, const void *message,
		   u64 message_length)
{
	return embeng_keys_check(fuses, image, length, message, message_length);
}
