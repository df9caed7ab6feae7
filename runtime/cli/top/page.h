/* SPDX-License-Identifier: MIT */
/* The pages of `embeng top`: all devices with all contexts, and one context. */
#ifndef CLI_TOP_PAGE_H
#define CLI_TOP_PAGE_H

#include <string.h>

#include "lines.h"
#include "order.h"
#include "rates.h"

/**
 * struct page - how to make a page
 * @width: columns that a line may have; 0: any number
 * @order: order of the contexts, which are sorted already
 * @device: address of the one device to show; NULL: all
 */
struct page {
	int width;
	enum order order;
	const char *device;
};

/* True if the page shows the device with this address. */
static inline bool page_shows(const struct page *page, const char *address)
{
	return !page->device || !strcmp(page->device, address);
}

void page_overview(const struct page *page, const struct rates *rates, struct lines *lines);

/* page_devices.c: the tables of devices, of their stalls, and of their errors. */
void page_devices(const struct page *page, const struct rates *rates, struct lines *lines);

/* page_hot.c: the hottest tables of a context; and of all contexts that were looked into. */
void page_hot(const struct page *page, const struct hot_look *look, struct lines *lines);
void page_hot_contexts(const struct page *page, const struct rates *rates, struct lines *lines);

/* The page of one context; @index: its place in @rates->contexts. */
void page_context(const struct page *page, const struct rates *rates, size_t index,
		  struct lines *lines);

/* True if the driver lists @queue as one of this context's. */
bool page_queue_is_of(const struct sample_queue *queue, const struct sample_context *context);

/* A state for a column: "running", or why the device does not work. */
const char *page_device_state(const struct sample_device *device, char cell[CELL_BYTES]);

#endif
