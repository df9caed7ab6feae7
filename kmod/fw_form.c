// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device's own check of an image, for the driver: the files of the engine that look at its
 * structure and hashes, compiled here with the kernel's SHA-256. So both refuse the same images for
 * the same byte, and the driver does so before anything is reset.
 *
 * It is a file of its own because it brings the engine's types and names, which no other file of
 * the driver has. The functions look only at their arguments, and no lock is needed.
 */
#include <crypto/sha2.h>

/* engine/hash/sha256.h is left out: its names are the kernel's, too. */
#define EMBENG_ENGINE_SHA256_H
#define SHA256_BYTES SHA256_DIGEST_SIZE

static void sha256_digest(const void *data, u64 length, u8 digest[SHA256_BYTES])
{
	sha256(data, length, digest);
}

#include "../engine/control/signature.c"
#include "../engine/control/firmware.c"

/**
 * selftest_check() - check that vectors follow each other without gaps
 * @tests: content of the section
 * @length: bytes of @tests
 * @count: out, how many vectors there are
 * @offset: out on failure, the byte at fault
 *
 * Those who run a vector check what is in it; the driver runs none.
 *
 * Return: enum embeng_boot_error.
 */
u32 selftest_check(const u8 *tests, u64 length, u32 *count, u64 *offset)
{
	struct embeng_fw_self_test test;
	u64 at = 0;

	*count = 0;
	do {
		*offset = at;
		if (length - at < sizeof(test))
			return EMBENG_BOOT_ERROR_CONTENT;
		memcpy(&test, tests + at, sizeof(test));
		if (!test.length || test.length % EMBENG_FW_ALIGN || test.length > length - at)
			return EMBENG_BOOT_ERROR_CONTENT;
		at += test.length;
		++*count;
	} while (at < length);
	return EMBENG_BOOT_ERROR_NONE;
}
