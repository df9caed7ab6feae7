/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_ENGINE_UTF8_H
#define EMBENG_ENGINE_UTF8_H

#include "../types.h"

/**
 * utf8_sequence() - the character that begins here (RFC 3629)
 * @p: text that is ended by a zero; nothing behind that is read
 *
 * Return: its bytes, 0 when it is not well-formed.
 */
static inline u32 utf8_sequence(const u8 *p)
{
	u32 length = p[0] < 0x80 ? 1 : p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2, i;

	if ((p[0] >= 0x80 && p[0] < 0xc2) || p[0] > 0xf4)
		return 0;
	for (i = 1; i < length; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return length;
}

#endif
