// SPDX-License-Identifier: MIT
/*
 * The command `embeng fw verify`: checks an image as a device would, runs its self-tests on this
 * processor, and compares its signature.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../../engine/kernels/variants.h"
#include "../../../firmware-loader/source.h"
#include "key.h"

static const char doc[] =
	"Check a firmware image as a device does, and its signature.\v"
	"The structure, the hashes and the contents are checked. Then the self-tests run on\n"
	"every kernel variant that this processor supports. The signature is checked only with\n"
	"--key; a device does not check it. If something is wrong, the message names the byte\n"
	"of the first fault.\n\n"
	"  embeng fw verify embeng.fw\n"
	"  embeng fw verify embeng.fw --key public.pem\n"
	"  embeng fw verify embeng.fw --minimum 0.2.0\n\n"
	"Exit status: 0 good, 2 usage or a file is missing, 4 permission, 7 read error, 10 a\n"
	"device would refuse the image, or the signature is not good.";

enum { KEY_MINIMUM = 0x100 };

static const struct argp_option options[] = {
	{"key", 'k', "KEY", 0,
	 "Check that the image is signed with the key of this public PEM file", 0},
	{"signature", 's', "FILE", 0, "Read the signature from FILE instead of IMAGE.sig", 0},
	{"minimum", KEY_MINIMUM, "VERSION", 0,
	 "Refuse an image with a lower version, to prevent a rollback", 0},
	{0},
};

struct arguments {
	const char *image; /* first, for fw_parse_image() */
	const char *key, *signature;
	__u64 minimum;
};

static error_t parse_fw_verify_option(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case 'k':
		a->key = arg;
		return 0;
	case 's':
		a->signature = arg;
		return 0;
	case KEY_MINIMUM:
		if (!version_read(arg, &a->minimum))
			return 0;
		argp_error(state, "--minimum takes a version like 1.2.3 or 1.2.3.4, not '%s'", arg);
		return EINVAL;
	case ARGP_KEY_END:
		if (a->signature && !a->key) {
			argp_error(state, "--signature needs --key, the key to check it with");
			return EINVAL;
		}
		return 0;
	default:
		return fw_parse_image(key, arg, state);
	}
}

static int compare_signature(const struct output *out, const struct arguments *a,
			     const struct fw_image *image, const char *path)
{
	unsigned char *signature;
	struct evp_pkey_st *key = NULL;
	size_t length;
	bool good;
	int code = fw_key_public(out, a->key, &key);

	if (code)
		return code;
	code = fw_read(out, path, EMBENG_FW_LENGTH_MAX, &signature, &length);
	if (!code) {
		good = length == FW_SIGNATURE_BYTES &&
		       fw_key_verify(key, image->data, fw_signed_length(image), signature);
		free(signature);
		if (!good)
			code = output_fail(out, CLI_FIRMWARE, EBADMSG, NULL,
					   "%s: the signature in %s is not of this image and %s",
					   image->path, path, a->key);
	}
	fw_key_free(key);
	return code;
}

static int check_signature(const struct output *out, const struct arguments *a,
			   const struct fw_image *image)
{
	char *path;
	int code;

	if (!a->key)
		return CLI_OK;
	path = a->signature ? strdup(a->signature) : fw_signature_path(a->image);
	if (!path)
		return output_fail(out, CLI_DEVICE, ENOMEM, NULL, "out of memory");
	code = compare_signature(out, a, image, path);
	free(path);
	return code;
}

/* Calls @visit with each variant that this processor has. */
static void each_variant(void *arg, void (*visit)(void *arg, const char *name))
{
	const char *name;

	for (uint32_t i = 0; (name = kernel_variant(i)); i++) {
		if (kernel_select(name))
			visit(arg, name);
	}
}

static void add_variant(void *arg, const char *name)
{
	json_object_array_add(arg, json_object_new_string(name));
}

static void print_variant(void *arg, const char *name)
{
	const char **separator = arg;

	printf("%s%s", *separator, name);
	*separator = ", ";
}

static int report_good_image(const struct output *out, const struct arguments *a,
			     const struct fw_image *image)
{
	const char *separator = " self-tests passed on ", *checked = a->key ? "good" : "unchecked";
	char version[FW_VERSION_TEXT];
	struct json_object *d, *variants;

	if (!out->json) {
		printf("%s: good: %s, %zu bytes, signature %s; %u", image->path,
		       fw_version(image->firmware.version, version), image->length, checked,
		       image->firmware.test_count);
		each_variant(&separator, print_variant);
		putchar('\n');
		return CLI_OK;
	}
	d = json_document(out);
	fw_add_image(d, image);
	json_add_text(d, "signature", checked);
	json_add_number(d, "self_tests", image->firmware.test_count);
	variants = json_object_new_array();
	each_variant(variants, add_variant);
	json_object_object_add(d, "variants", variants);
	return json_emit(d);
}

int fw_verify(int argc, char **argv)
{
	static const struct argp argp = {.options = options,
					 .parser = parse_fw_verify_option,
					 .args_doc = "IMAGE",
					 .doc = doc};
	struct output out = {.verb = "fw", .command = "verify"};
	struct arguments a = {0};
	struct fw_image image = {0};
	int code = command_parse(&argp, argc, argv, &out, &a);

	if (!code)
		code = fw_load(&out, a.image, a.minimum, &image);
	if (!code)
		code = check_signature(&out, &a, &image);
	if (!code)
		code = fw_self_test(&out, &image);
	if (!code)
		code = report_good_image(&out, &a, &image);
	free(image.data);
	return code;
}
