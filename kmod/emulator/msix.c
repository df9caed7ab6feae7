// SPDX-License-Identifier: GPL-2.0-only
/*
 * MSI-X from an interrupt domain of our own. A message is its vector's number:
 * raising one queues hard irq_work, which runs the driver's handler in the
 * context that a processor would run it in. The vector table is memory that is
 * written without our notice: a pending vector is delivered when the kernel
 * unmasks it through our irq_chip, or when the service thread sees it unmasked.
 */
#include <linux/irq.h>
#include <linux/irqdomain.h>

#include "emu.h"

#define MSI_ADDRESS 0xfee00000
#define MESSAGE_MASK 0x7ff /* of hwirq: the entry of the table */

static u32 *entry_word(struct emu_msix *msix, u32 vector, u32 offset)
{
	return (u32 *)((u8 *)msix->table + vector * PCI_MSIX_ENTRY_SIZE + offset);
}

static bool is_masked(struct emu *emu, u32 vector)
{
	return emu_config_msix_masked(emu) ||
	       READ_ONCE(*entry_word(&emu->msix, vector, PCI_MSIX_ENTRY_VECTOR_CTRL)) &
		       PCI_MSIX_ENTRY_CTRL_MASKBIT;
}

static void deliver(struct irq_work *work)
{
	struct emu_vector *vector = container_of(work, struct emu_vector, work);
	struct emu_msix *msix = vector->msix;
	u32 message = READ_ONCE(*entry_word(msix, vector->index, PCI_MSIX_ENTRY_DATA));
	u32 virq = message < EMU_VECTORS_MAX ? READ_ONCE(msix->virq[message]) : 0;

	if (!virq)
		return;
	generic_handle_irq(virq);
	if (vector->repeats) {
		vector->repeats--;
		irq_work_queue(work);
	}
}

/**
 * emu_msix_raise() - the device's interrupt, from any context
 * @emu: the device
 * @vector: entry of its table
 * @repeats: times that it comes again without a cause
 *
 * A masked vector becomes pending; with MSI-X off it is lost, as on any function
 * without INTx.
 */
void emu_msix_raise(struct emu *emu, u32 vector, u32 repeats)
{
	struct emu_msix *msix = &emu->msix;

	if (vector >= emu->options.vectors || !emu_config_msix_enabled(emu))
		return;
	guard(emu_lock)(&msix->lock);
	if (is_masked(emu, vector)) {
		WRITE_ONCE(*msix->pending, *msix->pending | BIT(vector));
		return;
	}
	msix->vectors[vector].repeats = repeats;
	irq_work_queue(&msix->vectors[vector].work);
}

/* Delivers what is pending and masked no more. */
void emu_msix_replay(struct emu *emu)
{
	struct emu_msix *msix = &emu->msix;
	unsigned long pending;
	u32 vector;

	if (!READ_ONCE(*msix->pending) || !emu_config_msix_enabled(emu))
		return;
	guard(emu_lock)(&msix->lock);
	pending = *msix->pending;
	for_each_set_bit(vector, &pending, emu->options.vectors) {
		if (is_masked(emu, vector))
			continue;
		WRITE_ONCE(*msix->pending, *msix->pending & ~BIT(vector));
		irq_work_queue(&msix->vectors[vector].work);
	}
}

static void compose(struct irq_data *data, struct msi_msg *msg)
{
	struct emu *emu = irq_data_get_irq_chip_data(data);
	u32 message = data->hwirq & MESSAGE_MASK;

	if (message < EMU_VECTORS_MAX)
		WRITE_ONCE(emu->msix.virq[message], data->irq);
	msg->address_hi = 0;
	msg->address_lo = MSI_ADDRESS;
	msg->data = message;
}

static void unmask(struct irq_data *data)
{
	pci_msi_unmask_irq(data);
	emu_msix_replay(irq_data_get_irq_chip_data(data));
}

/* Nothing to acknowledge, but the flow handler calls it. */
static void ack(struct irq_data *data)
{
}

static struct irq_chip chip = {
	.name = "EMBENG-MSIX",
	.irq_compose_msi_msg = compose,
	.irq_ack = ack,
	.irq_mask = pci_msi_mask_irq,
	.irq_unmask = unmask,
};

static void forget(struct irq_domain *domain, struct msi_domain_info *info, unsigned int virq)
{
	struct emu *emu = info->chip_data;
	u32 i;

	for (i = 0; i < EMU_VECTORS_MAX; i++) {
		if (emu->msix.virq[i] == virq)
			WRITE_ONCE(emu->msix.virq[i], 0);
		irq_work_sync(&emu->msix.vectors[i].work);
	}
}

static struct msi_domain_ops domain_ops = { .msi_free = forget };

static int make_domain(struct emu *emu)
{
	struct emu_msix *msix = &emu->msix;

	msix->info = (struct msi_domain_info){
		.flags = MSI_FLAG_USE_DEF_DOM_OPS | MSI_FLAG_USE_DEF_CHIP_OPS |
			 MSI_FLAG_NO_AFFINITY | MSI_FLAG_PCI_MSIX,
		.ops = &domain_ops,
		.chip = &chip,
		.chip_data = emu,
		.handler = handle_edge_irq,
		.handler_name = "edge",
	};
	msix->fwnode = irq_domain_alloc_named_id_fwnode("EMBENG-MSIX", emu->number);
	if (!msix->fwnode)
		return -ENOMEM;
	msix->domain = pci_msi_create_irq_domain(msix->fwnode, &msix->info, NULL);
	if (!msix->domain) {
		irq_domain_free_fwnode(msix->fwnode);
		return -ENOMEM;
	}
	/* Not the bus token of PCI: that would be taken for the platform's own domain. */
	irq_domain_update_bus_token(msix->domain, DOMAIN_BUS_VMD_MSI);
	return 0;
}

/* All masked, none pending, as after a reset. */
void emu_msix_reset(struct emu *emu)
{
	struct emu_msix *msix = &emu->msix;
	u32 i;

	guard(emu_lock)(&msix->lock);
	for (i = 0; i < EMU_VECTORS_MAX; i++)
		WRITE_ONCE(*entry_word(msix, i, PCI_MSIX_ENTRY_VECTOR_CTRL),
			   PCI_MSIX_ENTRY_CTRL_MASKBIT);
	WRITE_ONCE(*msix->pending, 0);
}

int emu_msix_init(struct emu *emu)
{
	struct emu_msix *msix = &emu->msix;
	u32 i;

	raw_spin_lock_init(&msix->lock);
	msix->table = emu_bar(emu, EMBENG_BAR_MSIX);
	msix->pending = (u32 *)((u8 *)msix->table + EMU_MSIX_PENDING_OFFSET);
	for (i = 0; i < EMU_VECTORS_MAX; i++) {
		msix->vectors[i].msix = msix;
		msix->vectors[i].index = i;
		msix->vectors[i].work = IRQ_WORK_INIT_HARD(deliver);
	}
	emu_msix_reset(emu);
	return make_domain(emu);
}

void emu_msix_exit(struct emu *emu)
{
	u32 i;

	for (i = 0; i < EMU_VECTORS_MAX; i++)
		irq_work_sync(&emu->msix.vectors[i].work);
	irq_domain_remove(emu->msix.domain);
	irq_domain_free_fwnode(emu->msix.fwnode);
}
