// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupt vectors (MSI-X): vector 0 serves the admin queue and device faults, the others are
 * shared by the queues. This file allocates them at probe and passes each interrupt on; what an
 * interrupt means to a queue is in queue_irq.c.
 *
 * The array of vectors belongs to the DRM device, since files that stay open longer than the
 * function is bound still take the locks in it. When the driver lets go, interrupts are freed
 * first, then the watchdog is stopped, which an interrupt may have started, and then the vectors
 * are freed. A handler runs in hard interrupt context and takes admin.lock and vector->lock, one
 * after the other.
 */
#include <linux/cleanup.h>
#include <linux/interrupt.h>

#include <drm/drm_managed.h>

#include "context.h"

static irqreturn_t handle_interrupt(int irq, void *arg)
{
	struct embeng_vector *vector = arg;

	if (!vector->index) {
		embeng_admin_poll(vector->device);
		embeng_watchdog_interrupt(vector->device);
	}
	embeng_queue_irq_handle(vector);
	return IRQ_HANDLED;
}

static int request_vector(struct embeng_device *ed, u32 index)
{
	struct embeng_vector *vector = &ed->vectors[index];
	struct device *dev = &ed->pci->dev;
	const char *name = devm_kasprintf(dev, GFP_KERNEL, EMBENG_NAME "-%s-%u", dev_name(dev),
					  index);

	if (!name)
		return -ENOMEM;
	vector->device = ed;
	vector->index = index;
	vector->irq = pci_irq_vector(ed->pci, index);
	spin_lock_init(&vector->lock);
	INIT_LIST_HEAD(&vector->queues);
	if (vector->irq < 0)
		return vector->irq;
	return devm_request_irq(dev, vector->irq, handle_interrupt, 0, name, vector);
}

/* Interrupts were freed already. Work that one has begun ends here, while registers are mapped. */
static void free_vectors(void *arg)
{
	struct embeng_device *ed = arg;

	embeng_watchdog_stop(ed);
	pci_free_irq_vectors(ed->pci);
}

/**
 * embeng_irq_init() - allocate as many interrupt vectors as are of use
 * @ed: device
 *
 * Return: 0 or a negative errno, which was reported.
 */
int embeng_irq_init(struct embeng_device *ed)
{
	struct device *dev = &ed->pci->dev;
	int count, ret;
	u32 i;

	count = pci_alloc_irq_vectors(ed->pci, 1, num_online_cpus() + 1, PCI_IRQ_MSIX);
	if (count < 0)
		return dev_err_probe(dev, count, "no interrupt vectors\n");
	ret = devm_add_action_or_reset(dev, free_vectors, ed);
	if (ret)
		return ret;
	/* Files may stay open longer than the function is bound, and take the locks in it. */
	ed->vectors = drmm_kcalloc(&ed->drm, count, sizeof(*ed->vectors), GFP_KERNEL);
	if (!ed->vectors)
		return -ENOMEM;
	ed->vector_count = count;
	for (i = 0; i < ed->vector_count; i++) {
		ret = request_vector(ed, i);
		if (ret)
			return dev_err_probe(dev, ret, "cannot use interrupt vector %u\n", i);
	}
	return 0;
}
