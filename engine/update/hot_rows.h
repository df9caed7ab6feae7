/* SPDX-License-Identifier: MIT */
/*
 * The hottest rows of a table in bounded memory (Misra and Gries, by whole
 * steps): a count is at most the true one and short of it by at most @error,
 * which stays below all occurrences / HOT_ROWS.
 */
#ifndef EMBENG_ENGINE_HOT_ROWS_H
#define EMBENG_ENGINE_HOT_ROWS_H

#include "../../uapi/embeng_engine.h"
#include "../types.h"

struct command;
struct kernel_group;

#define HOT_ROWS 512u

struct hot {
	u64 error;
	u32 count;
	struct embeng_hot_row *rows; /* [2 * HOT_ROWS + 1], ascending rows */
};

#define HOT_BYTES ((2 * HOT_ROWS + 1) * sizeof(struct embeng_hot_row)) /* size of @rows */

/**
 * hot_add() - count a step's rows
 * @groups: ascending rows, each once
 * @count: how many
 * @command: this is its work, or NULL
 */
void hot_add(struct hot *hot, const struct kernel_group *groups, u64 count,
	     struct command *command);

/**
 * hot_top() - the most frequent rows, ties by row
 * @out: [most]
 *
 * Return: how many there are.
 */
u32 hot_top(const struct hot *hot, struct embeng_hot_row *out, u32 most);

void hot_clear(struct hot *hot);

#endif
