// SPDX-License-Identifier: MIT
/*
 * Makes the checkpoint of a folder out of a stream. It is a save (save.c) whose shards come as they
 * are, under the names that they have, and whose index comes last. The commit reads all of it back.
 *
 * The folder is locked meanwhile. The parsed index becomes that of the save; its model and the text
 * of the program live until the call ends.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/error.h"
#include "base/file.h"
#include "save.h"
#include "stream_files.h"

#define WHAT "embeng_checkpoint_unpack"

/*
 * @in: its files are those that were begun; the last one may not be whole
 * @model: the model and the text of the index; index_free() of the save leaves them
 * @fd: descriptor of the file that is being written, whose name is @path; NULL between two files
 */
struct unpacking {
	struct stream_in in;
	struct embeng_pack_options options;
	const char *dir;
	struct embeng_model *model;
	char *program_state;
	int fd;
	char *path;
};

static int check_file_name(const char *name, const char *what)
{
	if (!name || !*name || strlen(name) >= TAR_NAME || strchr(name, '/') ||
	    !strcmp(name, ".") || !strcmp(name, ".."))
		return fail(-EINVAL,
			    "%s: '%s' is no name of a file in the folder; give 1 to %u bytes "
			    "without a slash",
			    what, name ? name : "(null)", TAR_NAME - 1);
	if (!strcmp(name, INDEX_NAME) || !strcmp(name, LOCK_NAME) || is_shard_name(name) ||
	    is_kept_name(name) || is_temporary_name(name))
		return fail(-EINVAL, "%s: '%s' is a file of the checkpoint itself", what, name);
	return 0;
}

int stream_take_options(struct embeng_pack_options *to, const struct embeng_pack_options *given,
			const char *what)
{
	int ret = given ? config_take(to, given, sizeof(*to), "embeng_pack_options") : 0;

	if (!ret && to->file_count && !to->files)
		ret = fail(-EINVAL, "%s: file_count is %zu, and files is NULL", what,
			   to->file_count);
	for (size_t i = 0; !ret && i < to->file_count; i++)
		ret = check_file_name(to->files[i], what);
	return ret;
}

static bool is_wanted_name(const struct unpacking *u, const char *name)
{
	for (size_t i = 0; i < u->options.file_count; i++) {
		if (!strcmp(u->options.files[i], name))
			return true;
	}
	return is_shard_name(name);
}

static int make_taken_file(void *arg, struct stream_file *file, bool *wanted)
{
	struct unpacking *u = arg;

	*wanted = is_wanted_name(u, file->name);
	if (!*wanted)
		return 0;
	u->path = file_path(u->dir, file->name);
	u->fd = u->path ? file_open(u->path, O_WRONLY | O_CREAT | O_EXCL) : -ENOMEM;
	if (u->fd >= 0)
		return 0;
	if (u->fd == -EEXIST)
		fail(-EEXIST,
		     "%s: is there already; the folder may have this checkpoint, else unpack into "
		     "another one",
		     u->path);
	free(u->path);
	u->path = NULL;
	return u->fd;
}

static int write_taken_file(void *arg, const char *data, uint64_t bytes)
{
	const struct unpacking *u = arg;

	return file_write(u->fd, u->path, data, bytes);
}

static int end_taken_file(void *arg)
{
	struct unpacking *u = arg;
	int ret = file_sync(u->fd, u->path);

	file_ops->close(u->fd);
	free(u->path);
	u->path = NULL;
	return ret;
}

static void remove_made_file(const struct unpacking *u, const char *name)
{
	char *path = file_path(u->dir, name);

	if (path)
		file_ops->remove(path);
	free(path);
}

/* The sentence of the failure stays the last one. */
static void remove_made_files(struct save *s)
{
	struct unpacking *u = s->unpacking;

	if (u->path) {
		file_ops->close(u->fd);
		file_ops->remove(u->path);
		free(u->path);
		u->path = NULL;
	}
	for (size_t i = 0; i < u->in.file_count; i++)
		remove_made_file(u, u->in.files[i].name);
}

/* The index of the stream, with the earlier checkpoints of this folder. */
static int adopt_index(struct save *s, struct unpacking *u)
{
	struct index index = {0};
	int ret = index_parse(u->in.index, u->in.index_bytes, STREAM_NAME "/" INDEX_NAME, &index);

	if (ret)
		return ret;
	free(index.earlier);
	index.earlier = s->index.earlier;
	index.earlier_count = s->index.earlier_count;
	s->index = index;
	u->model = index.model;
	u->program_state = index.program_state;
	return 0;
}

static int unpack_rows(struct save *s)
{
	struct unpacking *u = s->unpacking;
	const struct stream_file *shard;
	int ret = stream_receive(&u->in);

	ret = ret ? ret : adopt_index(s, u);
	ret = ret ? ret : stream_check_said(&u->in, &s->index);
	for (size_t i = 0; !ret && i < s->index.file_count; i = next_home(&s->index, i))
		ret = stream_find_shard(u->in.files, u->in.file_count, &s->index, i, &shard);
	return ret;
}

static int begin_unpack(struct save *s)
{
	(void)s;
	return 0;
}

static const struct save_source unpack_source = {
	.what = WHAT,
	.progress = "unpack",
	.begin = begin_unpack,
	.rows = unpack_rows,
	.forget = remove_made_files,
};

static int unpack_folder(struct unpacking *u, const struct embeng_reader *from,
			 const struct embeng_pack_options *options)
{
	struct save s = {.source = &unpack_source, .dir = u->dir, .unpacking = u};
	int ret = u->dir ? stream_in_take(&u->in, from, WHAT)
			 : fail(-EINVAL, WHAT ": no folder given");

	ret = ret ? ret : stream_take_options(&u->options, options, WHAT);
	if (ret)
		return ret;
	s.options.keep = u->options.keep;
	u->in.progress = u->options.progress;
	u->in.progress_arg = u->options.progress_arg;
	ret = save_run(&s);
	embeng_model_free(u->model);
	free(u->program_state);
	stream_in_free(&u->in);
	return ret;
}

int embeng_checkpoint_unpack(const struct embeng_reader *from, const char *dir,
			     const struct embeng_pack_options *options, struct embeng_error *error)
{
	struct unpacking u = {
		.in = {.word = "unpack",
		       .take = make_taken_file,
		       .put = write_taken_file,
		       .end = end_taken_file},
		.dir = dir,
	};
	int ret;

	u.in.arg = &u;
	ret = unpack_folder(&u, from, options);
	if (ret)
		give_error(error);
	return ret;
}
