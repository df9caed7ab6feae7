// SPDX-License-Identifier: MIT
/*
 * The signature behind a firmware image: where the image ends, and each field of the signature that
 * may be wrong, at its byte.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/control/signature.h"
#include "uapi/embeng_regs.h"
#include "image_help.h"
#include "suite.h"

#define IMAGE 192u /* header, one entry of the table, no contents */
#define AT(field) (IMAGE + offsetof(struct embeng_fw_signature, field))
#define MESSAGE (IMAGE + sizeof(struct embeng_fw_signature))

static u8 file[IMAGE + EMBENG_FW_SIGNATURE_MAX + 64];

/* An image and a signature whose message has @bytes. Return: bytes of the file. */
static size_t make_file(u64 bytes)
{
	struct embeng_fw_header header = {.magic = EMBENG_FW_MAGIC, .length = IMAGE};
	struct embeng_fw_signature head = {.magic = EMBENG_FW_SIGNATURE_MAGIC,
					   .kind = EMBENG_FW_SIGNATURE_PKCS7,
					   .length = bytes,
					   .key_id_length = 3,
					   .key_id = {1, 2, 3}};

	memset(file, 0, sizeof(file));
	memcpy(file, &header, sizeof(header));
	memcpy(file + IMAGE, &head, sizeof(head));
	memset(file + MESSAGE, 0x30, bytes);
	return (MESSAGE + bytes + 63) & ~(size_t)63;
}

static void expect(size_t length, u32 error, u64 offset)
{
	struct signature out = {.image = 99};
	u64 at = 0;

	ck_assert_uint_eq(signature_find(file, length, &out, &at), error);
	ck_assert_uint_eq(at, offset);
	ck_assert_uint_eq(out.image, error ? 99 : IMAGE);
	if (!error) {
		ck_assert_uint_eq(out.block, length - IMAGE);
		ck_assert_uint_eq(out.head.length != 0, length != IMAGE);
	}
}

static const u64 lengths[] = {1, 63, 64, 65, 1000, EMBENG_FW_SIGNATURE_MAX - 64};

START_TEST(a_signature_is_found)
{
	expect(make_file(lengths[_i]), EMBENG_BOOT_ERROR_NONE, 0);
}
END_TEST

START_TEST(a_file_without_one_is_unsigned)
{
	make_file(1);
	expect(IMAGE, EMBENG_BOOT_ERROR_NONE, 0);
}
END_TEST

/* A file of @length bytes with one value changed. */
static const struct {
	u64 at;
	u32 bytes;
	u64 value;
	u32 error;
	u64 offset;
} broken[] = {
	{0, 4, 7, EMBENG_BOOT_ERROR_MAGIC, 0},
	{24, 8, IMAGE + 129, EMBENG_BOOT_ERROR_LENGTH, 24},
	{24, 8, U64_MAX, EMBENG_BOOT_ERROR_LENGTH, 24},
	{24, 8, 127, EMBENG_BOOT_ERROR_LENGTH, 24},
	{24, 8, 0, EMBENG_BOOT_ERROR_LENGTH, 24},
	{24, 8, 128, EMBENG_BOOT_ERROR_SIGNATURE, 128},
	{24, 8, IMAGE + 64, EMBENG_BOOT_ERROR_SIGNATURE, IMAGE + 64},
	{24, 8, IMAGE + 127, EMBENG_BOOT_ERROR_SIGNATURE, IMAGE + 128},
	{AT(magic), 4, EMBENG_FW_MAGIC, EMBENG_BOOT_ERROR_SIGNATURE, AT(magic)},
	{AT(kind), 4, 0, EMBENG_BOOT_ERROR_SIGNATURE, AT(kind)},
	{AT(kind), 4, 2, EMBENG_BOOT_ERROR_SIGNATURE, AT(kind)},
	{AT(length), 8, 0, EMBENG_BOOT_ERROR_SIGNATURE, AT(length)},
	{AT(length), 8, 65, EMBENG_BOOT_ERROR_SIGNATURE, AT(length)},
	{AT(length), 8, U64_MAX, EMBENG_BOOT_ERROR_SIGNATURE, AT(length)},
	{AT(length), 8, U64_MAX - 63, EMBENG_BOOT_ERROR_SIGNATURE, AT(length)},
	{AT(length), 8, 59, EMBENG_BOOT_ERROR_SIGNATURE, MESSAGE + 59},
	{AT(key_id_length), 4, 33, EMBENG_BOOT_ERROR_SIGNATURE, AT(key_id_length)},
	{AT(key_id_length), 4, U32_MAX, EMBENG_BOOT_ERROR_SIGNATURE, AT(key_id_length)},
	{AT(key_id_length), 4, 2, EMBENG_BOOT_ERROR_SIGNATURE, AT(key_id) + 2},
	{AT(reserved), 1, 1, EMBENG_BOOT_ERROR_SIGNATURE, AT(reserved)},
	{AT(reserved) + 11, 1, 1, EMBENG_BOOT_ERROR_SIGNATURE, AT(reserved) + 11},
	{MESSAGE + 60, 1, 1, EMBENG_BOOT_ERROR_SIGNATURE, MESSAGE + 60},
	{MESSAGE + 63, 1, 1, EMBENG_BOOT_ERROR_SIGNATURE, MESSAGE + 63},
};

START_TEST(a_broken_one_is_refused_where_it_is_broken)
{
	size_t length = make_file(60);

	ck_assert_uint_eq(length, IMAGE + 128);
	memcpy(file + broken[_i].at, &broken[_i].value, broken[_i].bytes);
	expect(length, broken[_i].error, broken[_i].offset);
}
END_TEST

START_TEST(a_whole_key_id_fits)
{
	size_t length = make_file(60);
	u32 most = 32;

	memset(file + AT(key_id), 0xff, most);
	memcpy(file + AT(key_id_length), &most, sizeof(most));
	expect(length, EMBENG_BOOT_ERROR_NONE, 0);
}
END_TEST

START_TEST(a_file_of_another_length_is_refused)
{
	static const struct {
		u64 length, offset;
		u32 error;
	} cut[] = {
		{0, 0, EMBENG_BOOT_ERROR_LENGTH},
		{127, 127, EMBENG_BOOT_ERROR_LENGTH},
		{IMAGE - 1, 24, EMBENG_BOOT_ERROR_LENGTH},
		{IMAGE + 1, IMAGE + 1, EMBENG_BOOT_ERROR_SIGNATURE},
		{IMAGE + 63, IMAGE + 63, EMBENG_BOOT_ERROR_SIGNATURE},
		{IMAGE + 64, AT(length), EMBENG_BOOT_ERROR_SIGNATURE},
		{IMAGE + 127, AT(length), EMBENG_BOOT_ERROR_SIGNATURE},
		{IMAGE + 129, AT(length), EMBENG_BOOT_ERROR_SIGNATURE},
		{IMAGE + 192, AT(length), EMBENG_BOOT_ERROR_SIGNATURE},
		{IMAGE + EMBENG_FW_SIGNATURE_MAX + 1, AT(length), EMBENG_BOOT_ERROR_SIGNATURE},
	};

	make_file(60);
	expect(cut[_i].length, cut[_i].error, cut[_i].offset);
}
END_TEST

/* The end of such a message, rounded up, is the end of the head: of 0 bytes, or nearly 2^64. */
START_TEST(a_message_that_is_empty_or_wraps_around_is_refused)
{
	u64 length = (u64)_i - 64;

	make_file(1);
	memset(file + MESSAGE, 0, 64);
	memcpy(file + AT(length), &length, sizeof(length));
	expect(IMAGE + 64, EMBENG_BOOT_ERROR_SIGNATURE, AT(length));
}
END_TEST

START_TEST(more_than_a_signature_holds_is_refused)
{
	expect(make_file(EMBENG_FW_SIGNATURE_MAX - 63), EMBENG_BOOT_ERROR_SIGNATURE, AT(length));
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, a_signature_is_found, 0, (int)(sizeof(lengths) / sizeof(*lengths)));
	tcase_add_test(t, a_file_without_one_is_unsigned);
	tcase_add_loop_test(t, a_broken_one_is_refused_where_it_is_broken, 0,
			    (int)(sizeof(broken) / sizeof(broken[0])));
	tcase_add_test(t, a_whole_key_id_fits);
	tcase_add_loop_test(t, a_file_of_another_length_is_refused, 0, 10);
	tcase_add_loop_test(t, a_message_that_is_empty_or_wraps_around_is_refused, 0, 65);
	tcase_add_test(t, more_than_a_signature_holds_is_refused);
}

int main(void)
{
	return suite_main("signature", add);
}
