/* SPDX-License-Identifier: GPL-2.0-only */
/* Linux 6.14 removed the date from struct drm_driver. */
#ifndef EMBENG_COMPAT_V6_14_DRIVER_DATE_H
#define EMBENG_COMPAT_V6_14_DRIVER_DATE_H

#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
#define EMBENG_DRIVER_DATE(text)
#else
#define EMBENG_DRIVER_DATE(text) .date = (text),
#endif

#endif
