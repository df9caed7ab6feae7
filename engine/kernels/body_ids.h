/* SPDX-License-Identifier: MIT */
/* Ids out of shared memory, each read once and kept in 32 bits. */
#ifndef ENGINE_KERNELS_BODY_IDS_H
#define ENGINE_KERNELS_BODY_IDS_H

#include "../memory/snapshot.h"
#include "body.h"

#define IDS_BLOCK 128u	/* at once; they fit a kernel's stack */
#define IDS_AHEAD 4096u /* bytes; processors do not fetch ahead beyond a page */
#define IDS_CACHE 2	/* the second */
#define IDS_LINE 64u	/* bytes */
#define LINE_IDS(width) (IDS_LINE / ((width) == sizeof(u64) ? sizeof(u64) : sizeof(u32)))

/* Return: the top bit tells whether any is outside. */
INLINE u64 take_block(u32 *to, const u8 *from, u64 count, u32 width, u64 limit)
{
	u64 block[IDS_BLOCK], bad = 0;

	for (u64 byte = 0; byte < count * width; byte += IDS_LINE)
		__builtin_prefetch(from + IDS_AHEAD + byte, 0, IDS_CACHE);
	ids_widen(block, from, count, width);
	for (u64 i = 0; i < count; i++) {
		bad |= ID_OUTSIDE(block[i], limit);
		to[i] = (u32)block[i];
	}
	return bad;
}

#ifdef VEC_WORDS
/* Whole lines. */
INLINE u64 take_lines(u32 *to, const u8 *from, u64 count, const u32 width, u64 limit,
		      const bool stream)
{
	vec_words all = { 0 };
	u64 bad = 0;

	for (u64 i = 0; i < count; i += LINE_IDS(width)) {
		__builtin_prefetch(from + IDS_AHEAD + i * width, 0, IDS_CACHE);
		for (u64 k = i; k < i + LINE_IDS(width); k += VEC_WORDS) {
			vec_words id = vec_words_once(from + k * width, width);

			all |= ID_OUTSIDE(id, limit);
			if (stream)
				vec_words_stream_low(to + k, id);
			else
				vec_words_store_low(to + k, id);
		}
	}
	for (u32 lane = 0; lane < VEC_WORDS; lane++)
		bad |= all[lane];
	return bad;
}

INLINE u64 take_width(u32 *to, const u8 *from, u64 count, u32 width, u64 limit, const bool stream)
{
	return width == sizeof(u64) ? take_lines(to, from, count, sizeof(u64), limit, stream) :
				      take_lines(to, from, count, sizeof(u32), limit, stream);
}

INLINE u64 take_vectors(u32 *to, const u8 *from, u64 count, u32 width, u64 limit, bool stream)
{
	u64 bad;

	if (!stream)
		return take_width(to, from, count, width, limit, false);
	bad = take_width(to, from, count, width, limit, true);
	vec_stream_end();
	return bad;
}
#define WHOLE_LINES(count, width) ((count) & ~(u64)(LINE_IDS(width) - 1))
#else
#define take_vectors(to, from, count, width, limit, stream) 0ull
#define WHOLE_LINES(count, width) 0ull
#endif

/* Ids before the first of a line. */
INLINE u64 ids_to_line(const u32 *to, u64 count)
{
	u64 ids = (0 - (u64)(size_t)to) % IDS_LINE / sizeof(*to);

	return ids < count ? ids : count;
}

bool KERNEL(take_ids)(u32 *to, const void *from, u64 count, u32 width, u64 limit, bool stream)
{
	u64 head = stream ? ids_to_line(to, count) : 0, lines = WHOLE_LINES(count - head, width);
	u64 bad = take_block(to, from, head, width, limit), done = head + lines;

	bad |= take_vectors(to + head, (const u8 *)from + head * width, lines, width, limit,
			    stream);
	for (u64 n; done < count; done += n) {
		n = count - done < IDS_BLOCK ? count - done : IDS_BLOCK;
		bad |= take_block(to + done, (const u8 *)from + done * width, n, width, limit);
	}
	return bad >> 63;
}

#endif
