/* SPDX-License-Identifier: MIT */
/* A folder in memory behind file_ops: what a checkpoint's readers find there. */
#ifndef EMBENG_FUZZ_MEMORY_FILES_H
#define EMBENG_FUZZ_MEMORY_FILES_H

#include <stddef.h>
#include <stdint.h>

#define MEMORY_FILES 16
#define MEMORY_FOLDER "folder"

struct memory_file {
	char name[128];
	uint8_t *data;
	size_t bytes;
	size_t at; /* of the next read */
};

extern struct memory_file memory_files[MEMORY_FILES];

/* From now on files are these. */
void memory_files_begin(void);
/* A copy of @data; what was there by that name goes. */
void memory_file_put(const char *name, const void *data, size_t bytes);
void memory_file_remove(const char *name);
/* The @nth read of a mapping fails as it does where a disk does; 0: none. */
void memory_files_break(uint32_t nth);
void memory_files_end(void);

#endif
