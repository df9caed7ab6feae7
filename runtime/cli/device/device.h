/* SPDX-License-Identifier: MIT */
/* Code about devices that the verbs list, info and conform share. */
#ifndef CLI_DEVICE_INFO_H
#define CLI_DEVICE_INFO_H

#include <json-c/json.h>

#include "embeng.h"

/*
 * The name from -d, else EMBENG_DEVICE from the environment, else NULL, and the library chooses. A
 * verb opens its first device with -d or NULL, so that the library can say where a wrong name came
 * from.
 */
const char *device_choose(const char *given);

/* A hint for the case that a device is not there. */
extern const char device_hint[];

/* Writes the version of the firmware, such as "1.2.3 build 4". */
void device_firmware(const struct embeng_device_info *info, char *out, size_t size);

/* Name of the k-th capability; NULL beyond the last. Sets *bit to its EMBENG_CAP_*. */
const char *device_capability(size_t k, uint32_t *bit);

struct json_object *device_document(const struct embeng_device_info *info);

#endif
