// SPDX-License-Identifier: MIT
/*
 * Writes the members of a stream through a function of the program: the comment in front, files one
 * after another, the index, and the end mark. Nothing is kept but how far the stream is.
 *
 * A struct stream_out lives for one call of the API. The program's function is called without a lock
 * of this file.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/error.h"
#include "stream.h"

int stream_out_take(struct stream_out *out, const struct embeng_writer *to, const char *what)
{
	int ret = config_take(&out->to, to, sizeof(out->to), "embeng_writer");

	out->what = what;
	if (!ret && !out->to.write)
		ret = fail(-EINVAL, "%s: the writer has no function write", what);
	return ret;
}

static int refuse_taken(const struct stream_out *out, int64_t taken, size_t bytes)
{
	if (taken >= 0)
		return fail(-EIO,
			    "%s: " STREAM_NAME ", byte %" PRIu64 ": the writer says that it took "
			    "%" PRId64 " bytes of %zu; it must take at least one, or return an "
			    "error",
			    out->what, out->at, taken, bytes);
	if (taken < -4095)
		return fail(-EIO,
			    "%s: " STREAM_NAME ", byte %" PRIu64 ": the writer returned %" PRId64
			    ", which is no errno",
			    out->what, out->at, taken);
	return fail((int)taken, "%s: " STREAM_NAME ", byte %" PRIu64 ": the writer failed: %s",
		    out->what, out->at, strerror((int)-taken));
}

static int write_to_stream(struct stream_out *out, const char *data, uint64_t bytes)
{
	while (bytes) {
		size_t most = bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX;
		int64_t taken = out->to.write(out->to.arg, data, most);

		if (taken <= 0 || (uint64_t)taken > most)
			return refuse_taken(out, taken, most);
		out->at += (uint64_t)taken;
		data += taken;
		bytes -= (uint64_t)taken;
	}
	return 0;
}

static int write_stream_zeros(struct stream_out *out, uint64_t bytes)
{
	static const char zeros[16 * TAR_BLOCK];
	int ret = 0;

	for (uint64_t n; !ret && bytes; bytes -= n) {
		n = bytes < sizeof(zeros) ? bytes : sizeof(zeros);
		ret = write_to_stream(out, zeros, n);
	}
	return ret;
}

static int write_member_header(struct stream_out *out, const char *name, uint64_t bytes,
			       enum tar_kind kind)
{
	struct tar_member member = {.bytes = bytes, .kind = kind};
	char block[TAR_BLOCK];
	int ret = write_stream_zeros(out, out->left + out->padding);

	if (ret)
		return ret;
	snprintf(member.name, sizeof(member.name), "%s", name);
	tar_write_header(&member, block);
	out->left = bytes;
	out->padding = tar_padding(bytes);
	return write_to_stream(out, block, sizeof(block));
}

int stream_put(struct stream_out *out, const void *data, uint64_t bytes)
{
	int ret = write_to_stream(out, data, bytes);

	if (ret)
		return ret;
	out->left -= bytes;
	if (!out->left) {
		ret = write_stream_zeros(out, out->padding);
		out->padding = 0;
	}
	return ret;
}

/* A record of a pax header tells its own length, whose digits count. */
static int make_record(char *text, size_t size, const char *value)
{
	int length = 0, before;

	do {
		before = length;
		length = snprintf(text, size, "%d comment=%s\n", before, value);
	} while (length != before);
	return length;
}

int stream_begin(struct stream_out *out, uint64_t bytes)
{
	char value[64], text[96];
	int length, ret;

	snprintf(value, sizeof(value), STREAM_SCHEMA " bytes=%" PRIu64, bytes);
	length = make_record(text, sizeof(text), value);
	ret = write_member_header(out, "pax_global_header", (uint64_t)length, TAR_NOTE_OF_ALL);
	return ret ? ret : stream_put(out, text, (uint64_t)length);
}

int stream_member(struct stream_out *out, const char *name, uint64_t bytes)
{
	return write_member_header(out, name, bytes, TAR_FILE);
}

int stream_finish(struct stream_out *out, const struct index *index)
{
	size_t length;
	char *text;
	int ret = index_write(index, &text, &length);

	if (ret)
		return ret;
	ret = stream_member(out, INDEX_NAME, length);
	ret = ret ? ret : stream_put(out, text, length);
	free(text);
	return ret ? ret : write_stream_zeros(out, 2 * (uint64_t)TAR_BLOCK);
}
