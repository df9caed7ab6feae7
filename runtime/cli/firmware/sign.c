// SPDX-License-Identifier: MIT
/*
 * The command `embeng fw sign`: writes the signature of an image beside it. The key comes from a
 * PEM file and stays in memory for one call.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "key.h"

static const char doc[] =
	"Write the detached Ed25519 signature of a firmware image, which is 64 bytes.\v"
	"KEY is a private key in a PEM file, without passphrase. The signature covers the\n"
	"header and the section table, which contains the hash of every section. openssl can\n"
	"check the signature, too, as embeng-firmware(5) shows.\n\n"
	"  openssl genpkey -algorithm ed25519 -out private.pem\n"
	"  openssl pkey -in private.pem -pubout -out public.pem\n"
	"  embeng fw sign embeng.fw --key private.pem\n\n"
	"Exit status: 0 ok, 2 usage or KEY is no such key, 4 permission, 7 read or write\n"
	"error, 10 a device would refuse the image.";

static const struct argp_option options[] = {
	{"key", 'k', "KEY", 0, "Sign with this private key", 0},
	{"output", 'o', "FILE", 0, "Write the signature to FILE instead of IMAGE.sig", 0},
	{0},
};

struct arguments {
	const char *image; /* first, for fw_parse_image() */
	const char *key, *output;
};

static error_t parse_sign_option(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case 'k':
		a->key = arg;
		return 0;
	case 'o':
		a->output = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->key) {
			argp_error(state, "--key KEY is missing; name the file of a private key");
			return EINVAL;
		}
		return 0;
	default:
		return fw_parse_image(key, arg, state);
	}
}

static int sign_image(const struct output *out, const struct arguments *a,
		      const struct fw_image *image, const char *path)
{
	unsigned char signature[FW_SIGNATURE_BYTES];
	struct evp_pkey_st *key = NULL;
	int code = fw_key_private(out, a->key, &key), err;

	if (code)
		return code;
	err = fw_key_sign(key, image->data, fw_signed_length(image), signature);
	fw_key_free(key);
	if (err)
		return output_fail(out, CLI_DEVICE, err, NULL, "libcrypto cannot sign with %s",
				   a->key);
	return fw_write(out, path, signature, sizeof(signature));
}

static int report_signature(const struct output *out, const struct fw_image *image,
			    const char *path)
{
	struct json_object *d;

	if (!out->json) {
		printf("%s: signature of the first %zu bytes of %s\n", path,
		       fw_signed_length(image), image->path);
		return CLI_OK;
	}
	d = json_document(out);
	fw_add_image(d, image);
	json_add_text(d, "signature", path);
	json_add_number(d, "signed_length", fw_signed_length(image));
	return json_emit(d);
}

int fw_sign(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse_sign_option, .args_doc = "IMAGE", .doc = doc};
	struct output out = {.verb = "fw", .command = "sign"};
	struct arguments a = {0};
	struct fw_image image = {0};
	char *path = NULL;
	int code = command_parse(&argp, argc, argv, &out, &a);

	if (!code)
		code = fw_load(&out, a.image, 0, &image);
	if (!code) {
		path = a.output ? strdup(a.output) : fw_signature_path(a.image);
		code = path ? sign_image(&out, &a, &image, path)
			    : output_fail(&out, CLI_DEVICE, ENOMEM, NULL, "out of memory");
	}
	if (!code)
		code = report_signature(&out, &image, path);
	free(path);
	free(image.data);
	return code;
}
