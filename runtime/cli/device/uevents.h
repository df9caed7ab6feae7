/* SPDX-License-Identifier: MIT */
/* The driver's word on a device: a uevent for each rung of the recovery ladder that it takes. */
#ifndef CLI_UEVENTS_H
#define CLI_UEVENTS_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct uevent - a rung that was taken
 * @address: PCI address of the device, as in struct embeng_device_info
 * @rung, @cause: words of the driver (embeng(4))
 * @words: the cause as a sentence
 * @reset: number of resets so far that lost contexts
 */
struct uevent {
	char address[32], rung[32], cause[32];
	const char *words;
	uint64_t reset;
};

struct uevents;

/* Begins to listen. Return: NULL if this build or this system has no uevents. */
struct uevents *uevents_open(void);
void uevents_close(struct uevents *uevents);

/**
 * uevents_wait() - sleep until the driver says something
 * @ms: longest sleep, in milliseconds
 * @out: the uevent
 *
 * Without @uevents, which may be NULL, it only sleeps. Return: true if there was one.
 */
bool uevents_wait(struct uevents *uevents, int ms, struct uevent *out);

#endif
