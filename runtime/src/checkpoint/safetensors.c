// SPDX-License-Identifier: MIT
/*
 * Writes the header of a safetensors file, and checks one against the tensors that must be in it.
 * The data behind the header are read and written by the callers.
 *
 * The header that is made belongs to the caller. No lock is needed.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json_strict.h"
#include "safetensors.h"

#define LENGTH_BYTES 8u

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "lengths and floats lie as written");

static uint64_t tensor_bytes(const struct safetensor *t)
{
	return (t->type == SAFETENSOR_I64 ? sizeof(int64_t) : sizeof(float)) * t->rows * t->dim;
}

static const char *tensor_type(const struct safetensor *t)
{
	static const char *const names[] = {
		[SAFETENSOR_F32] = "F32", [SAFETENSOR_I64] = "I64", [SAFETENSOR_I32] = "I32"};

	return names[t->type];
}

static void write_pair(struct json_writer *w, const char *name, uint64_t a, uint64_t b)
{
	json_write_array(w, name);
	json_write_number(w, NULL, a);
	json_write_number(w, NULL, b);
	json_write_close(w);
}

static void write_tensor(struct json_writer *w, const struct safetensor *t, uint64_t at)
{
	json_write_object(w, t->name);
	json_write_text(w, "dtype", tensor_type(t));
	write_pair(w, "shape", t->rows, t->dim);
	write_pair(w, "data_offsets", at, at + tensor_bytes(t));
	json_write_close(w);
}

static void write_header(struct json_writer *w, const struct safetensor *tensors, size_t count,
			 const char *const (*metadata)[2], size_t metadata_count)
{
	uint64_t at = 0;

	json_write_object(w, NULL);
	json_write_object(w, "__metadata__");
	for (size_t i = 0; i < metadata_count; i++)
		json_write_text(w, metadata[i][0], metadata[i][1]);
	json_write_close(w);
	for (size_t i = 0; i < count; i++) {
		write_tensor(w, &tensors[i], at);
		at += tensor_bytes(&tensors[i]);
	}
	json_write_close(w);
}

static int lay_out_header(const char *text, size_t length, char **header, size_t *bytes)
{
	size_t whole;
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
	struct json_writer w;
	size_t length;
	uint64_t at;
	char *text;
	int ret;

	json_write_begin(&w, JSON_COMPACT);
	write_header(&w, tensors, count, metadata, metadata_count);
	ret = json_finish(&w, "the header of a shard", &text, &length);
	if (ret)
		return ret;
	ret = lay_out_header(text, length, header, bytes);
	free(text);
	at = ret ? 0 : *bytes;
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
static int read_pair(const struct json *o, const struct place *at, const char *key, uint64_t *out)
{
	const struct json *array;
	int ret = json_member(o, at, key, JSON_ARRAY, &array);

	if (ret)
		return ret;
	if (json_length(array) != 2 || !json_is_number(json_at(array, 0), INT64_MAX, &out[0]) ||
	    !json_is_number(json_at(array, 1), INT64_MAX, &out[1]))
		return json_bad(at, "\"%s\" is not two whole numbers", key);
	return 0;
}

static int check_tensor(const struct json *header, const struct place *at,
			const struct safetensor *want, uint64_t data_at)
{
	uint64_t shape[2], offsets[2], from = want->offset - data_at;
	const struct json *o;
	const char *dtype;
	int ret = json_member(header, at, want->name, JSON_OBJECT, &o);

	ret = ret ? ret : json_text(o, at, "dtype", &dtype);
	if (!ret && strcmp(dtype, tensor_type(want)))
		ret = json_bad(at, "\"%s\" is of type %.16s, not %s", want->name, dtype,
			       tensor_type(want));
	ret = ret ? ret : read_pair(o, at, "shape", shape);
	if (!ret && (shape[0] != want->rows || shape[1] != want->dim))
		ret = json_bad(at,
			       "\"%s\" is [%" PRIu64 ", %" PRIu64 "], the index says "
			       "[%" PRIu64 ", %" PRIu64 "]",
			       want->name, shape[0], shape[1], want->rows, want->dim);
	ret = ret ? ret : read_pair(o, at, "data_offsets", offsets);
	if (!ret && (want->offset < data_at || offsets[0] != from ||
		     offsets[1] != from + tensor_bytes(want)))
		ret = json_bad(at,
			       "\"%s\" lies at %" PRIu64 " to %" PRIu64 " of the data, "
			       "the index says offset %" PRIu64 " of the file",
			       want->name, offsets[0], offsets[1], want->offset);
	return ret;
}

/* "__metadata__" holds texts alone, when it is there. */
static int check_metadata(const struct json *header, const struct place *at)
{
	const struct json *metadata = json_get(header, "__metadata__");

	if (!metadata)
		return 0;
	if (!json_is(metadata, JSON_OBJECT))
		return json_bad(at, "\"__metadata__\" is not an object");
	for (size_t i = 0; i < json_length(metadata); i++) {
		if (!json_is(json_at(metadata, i), JSON_TEXT))
			return json_bad(at, "\"__metadata__\" has \"%s\", which is not a text",
					json_name(metadata, i));
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
			return json_bad(at,
					"\"%s\" begins at byte %" PRIu64 ", not at %" PRIu64
					", where the data before it end",
					tensors[i].name, tensors[i].offset, end);
		end += tensor_bytes(&tensors[i]);
	}
	if (end != file_bytes)
		return json_bad(at, "the tensors end at byte %" PRIu64 ", the file at %" PRIu64,
				end, file_bytes);
	return 0;
}

static int check_members(const struct json *header, const struct place *at, uint64_t data_at,
			 const struct safetensor *tensors, size_t count)
{
	size_t extra = json_get(header, "__metadata__") != NULL;
	int ret = check_metadata(header, at);

	for (size_t i = 0; !ret && i < count; i++)
		ret = check_tensor(header, at, &tensors[i], data_at);
	if (!ret && json_length(header) != count + extra)
		ret = json_bad(at, "has %zu tensors, the index says %zu",
			       json_length(header) - extra, count);
	return ret;
}

int safetensors_check(const char *header, uint64_t bytes, uint64_t file_bytes, const char *path,
		      const struct safetensor *tensors, size_t count)
{
	const struct place at = {.file = path};
	uint64_t data_at = LENGTH_BYTES + bytes;
	const struct json *o;
	int ret;

	if (!bytes || *header != '{')
		return json_bad(&at, "offset 8: the header does not begin with {");
	ret = json_parse_strict(header, bytes, &at, &o);
	if (ret)
		return ret;
	ret = check_members(o, &at, data_at, tensors, count);
	ret = ret ? ret : check_cover(&at, data_at, file_bytes, tensors, count);
	json_free(o);
	return ret;
}
