/* SPDX-License-Identifier: MIT */
/* Initial values of rows. @where starts the sentence of a failure, such as "table users". */
#ifndef EMBENG_INITIALIZER_H
#define EMBENG_INITIALIZER_H

#include "device/wire.h"
#include "model.h"

int initializer_check(const char *where, const struct embeng_initializer *initializer);

/* The same for slot @slot, from 0, which must be able to have the numbers that it gives. */
int slot_initializer_check(const char *where, enum embeng_optimizer_name kind, size_t slot,
			   const struct embeng_initializer *initializer);

/* Replaces a default in @given by its values. @slot is 0 for parameters, 1 + k for slot k. */
struct embeng_initializer initializer_resolve(const struct table *t, size_t slot,
					      const struct embeng_initializer *given);

/* Converts @given, or its default, for the engine; table and slot are set in @rows already. */
void initializer_rows(const struct table *t, const struct embeng_initializer *given,
		      struct embeng_rows *rows);

/* The initial values of slot @slot of a table, with defaults resolved. */
struct embeng_initializer slot_start(const struct table *t, size_t slot);

/* Checks the slot starts of a configuration whose optimizer is checked already. */
int slot_starts_check(const char *where, const struct embeng_table_config *config);
/* Copies them into the table, which then owns them. */
int slot_starts_copy(struct table *t, const struct embeng_table_config *config);

#endif
