// SPDX-License-Identifier: GPL-2.0-only
/*
 * Config space of the emulated function: power management, MSI-X, PCI Express with function-level
 * reset, and a serial number.
 *
 * It is an array of bytes with a mask of the bits that a write changes. A write that resets the
 * function, or that brings it out of D3hot where it does not keep its state there, puts the array
 * back and has the service thread reset the engine. config.lock is a raw spinlock, because the PCI
 * core may hold a raw lock of its own when it comes here; msix.lock is taken inside it. Single
 * words are read without it, by the engine's thread and by interrupts.
 */
#include <linux/unaligned.h>

#include "emu.h"

#define CAP_PM 0x40
#define CAP_MSIX 0x50
#define CAP_EXP 0x60
#define CAP_DSN 0x100

static void put_config16(struct emu_config *c, unsigned int where, u16 value, u16 writable)
{
	put_unaligned_le16(value, c->value + where);
	put_unaligned_le16(writable, c->writable + where);
}

static void put_config32(struct emu_config *c, unsigned int where, u32 value, u32 writable)
{
	put_unaligned_le32(value, c->value + where);
	put_unaligned_le32(writable, c->writable + where);
}

static void put_cap_header(struct emu_config *c, unsigned int where, u8 id, u8 next)
{
	c->value[where + PCI_CAP_LIST_ID] = id;
	c->value[where + PCI_CAP_LIST_NEXT] = next;
}

static void init_config_header(struct emu_config *c, u16 device)
{
	put_config16(c, PCI_VENDOR_ID, EMBENG_PCI_VENDOR, 0);
	put_config16(c, PCI_DEVICE_ID, device, 0);
	put_config16(c, PCI_COMMAND, 0,
		     PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_PARITY |
			     PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE);
	put_config16(c, PCI_STATUS, PCI_STATUS_CAP_LIST, 0);
	put_config32(c, PCI_CLASS_REVISION, EMBENG_PCI_CLASS << 8, 0);
	c->writable[PCI_CACHE_LINE_SIZE] = 0xff;
	put_config16(c, PCI_SUBSYSTEM_VENDOR_ID, EMBENG_PCI_VENDOR, 0);
	put_config16(c, PCI_SUBSYSTEM_ID, device, 0);
	c->value[PCI_CAPABILITY_LIST] = CAP_PM;
	c->writable[PCI_INTERRUPT_LINE] = 0xff;
}

/* Sizing a BAR reads back the bits that a write of ones could change. */
static void init_bar(struct emu_config *c, unsigned int bar, u64 bytes)
{
	unsigned int where = PCI_BASE_ADDRESS_0 + 4 * bar;
	u64 writable = ~(bytes - 1);

	put_config32(c, where, PCI_BASE_ADDRESS_SPACE_MEMORY | PCI_BASE_ADDRESS_MEM_TYPE_64,
		     lower_32_bits(writable));
	put_config32(c, where + 4, 0, upper_32_bits(writable));
}

static void init_pm_cap(struct emu_config *c, bool d3_keeps)
{
	put_cap_header(c, CAP_PM, PCI_CAP_ID_PM, CAP_MSIX);
	put_config16(c, CAP_PM + PCI_PM_PMC, 3, 0);
	put_config16(c, CAP_PM + PCI_PM_CTRL, d3_keeps ? PCI_PM_CTRL_NO_SOFT_RESET : 0,
		     PCI_PM_CTRL_STATE_MASK);
}

static void init_msix_cap(struct emu_config *c, u32 vectors)
{
	put_cap_header(c, CAP_MSIX, PCI_CAP_ID_MSIX, CAP_EXP);
	put_config16(c, CAP_MSIX + PCI_MSIX_FLAGS, vectors - 1,
		     PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
	put_config32(c, CAP_MSIX + PCI_MSIX_TABLE, EMBENG_BAR_MSIX, 0);
	put_config32(c, CAP_MSIX + PCI_MSIX_PBA, EMU_MSIX_PENDING_OFFSET | EMBENG_BAR_MSIX, 0);
}

static void init_express_cap(struct emu_config *c)
{
	put_cap_header(c, CAP_EXP, PCI_CAP_ID_EXP, 0);
	put_config16(c, CAP_EXP + PCI_EXP_FLAGS, 2 | PCI_EXP_TYPE_RC_END << 4, 0);
	put_config32(c, CAP_EXP + PCI_EXP_DEVCAP,
		     PCI_EXP_DEVCAP_RBER | PCI_EXP_DEVCAP_FLR | PCI_EXP_DEVCAP_EXT_TAG, 0);
	put_config16(c, CAP_EXP + PCI_EXP_DEVCTL,
		     PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_NOSNOOP_EN |
			     PCI_EXP_DEVCTL_READRQ_512B,
		     0xffff);
}

static void init_serial_cap(struct emu_config *c, u16 device, u32 number)
{
	put_config32(c, CAP_DSN, PCI_EXT_CAP_ID_DSN | 1 << 16, 0);
	put_config32(c, CAP_DSN + 4, number, 0);
	put_config32(c, CAP_DSN + 8, EMBENG_PCI_VENDOR << 16 | device, 0);
}

static void init_config_space(struct emu *emu)
{
	struct emu_config *c = &emu->config;

	memset(c->value, 0, sizeof(c->value));
	memset(c->writable, 0, sizeof(c->writable));
	init_config_header(c, emu->options.device);
	init_bar(c, EMBENG_BAR_REGISTERS, EMBENG_REGISTERS_SIZE);
	init_bar(c, EMBENG_BAR_DOORBELLS, emu_doorbell_bytes(emu));
	init_bar(c, EMBENG_BAR_MSIX, PAGE_SIZE);
	init_pm_cap(c, emu->options.d3_keeps);
	init_msix_cap(c, emu->options.vectors);
	init_express_cap(c);
	init_serial_cap(c, emu->options.device, emu->number);
}

static void preset_bar(struct emu *emu, unsigned int bar)
{
	u8 *value = emu->config.value + PCI_BASE_ADDRESS_0 + 4 * bar;
	u64 address = emu->window.start + emu_bar_offset(emu, bar);

	put_unaligned_le64(get_unaligned_le64(value) | address, value);
}

/**
 * emu_config_init() - set config space up as firmware would have left it
 * @emu: the device
 *
 * The BARs are set here, because the kernel does not place them in reserved memory by itself.
 */
void emu_config_init(struct emu *emu)
{
	raw_spin_lock_init(&emu->config.lock);
	init_config_space(emu);
	preset_bar(emu, EMBENG_BAR_REGISTERS);
	preset_bar(emu, EMBENG_BAR_DOORBELLS);
	preset_bar(emu, EMBENG_BAR_MSIX);
}

/* Resets config space. The kernel puts back what it had set. */
void emu_config_reset(struct emu *emu)
{
	guard(emu_lock)(&emu->config.lock);
	init_config_space(emu);
	emu_msix_reset(emu);
}

u32 emu_config_get(const struct emu *emu, unsigned int where, unsigned int size)
{
	const u8 *value = emu->config.value + where;

	switch (size) {
	case 1:
		return READ_ONCE(*value);
	case 2:
		return le16_to_cpu(READ_ONCE(*(const __le16 *)value));
	default:
		return le32_to_cpu(READ_ONCE(*(const __le32 *)value));
	}
}

bool emu_config_bus_master(const struct emu *emu)
{
	return emu_config_get(emu, PCI_COMMAND, 2) & PCI_COMMAND_MASTER;
}

bool emu_config_asleep(const struct emu *emu)
{
	return emu_config_get(emu, CAP_PM + PCI_PM_CTRL, 2) & PCI_PM_CTRL_STATE_MASK;
}

bool emu_config_msix_enabled(const struct emu *emu)
{
	return emu_config_get(emu, CAP_MSIX + PCI_MSIX_FLAGS, 2) & PCI_MSIX_FLAGS_ENABLE;
}

bool emu_config_msix_masked(const struct emu *emu)
{
	return emu_config_get(emu, CAP_MSIX + PCI_MSIX_FLAGS, 2) & PCI_MSIX_FLAGS_MASKALL;
}

/* Acts on a write. A power state that the function lacks leaves it in the one that it had. */
static void act_on_write(struct emu *emu, u8 old_state)
{
	u8 *pm = emu->config.value + CAP_PM + PCI_PM_CTRL;
	u8 *control = emu->config.value + CAP_EXP + PCI_EXP_DEVCTL;
	u16 state = get_unaligned_le16(pm) & PCI_PM_CTRL_STATE_MASK;
	bool flr;

	if (state == (__force u16)PCI_D1 || state == (__force u16)PCI_D2)
		*pm = (*pm & ~PCI_PM_CTRL_STATE_MASK) | old_state;
	flr = get_unaligned_le16(control) & PCI_EXP_DEVCTL_BCR_FLR;
	if (!flr && (!old_state || emu_config_asleep(emu) || emu->options.d3_keeps))
		return;
	init_config_space(emu);
	emu_msix_reset(emu);
	emu_serve_reset(emu, flr);
}

static void write_config_bytes(struct emu *emu, unsigned int where, unsigned int size, u32 value)
{
	struct emu_config *c = &emu->config;
	u8 old_state;

	guard(emu_lock)(&c->lock);
	old_state = c->value[CAP_PM + PCI_PM_CTRL] & PCI_PM_CTRL_STATE_MASK;
	for (; size; size--, where++, value >>= 8) {
		u8 mask = c->writable[where];

		c->value[where] = (c->value[where] & ~mask) | (value & mask);
	}
	act_on_write(emu, old_state);
}

static bool is_function_reachable(const struct emu *emu, unsigned int devfn, int where, int size)
{
	return emu && !devfn && where >= 0 && where + size <= PCI_CFG_SPACE_EXP_SIZE &&
	       !READ_ONCE(emu->absent) && !READ_ONCE(emu->gone);
}

/* The bit that says that transactions from before the bus was taken away are still under way. */
static u32 read_pending_bit(const struct emu *emu, int where, int size)
{
	int at = CAP_EXP + PCI_EXP_DEVSTA - where;

	if (at < 0 || at >= size || emu_config_bus_master(emu))
		return 0;
	/* Pairs with run_engine(). */
	smp_mb();
	/* Once this reads false, every access that the engine made to memory is over. */
	return smp_load_acquire(&emu->on_bus) ? PCI_EXP_DEVSTA_TRPND << 8 * at : 0;
}

static int read_config(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *value)
{
	struct emu *emu = emu_of_bus(bus);

	if (!is_function_reachable(emu, devfn, where, size)) {
		PCI_SET_ERROR_RESPONSE(value);
		return PCIBIOS_DEVICE_NOT_FOUND;
	}
	guard(emu_lock)(&emu->config.lock);
	*value = emu_config_get(emu, where, size) | read_pending_bit(emu, where, size);
	return PCIBIOS_SUCCESSFUL;
}

static int write_config(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 value)
{
	struct emu *emu = emu_of_bus(bus);

	if (!is_function_reachable(emu, devfn, where, size))
		return PCIBIOS_DEVICE_NOT_FOUND;
	write_config_bytes(emu, where, size, value);
	emu_msix_replay(emu);
	return PCIBIOS_SUCCESSFUL;
}

struct pci_ops emu_pci_ops = {
	.read = read_config,
	.write = write_config,
};
