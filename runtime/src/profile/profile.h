/* SPDX-License-Identifier: MIT */
/* Inside a profile: counts of tables, and their files. */
#ifndef EMBENG_PROFILE_H
#define EMBENG_PROFILE_H

#include <stdbool.h>

#include "model/model.h"

#include "embeng/profile.h"

struct hot_row {
	int64_t row;
	uint64_t count;
};

/* @rows: [row_count], rising by row; at most EMBENG_PROFILE_HOT between calls. */
struct hot_counts {
	uint64_t batches, ids;
	struct hot_row *rows;
	size_t row_count;
};

/*
 * profile_add() - join counts, and keep the rows with most
 *
 * Return: 0, or -ENOMEM with @to as it was.
 */
int profile_add(struct hot_counts *to, const struct hot_counts *from);
/* Sorts, and joins those of one row. Return: how many are left. */
size_t profile_join(struct hot_row *rows, size_t count);
/* Rows as people read them: most first. */
void profile_by_count(const struct hot_counts *known, struct embeng_profile_counts *out);
void profile_free(struct hot_counts *counts);

#define PROFILE_NAME_SIZE 40

/* What a table's file is of. */
struct profile_key {
	const struct table *table;
	uint64_t num_features;
	const struct embeng_engine_config *engine;
};

void profile_name(const struct profile_key *key, char name[PROFILE_NAME_SIZE]);
/* The counts of a file; none when it is not there. profile_free() them. */
int profile_read(const char *path, const struct profile_key *key, struct hot_counts *out);
/* Replaces the file at once. */
int profile_write(const char *dir, const char *name, const struct profile_key *key,
		  const struct hot_counts *counts);

#endif
