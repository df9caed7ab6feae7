/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_TPU_SETTINGS_H
#define EMBENG_TPU_SETTINGS_H

#include "embeng.h"

/*
 * tpu_settings_take() - a copy of what was given, checked
 * @given: NULL: as zeroed
 * @tables: of the model
 *
 * Hosts are 1 or more in it. Return: 0, -EINVAL or -ERANGE.
 */
int tpu_settings_take(struct embeng_tpu_settings *s, const struct embeng_tpu_settings *given,
		      size_t tables);

#endif
