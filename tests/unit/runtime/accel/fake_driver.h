/* SPDX-License-Identifier: MIT */
/*
 * The kernel driver in this process: its ioctls, played with soft devices behind them. One
 * soft device is one open file with its context. A call that no driver would accept fails the
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
 * struct fake_driver - behaviour of the driver, and counts of the calls that it got
 * @functions: PCI functions in the list; at first one, with a node
 * @open_error: negative errno of open()
 * @refusal: why the driver did not take the function that has no node; NULL: it is not loaded
 * @name: name of the driver
 * @version: minor version
 * @device: answer to QUERY_DEVICE
 * @interface_major: major version of the device's interface
 * @fails: ioctl number that fails with @error
 * @error: negative errno
 * @before: called before each ioctl is played, on its thread; NULL: nothing
 * @takes: 1 << kind of queues whose commands the device never sees: the driver accepts them, and
 *	fake_finish() ends them. Such a queue never belongs to the device again
 * @lost: negative errno with which every ioctl fails; set by fake_lose()
 * @registers: registers of the function, which its resource file maps; QUERY_DEVICE may name it
 * @no_write: the resource file cannot be mapped
 * @rung: rung of the last RESET
 * @context_lost: set by fake_lose_context()
 * @submits: number of SUBMIT ioctls
 * @waits: number of WAIT ioctls
 * @bos: number of buffer objects
 * @bindings: number of bindings
 * @mappings: number of mappings
 * @files: number of open files
 */
struct fake_driver {
	struct accel_function functions[4];
	unsigned int function_count;
	int open_error;
	const char *refusal;
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

/* Replaces the kernel by a new fake driver. */
void fake_install(void);

/* Closes a descriptor that the driver gave out. */
void fake_close_descriptor(int fd);

/* Number of commands that were taken from queues of a kind and have not ended yet. */
uint32_t fake_held(enum embeng_queue_kind kind);

/* Ends these commands with an enum embeng_status. */
void fake_finish(enum embeng_queue_kind kind, uint16_t status);

/* Makes a dma-buf of another driver, of one page. */
int fake_foreign_dmabuf(void);

/* Makes QUERY_CONTEXT report all contexts as lost; nothing else fails yet. */
void fake_lose_context(void);

/* Loses the device (-ENODEV), or the contexts in a reset (-ESHUTDOWN). */
void fake_lose(int error);

#endif
