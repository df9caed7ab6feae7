/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_TPU_SETTINGS_H
#define EMBENG_TPU_SETTINGS_H

#include "embeng.h"
#include "embeng/tpu.h"

/*
 * tpu_settings_take() - check settings and copy them
 * @given: settings of the caller; NULL counts as a zeroed structure
 * @tables: number of tables in the model
 *
 * In the copy, 0 hosts have become 1. Return: 0, -EINVAL or -ERANGE.
 */
int tpu_settings_take(struct embeng_tpu_settings *s, const struct embeng_tpu_settings *given,
		      size_t tables);

#endif
