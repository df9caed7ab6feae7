/* SPDX-License-Identifier: MIT */
/* Callbacks that the host of a soft device passes to the port, as engine_config.host. */
#ifndef EMBENG_RUNTIME_PORT_H
#define EMBENG_RUNTIME_PORT_H

#include "../../../engine/port.h"

/**
 * struct port_host - callbacks of a host
 * @dma_ok: return whether all of the range is memory that the device was given. NULL: the host
 *	guarantees it for everything that it puts into its tables
 * @interrupt: called with the engine's lock held, so it may only note the interrupt or wake a
 *	thread
 * @fault: implements port_fault(); NULL: no fault strikes
 * @signature: implements port_signature(); NULL: the device has no keys
 * @log: takes log lines, with an enum port_log_level; may be NULL
 * @arg: passed to each callback
 *
 * The DMA address of a byte is its address in this process.
 */
struct port_host {
	bool (*dma_ok)(void *arg, u64 address, u64 length);
	void (*interrupt)(void *arg, u32 vector);
	u64 (*fault)(void *arg, enum port_fault fault, u32 target);
	u32 (*signature)(void *arg, const void *image, u64 length, const void *message,
			 u64 message_length);
	void (*log)(void *arg, int level, const char *text);
	void *arg;
};

#endif
