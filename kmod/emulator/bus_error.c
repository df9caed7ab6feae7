// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recovery from bus errors, in the part of the PCI core. The emulated function has no port above
 * it that could report an error, so the file bus_error in debugfs stands for it: an error that is
 * written there happens, with the calls to the driver that the kernel's pci-error-recovery
 * document names, and reading the file says how the last one ended.
 *
 * A recovery runs in the context of the writer and holds the lock of the PCI device, as the core
 * does. debugfs waits for writers when the file is removed, which happens before the function
 * goes.
 */
#include <linux/cleanup.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/string_helpers.h>
#include <linux/uaccess.h>

#include "emu.h"

struct error {
	const char *name;
	pci_channel_state_t state;
	bool abandoned; /* another function below the port cannot be recovered */
};

static const struct error errors[] = {
	{ "nonfatal", pci_channel_io_normal },
	{ "fatal", pci_channel_io_frozen },
	{ "abandoned", pci_channel_io_frozen, true },
	{ "permanent", pci_channel_io_perm_failure },
};

/* Waits until the function reaches no memory that it was given before. */
static void cut_off_engine(struct emu *emu)
{
	emu_serve_reset(emu, true);
	/* Pairs with power_cycle_engine() and end_absence(). */
	while (smp_load_acquire(&emu->absent))
		msleep(20);
}

/* Resets the link, and with it the function behind it. */
static void reset_link(struct emu *emu)
{
	emu_config_reset(emu);
	cut_off_engine(emu);
}

/* As the core does, the link is reset after fatal errors only, whatever the driver asks for. */
static pci_ers_result_t recover_function(struct emu *emu, struct pci_dev *pci,
					 const struct pci_error_handlers *handlers,
					 const struct error *error)
{
	pci_ers_result_t result;

	pci->error_state = error->state;
	if (error->state == pci_channel_io_perm_failure)
		cut_off_engine(emu);
	result = handlers->error_detected(pci, error->state);
	if (error->abandoned)
		return PCI_ERS_RESULT_DISCONNECT;
	if (result == PCI_ERS_RESULT_CAN_RECOVER)
		result = handlers->mmio_enabled(pci);
	if (result == PCI_ERS_RESULT_NEED_RESET) {
		if (error->state == pci_channel_io_frozen)
			reset_link(emu);
		pci->error_state = pci_channel_io_normal;
		result = handlers->slot_reset(pci);
	}
	if (result == PCI_ERS_RESULT_RECOVERED) {
		pci->error_state = pci_channel_io_normal;
		handlers->resume(pci);
	}
	return result;
}

static int meet_bus_error(struct emu *emu, const struct error *error)
{
	struct pci_dev *pci = pci_get_slot(emu->bridge->bus, PCI_DEVFN(0, 0));
	int ret = -ENODEV;

	if (!pci)
		return ret;
	device_lock(&pci->dev);
	if (pci->driver && pci->driver->err_handler &&
	    pci->driver->err_handler->error_detected) {
		emu->bus_error = recover_function(emu, pci, pci->driver->err_handler, error);
		ret = 0;
	}
	device_unlock(&pci->dev);
	pci_dev_put(pci);
	return ret;
}

static ssize_t write_bus_error(struct file *file, const char __user *buffer, size_t count,
			       loff_t *at)
{
	struct emu *emu = file->private_data;
	char word[16] = "";
	int ret, i;

	if (copy_from_user(word, buffer, min(count, sizeof(word) - 1)))
		return -EFAULT;
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		if (!sysfs_streq(word, errors[i].name))
			continue;
		ret = meet_bus_error(emu, &errors[i]);
		return ret ?: count;
	}
	return -EINVAL;
}

static ssize_t read_bus_error(struct file *file, char __user *buffer, size_t count, loff_t *at)
{
	struct emu *emu = file->private_data;
	const char *word = "none\n";

	if (emu->bus_error == PCI_ERS_RESULT_RECOVERED)
		word = "recovered\n";
	else if (emu->bus_error)
		word = "disconnected\n";
	return simple_read_from_buffer(buffer, count, at, word, strlen(word));
}

static const struct file_operations fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = read_bus_error,
	.write = write_bus_error,
};

/**
 * emu_bus_error_add() - make the file bus_error in debugfs
 * @emu: the device, whose function has appeared
 */
void emu_bus_error_add(struct emu *emu)
{
	debugfs_create_file("bus_error", 0600, emu->debugfs, emu, &fops);
}

/**
 * emu_bus_error_remove() - remove the file bus_error, after the end of a recovery that it began
 * @emu: the device, whose function is still there
 */
void emu_bus_error_remove(struct emu *emu)
{
	debugfs_lookup_and_remove("bus_error", emu->debugfs);
}
