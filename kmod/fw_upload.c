// SPDX-License-Identifier: GPL-2.0-only
/*
 * Another firmware image at run time, through the kernel's firmware-upload interface. The running
 * image stays at hand: a device that refuses the new one boots the old one again. Whatever the
 * driver can see by itself (fw_check.c) is refused before anything is reset.
 *
 * The kernel calls from a worker, one upload at a time, so that the new image needs no lock until
 * it is booted. It belongs to the upload from prepare_upload() to clean_up_upload().
 * finish_upload() holds reset_lock for writing, as each reset does, and all contexts are lost.
 * Unregistering cancels an upload that is under way and waits for it.
 */
#include <linux/cleanup.h>
#include <linux/firmware.h>

#include "context.h"
#include "../uapi/embeng_firmware.h"

/* Bytes that are copied between two looks at whether the upload was canceled. */
#define CHUNK SZ_64K

/* An image that no device could boot, or nobody vouches for, is refused before it costs a reset. */
static int check_upload(struct embeng_device *ed, const u8 *data, u32 size)
{
	struct embeng_refusal refusal;
	int ret;

	ed->fresh = (struct embeng_image){ .name = "upload" };
	ret = embeng_fw_check(ed, data, size, embeng_reading_of(ed, EMBENG_REG_FIRMWARE_MINIMUM),
			      &ed->fresh, &refusal);
	if (ret)
		embeng_boot_refused(ed, &refusal);
	return ret;
}

static enum fw_upload_err prepare_upload(struct fw_upload *upload, const u8 *data, u32 size)
{
	struct embeng_device *ed = upload->dd_handle;

	WRITE_ONCE(ed->upload_canceled, false);
	if (size < sizeof(struct embeng_fw_header) || size > EMBENG_FW_LENGTH_MAX)
		return FW_UPLOAD_ERR_INVALID_SIZE;
	if (check_upload(ed, data, size))
		return FW_UPLOAD_ERR_FW_INVALID;
	return embeng_image_alloc(ed, &ed->fresh, size) ? FW_UPLOAD_ERR_HW_ERROR :
							  FW_UPLOAD_ERR_NONE;
}

static enum fw_upload_err copy_upload_chunk(struct fw_upload *upload, const u8 *data, u32 offset,
					    u32 size, u32 *written)
{
	struct embeng_device *ed = upload->dd_handle;

	if (READ_ONCE(ed->upload_canceled))
		return FW_UPLOAD_ERR_CANCELED;
	*written = min_t(u32, size, CHUNK);
	memcpy(ed->fresh.data + offset, data + offset, *written);
	return FW_UPLOAD_ERR_NONE;
}

static enum fw_upload_err convert_upload_error(int ret)
{
	switch (ret) {
	case 0:
		return FW_UPLOAD_ERR_NONE;
	case -EBADMSG:
	case -EPROTO:
		return FW_UPLOAD_ERR_FW_INVALID;
	case -ETIMEDOUT:
		return FW_UPLOAD_ERR_TIMEOUT;
	default:
		return FW_UPLOAD_ERR_HW_ERROR;
	}
}

/* Called with reset_lock held for writing. */
static int replace_image(struct embeng_device *ed)
{
	static const struct embeng_hang wanted = { .cause = EMBENG_ACCEL_CAUSE_REQUEST };
	int ret;

	embeng_reset_before(ed, &wanted);
	ret = embeng_device_reset(ed) ?: embeng_boot_image(ed, &ed->fresh);
	scoped_guard(mutex, &ed->readings.lock) {
		if (!ret)
			swap(ed->image, ed->fresh);
		ed->running = &ed->image;
	}
	embeng_reset_after(ed, ret ? embeng_reset_revive(ed) : 0, EMBENG_ACCEL_RESET_ENGINE,
			   &wanted);
	return ret;
}

static enum fw_upload_err finish_upload(struct fw_upload *upload)
{
	struct embeng_device *ed = upload->dd_handle;

	guard(rwsem_write)(&ed->reset_lock);
	if (READ_ONCE(ed->upload_canceled))
		return FW_UPLOAD_ERR_CANCELED;
	if (embeng_gone(ed))
		return FW_UPLOAD_ERR_HW_ERROR;
	drm_info(&ed->drm, "another firmware image, all contexts are lost\n");
	ed->resets.engines++;
	return convert_upload_error(replace_image(ed));
}

/* There is nothing to undo: the device was not told of the image, or boots it already. */
static void cancel_upload(struct fw_upload *upload)
{
	struct embeng_device *ed = upload->dd_handle;

	WRITE_ONCE(ed->upload_canceled, true);
}

static void clean_up_upload(struct fw_upload *upload)
{
	struct embeng_device *ed = upload->dd_handle;

	embeng_image_free(ed, &ed->fresh);
}

static const struct fw_upload_ops ops = {
	.prepare = prepare_upload,
	.write = copy_upload_chunk,
	.poll_complete = finish_upload,
	.cancel = cancel_upload,
	.cleanup = clean_up_upload,
};

/**
 * embeng_upload_init() - accept firmware uploads from now on
 * @ed: device, registered
 *
 * Return: 0 or a negative errno, which was reported.
 */
int embeng_upload_init(struct embeng_device *ed)
{
	struct device *dev = &ed->pci->dev;
	const char *name = devm_kasprintf(dev, GFP_KERNEL, EMBENG_NAME "-%s", dev_name(dev));

	if (!name)
		return -ENOMEM;
	/* No module: it would hold itself, and remove() ends the upload before it is gone. */
	ed->upload = firmware_upload_register(NULL, dev, name, &ops, ed);
	if (IS_ERR(ed->upload))
		return dev_err_probe(dev, PTR_ERR(ed->upload), "cannot take firmware uploads\n");
	return 0;
}

/**
 * embeng_upload_exit() - accept no more uploads; one that is under way ends first
 * @ed: device
 */
void embeng_upload_exit(struct embeng_device *ed)
{
	if (!IS_ERR_OR_NULL(ed->upload))
		firmware_upload_unregister(ed->upload);
}
