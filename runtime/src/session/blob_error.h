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

#endif
