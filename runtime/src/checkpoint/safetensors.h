/* SPDX-License-Identifier: MIT */
/*
 * The safetensors format: u64 length of the header, little-endian; the header, one JSON
 * object padded with blanks; then the tensors' bytes, one after another without holes.
 */
#ifndef EMBENG_SAFETENSORS_H
#define EMBENG_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#define SAFETENSORS_ALIGN 64u /* where our data begin */
#define SAFETENSORS_HEADER_MAX 100000000u /* the format's own limit */

/* An F32 tensor [rows, dim]. */
struct safetensor {
	const char *name;
	uint64_t rows, dim;
	uint64_t offset; /* of its first byte, in the file */
};

/*
 * safetensors_header() - length and header of a file
 * @tensors: [count] in the order in which their data will stand; offsets are filled in
 * @metadata: [metadata_count][2] texts for people
 * @header: out, malloc'd
 * @bytes: out, of @header; the file's is that and the data
 */
int safetensors_header(struct safetensor *tensors, size_t count, const char *const (*metadata)[2],
		       size_t metadata_count, char **header, size_t *bytes);

/*
 * safetensors_header_bytes() - length of the header, from the file's first 8 bytes
 * @file_bytes: of the whole file
 * @path: for sentences
 *
 * Return: 0, -EBADMSG.
 */
int safetensors_header_bytes(const void *start, uint64_t file_bytes, const char *path,
			     uint64_t *bytes);

/*
 * safetensors_check() - compare a header with what must stand there
 * @header: [bytes], behind the 8 bytes of its length
 * @tensors: [count] all tensors of the file, with their offsets, in file order
 *
 * Return: 0, -EBADMSG when the header breaks the format or says anything else.
 */
int safetensors_check(const char *header, uint64_t bytes, uint64_t file_bytes, const char *path,
		      const struct safetensor *tensors, size_t count);

#endif
