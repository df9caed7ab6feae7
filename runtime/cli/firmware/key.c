// SPDX-License-Identifier: MIT
/*
 * Keys, certificates and signatures (CMS) by libcrypto. Only this file includes its headers.
 *
 * A key or a certificate belongs to the caller until it is freed here. Nothing is shared.
 */
#include <errno.h>
#include <openssl/cms.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

#include "key.h"

#define KEY_MOST (64u << 10)
#define SIGN_FLAGS (CMS_DETACHED | CMS_BINARY | CMS_NOCERTS | CMS_NOSMIMECAP)
/* The one certificate is trusted as it is: neither its dates nor its issuer matter, as in kernels. */
#define VERIFY_FLAGS (CMS_BINARY | CMS_NOINTERN | CMS_NO_SIGNER_CERT_VERIFY)

/* A build must not stop and ask. */
static int no_passphrase(char *buffer, int size, int writing, void *arg)
{
	(void)buffer, (void)size, (void)writing, (void)arg;
	return -1;
}

static X509 *parse_certificate(const unsigned char *text, size_t length)
{
	BIO *bio = BIO_new_mem_buf(text, (int)length);
	X509 *certificate = bio ? PEM_read_bio_X509(bio, NULL, no_passphrase, NULL) : NULL;

	BIO_free(bio);
	if (!certificate)
		certificate = d2i_X509(NULL, &text, (long)length);
	ERR_clear_error();
	return certificate;
}

/* The kernel's parser and its ciphers take these. */
static bool is_known_to_kernels(EVP_PKEY *key)
{
	int bits = EVP_PKEY_get_bits(key);

	switch (EVP_PKEY_get_base_id(key)) {
	case EVP_PKEY_RSA:
		return bits == 2048 || bits == 3072 || bits == 4096;
	case EVP_PKEY_EC:
		return bits == 256 || bits == 384;
	default:
		return false;
	}
}

int fw_certificate(const struct output *out, const char *path, X509 **certificate)
{
	static const char make[] =
		"openssl req -x509 -newkey rsa:4096 -nodes -subj /CN=NAME -keyout key.pem -out "
		"cert.pem makes a key and its certificate";
	unsigned char *text;
	size_t length;
	int code = fw_read(out, path, KEY_MOST, &text, &length);

	if (code)
		return code;
	*certificate = parse_certificate(text, length);
	free(text);
	if (!*certificate)
		return output_fail(out, CLI_USAGE, EINVAL, make,
				   "%s is no X.509 certificate, in PEM or DER", path);
	if (is_known_to_kernels(X509_get0_pubkey(*certificate)))
		return CLI_OK;
	fw_certificate_free(*certificate);
	return output_fail(out, CLI_USAGE, EINVAL, make,
			   "%s is for a key that kernels cannot check; they can RSA of 2048, 3072 "
			   "or 4096 bits, and ECDSA on P-256 or P-384",
			   path);
}

void fw_certificate_free(X509 *certificate)
{
	X509_free(certificate);
}

size_t fw_certificate_id(X509 *certificate, unsigned char id[32])
{
	const ASN1_OCTET_STRING *found = X509_get0_subject_key_id(certificate);
	int length = found ? ASN1_STRING_length(found) : 0;

	if (length <= 0 || length > 32)
		return 0;
	memcpy(id, ASN1_STRING_get0_data(found), (size_t)length);
	return (size_t)length;
}

static EVP_PKEY *parse_key(const unsigned char *text, size_t length)
{
	BIO *bio = BIO_new_mem_buf(text, (int)length);
	EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;

	BIO_free(bio);
	ERR_clear_error();
	return key;
}

int fw_private_key(const struct output *out, const char *path, X509 *certificate, EVP_PKEY **key)
{
	unsigned char *text;
	size_t length;
	bool fits;
	int code = fw_read(out, path, KEY_MOST, &text, &length);

	if (code)
		return code;
	*key = parse_key(text, length);
	OPENSSL_cleanse(text, length);
	free(text);
	if (!*key)
		return output_fail(out, CLI_USAGE, EINVAL,
				   "a key that a machine keeps signs by openssl cms, and embeng fw "
				   "sign --signature takes what comes out",
				   "%s is no private key in a PEM file without passphrase", path);
	fits = X509_check_private_key(certificate, *key) == 1;
	ERR_clear_error();
	if (fits)
		return CLI_OK;
	fw_private_key_free(*key);
	return output_fail(out, CLI_USAGE, EINVAL, NULL,
			   "%s is not the key of the certificate; give both of one pair", path);
}

void fw_private_key_free(EVP_PKEY *key)
{
	EVP_PKEY_free(key);
}

static int encode_message(CMS_ContentInfo *cms, unsigned char **message, size_t *message_length)
{
	unsigned char *der = NULL;
	int length = i2d_CMS_ContentInfo(cms, &der);

	if (length <= 0)
		return -EIO;
	*message = malloc((size_t)length);
	if (*message)
		memcpy(*message, der, (size_t)length);
	OPENSSL_free(der);
	*message_length = (size_t)length;
	return *message ? 0 : -ENOMEM;
}

int fw_key_sign(EVP_PKEY *key, X509 *certificate, const void *data, size_t length,
		unsigned char **message, size_t *message_length)
{
	BIO *bio = BIO_new_mem_buf(data, (int)length);
	CMS_ContentInfo *cms = bio ? CMS_sign(NULL, NULL, NULL, bio, SIGN_FLAGS | CMS_PARTIAL)
				   : NULL;
	int ret = -EIO;

	if (cms && CMS_add1_signer(cms, certificate, key, EVP_sha256(), SIGN_FLAGS) &&
	    CMS_final(cms, bio, NULL, SIGN_FLAGS) == 1)
		ret = encode_message(cms, message, message_length);
	CMS_ContentInfo_free(cms);
	BIO_free(bio);
	ERR_clear_error();
	return ret;
}

/* All of the bytes, and no more. NULL: they are no CMS message. */
static CMS_ContentInfo *parse_message(const unsigned char *message, size_t message_length)
{
	const unsigned char *end = message;
	CMS_ContentInfo *cms = d2i_CMS_ContentInfo(NULL, &end, (long)message_length);

	if (cms && end == message + message_length)
		return cms;
	CMS_ContentInfo_free(cms);
	return NULL;
}

bool fw_message_valid(const unsigned char *message, size_t message_length)
{
	CMS_ContentInfo *cms = parse_message(message, message_length);
	STACK_OF(CMS_SignerInfo) *signers = cms ? CMS_get0_SignerInfos(cms) : NULL;
	bool valid = signers && sk_CMS_SignerInfo_num(signers) > 0 && CMS_is_detached(cms) == 1;

	CMS_ContentInfo_free(cms);
	ERR_clear_error();
	return valid;
}

bool fw_key_verify(X509 *certificate, const void *data, size_t length, const unsigned char *message,
		   size_t message_length)
{
	CMS_ContentInfo *cms = parse_message(message, message_length);
	STACK_OF(X509) *signers = sk_X509_new_null();
	BIO *bio = BIO_new_mem_buf(data, (int)length);
	bool good = cms && signers && bio && CMS_is_detached(cms) == 1 &&
		    sk_X509_push(signers, certificate) > 0 &&
		    CMS_verify(cms, signers, NULL, bio, NULL, VERIFY_FLAGS) == 1;

	BIO_free(bio);
	sk_X509_free(signers);
	CMS_ContentInfo_free(cms);
	ERR_clear_error();
	return good;
}
