/* SPDX-License-Identifier: MIT */
/*
 * With pipelining the LOOKUP of step n + 1 sees the tables before update n. A DRAIN may apply update
 * n earlier than that. The rows that the update changes are then kept as they were, for the LOOKUPs
 * of step n + 1 alone, so that a program's results do not depend on where it drains.
 */
#ifndef EMBENG_ENGINE_STALE_H
#define EMBENG_ENGINE_STALE_H

#include "../model/model.h"

/**
 * stale_reserve() - find memory for the rows of a table that an early update changes
 * @occurrences: the table's in the step
 *
 * Return: 0, or -1 without memory.
 */
int stale_reserve(struct model *model, struct table *table, u64 occurrences);

/* From here on LOOKUPs of step @number + 1 do not see update @number, which comes next. */
void stale_begin(struct model *model, u64 number);

/* Whether the rows that update @number changes must be kept. */
static inline bool stale_keeps(const struct model *model, const struct table *table, u64 number)
{
	return model->stale_step == number && (table->stale.whole || table->stale.rows);
}

/* How many tasks of stale_keep() a table has, and the bytes that they touch. */
u64 stale_tasks(const struct table *table, const struct partition *p);
u64 stale_bytes(const struct table *table, const struct partition *p);

/* Keeps the rows of one task, before the update changes them. @p: the table's, of the step. */
void stale_keep(struct table *table, const struct partition *p, u64 task);

/* Whether the LOOKUPs of step @number are to see the kept rows. */
static inline bool stale_hides(const struct model *model, u64 number)
{
	return model->stale_step && number == model->stale_step + 1;
}

/* Exchanges the kept rows with those of the tables; again: back. */
void stale_swap(struct model *model);

/* The kept rows are not needed, or no longer right because rows are written. */
void stale_forget(struct model *model);

/* The bytes of a table's memory for kept rows. */
u64 stale_memory(const struct table *table);

/* Frees it. */
void stale_free(struct model *model, struct table *table);

#endif
