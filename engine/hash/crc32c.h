/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_ENGINE_CRC32C_H
#define EMBENG_ENGINE_CRC32C_H

#include "../types.h"

/**
 * crc32c() - CRC-32C (Castagnoli), in pieces
 * @crc: 0 to begin, then what the last call returned
 * @data: next piece
 * @length: its bytes
 *
 * Return: the checksum of all pieces so far.
 */
u32 crc32c(u32 crc, const void *data, u64 length);

/* The same on any processor. */
u32 crc32c_tables(u32 crc, const void *data, u64 length);

#endif
