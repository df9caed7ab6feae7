// SPDX-License-Identifier: MIT
/*
 * Checks a firmware image and finds its parameters and test vectors: the header, the versions, the
 * table of sections, their hashes and their contents. Bytes that belong to nothing must be zero. It
 * is apart from boot.c because `embeng fw` checks images without a device.
 *
 * The image must be memory that nobody changes meanwhile. Nothing is allocated and no lock is
 * needed: the functions look only at their arguments.
 */
#include "firmware.h"

#include "../../uapi/embeng_regs.h"
#include "../port.h"
#include "selftest.h"
#include "../hash/sha256.h"
#include "../blob/utf8.h"

struct check {
	const u8 *image;
	u64 length;
	struct embeng_fw_header header;
	struct firmware found;
	u32 seen; /* bit of each type that was there */
	u64 end;  /* the first byte that is not accounted for yet */
	u64 *offset;
};

static u32 refuse_image(struct check *c, u32 error, u64 offset)
{
	*c->offset = offset;
	return error;
}

/* Looks for a byte that is not zero; returns @length when there is none. */
static u64 first_set(const void *data, u64 length)
{
	const u8 *p = data;
	u64 i = 0;

	while (i < length && !p[i])
		i++;
	return i;
}

static u32 check_versions(struct check *c, u64 minimum)
{
	const struct embeng_fw_header *h = &c->header;

	if (h->magic != EMBENG_FW_MAGIC)
		return refuse_image(c, EMBENG_BOOT_ERROR_MAGIC,
				    offsetof(struct embeng_fw_header, magic));
	if (h->format != EMBENG_FW_FORMAT)
		return refuse_image(c, EMBENG_BOOT_ERROR_FORMAT,
				    offsetof(struct embeng_fw_header, format));
	if (h->interface_major != EMBENG_INTERFACE_MAJOR)
		return refuse_image(c, EMBENG_BOOT_ERROR_INTERFACE,
				    offsetof(struct embeng_fw_header, interface_major));
	if (h->interface_minor > EMBENG_INTERFACE_MINOR)
		return refuse_image(c, EMBENG_BOOT_ERROR_INTERFACE,
				    offsetof(struct embeng_fw_header, interface_minor));
	if (h->version < minimum)
		return refuse_image(c, EMBENG_BOOT_ERROR_VERSION,
				    offsetof(struct embeng_fw_header, version));
	return EMBENG_BOOT_ERROR_NONE;
}

static u32 check_image_frame(struct check *c)
{
	const struct embeng_fw_header *h = &c->header;
	u64 reserved = first_set(h->reserved, sizeof(h->reserved));

	if (h->length != c->length)
		return refuse_image(c, EMBENG_BOOT_ERROR_LENGTH,
				    offsetof(struct embeng_fw_header, length));
	if (reserved < sizeof(h->reserved))
		return refuse_image(c, EMBENG_BOOT_ERROR_RESERVED,
				    offsetof(struct embeng_fw_header, reserved) + reserved);
	if (!h->section_count || h->section_count > EMBENG_FW_SECTIONS_MAX)
		return refuse_image(c, EMBENG_BOOT_ERROR_SECTION,
				    offsetof(struct embeng_fw_header, section_count));
	if (h->section_stride < sizeof(struct embeng_fw_section) || h->section_stride % 8 ||
	    (u64)h->section_count * h->section_stride > c->length - sizeof(*h))
		return refuse_image(c, EMBENG_BOOT_ERROR_SECTION,
				    offsetof(struct embeng_fw_header, section_stride));
	c->end = sizeof(*h) + (u64)h->section_count * h->section_stride;
	return EMBENG_BOOT_ERROR_NONE;
}

/* From the end of what came before up to the next multiple there are zeros only. */
static u32 check_filling(struct check *c)
{
	u64 next = (c->end + EMBENG_FW_ALIGN - 1) & ~(u64)(EMBENG_FW_ALIGN - 1);
	u64 at;

	if (next > c->length)
		return refuse_image(c, EMBENG_BOOT_ERROR_SECTION, c->length);
	at = c->end + first_set(c->image + c->end, next - c->end);
	if (at < next)
		return refuse_image(c, EMBENG_BOOT_ERROR_SECTION, at);
	c->end = next;
	return EMBENG_BOOT_ERROR_NONE;
}

static u32 check_section_place(struct check *c, const struct embeng_fw_section *s, u64 entry)
{
	u32 error = check_filling(c);

	if (error)
		return error;
	if (s->offset != c->end)
		return refuse_image(c, EMBENG_BOOT_ERROR_SECTION,
				    entry + offsetof(struct embeng_fw_section, offset));
	if (s->length > c->length - s->offset)
		return refuse_image(c, EMBENG_BOOT_ERROR_SECTION,
				    entry + offsetof(struct embeng_fw_section, length));
	if (s->flags & ~EMBENG_FW_SECTION_MANDATORY)
		return refuse_image(c, EMBENG_BOOT_ERROR_RESERVED,
				    entry + offsetof(struct embeng_fw_section, flags));
	if (s->reserved)
		return refuse_image(c, EMBENG_BOOT_ERROR_RESERVED,
				    entry + offsetof(struct embeng_fw_section, reserved));
	c->end = s->offset + s->length;
	return EMBENG_BOOT_ERROR_NONE;
}

static const struct {
	u32 offset, bytes;
	u64 low, high;
} limits[] = {
#define LIMIT(name, bytes, low, high, words) \
	{ offsetof(struct embeng_fw_parameters, name), bytes, low, high },
	EMBENG_FW_PARAMETER_TABLE(LIMIT)
#undef LIMIT
};

static u32 check_parameter_limits(struct check *c, const struct embeng_fw_section *s)
{
	u32 i;

	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		u64 value = 0;

		memcpy(&value, (u8 *)&c->found.parameters + limits[i].offset, limits[i].bytes);
		if (value < limits[i].low || value > limits[i].high)
			return refuse_image(c, EMBENG_BOOT_ERROR_PARAMETER,
					    s->offset + limits[i].offset);
	}
	return EMBENG_BOOT_ERROR_NONE;
}

static u32 check_parameters(struct check *c, const struct embeng_fw_section *s)
{
	struct embeng_fw_parameters *p = &c->found.parameters;
	u32 error;
	u64 at;

	if (s->length < sizeof(*p))
		return refuse_image(c, EMBENG_BOOT_ERROR_CONTENT, s->offset);
	memcpy(p, c->image + s->offset, sizeof(*p));
	error = check_parameter_limits(c, s);
	if (error)
		return error;
	/* An image that shuts itself out could never be booted again. */
	if (p->minimum_version > c->header.version)
		return refuse_image(c, EMBENG_BOOT_ERROR_PARAMETER,
				    s->offset +
					    offsetof(struct embeng_fw_parameters, minimum_version));
	at = first_set(p->reserved, sizeof(p->reserved));
	if (at < sizeof(p->reserved))
		return refuse_image(c, EMBENG_BOOT_ERROR_RESERVED,
				    s->offset + offsetof(struct embeng_fw_parameters, reserved) +
					    at);
	return EMBENG_BOOT_ERROR_NONE;
}

/* "NAME=VALUE" in UTF-8. Text for people must have no control characters for their terminals. */
static bool string_good(const u8 *text, u64 *at)
{
	const u8 *p = text;
	bool named = false;
	u32 length;

	for (; *p; p += length) {
		length = utf8_sequence(p);
		if (!length || *p < ' ' || *p == 0x7f) {
			*at += (u64)(p - text);
			return false;
		}
		named |= *p == '=';
	}
	return named && *text != '=';
}

static u32 check_strings(struct check *c, const struct embeng_fw_section *s)
{
	const u8 *text = c->image + s->offset;
	u64 at = 0, last = s->length ? s->length - 1 : 0;

	if (!s->length || text[last])
		return refuse_image(c, EMBENG_BOOT_ERROR_CONTENT, s->offset + last);
	for (; at < s->length; at++) {
		if (!string_good(text + at, &at))
			return refuse_image(c, EMBENG_BOOT_ERROR_CONTENT, s->offset + at);
		while (text[at])
			at++;
	}
	return EMBENG_BOOT_ERROR_NONE;
}

static u32 check_tests(struct check *c, const struct embeng_fw_section *s)
{
	u64 at = 0;
	u32 error = selftest_check(c->image + s->offset, s->length, &c->found.test_count, &at);

	c->found.tests = s->offset;
	c->found.tests_length = s->length;
	return error ? refuse_image(c, error, s->offset + at) : EMBENG_BOOT_ERROR_NONE;
}

static u32 check_content(struct check *c, const struct embeng_fw_section *s, u64 entry)
{
	if (s->type >= EMBENG_FW_PARAMETERS && s->type <= EMBENG_FW_PROGRAMS) {
		if (c->seen & 1u << s->type)
			return refuse_image(c, EMBENG_BOOT_ERROR_DUPLICATE, entry);
		c->seen |= 1u << s->type;
	}
	switch (s->type) {
	case EMBENG_FW_PARAMETERS:
		return check_parameters(c, s);
	case EMBENG_FW_SELF_TEST:
		return check_tests(c, s);
	case EMBENG_FW_STRINGS:
		return check_strings(c, s);
	default:
		return s->flags & EMBENG_FW_SECTION_MANDATORY ?
			       refuse_image(c, EMBENG_BOOT_ERROR_SECTION_TYPE, entry) :
			       EMBENG_BOOT_ERROR_NONE;
	}
}

static u32 check_section(struct check *c, u32 number)
{
	u64 entry = sizeof(c->header) + (u64)number * c->header.section_stride;
	struct embeng_fw_section s;
	u8 digest[SHA256_BYTES];
	u32 error;

	memcpy(&s, c->image + entry, sizeof(s));
	error = check_section_place(c, &s, entry);
	if (error)
		return error;
	sha256_digest(c->image + s.offset, s.length, digest);
	if (memcmp(digest, s.sha256, sizeof(digest)))
		return refuse_image(c, EMBENG_BOOT_ERROR_HASH, s.offset);
	return check_content(c, &s, entry);
}

static u32 check_sections(struct check *c)
{
	u32 i, error;

	for (i = 0; i < c->header.section_count; i++) {
		error = check_section(c, i);
		if (error)
			return error;
	}
	error = check_filling(c);
	if (error)
		return error;
	if (c->end != c->length)
		return refuse_image(c, EMBENG_BOOT_ERROR_SECTION, c->end);
	if (!(c->seen & 1u << EMBENG_FW_PARAMETERS))
		return refuse_image(c, EMBENG_BOOT_ERROR_PARAMETER,
				    offsetof(struct embeng_fw_header, section_count));
	return EMBENG_BOOT_ERROR_NONE;
}

u32 firmware_check(const void *image, u64 length, u64 minimum, struct firmware *out, u64 *offset)
{
	struct check c = { .image = image, .length = length, .offset = offset };
	u32 error;

	if (length < sizeof(c.header))
		return refuse_image(&c, EMBENG_BOOT_ERROR_LENGTH, length);
	memcpy(&c.header, image, sizeof(c.header));
	error = check_versions(&c, minimum);
	if (!error)
		error = check_image_frame(&c);
	if (!error)
		error = check_sections(&c);
	if (error)
		return error;
	c.found.version = c.header.version;
	*out = c.found;
	return EMBENG_BOOT_ERROR_NONE;
}
