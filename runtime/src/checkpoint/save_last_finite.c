// SPDX-License-Identifier: MIT
/*
 * Keeps the last checkpoint whose values are all finite. A training that diverged and saves on, because
 * it was told to, would otherwise push out one by one all that it can go back to.
 *
 * Called with the lock of the folder held. An index that is read lives for one call.
 */
#include <stdlib.h>

#include "base/error.h"
#include "base/file.h"
#include "save.h"

/* Old indices do not say; their checkpoints count as finite. */
static bool is_index_finite(const struct index *index)
{
	for (size_t t = 0; index->finite && t < index->model->table_count; t++) {
		if (index->finite[t] == INDEX_NOT_FINITE)
			return false;
	}
	return true;
}

/* The replaced index, which has no file of its own yet, or a kept one. */
static int read_known(const struct save *s, size_t known, struct index *out)
{
	char *path = file_path(s->dir, s->known.earlier[known]), *text = NULL;
	size_t length;
	int ret = path ? 0 : -ENOMEM;

	if (!ret && !known && s->old_text) {
		ret = index_parse(s->old_text, s->old_length, path, out);
	} else if (!ret) {
		ret = file_read_whole(path, INDEX_BYTES_MAX, &text, &length);
		ret = ret ? ret : index_parse(text, length, path, out);
	}
	free(text);
	free(path);
	return ret;
}

/* Entry @known stays anyway if the list has it. If the list is full, its last entry makes room. */
static int add_finite(struct save *s, size_t known)
{
	if (known < s->index.earlier_count)
		return 0;
	if (s->index.earlier_count == KEEP_MAX - 1)
		s->index.earlier_count--;
	return index_add_earlier(&s->index, s->known.earlier[known]);
}

int save_keep_last_finite(struct save *s)
{
	if (is_index_finite(&s->index))
		return 0;
	for (size_t i = 0; i < s->known.earlier_count; i++) {
		struct index index = {0};
		int ret = read_known(s, i, &index);
		bool found = !ret && is_index_finite(&index);

		index_free(&index);
		if (ret == -ENOMEM)
			return ret;
		if (found)
			return add_finite(s, i);
	}
	return 0;
}
