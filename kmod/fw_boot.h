/* SPDX-License-Identifier: GPL-2.0-only */
/* Firmware: booting it (fw_boot.c) and uploading another image (fw_upload.c). */
#ifndef EMBENG_FW_BOOT_H
#define EMBENG_FW_BOOT_H

#include <linux/types.h>

struct embeng_device;

/**
 * struct embeng_image - a firmware image in memory
 * @data: bytes of the image
 * @dma: address of @data for the device
 * @length: number of bytes
 */
struct embeng_image {
	void *data;
	dma_addr_t dma;
	size_t length;
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

/* fw_boot.c */
int embeng_boot_request(struct embeng_device *ed);
int embeng_boot(struct embeng_device *ed);
int embeng_boot_image(struct embeng_device *ed, const struct embeng_image *image);
int embeng_image_alloc(struct embeng_device *ed, struct embeng_image *image, size_t length);
void embeng_image_free(struct embeng_device *ed, struct embeng_image *image);
const char *embeng_boot_error_text(u32 error);

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
