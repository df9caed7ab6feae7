// SPDX-License-Identifier: MIT
/*
 * The table of formats, in the order in which they are tried: those with a magic first. To add a
 * format is to add a line.
 */
#include "readers.h"

#include <string.h>

const struct reader readers[] = {
	{"devcoredump", "a dump of the driver, of a hang", dump_is, dump_read},
	{"trace", "trace events of the driver, as text", trace_is, trace_read},
	{"recording", "a recording of a device", recording_file_is, recording_file_read},
	{"blob", "a model blob", blob_is, blob_read},
	{"firmware", "a firmware image", firmware_is, firmware_read},
	{"index", "the index of a checkpoint", index_is, index_read},
	{"shard", "a shard of a checkpoint", shard_is, shard_read},
	{"registers", "a copy of a device's registers", page_is, page_read},
	{"rows", "the descriptor of a command on rows", rows_is, rows_read},
	{"lookup", "the descriptor of a LOOKUP", lookup_is, lookup_read},
	{"update", "the descriptor of an UPDATE", update_is, update_read},
	{"partition", "the descriptor of a PARTITION", partition_is, partition_read},
	{"exchange", "the descriptor of a UNIQUE, POOL or SUM", exchange_is, exchange_read},
	{"ring", "captured ring memory of a queue", ring_is, ring_read},
};

const size_t reader_count = sizeof(readers) / sizeof(readers[0]);

const struct reader *reader_find(const struct bytes *b)
{
	for (size_t i = 0; i < reader_count; i++) {
		if (readers[i].is(b))
			return &readers[i];
	}
	return NULL;
}

const struct reader *reader_by_name(const char *name)
{
	for (size_t i = 0; i < reader_count; i++) {
		if (!strcmp(readers[i].name, name))
			return &readers[i];
	}
	return NULL;
}
