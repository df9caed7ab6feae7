// SPDX-License-Identifier: MIT
/* SHA-256: known digests, and the same digest for any division into pieces. */
#include <stdlib.h>
#include <string.h>

#include "engine/hash/sha256.h"
#include "suite.h"

/* FIPS 180-4 examples, and the lengths at which padding changes. */
static const struct {
	const char *text;
	u32 repeat;
	const char *digest;
} known[] = {
	{"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	{"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
	{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
	 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
	{"a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
};

static void assert_digest(const u8 *digest, const char *hex)
{
	char text[2 * SHA256_BYTES + 1] = "";
	u32 i;

	for (i = 0; i < SHA256_BYTES; i++) {
		text[2 * i] = "0123456789abcdef"[digest[i] >> 4];
		text[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
	}
	ck_assert_str_eq(text, hex);
}

START_TEST(known_digests)
{
	struct sha256 s;
	u8 digest[SHA256_BYTES];
	u32 i;

	sha256_init(&s);
	for (i = 0; i < known[_i].repeat; i++)
		sha256_update(&s, known[_i].text, strlen(known[_i].text));
	sha256_final(&s, digest);
	assert_digest(digest, known[_i].digest);
}
END_TEST

START_TEST(pieces_do_not_matter)
{
	u8 data[200], whole[SHA256_BYTES], pieces[SHA256_BYTES];
	struct sha256 s;
	u32 length, cut;

	for (length = 0; length < sizeof(data); length++)
		data[length] = (u8)(length * 7);
	for (length = 0; length < sizeof(data); length++) {
		cut = length / 3;
		sha256_digest(data, length, whole);
		sha256_init(&s);
		sha256_update(&s, data, cut);
		sha256_update(&s, data + cut, length - cut);
		sha256_final(&s, pieces);
		ck_assert_mem_eq(whole, pieces, sizeof(whole));
	}
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, known_digests, 0, 4);
	tcase_add_test(t, pieces_do_not_matter);
}

int main(void)
{
	return suite_main("sha256", add);
}
