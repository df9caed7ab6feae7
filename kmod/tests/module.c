// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module of the KUnit suites of those parts of the driver that need no device. Loading it runs
 * them all. It holds no state.
 */
#include <linux/module.h>

MODULE_DESCRIPTION("KUnit tests of embeng");
MODULE_LICENSE("GPL");
