/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_ROWS_H
#define EMBENG_ROWS_H

#include "session.h"

/* Runs without e->lock, alone with e->staging; its commands carry @after. */
typedef int (*rows_body)(struct embeng *e, void *arg, uint64_t after);

/* @body behind the gate: all its commands see one state of the tables. */
int rows_behind_gate(struct embeng *e, const char *what, rows_body body, void *arg);

#endif
