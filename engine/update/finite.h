/* SPDX-License-Identifier: MIT */
/* Gradients that are not finite, and the model's policy for them. */
#ifndef EMBENG_ENGINE_FINITE_H
#define EMBENG_ENGINE_FINITE_H

#include "apply.h"
#include "lane.h"
#include "update.h"

/**
 * finite_check() - look at all gradients of a step before any row is touched
 * @number: the step; its gradients are mapped in model->gradients
 *
 * Sets table.suspect of the tables that have a gradient which is not finite.
 * Return: 0, or EMBENG_STATUS_GRADIENT with command->fault where the model refuses these.
 */
u16 finite_check(struct command *command, u64 number);

/**
 * finite_require() - look at the gradients of one feature, of which all must be finite
 * @model: its command runs
 * @view: they are mapped in it
 * @feature: named where one is not finite
 *
 * Return: 0 or a status with the fault of the command.
 */
u16 finite_require(struct model *model, const struct view *view, u32 feature);

/**
 * finite_rows() - update a task's rows one by one, and count those that such a gradient reaches
 * @apply: the update of a suspect table
 * @first: the first group of the task
 * @last: one past its last group
 * @scratch: the worker's
 *
 * The rows are left as they are if the model drops their updates. Return: whether a row that was
 * updated may be one that is not finite now.
 */
bool finite_rows(struct apply *apply, u64 first, u64 last, u8 *scratch);

/* Whether a hot row's update is dropped; counts the row in any case. */
bool finite_drops(struct apply *apply, const struct kernel_group *group);

#endif
