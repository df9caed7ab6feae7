/* SPDX-License-Identifier: MIT */
/* The sentence of a model that the device refused. */
#ifndef EMBENG_BLOB_ERROR_H
#define EMBENG_BLOB_ERROR_H

#include "device/wire.h"
#include "model/model.h"

/**
 * blob_error() - say why a device does not load a model
 * @model: the model
 * @blob: its blob, as the device got it
 * @length: bytes of @blob
 * @c: the completion of the MODEL_LOAD
 *
 * The sentence names the table or feature, the setting, its value, what is allowed, and a remedy.
 * Return: the negative errno.
 */
int blob_error(const struct embeng_model *model, const void *blob, size_t length,
	       const struct embeng_cqe *c);

/**
 * tables_limit_check() - refuse tables that the process can never have
 * @model: the model
 * @room: bytes that the device has for tables; more than that is the device's to refuse
 * @most: bytes that the process may have beyond those that it has
 * @by: file or limit that says so
 *
 * Return: 0, or -ENOMEM: the kernel would end the process once the tables are filled.
 */
int tables_limit_check(const struct embeng_model *model, uint64_t room, uint64_t most,
		       const char *by);

#endif
