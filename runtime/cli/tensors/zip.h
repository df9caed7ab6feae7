/* SPDX-License-Identifier: MIT */
/* Finds the stored (not compressed) members of a zip, large ones (zip64) too. */
#ifndef CLI_ZIP_H
#define CLI_ZIP_H

#include "tensor.h"

/**
 * struct zip_member - one file in a zip
 * @at: offset of its bytes in the zip
 * @stored: its bytes lie there as they are; else they are compressed or encrypted
 */
struct zip_member {
	char *name;
	uint64_t at, bytes;
	bool stored;
};

struct zip {
	struct zip_member *list;
	size_t count;
};

/* Lists a zip's members. Return: as tensor_file_open(). The caller calls zip_free(), also then. */
int zip_list(struct tensor_file *f, struct zip *zip);
void zip_free(struct zip *zip);

/* The member of that name, or NULL. */
const struct zip_member *zip_find(const struct zip *zip, const char *name);

#endif
