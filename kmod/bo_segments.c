// SPDX-License-Identifier: GPL-2.0-only
/*
 * A part of a buffer as the device is told of it: a list of pieces, each contiguous in DMA
 * addresses, as few as possible. Both forms of a buffer, an array of pages and a scatterlist, end
 * up here.
 *
 * It is a file of its own because it is arithmetic alone, which KUnit tests without a device. It
 * takes no lock and keeps nothing: the caller holds the buffer, and keeps it reachable by the
 * device, while the list is made.
 */
#include "bo.h"

struct list {
	struct embeng_segment *out;
	u32 room;
	u32 count;
	u64 end; /* address after the last piece */
};

static int append_piece(struct list *list, u64 address, u64 length)
{
	if (list->count && address == list->end) {
		if (list->out)
			list->out[list->count - 1].length += length;
	} else {
		if (list->count == list->room)
			return -ENOSPC;
		if (list->out)
			list->out[list->count] = (struct embeng_segment){ address, length };
		list->count++;
	}
	list->end = address + length;
	return 0;
}

static int append_pages(struct list *list, const struct embeng_bo *bo, u64 offset, u64 length)
{
	u64 part;
	int ret;

	for (; length; offset += part, length -= part) {
		part = min(length, PAGE_SIZE);
		ret = append_piece(list, bo->dma[offset >> PAGE_SHIFT], part);
		if (ret)
			return ret;
	}
	return 0;
}

static int append_table(struct list *list, const struct embeng_bo *bo, u64 offset, u64 length)
{
	struct scatterlist *sg;
	u64 part;
	int i, ret;

	for_each_sgtable_dma_sg(bo->table, sg, i) {
		if (offset >= sg_dma_len(sg)) {
			offset -= sg_dma_len(sg);
			continue;
		}
		part = min(length, sg_dma_len(sg) - offset);
		ret = append_piece(list, sg_dma_address(sg) + offset, part);
		length -= part;
		offset = 0;
		if (ret || !length)
			return ret;
	}
	return -EINVAL;
}

/**
 * embeng_segments() - list the pieces of [@offset, @offset + @length)
 * @bo: buffer that the device can reach and that is long enough
 * @offset: bytes, page-aligned
 * @length: bytes, from 1
 * @out: array to be filled; NULL: the pieces are only counted
 * @room: most pieces that @out has room for
 *
 * Return: number of pieces, -ENOSPC for more than @room, or -EINVAL when the buffer is shorter.
 */
int embeng_segments(struct embeng_bo *bo, u64 offset, u64 length, struct embeng_segment *out,
		    u32 room)
{
	struct list list = { .out = out, .room = room };
	int ret;

	if (bo->dma)
		ret = append_pages(&list, bo, offset, length);
	else
		ret = append_table(&list, bo, offset, length);
	return ret ?: list.count;
}
