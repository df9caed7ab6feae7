/* SPDX-License-Identifier: MIT */
/* A training under way: its steps, its checkpoints, where it is told to stop. */
#ifndef ITEM2VEC_LEARN_STEPS_H
#define ITEM2VEC_LEARN_STEPS_H

#include "learn.h"

/* Reads what learn->resume holds; its settings are the run's. Return: the exit code, reported. */
int resume_read(const struct output *out, struct learn *learn);

/* The tables and the place of learn->from, for @t. Return: the exit code, reported. */
int resume_apply(const struct output *out, const struct learn *learn, struct trainer *t,
		 struct learned *l);

/**
 * save_prepare() - find out now whether saving into a folder will do
 *
 * The folder is made when it is not there. A checkpoint in it is not replaced, but
 * for the one that is resumed. Return: the exit code, reported.
 */
int save_prepare(const struct output *out, const struct learn *learn);

/* A checkpoint of @t in @dir, counted in @l. 0 or what libembeng failed with. */
int save_now(const struct output *out, struct trainer *t, struct learned *l, const char *dir);

/**
 * learn_steps() - train to the last epoch, or to where the run is to stop
 *
 * Saves on the way and at the end into learn->save. Return: 0 or what libembeng
 * failed with; l->stopped says why it is not at the end.
 */
int learn_steps(const struct output *out, const struct learn *learn, struct trainer *t,
		struct learned *l);

#endif
