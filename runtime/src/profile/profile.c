// SPDX-License-Identifier: MIT
/*
 * Profiles: opens them, chooses which batches are looked at, counts their rows, and saves the
 * counts.
 *
 * A profile belongs to the program until embeng_profile_close() and is used by one thread at a
 * time. A save locks the folder, so that several processes can add to one profile.
 */
#define _GNU_SOURCE /* O_DIRECTORY */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/error.h"
#include "base/file.h"
#include "batch/partitioned.h"
#include "open.h"

#define RATE 0.03f

void embeng_profile_close(struct embeng_profile *p)
{
	if (!p)
		return;
	for (size_t t = 0; p->tables && p->model && t < p->model->table_count; t++) {
		profile_free(&p->tables[t].known);
		profile_free(&p->tables[t].fresh);
	}
	free(p->tables);
	free(p->dir);
	embeng_model_free(p->model);
	free(p);
}

static int take_profile_options(struct embeng_profile *p,
				const struct embeng_profile_options *options)
{
	int ret = options ? config_take(&p->options, options, sizeof(p->options),
					"embeng_profile_options")
			  : 0;

	if (!ret && !(p->options.rate >= 0 && p->options.rate <= 1))
		ret = fail(-ERANGE, "embeng_profile_open: rate %g must be 0 to 1",
			   (double)p->options.rate);
	if (!(p->options.rate > 0))
		p->options.rate = RATE;
	p->random = p->options.seed;
	return ret;
}

static int read_table_profile(struct embeng_profile *p, size_t t)
{
	struct profiled *table = &p->tables[t];
	char *path;
	int ret;

	table->key = (struct profile_key){.table = &p->model->tables[t],
					  .engine = &p->model->engine};
	for (size_t f = 0; f < p->model->feature_count; f++)
		table->key.num_features += (size_t)p->model->features[f].table == t;
	profile_name(&table->key, table->name);
	path = file_path(p->dir, table->name);
	ret = path ? profile_read(path, &table->key, &table->known) : -ENOMEM;
	free(path);
	return ret;
}

static int check_folder(const char *dir)
{
	int fd = file_open(dir, O_RDONLY | O_DIRECTORY);

	if (fd >= 0)
		file_ops->close(fd);
	return fd < 0 ? fd : 0;
}

static int open_new_profile(struct embeng_profile *p, const char *dir,
			    const struct embeng_model *model,
			    const struct embeng_profile_options *options)
{
	int ret = take_profile_options(p, options);

	ret = ret ? ret : check_folder(dir);
	if (ret)
		return ret;
	p->model = model_copy(model);
	p->dir = strdup(dir);
	p->tables = calloc(model->table_count + 1, sizeof(*p->tables));
	if (!p->model || !p->dir || !p->tables)
		return fail(-ENOMEM, "no memory for a profile");
	for (size_t t = 0; !ret && t < model->table_count; t++)
		ret = read_table_profile(p, t);
	return ret;
}

int embeng_profile_open(const char *dir, const struct embeng_model *model,
			const struct embeng_profile_options *options, struct embeng_profile **out,
			struct embeng_error *error)
{
	struct embeng_profile *p = NULL;
	int ret = 0;

	if (!dir || !model || !out)
		ret = fail(-EINVAL, "embeng_profile_open: dir, model and out must be given");
	if (!ret && !(p = calloc(1, sizeof(*p))))
		ret = fail(-ENOMEM, "no memory for a profile");
	ret = ret ? ret : open_new_profile(p, dir, model, options);
	if (ret) {
		give_error(error);
		embeng_profile_close(p);
		return ret;
	}
	*out = p;
	return 0;
}

/* -- batches ------------------------------------------------------------- */

/* splitmix64 (Steele, Lea, Flood 2014): even for seeds that are close. */
static bool draw_choice(struct embeng_profile *p)
{
	uint64_t z = p->random += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53 < (double)p->options.rate;
}

struct listed_rows {
	int64_t *rows;
	size_t count;
};

static void list_item(void *arg, const struct partitioned_item *item)
{
	struct listed_rows *list = arg;

	list->rows[list->count++] = item->row;
}

/* The ids of an input, [*count]; to be freed. NULL without memory. */
static int64_t *list_ids(const struct embeng_batch *b, uint32_t f, size_t *count)
{
	const struct input *in = &b->inputs[f];
	bool stacked = is_partitioned(b, f);
	size_t most = stacked ? partitioned_most(b, f) : in->id_count;
	int64_t *ids = reallocarray(NULL, most + 1, sizeof(*ids));
	struct listed_rows list = {.rows = ids};

	if (ids && stacked)
		partitioned_each(b, f, list_item, &list);
	*count = stacked ? list.count : most;
	for (size_t k = 0; ids && !stacked && k < most; k++)
		ids[k] = in->type == EMBENG_I32 ? ((const int32_t *)in->ids)[k]
						: ((const int64_t *)in->ids)[k];
	return ids;
}

static int note_ids(struct hot_counts *counts, const int64_t *ids, size_t id_count, int64_t rows)
{
	struct hot_counts seen = {0};
	size_t count = 0;
	int ret;

	seen.rows = reallocarray(NULL, id_count + 1, sizeof(*seen.rows));
	if (!seen.rows)
		return fail(-ENOMEM, "no memory for the ids of a profiled batch");
	for (size_t k = 0; k < id_count; k++) {
		if (ids[k] >= 0 && ids[k] < rows)
			seen.rows[count++] = (struct hot_row){ids[k], 1};
	}
	seen.ids = count;
	seen.row_count = profile_join(seen.rows, count);
	ret = profile_add(counts, &seen);
	free(seen.rows);
	return ret;
}

static int note_input(struct hot_counts *counts, const struct embeng_batch *b, uint32_t f,
		      int64_t rows)
{
	size_t count;
	int64_t *ids = list_ids(b, f, &count);
	int ret = ids ? note_ids(counts, ids, count, rows)
		      : fail(-ENOMEM, "no memory for the ids of a profiled batch");

	free(ids);
	return ret;
}

static int note_all(struct embeng_profile *p, const struct embeng_batch *b, struct hot_counts *seen)
{
	int ret = 0;

	for (size_t f = 0; !ret && f < b->count; f++) {
		int table = p->model->features[f].table;

		if (b->inputs[f].form == INPUT_NONE)
			continue;
		ret = note_input(&seen[table], b, (uint32_t)f, p->model->tables[table].rows);
	}
	return ret;
}

/* Only when all of it is counted does any of it count. */
static int keep_counts(struct embeng_profile *p, struct hot_counts *seen)
{
	int ret = 0;

	for (size_t t = 0; !ret && t < p->model->table_count; t++) {
		seen[t].batches = 1;
		ret = profile_add(&p->tables[t].fresh, &seen[t]);
		ret = ret ? ret : profile_add(&p->tables[t].known, &seen[t]);
	}
	return ret;
}

int embeng_profile_note(struct embeng_profile *p, const struct embeng_batch *b)
{
	struct hot_counts *seen;
	int ret;

	if (!p || !b)
		return fail(-EINVAL, "embeng_profile_note: a profile and a batch must be given");
	if (embeng_model_hash(embeng_get_model(b->e)) != embeng_model_hash(p->model))
		return fail(-EINVAL, "embeng_profile_note: the batch is of another model");
	if (!draw_choice(p))
		return 0;
	seen = calloc(p->model->table_count + 1, sizeof(*seen));
	if (!seen)
		return fail(-ENOMEM, "no memory for the ids of a profiled batch");
	ret = note_all(p, b, seen);
	ret = ret ? ret : keep_counts(p, seen);
	for (size_t t = 0; t < p->model->table_count; t++)
		profile_free(&seen[t]);
	free(seen);
	return ret ? ret : 1;
}

/* -- saving -------------------------------------------------------------- */

static int save_table(struct embeng_profile *p, struct profiled *table)
{
	struct hot_counts there = {0};
	char *path = file_path(p->dir, table->name);
	int ret = path ? profile_read(path, &table->key, &there) : -ENOMEM;

	free(path);
	ret = ret ? ret : profile_add(&there, &table->fresh);
	ret = ret ? ret : profile_write(p->dir, table->name, &table->key, &there);
	if (ret) {
		profile_free(&there);
		return ret;
	}
	profile_free(&table->known);
	profile_free(&table->fresh);
	table->known = there;
	return 0;
}

int embeng_profile_save(struct embeng_profile *p)
{
	int ret, lock;

	if (!p)
		return fail(-EINVAL, "embeng_profile_save: a profile must be given");
	ret = file_lock_folder(p->dir, ".embeng-profile.lock", &lock);
	if (ret)
		return ret;
	for (size_t t = 0; !ret && t < p->model->table_count; t++) {
		if (p->tables[t].fresh.batches)
			ret = save_table(p, &p->tables[t]);
	}
	ret = ret ? ret : file_sync_folder(p->dir);
	file_unlock(lock);
	return ret;
}
