// SPDX-License-Identifier: MIT
/*
 * Writes and reads the headers of tar archives: those of POSIX ustar, the larger sizes of GNU tar, and
 * the pax headers, of which only the comment matters.
 *
 * Only arguments are touched. Archives may come from anywhere and are not trusted.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "../../text/number.h"
#include "tar.h"

/* Numbers are octal digits that end in a blank or zero byte. */
struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100],
		magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155],
		unused[12];
};
_Static_assert(sizeof(struct header) == TAR_BLOCK, "a header is one block");

/* 1980-01-01, as old as tar programs take without a warning: equal checkpoints give equal archives. */
#define MODIFIED 315532800ull
#define OCTAL_SIZE_MOST 077777777777ull /* 8 GiB - 1 */
#define HIGH_BIT 0x80

static void put_octal(char *field, size_t size, uint64_t value)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%0*llo", (int)size - 1, (unsigned long long)value);
	memcpy(field, digits, size);
}

/* A size that octal digits do not hold is in the bytes themselves, the first one marked. */
static void put_size(struct header *h, uint64_t bytes)
{
	if (bytes <= OCTAL_SIZE_MOST) {
		put_octal(h->size, sizeof(h->size), bytes);
		return;
	}
	memset(h->size, 0, sizeof(h->size));
	for (size_t i = 0; i < sizeof(bytes); i++)
		h->size[sizeof(h->size) - 1 - i] = (char)(bytes >> 8 * i);
	h->size[0] = (char)HIGH_BIT;
}

/* The sum of all bytes, those of the sum itself counted as blanks. */
static uint32_t sum_header(const struct header *h)
{
	const unsigned char *bytes = (const unsigned char *)h;
	uint32_t sum = 0;

	for (size_t i = 0; i < sizeof(*h); i++) {
		bool own = i >= offsetof(struct header, sum) && i < offsetof(struct header, type);

		sum += own ? ' ' : bytes[i];
	}
	return sum;
}

void tar_write_header(const struct tar_member *member, char block[TAR_BLOCK])
{
	struct header h = {.type = member->kind == TAR_NOTE_OF_ALL ? 'g' : '0', .magic = "ustar"};

	memcpy(h.name, member->name, strlen(member->name));
	memcpy(h.version, "00", sizeof(h.version));
	put_octal(h.mode, sizeof(h.mode), 0644);
	put_octal(h.uid, sizeof(h.uid), 0);
	put_octal(h.gid, sizeof(h.gid), 0);
	put_octal(h.mtime, sizeof(h.mtime), MODIFIED);
	put_octal(h.major, sizeof(h.major), 0);
	put_octal(h.minor, sizeof(h.minor), 0);
	put_size(&h, member->bytes);
	put_octal(h.sum, sizeof(h.sum) - 1, sum_header(&h));
	h.sum[sizeof(h.sum) - 1] = ' ';
	memcpy(block, &h, sizeof(h));
}

static bool read_octal(const char *field, size_t size, uint64_t *value)
{
	size_t at = 0;

	*value = 0;
	while (at < size && field[at] == ' ')
		at++;
	for (; at < size && field[at] >= '0' && field[at] <= '7'; at++)
		*value = *value << 3 | (uint64_t)(field[at] - '0');
	return at == size || field[at] == ' ' || !field[at];
}

/*
 * The field of the sum is the only one that the sum does not cover: six digits, zero byte and blank, as
 * most programs write it, or the same the other way around.
 */
static bool read_header_sum(const struct header *h, uint64_t *sum)
{
	const char *end = h->sum + 6;

	for (const char *p = h->sum; p < end; p++) {
		if (*p < '0' || *p > '7')
			return false;
	}
	return read_octal(h->sum, 6, sum) &&
	       ((!end[0] && end[1] == ' ') || (end[0] == ' ' && !end[1]));
}

static bool read_member_size(const struct header *h, uint64_t *bytes)
{
	const unsigned char *field = (const unsigned char *)h->size;

	if (!(field[0] & HIGH_BIT))
		return read_octal(h->size, sizeof(h->size), bytes);
	*bytes = 0;
	if (field[0] != HIGH_BIT || field[1] || field[2] || field[3])
		return false;
	for (size_t i = 4; i < sizeof(h->size); i++)
		*bytes = *bytes << 8 | field[i];
	return *bytes <= INT64_MAX;
}

static enum tar_kind kind_of(char type)
{
	switch (type) {
	case '\0':
	case '0':
		return TAR_FILE;
	case '5':
		return TAR_FOLDER;
	case 'x':
		return TAR_NOTE;
	case 'g':
		return TAR_NOTE_OF_ALL;
	default:
		return TAR_OTHER;
	}
}

/* "./NAME" and "NAME" are NAME; a name that is not in the archive's own folder is none here. */
static void read_name(const struct header *h, bool posix, char name[TAR_NAME])
{
	const char *from = h->name;
	size_t most = sizeof(h->name), length;

	name[0] = '\0';
	if (posix && h->prefix[0])
		return;
	while (most > 2 && from[0] == '.' && from[1] == '/') {
		from += 2;
		most -= 2;
	}
	length = strnlen(from, most);
	if (memchr(from, '/', length))
		return;
	memcpy(name, from, length);
	name[length] = '\0';
}

const char *tar_read_header(const char block[TAR_BLOCK], struct tar_member *member)
{
	struct header h;
	uint64_t sum;
	bool posix;

	memcpy(&h, block, sizeof(h));
	posix = !memcmp(h.magic, "ustar\0", 6);
	if (!posix && memcmp(h.magic, "ustar ", 6) != 0)
		return "is not that of a tar archive (POSIX ustar)";
	if (!read_header_sum(&h, &sum) || sum != sum_header(&h))
		return "does not match its checksum";
	if (!read_member_size(&h, &member->bytes))
		return "has a size that is no number";
	member->kind = kind_of(h.type);
	if (member->kind == TAR_FOLDER)
		member->bytes = 0;
	read_name(&h, posix, member->name);
	return NULL;
}

bool tar_all_zero(const char *bytes, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

/* Records that change what the header of a member says. */
static bool changes_member(const char *key, uint64_t length)
{
	static const char *const keys[] = {"path", "size", "linkpath"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		if (strlen(keys[i]) == length && !memcmp(keys[i], key, length))
			return true;
	}
	return length > 11 && !memcmp(key, "GNU.sparse.", 11);
}

const char *tar_check_note(const char *text, uint64_t bytes, const char **comment,
			   uint64_t *comment_bytes)
{
	while (bytes) {
		const char *blank = memchr(text, ' ', bytes), *equals;
		uint64_t length, digits = blank ? (uint64_t)(blank - text) : 0, value;

		if (!digits || number_read(text, digits, 10, &length) || length > bytes ||
		    length < digits + 3 || text[length - 1] != '\n')
			return "has a record whose length is wrong";
		equals = memchr(blank + 1, '=', length - digits - 2);
		if (!equals)
			return "has a record without a value";
		value = (uint64_t)(equals + 1 - text);
		if (changes_member(blank + 1, (uint64_t)(equals - blank - 1)))
			return "renames or resizes a member, which is not read";
		if (equals - blank == 8 && !memcmp(blank + 1, "comment", 7)) {
			*comment = equals + 1;
			*comment_bytes = length - 1 - value;
		}
		text += length;
		bytes -= length;
	}
	return NULL;
}
