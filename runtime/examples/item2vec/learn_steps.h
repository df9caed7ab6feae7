/* SPDX-License-Identifier: MIT */
/* Runs a training: its steps and checkpoints, until it ends or is told to stop. */
#ifndef ITEM2VEC_LEARN_STEPS_H
#define ITEM2VEC_LEARN_STEPS_H

#include "learn.h"

/*
 * Reads learn->resume, whose settings become the run's, and the names of its rows. Return: the exit
 * code, after a report.
 */
int resume_read(const struct output *out, struct learn *learn);

/* Restores the tables and the place of learn->from in @t. Return: the exit code, after a report. */
int resume_apply(const struct output *out, const struct learn *learn, struct trainer *t,
		 struct learned *l);

/**
 * save_prepare() - find out early whether a folder can be saved into
 *
 * A missing folder is made. A checkpoint in the folder is not replaced, except
 * the one that is resumed. Return: the exit code, after a report.
 */
int save_prepare(const struct output *out, const struct learn *learn);

/*
 * Saves @t and the names of its rows in @dir and counts that in @l. Return: 0; the errno of libembeng;
 * or, after a report, the exit code, which is above 0.
 */
int save_now(const struct output *out, struct trainer *t, struct learned *l, const char *dir);

/*
 * Looks for numbers in the tables that are not finite. Return: 0; the errno of libembeng; or, after a
 * report that the training diverged, the exit code, which is above 0.
 */
int learn_check(const struct output *out, const struct learn *learn, struct trainer *t,
		const struct learned *l);

/**
 * learn_steps() - train to the last epoch, or until the run is to stop
 *
 * Checkpoints go to learn->save on the way and at the end. A training that diverges stops and is
 * not saved. Return: 0; the errno of libembeng; or, after a report, the exit code, which is above 0.
 * l->stopped says why the training is not at its end.
 */
int learn_steps(const struct output *out, const struct learn *learn, struct trainer *t,
		struct learned *l);

#endif
