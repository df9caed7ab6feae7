/* SPDX-License-Identifier: MIT */
/* The internals of a profile: counts for each table, and their files. */
#ifndef EMBENG_PROFILE_H
#define EMBENG_PROFILE_H

#include <stdbool.h>

#include "model/model.h"

#include "embeng/profile.h"

struct hot_row {
	int64_t row;
	uint64_t count;
};

/*
 * Counts of hot rows: @rows is sorted by row, with at most EMBENG_PROFILE_HOT rows between calls.
 */
struct hot_counts {
	uint64_t batches, ids;
	struct hot_row *rows;
	size_t row_count;
};

/*
 * profile_add() - add counts, and keep the rows with the highest
 *
 * Return: 0, or -ENOMEM with @to as it was.
 */
int profile_add(struct hot_counts *to, const struct hot_counts *from);
/* Sorts counts by row and adds those of the same row. Return: how many are left. */
size_t profile_join(struct hot_row *rows, size_t count);
/* Lists the rows for people, the highest count first. */
void profile_by_count(const struct hot_counts *known, struct embeng_profile_counts *out);
void profile_free(struct hot_counts *counts);

#define PROFILE_NAME_SIZE 40

/* The identity of a table's file: another table's file is refused. */
struct profile_key {
	const struct table *table;
	uint64_t num_features;
	const struct embeng_engine_config *engine;
};

void profile_name(const struct profile_key *key, char name[PROFILE_NAME_SIZE]);
/* Reads the counts of a file, none if there is no file. profile_free() frees them. */
int profile_read(const char *path, const struct profile_key *key, struct hot_counts *out);
/* Writes the counts of a table and replaces its file in one step. */
int profile_write(const char *dir, const char *name, const struct profile_key *key,
		  const struct hot_counts *counts);

#endif
