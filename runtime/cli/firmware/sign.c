// SPDX-License-Identifier: MIT
/*
 * The command `embeng fw sign`: puts a signature behind an image, made with a key here or by
 * openssl elsewhere. Key and certificate come from files and stay in memory for one call.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "key.h"

static const char doc[] =
	"Put a signature behind a firmware image, in place of one that is there.\v"
	"KEY is a private key in a PEM file, without passphrase, and CERT its X.509\n"
	"certificate in PEM or DER. Whoever checks the image has CERT; docs/firmware-keys.md says\n"
	"how it gets there. A key that leaves no machine signs with openssl, which\n"
	"embeng-firmware(5) shows, and --signature takes what comes out.\n\n"
	"  openssl req -x509 -newkey rsa:4096 -nodes -days 3650 -subj /CN=embeng-test \\\n"
	"      -keyout key.pem -out cert.pem\n"
	"  embeng fw sign embeng.fw --key key.pem --certificate cert.pem\n"
	"  embeng fw sign embeng.fw --signature embeng.p7s --certificate cert.pem\n\n"
	"Exit status: 0 ok, 2 usage or a file is none of its kind, 4 permission, 7 read or\n"
	"write error, 10 a device would refuse the image, or the signature is not of it.";

static const struct argp_option options[] = {
	{"key", 'k', "KEY", 0, "Sign with this private key", 0},
	{"certificate", 'c', "CERT", 0, "The certificate of the key, which checks the signature",
	 0},
	{"signature", 's', "FILE", 0, "Take this detached PKCS #7 message (DER) as signature", 0},
	{"output", 'o', "FILE", 0, "Write image and signature to FILE instead of IMAGE", 0},
	{0},
};

struct arguments {
	const char *image; /* first, for fw_parse_image() */
	const char *key, *certificate, *signature, *output;
};

/* A signature that goes behind an image, and its head. */
struct message {
	unsigned char *data;
	size_t length;
	struct embeng_fw_signature head;
};

static error_t check_sign_options(const struct arguments *a, struct argp_state *state)
{
	if (!a->key == !a->signature) {
		argp_error(state, "give one of --key KEY and --signature FILE, to sign here or to "
				  "take a signature that openssl made");
		return EINVAL;
	}
	if (a->key && !a->certificate) {
		argp_error(state, "--certificate CERT is missing; name the certificate of the key");
		return EINVAL;
	}
	return 0;
}

static error_t parse_sign_option(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case 'k':
		a->key = arg;
		return 0;
	case 'c':
		a->certificate = arg;
		return 0;
	case 's':
		a->signature = arg;
		return 0;
	case 'o':
		a->output = arg;
		return 0;
	case ARGP_KEY_END:
		return check_sign_options(a, state);
	default:
		return fw_parse_image(key, arg, state);
	}
}

static int make_message(const struct output *out, const struct arguments *a,
			const struct fw_image *image, struct x509_st *certificate,
			struct message *message)
{
	struct evp_pkey_st *key = NULL;
	int code = fw_private_key(out, a->key, certificate, &key), err;

	if (code)
		return code;
	err = fw_key_sign(key, certificate, image->data, image->signature.image, &message->data,
			  &message->length);
	fw_private_key_free(key);
	if (!err)
		return CLI_OK;
	return output_fail(out, CLI_DEVICE, err, NULL, "libcrypto cannot sign with %s", a->key);
}

static int read_message(const struct output *out, const struct arguments *a,
			const struct fw_image *image, struct x509_st *certificate,
			struct message *message)
{
	int code = fw_read(out, a->signature, EMBENG_FW_SIGNATURE_MAX, &message->data,
			   &message->length);

	if (code)
		return code;
	if (!fw_message_valid(message->data, message->length))
		return output_fail(out, CLI_USAGE, EINVAL,
				   "openssl cms -sign -binary -nocerts -nosmimecap -outform DER "
				   "makes one",
				   "%s is no detached PKCS #7 signature in DER", a->signature);
	if (!certificate || fw_key_verify(certificate, image->data, image->signature.image,
					  message->data, message->length))
		return CLI_OK;
	return output_fail(out, CLI_FIRMWARE, EBADMSG, NULL,
			   "%s: the signature in %s is not of this image by %s", image->path,
			   a->signature, a->certificate);
}

static int get_message(const struct output *out, const struct arguments *a,
		       const struct fw_image *image, struct message *message)
{
	struct x509_st *certificate = NULL;
	int code = a->certificate ? fw_certificate(out, a->certificate, &certificate) : CLI_OK;

	if (code)
		return code;
	code = a->key ? make_message(out, a, image, certificate, message)
		      : read_message(out, a, image, certificate, message);
	message->head = (struct embeng_fw_signature){.magic = EMBENG_FW_SIGNATURE_MAGIC,
						     .kind = EMBENG_FW_SIGNATURE_PKCS7,
						     .length = message->length};
	if (certificate)
		message->head.key_id_length = (__u32)fw_certificate_id(certificate,
								       message->head.key_id);
	fw_certificate_free(certificate);
	return code;
}

/* Replaces the bytes of @image by those with the signature. */
static int append_message(const struct output *out, struct fw_image *image,
			  const struct message *message)
{
	size_t at = image->signature.image, end = at + sizeof(message->head) + message->length;
	size_t length = (end + EMBENG_FW_ALIGN - 1) & ~(size_t)(EMBENG_FW_ALIGN - 1);
	unsigned char *file;

	if (length > EMBENG_FW_LENGTH_MAX || length - at > EMBENG_FW_SIGNATURE_MAX)
		return output_fail(out, CLI_FIRMWARE, EFBIG, NULL,
				   "%s: image and signature have %zu bytes, of which the signature "
				   "has %zu; at most %llu and %u fit",
				   image->path, length, length - at, EMBENG_FW_LENGTH_MAX,
				   EMBENG_FW_SIGNATURE_MAX);
	file = calloc(1, length);
	if (!file)
		return output_fail(out, CLI_DEVICE, ENOMEM, NULL, "out of memory");
	memcpy(file, image->data, at);
	memcpy(file + at, &message->head, sizeof(message->head));
	memcpy(file + at + sizeof(message->head), message->data, message->length);
	free(image->data);
	image->data = file;
	image->length = length;
	return fw_check(out, image, 0);
}

static int report_signature(const struct output *out, const struct fw_image *image,
			    const char *path)
{
	char text[FW_SIGNATURE_TEXT];
	struct json_object *d;

	if (!out->json) {
		printf("%s: %s\n", path, fw_signature(image, text));
		return CLI_OK;
	}
	d = json_document(out);
	fw_add_image(d, image);
	json_add_text(d, "output", path);
	return json_emit(d);
}

int fw_sign(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse_sign_option, .args_doc = "IMAGE", .doc = doc};
	struct output out = {.verb = "fw", .command = "sign"};
	struct arguments a = {0};
	struct fw_image image = {0};
	struct message message = {0};
	const char *path;
	int code = command_parse(&argp, argc, argv, &out, &a);

	if (!code)
		code = fw_load(&out, a.image, 0, &image);
	if (!code)
		code = get_message(&out, &a, &image, &message);
	if (!code)
		code = append_message(&out, &image, &message);
	path = a.output ? a.output : a.image;
	if (!code)
		code = fw_write(&out, path, image.data, image.length);
	if (!code)
		code = report_signature(&out, &image, path);
	free(message.data);
	free(image.data);
	return code;
}
