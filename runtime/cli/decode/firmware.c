// SPDX-License-Identifier: MIT
/*
 * Reads a firmware image. The device's own check says what is wrong with it, as it does for `embeng fw
 * verify`; parameters and self-tests of a good image are shown by `embeng fw inspect`.
 *
 * All is read from the caller's copy.
 */
#include <inttypes.h>
#include <string.h>

#include "../../../engine/control/firmware.h"
#include "../../../engine/control/signature.h"
#include "../firmware/commands.h"
#include "readers.h"
#include "words.h"

bool firmware_is(const struct bytes *b)
{
	return b->size >= 4 && bytes_number(b->data, 4) == EMBENG_FW_MAGIC;
}

static void note_refusal(struct sheet *s, uint32_t error, uint64_t offset)
{
	sheet_odd(s, offset, "a device refuses the image with %s: %s",
		  word_or_unknown(word_boot_error(error)),
		  word_or_unknown(word_boot_error_sentence(error)));
}

static void show_fw_section(struct sheet *s, const struct bytes *b, uint64_t at, uint32_t i)
{
	static const char *const types[] = {[EMBENG_FW_PARAMETERS] = "parameters",
					    [EMBENG_FW_SELF_TEST] = "self-tests",
					    [EMBENG_FW_STRINGS] = "strings",
					    [EMBENG_FW_PROGRAMS] = "programs"};
	struct embeng_fw_section e;

	memcpy(&e, b->data + at, sizeof(e));
	sheet_part(s, at, "section %u", i);
	sheet_number(s, at, "type", e.type,
		     e.type < sizeof(types) / sizeof(types[0]) ? types[e.type] : "unknown");
	sheet_number(s, at + offsetof(struct embeng_fw_section, flags), "flags", e.flags,
		     e.flags & EMBENG_FW_SECTION_MANDATORY ? "mandatory" : NULL);
	sheet_number(s, at + offsetof(struct embeng_fw_section, offset), "offset", e.offset, NULL);
	sheet_number(s, at + offsetof(struct embeng_fw_section, length), "length", e.length,
		     "bytes");
	if (e.offset > b->size || e.length > b->size - e.offset)
		sheet_odd(s, at + offsetof(struct embeng_fw_section, length),
			  "the section ends at %llu + %llu, and the file has %zu bytes",
			  (unsigned long long)e.offset, (unsigned long long)e.length, b->size);
}

static void show_fw_sections(struct sheet *s, const struct bytes *b,
			     const struct embeng_fw_header *h)
{
	for (uint32_t i = 0; i < h->section_count && i < EMBENG_FW_SECTIONS_MAX; i++) {
		uint64_t at = sizeof(*h) + (uint64_t)i * h->section_stride;

		if (at > b->size || b->size - at < sizeof(struct embeng_fw_section)) {
			sheet_odd(s, b->size, "the file ends in front of section %u of %u", i,
				  h->section_count);
			return;
		}
		show_fw_section(s, b, at, i);
	}
}

/* The image without its signature; a file without a place where it ends is taken as an image. */
static void check_fw_image(struct sheet *s, const struct bytes *b)
{
	struct signature signature = {.image = b->size};
	struct firmware firmware;
	uint64_t offset = 0;
	u64 at = 0;
	uint32_t error = signature_find(b->data, b->size, &signature, &at);

	offset = at;
	if (error)
		note_refusal(s, error, offset);
	else
		sheet_text(s, signature.image, "signature", "%s",
			   signature.block ? "there is one, unchecked" : "unsigned");
	error = firmware_check(b->data, error ? b->size : signature.image, 0, &firmware, &at);
	if (error)
		note_refusal(s, error, at);
}

void firmware_read(struct sheet *s, const struct bytes *b)
{
	struct embeng_fw_header h;
	char version[FW_VERSION_TEXT];

	sheet_part(s, 0, "header");
	if (b->size < sizeof(h)) {
		sheet_odd(s, b->size, "the file ends inside of the header");
		return;
	}
	memcpy(&h, b->data, sizeof(h));
	sheet_number(s, offsetof(struct embeng_fw_header, format), "format", h.format, NULL);
	sheet_text(s, offsetof(struct embeng_fw_header, interface_major), "interface", "%u.%u",
		   h.interface_major, h.interface_minor);
	sheet_text(s, offsetof(struct embeng_fw_header, version), "version", "%s",
		   fw_version(h.version, version));
	sheet_number(s, offsetof(struct embeng_fw_header, length), "length", h.length, "bytes");
	sheet_number(s, offsetof(struct embeng_fw_header, section_count), "section_count",
		     h.section_count, NULL);
	sheet_number(s, offsetof(struct embeng_fw_header, section_stride), "section_stride",
		     h.section_stride, "bytes");
	sheet_verdict(s, "A firmware image of version %s. embeng fw verify runs its self-tests.",
		      version);
	check_fw_image(s, b);
	show_fw_sections(s, b, &h);
}
