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

/**
 * embeng_boot_error_text() - what an enum embeng_boot_error says
 * @error: as the device told
 *
 * Return: a sentence without a period.
 */
const char *embeng_boot_error_text(u32 error)
{
	return error < ARRAY_SIZE(boot_errors) ? boot_errors[error] : "not known to this driver";
}

static void free_image(struct drm_device *drm, void *arg)
{
	struct embeng_device *ed = arg;

	kvfree(ed->image.data);
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
		ed->image.data = kvmemdup(file->data, file->size, GFP_KERNEL);
		ed->image.length = file->size;
		ret = ed->image.data ? drmm_add_action_or_reset(&ed->drm, free_image, ed) :
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

	room = min_t(u64, room, EMBENG_QUEUES_MAX);
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

	ed->boot_error = (struct embeng_refusal){
		.error = embeng_read32(ed, EMBENG_REG_BOOT_ERROR),
		.index = embeng_read32(ed, EMBENG_REG_BOOT_ERROR_INDEX),
		.offset = embeng_read64(ed, EMBENG_REG_BOOT_ERROR_OFFSET),
	};
	if (state != EMBENG_BOOT_RUNNING) {
		ed->refused = ed->boot_error;
		drm_err(&ed->drm, "firmware refused: error %u at byte %llu, self-test %u: %s\n",
			ed->refused.error, ed->refused.offset, ed->refused.index,
			embeng_boot_error_text(ed->refused.error));
		return -EBADMSG;
	}
	ed->firmware_version = embeng_read64(ed, EMBENG_REG_FIRMWARE_VERSION);
	read_caps(ed);
	return check_caps(ed);
}

static int ask(struct embeng_device *ed, dma_addr_t image, size_t length)
{
	u32 sequence = embeng_read32(ed, EMBENG_REG_BOOT_SEQUENCE) + 1;

	embeng_admin_start(ed);
	embeng_write64(ed, EMBENG_REG_BOOT_ADDRESS, image);
	embeng_write64(ed, EMBENG_REG_BOOT_LENGTH, length);
	embeng_write32(ed, EMBENG_REG_BOOT_SEQUENCE, sequence);
	return embeng_device_wait(ed, EMBENG_REG_BOOT_DONE, sequence);
}

/* A device is not given up because memory is short for a moment. */
static void *image_memory(struct embeng_device *ed, size_t length, dma_addr_t *dma)
{
	void *image;
	int tries;

	for (tries = 0; tries < IMAGE_TRIES; tries++) {
		image = dma_alloc_coherent(&ed->pci->dev, length, dma, GFP_KERNEL);
		if (image)
			return image;
		msleep(IMAGE_TRY_MS);
	}
	return NULL;
}

/**
 * embeng_boot_image() - bring a device in ROM to life
 * @ed: device
 * @image: that it is to run
 *
 * Return: 0, -EBADMSG when it refuses the image, -ETIMEDOUT, -ENODEV, -ENOMEM or -EPROTO;
 * reported. After a failure the device does not reach memory.
 */
int embeng_boot_image(struct embeng_device *ed, const struct embeng_image *image)
{
	struct device *dev = &ed->pci->dev;
	dma_addr_t dma;
	void *copy;
	int ret;

	ed->firmware_version = 0;
	ret = embeng_device_wait_rom(ed);
	if (ret)
		return ret;
	/* Not before: a device that was left running is at work for memory that is others' now. */
	pci_set_master(ed->pci);
	copy = image_memory(ed, image->length, &dma);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, image->data, image->length);
	ret = ask(ed, dma, image->length);
	if (ret)
		drm_err(&ed->drm, "boot has no answer, state %u\n",
			embeng_read32(ed, EMBENG_REG_BOOT_STATE));
	else
		ret = report(ed);
	if (ret)
		embeng_device_silence(ed);
	dma_free_coherent(dev, image->length, copy, dma);
	return ret;
}

/**
 * embeng_boot() - boot the image that the driver holds
 * @ed: device in ROM
 *
 * Return: as embeng_boot_image().
 */
int embeng_boot(struct embeng_device *ed)
{
	return embeng_boot_image(ed, &ed->image);
}
