// SPDX-License-Identifier: MIT
/*
 * Keeps the shards of a stream while they are checked and read: one after another in one file that has
 * no name, so that it ends with the process, and is mapped when all are there.
 *
 * A struct spool belongs to the checkpoint that is opened from it. The file is open while it is
 * written; after that the map alone keeps it.
 */
#define _GNU_SOURCE /* O_TMPFILE, secure_getenv */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "stream.h"

#define SPOOL_FOLDER "/var/tmp" /* for what is too large for memory, which /tmp may be */

#define SPOOL_ALIGN SAFETENSORS_ALIGN /* where shards begin: rows are read where they lie */

/* @path: name of the file in sentences; @at: bytes in it */
struct spooling {
	const char *folder;
	char *path;
	int fd;
	uint64_t at;
};

static const char *choose_folder(const struct embeng_reader *from)
{
	const char *folder = from->spool ? from->spool : secure_getenv("TMPDIR");

	return folder && *folder ? folder : SPOOL_FOLDER;
}

/* For file systems that make no file without a name: it has one for a moment, for its owner alone. */
static int open_named_file(const char *folder)
{
	char name[40], *path;
	uint64_t nonce;
	int fd;

	if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
		return fail(-EIO, "%s: no random number for the name of a spool", folder);
	snprintf(name, sizeof(name), ".embeng-%016" PRIx64 ".spool", nonce);
	path = file_path(folder, name);
	fd = path ? file_open(path, O_RDWR | O_CREAT | O_EXCL) : -ENOMEM;
	if (fd >= 0) {
		int ret = fchmod(fd, S_IRUSR | S_IWUSR) ? -errno : 0;

		ret = ret ? ret : file_remove(path);
		if (ret) {
			file_ops->remove(path);
			file_ops->close(fd);
			fd = fail(ret, "%s: cannot be made a file without a name", path);
		}
	}
	free(path);
	return fd;
}

static int open_spool(struct spooling *s)
{
	s->fd = file_ops->open(s->folder, O_TMPFILE | O_RDWR | O_EXCL);
	if (s->fd == -EOPNOTSUPP || s->fd == -EISDIR) {
		s->fd = open_named_file(s->folder);
		return s->fd < 0 ? s->fd : 0;
	}
	return s->fd >= 0 ? 0
			  : fail(s->fd,
				 "%s: the rows of a stream cannot be kept there: %s; name another "
				 "folder as spool of struct embeng_reader, or in TMPDIR",
				 s->folder, strerror(-s->fd));
}

/* The shards are kept; all else in a stream is not part of its checkpoint. */
static int take_spooled_shard(void *arg, struct stream_file *file, bool *wanted)
{
	static const char zeros[SPOOL_ALIGN];
	struct spooling *s = arg;
	uint64_t between = (SPOOL_ALIGN - s->at % SPOOL_ALIGN) % SPOOL_ALIGN;

	*wanted = is_shard_name(file->name);
	if (!*wanted)
		return 0;
	s->at += between;
	file->spooled = s->at;
	return file_write(s->fd, s->path, zeros, between);
}

static int spool_bytes(void *arg, const char *data, uint64_t bytes)
{
	struct spooling *s = arg;

	s->at += bytes;
	return file_write(s->fd, s->path, data, bytes);
}

static int end_of_shard(void *arg)
{
	(void)arg;
	return 0;
}

/* A stream of no shards has no map; its index is refused later. */
static int map_spool(const struct spooling *s, struct stream_in *in, struct spool **out)
{
	struct spool *spool = calloc(1, sizeof(*spool));
	int ret = 0;

	if (!spool)
		return fail(-ENOMEM, "%s: no memory for a spool", in->what);
	spool->bytes = s->at;
	if (spool->bytes)
		ret = file_map_open(s->fd, s->path, spool->bytes, &spool->map);
	if (ret) {
		free(spool);
		return ret;
	}
	spool->files = in->files;
	spool->file_count = in->file_count;
	in->files = NULL;
	in->file_count = 0;
	*out = spool;
	return 0;
}

int spool_receive(struct stream_in *in, struct spool **out)
{
	struct spooling s = {.folder = choose_folder(&in->from)};
	int ret;

	s.path = file_path(s.folder, "(the spool of a stream)");
	ret = s.path ? open_spool(&s) : -ENOMEM;
	if (!ret) {
		in->take = take_spooled_shard;
		in->put = spool_bytes;
		in->end = end_of_shard;
		in->arg = &s;
		ret = stream_receive(in);
		ret = ret ? ret : map_spool(&s, in, out);
		file_ops->close(s.fd);
	}
	free(s.path);
	return ret;
}

void spool_free(struct spool *spool)
{
	if (!spool)
		return;
	if (spool->map)
		munmap((void *)(uintptr_t)spool->map, spool->bytes);
	free(spool->files);
	free(spool);
}
