// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether an image may be booted: its structure and hashes, and who signed it. All of that is found
 * out before the device hears of the image, so that a bad one costs nothing.
 *
 * The keys are in the keyring .embeng, which belongs to the module: certificates that were built
 * in, and those that root has added. Without any, and without system_keys, unsigned images are
 * booted; but they raise no rollback limit. The kernel guards the keyring, and no lock is needed.
 */
#include <linux/hex.h>
#include <linux/key-type.h>
#include <linux/module.h>

#include <keys/asymmetric-type.h>

#include "driver.h"
#include "fw_keys.h"
#include "../engine/control/firmware.h"
#include "../engine/control/signature.h"

#define KEYRING ".embeng"

static bool system_keys;
module_param(system_keys, bool, 0400);
MODULE_PARM_DESC(system_keys, "boot firmware signed by keys that the kernel trusts, too, and no unsigned firmware (default: no)");

static struct key *keyring;

static const char *const boot_errors[] = {
#define EMBENG_BOOT_ERROR_TEXT(name, value, text) \
	[value] = text,
	EMBENG_BOOT_ERROR_TABLE(EMBENG_BOOT_ERROR_TEXT)
#undef EMBENG_BOOT_ERROR_TEXT
};

static const char *describe_boot_error(u32 error)
{
	return error < ARRAY_SIZE(boot_errors) ? boot_errors[error] : "not known to this driver";
}

/**
 * embeng_refusal_text() - write why an image was refused
 * @refusal: the reason
 *
 * Return: the text, as a value: "error 11, byte 384, self-test 2: a self-test failed".
 */
struct embeng_refusal_text embeng_refusal_text(const struct embeng_refusal *refusal)
{
	struct embeng_refusal_text out;
	char test[24] = "";

	if (refusal->error == EMBENG_BOOT_ERROR_SELF_TEST)
		snprintf(test, sizeof(test), ", self-test %u", refusal->index);
	snprintf(out.text, sizeof(out.text), "error %u, byte %llu%s: %s", refusal->error,
		 refusal->offset, test, describe_boot_error(refusal->error));
	return out;
}

/**
 * embeng_version_text() - write a version as people read it
 * @version: as in &struct embeng_fw_header
 *
 * Return: the text, as a value.
 */
struct embeng_version_text embeng_version_text(u64 version)
{
	struct embeng_version_text out;

	snprintf(out.text, sizeof(out.text), "%llu.%llu.%llu.%llu", version >> 48,
		 version >> 32 & 0xffff, version >> 16 & 0xffff, version & 0xffff);
	return out;
}

#ifdef EMBENG_FW_CERT
#ifndef CONFIG_SYSTEM_DATA_VERIFICATION
#error "EMBENG_FW_CERT needs a kernel with CONFIG_SYSTEM_DATA_VERIFICATION, which checks signatures"
#endif
extern const u8 embeng_fw_cert[], embeng_fw_cert_end[];

/* Bytes of the DER sequence with which @left bytes begin, 0 if they begin with none. */
static size_t find_certificate_length(const u8 *der, size_t left)
{
	size_t length;

	/* All certificates have 256 to 65,535 bytes, and so a length of two. */
	if (left < 4 || der[0] != 0x30 || der[1] != 0x82)
		return 0;
	length = 4 + (der[2] << 8 | der[3]);
	return length <= left ? length : 0;
}

/* Then only keys that one of these vouches for are added. */
static int add_builtin_keys(void)
{
	const u8 *at = embeng_fw_cert;
	size_t length;
	key_ref_t key;

	for (; at < embeng_fw_cert_end; at += length) {
		length = find_certificate_length(at, embeng_fw_cert_end - at);
		key = length ? key_create_or_update(make_key_ref(keyring, true), "asymmetric", NULL,
						    at, length,
						    (KEY_POS_ALL & ~KEY_POS_SETATTR) |
							    KEY_USR_VIEW | KEY_USR_READ,
						    KEY_ALLOC_NOT_IN_QUOTA | KEY_ALLOC_BUILT_IN) :
			       ERR_PTR(-EBADMSG);
		if (IS_ERR(key)) {
			pr_err(EMBENG_NAME ": the built-in certificate at byte %zu is none in DER (%pe)\n",
			       (size_t)(at - embeng_fw_cert), key);
			return PTR_ERR(key);
		}
		pr_info(EMBENG_NAME ": firmware is signed by '%s'\n",
			key_ref_to_ptr(key)->description);
		key_ref_put(key);
	}
	return keyring_restrict(make_key_ref(keyring, true), "asymmetric",
				"key_or_keyring:0:chain");
}
#else
static int add_builtin_keys(void)
{
	return 0;
}
#endif

/**
 * embeng_keys_init() - make the keyring, with the keys that are built in
 *
 * Return: 0 or a negative errno.
 */
int embeng_keys_init(void)
{
	int ret;

	keyring = embeng_keys_open(KEYRING);
	if (IS_ERR(keyring))
		return PTR_ERR(keyring);
	ret = add_builtin_keys();
	if (ret)
		key_put(keyring);
	return ret;
}

/** embeng_keys_exit() - drop the keyring and its keys */
void embeng_keys_exit(void)
{
	key_put(keyring);
}

static u32 check_signer(const void *data, const struct signature *s)
{
	const void *message = data + s->image + sizeof(s->head);
	u32 error = EMBENG_BOOT_ERROR_SIGNATURE_KEY;

	if (!s->block)
		return EMBENG_BOOT_ERROR_SIGNATURE_MISSING;
	if (embeng_keys_any(keyring))
		error = embeng_keys_check(keyring, data, s->image, message, s->head.length);
	if (error == EMBENG_BOOT_ERROR_SIGNATURE_KEY && system_keys)
		error = embeng_keys_check(VERIFY_USE_SECONDARY_KEYRING, data, s->image, message,
					  s->head.length);
	return error;
}

static u32 check_image(const void *data, size_t length, u64 minimum, struct embeng_image *image,
		       u64 *offset)
{
	bool required = system_keys || embeng_keys_any(keyring);
	struct firmware found;
	struct signature s;
	u32 error = signature_find(data, length, &s, offset);

	if (error)
		return error;
	bin2hex(image->key_id, s.head.key_id, s.head.key_id_length);
	error = firmware_check(data, s.image, minimum, &found, offset);
	if (error)
		return error;
	image->signed_length = s.image;
	image->version = found.version;
	image->trust = s.block ? EMBENG_TRUST_UNCHECKED : EMBENG_TRUST_UNSIGNED;
	if (!required)
		return EMBENG_BOOT_ERROR_NONE;
	error = check_signer(data, &s);
	if (error)
		*offset = s.image;
	else
		image->trust = EMBENG_TRUST_SIGNED;
	return error;
}

/* The log says which keys there are, and what to do. */
static void explain_signature(struct embeng_device *ed, const struct embeng_image *image, u32 error)
{
	static const char all[] = "keyctl show %keyring:" KEYRING " lists the keys";

	if (error == EMBENG_BOOT_ERROR_SIGNATURE_MISSING)
		dev_err(&ed->pci->dev, "firmware %s needs a signature by an enrolled key%s: embeng fw sign; %s\n",
			image->name, system_keys ? " or one that the kernel trusts" : "", all);
	if (error == EMBENG_BOOT_ERROR_SIGNATURE_KEY)
		dev_err(&ed->pci->dev,
			"firmware %s says that key '%s' signed it; %s; keyctl padd asymmetric '' %%keyring:%s enrols a certificate\n",
			image->name, image->key_id, all, KEYRING);
	if (error == EMBENG_BOOT_ERROR_SIGNATURE_MISMATCH)
		dev_err(&ed->pci->dev,
			"firmware %s or its signature was changed after key '%s' signed it: sign it anew\n",
			image->name, image->key_id);
}

/**
 * embeng_fw_check() - check an image, before the device hears of it
 * @ed: device
 * @data: image and signature, which nobody changes meanwhile
 * @length: bytes of both
 * @minimum: lowest version that the device boots, 0 if that is not known yet
 * @image: its name; the rest but for the memory is filled in
 * @refusal: out, why it is refused
 *
 * A refusal is logged. Return: 0, or -EBADMSG when the image is not to be booted.
 */
int embeng_fw_check(struct embeng_device *ed, const void *data, size_t length, u64 minimum,
		    struct embeng_image *image, struct embeng_refusal *refusal)
{
	*refusal = (struct embeng_refusal){};
	refusal->error = check_image(data, length, minimum, image, &refusal->offset);
	if (!refusal->error)
		return 0;
	dev_err(&ed->pci->dev, "firmware %s of %zu bytes refused: %s\n", image->name, length,
		embeng_refusal_text(refusal).text);
	if (refusal->error == EMBENG_BOOT_ERROR_VERSION)
		dev_err(&ed->pci->dev, "the lowest version that the device boots is %s\n",
			embeng_version_text(minimum).text);
	explain_signature(ed, image, refusal->error);
	return -EBADMSG;
}

/**
 * embeng_trust_text() - write an image's signer, as sysfs shows it
 * @image: image that was checked
 *
 * Return: the text, as a value.
 */
struct embeng_trust_text embeng_trust_text(const struct embeng_image *image)
{
	static const char *const words[] = {
		[EMBENG_TRUST_UNSIGNED] = "unsigned",
		[EMBENG_TRUST_UNCHECKED] = "unchecked",
		[EMBENG_TRUST_SIGNED] = "signed",
	};
	struct embeng_trust_text out;

	snprintf(out.text, sizeof(out.text), "%s%s%s", words[image->trust],
		 *image->key_id ? " " : "", image->key_id);
	return out;
}
