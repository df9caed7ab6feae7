/* SPDX-License-Identifier: MIT */
/* What the process that hosts a soft device gives to its port, as engine_config.host. */
#ifndef EMBENG_RUNTIME_PORT_H
#define EMBENG_RUNTIME_PORT_H

#include "../../../engine/port.h"

/**
 * struct port_host - callbacks of a host
 * @dma_ok: is all of it memory that the device was given? NULL: the host vouches for what
 *	it puts into its tables
 * @interrupt: called with the engine's lock held: take note, wake somebody, return
 * @fault: answers port_fault(); NULL: no fault strikes
 * @log: @level is enum port_log_level; may be NULL
 * @arg: handed back to each
 *
 * The DMA address of a byte is its address in this process.
 */
struct port_host {
	bool (*dma_ok)(void *arg, u64 address, u64 length);
	void (*interrupt)(void *arg, u32 vector);
	u64 (*fault)(void *arg, enum port_fault fault, u32 target);
	void (*log)(void *arg, int level, const char *text);
	void *arg;
};

#endif
