// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions that the driver did not take, and why, in a file of the driver: once a probe has failed
 * there is no node that a program could ask, and the kernel's log is not for everybody.
 *
 * The list belongs to the module and is guarded by a lock of its own, in which nothing else is
 * taken. It has a line for each address, the newest refusals are kept.
 */
#include <linux/cleanup.h>
#include <linux/mutex.h>
#include <linux/sysfs.h>

#include "driver.h"
#include "refusals.h"

/* Lines of a page, which is all that sysfs shows of a file. */
#define REFUSALS 16u
#define TEXT_BYTES 192u

struct refusal {
	char address[32]; /* "": free */
	char text[TEXT_BYTES];
};

static_assert(REFUSALS * sizeof(struct refusal) <= 4096);

static DEFINE_MUTEX(lock);
static struct refusal refusals[REFUSALS];
static u32 newest;

/* Under the lock. The entry of an address, or NULL. */
static struct refusal *find_refusal(const char *address)
{
	u32 i;

	for (i = 0; i < REFUSALS; i++) {
		if (!strcmp(refusals[i].address, address))
			return &refusals[i];
	}
	return NULL;
}

/* The image has a name from when the probe comes to the firmware. */
static void describe_refusal(const struct embeng_device *ed, int error, char *text)
{
	if (!ed)
		snprintf(text, TEXT_BYTES, "device %d: no memory", error);
	else if (ed->refused.error)
		snprintf(text, TEXT_BYTES, "firmware %d: refused: %s", error,
			 embeng_refusal_text(&ed->refused).text);
	else if (ed->image.name && !ed->image.data && error != -EBADMSG && error != -ENOMEM)
		snprintf(text, TEXT_BYTES, "firmware %d: /lib/firmware/%s cannot be read", error,
			 EMBENG_FIRMWARE);
	else
		snprintf(text, TEXT_BYTES, "%s %d: the kernel's log says why",
			 ed->image.name ? "firmware" : "device", error);
}

/**
 * embeng_refusals_note() - note how a probe ended
 * @pci: function
 * @error: negative errno of the probe, or 0 if the function was taken
 *
 * Called in probe, while the device structure of a failed one is still there.
 */
void embeng_refusals_note(struct pci_dev *pci, int error)
{
	struct refusal *refusal;

	guard(mutex)(&lock);
	refusal = find_refusal(pci_name(pci));
	if (refusal)
		*refusal = (struct refusal){};
	if (!error || error == -EPROBE_DEFER)
		return;
	/* The oldest entry makes room. */
	newest = (newest + 1) % REFUSALS;
	refusal = &refusals[newest];
	strscpy(refusal->address, pci_name(pci));
	describe_refusal(pci_get_drvdata(pci), error, refusal->text);
}

static ssize_t refusals_show(struct device_driver *driver, char *buf)
{
	int length = 0;
	u32 i;

	guard(mutex)(&lock);
	for (i = 0; i < REFUSALS; i++) {
		if (*refusals[i].address)
			length += sysfs_emit_at(buf, length, "%s %s\n", refusals[i].address,
						refusals[i].text);
	}
	return length;
}
static DRIVER_ATTR_RO(refusals);

static struct attribute *attributes[] = {
	&driver_attr_refusals.attr,
	NULL
};

static const struct attribute_group group = { .attrs = attributes };

const struct attribute_group *embeng_refusals_groups[] = {
	&group,
	NULL
};
