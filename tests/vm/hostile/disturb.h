/* SPDX-License-Identifier: MIT */
/*
 * Things that may happen to a device while programs use it: faults, resets, the driver unbound, the
 * function taken out, the machine asleep or short of memory. Each act undoes itself.
 */
#ifndef EMBENG_TESTS_HOSTILE_DISTURB_H
#define EMBENG_TESTS_HOSTILE_DISTURB_H

#include <stdbool.h>
#include <stdint.h>

#define DISTURB_ADDRESS "0eb0:00:00.0"
#define DISTURB_FUNCTION "/sys/bus/pci/devices/" DISTURB_ADDRESS "/"

/**
 * struct disturbance - something that happens to a device
 * @name: its name in reports
 * @loses: contexts may be lost by it
 * @fails: commands of anybody may fail by it
 * @act: makes it happen; draws from @state
 */
struct disturbance {
	const char *name;
	bool loses;
	bool fails;
	void (*act)(uint64_t *state);
};

#define DISTURBANCES 10u
extern const struct disturbance disturbances[DISTURBANCES];

/* Lets every user open the node, which must be there within 30 s. */
void disturb_open_node(void);

/* Ends all faults, and binds the driver anew if it has given the device up. */
void disturb_end(void);

#endif
