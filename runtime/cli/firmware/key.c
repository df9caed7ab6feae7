// SPDX-License-Identifier: MIT
/*
 * Keys and signatures (Ed25519) by libcrypto. Only this file includes its headers.
 *
 * A key belongs to the caller until fw_key_free().
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdlib.h>

#include "key.h"

#define KEY_MOST (64u << 10)

/* A build must not stop and ask. */
static int no_passphrase(char *buffer, int size, int writing, void *arg)
{
	(void)buffer, (void)size, (void)writing, (void)arg;
	return -1;
}

static EVP_PKEY *parse_pem(const unsigned char *text, size_t length, bool private)
{
	BIO *bio = BIO_new_mem_buf(text, (int)length);
	EVP_PKEY *key = NULL;

	if (bio && private)
		key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
	else if (bio)
		key = PEM_read_bio_PUBKEY(bio, NULL, no_passphrase, NULL);
	BIO_free(bio);
	ERR_clear_error();
	return key;
}

static int read_key(const struct output *out, const char *path, bool private, EVP_PKEY **key)
{
	const char *kind = private ? "private" : "public";
	unsigned char *text;
	size_t length;
	int code = fw_read(out, path, KEY_MOST, &text, &length);

	if (code)
		return code;
	*key = parse_pem(text, length, private);
	OPENSSL_cleanse(text, length);
	free(text);
	if (*key && EVP_PKEY_get_base_id(*key) == EVP_PKEY_ED25519)
		return CLI_OK;
	fw_key_free(*key);
	return output_fail(
		out, CLI_USAGE, EINVAL,
		private ? "openssl genpkey -algorithm ed25519 -out private.pem makes one"
			: "openssl pkey -in private.pem -pubout -out public.pem makes one",
		"%s is no %s Ed25519 key in a PEM file without passphrase", path, kind);
}

int fw_key_private(const struct output *out, const char *path, EVP_PKEY **key)
{
	return read_key(out, path, true, key);
}

int fw_key_public(const struct output *out, const char *path, EVP_PKEY **key)
{
	return read_key(out, path, false, key);
}

void fw_key_free(EVP_PKEY *key)
{
	EVP_PKEY_free(key);
}

int fw_key_sign(EVP_PKEY *key, const void *data, size_t length,
		unsigned char signature[FW_SIGNATURE_BYTES])
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	size_t room = FW_SIGNATURE_BYTES;
	bool done = context && EVP_DigestSignInit(context, NULL, NULL, NULL, key) == 1 &&
		    EVP_DigestSign(context, signature, &room, data, length) == 1;

	EVP_MD_CTX_free(context);
	ERR_clear_error();
	return done && room == FW_SIGNATURE_BYTES ? 0 : -EIO;
}

bool fw_key_verify(EVP_PKEY *key, const void *data, size_t length,
		   const unsigned char signature[FW_SIGNATURE_BYTES])
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	bool good = context && EVP_DigestVerifyInit(context, NULL, NULL, NULL, key) == 1 &&
		    EVP_DigestVerify(context, signature, FW_SIGNATURE_BYTES, data, length) == 1;

	EVP_MD_CTX_free(context);
	ERR_clear_error();
	return good;
}
