/* SPDX-License-Identifier: GPL-2.0-only */
/* Linux 6.13 takes the names of symbol namespaces as strings. */
#ifndef EMBENG_COMPAT_V6_13_IMPORT_NS_H
#define EMBENG_COMPAT_V6_13_IMPORT_NS_H

#include <linux/module.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#define EMBENG_IMPORT_NS(ns) MODULE_IMPORT_NS(#ns)
#else
#define EMBENG_IMPORT_NS(ns) MODULE_IMPORT_NS(ns)
#endif

#endif
