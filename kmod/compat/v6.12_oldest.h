/* SPDX-License-Identifier: GPL-2.0-only */
/* Linux 6.12 is the oldest kernel that the modules are built for and tested on. */
#ifndef EMBENG_COMPAT_V6_12_OLDEST_H
#define EMBENG_COMPAT_V6_12_OLDEST_H

#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#error "embeng needs Linux 6.12 or newer"
#endif

#endif
