/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_FIRMWARE_IMAGE_H
#define EMBENG_FIRMWARE_IMAGE_H

#include <stddef.h>

#include "../uapi/embeng_firmware.h"

/**
 * struct image_section - the contents of a section
 * @type: enum embeng_fw_section_type
 * @flags: EMBENG_FW_SECTION_*
 * @data: bytes of the section
 * @length: number of bytes
 */
struct image_section {
	__u32 type;
	__u32 flags;
	const void *data;
	size_t length;
};

/**
 * image_pack() - make a firmware image
 * @version: as in &struct embeng_fw_header
 * @build_id: text, at most 32 bytes of it are used
 * @sections: sections in the order that they will have in the image
 * @count: number of sections, 1 to EMBENG_FW_SECTIONS_MAX
 * @out: the image, to be freed with free()
 * @length: set to the number of bytes in the image
 *
 * Return: 0, -EINVAL for a count outside its limits, -EFBIG for an image that is larger than
 * EMBENG_FW_LENGTH_MAX, -ENOMEM.
 */
int image_pack(__u64 version, const char *build_id, const struct image_section *sections,
	       size_t count, void **out, size_t *length);

#endif
