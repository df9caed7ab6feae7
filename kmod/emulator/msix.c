// SPDX-License-Identifier: GPL-2.0-only
/*
 * MSI-X from an interrupt domain of the emulator's own. The number of a vector is the data of its
 * message. Raising it queues hard irq_work, which runs the driver's handler in the context in
 * which a processor would run it.
 *
 * The vector table is memory that the kernel writes without the emulator's notice. So a pending
 * vector is delivered when the kernel unmasks it through the chip of the function's domain, or
 * when the service thread sees it unmasked. msix.lock, a raw spinlock, orders raising with
 * unmasking. The domain lives as long as the device; freeing an interrupt waits for one that is on
 * its way.
 */
#include <linux/irq.h>
#include <linux/irqdomain.h>

#include "emu.h"

#define MSI_ADDRESS 0xfee00000

static u32 *find_entry_word(struct emu_msix *msix, u32 vector, u32 offset)
{
	return (u32 *)((u8 *)msix->table + vector * PCI_MSIX_ENTRY_SIZE + offset);
}

static bool is_vector_masked(struct emu *emu, u32 vector)
{
	return emu_config_msix_masked(emu) ||
	       READ_ONCE(*find_entry_word(&emu->msix, vector, PCI_MSIX_ENTRY_VECTOR_CTRL)) &
		       PCI_MSIX_ENTRY_CTRL_MASKBIT;
}

static void deliver_vector(struct irq_work *work)
{
	struct emu_vector *vector = container_of(work, struct emu_vector, work);
	struct emu_msix *msix = vector->msix;
	u32 message = READ_ONCE(*find_entry_word(msix, vector->index, PCI_MSIX_ENTRY_DATA));
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
 * emu_msix_raise() - raise an interrupt of the device, in any context
 * @emu: the device
 * @vector: index in the vector table
 * @repeats: how many times the interrupt comes again without a cause
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
	if (is_vector_masked(emu, vector)) {
		WRITE_ONCE(*msix->pending, *msix->pending | BIT(vector));
		return;
	}
	msix->vectors[vector].repeats = repeats;
	irq_work_queue(&msix->vectors[vector].work);
}

/* Delivers pending vectors that are not masked any more. */
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
		if (is_vector_masked(emu, vector))
			continue;
		WRITE_ONCE(*msix->pending, *msix->pending & ~BIT(vector));
		irq_work_queue(&msix->vectors[vector].work);
	}
}

static void compose_message(struct irq_data *data, struct msi_msg *msg)
{
	msg->address_hi = 0;
	msg->address_lo = MSI_ADDRESS;
	msg->data = data->hwirq;
}

/* A raised vector needs no acknowledgment, but the edge handler asks the chip for one. */
static void ignore_ack(struct irq_data *data)
{
}

static struct irq_chip chip = {
	.name = "EMBENG",
	.irq_compose_msi_msg = compose_message,
	.irq_ack = ignore_ack,
};

static int alloc_irqs(struct irq_domain *domain, unsigned int virq, unsigned int count, void *arg)
{
	const msi_alloc_info_t *info = arg;
	struct emu *emu = domain->host_data;
	u32 first = info->desc->msi_index, i;

	if (first >= EMU_VECTORS_MAX || count > EMU_VECTORS_MAX - first)
		return -ENOSPC;
	for (i = 0; i < count; i++) {
		irq_domain_set_info(domain, virq + i, first + i, &chip, emu, handle_edge_irq, NULL,
				    NULL);
		WRITE_ONCE(emu->msix.virq[first + i], virq + i);
	}
	return 0;
}

/* Waits for interrupts that are on their way, before their numbers are used again. */
static void free_irqs(struct irq_domain *domain, unsigned int virq, unsigned int count)
{
	struct emu *emu = domain->host_data;
	u32 i;

	for (i = 0; i < count; i++) {
		struct irq_data *data = irq_domain_get_irq_data(domain, virq + i);

		WRITE_ONCE(emu->msix.virq[data->hwirq], 0);
		irq_domain_reset_irq_data(data);
	}
	for (i = 0; i < EMU_VECTORS_MAX; i++)
		irq_work_sync(&emu->msix.vectors[i].work);
}

static const struct irq_domain_ops domain_ops = {
	.alloc = alloc_irqs,
	.free = free_irqs,
};

static void unmask_vector(struct irq_data *data)
{
	pci_msi_unmask_irq(data);
	emu_msix_replay(irq_data_get_irq_chip_data(data->parent_data));
}

#define REQUIRED_FLAGS \
	(MSI_FLAG_USE_DEF_DOM_OPS | MSI_FLAG_USE_DEF_CHIP_OPS | MSI_FLAG_NO_AFFINITY)

/*
 * The kernel makes a domain for the function's MSI-X table, with the emulator's domain as parent.
 * An interrupt is started by its unmask too, so that what was pending is delivered then.
 */
static bool init_function_domain(struct device *dev, struct irq_domain *domain,
				 struct irq_domain *parent, struct msi_domain_info *info)
{
	if (info->bus_token != DOMAIN_BUS_PCI_DEVICE_MSIX)
		return false;
	info->flags &= parent->msi_parent_ops->supported_flags;
	info->flags |= REQUIRED_FLAGS;
	info->chip->irq_ack = irq_chip_ack_parent;
	info->chip->irq_unmask = unmask_vector;
	info->chip->irq_startup = NULL;
	info->chip->irq_shutdown = NULL;
	return true;
}

static const struct msi_parent_ops parent_ops = {
	.supported_flags = MSI_GENERIC_FLAGS_MASK | MSI_FLAG_PCI_MSIX,
	.required_flags = REQUIRED_FLAGS,
	.prefix = "EMBENG-",
	.init_dev_msi_info = init_function_domain,
};

static int make_msix_domain(struct emu *emu)
{
	struct irq_domain_info info = {
		.fwnode = irq_domain_alloc_named_id_fwnode("EMBENG-MSIX", emu->number),
		.domain_flags = IRQ_DOMAIN_FLAG_MSI_PARENT,
		.size = EMU_VECTORS_MAX,
		.hwirq_max = EMU_VECTORS_MAX,
		/* With the bus token of PCI it would be taken for the platform's own domain. */
		.bus_token = DOMAIN_BUS_VMD_MSI,
		.ops = &domain_ops,
		.host_data = emu,
	};
	struct irq_domain *domain;

	if (!info.fwnode)
		return -ENOMEM;
	domain = irq_domain_instantiate(&info);
	if (IS_ERR(domain)) {
		irq_domain_free_fwnode(info.fwnode);
		return PTR_ERR(domain);
	}
	domain->msi_parent_ops = &parent_ops;
	emu->msix.domain = domain;
	return 0;
}

/* Masks all vectors and clears the pending bits. */
void emu_msix_reset(struct emu *emu)
{
	struct emu_msix *msix = &emu->msix;
	u32 i;

	guard(emu_lock)(&msix->lock);
	for (i = 0; i < EMU_VECTORS_MAX; i++)
		WRITE_ONCE(*find_entry_word(msix, i, PCI_MSIX_ENTRY_VECTOR_CTRL),
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
		msix->vectors[i].work = IRQ_WORK_INIT_HARD(deliver_vector);
	}
	emu_msix_reset(emu);
	return make_msix_domain(emu);
}

void emu_msix_exit(struct emu *emu)
{
	struct fwnode_handle *fwnode;
	u32 i;

	for (i = 0; i < EMU_VECTORS_MAX; i++)
		irq_work_sync(&emu->msix.vectors[i].work);
	fwnode = emu->msix.domain->fwnode;
	irq_domain_remove(emu->msix.domain);
	irq_domain_free_fwnode(fwnode);
}
