// SPDX-License-Identifier: GPL-2.0-only
/*
 * An IOMMU in front of the function (iommu=1): DMA addresses differ from physical ones, and the
 * device reaches only what the driver has mapped. Mappings are kept by page, as hardware would.
 * Views that the device has of a page are counted too, so that memory which is unmapped while the
 * device could still use it is reported.
 *
 * The table is an xarray of the device, a number for each page, under the lock of that xarray,
 * which interrupts may take. The DMA operations are the function's from when it appears until it
 * disappears (bridge.c); a late unmap finds no device and does nothing.
 */
#include <linux/dma-map-ops.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>

#include "../compat/v6.19_map_phys.h"
#include "emu.h"

#define IOVA_BASE BIT_ULL(45)
#define IOVA_MASK DMA_BIT_MASK(46)

/* An entry of the table: mappings of the page, and views that the device has of it. */
#define ONE_MAPPING 1ul
#define ONE_VIEW BIT(31)

static unsigned long count_mappings(unsigned long entry)
{
	return entry & (ONE_VIEW - 1);
}

static unsigned long load_page_entry(struct emu *emu, unsigned long pfn)
{
	void *entry = xa_load(&emu->pages, pfn);

	return entry ? xa_to_value(entry) : 0;
}

/* The driver may have unmapped a page since its address was resolved. */
static int add_page_use(struct emu *emu, unsigned long pfn, unsigned long what)
{
	unsigned long value = load_page_entry(emu, pfn) + what;

	if (!count_mappings(value))
		return -EFAULT;
	return xa_err(__xa_store(&emu->pages, pfn, xa_mk_value(value), GFP_ATOMIC));
}

/* The entry exists, so that storing another value in its place needs no memory. */
static unsigned long drop_page_use(struct emu *emu, unsigned long pfn, unsigned long what)
{
	unsigned long value = load_page_entry(emu, pfn) - what;

	if (value)
		__xa_store(&emu->pages, pfn, xa_mk_value(value), GFP_ATOMIC);
	else
		__xa_erase(&emu->pages, pfn);
	return value;
}

static int add_range_use(struct emu *emu, phys_addr_t start, size_t size, unsigned long what)
{
	unsigned long first = PFN_DOWN(start), pfn, flags;
	int ret = 0;

	xa_lock_irqsave(&emu->pages, flags);
	for (pfn = first; !ret && pfn < PFN_UP(start + size); pfn++)
		ret = add_page_use(emu, pfn, what);
	if (ret) {
		for (pfn--; pfn > first; pfn--)
			drop_page_use(emu, pfn - 1, what);
	}
	xa_unlock_irqrestore(&emu->pages, flags);
	return ret;
}

static void unmap_iova_range(struct emu *emu, dma_addr_t iova, size_t size)
{
	phys_addr_t start = iova & ~IOVA_BASE;
	unsigned long pfn, flags, held = 0;
	/* Without bus mastering the device reaches nothing through its views. */
	bool reaches = emu_config_bus_master(emu) || READ_ONCE(emu->on_bus);

	xa_lock_irqsave(&emu->pages, flags);
	for (pfn = PFN_DOWN(start); pfn < PFN_UP(start + size); pfn++) {
		unsigned long entry = drop_page_use(emu, pfn, ONE_MAPPING);

		if (reaches && entry && !count_mappings(entry))
			held++;
	}
	emu->unmapped_in_use += held;
	xa_unlock_irqrestore(&emu->pages, flags);
	if (held)
		dev_err_ratelimited(emu_dev(emu), "%lu pages at %pad unmapped under the device\n",
				    held, &iova);
}

static struct emu *find_emu(struct device *dev)
{
	return emu_of_bus(to_pci_dev(dev)->bus);
}

static dma_addr_t map_iova_range(struct emu *emu, phys_addr_t start, size_t size)
{
	if (!emu || start + size > IOVA_BASE || add_range_use(emu, start, size, ONE_MAPPING))
		return DMA_MAPPING_ERROR;
	return start | IOVA_BASE;
}

static dma_addr_t map_dma_phys(struct device *dev, phys_addr_t start, size_t size,
			       enum dma_data_direction dir, unsigned long attrs)
{
	return map_iova_range(find_emu(dev), start, size);
}

static void unmap_dma_phys(struct device *dev, dma_addr_t iova, size_t size,
			   enum dma_data_direction dir, unsigned long attrs)
{
	struct emu *emu = find_emu(dev);

	if (emu)
		unmap_iova_range(emu, iova, size);
}

static void unmap_dma_list(struct device *dev, struct scatterlist *list, int count,
			   enum dma_data_direction dir, unsigned long attrs)
{
	struct scatterlist *s;
	int i;

	for_each_sg(list, s, count, i)
		unmap_dma_phys(dev, sg_dma_address(s), sg_dma_len(s), dir, attrs);
}

static int map_dma_list(struct device *dev, struct scatterlist *list, int count,
			enum dma_data_direction dir, unsigned long attrs)
{
	struct emu *emu = find_emu(dev);
	struct scatterlist *s;
	int i;

	for_each_sg(list, s, count, i) {
		sg_dma_address(s) = map_iova_range(emu, sg_phys(s), s->length);
		if (sg_dma_address(s) == DMA_MAPPING_ERROR) {
			unmap_dma_list(dev, list, i, dir, attrs);
			return -ENOMEM;
		}
		sg_dma_len(s) = s->length;
	}
	return count;
}

static struct page *alloc_page_range(struct device *dev, size_t size, dma_addr_t *iova,
				     enum dma_data_direction dir, gfp_t gfp)
{
	struct page *page = alloc_pages(gfp | __GFP_ZERO, get_order(size));

	if (!page)
		return NULL;
	*iova = map_iova_range(find_emu(dev), page_to_phys(page), size);
	if (*iova == DMA_MAPPING_ERROR) {
		__free_pages(page, get_order(size));
		return NULL;
	}
	return page;
}

static void free_page_range(struct device *dev, size_t size, struct page *page, dma_addr_t iova,
			    enum dma_data_direction dir)
{
	unmap_dma_phys(dev, iova, size, dir, 0);
	__free_pages(page, get_order(size));
}

static void *alloc_coherent_memory(struct device *dev, size_t size, dma_addr_t *iova, gfp_t gfp,
				   unsigned long attrs)
{
	struct page *page = alloc_page_range(dev, size, iova, DMA_BIDIRECTIONAL, gfp);

	return page ? page_address(page) : NULL;
}

static void free_coherent_memory(struct device *dev, size_t size, void *memory, dma_addr_t iova,
				 unsigned long attrs)
{
	free_page_range(dev, size, virt_to_page(memory), iova, DMA_BIDIRECTIONAL);
}

static int map_to_user(struct device *dev, struct vm_area_struct *vma, void *memory,
		       dma_addr_t iova, size_t size, unsigned long attrs)
{
	unsigned long pages = PFN_UP(size), first = vma->vm_pgoff;

	if (first >= pages || vma_pages(vma) > pages - first)
		return -ENXIO;
	return remap_pfn_range(vma, vma->vm_start, page_to_pfn(virt_to_page(memory)) + first,
			       vma->vm_end - vma->vm_start, vma->vm_page_prot);
}

static int is_mask_supported(struct device *dev, u64 mask)
{
	return mask >= IOVA_MASK;
}

static u64 get_required_mask(struct device *dev)
{
	return IOVA_MASK;
}

EMBENG_DEFINE_MAP_PAGE(map_dma_phys)

static const struct dma_map_ops ops = {
	.alloc = alloc_coherent_memory,
	.free = free_coherent_memory,
	.alloc_pages_op = alloc_page_range,
	.free_pages = free_page_range,
	.mmap = map_to_user,
	EMBENG_MAP_PHYS_OPS(map_dma_phys, unmap_dma_phys),
	.map_sg = map_dma_list,
	.unmap_sg = unmap_dma_list,
	.dma_supported = is_mask_supported,
	.get_required_mask = get_required_mask,
};

/**
 * emu_iommu_attach() - put the IOMMU in front of the function, if the device has one
 * @emu: the device
 * @dev: its function
 */
void emu_iommu_attach(struct emu *emu, struct device *dev)
{
	if (emu->options.iommu)
		set_dma_ops(dev, &ops);
}

/* An unmap after the function is gone must not come here: the module may be gone as well. */
void emu_iommu_detach(struct device *dev)
{
	if (get_dma_ops(dev) == &ops)
		set_dma_ops(dev, NULL);
}

/**
 * emu_iommu_translate() - translate a range that the device uses to physical addresses
 * @emu: the device
 * @address: DMA address, replaced by the physical address
 * @length: bytes
 *
 * Return: false when any page of the range is not mapped.
 */
bool emu_iommu_translate(struct emu *emu, u64 *address, u64 length)
{
	u64 start = *address & ~IOVA_BASE, end, pfn;

	if (!emu->options.iommu)
		return true;
	if (!(*address & IOVA_BASE) || check_add_overflow(start, length, &end) || end > IOVA_BASE)
		return false;
	for (pfn = PFN_DOWN(start); pfn < PFN_UP(end); pfn++)
		if (!count_mappings(load_page_entry(emu, pfn)))
			return false;
	*address = start;
	return true;
}

/**
 * emu_iommu_hold() - count a view that the device gets of memory
 * @emu: the device
 * @start: physical address
 * @size: bytes
 *
 * Return: 0, -EFAULT when a page of it is not mapped any more, or -ENOMEM.
 */
int emu_iommu_hold(struct emu *emu, phys_addr_t start, size_t size)
{
	return emu->options.iommu ? add_range_use(emu, start, size, ONE_VIEW) : 0;
}

void emu_iommu_let_go(struct emu *emu, phys_addr_t start, size_t size)
{
	unsigned long pfn, flags;

	if (!emu->options.iommu)
		return;
	xa_lock_irqsave(&emu->pages, flags);
	for (pfn = PFN_DOWN(start); pfn < PFN_UP(start + size); pfn++)
		drop_page_use(emu, pfn, ONE_VIEW);
	xa_unlock_irqrestore(&emu->pages, flags);
}

/* Pages that are mapped for the device now. */
u64 emu_iommu_pages(struct emu *emu)
{
	unsigned long pfn;
	u64 count = 0;
	void *entry;

	xa_for_each(&emu->pages, pfn, entry)
		count += count_mappings(xa_to_value(entry)) != 0;
	return count;
}
