/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef EMBENG_EMU_FAULT_H
#define EMBENG_EMU_FAULT_H

#include <linux/spinlock_types.h>

#include "../../engine/port.h"

struct dentry;
struct emu;

/* Faults that the emulator itself injects, numbered after those of the engine. */
enum emu_fault {
	EMU_FAULT_LOSE_INTERRUPT = PORT_FAULT_HEARTBEAT_STOPS + 1, /* vector */
	EMU_FAULT_REPEAT_INTERRUPT,				   /* vector; times more */
	EMU_FAULT_FIRMWARE_SLOW,				   /* ns */
	EMU_FAULT_FIRMWARE_DIES,
	EMU_FAULT_ENGINE_DIES,
	EMU_FAULT_CONFIG_ALL_ONES,
	EMU_FAULT_LINK_DOWN, /* ns */
	EMU_FAULT_REFUSE_MAPPING,
	EMU_FAULTS,
};

#define EMU_FAULT_ANY U32_MAX

/**
 * struct emu_fault_setting - settings of a fault; each member is a file in debugfs
 * @lock: makes an occasion one step, in any context; guards @count and @tries
 * @count: how many more times the fault strikes; 0: it is off
 * @per_mille: share of the occasions at which it strikes, in thousandths
 * @target: the queue, context or vector that it is meant for, or EMU_FAULT_ANY
 * @seed: seed for the choice of occasions; equal seeds choose equal occasions
 * @value: the fault's parameter, such as a delay in nanoseconds; 0 counts as 1
 * @tries: number of occasions so far
 * @hits: number of times that the fault struck
 */
struct emu_fault_setting {
	raw_spinlock_t lock;
	u32 count;
	u32 per_mille;
	u32 target;
	u64 seed;
	u64 value;
	u64 tries;
	u64 hits;
};

void emu_faults_init(struct emu *emu);
u64 emu_fault(struct emu *emu, unsigned int fault, u32 target);

#endif
