// SPDX-License-Identifier: MIT
/*
 * Reads bytes of an open checkpoint and checks them against their checksums. A chunk that was found
 * good is not checked again, unless embeng_checkpoint_verify() asks for it. The checksums of a shard are
 * read and checked themselves when one of its chunks is used first, and only those around it.
 *
 * The notes of good chunks belong to the checkpoint and are atomic, so any number of threads may
 * read.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../engine/hash/crc32c.h"
#include "../../../engine/hash/sha256.h"
#include "base/error.h"
#include "base/file.h"
#include "model/model.h"
#include "open.h"
#include "stream.h"

#define COPY_BYTES 16384u /* on the stack of whoever checks */

int copy_bytes(const struct embeng_checkpoint *c, size_t file, uint64_t offset, uint64_t bytes,
	       void *to)
{
	int ret = shard_use(c, file);

	return ret ? ret : shard_copy(c, file, shard_map(c, file), offset, bytes, to);
}

void checkpoint_read_mapped(struct embeng_checkpoint *c)
{
	c->mapped = true;
}

static int crc_of(const struct embeng_checkpoint *c, size_t file, uint64_t offset, uint64_t bytes,
		  uint32_t *crc)
{
	char copy[COPY_BYTES];
	int ret = 0;

	*crc = 0;
	if (c->mapped) {
		*crc = crc32c(0, shard_map(c, file) + offset, bytes);
		return 0;
	}
	while (!ret && bytes) {
		uint64_t n = bytes < sizeof(copy) ? bytes : sizeof(copy);

		ret = copy_bytes(c, file, offset, n, copy);
		*crc = crc32c(*crc, copy, n);
		offset += n;
		bytes -= n;
	}
	return ret;
}

static int bad_chunk(const struct embeng_checkpoint *c, size_t file, uint64_t offset,
		     uint64_t bytes)
{
	char text[80];

	snprintf(text, sizeof(text), "the %" PRIu64 " bytes from there do not match their checksum",
		 bytes);
	return shard_error(c, file, -EBADMSG, offset, text);
}

/* The shard is open. */
static bool is_good(const struct embeng_checkpoint *c, size_t file, uint64_t note)
{
	return atomic_load_explicit(&c->shards->of[file].good[note], memory_order_relaxed);
}

/* Bytes of a file and their checksum; those that match are noted. */
static int check_bytes(const struct embeng_checkpoint *c, size_t file, uint64_t offset,
		       uint64_t bytes, uint32_t want, uint64_t note)
{
	uint32_t crc;
	int ret = crc_of(c, file, offset, bytes, &crc);

	if (ret)
		return ret;
	if (crc != want)
		return bad_chunk(c, file, offset, bytes);
	atomic_store_explicit(&c->shards->of[file].good[note], 1, memory_order_relaxed);
	return 0;
}

/* The second part of a shard's chunk table, whose checksum is in the index. */
static int check_table_end(const struct embeng_checkpoint *c, size_t file)
{
	const struct index_file *f = &c->index.files[file];
	uint64_t chunks = file_chunks(&c->index, f), parts = table_chunks(&c->index, f);
	uint64_t note = chunks + parts;

	if (is_good(c, file, note))
		return 0;
	return check_bytes(c, file, f->table_at + sizeof(uint32_t) * chunks,
			   sizeof(uint32_t) * parts, f->table_crc, note);
}

/* Chunk @part of the first part, whose checksum is in the second. */
static int check_table_part(const struct embeng_checkpoint *c, size_t file, uint64_t part)
{
	const struct index_file *f = &c->index.files[file];
	uint64_t chunks = file_chunks(&c->index, f), most = c->index.chunk_bytes;
	uint64_t note = chunks + part, left = sizeof(uint32_t) * chunks - part * most;
	uint32_t want = 0;
	int ret;

	if (is_good(c, file, note))
		return 0;
	ret = check_table_end(c, file);
	ret = ret ? ret
		  : copy_bytes(c, file, f->table_at + sizeof(uint32_t) * (chunks + part),
			       sizeof(want), &want);
	return ret ? ret
		   : check_bytes(c, file, f->table_at + part * most, left < most ? left : most,
				 want, note);
}

/* The checksum that a chunk must have; what holds it is read at the first use. */
static int find_sum(const struct embeng_checkpoint *c, size_t file, uint64_t chunk, uint32_t *sum)
{
	const struct index_file *f = &c->index.files[file];
	uint64_t at = sizeof(*sum) * chunk;
	int ret;

	if (!f->table_at) {
		*sum = c->index.crcs[f->first_chunk + chunk];
		return 0;
	}
	ret = check_table_part(c, file, at / c->index.chunk_bytes);
	return ret ? ret : copy_bytes(c, file, f->table_at + at, sizeof(*sum), sum);
}

int check_chunk(const struct embeng_checkpoint *c, size_t file, uint64_t chunk)
{
	const struct index_file *f = &c->index.files[file];
	uint64_t most = c->index.chunk_bytes, offset = chunk * most;
	uint64_t left = (f->table_at ? f->table_at : f->bytes) - offset;
	uint32_t want = 0;
	int ret = shard_use(c, file);

	if (ret || is_good(c, file, chunk))
		return ret;
	ret = find_sum(c, file, chunk, &want);
	return ret ? ret : check_bytes(c, file, offset, left < most ? left : most, want, chunk);
}

uint32_t checkpoint_chunk_shift(const struct embeng_checkpoint *c)
{
	return (uint32_t)__builtin_ctzll(c->index.chunk_bytes);
}

int checkpoint_check(const struct embeng_checkpoint *c, const struct checkpoint_piece *piece,
		     uint64_t offset, uint64_t bytes)
{
	uint64_t first = (piece->offset + offset) / c->index.chunk_bytes;
	uint64_t last = bytes ? (piece->offset + offset + bytes - 1) / c->index.chunk_bytes : first;
	int ret = 0;

	for (uint64_t chunk = first; !ret && bytes && chunk <= last; chunk++)
		ret = check_chunk(c, piece->file, chunk);
	return ret;
}

int checkpoint_find_pieces(const struct embeng_checkpoint *c, int table, int slot,
			   const struct checkpoint_piece **pieces)
{
	const struct embeng_model *m = c->index.model;

	if (table < 0 || (size_t)table >= m->table_count)
		return fail(-ENOENT, "the checkpoint has no table %d, it has %zu", table,
			    m->table_count);
	if (slot < 0 || (size_t)slot > m->tables[table].slot_count)
		return fail(-ENOENT, "table %s of the checkpoint has no slot %d, it has %zu",
			    m->tables[table].name, slot - 1, m->tables[table].slot_count);
	*pieces = c->tables[table].pieces + (size_t)slot * c->tables[table].count;
	return (int)c->tables[table].count;
}

/* Opens the shards that a table is in, and tells its pieces where they are. */
static int place_pieces(const struct embeng_checkpoint *c, struct table_files *files, size_t arrays)
{
	int ret = 0;

	for (size_t k = 0; !ret && k < files->count; k++)
		ret = shard_use(c, files->pieces[k].file);
	if (ret)
		return ret;
	pthread_mutex_lock(&c->shards->lock);
	if (!atomic_load_explicit(&files->placed, memory_order_relaxed)) {
		for (size_t k = 0; k < arrays * files->count; k++)
			piece_place(c, &files->pieces[k]);
		atomic_store_explicit(&files->placed, true, memory_order_release);
	}
	pthread_mutex_unlock(&c->shards->lock);
	return 0;
}

int checkpoint_pieces(const struct embeng_checkpoint *c, int table, int slot,
		      const struct checkpoint_piece **pieces)
{
	int count = checkpoint_find_pieces(c, table, slot, pieces), ret = 0;

	if (count >= 0 && !atomic_load_explicit(&c->tables[table].placed, memory_order_acquire))
		ret = place_pieces(c, &c->tables[table],
				   1 + c->index.model->tables[table].slot_count);
	return ret ? ret : count;
}

/* Whether @row is a later piece's; pieces stand host by host. */
static bool lies_behind(const struct checkpoint_piece *piece, int64_t row)
{
	int64_t host, other;

	if (piece->stride == 1)
		return row >= piece->first + piece->count;
	host = row % piece->stride;
	other = piece->first % piece->stride;
	return host > other ||
	       (host == other && row > piece->first + (piece->count - 1) * piece->stride);
}

const struct checkpoint_piece *checkpoint_piece_of(const struct checkpoint_piece *pieces,
						   size_t count, int64_t row)
{
	size_t low = 0, high = count - 1;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (lies_behind(&pieces[middle], row))
			low = middle + 1;
		else
			high = middle;
	}
	return &pieces[low];
}

static int tell_verified(embeng_progress_fn progress, void *arg, uint64_t done, uint64_t total)
{
	const struct embeng_progress p = {.what = "verify", .done = done, .total = total};

	if (progress && progress(arg, &p))
		return fail(-ECANCELED,
			    "embeng_checkpoint_verify: canceled after %" PRIu64 " of %" PRIu64
			    " bytes",
			    done, total);
	return 0;
}

/* The sum over shards from that of entry @file on. */
static uint64_t count_bytes_from(const struct embeng_checkpoint *c, size_t file)
{
	uint64_t bytes = 0;

	for (; file < c->index.file_count; file = next_home(&c->index, file))
		bytes += c->index.files[file].bytes;
	return bytes;
}

/* The digest of a shard's checksums, which the index has as well. */
static int check_table_digest(const struct embeng_checkpoint *c, size_t file)
{
	const struct index_file *f = &c->index.files[file];
	uint64_t at = f->table_at, left = sizeof(uint32_t) * file_chunks(&c->index, f);
	char copy[COPY_BYTES], digits[SHA256_DIGITS + 1];
	unsigned char digest[SHA256_BYTES];
	struct sha256 sha;
	int ret = 0;

	sha256_init(&sha);
	for (uint64_t n; !ret && at && left; at += n, left -= n) {
		n = left < sizeof(copy) ? left : sizeof(copy);
		ret = copy_bytes(c, file, at, n, copy);
		sha256_update(&sha, copy, n);
	}
	if (ret || !f->table_at)
		return ret;
	sha256_final(&sha, digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(digits + 2 * i, 3, "%02x", digest[i]);
	return strcmp(digits, f->table_sha) ? shard_error(c, file, -EBADMSG, f->table_at,
							  "the checksums from there do not match "
							  "their SHA-256")
					    : 0;
}

/* The last chunk comes with the chunk table. */
static int verify_shard(const struct embeng_checkpoint *c, size_t file, uint64_t *done,
			uint64_t total, embeng_progress_fn progress, void *arg)
{
	const struct index_file *f = &c->index.files[file];
	uint64_t chunks = file_chunks(&c->index, f), end = *done + f->bytes;
	int ret = check_table_digest(c, file);

	for (uint64_t k = 0; !ret && k < chunks; k++) {
		ret = check_chunk(c, file, k);
		*done = k + 1 < chunks ? *done + c->index.chunk_bytes : end;
		ret = ret ? ret : tell_verified(progress, arg, *done, total);
	}
	return ret;
}

int checkpoint_verify_shard(const struct embeng_checkpoint *c, size_t home)
{
	uint64_t done = 0;

	return verify_shard(c, home, &done, c->index.files[home].bytes, NULL, NULL);
}

/* All of it is checked again: what was right once is not what was asked. */
static void forget_notes(const struct embeng_checkpoint *c, size_t home)
{
	const uint64_t notes = shard_notes(&c->index, &c->index.files[home]);

	for (uint64_t k = 0; shard_map(c, home) && k < notes; k++)
		atomic_store_explicit(&c->shards->of[home].good[k], 0, memory_order_relaxed);
}

int checkpoint_verify_from(const struct embeng_checkpoint *c, size_t file,
			   embeng_progress_fn progress, void *arg)
{
	uint64_t done = 0, total = count_bytes_from(c, file);
	int ret;

	for (size_t i = 0; i < c->index.file_count; i = next_home(&c->index, i))
		forget_notes(c, i);
	ret = tell_verified(progress, arg, 0, total);
	for (size_t i = file; !ret && i < c->index.file_count; i = next_home(&c->index, i))
		ret = verify_shard(c, i, &done, total, progress, arg);
	return ret;
}

int embeng_checkpoint_verify(const struct embeng_checkpoint *c, embeng_progress_fn progress,
			     void *arg)
{
	if (!c)
		return fail(-EINVAL, "embeng_checkpoint_verify: no checkpoint given");
	return checkpoint_verify_from(c, 0, progress, arg);
}
