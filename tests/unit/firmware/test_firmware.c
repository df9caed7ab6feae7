// SPDX-License-Identifier: MIT
/*
 * The parser of firmware images: a packed image is accepted, and each broken one is refused at the
 * right byte.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/control/firmware.h"
#include "engine/hash/sha256.h"
#include "uapi/embeng_regs.h"
#include "image_help.h"
#include "suite.h"

#define HEADER(field) offsetof(struct embeng_fw_header, field)
#define TABLE sizeof(struct embeng_fw_header)
#define ENTRY(n, field) \
	(TABLE + (n) * sizeof(struct embeng_fw_section) + offsetof(struct embeng_fw_section, field))
#define PARAMETERS 320u /* 128 header, three entries of 64 */
#define PARAMETER(field) (PARAMETERS + offsetof(struct embeng_fw_parameters, field))
#define STRINGS (PARAMETERS + 64u)
#define TEST (STRINGS + 64u)
#define IN_TEST(field) (TEST + offsetof(struct embeng_fw_self_test, field))
#define OFFSETS (TEST + sizeof(struct embeng_fw_self_test))
#define IDS (OFFSETS + sizeof(good_vector.offsets))
#define FILLING (TEST + offsetof(struct good_vector, filling))

static u8 *image;
static size_t length;

static void pack(void)
{
	const struct image_section sections[] = {
		{EMBENG_FW_PARAMETERS, EMBENG_FW_SECTION_MANDATORY, &good_parameters,
		 sizeof(good_parameters)},
		{EMBENG_FW_STRINGS, 0, good_strings, sizeof(good_strings)},
		{EMBENG_FW_SELF_TEST, EMBENG_FW_SECTION_MANDATORY, &good_vector,
		 sizeof(good_vector)},
	};
	void *out;

	ck_assert_int_eq(image_pack(GOOD_VERSION, "test", sections, 3, &out, &length), 0);
	image = out;
}

static void rehash(u32 section)
{
	struct embeng_fw_section s;

	memcpy(&s, image + ENTRY(section, type), sizeof(s));
	if (s.offset <= length && s.length <= length - s.offset)
		sha256_digest(image + s.offset, s.length, image + ENTRY(section, sha256));
}

static void expect(u64 minimum, u32 error, u64 offset)
{
	struct firmware out = {.version = 99};
	u64 at = 0;

	ck_assert_uint_eq(firmware_check(image, length, minimum, &out, &at), error);
	ck_assert_uint_eq(at, offset);
	ck_assert_uint_eq(out.version, error ? 99 : GOOD_VERSION);
	free(image);
}

START_TEST(the_packed_image_is_good)
{
	pack();
	ck_assert_uint_eq(length, TEST + sizeof(good_vector));
	expect(GOOD_VERSION, EMBENG_BOOT_ERROR_NONE, 0);
}
END_TEST

/* Bytes that belong to nothing, though they are zeros. */
START_TEST(nothing_stands_behind_the_last_section)
{
	u64 end = (TEST + sizeof(good_vector) + EMBENG_FW_ALIGN - 1) / EMBENG_FW_ALIGN *
		  EMBENG_FW_ALIGN;

	pack();
	image = realloc(image, end + EMBENG_FW_ALIGN);
	ck_assert_ptr_nonnull(image);
	memset(image + length, 0, end + EMBENG_FW_ALIGN - length);
	length = end + EMBENG_FW_ALIGN;
	memcpy(image + HEADER(length), &(u64){end + EMBENG_FW_ALIGN}, sizeof(u64));
	expect(GOOD_VERSION, EMBENG_BOOT_ERROR_SECTION, end);
}
END_TEST

#define LAST_OF(type) (sizeof(((type *)0)->reserved) - 1)

/* One value changed; hashes of sections are made right again unless the hash is the point. */
static const struct {
	u64 at;
	u32 bytes;
	u64 value;
	u32 error;
	u64 offset;
} broken[] = {
	{HEADER(magic), 4, 1, EMBENG_BOOT_ERROR_MAGIC, HEADER(magic)},
	{HEADER(format), 4, 2, EMBENG_BOOT_ERROR_FORMAT, HEADER(format)},
	{HEADER(interface_major), 4, 9, EMBENG_BOOT_ERROR_INTERFACE, HEADER(interface_major)},
	{HEADER(interface_minor), 4, 9, EMBENG_BOOT_ERROR_INTERFACE, HEADER(interface_minor)},
	{HEADER(interface_minor), 4, EMBENG_INTERFACE_MINOR + 1, EMBENG_BOOT_ERROR_INTERFACE,
	 HEADER(interface_minor)},
	{HEADER(length), 8, STRINGS, EMBENG_BOOT_ERROR_LENGTH, HEADER(length)},
	{HEADER(length), 8, TEST + 1024, EMBENG_BOOT_ERROR_LENGTH, HEADER(length)},
	{HEADER(section_count), 4, 0, EMBENG_BOOT_ERROR_SECTION, HEADER(section_count)},
	{HEADER(section_count), 4, 65, EMBENG_BOOT_ERROR_SECTION, HEADER(section_count)},
	{HEADER(section_count), 4, 60, EMBENG_BOOT_ERROR_SECTION, HEADER(section_stride)},
	{HEADER(section_stride), 4, 56, EMBENG_BOOT_ERROR_SECTION, HEADER(section_stride)},
	{HEADER(section_stride), 4, 68, EMBENG_BOOT_ERROR_SECTION, HEADER(section_stride)},
	/* They would end in the last bytes of the image if they began at its start. */
	{HEADER(section_stride), 4, (TEST + sizeof(good_vector)) / 3 / 8 * 8,
	 EMBENG_BOOT_ERROR_SECTION, HEADER(section_stride)},
	{HEADER(reserved) + LAST_OF(struct embeng_fw_header), 1, 1, EMBENG_BOOT_ERROR_RESERVED,
	 HEADER(reserved) + LAST_OF(struct embeng_fw_header)},
	{HEADER(reserved) + 3, 1, 1, EMBENG_BOOT_ERROR_RESERVED, HEADER(reserved) + 3},
	{ENTRY(0, offset), 8, PARAMETERS + 64, EMBENG_BOOT_ERROR_SECTION, ENTRY(0, offset)},
	{ENTRY(1, offset), 8, PARAMETERS, EMBENG_BOOT_ERROR_SECTION, ENTRY(1, offset)},
	{ENTRY(1, length), 8, U64_MAX - 63, EMBENG_BOOT_ERROR_SECTION, ENTRY(1, length)},
	{ENTRY(2, length), 8, sizeof(good_vector) + 1, EMBENG_BOOT_ERROR_SECTION, ENTRY(2, length)},
	{ENTRY(1, flags), 4, 2, EMBENG_BOOT_ERROR_RESERVED, ENTRY(1, flags)},
	{ENTRY(1, reserved), 8, 1, EMBENG_BOOT_ERROR_RESERVED, ENTRY(1, reserved)},
	{ENTRY(0, type), 4, 77, EMBENG_BOOT_ERROR_SECTION_TYPE, ENTRY(0, type)},
	{ENTRY(2, type), 4, EMBENG_FW_PROGRAMS, EMBENG_BOOT_ERROR_SECTION_TYPE, ENTRY(2, type)},
	{ENTRY(1, type), 4, EMBENG_FW_PARAMETERS, EMBENG_BOOT_ERROR_DUPLICATE, ENTRY(1, type)},
	{ENTRY(2, type), 4, EMBENG_FW_STRINGS, EMBENG_BOOT_ERROR_DUPLICATE, ENTRY(2, type)},
	{ENTRY(0, length), 8, 60, EMBENG_BOOT_ERROR_CONTENT, PARAMETERS},
	{ENTRY(0, length), 8, sizeof(good_parameters) - 1, EMBENG_BOOT_ERROR_CONTENT, PARAMETERS},
	{PARAMETER(step_depth), 4, 3, EMBENG_BOOT_ERROR_PARAMETER, PARAMETER(step_depth)},
	{PARAMETER(step_depth), 4, 65, EMBENG_BOOT_ERROR_PARAMETER, PARAMETER(step_depth)},
	{PARAMETER(contexts), 4, 0, EMBENG_BOOT_ERROR_PARAMETER, PARAMETER(contexts)},
	{PARAMETER(contexts), 4, 257, EMBENG_BOOT_ERROR_PARAMETER, PARAMETER(contexts)},
	{PARAMETER(queues), 4, 1, EMBENG_BOOT_ERROR_PARAMETER, PARAMETER(queues)},
	{PARAMETER(queues), 4, 1025, EMBENG_BOOT_ERROR_PARAMETER, PARAMETER(queues)},
	{PARAMETER(regions), 4, 15, EMBENG_BOOT_ERROR_PARAMETER, PARAMETER(regions)},
	{PARAMETER(regions), 4, 65537, EMBENG_BOOT_ERROR_PARAMETER, PARAMETER(regions)},
	{PARAMETER(heartbeat_ms), 4, 0, EMBENG_BOOT_ERROR_PARAMETER, PARAMETER(heartbeat_ms)},
	{PARAMETER(heartbeat_ms), 4, 10001, EMBENG_BOOT_ERROR_PARAMETER, PARAMETER(heartbeat_ms)},
	{PARAMETER(minimum_version), 8, GOOD_VERSION + 1, EMBENG_BOOT_ERROR_PARAMETER,
	 PARAMETER(minimum_version)},
	{PARAMETER(reserved) + LAST_OF(struct embeng_fw_parameters), 1, 1,
	 EMBENG_BOOT_ERROR_RESERVED, PARAMETER(reserved) + LAST_OF(struct embeng_fw_parameters)},
	{PARAMETER(reserved) + 5, 1, 1, EMBENG_BOOT_ERROR_RESERVED, PARAMETER(reserved) + 5},
	{STRINGS + 3, 1, '\n', EMBENG_BOOT_ERROR_CONTENT, STRINGS + 3},
	{STRINGS + 3, 1, 0x7f, EMBENG_BOOT_ERROR_CONTENT, STRINGS + 3},
	{STRINGS, 1, '=', EMBENG_BOOT_ERROR_CONTENT, STRINGS},
	{STRINGS + 4, 1, ':', EMBENG_BOOT_ERROR_CONTENT, STRINGS},
	{STRINGS, 1, 0, EMBENG_BOOT_ERROR_CONTENT, STRINGS},
	{STRINGS + sizeof(good_strings) - 1, 1, 'x', EMBENG_BOOT_ERROR_CONTENT,
	 STRINGS + sizeof(good_strings) - 1},
	{STRINGS + 10, 1, 0xe4, EMBENG_BOOT_ERROR_CONTENT, STRINGS + 10},
	{IN_TEST(kind), 4, 2, EMBENG_BOOT_ERROR_CONTENT, IN_TEST(kind)},
	{IN_TEST(flags), 4, 2, EMBENG_BOOT_ERROR_CONTENT, IN_TEST(flags)},
	{IN_TEST(rows), 4, 0, EMBENG_BOOT_ERROR_CONTENT, IN_TEST(rows)},
	{IN_TEST(rows), 4, 8193, EMBENG_BOOT_ERROR_CONTENT, IN_TEST(dim)},
	{IN_TEST(dim), 4, 0, EMBENG_BOOT_ERROR_CONTENT, IN_TEST(dim)},
	{IN_TEST(samples), 4, 0, EMBENG_BOOT_ERROR_CONTENT, IN_TEST(samples)},
	{IN_TEST(samples), 4, 8193, EMBENG_BOOT_ERROR_CONTENT, IN_TEST(samples)},
	{IN_TEST(ids), 4, 8193, EMBENG_BOOT_ERROR_CONTENT, IN_TEST(ids)},
	{IN_TEST(combiner), 4, 3, EMBENG_BOOT_ERROR_CONTENT, IN_TEST(combiner)},
	{IN_TEST(optimizer), 4, 0, EMBENG_BOOT_ERROR_CONTENT, IN_TEST(optimizer)},
	{IN_TEST(optimizer), 4, 31, EMBENG_BOOT_ERROR_CONTENT, IN_TEST(optimizer)},
	{IN_TEST(slot_count), 4, 1, EMBENG_BOOT_ERROR_CONTENT, IN_TEST(slot_count)},
	{IN_TEST(learning_rate), 4, 0x7f800000, EMBENG_BOOT_ERROR_CONTENT, IN_TEST(learning_rate)},
	{IN_TEST(step), 8, 0, EMBENG_BOOT_ERROR_CONTENT, IN_TEST(step)},
	{IN_TEST(hyperparameter), 4, 1, EMBENG_BOOT_ERROR_CONTENT, IN_TEST(hyperparameter)},
	{IN_TEST(reserved) + 4, 4, 1, EMBENG_BOOT_ERROR_CONTENT, IN_TEST(reserved) + 4},
	{IN_TEST(length), 8, sizeof(good_vector) + 64, EMBENG_BOOT_ERROR_CONTENT, IN_TEST(length)},
	{IN_TEST(rows), 4, 4000, EMBENG_BOOT_ERROR_CONTENT, IN_TEST(length)},
	{ENTRY(2, length), 8, sizeof(good_vector) - 1, EMBENG_BOOT_ERROR_CONTENT, IN_TEST(length)},
	{OFFSETS, 4, 1, EMBENG_BOOT_ERROR_CONTENT, OFFSETS},
	{OFFSETS + 4, 4, 4, EMBENG_BOOT_ERROR_CONTENT, OFFSETS + 8},
	{OFFSETS + 8, 4, 2, EMBENG_BOOT_ERROR_CONTENT, OFFSETS + 8},
	{IDS + 8, 4, 2, EMBENG_BOOT_ERROR_CONTENT, IDS + 8},
	{FILLING + 7, 1, 1, EMBENG_BOOT_ERROR_CONTENT, FILLING + 7},
};

START_TEST(a_broken_image_is_refused_where_it_is_broken)
{
	pack();
	memcpy(image + broken[_i].at, &broken[_i].value, broken[_i].bytes);
	for (u32 section = 0; section < 3 && broken[_i].at >= TABLE; section++)
		rehash(section);
	expect(0, broken[_i].error, broken[_i].offset);
}
END_TEST

START_TEST(a_wrong_hash_is_refused)
{
	pack();
	image[STRINGS] ^= 1;
	expect(0, EMBENG_BOOT_ERROR_HASH, STRINGS);
}
END_TEST

START_TEST(filling_must_be_zero)
{
	pack();
	image[TEST - 1] = 1;
	expect(0, EMBENG_BOOT_ERROR_SECTION, TEST - 1);
}
END_TEST

START_TEST(filling_must_be_zero_at_the_end)
{
	const struct image_section sections[] = {
		{EMBENG_FW_PARAMETERS, 0, &good_parameters, sizeof(good_parameters)},
		{EMBENG_FW_STRINGS, 0, good_strings, sizeof(good_strings)},
	};
	void *out;

	ck_assert_int_eq(image_pack(GOOD_VERSION, "test", sections, 2, &out, &length), 0);
	image = out;
	image[length - 1] = 1;
	expect(0, EMBENG_BOOT_ERROR_SECTION, length - 1);
}
END_TEST

START_TEST(an_old_image_is_refused)
{
	pack();
	expect(GOOD_VERSION + 1, EMBENG_BOOT_ERROR_VERSION, HEADER(version));
}
END_TEST

START_TEST(a_piece_of_a_header_is_refused)
{
	pack();
	length = 127;
	expect(0, EMBENG_BOOT_ERROR_LENGTH, 127);
}
END_TEST

START_TEST(an_unknown_optional_section_is_skipped)
{
	u32 type = _i ? EMBENG_FW_PROGRAMS : 77;

	pack();
	memcpy(image + ENTRY(1, type), &type, sizeof(type));
	expect(0, EMBENG_BOOT_ERROR_NONE, 0);
}
END_TEST

START_TEST(parameters_must_be_there)
{
	const struct image_section only = {EMBENG_FW_STRINGS, 0, "x=", 3};
	void *out;

	ck_assert_int_eq(image_pack(GOOD_VERSION, "test", &only, 1, &out, &length), 0);
	image = out;
	expect(0, EMBENG_BOOT_ERROR_PARAMETER, HEADER(section_count));
}
END_TEST

START_TEST(a_vector_that_ends_early_is_refused)
{
	struct image_section sections[] = {
		{EMBENG_FW_PARAMETERS, 0, &good_parameters, sizeof(good_parameters)},
		{EMBENG_FW_SELF_TEST, 0, &good_vector, 0},
	};
	/* none at all, a piece of its numbers, one and a piece of the next */
	static const u32 lengths[] = {0, 127, sizeof(good_vector) + 64};
	static const u32 offsets[] = {0, 0, sizeof(good_vector)};
	struct good_vector two[2] = {good_vector, good_vector};
	void *out;

	sections[1].data = two;
	sections[1].length = lengths[_i];
	ck_assert_int_eq(image_pack(GOOD_VERSION, "test", sections, 2, &out, &length), 0);
	image = out;
	expect(0, EMBENG_BOOT_ERROR_CONTENT, 256 + 64 + offsets[_i]);
}
END_TEST

START_TEST(strings_must_not_be_empty)
{
	const struct image_section sections[] = {
		{EMBENG_FW_PARAMETERS, 0, &good_parameters, sizeof(good_parameters)},
		{EMBENG_FW_STRINGS, 0, "", 0},
	};
	void *out;

	ck_assert_int_eq(image_pack(GOOD_VERSION, "test", sections, 2, &out, &length), 0);
	image = out;
	expect(0, EMBENG_BOOT_ERROR_CONTENT, length);
}
END_TEST

/* Twice of one and the same unknown type: nobody here can say that it may not. */
START_TEST(unknown_types_may_repeat)
{
	const struct image_section sections[] = {
		{77, 0, "x", 1},
		{EMBENG_FW_PARAMETERS, 0, &good_parameters, sizeof(good_parameters)},
		{77, 0, "", 0},
	};
	void *out;

	ck_assert_int_eq(image_pack(GOOD_VERSION, "test", sections, 3, &out, &length), 0);
	image = out;
	expect(0, EMBENG_BOOT_ERROR_NONE, 0);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, the_packed_image_is_good);
	tcase_add_test(t, nothing_stands_behind_the_last_section);
	tcase_add_loop_test(t, a_broken_image_is_refused_where_it_is_broken, 0,
			    (int)(sizeof(broken) / sizeof(broken[0])));
	tcase_add_test(t, a_wrong_hash_is_refused);
	tcase_add_test(t, filling_must_be_zero);
	tcase_add_test(t, filling_must_be_zero_at_the_end);
	tcase_add_test(t, an_old_image_is_refused);
	tcase_add_test(t, a_piece_of_a_header_is_refused);
	tcase_add_loop_test(t, an_unknown_optional_section_is_skipped, 0, 2);
	tcase_add_test(t, parameters_must_be_there);
	tcase_add_loop_test(t, a_vector_that_ends_early_is_refused, 0, 3);
	tcase_add_test(t, strings_must_not_be_empty);
	tcase_add_test(t, unknown_types_may_repeat);
}

int main(void)
{
	return suite_main("firmware", add);
}
