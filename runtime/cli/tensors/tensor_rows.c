// SPDX-License-Identifier: MIT
/*
 * Reads rows of a tensor as f32, from any type of float, any order of bytes and any strides.
 *
 * The rows belong to the caller. One thread uses a struct tensor_file.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tensor.h"

/* Elements that are converted at a time. */
#define BLOCK 4096

static float float_of_bits(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static float widen_half(uint16_t half)
{
	uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = (half >> 10) & 31;
	uint32_t fraction = half & 0x3ff;
	float value;

	if (exponent == 31)
		return float_of_bits(sign | 0x7f800000u | fraction << 13);
	if (exponent)
		return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
	value = (float)fraction * 0x1p-24f;
	return sign ? -value : value;
}

static uint64_t load_element(const unsigned char *p, unsigned int size, bool big_endian)
{
	uint16_t two;
	uint32_t four;
	uint64_t eight;

	switch (size) {
	case 2:
		memcpy(&two, p, sizeof(two));
		return big_endian ? be16toh(two) : le16toh(two);
	case 4:
		memcpy(&four, p, sizeof(four));
		return big_endian ? be32toh(four) : le32toh(four);
	default:
		memcpy(&eight, p, sizeof(eight));
		return big_endian ? be64toh(eight) : le64toh(eight);
	}
}

static float convert_element(enum tensor_type type, uint64_t bits)
{
	double value;

	switch (type) {
	case TENSOR_F16:
		return widen_half((uint16_t)bits);
	case TENSOR_BF16:
		return float_of_bits((uint32_t)bits << 16);
	case TENSOR_F64:
		memcpy(&value, &bits, sizeof(value));
		return (float)value;
	default:
		return float_of_bits((uint32_t)bits);
	}
}

/* Reads elements that lie side by side, from the @from-th of the tensor on, to every @step-th. */
static int read_run(struct tensor_file *f, const struct tensor *t, uint64_t from, size_t count,
		    float *out, size_t step)
{
	unsigned int size = tensor_size(t->type);
	unsigned char block[BLOCK * 8];

	while (count) {
		size_t n = count < BLOCK ? count : BLOCK;
		int rc = tensor_bytes(f, t->at + from * size, block, n * size);

		if (rc)
			return rc;
		for (size_t i = 0; i < n; i++)
			out[i * step] = convert_element(
				t->type, load_element(block + i * size, size, f->big_endian));
		from += n;
		out += n * step;
		count -= n;
	}
	return 0;
}

static int refuse_not_finite(struct tensor_file *f, const struct tensor *t, uint64_t row,
			     uint64_t column, float value)
{
	return tensor_fail(f, -ERANGE,
			   "%s%.100s%s: row %" PRIu64 ", column %" PRIu64
			   " is %s as f32; a table takes finite values alone",
			   *t->name ? "tensor '" : "the array", t->name, *t->name ? "'" : "", row,
			   column,
			   isnan(value) ? "nan"
			   : value > 0	? "inf"
					: "-inf");
}

static int check_finite(struct tensor_file *f, const struct tensor *t, uint64_t first, size_t count,
			const float *out)
{
	uint64_t dim = t->shape[1];

	for (size_t i = 0; i < count * dim; i++) {
		if (!isfinite(out[i]))
			return refuse_not_finite(f, t, first + i / dim, i % dim, out[i]);
	}
	return 0;
}

static int read_strided(struct tensor_file *f, const struct tensor *t, uint64_t first, size_t count,
			float *out)
{
	size_t dim = (size_t)t->shape[1];
	uint64_t from = first * t->stride[0];
	int rc = 0;

	if (t->stride[1] == 1 || dim == 1) {
		for (size_t i = 0; !rc && i < count; i++)
			rc = read_run(f, t, from + i * t->stride[0], dim, out + i * dim, 1);
		return rc;
	}
	for (size_t k = 0; !rc && k < dim; k++) {
		uint64_t at = from + k * t->stride[1];

		if (t->stride[0] == 1) {
			rc = read_run(f, t, at, count, out + k, dim);
			continue;
		}
		for (size_t i = 0; !rc && i < count; i++)
			rc = read_run(f, t, at + i * t->stride[0], 1, out + i * dim + k, 1);
	}
	return rc;
}

int tensor_rows(struct tensor_file *f, const struct tensor *t, uint64_t first, size_t count,
		float *out)
{
	size_t dim = (size_t)t->shape[1];
	int rc;

	if (t->stride[0] == dim && (t->stride[1] == 1 || dim == 1))
		rc = read_run(f, t, first * dim, count * dim, out, 1);
	else
		rc = read_strided(f, t, first, count, out);
	return rc ? rc : check_finite(f, t, first, count, out);
}
