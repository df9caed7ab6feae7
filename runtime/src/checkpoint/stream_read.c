// SPDX-License-Identifier: MIT
/*
 * Reads a stream from a function of the program, member by member, checks all that is not covered by
 * the checksums of the index, and hands the bytes of files to whoever keeps them: a spool or a folder.
 * The index is kept here.
 *
 * A struct stream_in lives for one call of the API. Nothing that is read is trusted; memory grows with
 * bytes that came, never with a size that a header says.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../text/number.h"
#include "base/check.h"
#include "base/error.h"
#include "stream.h"

#define BUFFER_BYTES (64u << 10)
#define NOTE_MOST (64u << 10) /* bytes of a pax header */
#define FILES_MOST (1u << 20)

int stream_in_take(struct stream_in *in, const struct embeng_reader *from, const char *what)
{
	int ret = config_take(&in->from, from, sizeof(in->from), "embeng_reader");

	in->what = what;
	if (!ret && !in->from.read)
		ret = fail(-EINVAL, "%s: the reader has no function read", what);
	if (!ret && (in->from.flags & ~EMBENG_READER_GOES_ON))
		ret = fail(-EINVAL, "%s: the reader's flags are 0x%x, known is 0x%x", what,
			   in->from.flags, EMBENG_READER_GOES_ON);
	return ret;
}

void stream_in_free(struct stream_in *in)
{
	free(in->buffer);
	free(in->index);
	free(in->files);
}

/* A fault of the stream, at byte @at of it. */
#define bad_stream(in, code, at, format, ...) \
	fail(code, "%s: " STREAM_NAME ", byte %" PRIu64 ": " format, (in)->what, (uint64_t)(at), \
	     ##__VA_ARGS__)

static int refuse_given(const struct stream_in *in, int64_t given, size_t bytes)
{
	if (given > 0)
		return bad_stream(in, -EIO, in->at,
				  "the reader says that it gave %" PRId64
				  " bytes, and was asked for %zu",
				  given, bytes);
	if (given < -4095)
		return bad_stream(in, -EIO, in->at,
				  "the reader returned %" PRId64 ", which is no errno", given);
	return bad_stream(in, (int)given, in->at, "the reader failed: %s", strerror((int)-given));
}

/* Sets *@got to the bytes that came, 0 at the end of the stream. */
static int read_some(struct stream_in *in, char *to, size_t bytes, size_t *got)
{
	int64_t given = in->from.read(in->from.arg, to, bytes);

	*got = 0;
	if (given < 0 || (uint64_t)given > bytes)
		return refuse_given(in, given, bytes);
	in->at += (uint64_t)given;
	*got = (size_t)given;
	if (in->from.most_bytes && in->at > in->from.most_bytes)
		return bad_stream(in, -EFBIG, in->from.most_bytes,
				  "it goes on, and most_bytes allows no more");
	return 0;
}

/* @within: the member or mark that the bytes are part of, for the sentence about a stream that ends there */
static int read_exactly(struct stream_in *in, char *to, uint64_t bytes, const char *within)
{
	while (bytes) {
		size_t got;
		int ret = read_some(in, to, bytes, &got);

		if (ret)
			return ret;
		if (!got)
			return bad_stream(in, -EBADMSG, in->at,
					  "it ends there, within %s; the checkpoint is not whole",
					  within);
		to += got;
		bytes -= got;
	}
	return 0;
}

static int skip_padding(struct stream_in *in, uint64_t bytes, const char *name)
{
	uint64_t padding = tar_padding(bytes), at = in->at;
	char zeros[TAR_BLOCK];
	int ret = read_exactly(in, zeros, padding, name);

	if (ret)
		return ret;
	return tar_all_zero(zeros, padding)
		       ? 0
		       : bad_stream(in, -EBADMSG, at,
				    "the %" PRIu64
				    " bytes behind %s are not all zero, as they must be",
				    padding, name);
}

/* -- notes ----------------------------------------------------------------- */

/* "embeng.checkpoint.stream/1 bytes=NUMBER" */
static int read_comment(struct stream_in *in, const char *comment, uint64_t bytes, uint64_t at)
{
	static const char bytes_key[] = " bytes=";
	size_t family = strlen(STREAM_FAMILY), schema = strlen(STREAM_SCHEMA);
	size_t key = strlen(bytes_key);

	if (bytes < family || memcmp(comment, STREAM_FAMILY, family) != 0)
		return bad_stream(in, -EBADMSG, at,
				  "its comment is not that of a checkpoint, " STREAM_SCHEMA);
	if (bytes < schema || memcmp(comment, STREAM_SCHEMA, schema) != 0 ||
	    (bytes > schema && comment[schema] != ' '))
		return bad_stream(in, -ENOTSUP, at,
				  "its format is %.*s, and this library reads " STREAM_SCHEMA
				  "; update the library",
				  (int)(bytes < 60 ? bytes : 60), comment);
	if (bytes <= schema + key || memcmp(comment + schema, bytes_key, key) != 0 ||
	    number_read(comment + schema + key, bytes - schema - key, 10, &in->said))
		return bad_stream(in, -EBADMSG, at, "its comment does not say how long it is");
	if (in->from.most_bytes && in->said > in->from.most_bytes)
		return bad_stream(in, -EFBIG, at,
				  "it has more than the %" PRIu64 " bytes that most_bytes allows: "
				  "its shards alone have %" PRIu64,
				  in->from.most_bytes, in->said);
	return 0;
}

static int receive_note(struct stream_in *in, const struct tar_member *member)
{
	const char *comment = "", *wrong;
	uint64_t at = in->at, comment_bytes = 0;
	int ret;

	if (member->bytes > NOTE_MOST)
		return bad_stream(in, -EBADMSG, at,
				  "a pax header has %" PRIu64 " bytes, at most %u are read",
				  member->bytes, NOTE_MOST);
	ret = read_exactly(in, in->buffer, member->bytes, "a pax header");
	if (ret)
		return ret;
	wrong = tar_check_note(in->buffer, member->bytes, &comment, &comment_bytes);
	if (wrong)
		return bad_stream(in, -EBADMSG, at, "a pax header %s", wrong);
	if (member->kind == TAR_NOTE_OF_ALL)
		ret = read_comment(in, comment, comment_bytes, at);
	return ret ? ret : skip_padding(in, member->bytes, "a pax header");
}

/* -- files ----------------------------------------------------------------- */

static int tell_received(const struct stream_in *in)
{
	const struct embeng_progress p = {
		.what = in->word,
		.done = in->said && in->taken > in->said ? in->said : in->taken,
		.total = in->said,
	};

	if (in->progress && in->progress(in->progress_arg, &p))
		return fail(-ECANCELED,
			    "%s: canceled after %" PRIu64 " bytes of the stream; what was there "
			    "before is as it was",
			    in->what, in->at);
	return 0;
}

/* In steps that double, since a header may say any size. */
static int receive_index(struct stream_in *in, uint64_t bytes)
{
	uint64_t room = 0, done = 0;
	int ret = 0;

	if (in->index)
		return bad_stream(in, -EBADMSG, in->at - TAR_BLOCK,
				  "it has a second " INDEX_NAME "; a stream holds one checkpoint");
	if (bytes > INDEX_BYTES_MAX)
		return bad_stream(in, -EBADMSG, in->at - TAR_BLOCK,
				  INDEX_NAME " has %" PRIu64 " bytes, at most %llu are allowed",
				  bytes, INDEX_BYTES_MAX);
	do {
		char *larger;

		room = room ? 2 * room : BUFFER_BYTES;
		room = room < bytes ? room : bytes;
		larger = realloc(in->index, room + 1);
		if (!larger)
			return fail(-ENOMEM, "%s: no memory for the index of the stream", in->what);
		in->index = larger;
		ret = read_exactly(in, in->index + done, room - done, INDEX_NAME);
		done = room;
	} while (!ret && done < bytes);
	in->index[done] = '\0';
	in->index_bytes = done;
	return ret ? ret : skip_padding(in, bytes, INDEX_NAME);
}

static int note_file(struct stream_in *in, const struct stream_file *file)
{
	if (in->file_count == in->capacity) {
		size_t wanted = in->capacity ? 2 * in->capacity : 16;
		struct stream_file *larger = NULL;

		if (wanted > FILES_MOST)
			return bad_stream(in, -EBADMSG, in->at, "it has more than %u files",
					  FILES_MOST / 2);
		larger = reallocarray(in->files, wanted, sizeof(*larger));
		if (!larger)
			return fail(-ENOMEM, "%s: no memory for a list of %zu files", in->what,
				    wanted);
		in->files = larger;
		in->capacity = wanted;
	}
	in->files[in->file_count++] = *file;
	return 0;
}

static int receive_bytes(struct stream_in *in, const struct stream_file *file, bool wanted)
{
	uint64_t left = file->bytes;
	int ret = 0;

	while (!ret && left) {
		uint64_t n = left < BUFFER_BYTES ? left : BUFFER_BYTES;

		ret = read_exactly(in, in->buffer, n, file->name);
		if (!ret && wanted) {
			ret = in->put(in->arg, in->buffer, n);
			in->taken += n;
			ret = ret ? ret : tell_received(in);
		}
		left -= n;
	}
	return ret;
}

static int receive_file(struct stream_in *in, const struct tar_member *member)
{
	struct stream_file file = {.bytes = member->bytes, .at = in->at};
	bool wanted = false;
	int ret;

	if (!strcmp(member->name, INDEX_NAME))
		return receive_index(in, member->bytes);
	memcpy(file.name, member->name, sizeof(file.name));
	ret = in->take(in->arg, &file, &wanted);
	if (!ret && wanted)
		ret = note_file(in, &file);
	ret = ret ? ret : receive_bytes(in, &file, wanted);
	if (!ret && wanted)
		ret = in->end(in->arg);
	return ret ? ret : skip_padding(in, member->bytes, *file.name ? file.name : "a file");
}

/* -- the whole -------------------------------------------------------------- */

static int receive_end(struct stream_in *in)
{
	char block[TAR_BLOCK];
	uint64_t at = in->at;
	int ret = read_exactly(in, block, sizeof(block), "its end mark");

	if (ret || tar_all_zero(block, sizeof(block)))
		return ret;
	return bad_stream(in, -EBADMSG, at, "a block of zeros stands where a member must begin");
}

static int receive_member(struct stream_in *in, bool *ended)
{
	char block[TAR_BLOCK];
	struct tar_member member;
	uint64_t at = in->at;
	const char *wrong;
	int ret = read_exactly(in, block, sizeof(block), "the header of a member");

	if (ret)
		return ret;
	*ended = tar_all_zero(block, sizeof(block));
	if (*ended)
		return receive_end(in);
	wrong = tar_read_header(block, &member);
	if (wrong)
		return bad_stream(in, -EBADMSG, at, "the header of a member %s", wrong);
	switch (member.kind) {
	case TAR_FILE:
		return receive_file(in, &member);
	case TAR_FOLDER:
		return 0;
	case TAR_NOTE:
	case TAR_NOTE_OF_ALL:
		return receive_note(in, &member);
	case TAR_OTHER:
		break;
	}
	return bad_stream(in, -EBADMSG, at,
			  "member '%s' is neither a file nor a folder, which is all that a "
			  "checkpoint has",
			  member.name);
}

/* Programs that write tar fill their last record with zeros. */
static int check_behind(struct stream_in *in)
{
	size_t got = 1;
	int ret = 0;

	while (!ret && got && !(in->from.flags & EMBENG_READER_GOES_ON)) {
		ret = read_some(in, in->buffer, BUFFER_BYTES, &got);
		if (!ret && !tar_all_zero(in->buffer, got))
			return bad_stream(in, -EBADMSG, in->at - got,
					  "something follows the end of the checkpoint; a stream "
					  "holds one, and EMBENG_READER_GOES_ON allows other data "
					  "behind it");
	}
	return ret;
}

static int compare_stream_files(const void *a, const void *b)
{
	const struct stream_file *left = a, *right = b;

	return strcmp(left->name, right->name);
}

static int compare_stream_name(const void *key, const void *element)
{
	const struct stream_file *file = element;

	return strcmp(key, file->name);
}

static int check_received(struct stream_in *in)
{
	if (!in->index)
		return bad_stream(in, -EBADMSG, in->at,
				  "it ends without " INDEX_NAME
				  "; pack what is in the folder of a checkpoint, not the folder");
	if (in->file_count)
		qsort(in->files, in->file_count, sizeof(*in->files), compare_stream_files);
	for (size_t i = 1; i < in->file_count; i++) {
		const struct stream_file *file = &in->files[i];

		if (!strcmp(file[-1].name, file->name))
			return bad_stream(in, -EBADMSG,
					  (file->at > file[-1].at ? file->at : file[-1].at) -
						  TAR_BLOCK,
					  "it has a second file %s", file->name);
	}
	return 0;
}

const struct stream_file *stream_find(const struct stream_file *files, size_t count,
				      const char *name)
{
	return count ? bsearch(name, files, count, sizeof(*files), compare_stream_name) : NULL;
}

int stream_check_said(const struct stream_in *in, const struct index *index)
{
	if (!in->said || in->said == index->bytes)
		return 0;
	return fail(-EBADMSG,
		    "%s: " STREAM_NAME " says in front that its shards have %" PRIu64
		    " bytes, and " INDEX_NAME " says %" PRIu64,
		    in->what, in->said, index->bytes);
}

int stream_find_shard(const struct stream_file *files, size_t count, const struct index *index,
		      size_t home, const struct stream_file **out)
{
	const struct index_file *file = &index->files[home];
	const char *table = index->model->tables[file->table].name;
	const struct stream_file *there = stream_find(files, count, file->name);

	if (!there)
		return fail(-EBADMSG,
			    STREAM_NAME " lacks shard %s of table %s, which its " INDEX_NAME
					" names",
			    file->name, table);
	if (there->bytes != file->bytes)
		return fail(-EBADMSG,
			    STREAM_NAME ", byte %" PRIu64 ": shard %s of table %s has %" PRIu64
					" bytes, " INDEX_NAME " says %" PRIu64,
			    there->at, file->name, table, there->bytes, file->bytes);
	*out = there;
	return 0;
}

int stream_receive(struct stream_in *in)
{
	bool ended = false;
	int ret;

	in->buffer = malloc(BUFFER_BYTES);
	if (!in->buffer)
		return fail(-ENOMEM, "%s: no memory to read a stream", in->what);
	ret = tell_received(in);
	while (!ret && !ended)
		ret = receive_member(in, &ended);
	ret = ret ? ret : check_behind(in);
	return ret ? ret : check_received(in);
}
