// SPDX-License-Identifier: MIT
/*
 * Copies bytes out of a shard that is mapped, and says where a shard is wrong. It is apart because
 * shards are opened by it, and read by it once they are open.
 *
 * Nothing is kept, and no lock is needed.
 */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "model/model.h"
#include "open.h"
#include "stream.h"

/* The byte of the stream is what its reader can look at; a shard may have several tables. */
static int spooled_shard_error(const struct embeng_checkpoint *c, size_t home, int code,
			       uint64_t offset, const char *what)
{
	const struct index_file *file = &c->index.files[home];
	const struct stream_file *there = stream_find(c->spool->files, c->spool->file_count,
						      file->name);

	return fail(code, "%s, byte %" PRIu64 ": table %s%s, shard %s, offset %" PRIu64 ": %s",
		    c->folder, there->at + offset, c->index.model->tables[file->table].name,
		    file->next ? " and others" : "", file->name, offset, what);
}

/* Sentences name files without memory for a path: the folder is said once. */
int shard_error(const struct embeng_checkpoint *c, size_t home, int code, uint64_t offset,
		const char *what)
{
	if (c->spool)
		return spooled_shard_error(c, home, code, offset, what);
	return fail(code, "%s/%s: offset %" PRIu64 ": %s", c->folder, c->index.files[home].name,
		    offset, what);
}

int shard_copy(const struct embeng_checkpoint *c, size_t home, const char *map, uint64_t offset,
	       uint64_t bytes, void *to)
{
	if (c->mapped) {
		memcpy(to, map + offset, bytes);
		return 0;
	}
	if (!bytes || !file_ops->copy(to, map + offset, bytes))
		return 0;
	return shard_error(c, home, -EIO, offset,
			   "cannot be read; the file was cut, or its disk fails");
}
