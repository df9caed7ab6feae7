// SPDX-License-Identifier: MIT
/*
 * Boots the soft device with the firmware image that is built into the library, and reads its
 * limits.
 *
 * Called by the one thread that opens the device; the image is constant.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "builtin_image.h"
#include "device/status_text.h"
#include "soft.h"

#include "../../../../engine/engine.h"
#include "../../../../uapi/embeng_firmware.h"

uint32_t soft_step_depth(void)
{
	const struct embeng_fw_header *header = (const void *)embeng_builtin_image;
	const struct embeng_fw_section *section = (const void *)(header + 1);
	const struct embeng_fw_parameters *parameters;

	while (section->type != EMBENG_FW_PARAMETERS)
		section++;
	parameters = (const void *)(embeng_builtin_image + section->offset);
	return parameters->step_depth;
}

static int boot_failed(struct soft *s)
{
	uint32_t error = soft_read32(s, EMBENG_REG_BOOT_ERROR);

	return fail(error == EMBENG_BOOT_ERROR_MEMORY ? -ENOMEM : -EIO,
		    "soft device: firmware did not boot: %s (byte %" PRIu64 " of the image)",
		    boot_error_text(error), soft_read64(s, EMBENG_REG_BOOT_ERROR_OFFSET));
}

static void read_info(struct soft *s)
{
	struct embeng_device_info *info = &s->device.info;

	info->interface_major = soft_read32(s, EMBENG_REG_INTERFACE) >> 16;
	info->interface_minor = soft_read32(s, EMBENG_REG_INTERFACE) & 0xffff;
	info->firmware_version = soft_read64(s, EMBENG_REG_FIRMWARE_VERSION);
	info->cores = soft_read32(s, EMBENG_REG_CORES);
	info->step_depth = soft_read32(s, EMBENG_REG_STEP_DEPTH);
	info->replicas = soft_read32(s, EMBENG_REG_REPLICAS);
	info->dim = soft_read32(s, EMBENG_REG_DIM);
	info->tables = soft_read32(s, EMBENG_REG_TABLES);
	info->features = soft_read32(s, EMBENG_REG_FEATURES);
	info->table_memory = soft_read64(s, EMBENG_REG_TABLE_MEMORY);
	info->command_bytes = soft_read64(s, EMBENG_REG_COMMAND_BYTES);
	snprintf(info->variant, sizeof(info->variant), "%s", engine_variant(s->engine));
	s->device.queues = soft_read32(s, EMBENG_REG_QUEUES);
}

int soft_boot(struct soft *s)
{
	uint32_t sequence = soft_read32(s, EMBENG_REG_BOOT_SEQUENCE) + 1;
	int ret = soft_grant(s, embeng_builtin_image, sizeof(embeng_builtin_image));

	if (ret)
		return ret;
	soft_write64(s, EMBENG_REG_BOOT_ADDRESS, (uintptr_t)embeng_builtin_image);
	soft_write64(s, EMBENG_REG_BOOT_LENGTH, sizeof(embeng_builtin_image));
	soft_write32(s, EMBENG_REG_BOOT_SEQUENCE, sequence);
	engine_kick(s->engine);
	while (soft_read32(s, EMBENG_REG_BOOT_DONE) != sequence)
		if (!engine_run(s->engine, ENGINE_RUN_ALL))
			port_relax();
	if (soft_read32(s, EMBENG_REG_BOOT_STATE) != EMBENG_BOOT_RUNNING)
		return boot_failed(s);
	read_info(s);
	return 0;
}
