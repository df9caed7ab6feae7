/* SPDX-License-Identifier: MIT */
/* How rows start. @where starts the sentence of a failure, as "table users". */
#ifndef EMBENG_INITIALIZER_H
#define EMBENG_INITIALIZER_H

#include "device/wire.h"
#include "model.h"

int initializer_check(const char *where, const struct embeng_initializer *initializer);

/* @given, or what its default stands for. @slot: 0 parameters, 1 + k slot k. */
struct embeng_initializer initializer_resolve(const struct table *t, size_t slot,
					      const struct embeng_initializer *given);

/* What @given, or what its default stands for, is to the engine; @rows has table and slot. */
void initializer_rows(const struct table *t, const struct embeng_initializer *given,
		      struct embeng_rows *rows);

/* How slot k of a table starts, resolved. */
struct embeng_initializer slot_start(const struct table *t, size_t slot);

/* A configuration's slot starts; its optimizer is checked already. */
int slot_starts_check(const char *where, const struct embeng_table_config *config);
/* ... which the table then owns. */
int slot_starts_copy(struct table *t, const struct embeng_table_config *config);

#endif
