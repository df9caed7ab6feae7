/* SPDX-License-Identifier: MIT */
/*
 * The kernel driver in this process: its ioctls, played with soft devices behind them. One
 * soft device is one open file with its context. Calls that no driver would take fail the
 * test that runs.
 */
#ifndef EMBENG_TESTS_FAKE_DRIVER_H
#define EMBENG_TESTS_FAKE_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/src/device/accel/accel.h"
#include "embeng_regs.h"

#define FAKE_NODE "/dev/accel/accel3"
#define FAKE_ADDRESS "0000:0a:01.2"

/**
 * struct fake_driver - how it behaves, and what it saw
 * @functions: entries of the list; one function with a node at first
 * @open_error: of open(), negative
 * @name: of the driver
 * @version: minor
 * @device: what QUERY_DEVICE says
 * @interface_major: of the device
 * @fails: ioctl number that fails with @error
 * @error: negative
 * @before: called before each ioctl is played, on its thread; NULL: nothing
 * @takes: 1 << kind of queues whose commands the device never sees: the driver accepts them, and
 *	fake_finish() ends them. For good: such a queue is not the device's any more
 * @lost: every ioctl fails with it, negative; set by fake_lose()
 * @registers: of the function, which its resource file maps; QUERY_DEVICE may name it
 * @no_write: the resource file cannot be mapped
 * @rung: of the last RESET
 * @context_lost: set by fake_lose_context()
 * @submits: SUBMIT ioctls
 * @waits: WAIT ioctls
 * @bos: buffer objects there are
 * @bindings: there are
 * @mappings: there are
 * @files: open
 */
struct fake_driver {
	struct accel_function functions[4];
	unsigned int function_count;
	int open_error;
	const char *name;
	int version;
	struct embeng_accel_device device;
	uint32_t interface_major;
	unsigned long fails;
	int error;
	void (*before)(unsigned long request, const void *arg);
	uint32_t takes;
	int lost;
	bool context_lost;
	char registers[EMBENG_REGISTERS_SIZE] __attribute__((aligned(8)));
	bool no_write;
	uint32_t rung;
	unsigned int submits, waits;
	int bos, bindings, mappings, files;
};

extern struct fake_driver fake;

/* Puts it in the kernel's place, as new. */
void fake_install(void);

/* close() of a descriptor that the driver gave out. */
void fake_close_descriptor(int fd);

/* Commands that were taken from the queues of a kind and did not end yet. */
uint32_t fake_held(enum embeng_queue_kind kind);

/* They end, with an enum embeng_status. */
void fake_finish(enum embeng_queue_kind kind, uint16_t status);

/* A dma-buf of another driver, of a page. */
int fake_foreign_dmabuf(void);

/* QUERY_CONTEXT calls the contexts lost; nothing else fails yet. */
void fake_lose_context(void);

/* The device goes (-ENODEV), or a reset takes the contexts (-ESHUTDOWN). */
void fake_lose(int error);

#endif
