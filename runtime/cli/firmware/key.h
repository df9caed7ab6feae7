/* SPDX-License-Identifier: MIT */
/* Ed25519 signatures with keys from PEM files. */
#ifndef CLI_FW_KEY_H
#define CLI_FW_KEY_H

#include "commands.h"

#define FW_SIGNATURE_BYTES 64u

struct evp_pkey_st; /* EVP_PKEY of libcrypto */

/* Read a key. Return: 0, or an exit code after the failure was reported. */
int fw_key_private(const struct output *out, const char *path, struct evp_pkey_st **key);
int fw_key_public(const struct output *out, const char *path, struct evp_pkey_st **key);
void fw_key_free(struct evp_pkey_st *key);

/* Signs data. Return: 0 or -EIO. */
int fw_key_sign(struct evp_pkey_st *key, const void *data, size_t length,
		unsigned char signature[FW_SIGNATURE_BYTES]);

/* Whether the signature was made with this key for this data. */
bool fw_key_verify(struct evp_pkey_st *key, const void *data, size_t length,
		   const unsigned char signature[FW_SIGNATURE_BYTES]);

#endif
