// SPDX-License-Identifier: MIT
/*
 * Firmware images as files, and the checks that a device would make of them. The device's own code
 * is called for these, so the answers agree.
 *
 * The bytes of an image belong to the struct fw_image; the commands free them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../../engine/control/selftest.h"
#include "../device/device.h"
#include "../frame/outfile.h"
#include "commands.h"
#include "embeng_regs.h"

static const struct {
	const char *name, *text;
} boot_errors[] = {
#define BOOT_ERROR(name, value, text) [value] = {#name, text},
	EMBENG_BOOT_ERROR_TABLE(BOOT_ERROR)
#undef BOOT_ERROR
};

int fw_read(const struct output *out, const char *path, size_t most, unsigned char **data,
	    size_t *length)
{
	FILE *f = fopen(path, "re");
	unsigned char *bytes = f ? malloc(most + 2) : NULL;
	size_t got = bytes ? fread(bytes, 1, most + 1, f) : 0;
	int err = !f || (bytes && ferror(f)) ? errno : bytes ? 0 : ENOMEM;

	if (f)
		fclose(f);
	if (err || got > most) {
		free(bytes);
		if (err)
			return output_fail(out, exit_of_errno(err), err, NULL, "%s: %s", path,
					   strerror(err));
		return output_fail(out, CLI_USAGE, EFBIG, NULL,
				   "%s is too large; it may have at most %zu bytes", path, most);
	}
	bytes[got] = '\0';
	*data = bytes;
	*length = got;
	return CLI_OK;
}

int fw_write(const struct output *out, const char *path, const void *data, size_t length)
{
	struct outfile f;
	int err = outfile_open(&f, path);

	if (!err) {
		fwrite(data, 1, length, f.stream);
		err = outfile_commit(&f);
	}
	if (!err)
		return CLI_OK;
	return output_fail(out, exit_of_errno(err), err, NULL, "%s: %s", path, strerror(-err));
}

/* Adds the numbers for scripts to the sentence. */
static void emit_refusal(const struct output *out, const struct fw_image *image, uint32_t error,
			 uint64_t offset, const struct selftest_failure *failure,
			 const char *message)
{
	struct json_object *d = json_document(out), *refusal = json_object_new_object();

	json_add_text(d, "image", image->path);
	json_add_text(refusal, "boot_error", boot_errors[error].name);
	json_add_number(refusal, "value", error);
	json_add_number(refusal, "offset", offset);
	if (failure) {
		json_add_number(refusal, "index", failure->index);
		json_add_text(refusal, "variant", failure->variant);
	}
	json_object_object_add(d, "refusal", refusal);
	json_add_error(d, CLI_FIRMWARE, EBADMSG, NULL, message);
	json_emit(d);
}

static int report_refusal(const struct output *out, const struct fw_image *image, uint32_t error,
			  uint64_t offset, const struct selftest_failure *failure)
{
	char message[512], which[80] = "";

	if (failure)
		snprintf(which, sizeof(which), ": number %u, on the %s kernels", failure->index,
			 failure->variant);
	snprintf(message, sizeof(message), "%s: refused at byte %" PRIu64 ": %s%s (boot error %s)",
		 image->path, offset, boot_errors[error].text, which, boot_errors[error].name);
	if (!out->json)
		return output_fail(out, CLI_FIRMWARE, EBADMSG, NULL, "%s", message);
	emit_refusal(out, image, error, offset, failure, message);
	return CLI_FIRMWARE;
}

int fw_check(const struct output *out, struct fw_image *image, uint64_t minimum)
{
	u64 offset = 0;
	u32 error = signature_find(image->data, image->length, &image->signature, &offset);

	if (!error)
		error = firmware_check(image->data, image->signature.image, minimum,
				       &image->firmware, &offset);
	return error ? report_refusal(out, image, error, offset, NULL) : CLI_OK;
}

int fw_self_test(const struct output *out, const struct fw_image *image)
{
	const struct firmware *f = &image->firmware;
	struct selftest_failure failure;
	u32 error = selftest_run(image->data + f->tests, f->tests_length, &failure);

	if (!error)
		return CLI_OK;
	if (error == EMBENG_BOOT_ERROR_MEMORY)
		return output_fail(out, CLI_DEVICE, ENOMEM, NULL, "out of memory");
	return report_refusal(out, image, error, f->tests + failure.offset, &failure);
}

int fw_load(const struct output *out, const char *path, uint64_t minimum, struct fw_image *image)
{
	int code = fw_read(out, path, EMBENG_FW_LENGTH_MAX, &image->data, &image->length);

	image->path = path;
	return code ? code : fw_check(out, image, minimum);
}

/* As hexadecimal digits; "" if the signature does not say it. */
static void write_key_id(const struct fw_image *image, char text[65])
{
	const struct embeng_fw_signature *head = &image->signature.head;

	*text = '\0';
	for (uint32_t i = 0; i < head->key_id_length; i++)
		snprintf(text + 2 * (size_t)i, 3, "%02x", head->key_id[i]);
}

const char *fw_signature(const struct fw_image *image, char text[FW_SIGNATURE_TEXT])
{
	char id[65];

	write_key_id(image, id);
	if (!image->signature.block)
		snprintf(text, FW_SIGNATURE_TEXT, "unsigned");
	else if (*id)
		snprintf(text, FW_SIGNATURE_TEXT, "signed by key %s", id);
	else
		snprintf(text, FW_SIGNATURE_TEXT, "signed, by a key that is not named");
	return text;
}

const char *fw_version(uint64_t version, char text[FW_VERSION_TEXT])
{
	const struct embeng_device_info info = {.firmware_version = version};

	device_firmware(&info, text, FW_VERSION_TEXT);
	return text;
}

/* The member "signature", null for an unsigned image. */
static void add_signature(struct json_object *to, const struct fw_image *image)
{
	struct json_object *signature = NULL;
	char id[65];

	if (image->signature.block) {
		write_key_id(image, id);
		signature = json_object_new_object();
		json_add_number(signature, "offset",
				image->signature.image + sizeof(image->signature.head));
		json_add_number(signature, "length", image->signature.head.length);
		json_add_text(signature, "key_id", id);
	}
	json_object_object_add(to, "signature", signature);
}

void fw_add_image(struct json_object *to, const struct fw_image *image)
{
	char version[FW_VERSION_TEXT];

	json_add_text(to, "image", image->path);
	json_add_text(to, "version", fw_version(image->firmware.version, version));
	json_add_number(to, "length", image->length);
	json_add_number(to, "signed_length", image->signature.image);
	add_signature(to, image);
}

error_t fw_parse_image(int key, char *arg, struct argp_state *state)
{
	const char **path = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		return argument_take(path, arg, "IMAGE", state);
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "IMAGE is missing; give the file of a firmware image");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}
