// SPDX-License-Identifier: MIT
/*
 * Writes a checkpoint whose rows a function of the program gives. It is a save (save.c) without an
 * engine.
 *
 * The buffer of rows lives for one call. The program's function is called with the folder locked and
 * no lock of the library held.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/error.h"
#include "model/numbers.h"
#include "save.h"

#define WHAT "embeng_checkpoint_write"
#define BUFFER_BYTES (1u << 20)

struct written {
	const struct embeng_model *model;
	embeng_checkpoint_fn fn;
	void *arg;
	struct embeng_write_options options;
};

int save_make_room(struct save *s, size_t table, uint64_t stride, uint64_t *most)
{
	uint64_t row = model_row_bytes(&s->index.model->tables[table], 0); /* slots are no wider */

	(void)stride;
	*most = row < BUFFER_BYTES ? BUFFER_BYTES / row : 1;
	if (s->buffer && s->buffer_bytes == *most * row)
		return 0;
	free(s->buffer);
	s->buffer_bytes = *most * row;
	s->buffer = malloc(s->buffer_bytes);
	return s->buffer ? 0
			 : fail(-ENOMEM, "%s: no memory for rows of table %s", s->source->what,
				s->index.model->tables[table].name);
}

/* Whether the folder still has what the new checkpoint is made from, by the names of its files. */
static int check_replaced(const struct save *s)
{
	const struct embeng_checkpoint *from = s->written->options.from;
	struct embeng_checkpoint *now = NULL;
	bool same;
	int ret;

	if (!s->written->options.replaces)
		return 0;
	ret = embeng_checkpoint_open(s->dir, &now, NULL);
	if (ret)
		return ret;
	same = now->index.file_count && from->index.file_count &&
	       !strcmp(now->index.files[now->index.file_count - 1].name,
		       from->index.files[from->index.file_count - 1].name);
	embeng_checkpoint_close(now);
	return same ? 0
		    : fail(-ESTALE,
			   WHAT ": %s has another checkpoint by now than the one that was read; "
				"begin again with that",
			   s->dir);
}

/* No table has missed more updates than there were. */
static int copy_frozen(struct save *s, const struct embeng_checkpoint *from)
{
	int ret = index_make_frozen(&s->index, from ? from->index.frozen_steps : NULL);

	for (size_t t = 0; !ret && t < s->index.model->table_count; t++) {
		if (s->index.frozen_steps[t] > s->index.step)
			s->index.frozen_steps[t] = s->index.step;
	}
	return ret;
}

static int begin_write(struct save *s)
{
	const struct written *w = s->written;
	const struct embeng_checkpoint *from = w->options.from;
	int ret = check_replaced(s);

	/* The model is only read. */
	s->index.model = (struct embeng_model *)(uintptr_t)w->model;
	s->index.model_hash = from && from->index.model == w->model ? from->index.model_hash
								    : embeng_model_hash(w->model);
	s->index.program_state = (char *)(uintptr_t)s->options.program_state;
	s->index.step = w->options.step;
	return ret ? ret : copy_frozen(s, from);
}

/*
 * Slots that their optimizer cannot go on from could be restored nowhere. Values that are not
 * finite are left to the save, which refuses or takes them.
 */
static int check_given_numbers(const struct save *s, size_t table, size_t array,
			       const struct embeng_shard_rows *rows)
{
	const struct embeng_model *m = s->written->model;
	const float *data = (const float *)(const void *)s->buffer;
	uint64_t width = model_width(&m->tables[table], array);
	uint64_t count = (uint64_t)rows->count * width;
	char what[320];

	for (uint64_t at = 0; at < count; at++) {
		at += numbers_first_bad(m, (int)table, array, data + at, count - at);
		if (at == count || !isfinite(data[at]))
			continue;
		snprintf(what, sizeof(what), WHAT ": %.250s is as it was", s->dir);
		return numbers_error(m, what, (int)table, array,
				     (uint64_t)rows->first + at / width * (uint64_t)rows->stride,
				     at % width, data[at]);
	}
	return 0;
}

static int call_for_rows(struct save *s, size_t table, size_t array,
			 const struct embeng_shard_rows *rows, const char **data)
{
	const struct written *w = s->written;
	const char *slot = model_slot_name(w->model, (int)table, array);

	*data = s->buffer;
	if (!w->fn(w->arg, (int)table, slot, rows, (float *)(void *)s->buffer))
		return check_given_numbers(s, table, array, rows);
	return fail(-ECANCELED,
		    WHAT ": table %s, %s: the function that gives rows gave up at row %lld",
		    w->model->tables[table].name, slot, (long long)rows->first);
}

static const struct save_source written_source = {
	.what = WHAT,
	.progress = "write",
	.begin = begin_write,
	.rows = save_rows,
	.room = save_make_room,
	.read = call_for_rows,
};

static int check_write_options(struct save *s, struct written *w,
			       const struct embeng_write_options *options)
{
	int ret = config_take(&w->options, options, sizeof(w->options), "embeng_write_options");

	ret = ret ? ret
		  : config_take(&s->options, &w->options.save, sizeof(s->options),
				"embeng_save_options");
	if (!ret && w->options.step > INT64_MAX)
		ret = fail(-ERANGE, WHAT ": step %llu, at most %lld is allowed",
			   (unsigned long long)w->options.step, (long long)INT64_MAX);
	if (!ret && w->options.replaces && !w->options.from)
		ret = fail(-EINVAL, WHAT ": replaces is set, and from is NULL");
	if (!ret && w->options.from &&
	    w->options.from->index.model->table_count != w->model->table_count)
		ret = fail(-EINVAL, WHAT ": from has %zu tables, the model has %zu",
			   w->options.from->index.model->table_count, w->model->table_count);
	return ret ? ret : save_check_options(s, w->model);
}

static int write_folder(const char *dir, struct written *w,
			const struct embeng_write_options *options)
{
	struct save s = {.source = &written_source, .dir = dir, .written = w};
	int ret;

	if (!dir || !w->model || !w->fn)
		return fail(-EINVAL, WHAT ": dir, model and fn must be given");
	if (!w->model->table_count)
		return fail(-EINVAL, WHAT ": the model has no table");
	ret = check_write_options(&s, w, options);
	ret = ret ? ret : save_run(&s);
	free(s.buffer);
	return ret;
}

int embeng_checkpoint_write(const char *dir, const struct embeng_model *model,
			    embeng_checkpoint_fn fn, void *arg,
			    const struct embeng_write_options *options, struct embeng_error *error)
{
	static const struct embeng_write_options defaults = {
		.size = sizeof(defaults), .save = {.size = sizeof(defaults.save)}};
	struct written w = {.model = model, .fn = fn, .arg = arg};
	int ret = write_folder(dir, &w, options ? options : &defaults);

	if (ret)
		give_error(error);
	return ret;
}
