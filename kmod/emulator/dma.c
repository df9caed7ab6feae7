// SPDX-License-Identifier: GPL-2.0-only
/* engine/port.h in the kernel: memory by DMA address, which is the physical one. */
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "emu.h"

/* A function that is no bus master reaches nothing; none reaches what is not RAM. */
static bool is_reachable(struct emu *emu, const struct embeng_segment *s)
{
	return s->length && s->address + s->length > s->address && emu_config_bus_master(emu) &&
	       region_intersects(s->address, s->length, IORESOURCE_SYSTEM_RAM, IORES_DESC_NONE) ==
		       REGION_INTERSECTS;
}

/* Segments make one view only where they meet at page boundaries. */
static bool check_segments(struct emu *emu, const struct embeng_segment *s, u32 count, u64 length,
			   bool *contiguous)
{
	u64 whole = 0;
	u32 i;

	*contiguous = true;
	for (i = 0; i < count; i++) {
		if (!is_reachable(emu, &s[i]) || check_add_overflow(whole, s[i].length, &whole))
			return false;
		if (!i)
			continue;
		if (offset_in_page(s[i].address) ||
		    offset_in_page(s[i - 1].address + s[i - 1].length))
			return false;
		if (s[i].address != s[i - 1].address + s[i - 1].length)
			*contiguous = false;
	}
	return count && length && whole >= length;
}

static u64 pages_of(const struct embeng_segment *s)
{
	return PFN_UP(s->address + s->length) - PFN_DOWN(s->address);
}

static void *map_pages(const struct embeng_segment *s, u32 count)
{
	u64 total = 0, n = 0, pfn;
	struct page **pages;
	void *view;
	u32 i;

	for (i = 0; i < count; i++)
		total += pages_of(&s[i]);
	pages = kvmalloc_array(total, sizeof(*pages), GFP_KERNEL | __GFP_NOWARN);
	if (!pages)
		return NULL;
	for (i = 0; i < count; i++) {
		for (pfn = PFN_DOWN(s[i].address); pfn < PFN_UP(s[i].address + s[i].length); pfn++)
			pages[n++] = pfn_to_page(pfn);
	}
	view = vmap(pages, n, VM_MAP, PAGE_KERNEL);
	kvfree(pages);
	return view ? view + offset_in_page(s->address) : NULL;
}

void *port_dma_map(void *host, const struct embeng_segment *segments, u32 count, u64 length)
{
	bool contiguous;

	if (!check_segments(host, segments, count, length, &contiguous))
		return NULL;
	return contiguous ? phys_to_virt(segments[0].address) : map_pages(segments, count);
}

void port_dma_unmap(void *host, void *view, u64 length)
{
	if (is_vmalloc_addr(view))
		vunmap((void *)((unsigned long)view & PAGE_MASK));
}
