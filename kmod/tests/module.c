// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suites of those parts of the driver that need no device. */
#include <linux/module.h>

MODULE_DESCRIPTION("KUnit tests of embeng");
MODULE_LICENSE("GPL");
