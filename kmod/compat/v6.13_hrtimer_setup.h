/* SPDX-License-Identifier: GPL-2.0-only */
/* Linux 6.13 has one call that sets a timer up and names its function; 6.15 has no other. */
#ifndef EMBENG_COMPAT_V6_13_HRTIMER_SETUP_H
#define EMBENG_COMPAT_V6_13_HRTIMER_SETUP_H

#include <linux/hrtimer.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

#endif
