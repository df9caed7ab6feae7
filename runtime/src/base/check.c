// SPDX-License-Identifier: MIT
/*
 * Checks that many of the library's structures need: the size of a structure that a program built
 * against another version gives, numbers in a range, names and UTF-8.
 *
 * Only arguments are touched; no lock is needed.
 */
#include <string.h>

#include "../../../engine/blob/utf8.h"
#include "check.h"

/* No structure comes near this; what claims more was never initialized. */
#define CONFIG_SIZE_MAX 4096u

int config_take_grown(void *to, const void *from, size_t before, size_t known, const char *what)
{
	const unsigned char *bytes = from;
	size_t size;

	if (!from)
		return fail(-EINVAL, "struct %s: NULL was given; a structure is needed", what);
	memcpy(&size, from, sizeof(size));
	if ((size < known && size != before) || size > CONFIG_SIZE_MAX)
		return fail(-EINVAL,
			    "struct %s: size %zu is not possible, it is %zu bytes here; set "
			    "size = sizeof(struct %s)",
			    what, size, known, what);
	for (size_t i = known; i < size; i++) {
		if (bytes[i])
			return fail(-EINVAL,
				    "struct %s: byte %zu asks for something that this library "
				    "of %zu bytes does not know; update the library",
				    what, i, known);
	}
	memset(to, 0, known);
	memcpy(to, from, size < known ? size : known);
	return 0;
}

int config_take(void *to, const void *from, size_t known, const char *what)
{
	return config_take_grown(to, from, known, known, what);
}

int number_check(bool ok, const char *where, const char *what, float value, const char *allowed)
{
	return ok ? 0 : fail(-ERANGE, "%s: %s %g must be %s", where, what, (double)value, allowed);
}

int name_check(const char *what, const char *name)
{
	size_t length = strnlen(name, NAME_MAX_BYTES + 1);

	if (!length)
		return fail(-EINVAL, "%s: the name is empty; give 1 to %d bytes", what,
			    NAME_MAX_BYTES);
	if (length > NAME_MAX_BYTES)
		return fail(-EINVAL, "%s \"%.*s...\": the name is longer than %d bytes", what,
			    NAME_MAX_BYTES, name, NAME_MAX_BYTES);
	return 0;
}

size_t utf8_good(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t length = 1;

	for (; *p && length; p += length)
		length = utf8_sequence(p);
	return (size_t)(p - (const unsigned char *)text);
}
