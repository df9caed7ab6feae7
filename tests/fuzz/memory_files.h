/* SPDX-License-Identifier: MIT */
/* A folder in memory behind file_ops, from which a checkpoint is read. */
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
	size_t at; /* offset of the next read */
};

extern struct memory_file memory_files[MEMORY_FILES];

/* Replaces the files on disk by those in memory. */
void memory_files_begin(void);
/* Stores a copy of @data, in place of an earlier file of that name. */
void memory_file_put(const char *name, const void *data, size_t bytes);
void memory_file_remove(const char *name);
/* Makes the @nth read of a mapping fail like that of a broken disk; 0: none fails. */
void memory_files_break(uint32_t nth);
void memory_files_end(void);

#endif
