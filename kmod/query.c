// SPDX-License-Identifier: GPL-2.0-only
/* Sized queries. */
#include <linux/uaccess.h>

#include "driver.h"

static const u32 counters[] = {
	EMBENG_REG_COUNT_COMMANDS,	 EMBENG_REG_COUNT_BATCHES,
	EMBENG_REG_COUNT_UPDATES,	 EMBENG_REG_COUNT_IDS,
	EMBENG_REG_COUNT_UNIQUE_ROWS,	 EMBENG_REG_COUNT_BYTES_READ,
	EMBENG_REG_COUNT_BYTES_WRITTEN,	 EMBENG_REG_COUNT_ERRORS_PROGRAM,
	EMBENG_REG_COUNT_ERRORS_MODEL,	 EMBENG_REG_COUNT_ERRORS_DEVICE,
	EMBENG_REG_TIME_CHECK,		 EMBENG_REG_TIME_LOOKUP,
	EMBENG_REG_TIME_PARTITION,	 EMBENG_REG_TIME_UPDATE,
	EMBENG_REG_TIME_RING,
};

/* The largest answer; each is made on the stack and copied from there. */
union answer {
	struct embeng_accel_device device;
	struct embeng_caps caps;
	u64 counters[ARRAY_SIZE(counters)];
};

static u32 answer_device(struct embeng_device *ed, struct embeng_accel_device *out)
{
	*out = (struct embeng_accel_device){
		.boot_state = embeng_read32(ed, EMBENG_REG_BOOT_STATE),
		.boot_error = ed->boot_error,
		.doorbell_stride = ed->doorbell_stride,
		.boot_error_offset = ed->boot_error_offset,
		.firmware_version = ed->firmware_version,
		.pci_domain = pci_domain_nr(ed->pci->bus),
		.pci_bus = ed->pci->bus->number,
		.pci_device = PCI_SLOT(ed->pci->devfn),
		.pci_function = PCI_FUNC(ed->pci->devfn),
	};
	return sizeof(*out);
}

static u32 answer_counters(struct embeng_device *ed, u64 *out)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(counters); i++)
		out[i] = embeng_read64(ed, counters[i]);
	return sizeof(counters) / sizeof(*counters) * sizeof(*out);
}

static int make_answer(struct embeng_device *ed, u32 what, union answer *out, u32 *size)
{
	switch (what) {
	case EMBENG_ACCEL_QUERY_DEVICE:
		*size = answer_device(ed, &out->device);
		return 0;
	case EMBENG_ACCEL_QUERY_CAPS:
		out->caps = ed->caps;
		*size = sizeof(out->caps);
		return 0;
	case EMBENG_ACCEL_QUERY_COUNTERS:
		*size = answer_counters(ed, out->counters);
		return 0;
	}
	return -EOPNOTSUPP;
}

/**
 * embeng_query_ioctl() - DRM_IOCTL_EMBENG_QUERY
 * @drm: device
 * @data: &struct embeng_accel_query
 * @file: asks
 *
 * Return: 0 or a negative errno of the contract.
 */
int embeng_query_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct embeng_accel_query *query = data;
	union answer answer;
	u32 size, room = query->size;
	int ret = make_answer(to_embeng(drm), query->what, &answer, &size);

	if (ret)
		return ret;
	query->size = size;
	if (!query->data)
		return 0;
	if (room < size)
		return -ENOSPC;
	if (copy_to_user(u64_to_user_ptr(query->data), &answer, size)) {
		query->size = room;
		return -EFAULT;
	}
	return 0;
}
