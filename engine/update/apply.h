/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_ENGINE_APPLY_H
#define EMBENG_ENGINE_APPLY_H

#include "../kernels/kernels.h"

struct batch_feature;
struct command;
struct lane;
struct model;
struct table;

/**
 * struct apply - one table in one step
 * @model: its optimizer's input
 * @lane: one of @model's; its partition has the occurrences of the table in the step
 * @table: one of @model's, with an optimizer
 * @cores: all of the engine's, or 1: the lane's, alone
 * @update: complete, so kernel_prepare() has seen it
 * @most: occurrences of one kernel call, or untouched rows
 */
struct apply {
	struct model *model;
	struct lane *lane;
	struct table *table;
	u32 cores;
	struct kernel_update update;
	u64 most;
};

/* Scratch of one core, for rows of up to @dim; its address and its size are multiples of 64. */
u64 apply_scratch_bytes(u32 dim);

/* apply_rows.c: update the touched rows, and the others when the optimizer is not lazy. */
void apply_rows(struct apply *apply);

/* Where the gradient of each occurrence is, made here; NULL: it has the same number. */
const u32 *gradient_rows(struct command *command, const struct batch_feature *f);

/**
 * apply_table() - one table in one step, its statistics too
 * @lane: after lanes_reserve() of the table
 * @number: the step after the last applied one
 * @cores: as in struct apply
 */
void apply_table(struct lane *lane, u64 number, struct table *table, u32 cores);

#endif
