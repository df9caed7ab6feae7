// SPDX-License-Identifier: MIT
/*
 * Describes a device in words and as JSON, and chooses the one that a verb uses. The verbs list,
 * info, conform, plan and bench share it, so that a device is called the same everywhere.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "embeng_engine.h"

#include "../frame/output.h"
#include "device.h"

static const struct {
	uint32_t bit;
	const char *name;
} capabilities[] = {
#define CAPABILITY(name, key, words) {EMBENG_CAP_##name, words},
	EMBENG_CAP_TABLE(CAPABILITY)
#undef CAPABILITY
};

const char device_hint[] = "`embeng list` shows the devices";

const char *device_capability(size_t k, uint32_t *bit)
{
	if (k >= sizeof(capabilities) / sizeof(capabilities[0]))
		return NULL;
	*bit = capabilities[k].bit;
	return capabilities[k].name;
}

const char *device_choose(const char *given)
{
	const char *environment = secure_getenv("EMBENG_DEVICE");

	if (given)
		return given;
	return environment && *environment ? environment : NULL;
}

void device_firmware(const struct embeng_device_info *info, char *out, size_t size)
{
	uint64_t version = info->firmware_version;

	snprintf(out, size, "%u.%u.%u build %u", (unsigned int)(version >> 48),
		 (unsigned int)(version >> 32 & 0xffff), (unsigned int)(version >> 16 & 0xffff),
		 (unsigned int)(version & 0xffff));
}

struct json_object *device_document(const struct embeng_device_info *info)
{
	struct json_object *device = json_object_new_object();
	struct json_object *names = json_object_new_array();
	char text[64];
	const char *name;
	uint32_t bit;

	json_add_text(device, "name", info->name);
	json_add_text(device, "kind", info->kind);
	json_add_text(device, "variant", info->variant);
	json_add_text(device, "address", info->address);
	json_add_text(device, "driver", info->driver);
	json_add_text(device, "description", info->description);
	json_add_text(device, "state", info->state);
	json_add_text(device, "problem", info->problem);
	device_firmware(info, text, sizeof(text));
	json_add_text(device, "firmware", text);
	snprintf(text, sizeof(text), "%u.%u", info->interface_major, info->interface_minor);
	json_add_text(device, "interface", text);
	json_add_number(device, "cores", info->cores);
	json_add_number(device, "step_depth", info->step_depth);
	json_add_number(device, "replicas", info->replicas);
	json_add_number(device, "dim", info->dim);
	json_add_number(device, "tables", info->tables);
	json_add_number(device, "table_memory", info->table_memory);
	json_add_number(device, "command_bytes", info->command_bytes);
	for (size_t k = 0; (name = device_capability(k, &bit)); k++) {
		if (info->features & bit)
			json_object_array_add(names, json_object_new_string(name));
	}
	json_object_object_add(device, "capabilities", names);
	json_add_text(device, "fetch", info->fetch);
	json_add_text(device, "fetch_source", info->fetch_source);
	json_add_text(device, "tune_problem", info->tune_problem);
	return device;
}
