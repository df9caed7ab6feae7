// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults by name, in debugfs under embeng_emu/DEVICE/faults: writing a count arms one. The engine
 * and the emulator ask emu_fault() at each occasion at which a fault could strike.
 *
 * A number generator with a seed chooses which occasions are hit, so that a test can be
 * repeated. A fault is asked for in any context, interrupts included; its own raw spinlock makes
 * an occasion one step. The settings are a part of their device, and the files go with the
 * device's folder.
 */
#include <linux/debugfs.h>

#include "emu.h"

#define PER_MILLE 1000

static const struct {
	const char *name;
	u64 value; /* initial value */
} faults[EMU_FAULTS] = {
	[PORT_FAULT_DROP_COMPLETION] = { "drop_completion", 1 },
	[PORT_FAULT_DELAY_COMPLETION] = { "delay_completion", NSEC_PER_SEC },
	[PORT_FAULT_CORRUPT_COMPLETION] = { "corrupt_completion", 1 },
	[PORT_FAULT_STALL_QUEUE] = { "stall_queue", 1 },
	[PORT_FAULT_REFUSE_REGION] = { "refuse_region", 1 },
	[PORT_FAULT_DMA_ERROR] = { "dma_error", 1 },
	[PORT_FAULT_ECC_CORRECTABLE] = { "ecc_correctable", 1 },
	[PORT_FAULT_ECC_UNCORRECTABLE] = { "ecc_uncorrectable", 1 },
	[PORT_FAULT_FIRMWARE_REFUSES] = { "firmware_refuses", EMBENG_BOOT_ERROR_SELF_TEST },
	[PORT_FAULT_HEARTBEAT_STOPS] = { "heartbeat_stops", 1 },
	[EMU_FAULT_LOSE_INTERRUPT] = { "lose_interrupt", 1 },
	[EMU_FAULT_REPEAT_INTERRUPT] = { "repeat_interrupt", 1 },
	[EMU_FAULT_FIRMWARE_SLOW] = { "firmware_slow", NSEC_PER_SEC },
	[EMU_FAULT_FIRMWARE_DIES] = { "firmware_dies", 1 },
	[EMU_FAULT_ENGINE_DIES] = { "engine_dies", 1 },
	[EMU_FAULT_CONFIG_ALL_ONES] = { "config_all_ones", 1 },
	[EMU_FAULT_LINK_DOWN] = { "link_down", NSEC_PER_SEC },
	[EMU_FAULT_REFUSE_MAPPING] = { "refuse_mapping", 1 },
};

/* splitmix64: one well mixed number for each pair. */
static u64 mix_seed(u64 seed, u64 n)
{
	u64 x = seed + (n + 1) * 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static bool does_fault_strike(struct emu_fault_setting *s)
{
	u64 chance = mix_seed(READ_ONCE(s->seed), s->tries++);

	if (chance % PER_MILLE >= READ_ONCE(s->per_mille))
		return false;
	s->hits++;
	if (s->count != U32_MAX)
		WRITE_ONCE(s->count, s->count - 1);
	return true;
}

/**
 * emu_fault() - does a fault strike now?
 * @emu: the device
 * @fault: enum port_fault or enum emu_fault
 * @target: queue, context or vector at hand, 0 when there is none
 *
 * Return: 0, or the fault's value.
 */
u64 emu_fault(struct emu *emu, unsigned int fault, u32 target)
{
	struct emu_fault_setting *s = &emu->faults[fault];

	if (likely(!READ_ONCE(s->count)))
		return 0;
	guard(emu_lock)(&s->lock);
	if (!s->count || (s->target != EMU_FAULT_ANY && s->target != target) ||
	    !does_fault_strike(s))
		return 0;
	return READ_ONCE(s->value) ?: 1;
}

u64 port_fault(void *host, enum port_fault fault, u32 target)
{
	if (fault == PORT_FAULT_FIRMWARE_REFUSES)
		emu_serve_booting(host);
	return emu_fault(host, fault, target);
}

/* The lock keeps an occasion from changing the count at the same time. */
static int set_fault_count(void *data, u64 value)
{
	struct emu_fault_setting *s = data;

	if (value > U32_MAX)
		return -ERANGE;
	guard(emu_lock)(&s->lock);
	WRITE_ONCE(s->count, value);
	return 0;
}

static int get_fault_count(void *data, u64 *value)
{
	struct emu_fault_setting *s = data;

	*value = READ_ONCE(s->count);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(count_fops, get_fault_count, set_fault_count, "%llu\n");

static int set_fault_tries(void *data, u64 value)
{
	struct emu_fault_setting *s = data;

	guard(emu_lock)(&s->lock);
	s->tries = value;
	return 0;
}

static int get_fault_tries(void *data, u64 *value)
{
	struct emu_fault_setting *s = data;

	guard(emu_lock)(&s->lock);
	*value = s->tries;
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(tries_fops, get_fault_tries, set_fault_tries, "%llu\n");

static void make_fault_files(struct emu_fault_setting *s, struct dentry *folder)
{
	debugfs_create_file_unsafe("count", 0600, folder, s, &count_fops);
	debugfs_create_u32("per_mille", 0600, folder, &s->per_mille);
	debugfs_create_u32("target", 0600, folder, &s->target);
	debugfs_create_u64("seed", 0600, folder, &s->seed);
	debugfs_create_u64("value", 0600, folder, &s->value);
	debugfs_create_file_unsafe("tries", 0600, folder, s, &tries_fops);
	debugfs_create_u64("hits", 0400, folder, &s->hits);
}

void emu_faults_init(struct emu *emu)
{
	struct dentry *all = debugfs_create_dir("faults", emu->debugfs);
	unsigned int i;

	for (i = 0; i < EMU_FAULTS; i++) {
		struct emu_fault_setting *s = &emu->faults[i];

		raw_spin_lock_init(&s->lock);
		s->per_mille = PER_MILLE;
		s->target = EMU_FAULT_ANY;
		s->value = faults[i].value;
		make_fault_files(s, debugfs_create_dir(faults[i].name, all));
	}
}
