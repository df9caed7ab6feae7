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
#include <linux/seq_file.h>

#include "emu.h"

#define PER_MILLE 1000

/**
 * struct fault_kind - a fault, as its files in debugfs tell of it
 * @name: name of its folder
 * @value: initial value
 * @target_is: kind of the thing that it strikes
 * @value_is: unit of the value, or an empty string if the fault does not use it
 * @about: the effect of a strike
 */
struct fault_kind {
	const char *name;
	u64 value;
	const char *target_is;
	const char *value_is;
	const char *about;
};

static const struct fault_kind faults[EMU_FAULTS] = {
	[PORT_FAULT_DROP_COMPLETION] = { "drop_completion", 1, "queue", "",
					 "a completion is not written" },
	[PORT_FAULT_DELAY_COMPLETION] = { "delay_completion", NSEC_PER_SEC, "queue", "nanoseconds",
					  "a completion is seen later" },
	[PORT_FAULT_CORRUPT_COMPLETION] = { "corrupt_completion", 1, "queue", "",
					    "the cookie of a completion is inverted" },
	[PORT_FAULT_STALL_QUEUE] = { "stall_queue", 1, "queue", "",
				     "a queue takes no more commands until it is destroyed" },
	[PORT_FAULT_REFUSE_REGION] = { "refuse_region", 1, "context", "",
				       "a region is not mapped, as if its key did not exist" },
	[PORT_FAULT_DMA_ERROR] = { "dma_error", 1, "queue", "",
				   "a command ends with the status INTERNAL" },
	[PORT_FAULT_ECC_CORRECTABLE] = { "ecc_correctable", 1, "queue", "",
					 "a command meets a memory error that is corrected" },
	[PORT_FAULT_ECC_UNCORRECTABLE] = { "ecc_uncorrectable", 1, "queue", "",
					   "a command loses data, and STATUS becomes FAULT" },
	[PORT_FAULT_FIRMWARE_REFUSES] = { "firmware_refuses", EMBENG_BOOT_ERROR_SELF_TEST, "device",
					  "boot error", "a boot fails with this error" },
	[PORT_FAULT_HEARTBEAT_STOPS] = { "heartbeat_stops", 1, "device", "",
					 "the heartbeat stands still while the engine goes on" },
	[EMU_FAULT_LOSE_INTERRUPT] = { "lose_interrupt", 1, "vector", "",
				       "an interrupt does not arrive" },
	[EMU_FAULT_REPEAT_INTERRUPT] = { "repeat_interrupt", 1, "vector", "times",
					 "an interrupt arrives so many more times" },
	[EMU_FAULT_FIRMWARE_SLOW] = { "firmware_slow", NSEC_PER_SEC, "device", "nanoseconds",
				      "a boot takes longer" },
	[EMU_FAULT_FIRMWARE_DIES] = { "firmware_dies", 1, "device", "",
				      "a boot does not end until the function is reset" },
	[EMU_FAULT_ENGINE_DIES] = { "engine_dies", 1, "device", "",
				    "the engine does nothing more until the function is reset" },
	[EMU_FAULT_CONFIG_ALL_ONES] = { "config_all_ones", 1, "device", "",
					"the device is removed by surprise, for good" },
	[EMU_FAULT_LINK_DOWN] = { "link_down", NSEC_PER_SEC, "device", "nanoseconds",
				  "the device is absent, and then back from a reset" },
	[EMU_FAULT_REFUSE_MAPPING] = { "refuse_mapping", 1, "device", "",
				       "the memory of a table, ring or region is not reached" },
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

static int about_show(struct seq_file *text, void *unused)
{
	const struct fault_kind *kind = text->private;

	seq_printf(text, "%s\n", kind->about);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(about);

static int target_is_show(struct seq_file *text, void *unused)
{
	const struct fault_kind *kind = text->private;

	seq_printf(text, "%s\n", kind->target_is);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(target_is);

static int value_is_show(struct seq_file *text, void *unused)
{
	const struct fault_kind *kind = text->private;

	seq_printf(text, "%s\n", kind->value_is);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(value_is);

static int value_default_show(struct seq_file *text, void *unused)
{
	const struct fault_kind *kind = text->private;

	seq_printf(text, "%llu\n", kind->value);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(value_default);

/* With these a program can list and explain the faults without knowing any of them. */
static void make_fault_words(const struct fault_kind *kind, struct dentry *folder)
{
	void *data = (void *)kind;

	debugfs_create_file("about", 0400, folder, data, &about_fops);
	debugfs_create_file("target_is", 0400, folder, data, &target_is_fops);
	debugfs_create_file("value_is", 0400, folder, data, &value_is_fops);
	debugfs_create_file("value_default", 0400, folder, data, &value_default_fops);
}

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
	struct dentry *all = debugfs_create_dir("faults", emu->debugfs), *folder;
	unsigned int i;

	for (i = 0; i < EMU_FAULTS; i++) {
		struct emu_fault_setting *s = &emu->faults[i];

		raw_spin_lock_init(&s->lock);
		s->per_mille = PER_MILLE;
		s->target = EMU_FAULT_ANY;
		s->value = faults[i].value;
		folder = debugfs_create_dir(faults[i].name, all);
		make_fault_files(s, folder);
		make_fault_words(&faults[i], folder);
	}
}
