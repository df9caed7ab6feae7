/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions that the driver did not take, and why. */
#ifndef EMBENG_REFUSALS_H
#define EMBENG_REFUSALS_H

struct attribute_group;
struct pci_dev;

extern const struct attribute_group *embeng_refusals_groups[];

void embeng_refusals_note(struct pci_dev *pci, int error);

#endif
