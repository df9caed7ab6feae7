// SPDX-License-Identifier: GPL-2.0-only
/*
 * The part of engine/port.h that reaches memory by DMA address: segments that a driver named are
 * turned into one view that the engine can read and write.
 *
 * Without the emulator's IOMMU a DMA address is a physical one. Either way the function must be
 * bus master, and the memory must be RAM. A view stays until port_dma_unmap(). With the IOMMU its
 * pages are counted in iommu.c meanwhile, so that memory which is unmapped under the device is
 * noticed. The functions here run on the threads of the engine, may sleep, and take no lock of
 * their own.
 */
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "emu.h"

/* A function that is not bus master reaches no memory, and only RAM is ever reached. */
static bool resolve_segment(struct emu *emu, struct embeng_segment *s)
{
	u64 end;

	return s->length && !check_add_overflow(s->address, s->length, &end) &&
	       emu_config_bus_master(emu) && emu_iommu_translate(emu, &s->address, s->length) &&
	       region_intersects(s->address, s->length, IORESOURCE_SYSTEM_RAM, IORES_DESC_NONE) ==
		       REGION_INTERSECTS;
}

/* Segments make one view only where they meet at page boundaries. */
static bool do_segments_meet(const struct embeng_segment *a, const struct embeng_segment *b)
{
	return PAGE_ALIGNED(a->address + a->length) && PAGE_ALIGNED(b->address);
}

/*
 * Cuts off all beyond @length. Return: number of segments that are left, 0 if they make no view
 * of that length.
 */
static u32 resolve_segments(struct emu *emu, struct embeng_segment *s, u32 count, u64 length)
{
	u32 i;

	for (i = 0; i < count; i++) {
		if (!resolve_segment(emu, &s[i]) || (i && !do_segments_meet(&s[i - 1], &s[i])))
			return 0;
		if (s[i].length >= length) {
			s[i].length = length;
			return i + 1;
		}
		length -= s[i].length;
	}
	return 0;
}

static u64 count_segment_pages(const struct embeng_segment *s)
{
	return PFN_UP(s->address + s->length) - PFN_DOWN(s->address);
}

static void *map_segment_pages(const struct embeng_segment *s, u32 count)
{
	struct page **pages __free(kvfree) = NULL;
	u64 total = 0, n = 0, pfn;
	void *view;
	u32 i;

	for (i = 0; i < count; i++)
		total += count_segment_pages(&s[i]);
	pages = kvmalloc_array(total, sizeof(*pages), GFP_KERNEL | __GFP_NOWARN);
	if (!pages)
		return NULL;
	for (i = 0; i < count; i++) {
		for (pfn = PFN_DOWN(s[i].address); pfn < PFN_UP(s[i].address + s[i].length); pfn++)
			pages[n++] = pfn_to_page(pfn);
	}
	view = vmap(pages, n, VM_MAP, PAGE_KERNEL);
	return view ? view + offset_in_page(s->address) : NULL;
}

static void let_go_of_segments(struct emu *emu, const struct embeng_segment *s, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++)
		emu_iommu_let_go(emu, s[i].address, s[i].length);
}

static void *hold_and_map_segments(struct emu *emu, const struct embeng_segment *s, u32 count)
{
	void *view;
	u32 i;

	for (i = 0; i < count; i++) {
		if (emu_iommu_hold(emu, s[i].address, s[i].length)) {
			let_go_of_segments(emu, s, i);
			return NULL;
		}
	}
	view = count == 1 ? phys_to_virt(s->address) : map_segment_pages(s, count);
	if (!view)
		let_go_of_segments(emu, s, count);
	return view;
}

void *port_dma_map(void *host, const struct embeng_segment *segments, u32 count, u64 length)
{
	struct embeng_segment *copy __free(kvfree) = NULL;

	if (!count || !length || emu_fault(host, EMU_FAULT_REFUSE_MAPPING, 0))
		return NULL;
	copy = kvmemdup(segments, array_size(count, sizeof(*copy)), GFP_KERNEL);
	if (!copy)
		return NULL;
	count = resolve_segments(host, copy, count, length);
	return count ? hold_and_map_segments(host, copy, count) : NULL;
}

static phys_addr_t find_phys_address(void *p)
{
	if (is_vmalloc_addr(p))
		return PFN_PHYS(vmalloc_to_pfn(p)) + offset_in_page(p);
	return virt_to_phys(p);
}

void port_dma_unmap(void *host, void *view, u64 length)
{
	struct emu *emu = host;
	u64 done, piece;

	for (done = 0; emu->options.iommu && done < length; done += piece) {
		piece = min(PAGE_SIZE - offset_in_page(view + done), length - done);
		emu_iommu_let_go(emu, find_phys_address(view + done), piece);
	}
	if (is_vmalloc_addr(view))
		vunmap((void *)((unsigned long)view & PAGE_MASK));
}
