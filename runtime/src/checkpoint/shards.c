// SPDX-License-Identifier: MIT
/*
 * Opens the shards of a checkpoint: maps each, and checks its header. It is apart because it decides
 * when that is done. If there are up to SHARDS_AT_ONCE shards, all are opened with the index, so
 * that the checkpoint stays whole when a save replaces it. If there are more, each is opened when it is
 * used first: a host of many reads only its own rows, and a process may have no more than some 65,000
 * maps.
 *
 * Shards stay open until the checkpoint is closed. A lock of their own is held while one is opened;
 * those that are open are found without it.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/file.h"
#include "open.h"
#include "stream.h"

/* A fuzzer's checkpoints have few. */
#ifdef EMBENG_SMALL_PIECES
#define SHARDS_AT_ONCE 1u
#else
#define SHARDS_AT_ONCE 1024u
#endif

static int find_spooled_shard(const struct embeng_checkpoint *c, size_t home, const char **map)
{
	const struct stream_file *there = NULL;
	int ret = stream_find_shard(c->spool->files, c->spool->file_count, &c->index, home, &there);

	if (!ret)
		*map = c->spool->map + there->spooled;
	return ret;
}

static int map_shard(const struct embeng_checkpoint *c, size_t home, const char **map)
{
	char *path;
	int ret;

	if (c->spool)
		return find_spooled_shard(c, home, map);
	path = file_path(c->folder, c->index.files[home].name);
	ret = path ? file_map(path, c->index.files[home].bytes, map) : -ENOMEM;
	free(path);
	return ret;
}

static void unmap_shard(const struct embeng_checkpoint *c, size_t home, const char *map)
{
	if (map && !c->spool)
		munmap((void *)(uintptr_t)map, c->index.files[home].bytes);
}

/* The header in memory of our own: a shard that somebody cuts now is -EIO, no signal. */
static int copy_header(const struct embeng_checkpoint *c, size_t home, const char *map,
		       const char *path, char **header, uint64_t *bytes)
{
	const uint64_t all = c->index.files[home].bytes;
	uint64_t start = 0;
	char *made;
	int ret = shard_copy(c, home, map, 0, all < 8 ? 0 : 8, &start);

	ret = ret ? ret : safetensors_header_bytes(&start, all, path, bytes);
	if (ret)
		return ret;
	made = calloc(1, *bytes + 1);
	if (!made)
		return fail(-ENOMEM, "%s: no memory for its header", path);
	ret = shard_copy(c, home, map, 8, *bytes, made);
	if (ret)
		free(made);
	else
		*header = made;
	return ret;
}

static int check_shard_header(const struct embeng_checkpoint *c, size_t home, const char *map,
			      const char *path)
{
	struct shard_tensors all;
	uint64_t bytes;
	char *header;
	int ret = copy_header(c, home, map, path, &header, &bytes);

	if (ret)
		return ret;
	ret = shard_tensors_make(&c->index, home, &all);
	if (!ret) {
		ret = safetensors_check(header, bytes, c->index.files[home].bytes, path,
					all.tensors, all.count);
		shard_tensors_free(&all);
	}
	free(header);
	return ret;
}

/* Checks the header of a shard that is mapped, and lets readers have it. */
static int accept_shard(const struct embeng_checkpoint *c, size_t home, const char *map)
{
	struct checkpoint_shard *shard = &c->shards->of[home];
	char *path = file_path(c->folder, c->index.files[home].name);
	int ret = path ? check_shard_header(c, home, map, path) : -ENOMEM;

	free(path);
	if (ret)
		return ret;
	shard->good = calloc(shard_notes(&c->index, &c->index.files[home]), sizeof(*shard->good));
	if (!shard->good)
		return fail(-ENOMEM, "%s: no memory to read it", c->folder);
	atomic_store_explicit(&shard->map, map, memory_order_release);
	return 0;
}

/* With the lock held, which a thread may have waited for until another opened the shard. */
static int open_shard(const struct embeng_checkpoint *c, size_t home)
{
	const char *map = NULL;
	int ret;

	if (atomic_load_explicit(&c->shards->of[home].map, memory_order_relaxed))
		return 0;
	ret = map_shard(c, home, &map);
	if (ret == -ENOENT && c->opened)
		return fail(-ESTALE,
			    "%s/%s: is gone: it was removed, by a save that replaced this "
			    "checkpoint or by somebody else; open the checkpoint again",
			    c->folder, c->index.files[home].name);
	ret = ret ? ret : accept_shard(c, home, map);
	if (ret)
		unmap_shard(c, home, map);
	return ret;
}

int shard_use(const struct embeng_checkpoint *c, size_t home)
{
	int ret;

	if (atomic_load_explicit(&c->shards->of[home].map, memory_order_acquire))
		return 0;
	pthread_mutex_lock(&c->shards->lock);
	ret = open_shard(c, home);
	pthread_mutex_unlock(&c->shards->lock);
	return ret;
}

/* All are mapped before the first is read: a save may be removing them. */
static int open_all_shards(const struct embeng_checkpoint *c)
{
	const char **maps = calloc(c->index.file_count + 1, sizeof(*maps));
	int ret = maps ? 0 : fail(-ENOMEM, "no memory to open a checkpoint");

	for (size_t i = 0; !ret && i < c->index.file_count; i = next_home(&c->index, i))
		ret = map_shard(c, i, &maps[i]);
	for (size_t i = 0; !ret && i < c->index.file_count; i = next_home(&c->index, i))
		ret = accept_shard(c, i, maps[i]);
	for (size_t i = 0; maps && ret && i < c->index.file_count; i = next_home(&c->index, i)) {
		if (!shard_map(c, i))
			unmap_shard(c, i, maps[i]);
	}
	free(maps);
	return ret;
}

int shards_open(struct embeng_checkpoint *c)
{
	size_t count = c->index.file_count;

	c->shards = calloc(1, sizeof(*c->shards) + (count + 1) * sizeof(*c->shards->of));
	if (!c->shards)
		return fail(-ENOMEM, "no memory to open a checkpoint");
	pthread_mutex_init(&c->shards->lock, NULL);
	return shards_count(c) > SHARDS_AT_ONCE ? 0 : open_all_shards(c);
}

void shards_close(struct embeng_checkpoint *c)
{
	if (!c->shards)
		return;
	for (size_t i = 0; i < c->index.file_count; i++) {
		unmap_shard(c, i, shard_map(c, i));
		free((void *)c->shards->of[i].good);
	}
	pthread_mutex_destroy(&c->shards->lock);
	free(c->shards);
	c->shards = NULL;
}

size_t shards_count(const struct embeng_checkpoint *c)
{
	size_t count = 0;

	for (size_t i = 0; i < c->index.file_count; i = next_home(&c->index, i))
		count++;
	return count;
}
