// SPDX-License-Identifier: GPL-2.0-only
/*
 * Booting the device: the firmware image is found by name, checked, kept where the device reads it,
 * and booted from there after each reset. If it is missing or refused, the recovery image is, which
 * is kept beside it. The capabilities that the firmware reports are kept, and the rest of the
 * driver checks requests against them.
 *
 * No image is let raise the lowest version that the device boots above the version of the recovery
 * image, so that the latter can always be booted.
 *
 * The image stays in DMA memory until the driver lets go of the device, because a reset must wait
 * neither for memory nor for a file system. It, the capabilities and the last refusal change under
 * reset_lock held for writing only, the latter two inside readings.lock, for who asks for them
 * during a reset; during probe nobody else is there.
 */
#include <linux/cleanup.h>
#include <linux/dma-mapping.h>
#include <linux/firmware.h>

#include "driver.h"
#include "../uapi/embeng_firmware.h"

MODULE_FIRMWARE(EMBENG_FIRMWARE);
MODULE_FIRMWARE(EMBENG_RECOVERY);

/**
 * embeng_image_alloc() - allocate memory for a firmware image, where the device can read it
 * @ed: device
 * @image: filled in; the caller frees it before the driver lets go of the device
 * @length: bytes, at most EMBENG_FW_LENGTH_MAX
 *
 * The memory is kept for as long as the image may be booted, because a reset must not wait for
 * memory.
 * Return: 0 or -ENOMEM.
 */
int embeng_image_alloc(struct embeng_device *ed, struct embeng_image *image, size_t length)
{
	image->data = dma_alloc_coherent(&ed->pci->dev, length, &image->dma,
					 GFP_KERNEL | __GFP_NOWARN);
	image->length = length;
	return image->data ? 0 : -ENOMEM;
}

/**
 * embeng_image_free() - free an image that will not be booted any more
 * @ed: device
 * @image: image, which may be empty
 */
void embeng_image_free(struct embeng_device *ed, struct embeng_image *image)
{
	if (image->data)
		dma_free_coherent(&ed->pci->dev, image->length, image->data, image->dma);
	*image = (struct embeng_image){};
}

static void free_kept_images(void *arg)
{
	struct embeng_device *ed = arg;

	embeng_image_free(ed, &ed->image);
	embeng_image_free(ed, &ed->fallback);
}

static int keep_image(struct embeng_device *ed, const struct firmware *file,
		      struct embeng_image *image)
{
	struct device *dev = &ed->pci->dev;
	struct embeng_refusal refusal;
	int ret;

	if (!file->size || file->size > EMBENG_FW_LENGTH_MAX) {
		dev_err(dev, "firmware %s has %zu bytes, at most %llu fit\n", image->name,
			file->size, EMBENG_FW_LENGTH_MAX);
		return -EBADMSG;
	}
	/* The device says later which versions it boots. */
	ret = embeng_fw_check(ed, file->data, file->size, 0, image, &refusal);
	if (ret) {
		embeng_boot_refused(ed, &refusal);
		return ret;
	}
	ret = embeng_image_alloc(ed, image, file->size);
	if (ret)
		return dev_err_probe(dev, ret, "no memory for %zu bytes of firmware\n",
				     file->size);
	memcpy(image->data, file->data, file->size);
	return 0;
}

/* A recovery image that is missing is missed by nobody until then. */
static int request_image(struct embeng_device *ed, struct embeng_image *image, bool recovery)
{
	struct device *dev = &ed->pci->dev;
	const struct firmware *file;
	int ret = recovery ? firmware_request_nowarn(&file, image->name, dev) :
			     request_firmware(&file, image->name, dev);

	if (ret)
		return ret;
	ret = keep_image(ed, file, image);
	release_firmware(file);
	return ret;
}

/**
 * embeng_boot_request() - read the images that the device is to boot
 * @ed: device
 *
 * The images are kept until the driver is gone, because a reset must not wait for a file system.
 * Return: 0, if there is one that may be booted, or a negative errno, which was reported.
 */
int embeng_boot_request(struct embeng_device *ed)
{
	struct device *dev = &ed->pci->dev;
	int ret, other;

	ret = devm_add_action_or_reset(dev, free_kept_images, ed);
	if (ret)
		return ret;
	ed->image.name = EMBENG_FIRMWARE;
	ed->fallback.name = EMBENG_RECOVERY;
	ret = request_image(ed, &ed->image, false);
	other = request_image(ed, &ed->fallback, true);
	if (!ret)
		ed->installed = ed->image.version;
	if (!ret || !other)
		return ret == -ENOMEM ? ret : 0;
	if (ret == -EBADMSG)
		return dev_err_probe(dev, ret,
				     "firmware %s is refused, and %s cannot be read (%pe)\n",
				     EMBENG_FIRMWARE, EMBENG_RECOVERY, ERR_PTR(other));
	return dev_err_probe(dev, ret,
			     "cannot read firmware %s, nor %s: install them, then bind the driver\n",
			     EMBENG_FIRMWARE, EMBENG_RECOVERY);
}

static void read_caps(struct embeng_device *ed, const struct embeng_image *image)
{
	u32 interface = embeng_read32(ed, EMBENG_REG_INTERFACE);

	guard(mutex)(&ed->readings.lock);
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
		.command_bytes = embeng_read64(ed, EMBENG_REG_COMMAND_BYTES),
	};
	if (image->trust == EMBENG_TRUST_SIGNED)
		ed->caps.features &= ~EMBENG_CAP_SIGNATURE_UNCHECKED;
	ed->running = image;
}

/* Checks the values that the driver relies on, whoever wrote the firmware. */
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

/**
 * embeng_boot_refused() - note why an image is not booted, for sysfs
 * @ed: device
 * @refusal: the reason
 */
void embeng_boot_refused(struct embeng_device *ed, const struct embeng_refusal *refusal)
{
	guard(mutex)(&ed->readings.lock);
	ed->refused = *refusal;
}

static void note_boot_error(struct embeng_device *ed, bool refused)
{
	guard(mutex)(&ed->readings.lock);
	ed->boot_error = (struct embeng_refusal){
		.error = embeng_read32(ed, EMBENG_REG_BOOT_ERROR),
		.index = embeng_read32(ed, EMBENG_REG_BOOT_ERROR_INDEX),
		.offset = embeng_read64(ed, EMBENG_REG_BOOT_ERROR_OFFSET),
	};
	if (refused)
		ed->refused = ed->boot_error;
}

static void log_refusal(struct embeng_device *ed, const struct embeng_image *image)
{
	drm_err(&ed->drm, "firmware %s refused by the device: %s\n", image->name,
		embeng_refusal_text(&ed->refused).text);
	if (ed->refused.error == EMBENG_BOOT_ERROR_VERSION)
		drm_err(&ed->drm, "its version is %s, the lowest that the device boots is %s\n",
			embeng_version_text(image->version).text,
			embeng_version_text(embeng_read64(ed, EMBENG_REG_FIRMWARE_MINIMUM)).text);
}

static int report_boot(struct embeng_device *ed, const struct embeng_image *image)
{
	u32 state = embeng_read32(ed, EMBENG_REG_BOOT_STATE);

	note_boot_error(ed, state != EMBENG_BOOT_RUNNING);
	if (state != EMBENG_BOOT_RUNNING) {
		log_refusal(ed, image);
		return -EBADMSG;
	}
	ed->firmware_version = embeng_read64(ed, EMBENG_REG_FIRMWARE_VERSION);
	read_caps(ed, image);
	drm_info(&ed->drm, "firmware %s of %s runs, %s\n",
		 embeng_version_text(ed->firmware_version).text, image->name,
		 embeng_trust_text(image).text);
	return check_caps(ed);
}

/* How far the image may raise the lowest version that the device boots. */
static u64 find_raise_limit(const struct embeng_device *ed, const struct embeng_image *image)
{
	if (image->trust != EMBENG_TRUST_SIGNED)
		return 0;
	return ed->fallback.data ? ed->fallback.version : ed->installed;
}

static int start_boot(struct embeng_device *ed, const struct embeng_image *image)
{
	u32 sequence = embeng_read32(ed, EMBENG_REG_BOOT_SEQUENCE) + 1;
	size_t signature = image->length - image->signed_length;

	embeng_admin_start(ed);
	embeng_write64(ed, EMBENG_REG_BOOT_ADDRESS, image->dma);
	embeng_write64(ed, EMBENG_REG_BOOT_LENGTH, image->signed_length);
	embeng_write64(ed, EMBENG_REG_BOOT_SIGNATURE,
		       signature ? image->dma + image->signed_length : 0);
	embeng_write32(ed, EMBENG_REG_BOOT_SIGNATURE_LENGTH, signature);
	embeng_write64(ed, EMBENG_REG_BOOT_RAISE, find_raise_limit(ed, image));
	embeng_write32(ed, EMBENG_REG_BOOT_SEQUENCE, sequence);
	return embeng_device_wait(ed, EMBENG_REG_BOOT_DONE, sequence);
}

/**
 * embeng_boot_image() - boot an image on a device that is in ROM
 * @ed: device
 * @image: image to boot
 *
 * Failures are logged, and after one the device does not reach memory. Return: 0, -EBADMSG when it
 * refuses the image, -ETIMEDOUT, -ENODEV or -EPROTO.
 */
int embeng_boot_image(struct embeng_device *ed, const struct embeng_image *image)
{
	int ret;

	ed->firmware_version = 0;
	ret = embeng_device_wait_rom(ed);
	if (ret)
		return ret;
	/* Not earlier: a device that was left running may still write to memory of others. */
	pci_set_master(ed->pci);
	ret = start_boot(ed, image);
	if (ret)
		drm_err(&ed->drm, "boot has no answer, state %u\n",
			embeng_read32(ed, EMBENG_REG_BOOT_STATE));
	else
		ret = report_boot(ed, image);
	if (ret)
		embeng_device_silence(ed);
	return ret;
}

/**
 * embeng_boot() - boot the image that the driver holds, or else the recovery image
 * @ed: device in ROM
 *
 * Return: as embeng_boot_image().
 */
int embeng_boot(struct embeng_device *ed)
{
	int ret = ed->image.data ? embeng_boot_image(ed, &ed->image) : -EBADMSG;

	if (ret != -EBADMSG || !ed->fallback.data)
		return ret;
	drm_warn(&ed->drm, "%s is booted, since %s cannot be\n", ed->fallback.name,
		 ed->image.name);
	return embeng_boot_image(ed, &ed->fallback);
}
