// SPDX-License-Identifier: GPL-2.0-only
/* Function-level resets that others ask for: sysfs, or who assigns the function. */
#include "context.h"

/* Held until it is done: nobody talks to the device, nothing is freed under it. */
static void reset_prepare(struct pci_dev *pci)
{
	struct embeng_device *ed = pci_get_drvdata(pci);

	down_write(&ed->reset_lock);
	embeng_reset_before(ed);
}

static void reset_done(struct pci_dev *pci)
{
	struct embeng_device *ed = pci_get_drvdata(pci);

	if (!embeng_gone(ed)) {
		ed->resets.functions++;
		embeng_reset_after(ed, embeng_boot(ed));
	}
	up_write(&ed->reset_lock);
}

const struct pci_error_handlers embeng_error_handlers = {
	.reset_prepare = reset_prepare,
	.reset_done = reset_done,
};
