/* SPDX-License-Identifier: MIT */
/* Included by memory.c once for each kind of vectors, with NAME() and TARGET defined. */

/*
 * Adds all lines of a row at once, if they fit into the registers. Rows are fetched ahead into
 * the cache of HINT, their first TOUCHED lines twice as far ahead.
 */
#define GATHER_LINES(LINES, CACHE, TOUCHED, HINT) \
	TARGET static void NAME(gather_##LINES##_##CACHE)(const char *rows, const uint32_t *index, \
							  size_t count, size_t ahead, char *out) \
	{ \
		const size_t bytes = LINES * sizeof(line_t); \
		line_t sum[LINES] = {0}; \
		for (size_t k = 0; k < count; k++) { \
			const char *far = rows + (size_t)index[k + 2 * ahead] * bytes; \
			const char *next = rows + (size_t)index[k + ahead] * bytes; \
			const char *row = rows + (size_t)index[k] * bytes; \
			for (int v = 0; v < TOUCHED; v++) \
				__builtin_prefetch(far + v * (int)sizeof(line_t), 0, HINT); \
			for (int v = TOUCHED; v < LINES; v++) \
				__builtin_prefetch(next + v * (int)sizeof(line_t), 0, HINT); \
			for (size_t v = 0; v < LINES; v++) \
				sum[v] += ((const line_t *)row)[v]; \
		} \
		for (size_t v = 0; v < LINES; v++) \
			((line_t *)out)[v] = sum[v]; \
	}

/* Adds rows of any other length, one line after the other. */
#define GATHER_ANY(CACHE, HINT) \
	TARGET static void NAME(gather_any_##CACHE)(const char *rows, size_t row_bytes, \
						    const uint32_t *index, size_t count, \
						    size_t ahead, char *out) \
	{ \
		for (size_t line = 0; line < row_bytes; line += sizeof(line_t)) { \
			line_t sum = {0}; \
			for (size_t k = 0; k < count; k++) { \
				__builtin_prefetch(rows + (size_t)index[k + ahead] * row_bytes + \
							   line, \
						   0, HINT); \
				sum += *(const line_t *)(rows + (size_t)index[k] * row_bytes + \
							 line); \
			} \
			*(line_t *)(out + line) = sum; \
		} \
	}

#define GATHER(CACHE, TOUCHED, HINT) \
	GATHER_LINES(1, CACHE, 0, HINT) \
	GATHER_LINES(2, CACHE, TOUCHED, HINT) \
	GATHER_LINES(4, CACHE, TOUCHED, HINT) \
	GATHER_LINES(8, CACHE, TOUCHED, HINT) \
	GATHER_ANY(CACHE, HINT) \
	TARGET static void NAME(gather_##CACHE)(const char *rows, size_t row_bytes, \
						const uint32_t *index, size_t count, size_t ahead, \
						char *out) \
	{ \
		for (size_t k = 0; k < count; k += MEMORY_POOL, out += row_bytes) { \
			size_t bag = count - k < MEMORY_POOL ? count - k : MEMORY_POOL; \
			if (row_bytes == 64) \
				NAME(gather_1_##CACHE)(rows, index + k, bag, ahead, out); \
			else if (row_bytes == 128) \
				NAME(gather_2_##CACHE)(rows, index + k, bag, ahead, out); \
			else if (row_bytes == 256) \
				NAME(gather_4_##CACHE)(rows, index + k, bag, ahead, out); \
			else if (row_bytes == 512) \
				NAME(gather_8_##CACHE)(rows, index + k, bag, ahead, out); \
			else \
				NAME(gather_any_##CACHE)(rows, row_bytes, index + k, bag, ahead, \
							 out); \
		} \
	}

GATHER(second, 0, 2)
GATHER(first, 0, 3)
GATHER(touch, 1, 2)

/* Fetches MEMORY_BURST rows at once, with no addition between the address translations. */
#define GATHER_BURST(LINES) \
	TARGET static void NAME(gather_##LINES##_burst)(const char *rows, const uint32_t *index, \
							size_t count, size_t ahead, char *out) \
	{ \
		const size_t bytes = LINES * sizeof(line_t); \
		size_t fetched = 0; \
		for (size_t k = 0, end; k < count; out += bytes) { \
			line_t sum[LINES] = {0}; \
			end = count - k < MEMORY_POOL ? count : k + MEMORY_POOL; \
			if (fetched < end + ahead) { \
				for (size_t i = 0; i < MEMORY_BURST; i++, fetched++) \
					for (size_t v = 0; v < LINES; v++) \
						__builtin_prefetch(rows + index[fetched] * bytes + \
									   v * sizeof(line_t), \
								   0, 2); \
			} \
			for (; k < end; k++) \
				for (size_t v = 0; v < LINES; v++) \
					sum[v] += ((const line_t *)(rows + index[k] * bytes))[v]; \
			for (size_t v = 0; v < LINES; v++) \
				((line_t *)out)[v] = sum[v]; \
		} \
	}

GATHER_BURST(1)
GATHER_BURST(2)
GATHER_BURST(4)
GATHER_BURST(8)

TARGET static void NAME(gather_burst)(const char *rows, size_t row_bytes, const uint32_t *index,
				      size_t count, size_t ahead, char *out)
{
	switch (row_bytes / sizeof(line_t)) {
	case 1:
		return NAME(gather_1_burst)(rows, index, count, ahead, out);
	case 2:
		return NAME(gather_2_burst)(rows, index, count, ahead, out);
	case 4:
		return NAME(gather_4_burst)(rows, index, count, ahead, out);
	case 8:
		return NAME(gather_8_burst)(rows, index, count, ahead, out);
	}
	NAME(gather_second)(rows, row_bytes, index, count, ahead, out);
}
#undef GATHER
#undef GATHER_BURST
#undef GATHER_ANY
#undef GATHER_LINES

TARGET static void NAME(rmw)(char *rows, size_t row_bytes, const uint32_t *index, size_t count,
			     size_t ahead)
{
	for (size_t k = 0; k < count; k++) {
		char *row = rows + (size_t)index[k] * row_bytes;
		const char *next = rows + (size_t)index[k + ahead] * row_bytes;

		for (size_t at = 0; at < row_bytes; at += sizeof(line_t)) {
			__builtin_prefetch(next + at, 1, 2);
			*(line_t *)(row + at) += 1e-6f;
		}
	}
}

/* Fetches MEMORY_BURST rows at once, as a gather does. */
TARGET static void NAME(rmw_burst)(char *rows, size_t row_bytes, const uint32_t *index,
				   size_t count, size_t ahead)
{
	for (size_t k = 0; k < count; k++) {
		char *row = rows + (size_t)index[k] * row_bytes;

		for (size_t i = k + ahead; !(k % MEMORY_BURST) && i < k + ahead + MEMORY_BURST; i++)
			for (size_t at = 0; at < row_bytes; at += sizeof(line_t))
				__builtin_prefetch(rows + index[i] * row_bytes + at, 1, 2);
		for (size_t at = 0; at < row_bytes; at += sizeof(line_t))
			*(line_t *)(row + at) += 1e-6f;
	}
}

/* It has eight sums, so that no addition waits for the one before. */
TARGET static float NAME(stream)(const char *rows, size_t bytes)
{
	line_t sum[8] = {0};
	float all = 0;

	for (size_t at = 0; at < bytes; at += sizeof(sum))
		for (size_t v = 0; v < 8; v++)
			sum[v] += ((const line_t *)(rows + at))[v];
	for (size_t v = 0; v < 8; v++)
		for (size_t k = 0; k < sizeof(line_t) / sizeof(float); k++)
			all += sum[v][k];
	return all;
}

static const struct memory_loops NAME(loops) = {
	.gather = {[MEMORY_SECOND] = NAME(gather_second),
		   [MEMORY_FIRST] = NAME(gather_first),
		   [MEMORY_TOUCH] = NAME(gather_touch),
		   [MEMORY_BURSTS] = NAME(gather_burst)},
	.rmw = {[MEMORY_SECOND] = NAME(rmw), [MEMORY_BURSTS] = NAME(rmw_burst)},
	.stream = NAME(stream),
	.name = VECTORS};
