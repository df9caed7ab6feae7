/* SPDX-License-Identifier: MIT */
/*
 * The safetensors format: u64 length of the header, little-endian; the header, one JSON
 * object padded with blanks; then the tensors' bytes, one after another without holes.
 */
#ifndef EMBENG_SAFETENSORS_H
#define EMBENG_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAFETENSORS_ALIGN 64u		  /* alignment of the data in files that are written here */
#define SAFETENSORS_HEADER_MAX 100000000u /* limit that the format sets */

enum safetensor_type { SAFETENSOR_F32, SAFETENSOR_I64, SAFETENSOR_I32 };

/* A tensor [rows, dim]. */
struct safetensor {
	const char *name;
	uint64_t rows, dim;
	uint64_t offset; /* offset of the first byte in the file */
	enum safetensor_type type;
};

/*
 * safetensors_header() - make the first part of a file: the length and the header
 * @tensors: [count] in the order of their data; the offsets are filled in
 * @metadata: [metadata_count][2] keys and texts for people
 * @header: set to the length and header, malloc'd
 * @bytes: set to the bytes of @header, behind which the data begin
 */
int safetensors_header(struct safetensor *tensors, size_t count, const char *const (*metadata)[2],
		       size_t metadata_count, char **header, size_t *bytes);

/*
 * safetensors_header_bytes() - read the length of the header from a file's first 8 bytes
 * @file_bytes: bytes of the whole file
 * @path: name of the file, for sentences
 *
 * Return: 0, -EBADMSG.
 */
int safetensors_header_bytes(const void *start, uint64_t file_bytes, const char *path,
			     uint64_t *bytes);

/*
 * safetensors_check() - compare a header with the tensors that it must have
 * @header: @bytes bytes, without the 8 bytes of the length before them
 * @tensors: [count] all tensors of the file with their offsets, in the order of the file
 *
 * Return: 0, or -EBADMSG when the header breaks the format or differs.
 */
int safetensors_check(const char *header, uint64_t bytes, uint64_t file_bytes, const char *path,
		      const struct safetensor *tensors, size_t count);

#endif
