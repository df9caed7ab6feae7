// SPDX-License-Identifier: MIT
/*
 * Writes an open checkpoint into a stream: its shards as they are, each checked before, other files
 * that go along, and an index that knows of no earlier checkpoints.
 *
 * Buffers live for one call. The checkpoint is only read, so any number of threads may pack it.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "open.h"
#include "stream_files.h"

#define WHAT "embeng_checkpoint_pack"
#define BUFFER_BYTES (256u << 10)

struct packing {
	const struct embeng_checkpoint *c;
	struct stream_out out;
	struct embeng_pack_options options;
	char *buffer;
	uint64_t done;
};

static int tell_packed(const struct packing *p)
{
	const struct embeng_progress progress = {
		.what = "pack", .done = p->done, .total = p->c->index.bytes};

	if (p->options.progress && p->options.progress(p->options.progress_arg, &progress))
		return fail(-ECANCELED,
			    WHAT ": canceled after %" PRIu64 " of %" PRIu64
				 " bytes; the stream ends within a checkpoint",
			    p->done, progress.total);
	return 0;
}

static int pack_shard(struct packing *p, size_t home)
{
	const struct index_file *file = &p->c->index.files[home];
	int ret = checkpoint_verify_shard(p->c, home);

	ret = ret ? ret : stream_member(&p->out, file->name, file->bytes);
	for (uint64_t at = 0, n; !ret && at < file->bytes; at += n) {
		n = file->bytes - at < BUFFER_BYTES ? file->bytes - at : BUFFER_BYTES;
		ret = copy_bytes(p->c, home, at, n, p->buffer);
		ret = ret ? ret : stream_put(&p->out, p->buffer, n);
		p->done += n;
		ret = ret ? ret : tell_packed(p);
	}
	return ret;
}

static int pack_open_file(struct packing *p, int fd, const char *path, const char *name)
{
	uint64_t bytes, left;
	int ret = file_ops->size(fd, &bytes);

	if (ret)
		return fail(ret, "%s: cannot be read: %s", path, strerror(-ret));
	ret = stream_member(&p->out, name, bytes);
	for (left = bytes; !ret && left;) {
		int64_t n = file_ops->read(fd, p->buffer,
					   left < BUFFER_BYTES ? left : BUFFER_BYTES);

		if (n <= 0)
			return n ? fail((int)n, "%s: cannot be read: %s", path, strerror((int)-n))
				 : fail(-EBADMSG, "%s: got shorter while it was read", path);
		ret = stream_put(&p->out, p->buffer, (uint64_t)n);
		left -= (uint64_t)n;
	}
	return ret;
}

/* A file that is not there is left out. */
static int pack_other_file(struct packing *p, const char *name)
{
	char *path = file_path(p->c->folder, name);
	int fd, ret;

	if (!path)
		return -ENOMEM;
	fd = file_ops->open(path, O_RDONLY);
	if (fd < 0) {
		ret = fd == -ENOENT ? 0 : fail(fd, "%s: cannot be opened: %s", path, strerror(-fd));
	} else {
		ret = pack_open_file(p, fd, path, name);
		file_ops->close(fd);
	}
	free(path);
	return ret;
}

static int pack_all(struct packing *p)
{
	struct index index = p->c->index;
	int ret = stream_begin(&p->out, index.bytes);

	ret = ret ? ret : tell_packed(p);
	for (size_t i = 0; !ret && i < index.file_count; i = next_home(&index, i))
		ret = pack_shard(p, i);
	for (size_t i = 0; !ret && i < p->options.file_count; i++)
		ret = pack_other_file(p, p->options.files[i]);
	index.earlier = NULL;
	index.earlier_count = 0;
	return ret ? ret : stream_finish(&p->out, &index);
}

static int pack_checkpoint(struct packing *p, const struct embeng_writer *to,
			   const struct embeng_pack_options *options)
{
	int ret = p->c ? stream_out_take(&p->out, to, WHAT)
		       : fail(-EINVAL, WHAT ": no checkpoint given");

	ret = ret ? ret : stream_take_options(&p->options, options, WHAT);
	if (!ret && p->c->spool && p->options.file_count)
		ret = fail(-EINVAL,
			   WHAT ": the checkpoint came as a stream, and has no folder with "
				"other files");
	if (ret)
		return ret;
	p->buffer = malloc(BUFFER_BYTES);
	ret = p->buffer ? pack_all(p) : fail(-ENOMEM, WHAT ": no memory to copy rows");
	free(p->buffer);
	return ret;
}

int embeng_checkpoint_pack(const struct embeng_checkpoint *checkpoint,
			   const struct embeng_writer *to,
			   const struct embeng_pack_options *options, struct embeng_error *error)
{
	struct packing p = {.c = checkpoint};
	int ret = pack_checkpoint(&p, to, options);

	if (ret)
		give_error(error);
	return ret;
}
