// SPDX-License-Identifier: MIT
/*
 * Names of the files of a checkpoint and of the tensors in them. Saves recognize by these names
 * which files in a folder are theirs; a file of any other name is never removed.
 *
 * A list of tensors belongs to the caller. Only arguments are touched; no lock is needed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "index.h"

#define PREFIX "embeng-"
#define SHARD_SUFFIX ".safetensors"
#define TEMPORARY_SUFFIX ".index.tmp"
#define KEPT_SUFFIX ".index.json"

void shard_name(char name[SHARD_NAME_SIZE], uint64_t step, uint64_t nonce, uint64_t number)
{
	snprintf(name, SHARD_NAME_SIZE, PREFIX "%" PRIu64 "-%016" PRIx64 "-%08" PRIu64 SHARD_SUFFIX,
		 step, nonce, number);
}

void index_temporary_name(char name[SHARD_NAME_SIZE], uint64_t nonce)
{
	snprintf(name, SHARD_NAME_SIZE, PREFIX "%016" PRIx64 TEMPORARY_SUFFIX, nonce);
}

/* Each eats what it knows from the start of the name; NULL when that is not there. */
static const char *eat_text(const char *name, const char *text)
{
	size_t length = strlen(text);

	return name && !strncmp(name, text, length) ? name + length : NULL;
}

static const char *eat_number(const char *name, size_t least)
{
	size_t length = name ? strspn(name, "0123456789") : 0;

	return name && length >= least && length <= 20 ? name + length : NULL;
}

static const char *eat_nonce(const char *name)
{
	uint64_t nonce;

	return name && hex_number(name, 16, &nonce) ? name + 16 : NULL;
}

/* The start that all files of a checkpoint share: embeng-STEP-NONCE. */
static const char *eat_checkpoint(const char *name)
{
	return eat_nonce(eat_text(eat_number(eat_text(name, PREFIX), 1), "-"));
}

bool is_shard_name(const char *name)
{
	name = eat_number(eat_text(eat_checkpoint(name), "-"), 8);
	return name && !strcmp(name, SHARD_SUFFIX);
}

bool is_temporary_name(const char *name)
{
	name = eat_nonce(eat_text(name, PREFIX));
	return name && !strcmp(name, TEMPORARY_SUFFIX);
}

bool is_kept_name(const char *name)
{
	name = eat_checkpoint(name);
	return name && !strcmp(name, KEPT_SUFFIX);
}

void kept_name(char name[SHARD_NAME_SIZE], const char *shard)
{
	const char *end = eat_checkpoint(shard);

	snprintf(name, SHARD_NAME_SIZE, "%.*s" KEPT_SUFFIX, (int)(end - shard), shard);
}

uint64_t step_of_name(const char *name)
{
	return strtoull(name + sizeof(PREFIX) - 1, NULL, 10);
}

bool is_shard_of_kept(const char *shard, const char *kept)
{
	const char *end = eat_checkpoint(shard);

	return end && !strncmp(shard, kept, (size_t)(end - shard)) &&
	       !strcmp(kept + (end - shard), KEPT_SUFFIX);
}

void tensor_name(const struct embeng_model *model, size_t table, size_t array, char *name)
{
	const char *slot = model_slot_name(model, (int)table, array);

	snprintf(name, TENSOR_NAME_SIZE, "%s/%s", model->tables[table].name,
		 slot ? slot : "row_numbers");
}

static size_t count_tensors(const struct index *index, size_t home)
{
	size_t count = index->files[home].table_at != 0, file = home;

	do {
		count += entry_arrays(index, &index->files[file]);
		file = index->files[file].next;
	} while (file);
	return count;
}

static int compare_tensor_names(const void *a, const void *b)
{
	return strcmp(((const struct shard_tensor *)a)->name,
		      ((const struct shard_tensor *)b)->name);
}

/* It stands last, whatever its name; no slot is called so. */
static void fill_chunk_table(const struct index *index, size_t home, struct shard_tensors *out)
{
	const struct index_file *file = &index->files[home];
	struct shard_tensor *of = &out->of[out->count];

	snprintf(of->name, sizeof(of->name), "embeng/chunk_table");
	of->file = home;
	of->array = CHUNK_TABLE;
	out->tensors[out->count++] = (struct safetensor){.name = of->name,
							 .rows = table_sums(index, file),
							 .dim = 1,
							 .offset = file->table_at,
							 .type = SAFETENSOR_I32};
}

/* By name, as the format's own writers order them. */
static void fill_tensors(const struct index *index, size_t home, struct shard_tensors *out)
{
	size_t file = home;

	out->count = 0;
	do {
		const struct index_file *f = &index->files[file];

		for (size_t i = 0; i < entry_arrays(index, f); i++) {
			struct shard_tensor *of = &out->of[out->count++];

			tensor_name(index->model, f->table, i, of->name);
			of->file = file;
			of->array = i;
		}
		file = f->next;
	} while (file);
	qsort(out->of, out->count, sizeof(*out->of), compare_tensor_names);
	for (size_t i = 0; i < out->count; i++) {
		const struct index_file *f = &index->files[out->of[i].file];
		bool numbers = is_row_numbers(index, f, out->of[i].array);

		out->tensors[i] = (struct safetensor){
			.name = out->of[i].name,
			.type = numbers ? SAFETENSOR_I64 : SAFETENSOR_F32,
			.rows = (uint64_t)f->rows,
			.dim = numbers ? 1
				       : model_width(&index->model->tables[f->table],
						     out->of[i].array),
			.offset = f->at[out->of[i].array]};
	}
	if (index->files[home].table_at)
		fill_chunk_table(index, home, out);
}

int shard_tensors_make(const struct index *index, size_t home, struct shard_tensors *out)
{
	size_t count = count_tensors(index, home);

	out->tensors = calloc(count, sizeof(*out->tensors));
	out->of = calloc(count, sizeof(*out->of));
	if (!out->tensors || !out->of) {
		shard_tensors_free(out);
		return fail(-ENOMEM, "no memory for the tensors of a shard");
	}
	fill_tensors(index, home, out);
	return 0;
}

void shard_tensors_free(struct shard_tensors *tensors)
{
	free(tensors->tensors);
	free(tensors->of);
	*tensors = (struct shard_tensors){0};
}
