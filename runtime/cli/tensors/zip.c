// SPDX-License-Identifier: MIT
/*
 * Reads the directory of a zip, which lies at its end. Only where members are is read here; their
 * bytes are read by whoever wants them.
 *
 * The list of members belongs to the struct zip.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "zip.h"

#define END_BYTES 22u	    /* end of the directory, without its comment */
#define COMMENT_MOST 65535u /* longest comment behind it */
#define LOCATOR_BYTES 20u   /* zip64: says where the larger end is */
#define LARGE_END_BYTES 56u
#define ENTRY_BYTES 46u /* an entry of the directory, without its name */
#define LOCAL_BYTES 30u /* the header before a member's bytes, without its name */
#define DIRECTORY_MOST (256u << 20)

/* Where the directory lies, and how many entries it has. */
struct directory {
	uint64_t at, bytes, count;
};

static uint64_t load_little(const char *p, unsigned int bytes)
{
	uint64_t value = 0;

	for (unsigned int i = bytes; i--;)
		value = value << 8 | (unsigned char)p[i];
	return value;
}

static int read_large_end(struct tensor_file *f, const char *locator, struct directory *d)
{
	char end[LARGE_END_BYTES];
	int rc = tensor_bytes(f, load_little(locator + 8, 8), end, sizeof(end));

	if (rc)
		return rc;
	if (memcmp(end, "PK\6\6", 4) != 0)
		return tensor_fail(f, -EBADMSG, "the end of its zip directory is damaged");
	d->count = load_little(end + 32, 8);
	d->bytes = load_little(end + 40, 8);
	d->at = load_little(end + 48, 8);
	return 0;
}

/* The last bytes of the file, in which the directory's end stands before a comment. */
static int search_end(struct tensor_file *f, const char *tail, uint64_t length, struct directory *d)
{
	for (uint64_t at = length - END_BYTES + 1; at--;) {
		const char *end = tail + at;

		if (memcmp(end, "PK\5\6", 4) != 0 ||
		    load_little(end + 20, 2) != length - at - END_BYTES)
			continue;
		d->count = load_little(end + 10, 2);
		d->bytes = load_little(end + 12, 4);
		d->at = load_little(end + 16, 4);
		if (at >= LOCATOR_BYTES && !memcmp(end - LOCATOR_BYTES, "PK\6\7", 4))
			return read_large_end(f, end - LOCATOR_BYTES, d);
		return 0;
	}
	return tensor_fail(
		f, -EBADMSG,
		"begins as a zip, but has no zip directory at its end; the file is cut off "
		"or damaged");
}

static int find_directory(struct tensor_file *f, struct directory *d)
{
	uint64_t most = END_BYTES + COMMENT_MOST + LOCATOR_BYTES;
	uint64_t length = f->bytes < most ? f->bytes : most;
	char *tail;
	int rc;

	if (length < END_BYTES)
		return tensor_fail(f, -EBADMSG, "%" PRIu64 " bytes are no zip", f->bytes);
	rc = tensor_text(f, f->bytes - length, length, &tail);
	if (rc)
		return rc;
	rc = search_end(f, tail, length, d);
	free(tail);
	if (!rc && (d->bytes > DIRECTORY_MOST || d->count > d->bytes / ENTRY_BYTES))
		rc = tensor_fail(f, -EBADMSG,
				 "its zip directory of %" PRIu64 " entries in %" PRIu64
				 " bytes is damaged or too large",
				 d->count, d->bytes);
	return rc;
}

/* Zip64: values that do not fit the entry stand in an extra field, in this order. */
static bool read_extra(const char *extra, size_t length, uint64_t *const values[3])
{
	while (length >= 4) {
		size_t bytes = (size_t)load_little(extra + 2, 2), used = 0;

		if (bytes > length - 4)
			return false;
		for (unsigned int i = 0; load_little(extra, 2) == 1 && i < 3; i++) {
			if (*values[i] != UINT32_MAX)
				continue;
			if (bytes - used < 8)
				return false;
			*values[i] = load_little(extra + 4 + used, 8);
			used += 8;
		}
		extra += 4 + bytes;
		length -= 4 + bytes;
	}
	return true;
}

/* Names and extra fields before the bytes may be longer than those in the directory. */
static int find_bytes(struct tensor_file *f, uint64_t local, struct zip_member *m)
{
	char front[LOCAL_BYTES];
	int rc = tensor_bytes(f, local, front, sizeof(front));

	if (rc)
		return rc;
	m->at = local + LOCAL_BYTES + load_little(front + 26, 2) + load_little(front + 28, 2);
	if (memcmp(front, "PK\3\4", 4) != 0 || m->at > f->bytes || m->bytes > f->bytes - m->at)
		return tensor_fail(f, -EBADMSG, "member '%.100s' of the zip is damaged", m->name);
	return 0;
}

static int read_entry_of_zip(struct tensor_file *f, const char *entry, size_t length,
			     struct zip_member *m, size_t *used)
{
	size_t name, extra, comment;
	uint64_t whole, local;

	if (length < ENTRY_BYTES || memcmp(entry, "PK\1\2", 4) != 0)
		return tensor_fail(f, -EBADMSG, "its zip directory is damaged");
	name = (size_t)load_little(entry + 28, 2);
	extra = (size_t)load_little(entry + 30, 2);
	comment = (size_t)load_little(entry + 32, 2);
	*used = ENTRY_BYTES + name + extra + comment;
	if (*used > length)
		return tensor_fail(f, -EBADMSG, "its zip directory is damaged");
	m->bytes = load_little(entry + 20, 4);
	whole = load_little(entry + 24, 4);
	local = load_little(entry + 42, 4);
	if (!read_extra(entry + ENTRY_BYTES + name, extra,
			(uint64_t *const[]){&whole, &m->bytes, &local}))
		return tensor_fail(f, -EBADMSG, "its zip directory is damaged");
	m->name = strndup(entry + ENTRY_BYTES, name);
	if (!m->name)
		return tensor_fail(f, -ENOMEM, "no memory for its list of members");
	m->stored = !load_little(entry + 10, 2) && !(load_little(entry + 8, 2) & 1) &&
		    whole == m->bytes;
	return find_bytes(f, local, m);
}

static int read_entries(struct tensor_file *f, const char *text, const struct directory *d,
			struct zip *zip)
{
	size_t at = 0, used = 0;
	int rc = 0;

	zip->list = calloc(d->count + 1, sizeof(*zip->list));
	if (!zip->list)
		return tensor_fail(f, -ENOMEM, "no memory for its list of members");
	for (uint64_t i = 0; !rc && i < d->count; i++, at += used) {
		rc = read_entry_of_zip(f, text + at, (size_t)d->bytes - at, &zip->list[i], &used);
		zip->count++;
	}
	return rc;
}

int zip_list(struct tensor_file *f, struct zip *zip)
{
	struct directory d = {0};
	char *text;
	int rc = find_directory(f, &d);

	*zip = (struct zip){0};
	rc = rc ? rc : tensor_text(f, d.at, d.bytes, &text);
	if (rc)
		return rc;
	rc = read_entries(f, text, &d, zip);
	free(text);
	return rc;
}

void zip_free(struct zip *zip)
{
	for (size_t i = 0; i < zip->count; i++)
		free(zip->list[i].name);
	free(zip->list);
	*zip = (struct zip){0};
}

const struct zip_member *zip_find(const struct zip *zip, const char *name)
{
	for (size_t i = 0; i < zip->count; i++) {
		if (!strcmp(zip->list[i].name, name))
			return &zip->list[i];
	}
	return NULL;
}
