// SPDX-License-Identifier: GPL-2.0-only
/* Firmware: found by name, kept in memory, given to the device at each boot. */
#include <linux/cleanup.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/firmware.h>

#include <drm/drm_managed.h>

#include "driver.h"
#include "../uapi/embeng_firmware.h"

MODULE_FIRMWARE(EMBENG_FIRMWARE);

#define IMAGE_TRIES 10
#define IMAGE_TRY_MS 50

static const char *const boot_errors[] = {
#define EMBENG_BOOT_ERROR_TEXT(name, value, text) \
	[value] = text,
	EMBENG_BOOT_ERROR_TABLE(EMBENG_BOOT_ERROR_TEXT)
#undef EMBENG_BOOT_ERROR_TEXT
};

static const char *boot_error_text(u32 error)
{
	return error < ARRAY_SIZE(boot_errors) ? boot_errors[error] : "not known to this driver";
}

static void free_image(struct drm_device *drm, void *image)
{
	kvfree(image);
}

/**
 * embeng_boot_request() - read the image that the device is to boot
 * @ed: device
 *
 * Kept until the device is gone, for a reset must not wait for a file system.
 * Return: 0 or a negative errno, which was reported.
 */
int embeng_boot_request(struct embeng_device *ed)
{
	struct device *dev = &ed->pci->dev;
	const struct firmware *file;
	int ret = request_firmware(&file, EMBENG_FIRMWARE, dev);

	if (ret)
		return dev_err_probe(dev, ret, "cannot read firmware %s\n", EMBENG_FIRMWARE);
	if (!file->size || file->size > EMBENG_FW_LENGTH_MAX) {
		ret = dev_err_probe(dev, -EINVAL, "firmware %s has %zu bytes, at most %llu fit\n",
				    EMBENG_FIRMWARE, file->size, EMBENG_FW_LENGTH_MAX);
	} else {
		ed->image = kvmemdup(file->data, file->size, GFP_KERNEL);
		ed->image_length = file->size;
		ret = ed->image ? drmm_add_action_or_reset(&ed->drm, free_image, ed->image) :
				  -ENOMEM;
	}
	release_firmware(file);
	return ret;
}

static void read_caps(struct embeng_device *ed)
{
	u32 interface = embeng_read32(ed, EMBENG_REG_INTERFACE);

	ed->caps = (struct embeng_caps){
		.interface_major = interface >> 16,
		.interface_minor = interface & 0xffff,
		.features = embeng_read32(ed, EMBENG_REG_FEATURES) | EMBENG_CAP_VALIDATED_QUEUES,
		.cores = embeng_read32(ed, EMBENG_REG_CORES),
		.queues = embeng_read32(ed, EMBENG_REG_QUEUES),
		.vectors = embeng_read32(ed, EMBENG_REG_VECTORS),
		.contexts = embeng_read32(ed, EMBENG_REG_CONTEXTS),
		.regions = embeng_read32(ed, EMBENG_REG_REGIONS),
		.table_memory = embeng_read64(ed, EMBENG_REG_TABLE_MEMORY),
		.dim = embeng_read32(ed, EMBENG_REG_DIM),
		.tables = embeng_read32(ed, EMBENG_REG_TABLES),
		.model_features = embeng_read32(ed, EMBENG_REG_MODEL_FEATURES),
		.replicas = embeng_read32(ed, EMBENG_REG_REPLICAS),
		.step_depth = embeng_read32(ed, EMBENG_REG_STEP_DEPTH),
		.row_dtypes = embeng_read32(ed, EMBENG_REG_ROW_DTYPES),
		.ids = embeng_read64(ed, EMBENG_REG_IDS),
		.samples = embeng_read64(ed, EMBENG_REG_SAMPLES),
		.combiners = embeng_read32(ed, EMBENG_REG_COMBINERS),
		.optimizers = embeng_read32(ed, EMBENG_REG_OPTIMIZERS),
	};
}

/* What the driver builds on is checked, whoever wrote the firmware. */
static int check_caps(struct embeng_device *ed)
{
	const struct embeng_caps *caps = &ed->caps;
	u64 room = pci_resource_len(ed->pci, EMBENG_BAR_DOORBELLS) / ed->doorbell_stride;

	if (caps->interface_major != EMBENG_INTERFACE_MAJOR || caps->queues < 2 ||
	    caps->queues > room || !caps->contexts || !caps->regions || !caps->vectors) {
		drm_err(&ed->drm,
			"firmware says interface %u.%u, %u queues (room for %llu), %u contexts, %u regions, %u vectors\n",
			caps->interface_major, caps->interface_minor, caps->queues, room,
			caps->contexts, caps->regions, caps->vectors);
		return -EPROTO;
	}
	return 0;
}

static int report(struct embeng_device *ed)
{
	u32 state = embeng_read32(ed, EMBENG_REG_BOOT_STATE);

	ed->boot_error = embeng_read32(ed, EMBENG_REG_BOOT_ERROR);
	ed->boot_error_offset = embeng_read64(ed, EMBENG_REG_BOOT_ERROR_OFFSET);
	if (state != EMBENG_BOOT_RUNNING) {
		drm_err(&ed->drm, "firmware refused at byte %llu: %s (%u)\n",
			ed->boot_error_offset, boot_error_text(ed->boot_error), ed->boot_error);
		return -EBADMSG;
	}
	ed->firmware_version = embeng_read64(ed, EMBENG_REG_FIRMWARE_VERSION);
	read_caps(ed);
	return check_caps(ed);
}

static int ask(struct embeng_device *ed, dma_addr_t image)
{
	u32 sequence = embeng_read32(ed, EMBENG_REG_BOOT_SEQUENCE) + 1;

	embeng_admin_start(ed);
	embeng_write64(ed, EMBENG_REG_BOOT_ADDRESS, image);
	embeng_write64(ed, EMBENG_REG_BOOT_LENGTH, ed->image_length);
	embeng_write32(ed, EMBENG_REG_BOOT_SEQUENCE, sequence);
	return embeng_device_wait(ed, EMBENG_REG_BOOT_DONE, sequence);
}

/* A device is not given up because memory is short for a moment. */
static void *image_memory(struct embeng_device *ed, dma_addr_t *dma)
{
	void *image;
	int tries;

	for (tries = 0; tries < IMAGE_TRIES; tries++) {
		image = dma_alloc_coherent(&ed->pci->dev, ed->image_length, dma, GFP_KERNEL);
		if (image)
			return image;
		msleep(IMAGE_TRY_MS);
	}
	return NULL;
}

/**
 * embeng_boot() - bring a device in ROM to life
 * @ed: device
 *
 * Return: 0, -EBADMSG when it refuses the image, -ETIMEDOUT, -ENODEV, -ENOMEM or -EPROTO;
 * reported. After a failure the device does not reach memory.
 */
int embeng_boot(struct embeng_device *ed)
{
	struct device *dev = &ed->pci->dev;
	dma_addr_t dma;
	void *image;
	int ret;

	/* A boot that failed before has taken it away. */
	pci_set_master(ed->pci);
	ed->firmware_version = 0;
	ret = embeng_device_wait_rom(ed);
	if (ret)
		return ret;
	image = image_memory(ed, &dma);
	if (!image)
		return -ENOMEM;
	memcpy(image, ed->image, ed->image_length);
	ret = ask(ed, dma);
	if (ret)
		drm_err(&ed->drm, "boot has no answer, state %u\n",
			embeng_read32(ed, EMBENG_REG_BOOT_STATE));
	else
		ret = report(ed);
	if (ret)
		embeng_device_silence(ed);
	dma_free_coherent(dev, ed->image_length, image, dma);
	return ret;
}
