/* SPDX-License-Identifier: MIT */
/*
 * The readers of the formats. Each of them looks at a whole file in memory, trusts nothing in it, and
 * fills a sheet. One that finds a file cut or broken notes that as odd and says what it could read.
 */
#ifndef CLI_DECODE_READERS_H
#define CLI_DECODE_READERS_H

#include "sheet.h"

/**
 * struct bytes - a file in memory
 * @path: its name, for messages and for the files beside it
 * @data: contents, with a zero byte behind them
 * @size: number of bytes, without that
 */
struct bytes {
	const char *path;
	const unsigned char *data;
	size_t size;
};

/**
 * struct reader - a format
 * @name: as --as takes it and as the document has it
 * @words: a description of such a file
 * @is: whether the contents are of this format, judged by more than one field where it has no magic
 * @read: fills the sheet
 */
struct reader {
	const char *name, *words;
	bool (*is)(const struct bytes *b);
	void (*read)(struct sheet *s, const struct bytes *b);
};

extern const struct reader readers[];
extern const size_t reader_count;

/* The first reader that knows the contents, or NULL. */
const struct reader *reader_find(const struct bytes *b);
const struct reader *reader_by_name(const char *name);

bool dump_is(const struct bytes *b);
void dump_read(struct sheet *s, const struct bytes *b);
bool trace_is(const struct bytes *b);
void trace_read(struct sheet *s, const struct bytes *b);
bool recording_file_is(const struct bytes *b);
void recording_file_read(struct sheet *s, const struct bytes *b);
bool blob_is(const struct bytes *b);
void blob_read(struct sheet *s, const struct bytes *b);
bool firmware_is(const struct bytes *b);
void firmware_read(struct sheet *s, const struct bytes *b);
bool index_is(const struct bytes *b);
void index_read(struct sheet *s, const struct bytes *b);
bool shard_is(const struct bytes *b);
void shard_read(struct sheet *s, const struct bytes *b);
bool page_is(const struct bytes *b);
void page_read(struct sheet *s, const struct bytes *b);
bool ring_is(const struct bytes *b);
void ring_read(struct sheet *s, const struct bytes *b);
bool lookup_is(const struct bytes *b);
void lookup_read(struct sheet *s, const struct bytes *b);
bool update_is(const struct bytes *b);
void update_read(struct sheet *s, const struct bytes *b);
bool rows_is(const struct bytes *b);
void rows_read(struct sheet *s, const struct bytes *b);
bool partition_is(const struct bytes *b);
void partition_read(struct sheet *s, const struct bytes *b);
bool exchange_is(const struct bytes *b);
void exchange_read(struct sheet *s, const struct bytes *b);

/* Reads a number of a file at any alignment. */
static inline uint64_t bytes_number(const unsigned char *at, size_t width)
{
	uint64_t value = 0;

	for (size_t i = 0; i < width; i++)
		value |= (uint64_t)at[i] << 8 * i;
	return value;
}

#endif
