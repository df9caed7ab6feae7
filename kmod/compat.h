/* SPDX-License-Identifier: GPL-2.0-only */
/* What other kernels than 6.12 call otherwise. */
#ifndef EMBENG_COMPAT_H
#define EMBENG_COMPAT_H

#include <linux/module.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#error "embeng needs Linux 6.12 or newer"
#endif

/* Namespaces became strings in 6.13. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#define EMBENG_IMPORT_NS(ns) MODULE_IMPORT_NS(#ns)
#else
#define EMBENG_IMPORT_NS(ns) MODULE_IMPORT_NS(ns)
#endif

/* struct drm_driver lost its date in 6.14. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
#define EMBENG_DRIVER_DATE(text)
#else
#define EMBENG_DRIVER_DATE(text) .date = (text),
#endif

#endif
