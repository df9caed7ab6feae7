// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "json_strict.h"
#include "safetensors.h"

#define LENGTH_BYTES 8u

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "lengths and floats lie as written");

static uint64_t tensor_bytes(const struct safetensor *t)
{
	return 4 * t->rows * t->dim;
}

static struct json_object *pair(uint64_t a, uint64_t b)
{
	struct json_object *array = json_object_new_array_ext(2);

	json_object_array_add(array, json_object_new_uint64(a));
	json_object_array_add(array, json_object_new_uint64(b));
	return array;
}

static struct json_object *describe(const struct safetensor *t, uint64_t at)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "dtype", json_object_new_string("F32"));
	json_object_object_add(o, "shape", pair(t->rows, t->dim));
	json_object_object_add(o, "data_offsets", pair(at, at + tensor_bytes(t)));
	return o;
}

static struct json_object *describe_all(const struct safetensor *tensors, size_t count,
					const char *const (*metadata)[2], size_t metadata_count)
{
	struct json_object *header = json_object_new_object(), *texts = json_object_new_object();
	uint64_t at = 0;

	for (size_t i = 0; i < metadata_count; i++)
		json_object_object_add(texts, metadata[i][0],
				       json_object_new_string(metadata[i][1]));
	json_object_object_add(header, "__metadata__", texts);
	for (size_t i = 0; i < count; i++) {
		json_object_object_add(header, tensors[i].name, describe(&tensors[i], at));
		at += tensor_bytes(&tensors[i]);
	}
	return header;
}

static int lay_out(const char *text, char **header, size_t *bytes)
{
	size_t length = strlen(text), whole;
	uint64_t padded;
	char *made;

	whole = (LENGTH_BYTES + length + SAFETENSORS_ALIGN - 1) & ~(size_t)(SAFETENSORS_ALIGN - 1);
	padded = whole - LENGTH_BYTES;
	made = malloc(whole);
	if (!made)
		return fail(-ENOMEM, "no memory for the header of a shard");
	memcpy(made, &padded, LENGTH_BYTES);
	memcpy(made + LENGTH_BYTES, text, length);
	memset(made + LENGTH_BYTES + length, ' ', padded - length);
	*header = made;
	*bytes = whole;
	return 0;
}

int safetensors_header(struct safetensor *tensors, size_t count, const char *const (*metadata)[2],
		       size_t metadata_count, char **header, size_t *bytes)
{
	struct json_object *o = describe_all(tensors, count, metadata, metadata_count);
	const char *text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_NOSLASHESCAPE);
	int ret = text ? lay_out(text, header, bytes)
		       : fail(-ENOMEM, "no memory for the header of a shard");
	uint64_t at = ret ? 0 : *bytes;

	json_object_put(o);
	for (size_t i = 0; !ret && i < count; i++) {
		tensors[i].offset = at;
		at += tensor_bytes(&tensors[i]);
	}
	return ret;
}

int safetensors_header_bytes(const void *start, uint64_t file_bytes, const char *path,
			     uint64_t *bytes)
{
	uint64_t length;

	if (file_bytes < LENGTH_BYTES)
		return fail(-EBADMSG, "%s: offset 0: %" PRIu64 " bytes are no safetensors file",
			    path, file_bytes);
	memcpy(&length, start, LENGTH_BYTES);
	if (length > file_bytes - LENGTH_BYTES || length > SAFETENSORS_HEADER_MAX)
		return fail(-EBADMSG,
			    "%s: offset 0: a header of %" PRIu64 " bytes in a file of %" PRIu64,
			    path, length, file_bytes);
	*bytes = length;
	return 0;
}

/* [a, b] as an array of two whole numbers. */
static int read_pair(struct json_object *o, const struct place *at, const char *key, uint64_t *out)
{
	struct json_object *array;
	int ret = json_member(o, at, key, json_type_array, &array);

	if (ret)
		return ret;
	if (json_object_array_length(array) != 2 ||
	    !json_is_number(json_object_array_get_idx(array, 0), INT64_MAX, &out[0]) ||
	    !json_is_number(json_object_array_get_idx(array, 1), INT64_MAX, &out[1]))
		return json_bad(at, "\"%s\" is not two whole numbers", key);
	return 0;
}

static int check_tensor(struct json_object *header, const struct place *at,
			const struct safetensor *want, uint64_t data_at)
{
	uint64_t shape[2], offsets[2], from = want->offset - data_at;
	struct json_object *o;
	const char *dtype;
	int ret = json_member(header, at, want->name, json_type_object, &o);

	ret = ret ? ret : json_text(o, at, "dtype", &dtype);
	if (!ret && strcmp(dtype, "F32"))
		ret = json_bad(at, "\"%s\" is of type %.16s, not F32", want->name, dtype);
	ret = ret ? ret : read_pair(o, at, "shape", shape);
	if (!ret && (shape[0] != want->rows || shape[1] != want->dim))
		ret = json_bad(at, "\"%s\" is [%" PRIu64 ", %" PRIu64 "], the index says "
				   "[%" PRIu64 ", %" PRIu64 "]",
			       want->name, shape[0], shape[1], want->rows, want->dim);
	ret = ret ? ret : read_pair(o, at, "data_offsets", offsets);
	if (!ret && (want->offset < data_at || offsets[0] != from ||
		     offsets[1] != from + tensor_bytes(want)))
		ret = json_bad(at, "\"%s\" lies at %" PRIu64 " to %" PRIu64 " of the data, "
				   "the index says offset %" PRIu64 " of the file",
			       want->name, offsets[0], offsets[1], want->offset);
	return ret;
}

/* "__metadata__" holds texts alone, when it is there. */
static int check_metadata(struct json_object *header, const struct place *at)
{
	struct json_object *metadata;

	if (!json_object_object_get_ex(header, "__metadata__", &metadata))
		return 0;
	if (!json_object_is_type(metadata, json_type_object))
		return json_bad(at, "\"__metadata__\" is not an object");
	json_object_object_foreach(metadata, key, value) {
		if (!json_object_is_type(value, json_type_string))
			return json_bad(at, "\"__metadata__\" has \"%s\", which is not a text", key);
	}
	return 0;
}

/* With each tensor where it must be, one behind the other: no holes, no overlap. */
static int check_cover(const struct place *at, uint64_t data_at, uint64_t file_bytes,
		       const struct safetensor *tensors, size_t count)
{
	uint64_t end = data_at;

	for (size_t i = 0; i < count; i++) {
		if (tensors[i].offset != end)
			return json_bad(at, "\"%s\" begins at byte %" PRIu64 ", not at %" PRIu64
					    ", where the data before it end",
					tensors[i].name, tensors[i].offset, end);
		end += tensor_bytes(&tensors[i]);
	}
	if (end != file_bytes)
		return json_bad(at, "the tensors end at byte %" PRIu64 ", the file at %" PRIu64, end,
				file_bytes);
	return 0;
}

static int check_members(struct json_object *header, const struct place *at, uint64_t data_at,
			 const struct safetensor *tensors, size_t count)
{
	size_t extra = json_object_object_get_ex(header, "__metadata__", NULL);
	int ret = check_metadata(header, at);

	for (size_t i = 0; !ret && i < count; i++)
		ret = check_tensor(header, at, &tensors[i], data_at);
	if (!ret && (size_t)json_object_object_length(header) != count + extra)
		ret = json_bad(at, "has %d tensors, the index says %zu",
			       json_object_object_length(header) - (int)extra, count);
	return ret;
}

int safetensors_check(const char *header, uint64_t bytes, uint64_t file_bytes, const char *path,
		      const struct safetensor *tensors, size_t count)
{
	const struct place at = {.file = path};
	uint64_t data_at = LENGTH_BYTES + bytes;
	struct json_object *o;
	int ret;

	if (!bytes || *header != '{')
		return json_bad(&at, "offset 8: the header does not begin with {");
	ret = json_parse_strict(header, bytes, &at, &o);
	if (ret)
		return ret;
	ret = check_members(o, &at, data_at, tensors, count);
	ret = ret ? ret : check_cover(&at, data_at, file_bytes, tensors, count);
	json_object_put(o);
	return ret;
}
