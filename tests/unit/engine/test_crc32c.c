// SPDX-License-Identifier: MIT
/* CRC-32C: known sums, and the same sum for any length and any division into pieces. */
#include <string.h>

#include "engine/hash/crc32c.h"
#include "suite.h"

static u32 bit_by_bit(const u8 *p, u64 length)
{
	u32 crc = ~0u, bit;

	while (length--) {
		crc ^= *p++;
		for (bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
	}
	return ~crc;
}

static u32 (*const ways[])(u32 crc, const void *data, u64 length) = {crc32c, crc32c_tables};

/* RFC 3720, B.4. */
START_TEST(known_sums)
{
	u32 (*sum)(u32 crc, const void *data, u64 length) = ways[_i];
	u8 data[32];
	u32 i;

	ck_assert_uint_eq(sum(0, "", 0), 0);
	ck_assert_uint_eq(sum(0, "123456789", 9), 0xe3069283u);
	memset(data, 0, sizeof(data));
	ck_assert_uint_eq(sum(0, data, sizeof(data)), 0x8a9136aau);
	memset(data, 0xff, sizeof(data));
	ck_assert_uint_eq(sum(0, data, sizeof(data)), 0x62a8ab43u);
	for (i = 0; i < sizeof(data); i++)
		data[i] = (u8)i;
	ck_assert_uint_eq(sum(0, data, sizeof(data)), 0x46dd794eu);
}
END_TEST

START_TEST(any_length_and_pieces)
{
	u32 (*sum)(u32 crc, const void *data, u64 length) = ways[_i];
	u8 data[100];
	u32 length, cut;

	for (length = 0; length < sizeof(data); length++)
		data[length] = (u8)(length * 31 + 5);
	for (length = 0; length <= sizeof(data); length++) {
		ck_assert_uint_eq(sum(0, data, length), bit_by_bit(data, length));
		for (cut = 0; cut <= length; cut++)
			ck_assert_uint_eq(sum(sum(0, data, cut), data + cut, length - cut),
					  bit_by_bit(data, length));
	}
}
END_TEST

/* Long ones, which the instruction sums in lanes, from any address. */
START_TEST(lanes_are_added)
{
	static u8 data[60000];
	u32 i, length;

	for (i = 0; i < sizeof(data); i++)
		data[i] = (u8)(i * 2654435761u >> 13);
	for (length = 12280; length < sizeof(data) - 9; length += 1229) {
		u32 from = length % 9;

		ck_assert_uint_eq(crc32c(length, data + from, length),
				  crc32c_tables(length, data + from, length));
	}
	ck_assert_uint_eq(crc32c(0, data, 12288), bit_by_bit(data, 12288));
	ck_assert_uint_eq(crc32c(0, data, 3 * 12288 + 7), bit_by_bit(data, 3 * 12288 + 7));
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, known_sums, 0, 2);
	tcase_add_loop_test(t, any_length_and_pieces, 0, 2);
	tcase_add_test(t, lanes_are_added);
}

int main(void)
{
	return suite_main("crc32c", add);
}
