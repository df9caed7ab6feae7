// SPDX-License-Identifier: MIT
/*
 * Lays out a firmware image from its sections: header, table of sections with their hashes,
 * contents. mkimage, `embeng fw pack` and tests all make images by it.
 *
 * The image belongs to the caller, who frees it.
 */
#include "image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../engine/hash/sha256.h"
#include "../uapi/embeng_engine.h"

static size_t align_length(size_t length)
{
	return (length + EMBENG_FW_ALIGN - 1) & ~(size_t)(EMBENG_FW_ALIGN - 1);
}

static size_t table_end(size_t count)
{
	return align_length(sizeof(struct embeng_fw_header) +
			    count * sizeof(struct embeng_fw_section));
}

static void fill_header(struct embeng_fw_header *h, __u64 version, const char *build_id,
			size_t count, size_t length)
{
	h->magic = EMBENG_FW_MAGIC;
	h->format = EMBENG_FW_FORMAT;
	h->interface_major = EMBENG_INTERFACE_MAJOR;
	h->interface_minor = EMBENG_INTERFACE_MINOR;
	h->version = version;
	h->length = length;
	h->section_count = (__u32)count;
	h->section_stride = sizeof(struct embeng_fw_section);
	memcpy(h->build_id, build_id, strnlen(build_id, sizeof(h->build_id)));
}

static void fill_section(unsigned char *image, struct embeng_fw_section *entry,
			 const struct image_section *section, size_t at)
{
	entry->type = section->type;
	entry->flags = section->flags;
	entry->offset = at;
	entry->length = section->length;
	sha256_digest(section->data, section->length, entry->sha256);
	if (section->length)
		memcpy(image + at, section->data, section->length);
}

int image_pack(__u64 version, const char *build_id, const struct image_section *sections,
	       size_t count, void **out, size_t *length)
{
	size_t i, at, total = table_end(count);
	struct embeng_fw_section *entries;
	unsigned char *image;

	if (!count || count > EMBENG_FW_SECTIONS_MAX)
		return -EINVAL;
	for (i = 0; i < count; i++) {
		if (sections[i].length > EMBENG_FW_LENGTH_MAX)
			return -EFBIG;
		total += align_length(sections[i].length);
	}
	*length = total;
	if (total > EMBENG_FW_LENGTH_MAX)
		return -EFBIG;
	image = calloc(1, total);
	if (!image)
		return -ENOMEM;
	fill_header((struct embeng_fw_header *)image, version, build_id, count, total);
	entries = (struct embeng_fw_section *)(image + sizeof(struct embeng_fw_header));
	at = table_end(count);
	for (i = 0; i < count; i++) {
		fill_section(image, &entries[i], &sections[i], at);
		at += align_length(sections[i].length);
	}
	*out = image;
	return 0;
}
