/* SPDX-License-Identifier: MIT */
/* Devices as list, info and conform speak of them. */
#ifndef CLI_DEVICE_INFO_H
#define CLI_DEVICE_INFO_H

#include <json-c/json.h>

#include "embeng.h"

/*
 * -d, else the environment's EMBENG_DEVICE, else NULL: the library chooses. What is opened first
 * is opened by -d or NULL, so that the library can say where a wrong name is from.
 */
const char *device_choose(const char *given);

/* What to do about a device that is not there. */
extern const char device_hint[];

/**
 * device_probe() - open a device with a small model, ask, close
 *
 * Return: 0 or a negative errno with embeng_last_error() set.
 */
int device_probe(const char *name, struct embeng_device_info *info);

/* "1.2.3 build 4" */
void device_firmware(const struct embeng_device_info *info, char *out, size_t size);

/* Name of the k-th capability, NULL beyond the last; *bit its EMBENG_CAP_*. */
const char *device_capability(size_t k, uint32_t *bit);

struct json_object *device_document(const struct embeng_device_info *info);

#endif
