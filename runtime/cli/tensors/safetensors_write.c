// SPDX-License-Identifier: MIT
/*
 * Writes the front of a .safetensors file: the length of the header and the header. The callers write
 * the numbers behind it.
 *
 * The text of the header lives for one call.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "../../json/json_write.h"
#include "safetensors_write.h"

#define ALIGN 8u

static void write_numbers(struct json_writer *w, const char *name, uint64_t a, uint64_t b)
{
	json_write_array(w, name);
	json_write_number(w, NULL, a);
	json_write_number(w, NULL, b);
	json_write_close(w);
}

static int make_safetensors_header(const struct safetensors_array *arrays, size_t count,
				   char **text, size_t *length)
{
	struct json_writer w;
	uint64_t at = 0;

	json_write_begin(&w, JSON_COMPACT);
	json_write_object(&w, NULL);
	for (size_t i = 0; i < count; i++) {
		uint64_t bytes = 4 * (uint64_t)arrays[i].rows * (uint64_t)arrays[i].dim;

		json_write_object(&w, arrays[i].name);
		json_write_text(&w, "dtype", "F32");
		write_numbers(&w, "shape", (uint64_t)arrays[i].rows, (uint64_t)arrays[i].dim);
		write_numbers(&w, "data_offsets", at, at + bytes);
		json_write_close(&w);
		at += bytes;
	}
	json_write_close(&w);
	return json_write_end(&w, text, length);
}

int safetensors_front(FILE *out, const struct safetensors_array *arrays, size_t count)
{
	size_t length, blanks;
	uint64_t whole;
	char *text;
	int rc = make_safetensors_header(arrays, count, &text, &length);

	if (rc)
		return rc;
	blanks = (ALIGN - length % ALIGN) % ALIGN;
	whole = htole64(length + blanks);
	errno = 0;
	if (fwrite(&whole, 1, sizeof(whole), out) != sizeof(whole) ||
	    fwrite(text, 1, length, out) != length || fprintf(out, "%*s", (int)blanks, "") < 0)
		rc = errno ? -errno : -EIO;
	free(text);
	return rc;
}
