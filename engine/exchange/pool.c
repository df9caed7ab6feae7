// SPDX-License-Identifier: MIT
/*
 * Runs a POOL: activations out of rows that a program holds, by the code of a LOOKUP, so that they have
 * its bits.
 *
 * Called without engine->lock by the running command. The rows are read in place.
 */
#include "exchange.h"

u16 pool_run(struct command *command)
{
	struct exchange *x;
	u16 status = exchange_begin(command, false, &x);

	if (!status)
		status = lookup_outputs(command, &x->batch);
	exchange_end(command, x);
	command->result = exchange_ids(command->state);
	return status;
}
