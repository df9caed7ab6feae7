/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Firmware: which image may be booted (fw_check.c), booting it (fw_boot.c) and uploading another
 * (fw_upload.c).
 */
#ifndef EMBENG_FW_BOOT_H
#define EMBENG_FW_BOOT_H

#include <linux/types.h>

struct embeng_device;

/**
 * enum embeng_trust - the signer of an image
 * @EMBENG_TRUST_UNSIGNED: nobody
 * @EMBENG_TRUST_UNCHECKED: somebody, and there was no key to check it with
 * @EMBENG_TRUST_SIGNED: a key that is enrolled
 */
enum embeng_trust { EMBENG_TRUST_UNSIGNED, EMBENG_TRUST_UNCHECKED, EMBENG_TRUST_SIGNED };

/**
 * struct embeng_image - a firmware image in memory
 * @name: where it is from
 * @data: bytes of the image, and of its signature if it has one
 * @dma: address of @data for the device
 * @length: number of bytes
 * @signed_length: bytes of the image alone
 * @version: its version
 * @trust: its signer
 * @key_id: key that signed it, as it says itself, in hexadecimal digits; "" if it does not
 */
struct embeng_image {
	const char *name;
	void *data;
	dma_addr_t dma;
	size_t length;
	size_t signed_length;
	u64 version;
	enum embeng_trust trust;
	char key_id[65];
};

struct embeng_version_text {
	char text[24];
};

struct embeng_trust_text {
	char text[80];
};

struct embeng_refusal_text {
	char text[160];
};

/**
 * struct embeng_refusal - why a device did not boot an image
 * @error: enum embeng_boot_error
 * @index: number of the self-test that failed
 * @offset: offset of the faulty byte in the image
 */
struct embeng_refusal {
	u32 error;
	u32 index;
	u64 offset;
};

/* fw_check.c */
int embeng_keys_init(void);
void embeng_keys_exit(void);
int embeng_fw_check(struct embeng_device *ed, const void *data, size_t length, u64 minimum,
		    struct embeng_image *image, struct embeng_refusal *refusal);
struct embeng_version_text embeng_version_text(u64 version);
struct embeng_refusal_text embeng_refusal_text(const struct embeng_refusal *refusal);
struct embeng_trust_text embeng_trust_text(const struct embeng_image *image);

/* fw_boot.c */
int embeng_boot_request(struct embeng_device *ed);
int embeng_boot(struct embeng_device *ed);
int embeng_boot_image(struct embeng_device *ed, const struct embeng_image *image);
void embeng_boot_refused(struct embeng_device *ed, const struct embeng_refusal *refusal);
int embeng_image_alloc(struct embeng_device *ed, struct embeng_image *image, size_t length);
void embeng_image_free(struct embeng_device *ed, struct embeng_image *image);

/* fw_upload.c: uploading another image at run time */
#if IS_ENABLED(CONFIG_FW_UPLOAD)
int embeng_upload_init(struct embeng_device *ed);
void embeng_upload_exit(struct embeng_device *ed);
#else
static inline int embeng_upload_init(struct embeng_device *ed)
{
	return 0;
}

static inline void embeng_upload_exit(struct embeng_device *ed)
{
}
#endif

#endif
