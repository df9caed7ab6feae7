// SPDX-License-Identifier: MIT
/*
 * Streams of checkpoints: the first byte says which allocation fails (0: none), the second one the most
 * bytes that a read gives (0: any number), the third is one of WAY_*; the rest is the stream. It is
 * refused with a sentence, or it is a checkpoint that verifies and packs into a stream of the same rows.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "../../runtime/src/base/file.h"
#include "../../runtime/src/checkpoint/open.h"
#include "../../runtime/src/checkpoint/tar.h"
#include "../unit/support/failing_alloc.h"
#include "embeng.h"
#include "fuzz.h"

#define LIMIT ((size_t)16 << 20) /* bytes; an index may name any number of rows */
#define REPACKED_MOST (1u << 20)

#define WAY_SEALED (1u << 0)   /* the sums of headers are put right */
#define WAY_BROKEN (1u << 1)   /* the reader fails where the stream ends */
#define WAY_TOO_MUCH (1u << 2) /* the reader says that it gave more than it could */
#define WAY_NO_ERRNO (1u << 3) /* with WAY_BROKEN: by a number that is no errno */
#define WAY_GOES_ON (1u << 4)  /* other data may follow */
#define WAY_CANCELED (1u << 5) /* the program cancels at the third report */
#define WAY_UNKNOWN (1u << 6)  /* the reader has a flag that is unknown */
#define WAY_LITTLE (1u << 7)   /* few bytes are allowed */

struct source {
	const uint8_t *data;
	size_t left, most;
	uint8_t way;
	uint32_t reports;
};

static int64_t give_bytes(void *arg, void *data, size_t bytes)
{
	struct source *s = arg;
	size_t n = bytes < s->left ? bytes : s->left;

	if (s->way & WAY_TOO_MUCH && !n)
		return (int64_t)bytes + 1;
	if (s->way & WAY_BROKEN && !n)
		return s->way & WAY_NO_ERRNO ? INT64_MIN : -EIO;
	n = s->most && n > s->most ? s->most : n;
	if (n)
		memcpy(data, s->data, n);
	s->data += n;
	s->left -= n;
	return (int64_t)n;
}

static int tell_report(void *arg, const struct embeng_progress *progress)
{
	struct source *s = arg;

	fuzz_check(!progress->total || progress->done <= progress->total, "%s", progress->what);
	return ++s->reports == 3 && s->way & WAY_CANCELED;
}

/* The spool is in memory. */
static int open_memory(const char *path, int flags)
{
	fuzz_check((flags & O_TMPFILE) == O_TMPFILE, "%s", path);
	return memfd_create("spool", MFD_CLOEXEC);
}

static int open_source(struct source *s, struct embeng_checkpoint **c)
{
	const struct embeng_reader from = {
		.size = sizeof(from),
		.read = give_bytes,
		.arg = s,
		.flags = (s->way & WAY_GOES_ON ? EMBENG_READER_GOES_ON : 0) |
			 (s->way & WAY_UNKNOWN ? 8 : 0),
		.most_bytes = s->way & WAY_LITTLE ? 2000 : LIMIT};

	return embeng_checkpoint_open_stream(&from, tell_report, s, c, NULL);
}

static void check_refused(int result, bool starved, uint8_t way)
{
	struct embeng_error error = {.size = sizeof(error)};

	embeng_last_error(&error);
	fuzz_check(error.code == result && strlen(error.text) > 8, "%d, but the error is %d, '%s'",
		   result, error.code, error.text);
	fuzz_check(result == -EBADMSG || result == -ENOTSUP || result == -EFBIG ||
			   (starved && result == -ENOMEM) ||
			   (way & (WAY_BROKEN | WAY_TOO_MUCH) && result == -EIO) ||
			   (way & WAY_CANCELED && result == -ECANCELED) ||
			   (way & WAY_UNKNOWN && result == -EINVAL),
		   "%d: %s", result, error.text);
}

static int64_t take_bytes(void *arg, const void *data, size_t bytes)
{
	struct source *s = arg;

	if (s->left < bytes)
		return -ENOSPC;
	memcpy((uint8_t *)(uintptr_t)s->data + s->most, data, bytes);
	s->most += bytes;
	s->left -= bytes;
	return (int64_t)bytes;
}

/* Packs it, and opens that: another checkpoint of as many bytes. */
static void repack(const struct embeng_checkpoint *c)
{
	uint8_t *data = fuzz_memory(REPACKED_MOST);
	struct source to = {.data = data, .left = REPACKED_MOST};
	const struct embeng_writer w = {.size = sizeof(w), .write = take_bytes, .arg = &to};
	struct embeng_checkpoint *again = NULL;
	int result = embeng_checkpoint_pack(c, &w, NULL, NULL);

	if (!result) {
		struct source from = {.data = data, .left = to.most};

		result = open_source(&from, &again);
		fuzz_check(!result && !from.left, "%d", result);
		fuzz_check(again->index.bytes == c->index.bytes, "as many bytes");
		embeng_checkpoint_close(again);
	} else {
		fuzz_check(result == -ENOSPC, "%d", result);
	}
	free(data);
}

/* Headers whose sums are right lead further. */
static void seal_headers(uint8_t *data, size_t size)
{
	for (size_t at = 0; at + TAR_BLOCK <= size; at += TAR_BLOCK) {
		unsigned int sum = 0;

		if (memcmp(data + at + 257, "ustar", 5) != 0)
			continue;
		memset(data + at + 148, ' ', 8);
		for (size_t i = 0; i < TAR_BLOCK; i++)
			sum += data[at + i];
		snprintf((char *)data + at + 148, 7, "%06o", sum);
	}
}

static void try_stream(uint8_t *data, size_t size, uint8_t nth, uint8_t most, uint8_t way)
{
	struct source s = {.data = data, .left = size, .most = most, .way = way};
	struct embeng_checkpoint *c = NULL;
	int result;
	bool starved;

	scarce_begin(nth);
	scarce_limit(LIMIT);
	result = open_source(&s, &c);
	starved = scarce_end();
	if (result) {
		fuzz_check(!c, "%d", result);
		check_refused(result, starved, way);
		return;
	}
	fuzz_check(!embeng_checkpoint_verify(c, NULL, NULL), "what was verified");
	repack(c);
	embeng_checkpoint_close(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct file_ops ops = file_ops_system;
	uint8_t *copy;

	if (size < 3)
		return 0;
	ops.open = open_memory;
	file_ops = &ops;
	copy = fuzz_memory(size - 3);
	memcpy(copy, data + 3, size - 3);
	if (data[2] & WAY_SEALED)
		seal_headers(copy, size - 3);
	try_stream(copy, size - 3, data[0], data[1], data[2]);
	free(copy);
	file_ops = &file_ops_system;
	return 0;
}
