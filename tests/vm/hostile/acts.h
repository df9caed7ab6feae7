/* SPDX-License-Identifier: MIT */
/* The acts of a fuzzed program. Each is a valid call, as far as its input lets it be one. */
#ifndef EMBENG_TESTS_HOSTILE_ACTS_H
#define EMBENG_TESTS_HOSTILE_ACTS_H

#include "world.h"

/* Opens a file and settles there, so that there is something to attack. */
void acts_begin(uint32_t number);

/* Forgets mappings of the device in a child process, which does not have them. */
void acts_forget(void);

/* Acts until the input is read to its end. */
void acts_run(struct fuzz *f);

/* Files, memory and processes: acts_memory.c */
void act_open(struct fuzz *f);
void act_close(struct fuzz *f);
void act_pass(struct fuzz *f);
void act_fork(struct fuzz *f);
void act_map(struct fuzz *f);
void act_remap(struct fuzz *f);
void act_touch(struct fuzz *f);
void act_share(struct fuzz *f);
void act_import(struct fuzz *f);
void act_look(struct fuzz *f);

/* A well-behaved program on a file of the world, one for each thread: acts.c */
void act_settle(struct fuzz *f);
void act_train(struct fuzz *f);

#endif
