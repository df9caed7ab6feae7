// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suites of the driver's pure parts. */
#include <linux/module.h>

MODULE_DESCRIPTION("KUnit tests of embeng");
MODULE_LICENSE("GPL");
