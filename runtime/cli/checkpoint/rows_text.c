// SPDX-License-Identifier: MIT
/*
 * Writes rows of floats as .npy (in the format of numpy.lib.format) and as text. Each function
 * writes a part, so that a table is never in memory as a whole.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "rows_text.h"

/* Magic, version and length of the header come before it; all together in 64s. */
#define NPY_FRONT 10
#define NPY_ALIGN 64

static int stream_failure(void)
{
	return errno ? -errno : -EIO;
}

int npy_header(FILE *out, int64_t rows, int64_t dim)
{
	char front[NPY_FRONT] = "\x93NUMPY\x01", header[2 * NPY_ALIGN];
	size_t length, whole;

	length = (size_t)snprintf(header, sizeof(header),
				  "{'descr': '<f4', 'fortran_order': False, 'shape': (%" PRId64
				  ", %" PRId64 "), }",
				  rows, dim);
	whole = (NPY_FRONT + length + 1 + NPY_ALIGN - 1) / NPY_ALIGN * NPY_ALIGN - NPY_FRONT;
	memset(header + length, ' ', whole - length);
	header[whole - 1] = '\n';
	front[8] = (char)(whole & 0xff);
	front[9] = (char)(whole >> 8);
	errno = 0;
	if (fwrite(front, 1, sizeof(front), out) != sizeof(front) ||
	    fwrite(header, 1, whole, out) != whole)
		return stream_failure();
	return 0;
}

int npy_floats(FILE *out, float *data, size_t count)
{
	for (size_t k = 0; k < count; k++) {
		uint32_t bits;

		memcpy(&bits, &data[k], sizeof(bits));
		bits = htole32(bits);
		memcpy(&data[k], &bits, sizeof(bits));
	}
	errno = 0;
	return fwrite(data, sizeof(*data), count, out) == count ? 0 : stream_failure();
}

int text_rows(FILE *out, const float *data, size_t count, size_t dim)
{
	errno = 0;
	for (size_t k = 0; k < count * dim; k++) {
		if (fprintf(out, "%.9g%c", (double)data[k], (k + 1) % dim ? ' ' : '\n') < 0)
			return stream_failure();
	}
	return 0;
}
