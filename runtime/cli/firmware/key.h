/* SPDX-License-Identifier: MIT */
/* Signatures as the kernel checks them: PKCS #7 (CMS), detached, by the key of an X.509 certificate. */
#ifndef CLI_FW_KEY_H
#define CLI_FW_KEY_H

#include "commands.h"

struct evp_pkey_st; /* EVP_PKEY of libcrypto */
struct x509_st;	    /* X509 */

/**
 * fw_certificate() - read a certificate, PEM or DER
 * @path: the file
 * @certificate: set; for fw_certificate_free()
 *
 * Return: 0, or an exit code after the failure was reported: for one thing, its key must be of a
 * kind that kernels can check.
 */
int fw_certificate(const struct output *out, const char *path, struct x509_st **certificate);
void fw_certificate_free(struct x509_st *certificate);

/* The certificate's subject key identifier. Return: its bytes, 0 if it has none that fits. */
size_t fw_certificate_id(struct x509_st *certificate, unsigned char id[32]);

/**
 * fw_private_key() - read the private key of a certificate, PEM without passphrase
 * @path: the file
 * @certificate: the certificate
 * @key: set; for fw_private_key_free()
 *
 * Return: as fw_certificate().
 */
int fw_private_key(const struct output *out, const char *path, struct x509_st *certificate,
		   struct evp_pkey_st **key);
void fw_private_key_free(struct evp_pkey_st *key);

/* Signs data. @message: malloc'd. Return: 0, -ENOMEM or -EIO. */
int fw_key_sign(struct evp_pkey_st *key, struct x509_st *certificate, const void *data,
		size_t length, unsigned char **message, size_t *message_length);

/* Whether these bytes are a detached PKCS #7 message that has one signer or more. */
bool fw_message_valid(const unsigned char *message, size_t message_length);

/* Whether the message was made with the key of this certificate for this data. */
bool fw_key_verify(struct x509_st *certificate, const void *data, size_t length,
		   const unsigned char *message, size_t message_length);

#endif
