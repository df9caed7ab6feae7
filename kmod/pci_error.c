// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls of the PCI core: function-level resets that somebody else asks for, by sysfs or when the
 * function is assigned to a guest, and recovery from bus errors.
 *
 * For a reset the core calls twice, before and after. reset_lock stays held for writing in
 * between, so that nobody talks to the device and nothing is freed under it. After a bus error the
 * device is `offline`: it may run on but has lost the bus, so memory may be freed without asking
 * it, and the driver does not reset it before the core says that the bus is back. The watchdog
 * gives the device up if that call never comes.
 */
#include <linux/cleanup.h>

#include "context.h"

static const struct embeng_hang wanted = { .cause = EMBENG_ACCEL_CAUSE_REQUEST };
static const struct embeng_hang bus = { .cause = EMBENG_ACCEL_CAUSE_BUS };

/* reset_lock stays held until finish_function_reset(). */
static void prepare_function_reset(struct pci_dev *pci)
{
	struct embeng_device *ed = pci_get_drvdata(pci);

	down_write(&ed->reset_lock);
	embeng_reset_before(ed, &wanted);
}

static void finish_function_reset(struct pci_dev *pci)
{
	struct embeng_device *ed = pci_get_drvdata(pci);

	if (!embeng_gone(ed)) {
		ed->resets.functions++;
		embeng_reset_after(ed, embeng_reset_revive(ed), EMBENG_ACCEL_RESET_FUNCTION,
				   &wanted);
	} else if (ed->resets.wedged) {
		embeng_reset_look(ed);
	}
	up_write(&ed->reset_lock);
}

/*
 * The bus is stopped, or what it carried cannot be trusted, so nothing in flight comes back. The
 * device may run on, but reaches no memory; memory may be freed before the device is reset.
 */
static void take_device_offline(struct embeng_device *ed)
{
	guard(rwsem_write)(&ed->reset_lock);
	if (embeng_gone(ed))
		return;
	embeng_device_cut_off(ed);
	WRITE_ONCE(ed->offline, true);
	embeng_mmap_hold_off(ed);
}

static pci_ers_result_t handle_bus_error(struct pci_dev *pci, pci_channel_state_t state)
{
	struct embeng_device *ed = pci_get_drvdata(pci);

	drm_warn(&ed->drm, "bus error, channel state %u\n", state);
	switch (state) {
	case pci_channel_io_normal:
		return PCI_ERS_RESULT_CAN_RECOVER;
	case pci_channel_io_frozen:
		take_device_offline(ed);
		return PCI_ERS_RESULT_NEED_RESET;
	default:
		embeng_reset_gone(ed, "its bus has failed for good");
		return PCI_ERS_RESULT_DISCONNECT;
	}
}

/*
 * The error was not fatal and registers can be read again. Transfers that were lost on the way are
 * found by the watchdog.
 */
static pci_ers_result_t judge_after_error(struct pci_dev *pci)
{
	struct embeng_device *ed = pci_get_drvdata(pci);

	if (embeng_present(ed) &&
	    embeng_read32(ed, EMBENG_REG_BOOT_STATE) == EMBENG_BOOT_RUNNING &&
	    embeng_read32(ed, EMBENG_REG_STATUS) == EMBENG_DEVICE_OK)
		return PCI_ERS_RESULT_RECOVERED;
	take_device_offline(ed);
	return PCI_ERS_RESULT_NEED_RESET;
}

/*
 * After a fatal error the link was reset, and the function with it. After others the core asks
 * for a reset that it does not make, and the device may be running as it was.
 */
static pci_ers_result_t revive_after_reset(struct pci_dev *pci)
{
	struct embeng_device *ed = pci_get_drvdata(pci);

	guard(rwsem_write)(&ed->reset_lock);
	if (embeng_gone(ed))
		return PCI_ERS_RESULT_DISCONNECT;
	WRITE_ONCE(ed->resetting, true);
	/* Pairs with may_show_bars(): no program is shown a doorbell in between. */
	smp_store_release(&ed->offline, false);
	embeng_reset_found(ed, &bus);
	return embeng_gone(ed) ? PCI_ERS_RESULT_DISCONNECT : PCI_ERS_RESULT_RECOVERED;
}

static void resume_watchdog(struct pci_dev *pci)
{
	embeng_watchdog_start(pci_get_drvdata(pci));
}

const struct pci_error_handlers embeng_error_handlers = {
	.error_detected = handle_bus_error,
	.mmio_enabled = judge_after_error,
	.slot_reset = revive_after_reset,
	.resume = resume_watchdog,
	.reset_prepare = prepare_function_reset,
	.reset_done = finish_function_reset,
};
