// SPDX-License-Identifier: MIT
/*
 * The command `embeng fw verify`: checks an image as a device would, runs its self-tests on this
 * processor, and checks its signature against a certificate.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../../engine/kernels/variants.h"
#include "../../../firmware-loader/source.h"
#include "key.h"

static const char doc[] =
	"Check a firmware image as a device does, and who signed it.\v"
	"The structure, the hashes and the contents are checked. Then the self-tests run on\n"
	"every kernel variant that this processor supports. Who signed the image is checked\n"
	"with --certificate only. If something is wrong, the message names the byte of the\n"
	"first fault.\n\n"
	"  embeng fw verify embeng.fw\n"
	"  embeng fw verify embeng.fw --certificate cert.pem\n"
	"  embeng fw verify embeng.fw --minimum 0.2.0\n\n"
	"Exit status: 0 good, 2 usage or a file is missing, 4 permission, 7 read error, 10 a\n"
	"device would refuse the image, or it is not signed by CERT.";

enum { KEY_MINIMUM = 0x100 };

static const struct argp_option options[] = {
	{"certificate", 'c', "CERT", 0,
	 "Check that the key of this X.509 certificate, PEM or DER, signed the image", 0},
	{"minimum", KEY_MINIMUM, "VERSION", 0,
	 "Refuse an image with a lower version, to prevent a rollback", 0},
	{0},
};

struct arguments {
	const char *image; /* first, for fw_parse_image() */
	const char *certificate;
	__u64 minimum;
};

static error_t parse_fw_verify_option(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case 'c':
		a->certificate = arg;
		return 0;
	case KEY_MINIMUM:
		if (!version_read(arg, &a->minimum))
			return 0;
		argp_error(state, "--minimum takes a version like 1.2.3 or 1.2.3.4, not '%s'", arg);
		return EINVAL;
	default:
		return fw_parse_image(key, arg, state);
	}
}

static bool is_signed_by(const struct fw_image *image, struct x509_st *certificate)
{
	const struct signature *s = &image->signature;

	return fw_key_verify(certificate, image->data, s->image,
			     image->data + s->image + sizeof(s->head), s->head.length);
}

static int check_certificate(const struct output *out, const struct arguments *a,
			     const struct fw_image *image)
{
	struct x509_st *certificate = NULL;
	char text[FW_SIGNATURE_TEXT];
	bool good;
	int code;

	if (!a->certificate)
		return CLI_OK;
	code = fw_certificate(out, a->certificate, &certificate);
	if (code)
		return code;
	good = image->signature.block && is_signed_by(image, certificate);
	fw_certificate_free(certificate);
	if (good)
		return CLI_OK;
	return output_fail(out, CLI_FIRMWARE, EBADMSG,
			   image->signature.block ? NULL : "embeng fw sign signs it",
			   "%s is not signed by the key of %s: it is %s", image->path,
			   a->certificate, fw_signature(image, text));
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
	const char *separator = " self-tests passed on ",
		   *checked = a->certificate ? "good" : "unchecked";
	char version[FW_VERSION_TEXT], signature[FW_SIGNATURE_TEXT];
	struct json_object *d, *variants;

	if (!image->signature.block)
		checked = "none";
	if (!out->json) {
		printf("%s: good: %s, %zu bytes, %s%s; %u", image->path,
		       fw_version(image->firmware.version, version), image->length,
		       fw_signature(image, signature),
		       strcmp(checked, "unchecked") ? "" : " (unchecked)",
		       image->firmware.test_count);
		each_variant(&separator, print_variant);
		putchar('\n');
		return CLI_OK;
	}
	d = json_document(out);
	fw_add_image(d, image);
	json_add_text(d, "signer", checked);
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
		code = check_certificate(&out, &a, &image);
	if (!code)
		code = fw_self_test(&out, &image);
	if (!code)
		code = report_good_image(&out, &a, &image);
	free(image.data);
	return code;
}
