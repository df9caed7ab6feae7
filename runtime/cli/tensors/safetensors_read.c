// SPDX-License-Identifier: MIT
/*
 * Reads the header of a .safetensors file of any program. The library has a reader of its own for the
 * shards of checkpoints, whose tensors are known before.
 *
 * The document of the header lives for one call.
 */
#include <errno.h>
#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../json/json_read.h"
#include "tensor.h"

#define LENGTH_BYTES 8u
#define HEADER_MOST 100000000u /* limit that the format sets */
#define LEVELS 4

static bool read_whole_number(const struct json *value, uint64_t *out)
{
	if (!json_is(value, JSON_INTEGER) || value->negative)
		return false;
	*out = value->magnitude;
	return true;
}

static enum tensor_type safetensors_type(const struct json *dtype)
{
	return json_says(dtype, "F16")	  ? TENSOR_F16
	       : json_says(dtype, "BF16") ? TENSOR_BF16
	       : json_says(dtype, "F32")  ? TENSOR_F32
	       : json_says(dtype, "F64")  ? TENSOR_F64
					  : TENSOR_OTHER;
}

static int list_member(struct tensor_file *f, const char *name, const struct json *o,
		       uint64_t data_at)
{
	const struct json *shape = json_get(o, "shape"), *offsets = json_get(o, "data_offsets");
	struct tensor t = {.type = safetensors_type(json_get(o, "dtype")),
			   .rank = json_length(shape)};
	bool good = json_is(o, JSON_OBJECT) && json_is(shape, JSON_ARRAY) &&
		    json_is(offsets, JSON_ARRAY) && json_is(json_get(o, "dtype"), JSON_TEXT);
	uint64_t from = 0, to = 0, elements;

	for (size_t i = 0; good && i < t.rank && i < 2; i++)
		good = read_whole_number(json_at(shape, i), &t.shape[i]);
	good = good && json_length(offsets) == 2 && read_whole_number(json_at(offsets, 0), &from) &&
	       read_whole_number(json_at(offsets, 1), &to) && from <= to &&
	       to <= f->bytes - data_at;
	if (good && tensor_is_table(&t))
		good = !__builtin_mul_overflow(t.shape[0], t.shape[1], &elements) &&
		       elements <= UINT64_MAX / 8 && elements * tensor_size(t.type) == to - from;
	if (!good)
		return tensor_fail(
			f, -EBADMSG,
			"tensor '%.100s': dtype, shape and data_offsets do not agree with "
			"each other and the size of the file",
			name);
	t.stride[0] = t.shape[1];
	t.stride[1] = 1;
	t.at = data_at + from;
	return tensor_add(f, name, strlen(name), t, to - from);
}

static int list_members(struct tensor_file *f, const char *text, uint64_t length)
{
	const struct json *header;
	char why[JSON_WHY];
	int rc = json_read(text, (size_t)length, LEVELS, &header, why);

	if (rc)
		return tensor_fail(f, rc, "its header cannot be read: %s", why);
	if (!json_is(header, JSON_OBJECT))
		rc = tensor_fail(f, -EBADMSG, "its header is no JSON object");
	for (size_t i = 0; !rc && i < json_length(header); i++) {
		const char *name = json_name(header, i);

		if (strcmp(name, "__metadata__") != 0)
			rc = list_member(f, name, json_at(header, i), LENGTH_BYTES + length);
	}
	json_free(header);
	return rc;
}

int safetensors_list(struct tensor_file *f)
{
	uint64_t length;
	char *text;
	int rc = tensor_bytes(f, 0, &length, sizeof(length));

	if (rc)
		return rc;
	length = le64toh(length);
	if (length > HEADER_MOST || length > f->bytes - LENGTH_BYTES)
		return tensor_fail(f, -EBADMSG,
				   "says that its header has %" PRIu64
				   " bytes, and the file has %" PRIu64,
				   length, f->bytes);
	rc = tensor_text(f, LENGTH_BYTES, length, &text);
	if (rc)
		return rc;
	rc = list_members(f, text, length);
	free(text);
	return rc;
}
