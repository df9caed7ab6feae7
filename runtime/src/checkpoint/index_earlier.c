// SPDX-License-Identifier: MIT
/*
 * The list in a checkpoint's index of the earlier checkpoints in its folder: the names of their
 * indices, the newest first. Reading and writing are side by side, so that they stay alike.
 *
 * A list belongs to its struct index and is freed by index_free(). No lock is needed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "index.h"

int index_add_earlier(struct index *index, const char *name)
{
	char(*larger)[SHARD_NAME_SIZE] = reallocarray(index->earlier, index->earlier_count + 1,
						      sizeof(*larger));

	if (!larger)
		return fail(-ENOMEM, "no memory for the names of earlier checkpoints");
	index->earlier = larger;
	strcpy(index->earlier[index->earlier_count++], name);
	return 0;
}

static int read_earlier_name(const struct json *o, const struct place *at, struct index *index)
{
	const char *name = json_string(o);

	if (!name || !is_kept_name(name))
		return json_bad(at, "is not the name of an earlier checkpoint's index");
	for (size_t i = 0; i < index->earlier_count; i++) {
		if (!strcmp(index->earlier[i], name))
			return json_bad(at, "names %s twice", name);
	}
	return index_add_earlier(index, name);
}

int index_read_earlier(const struct json *o, const struct place *at, struct index *index)
{
	const struct json *list;
	int ret;

	if (!json_get(o, "earlier"))
		return 0;
	ret = json_member(o, at, "earlier", JSON_ARRAY, &list);
	if (!ret && json_length(list) >= KEEP_MAX)
		ret = json_bad(at, "\"earlier\" has %zu names, at most %u are allowed",
			       json_length(list), KEEP_MAX - 1);
	for (size_t i = 0; !ret && i < json_length(list); i++) {
		const struct place place = {.file = at->file, .list = "earlier", .index = i};

		ret = read_earlier_name(json_at(list, i), &place, index);
	}
	return ret;
}

void index_write_earlier(struct json_writer *w, const struct index *index)
{
	if (!index->earlier_count)
		return;
	json_write_array(w, "earlier");
	for (size_t i = 0; i < index->earlier_count; i++)
		json_write_text(w, NULL, index->earlier[i]);
	json_write_close(w);
}

/* -- without an index that says it ---------------------------------------- */

static int note_kept_name(void *arg, const char *name)
{
	return is_kept_name(name) ? index_add_earlier(arg, name) : 0;
}

/* The later step first; the order of equal ones is by name, so that it is always the same. */
static int compare_kept_names(const void *a, const void *b)
{
	uint64_t left = step_of_name(a), right = step_of_name(b);

	return left != right ? (left < right) - (left > right) : strcmp(a, b);
}

int index_list_kept(const char *dir, struct index *index)
{
	int ret = file_ops->list(dir, note_kept_name, index);

	if (ret)
		return fail(ret, "%s: its files cannot be listed: %s", dir, strerror(-ret));
	if (index->earlier_count)
		qsort(index->earlier, index->earlier_count, sizeof(*index->earlier),
		      compare_kept_names);
	if (index->earlier_count >= KEEP_MAX)
		index->earlier_count = KEEP_MAX - 1;
	return 0;
}
